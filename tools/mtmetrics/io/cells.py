"""Splits the lines of TSV and CSV tables into cells, and joins cells to lines that are read back
unchanged, but for the cases that `join_tabs` and `join_commas` name."""

import collections
import csv
import enum
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mtmetrics.errors import InputError
from mtmetrics.io.columns import names_usual_columns
from mtmetrics.io.file_kinds import lowercase_unpacked_name

# A row of a table: the number of the line where it ends, and its cells. A blank line has no cells.
NumberedCells = tuple[int, list[str]]


class Dialect(enum.Enum):
    """How cells are separated and quoted."""

    # Tabs. Most quotes are part of the text; `iter_cells` tells which cells are quoted.
    TABS = enum.auto()
    # Tabs. Cells are quoted as in CSV.
    QUOTED_TABS = enum.auto()
    # Commas, as in CSV.
    COMMAS = enum.auto()


def open_cells(path: str | Path, lines: Iterable[str]) -> tuple[Dialect, Iterator[NumberedCells]]:
    """Finds out from the first line that is not blank how cells are separated.

    - A line with a tab has cells between tabs. They are quoted as in CSV if every cell of the line
      is quoted, and the cells are usual names of columns (see
      `mtmetrics.io.columns.names_usual_columns`).
    - A line without a tab has cells between commas if the name of the file ends in ``.csv``, or if
      it ends in ``.tsv`` and the cells are usual names of columns.
    - Any other line is a single cell of a table with tabs.

    Args:
        path: the file. Only its name is used.
        lines: the lines without their line ends.

    Returns:
        The dialect, and the rows, see `iter_cells`.
    """
    lines = iter(lines)
    lines_read: list[str] = []
    for line in lines:
        lines_read.append(line)
        if line.strip():
            break
    first = lines_read[-1] if lines_read else ""
    dialect = _dialect_of(lowercase_unpacked_name(path), first)
    return dialect, iter_cells(path, itertools.chain(lines_read, lines), dialect)


def _dialect_of(name: str, first: str) -> Dialect:
    """Finds the dialect of a table from its name in lower case and its first line."""
    cells = first.split("\t")
    if len(cells) > 1:
        names = [cell[1:-1] for cell in cells if len(cell) > 2 and cell[0] == cell[-1] == '"']
        are_all_quoted = len(names) == len(cells)
        is_quoted_header = are_all_quoted and names_usual_columns(names)
        return Dialect.QUOTED_TABS if is_quoted_header else Dialect.TABS
    if not first.strip():
        return Dialect.TABS
    if name.endswith(".csv"):
        return Dialect.COMMAS
    if name.endswith(".tsv") and "," in first and _names_usual_columns_in_csv(first):
        return Dialect.COMMAS
    return Dialect.TABS


def _names_usual_columns_in_csv(line: str) -> bool:
    """Whether the cells of a line of CSV are usual names of columns."""
    try:
        return names_usual_columns(next(csv.reader([line])))
    except csv.Error:  # a cell has a carriage return or is very long: the line is text
        return False


def iter_cells(path: str | Path, lines: Iterable[str], dialect: Dialect) -> Iterator[NumberedCells]:
    """Yields the rows of a table. A blank line is a row without cells; blank lines at the end are
    left out.

    In a table with plain tabs, the quotes around a cell are removed only if the cell holds a
    doubled quote, a tab or a line break: programs such as pandas quote just these cells. All other
    quotes are part of the text. A line with as many cells as the first line is taken for a whole
    row in doubtful cases, so a table of one column has no cells with line breaks.

    Args:
        path: the file, for messages.
        lines: the lines without their line ends.
        dialect: how cells are separated and quoted.

    Raises:
        InputError: the quotes of a table in another dialect are damaged, or reading `lines` raises
            it.
    """
    rows = _tsv_rows(lines) if dialect is Dialect.TABS else _csv_rows(path, lines, dialect)
    blank_rows: list[NumberedCells] = []
    for line_number, cells in rows:
        if not cells:
            blank_rows.append((line_number, cells))
            continue
        yield from blank_rows
        blank_rows.clear()
        yield line_number, cells


def _csv_rows(path: str | Path, lines: Iterable[str], dialect: Dialect) -> Iterator[NumberedCells]:
    separator = "," if dialect is Dialect.COMMAS else "\t"
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator, strict=True)
    try:
        for cells in reader:
            # The line `""` is no blank line, but a single empty cell.
            is_blank = len(cells) == 1 and cells[0].isspace()
            yield reader.line_num, [] if is_blank else cells
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not valid CSV ({error})") from None


