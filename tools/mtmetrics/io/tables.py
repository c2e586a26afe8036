"""Rows of text: tab- or comma-separated, JSON Lines or Parquet; the names of their fields, and their places."""

import csv
import itertools
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mtmetrics.checks import language_pair
from mtmetrics.errors import InputError
from mtmetrics.io.file_kinds import bare_name
from mtmetrics.io.lines import UNREADABLE, iter_lines, json_array, json_object, open_bytes, shown

# What the columns of a table are called: as we do, then as COMET, WMT and MLQE-PE do.
COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "source": ("source", "src", "original"),
    "translation": ("translation", "mt", "prediction", "hypothesis", "target"),
    "reference": ("reference", "ref"),
}
# What a field of judged rows is called: in our files first, then in common training files, WMT17, and MLQE-PE.
FIELDS: dict[str, tuple[str, ...]] = {
    "lp": ("lp", "LP"),
    **COLUMN_NAMES,
    "system": ("system", "sys"),
    "item": ("item", "sid"),
    "human": ("human", "score", "HUMAN_score", "z_mean"),
    "raw": ("raw", "da_mean", "mean"),
}
_LARGEST = sys.float_info.max


class Row(NamedTuple):
    """What stands in a row of a file, and its place, for messages."""

    where: str
    fields: Mapping[str, Any]

    def name(self, field: str) -> str | None:
        """The name under which the row has a field of `FIELDS`, or None where it has not."""
        return next((name for name in FIELDS[field] if name in self.fields), None)

    def null(self, field: str) -> bool:
        """Whether the row has a field of `FIELDS` and says that there is none."""
        name = self.name(field)
        return name is not None and self.fields[name] is None

    def required(self, field: str) -> str:
        """The name under which the row has a field of `FIELDS`; refused where it has not."""
        name = self.name(field)
        if name is None:
            raise self.lacks(FIELDS[field])
        return name

    def lacks(self, names: tuple[str, ...]) -> InputError:
        """The error for a row without any field of these names."""
        there = ", ".join(map(repr, self.fields)) or "no field at all"
        return InputError(f"{self.where}: no field {' or '.join(map(repr, names))}; the row has: {there}")

    def text(self, name: str) -> str:
        """The string under a name; refused, with its place, where something else is there."""
        value = self.fields[name]
        if not isinstance(value, str):
            raise InputError(f"{self.where}, field {name!r}: a string is needed, got {shown(value)}")
        return value

    def label(self, name: str) -> str:
        """The string or whole number under a name, as a string; other values are refused."""
        value = self.fields[name]
        return str(value) if isinstance(value, int) and is_number(value) else self.text(name)

    def number(self, name: str) -> float:
        """The finite number under a name; other values are refused."""
        value = self.fields[name]
        # Python's JSON reader lets NaN, Infinity and whole numbers through that no float holds.
        if not is_number(value) or not abs(value) <= _LARGEST:
            raise InputError(f"{self.where}, field {name!r}: a finite number is needed, got {shown(value)}")
        return float(value)

    def outputs(self, systems: Collection[str] = ()) -> "Row":
        """The object in the field ``outputs``, system -> translation; of exactly the systems given, if any."""
        found = self.fields.get("outputs")
        where = f"{self.where}, field 'outputs'"
        if not isinstance(found, dict) or (systems and found.keys() != set(systems)):
            wanted = f" of {', '.join(systems)}, as in the first row" if systems else ""
            raise InputError(f"{where}: an object, system name -> translation{wanted}, is needed")
        return Row(where, found)

    def checked_pair(self, pair: str) -> str:
        """The language pair of the row, refused with its place where it is none."""
        try:
            language_pair(pair)
        except InputError as error:
            raise InputError(f"{self.where}, field 'lp': {error}") from None
        return pair


