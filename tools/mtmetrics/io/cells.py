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

# The row of a table: the number of the line where it ends, and its cells; none in a blank line.
Cells = tuple[int, list[str]]
# Characters for which programs put a cell between quotes.
_SPECIAL = re.compile(r'["\t\r\n]')
_CSV_SPECIAL = re.compile(r'[",\r\n]')
# A cell at the beginning of a text: between quotes up to a tab or the end, or anything up to a tab.
_QUOTED = re.compile(r'"(?:[^"]|"")*"(?=\t|\Z)')
_OPEN = re.compile(r'"(?:[^"]|"")*\Z')
_PLAIN = re.compile(r"[^\t\n]*(?=\t|\Z)")
_MOST_LINES = 200  # of a cell with line breaks


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
    begin: list[str] = []
    for line in lines:
        begin.append(line)
        if line.strip():
            break
    head = begin[-1] if begin else ""
    all_lines = itertools.chain(begin, lines)
    cells = head.split("\t")
    if len(cells) > 1:
        bare = [cell[1:-1] for cell in cells if len(cell) > 2 and cell[0] == cell[-1] == '"']
        all_quoted = len(bare) == len(cells) and names_usual_columns(bare)
        return Dialect.QUOTED_TABS if all_quoted else Dialect.TABS, all_lines
    name = bare_name(path)
    names_columns = (
        name.endswith(".tsv") and "," in head and names_usual_columns(next(csv.reader([head])))
    )
    commas = head.strip() and (name.endswith(".csv") or names_columns)
    return Dialect.COMMAS if commas else Dialect.TABS, all_lines


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
    """A line of cells between tabs; quotes texts that `iter_cells` would change otherwise. None of
    them may hold a tab or a line break."""
    return "\t".join(
        _in_quotes(text) if text.endswith("\r") or _unquoted(text) != text else text
        for text in texts
    )


def join_commas(texts: Iterable[str]) -> str:
    """A line of CSV. (Python's `csv` writes a carriage return without quotes, which ends the line
    for readers.)"""
    line = ",".join(_in_quotes(text) if _CSV_SPECIAL.search(text) else text for text in texts)
    return line or '""'


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
    width = number = 0
    waiting: list[str] = []
    while (line := waiting.pop(0) if waiting else next(lines, None)) is not None:
        number += 1
        if "\t" not in line and not line.strip():
            yield number, []
            continue
        cells = line.split("\t")
        width = width or len(cells)
        if '"' in line and (len(cells) != width or cells[-1].startswith('"')):
            joined, taken = _joined(line, itertools.chain(tuple(waiting), lines), width)
            waiting = waiting[len(taken) :]
            if joined is None:
                waiting = taken + waiting
            else:
                cells, number = joined, number + len(taken)
        yield number, [_unquoted(cell) if cell[:1] == '"' else cell for cell in cells]


def _joined(line: str, following: Iterator[str], width: int) -> tuple[list[str] | None, list[str]]:
    """Reads a line, and those that follow, as cells of which some are quoted.

    Returns:
        The `width` cells, or None where they are not so many; and the lines that were taken from
        `following`.
    """
    is_whole = line.count("\t") + 1 == width
    taken: list[str] = []
    text = line
    while (cells := _split(text)) is None and len(taken) < _MOST_LINES:
        after = next(following, None)
        if after is None:
            break
        taken.append(after)
        if is_whole and after.count("\t") + 1 == width:
            break  # both lines are rows as they stand: the quote is one of the text
        text += "\n" + after
    return (cells if cells is not None and len(cells) == width else None), taken


def _split(text: str) -> list[str] | None:
    """The cells of a text, with their quotes; None where a quote is still open."""
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
    is_quoted = '"' not in inner.replace('""', "") and _SPECIAL.search(inner)
    return inner.replace('""', '"') if is_quoted else cell
