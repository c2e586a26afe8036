"""Reports, and the styles in which their tables are written.

A `Report` holds plain data for JSON, and tables with notes. `Report.render` writes these in one of
the `STYLES`: a table for the terminal, Markdown, LaTeX, comma- or tab-separated values.
"""

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
    """A cell that may stand out.

    Attributes:
        text: of the cell.
        bold: whether it is the best of its column.
        tied: whether it is not significantly worse than the best.
    """

    text: str
    bold: bool = False
    tied: bool = False


Cell = str | Marked
# Rows of cells, the head first.
Table = Sequence[Sequence[Cell]]
# The width of output that is no terminal.
_UNBOUNDED = 10_000
# Characters between two columns, and of a column of text at least.
_GAP, _LEAST_TEXT = 3, 12

# Character -> its text in LaTeX.
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
    """Writes a table in Markdown; the columns whose places are among `numbers` are aligned to the
    right."""
    lines = []
    for row in table:
        # A bar would end the cell: signatures are full of them.
        cells = [_marked(cell, _plain(cell).replace("|", "\\|"), "**{}**", " †") for cell in row]
        lines.append("| " + " | ".join(cells) + " |")
    rules = ["---:" if column in numbers else "---" for column in range(len(table[0]))]
    lines.insert(1, "|" + "|".join(rules) + "|")
    return "\n".join(lines)


def latex(table: Table, numbers: Container[int]) -> str:
    """Writes a table as a LaTeX ``tabular`` with the rules of the package booktabs; `numbers` as in
    `markdown`."""
    rows = []
    for row in table:
        cells = []
        for cell in row:
            text = latex_text(_plain(cell))
            # At the beginning of a row these would be an argument of the line end before it.
            if text.startswith(("[", "*")):
                text = "{}" + text
            cells.append(_marked(cell, text, r"\textbf{{{}}}", _LATEX["†"]))
        rows.append(" & ".join(cells) + r" \\")
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
    """Writes a table as comma-separated values, without marks, so that every program reads the
    numbers."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerows([_plain(cell) for cell in row] for row in table)
    return lines.getvalue().rstrip("\n")


def tab_separated(table: Table, numbers: Container[int]) -> str:
    """Writes a table as tab-separated values, without marks."""
    return "\n".join("\t".join(map(_plain, row)) for row in table)


def terminal(table: Table, numbers: Container[int]) -> str:
    """Writes a table in aligned columns, as wide as the terminal; the best cells are bold where a
    terminal shows it.

    Nothing is cut, and no number broken: a table whose numbers do not fit side by side is wider
    than the terminal. `numbers` as in `markdown`."""
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table as RichTable
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
    grid = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    # The least width where each number stays in one line, and where numbers with an interval are
    # broken at spaces, too.
    unbroken_width = broken_width = _GAP * len(table[0])
    for place, title in enumerate(table[0]):
        cells = [_plain(row[place]) for row in table]
        longest_word = max(cell_len(word) for cell in cells for word in cell.split() or [""])
        if place in numbers:
            least = longest_word + 1
            unbroken_width += max(map(cell_len, cells)) + 2
            grid.add_column(Text(_plain(title)), min_width=least, justify="right")
        else:
            least = min(longest_word, _LEAST_TEXT)
            unbroken_width += least
            grid.add_column(Text(_plain(title)), min_width=least, overflow="fold")
        broken_width += least
    for row in table[1:]:
        texts = []
        for cell in row:
            marked = cell if isinstance(cell, Marked) else Marked(cell)
            text = _plain(cell) + (" †" if marked.tied else "")
            texts.append(Text(text, "bold" if marked.bold else ""))
        grid.add_row(*texts)
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
# The styles that people read as they are, with notes under the table.
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
        terminal: tables and notes for a terminal, where it has no room for `blocks`.
        flat: the one table of ``csv`` and ``tsv``, where it is not the first of `blocks`.
        comments: whether notes are comments in LaTeX, and not paragraphs.
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
        """A note in a style, in one line."""
        if style != "latex":
            return one_line(text)
        return f"% {one_line(text)}" if self.comments else f"\\noindent {latex_text(text)}"


def correlation_text(correlation: Correlation | None) -> str:
    """A correlation with three decimals; ``nan`` where it is not defined."""
    if correlation is None or correlation.reason is not None:
        return "nan"
    return decimals(correlation.value)


def decimals(value: float, places: int = 3) -> str:
    """A number with so many decimals."""
    # Adding 0.0 turns -0.000 into 0.000.
    return f"{round(float(value), places) + 0.0:.{places}f}"


def one_line(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


def latex_text(text: str) -> str:
    """The text in one line, with each character that has a meaning in LaTeX escaped."""
    return "".join(_LATEX.get(sign, sign) for sign in one_line(text))


def _plain(cell: Cell) -> str:
    """The text of a cell in one line, without marks."""
    return one_line(cell.text if isinstance(cell, Marked) else cell)


def _marked(cell: Cell, text: str, bold: str, tied: str) -> str:
    """The text of a cell with the marks of a style.

    Args:
        cell: has the marks.
        text: its text, escaped for the style.
        bold: a format that makes a text bold.
        tied: the sign behind a cell that is not significantly worse than the best.
    """
    if isinstance(cell, Marked):
        text = bold.format(text) if cell.bold else text
        text += tied if cell.tied else ""
    return text