def is_number(value: Any) -> bool:
    """Whether a value is a number; JSON's true, which would pass for 1, is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def jsonl_rows(path: str | Path) -> Iterator[Row]:
    """Yields the object in every line that is not blank of a JSON Lines file; a line that holds none is refused. A file
    that is called ``.json`` may hold an array of objects instead."""
    lines = iter_lines(path)
    if bare_name(path).endswith(".json"):
        text = "\n".join(lines)
        if text.lstrip().startswith("["):
            for number, item in enumerate(json_array(text, str(path)), 1):
                yield Row(f"{path}, item {number}", item)
            return
        lines = iter(text.split("\n"))
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"{path}, line {number}"
            yield Row(where, json_object(line, where))


def iter_cells(
    path: str | Path, lines: Iterable[str] | None = None, *, commas: bool | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yields the number and the cells of every line, which tabs separate, or commas with the quoting of CSV.

    Args:
        path: as for `iter_lines`.
        lines: those of the file, where they come from elsewhere.
        commas: whether commas separate where the first line holds no tab, and cells between tabs are quoted where they
            hold doubled quotes between quotes, as pandas writes them; by default in ``.csv`` and ``.csv.gz``.

    Raises:
        InputError: the quoting is damaged, or as `iter_lines`.
    """
    with_commas = _is_named(path, ".csv") if commas is None else commas
    lines = iter(iter_lines(path, "any" if with_commas else "cells") if lines is None else lines)
    if not with_commas:
        yield from ((number, line.split("\t")) for number, line in enumerate(lines, 1))
        return
    head: list[str] = []
    for line in lines:
        head.append(line)
        if line.strip():
            break
    lines = itertools.chain(head, lines)
    if head and "\t" in head[-1]:
        yield from ((number, [*map(_unquoted, line.split("\t"))]) for number, line in enumerate(lines, 1))
        return
    reader = csv.reader((line + "\n" for line in lines), strict=True)
    try:
        yield from ((reader.line_num, cells) for cells in reader)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not valid CSV ({error})") from None


def _unquoted(cell: str) -> str:
    inner = cell[1:-1].replace('""', "")
    quoted = len(cell) > 2 and cell[0] == cell[-1] == '"' and '""' in cell[1:-1] and '"' not in inner
    return cell[1:-1].replace('""', '"') if quoted else cell


def named_rows(path: str | Path, header: Sequence[str], cells: Iterable[tuple[int, list[str]]]) -> Iterator[Row]:
    """Yields the rows below a header, of `iter_cells`; blank ones are left out.

    Raises:
        InputError: a name stands in the header twice, or a row has more or fewer cells than it.
    """
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise InputError(f"{path}, line 1: the column {twice[0]!r} stands there twice")
    for number, values in cells:
        if not any(map(str.strip, values)):
            continue
        where = f"{path}, line {number}"
        if len(values) != len(header):
            raise InputError(f"{where}: {len(values)} field(s), but the header has {len(header)}: {', '.join(header)}")
        yield Row(where, dict(zip(header, values, strict=True)))


def iter_table(path: str | Path, keys: Sequence[str], *, jsonl: bool | None = None) -> Iterator[list[str]]:
    """Yields rows of text columns.

    Args:
        path: ``.jsonl`` files hold objects, ``.parquet`` files a table, ``.csv`` files cells below a header, if commas
            separate them, all others tab-separated cells without a header; all but Parquet may be ``.gz``.
        keys: the columns wanted: the first cells of a line without header in this order, else by name.
        jsonl: overrides what the name says.

    Raises:
        InputError: the file is missing or damaged, or a row lacks a column or holds no string there (with file and
            line).
    """
    return ([row.fields[key] for key in keys] for row in iter_rows(path, keys, jsonl=jsonl, whole=False))


