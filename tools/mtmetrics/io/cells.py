"""Cells of a table of text: how lines are taken apart, and how a cell is written so that it is read
back."""

import csv
import enum
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mtmetrics.errors import InputError
from mtmetrics.io.columns import names_usual_columns
from mtmetrics.io.file_kinds import bare_name

# A row of a table: the number of the line where it ends, and its cells; no cells in a blank line.
Cells = tuple[int, list[str]]
# Characters for which programs put a cell between quotes.
_SPECIAL = re.compile(r'["\t\r\n]')
_CSV_SPECIAL = re.compile(r'[",\r\n]')
# A cell at the beginning of a text: between quotes up to a tab or the end, or anything up to a tab.
_QUOTED = re.compile(r'"(?:[^"]|"")*"(?=\t|\Z)')
_OPEN = re.compile(r'"(?:[^"]|"")*\Z')
_PLAIN = re.compile(r"[^\t\n]*(?=\t|\Z)")
_MOST_LINES = 200  # in a cell with line breaks


class Dialect(enum.Enum):
    """How cells are separated and quoted."""

    TABS = "tabs; a cell is quoted where it has to be"
    QUOTED_TABS = "tabs, below a header of which every name is quoted, as cells of text are"
    COMMAS = "commas, as CSV"


def find_dialect(path: str | Path, lines: Iterable[str]) -> tuple[Dialect, Iterator[str]]:
    """Tells by the first line that is not blank how the cells of a table are separated.

    Tabs separate wherever that line holds one. Without a tab, commas do in a file called ``.csv``,
    and in one called ``.tsv`` whose first line then names usual columns.

    Returns:
        The dialect, and all lines.
    """
    lines = iter(lines)
    lines_read: list[str] = []
    for line in lines:
        lines_read.append(line)
        if line.strip():
            break
    first = lines_read[-1] if lines_read else ""
    return _dialect_of(bare_name(path), first), itertools.chain(lines_read, lines)


def _dialect_of(name: str, first: str) -> Dialect:
    """Tells the dialect of a table by its name in lower case and its first line."""
    cells = first.split("\t")
    if len(cells) > 1:
        unquoted = [cell[1:-1] for cell in cells if len(cell) > 2 and cell[0] == cell[-1] == '"']
        is_quoted = len(unquoted) == len(cells) and names_usual_columns(unquoted)
        return Dialect.QUOTED_TABS if is_quoted else Dialect.TABS
    if not first.strip():
        return Dialect.TABS
    if name.endswith(".csv"):
        return Dialect.COMMAS
    if name.endswith(".tsv") and "," in first and names_usual_columns(next(csv.reader([first]))):
        return Dialect.COMMAS
    return Dialect.TABS


def iter_cells(path: str | Path, lines: Iterable[str], dialect: Dialect) -> Iterator[Cells]:
    """Yields the rows of a table; blank lines at its end are no rows.

    Between tabs, quotes around a cell belong to the table where the cell holds a quote (doubled), a
    tab or a line break, for which programs such as pandas quote; otherwise they belong to the text.

    Raises:
        InputError: the quoting of a table whose cells are all quoted, or of CSV, is damaged; or as
            the lines.
    """
    rows = _tabbed(iter(lines)) if dialect is Dialect.TABS else _quoted(path, lines, dialect)
    blank: list[Cells] = []
    for row in rows:
        if not row[1]:
            blank.append(row)
            continue
        yield from blank
        blank.clear()
        yield row


def join_tabs(texts: Iterable[str]) -> str:
    """Joins texts to a line of cells between tabs; quotes texts that `iter_cells` would change.

    No text may hold a tab or a line break.
    """
    cells = []
    for text in texts:
        would_change = text.endswith("\r") or _unquoted(text) != text
        cells.append(_in_quotes(text) if would_change else text)
    return "\t".join(cells)


def join_commas(texts: Iterable[str]) -> str:
    """Joins texts to a line of CSV."""
    # Not by Python's `csv`: it writes a carriage return without quotes, which ends the line for
    # readers.
    cells = [_in_quotes(text) if _CSV_SPECIAL.search(text) else text for text in texts]
    return ",".join(cells) or '""'


def _in_quotes(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _quoted(path: str | Path, lines: Iterable[str], dialect: Dialect) -> Iterator[Cells]:
    separator = "," if dialect is Dialect.COMMAS else "\t"
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator, strict=True)
    try:
        for cells in reader:
            is_blank = len(cells) < 2 and not "".join(cells).strip()
            yield reader.line_num, [] if is_blank else cells
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not valid CSV ({error})") from None


def _tabbed(lines: Iterator[str]) -> Iterator[Cells]:
    """Yields the rows of a table with tabs; the first row says how many cells a row has."""
    width = number = 0
    put_back: list[str] = []  # lines that were read to look for the end of a quoted cell
    while (line := put_back.pop(0) if put_back else next(lines, None)) is not None:
        number += 1
        if "\t" not in line and not line.strip():
            yield number, []
            continue
        cells = line.split("\t")
        width = width or len(cells)
        may_go_on = '"' in line and (len(cells) != width or cells[-1].startswith('"'))
        if may_go_on:
            following = itertools.chain(tuple(put_back), lines)
            joined_cells, lines_taken = _joined(line, following, width)
            put_back = put_back[len(lines_taken) :]
            if joined_cells is None:
                put_back = lines_taken + put_back
            else:
                cells = joined_cells
                number += len(lines_taken)
        yield number, [_unquoted(cell) if cell[:1] == '"' else cell for cell in cells]


def _joined(line: str, following: Iterator[str], width: int) -> tuple[list[str] | None, list[str]]:
    """Reads a line, and lines that follow, as cells of which some are quoted.

    Returns:
        The `width` cells, or None where there are more or fewer; and the lines that were taken from
        `following`.
    """
    is_row = line.count("\t") + 1 == width
    lines_taken: list[str] = []
    text = line
    cells = _split(text)
    while cells is None and len(lines_taken) < _MOST_LINES:
        next_line = next(following, None)
        if next_line is None:
            break
        lines_taken.append(next_line)
        if is_row and next_line.count("\t") + 1 == width:
            break  # both lines are rows as they stand: the quote belongs to the text
        text += "\n" + next_line
        cells = _split(text)
    if cells is None or len(cells) != width:
        return None, lines_taken
    return cells, lines_taken


def _split(text: str) -> list[str] | None:
    """Splits a text into cells, with their quotes.

    Returns:
        The cells; none where a line ends outside of quotes; None where a quote is still open.
    """
    cells: list[str] = []
    place = 0
    while True:
        match = _QUOTED.match(text, place)
        if match is None and _OPEN.match(text, place):
            return None
        match = match or _PLAIN.match(text, place)
        if match is None:  # a line break outside quotes
            return []
        cells.append(match[0])
        place = match.end() + 1
        if place > len(text):
            return cells


def _unquoted(cell: str) -> str:
    if len(cell) < 3 or not cell[0] == cell[-1] == '"':
        return cell
    inner = cell[1:-1]
    has_lone_quote = '"' in inner.replace('""', "")
    is_quoted = not has_lone_quote and _SPECIAL.search(inner)
    return inner.replace('""', '"') if is_quoted else cell
