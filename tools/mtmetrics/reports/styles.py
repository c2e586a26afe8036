"""Reports: plain data, and tables for terminals, as Markdown, LaTeX, comma-separated and
tab-separated values."""

import csv
import dataclasses
import io
import os
import shutil
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

from mtmetrics.statistics.correlation import Correlation


class Marked(NamedTuple):
    """A cell that stands out: the best of its column, or not significantly worse than the best."""

    text: str
    bold: bool = False
    tied: bool = False


Cell = str | Marked
Table = Sequence[Sequence[Cell]]
_UNBOUNDED = 10_000
_GAP, _LEAST_TEXT = 3, 12

_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "†": r"$^{\dagger}$",
    "≥": r"$\geq$",
}


def markdown(table: Table, numbers: Container[int]) -> str:
    """A Markdown table of rows of cells, the head first; the columns that hold `numbers` stand to
    the right."""
    # A bar would end the cell: signatures are full of them.
    rows = (
        [_marked(cell, _plain(cell).replace("|", "\\|"), "**{}**", " †") for cell in row]
        for row in table
    )
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(
        1,
        "|"
        + "|".join("---:" if column in numbers else "---" for column in range(len(table[0])))
        + "|",
    )
    return "\n".join(lines)


def latex(table: Table, numbers: Container[int]) -> str:
    """A LaTeX ``tabular`` with the rules of the package booktabs."""
    rows = []
    for row in table:
        texts = [latex_text(_plain(cell)) for cell in row]
        # At the beginning of a row these would be an argument of the line end before it.
        texts = ["{}" + text if text.startswith(("[", "*")) else text for text in texts]
        marked = [
            _marked(*pair, r"\textbf{{{}}}", _LATEX["†"]) for pair in zip(row, texts, strict=True)
        ]
        rows.append(" & ".join(marked) + r" \\")
    head, *body = rows
    columns = "".join("r" if column in numbers else "l" for column in range(len(table[0])))
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def comma_separated(table: Table, numbers: Container[int]) -> str:
    """Comma-separated values, without marks, so that every program reads the numbers."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(
        [_plain(cell) for cell in row] for row in table
    )
    return lines.getvalue().rstrip("\n")


def tab_separated(table: Table, numbers: Container[int]) -> str:
    """Tab-separated values, without marks."""
    return "\n".join("\t".join(map(_plain, row)) for row in table)


def terminal(table: Table, numbers: Container[int]) -> str:
    """Aligned columns, as wide as the terminal where words allow it; the best is bold where bold
    can be seen.

    Nothing is cut, and no number broken: a table whose numbers do not fit side by side is wider
    than the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    on_terminal = sys.stdout.isatty()
    styled = on_terminal and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size().columns if on_terminal else _UNBOUNDED
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=styled,
        highlight=False,
        emoji=False,
    )
    grid = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    unbroken_width = broken_width = _GAP * len(table[0])
    for place, title in enumerate(table[0]):
        cells = [_plain(row[place]) for row in table]
        word = max(cell_len(word) for cell in cells for word in cell.split() or [""])
        least = word + 1 if place in numbers else min(word, _LEAST_TEXT)
        unbroken_width += max(map(cell_len, cells)) + 2 if place in numbers else least
        broken_width += least
        look = {"justify": "right"} if place in numbers else {"overflow": "fold"}
        grid.add_column(Text(_plain(title)), min_width=least, **look)
    for row in table[1:]:
        cells = (cell if isinstance(cell, Marked) else Marked(cell) for cell in row)
        grid.add_row(
            *(Text(_plain(cell) + " †" * cell.tied, "bold" if cell.bold else "") for cell in cells)
        )
    if unbroken_width <= width:  # only text is broken into lines
        for place in range(len(table[0])):
            grid.columns[place].no_wrap = place in numbers
    console.width = max(width, broken_width)
    console.print(grid)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


STYLES: dict[str, Callable[[Table, Container[int]], str]] = {
    "table": terminal,
    "markdown": markdown,
    "latex": latex,
    "csv": comma_separated,
    "tsv": tab_separated,
}
# Those that people read as they are, with notes under the table.
FOR_READERS = ("table", "markdown", "latex")


class Grid(NamedTuple):
    """A table, the head first, and the places of the columns that hold numbers."""

    rows: Table
    numbers: Container[int] = ()


@dataclasses.dataclass(frozen=True)
class Report:
    """Results, to be shown in any style.

    Attributes:
        document: plain data, for JSON.
        blocks: tables, and notes between and under them.
        terminal: the same, where a terminal has no room for `blocks`.
        flat: the one table of ``csv`` and ``tsv``, where it is not the first of `blocks`.
        comments: whether notes are comments in LaTeX, else they are paragraphs.
    """

    document: Mapping[str, object]
    blocks: Sequence[Grid | str]
    terminal: Sequence[Grid | str] = ()
    flat: Table = ()
    comments: bool = False

    def render(self, style: str) -> str:
        """The text in one of the `STYLES`, without a final line end; ``csv`` and ``tsv`` have no
        notes."""
        if style not in FOR_READERS:
            return STYLES[style](self.flat or self.blocks[0].rows, ())
        blocks = (style == "table" and self.terminal) or self.blocks
        texts = (
            self._note(block, style) if isinstance(block, str) else STYLES[style](*block)
            for block in blocks
        )
        return "\n\n".join(texts)

    def _note(self, text: str, style: str) -> str:
        if style != "latex":
            return one_line(text)
        return f"% {one_line(text)}" if self.comments else f"\\noindent {latex_text(text)}"


def correlation_text(correlation: Correlation | None) -> str:
    """A correlation with three decimals, or ``nan``."""
    return (
        "nan"
        if correlation is None or correlation.reason is not None
        else decimals(correlation.value)
    )


def decimals(value: float, places: int = 3) -> str:
    """A number with so many decimals."""
    # Adding 0.0 turns -0.000 into 0.000.
    return f"{round(float(value), places) + 0.0:.{places}f}"


def one_line(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


def latex_text(text: str) -> str:
    """The text with every sign that LaTeX would take for a command put as what it says."""
    return "".join(_LATEX.get(sign, sign) for sign in one_line(text))


def _plain(cell: Cell) -> str:
    return one_line(cell.text if isinstance(cell, Marked) else cell)


def _marked(cell: Cell, text: str, bold: str, tied: str) -> str:
    """The text of a cell with the marks of a style."""
    if isinstance(cell, Marked):
        text = bold.format(text) if cell.bold else text
        text += tied if cell.tied else ""
    return text