def iter_rows(
    path: str | Path, keys: Sequence[str] = (), *, jsonl: bool | None = None, whole: bool = True
) -> Iterator[Row]:
    """Yields rows as `iter_table`, but by name, and `whole`: with all their columns, of which the further ones of
    cells without a header are called ``column3`` and so on."""
    if jsonl is None and _is_named(path, ".parquet"):
        rows = _parquet_rows(path, keys, whole)
    elif is_json(path) if jsonl is None else jsonl:
        rows = jsonl_rows(path)
    elif jsonl is None and _is_headed(path):
        cells = iter_cells(path)
        rows = named_rows(path, next(cells)[1], cells)
    else:
        for number, cells in iter_cells(path):
            if len(cells) < len(keys):
                wanted = " TAB ".join(keys)
                raise InputError(f"{path}, line {number}: {len(cells)} column(s), but {wanted} are needed")
            more = range(len(keys) + 1, len(cells) + 1) if whole else ()
            names = [*keys, *(f"column{place}" for place in more)]
            yield Row(f"{path}, line {number}", dict(zip(names, cells, strict=False)))
        return
    for row in rows:
        for key in keys:
            if key not in row.fields:
                raise row.lacks((key,))
            text = row.fields[key]
            if not isinstance(text, str):
                raise InputError(f"{row.where}: {key!r} must be a string, got {shown(text)}")
            if "\0" in text:
                raise InputError(f"{row.where}: {key!r} holds a NUL character, which no text does")
        yield row


def table_keys(path: str | Path) -> list[str] | None:
    """The names of the columns of a Parquet file or of CSV, or the keys of the first object of a JSON Lines file that
    are not null; None for other files."""
    if _is_named(path, ".parquet"):
        return [name for row in _parquet_rows(path, None) for name in row.fields]
    if _is_headed(path):
        return next(iter_cells(path))[1]
    if not is_json(path):
        return None
    _, first = next(jsonl_rows(path), ("", {}))
    return [key for key, value in first.items() if value is not None]


def _is_headed(path: str | Path) -> bool:
    first = next(iter_lines(path), "") if _is_named(path, ".csv") else ""
    return first.strip() != "" and "\t" not in first


def _is_named(path: str | Path, end: str) -> bool:
    name = str(path).lower() if end == ".parquet" else bare_name(path)
    return name.endswith(end)


def is_json(path: str | Path) -> bool:
    """Whether a file is called ``.jsonl`` or ``.json``, compressed or not."""
    return bare_name(path).endswith((".jsonl", ".json"))


def _parquet_rows(path: str | Path, keys: Sequence[str] | None, whole: bool = False) -> Iterator[Row]:
    """Yields rows, a thousand of which are read at a time; without keys, one of the names of the columns alone."""
    import pyarrow
    import pyarrow.parquet

    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            names = table.schema_arrow.names
            if keys is None:
                yield Row(str(path), dict.fromkeys(names))
                return
            missing = [key for key in keys if key not in names]
            if missing:
                raise InputError(f"{path}: no column {missing[0]!r}; the file has: {', '.join(names)}")
            columns = [*dict.fromkeys([*keys, *names])] if whole else [*keys]
            for batch in table.iter_batches(batch_size=1000, columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    yield Row(f"{path}, row {number}", row)
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}, after row {number}: cannot be read as Parquet ({reason})") from error


class Texts(NamedTuple):
    """Which of source, translation and reference a file holds, what reads those that are wanted, how many rows there
    are (None: not known), and whether it names them; of two columns that it does not name, the first may be the source
    or the reference."""

    columns: list[str]
    read: Callable[[Sequence[str]], Iterator[list[str]]]
    count: int | None
    named: bool = True


def open_texts(path: str | Path) -> Texts | None:
    """Opens rows with a translation and what it can be compared with, under `COLUMN_NAMES`; in tab-separated cells
    without a header in the order source, translation, reference. None where there is no row.

    Raises:
        InputError: a column is missing, or there twice, or as `iter_table`.
    """
    keys = table_keys(path)
    if keys is None:
        return _texts_of_cells(path)
    if not keys:
        return None
    found = column_names(path, keys)
    others = found.keys() - {"translation"}
    if "translation" not in found or not others:
        lacks = "translation" if others else "source or reference"
        known = "; ".join(f"{column} ({', '.join(names)})" for column, names in COLUMN_NAMES.items())
        raise InputError(f"{path}: no {lacks}; the first row has {', '.join(keys)}; what is read is {known}")
    count = count_rows(path)
    count = count and count - _is_headed(path)
    return Texts([*found], lambda wanted: iter_table(path, [found[column] for column in wanted]), count)