class _Lines:
    """An iterator over lines that can be put back.

    Attributes:
        number: number of the last line, from 1.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.number = 0
        self._lines = iter(lines)
        self._put_back: collections.deque[str] = collections.deque()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._put_back.popleft() if self._put_back else next(self._lines)
        self.number += 1
        return line

    def put_back(self, lines: list[str]) -> None:
        """Puts the last lines back, so that they come next."""
        self._put_back.extendleft(reversed(lines))
        self.number -= len(lines)


# If a quote is not closed within so many further lines, it is part of the text. Otherwise a stray
# quote would swallow the rest of the file.
_MAX_FURTHER_LINES = 200


def _tsv_rows(lines: Iterable[str]) -> Iterator[NumberedCells]:
    """Yields the rows of a table with plain tabs. The first line that is not blank sets the number
    of cells; it should be a whole row, as a header is."""
    lines = _Lines(lines)
    cell_count = 0
    for line in lines:
        if "\t" not in line and not line.strip():
            yield lines.number, []
            continue
        cells = line.split("\t")
        cell_count = cell_count or len(cells)
        if '"' in line:
            # A quoted cell may hold tabs, or go on in the next line.
            if len(cells) != cell_count or cells[-1].startswith('"'):
                cells = _read_quoted_row(line, lines, cell_count) or cells
            cells = [_unquote(cell) for cell in cells]
        yield lines.number, cells


def _read_quoted_row(line: str, lines: _Lines, cell_count: int) -> list[str] | None:
    """Reads a row with quoted cells that may go on over the following lines.

    Args:
        line: its first line.
        lines: the following lines. If the quotes are part of the text, none is consumed.
        cell_count: number of cells that the row must have.

    Returns:
        The cells with their quotes. None if the quotes are part of the text: `line` is a row by
        itself then.
    """
    is_complete_row = line.count("\t") + 1 == cell_count
    lines_taken: list[str] = []
    text = line
    cells = _split(text)
    while cells is None and len(lines_taken) < _MAX_FURTHER_LINES:
        next_line = next(lines, None)
        if next_line is None:
            break
        lines_taken.append(next_line)
        if is_complete_row and next_line.count("\t") + 1 == cell_count:
            break  # both lines are complete rows: the quote is part of the text
        text += "\n" + next_line
        cells = _split(text)
    if cells is None or len(cells) != cell_count:
        lines.put_back(lines_taken)
        return None
    return cells


# A cell at some position of a text, up to a tab or the end of the text: between quotes, with a
# quote that is not closed, or without quotes around it.
_QUOTED_CELL = re.compile(r'"(?:[^"]|"")*"(?=\t|\Z)')
_UNCLOSED_CELL = re.compile(r'"(?:[^"]|"")*\Z')
_PLAIN_CELL = re.compile(r"[^\t\n]*(?=\t|\Z)")


def _split(text: str) -> list[str] | None:
    """Splits a text into cells, and keeps their quotes.

    Returns:
        The cells; an empty list if a line ends outside quotes; None if a quote is not closed.
    """
    cells: list[str] = []
    position = 0
    while True:
        match = _QUOTED_CELL.match(text, position)
        if match is None and _UNCLOSED_CELL.match(text, position):
            return None
        match = match or _PLAIN_CELL.match(text, position)
        if match is None:
            return []
        cells.append(match[0])
        position = match.end() + 1
        if position > len(text):
            return cells


# Characters that make programs quote a cell.
_NEEDS_QUOTES = re.compile(r'["\t\r\n]')


def _unquote(cell: str) -> str:
    """Returns a cell of a table with plain tabs without its quotes, if they are no part of the
    text; see `iter_cells`."""
    if len(cell) < 3 or not (cell.startswith('"') and cell.endswith('"')):
        return cell
    inner = cell[1:-1]
    has_lone_quote = '"' in inner.replace('""', "")
    is_quoted = not has_lone_quote and _NEEDS_QUOTES.search(inner)
    return inner.replace('""', '"') if is_quoted else cell


def join_tabs(texts: Iterable[str]) -> str:
    """Joins texts to a line of cells between tabs; quotes texts that `iter_cells` would change.

    No text may hold a tab or ``\\n``: the caller refuses them. A single blank text gives a blank
    line, which is not read back.
    """
    cells = []
    for text in texts:
        # Readers take a carriage return at the end of a line for a part of the line end.
        if text.endswith("\r") or _unquote(text) != text:
            text = '"' + text.replace('"', '""') + '"'
        cells.append(text)
    return "\t".join(cells)


def join_commas(texts: Iterable[str]) -> str:
    """Joins texts to a line of CSV.

    When it is read back, ``\\r\\n`` within a text is ``\\n``. A single text of spaces alone gives a
    blank line.
    """
    line = io.StringIO()
    csv.writer(line).writerow(texts)
    return line.getvalue().removesuffix("\r\n")
