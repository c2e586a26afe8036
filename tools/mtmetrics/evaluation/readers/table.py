"""Tables with a header row: tab-separated, or CSV such as the collections of WMT judgements on the Hub."""

import csv
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mtmetrics.errors import InputError
from mtmetrics.evaluation.readers import fields
from mtmetrics.evaluation.readers.rows import Row
from mtmetrics.textio import iter_lines

_TEXTS = {
    name for field in ("lp", "source", "translation", "reference", "system", "item") for name in fields.NAMES[field]
}
_REQUIRED = {name for field in ("source", "translation") for name in fields.NAMES[field]}
_ABSENT = {"", "None"}


def rows(path: str | Path) -> Iterator[tuple[str, Row]]:
    """Yields place and content of every row of a table.

    The columns are separated by tabs where the header holds one, else by commas with the quoting of CSV. A
    tab-separated field is quoted only where it holds doubled quotes between quotes, as pandas writes it; other quotes
    belong to the text. An empty field and ``None`` are no value, but for source and translation.

    Raises:
        InputError: the header has neither a source nor a translation; a row has fewer or more fields than the header; a
            judgement is no number; or as `mtmetrics.textio.iter_lines`.
    """
    return parsed(path, iter_lines(path))


def parsed(path: str | Path, lines: Iterable[str]) -> Iterator[tuple[str, Row]]:
    """Yields the rows of a table like `rows`.

    Args:
        path: what messages call it.
        lines: its lines, without line ends.
    """
    lines = iter(lines)
    first = next(lines, None)
    if first is None:
        return
    cells = _split_tabs if "\t" in first else _split_commas
    table = cells(path, itertools.chain([first], lines))
    _, header = next(table)
    _check_header(path, header)
    for number, values in table:
        where = f"{path}, line {number}"
        if len(values) != len(header):
            raise InputError(f"{where}: {len(values)} field(s), but the header has {len(header)}: {', '.join(header)}")
        yield where, {name: _value(name, value) for name, value in zip(header, values, strict=True)}


def _split_tabs(path: str | Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, [_unquoted(cell) for cell in line.split("\t")]


def _split_commas(path: str | Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((line + "\n" for line in lines), strict=True)
    try:
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not valid CSV ({error})") from None


def _unquoted(cell: str) -> str:
    inner = cell[1:-1].replace('""', "")
    quoted = len(cell) > 2 and cell[0] == cell[-1] == '"' and '""' in cell[1:-1] and '"' not in inner
    return cell[1:-1].replace('""', '"') if quoted else cell


def _check_header(path: str | Path, header: list[str]) -> None:
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise InputError(f"{path}, line 1: the column {twice[0]!r} stands there twice")
    if _REQUIRED.isdisjoint(header):
        raise InputError(
            f"{path}, line 1: a header with the columns source, translation and human (or src, mt and score) is needed, got "
            f"{', '.join(header)!r:.80}; files such as WMT's DA-seglevel.csv hold no text: write sentences and judgements into one table"
        )


def _value(name: str, cell: str) -> Any:
    if name in _REQUIRED:
        return cell
    if cell in _ABSENT:
        return None
    if name in _TEXTS:
        return cell
    try:
        return float(cell)
    except ValueError:
        return cell