def _texts_of_cells(path: str | Path) -> Texts | None:
    lines = iter_cells(path)
    _, first = next(lines, (0, None))
    if first is None:
        return None
    places = _header_places(path, first)
    headed, named = places is not None, len(first) == 3
    if places is None:
        if len(first) not in (2, 3):
            wanted = "source TAB translation TAB reference, or source (or reference) TAB translation"
            what = f"{len(first)} column(s), but {wanted} are needed, or a header row that names the columns"
            raise InputError(f"{path}, line 1: {what}")
        places = {"source": 0, "translation": 1, "reference": 2 if named else 0}
        lines = itertools.chain([(1, first)], lines)

    def read(wanted: Sequence[str]) -> Iterator[list[str]]:
        for number, cells in lines:
            if len(cells) != len(first):
                raise InputError(f"{path}, line {number}: {len(cells)} column(s), but line 1 has {len(first)}")
            yield [cells[places[column]] for column in wanted]

    count = count_rows(path)
    return Texts([*places], read, count and count - headed, headed or named)


def column_names(path: str | Path, keys: Sequence[str]) -> dict[str, str]:
    """Which of the `keys` of a table is the source, the translation and the reference (`COLUMN_NAMES`).

    Raises:
        InputError: there are two names of one column.
    """
    found = {}
    for column, names in COLUMN_NAMES.items():
        there = [key for key in keys if key.strip().lower() in names]
        if len(there) > 1:
            raise InputError(f"{path}: {', '.join(map(repr, there))} both name the {column}; leave one out")
        if there:
            found[column] = there[0]
    return found


def _header_places(path: str | Path, first: Sequence[str]) -> dict[str, int] | None:
    """Column -> its place, where the first row of a table is a header; None where it holds no name of a column. Refused
    where it could be a header or texts, since it does not name all that is needed."""
    cells = [cell.strip().lower() for cell in first]
    found = {column: cells.index(name) for column, name in column_names(path, cells).items()}
    if not found or ("translation" in found and len(found) > 1):
        return found or None
    needed = "a header names translation (or mt), and source (src) or reference (ref)"
    text = "where it is a segment, pass parallel files or JSON Lines"
    raise InputError(f"{path}, line 1: {' TAB '.join(first)!r:.80} looks like half a header; {needed}; {text}")


def count_rows(path: str | Path) -> int | None:
    """The number of lines of a regular file, or of rows of a Parquet file; None for pipes and where it cannot be
    read, which reading reports.
    """
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return None
        if _is_named(path, ".parquet"):
            from pyarrow import parquet

            return parquet.read_metadata(path).num_rows
        with open_bytes(path) as stream:
            lines, last = 0, b"\n"
            while block := stream.read(2**20):
                lines, last = lines + block.count(b"\n"), block[-1:]
    except (*UNREADABLE, ValueError):
        return None
    return lines + (last != b"\n")


def read_word_pairs(path: str | Path) -> list[tuple[str, str]]:
    """Reads tab-separated lines, plain or ``.gz``: a word, its translation, and columns that are not read."""
    pairs = []
    for number, (word, translation) in enumerate(iter_table(path, ("word", "translation"), jsonl=False), 1):
        if not word.strip() or not translation.strip():
            raise InputError(f"{path}, line {number}: a word and its translation are needed, one of them is blank")
        pairs.append((word.strip(), translation.strip()))
    if not pairs:
        raise InputError(f"{path}: empty; there are no word pairs")
    return pairs
