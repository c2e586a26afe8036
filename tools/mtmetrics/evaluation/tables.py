"""Writes tables of strings as Markdown, LaTeX, tab-separated or comma-separated lines."""

import csv
import io
from collections.abc import Callable, Container, Sequence

Table = Sequence[Sequence[str]]

_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)


def markdown(table: Table, numbers: Container[int]) -> str:
    """A Markdown table whose first row is its head.

    Args:
        table: rows of cells.
        numbers: columns that hold numbers, which stand to the right.
    """
    # A bar would end the cell: signatures are full of them.
    lines = ["| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in row) + " |" for row in table]
    lines.insert(1, "|" + "|".join("---:" if column in numbers else "---" for column in range(len(table[0]))) + "|")
    return "\n".join(lines)


def latex(table: Table, numbers: Container[int]) -> str:
    """A LaTeX ``tabular`` whose first row is its head, with the rules of the package booktabs; arguments as `markdown`."""
    columns = "".join("r" if column in numbers else "l" for column in range(len(table[0])))
    rows = [" & ".join(latex_text(cell) for cell in row) + r" \\" for row in table]
    # The command before would take a bracket or a star for an argument of its own.
    rows = ["{}" + row if row.startswith(("[", "*")) else row for row in rows]
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule", r"\end{tabular}"])


def latex_text(text: str) -> str:
    """The text on one line, with what LaTeX would take for a command escaped."""
    return one_line(text).translate(_LATEX)


def tsv(table: Table, numbers: Container[int] = ()) -> str:
    """Tab-separated rows, each cell on one line; `numbers` changes nothing."""
    return "\n".join("\t".join(one_line(cell) for cell in row) for row in table)


def comma_separated(table: Table, numbers: Container[int] = ()) -> str:
    """Comma-separated rows (RFC 4180, but for line ends); `numbers` changes nothing."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([one_line(cell) for cell in row] for row in table)
    return stream.getvalue().removesuffix("\n")


def one_line(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


RENDERERS: dict[str, Callable[[Table, Container[int]], str]] = {
    "markdown": markdown,
    "latex": latex,
    "tsv": tsv,
    "csv": comma_separated,
}
