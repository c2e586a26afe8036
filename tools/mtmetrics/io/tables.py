"""Rows of a file: cells between tabs or commas, JSON Lines or Parquet, read in one way for all
commands."""

import contextlib
import dataclasses
import functools
import itertools
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mtmetrics.checks import language_pair, warn
from mtmetrics.errors import InputError
from mtmetrics.io.cells import Cells, Dialect, find_dialect, iter_cells
from mtmetrics.io.columns import (
    COLUMN_NAMES,
    FIELDS,
    column_names,
    could_be_names,
    is_header,
    look_like_names,
)
from mtmetrics.io.file_kinds import Layout, bare_name
from mtmetrics.io.lines import UNREADABLE, iter_lines, json_array, json_object, open_bytes, shown

if TYPE_CHECKING:
    import pyarrow.parquet

_LARGEST = sys.float_info.max


class Row(NamedTuple):
    """A row of a file.

    A field, such as ``translation``, is a key of `FIELDS`; a column is the name under which a file
    holds it, such as ``mt``.

    Attributes:
        where: file and number of the row, for messages.
        fields: column -> value.
    """

    where: str
    fields: Mapping[str, Any]

    def name(self, field: str) -> str | None:
        """Returns the column that holds a field, or None where the row lacks the field."""
        for column in FIELDS[field]:
            if column in self.fields:
                return column
        return None

    def null(self, field: str) -> bool:
        """Whether the row has a field, and its value is null."""
        column = self.name(field)
        return column is not None and self.fields[column] is None

    def required(self, field: str) -> str:
        """Returns the column that holds a field.

        Raises:
            InputError: the row lacks the field.
        """
        column = self.name(field)
        if column is None:
            raise self.lacks(FIELDS[field])
        return column

    def lacks(self, columns: tuple[str, ...]) -> InputError:
        """Makes the error for a row that has none of some columns."""
        needed = " or ".join(map(repr, columns))
        present = ", ".join(map(repr, self.fields)) or "no field at all"
        return InputError(f"{self.where}: no field {needed}; the row has: {present}")

    def text(self, column: str) -> str:
        """Returns the string in a column.

        Raises:
            InputError: something else is there. The next two methods do the same.
        """
        value = self.fields[column]
        if not isinstance(value, str):
            raise self._unfit(column, "a string")
        return value

    def label(self, column: str) -> str:
        """Returns the string or whole number in a column, as a string."""
        value = self.fields[column]
        if isinstance(value, int) and is_number(value):
            return str(value)
        return self.text(column)

    def number(self, column: str) -> float:
        """Returns the finite number in a column."""
        value = self.fields[column]
        # Python's JSON reader lets NaN, Infinity and whole numbers through that no float holds.
        if not is_number(value) or not abs(value) <= _LARGEST:
            raise self._unfit(column, "a finite number")
        return float(value)

    def outputs(self, systems: Collection[str] = ()) -> "Row":
        """Returns the object in the field ``outputs``, system -> translation.

        Args:
            systems: the systems that it must have; () for any.

        Raises:
            InputError: there is no such object.
        """
        outputs = self.fields.get("outputs")
        where = f"{self.where}, field 'outputs'"
        if not isinstance(outputs, dict) or (systems and outputs.keys() != set(systems)):
            of_systems = f" of {', '.join(systems)}, as in the first row" if systems else ""
            raise InputError(
                f"{where}: an object, system name -> translation{of_systems}, is needed"
            )
        return Row(where, outputs)

    def checked_pair(self, pair: str) -> str:
        """Returns a language pair of the row.

        Raises:
            InputError: it is no language pair.
        """
        try:
            language_pair(pair)
        except InputError as error:
            raise InputError(f"{self.where}, field 'lp': {error}") from None
        return pair

    def _unfit(self, column: str, needed: str) -> InputError:
        value = shown(self.fields[column])
        return InputError(f"{self.where}, field {column!r}: {needed} is needed, got {value}")


def is_number(value: object) -> bool:
    """Whether a value is a number; JSON's true, which would pass for 1, is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def jsonl_rows(path: str | Path) -> Iterator[Row]:
    """Yields the object in every line that is not blank of a JSON Lines file.

    A file that is called ``.json`` may hold an array of objects instead.

    Raises:
        InputError: a line holds no object, or as `iter_lines`.
    """
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


@dataclasses.dataclass(frozen=True)
class Table:
    """An opened file of rows, which can be read once.

    Attributes:
        path: the file.
        names: of the columns, in their order; of JSON Lines those of the first row that are not
            null.
        is_named: whether the file names them.
        count: number of rows, as far as that is known before they are read.
        schema: the types of the columns, of Parquet.
    """

    path: str | Path
    names: list[str]
    is_named: bool
    count: int | None
    _read: Callable[[Sequence[str] | None], Iterator[Row]]
    schema: "pyarrow.Schema | None" = None

    def rows(self, texts: Sequence[str] = ()) -> Iterator[Row]:
        """Yields the rows with all their columns.

        Args:
            texts: columns that must hold a text.

        Raises:
            InputError: a row lacks such a column or has something else there, or is damaged (with
                file and line).
        """
        return self._checked(self._read(None), texts)

    def texts(self, columns: Sequence[str]) -> Iterator[list[str]]:
        """Yields the texts in some columns; errors as `rows`."""
        for row in self._checked(self._read(columns), columns):
            yield [row.fields[name] for name in columns]

    @staticmethod
    def _checked(rows: Iterable[Row], texts: Sequence[str]) -> Iterator[Row]:
        for row in rows:
            for name in texts:
                if name not in row.fields:
                    raise row.lacks((name,))
                text = row.fields[name]
                if not isinstance(text, str):
                    raise InputError(f"{row.where}: {name!r} must be a string, got {shown(text)}")
                if "\0" in text:
                    raise InputError(
                        f"{row.where}: {name!r} holds a NUL character, which no text does"
                    )
            yield row


def open_table(
    path: str | Path, unnamed: Sequence[str] = ("source", "translation")
) -> Table | None:
    """Opens a file of rows.

    Args:
        path: ``.parquet``, ``.jsonl``, or a table of cells with a header or without; all but
            Parquet may be ``.gz``; ``-`` is standard input, for cells.
        unnamed: names of the first columns of cells without a header; further ones are called
            ``column3`` and so on.

    Returns:
        The table, or None where it has no row.

    Raises:
        InputError: the file is missing, damaged or no table; two of its columns have one name; its
            first line is half a header; or it has no header and fewer than two columns.
    """
    if _is_parquet(path):
        return _table_of_parquet(path)
    if is_json(path):
        return _table_of_objects(path)
    return _table_of_cells(path, unnamed)


def _table_of_parquet(path: str | Path) -> Table:
    schema = _parquet_schema(path)
    return Table(
        path,
        names=schema.names,
        is_named=True,
        count=count_rows(path),
        _read=functools.partial(_parquet_rows, path),
        schema=schema,
    )


def _table_of_objects(path: str | Path) -> Table | None:
    rows = jsonl_rows(path)
    first = next(rows, None)
    if first is None:
        return None
    is_array_possible = bare_name(path).endswith(".json")
    return Table(
        path,
        names=[name for name, value in first.fields.items() if value is not None],
        is_named=True,
        count=None if is_array_possible else count_rows(path),
        _read=lambda _: itertools.chain([first], rows),
    )


def _table_of_cells(path: str | Path, unnamed: Sequence[str]) -> Table | None:
    is_called_table = bare_name(path).endswith((".csv", ".tsv"))
    layout: Layout = "any" if is_called_table else "cells"
    dialect, lines = find_dialect(path, iter_lines(path, layout))
    rows = iter_cells(path, lines, dialect)
    line, first = next(((line, cells) for line, cells in rows if cells), (0, []))
    if not first:
        return None
    count = count_rows(path)
    if dialect is not Dialect.TABS or is_header(path, first):
        header = header_names(path, first)
        return Table(
            path,
            names=header,
            is_named=True,
            count=count - line if count else count,
            _read=lambda _: named_rows(path, header, rows),
        )
    if line > 1 or len(first) < 2:
        raise InputError(f"{path}, line 1: 1 column(s), but {' TAB '.join(unnamed)} are needed")
    names = [*unnamed[: len(first)]]
    names += [f"column{place}" for place in range(len(names) + 1, len(first) + 1)]
    rows_read = [(line, first)]
    if could_be_names(first):
        rows_read += itertools.islice(rows, 1)
        _, following = rows_read[-1]
        if look_like_names(first, following):
            advice = "if it names the columns, call them source and translation (or reference)"
            warn(f"{path}, line 1: {' TAB '.join(first)!r} is read as texts; {advice}")
    return Table(
        path,
        names=names,
        is_named=False,
        count=count,
        _read=lambda _: _unnamed_rows(path, names, rows_read, rows),
    )


def header_names(path: str | Path, cells: Sequence[str]) -> list[str]:
    """Returns the names in a header; a column without a name is called by its place, such as
    ``column3``.

    Raises:
        InputError: two columns have the same name.
    """
    names = [cell.strip() or f"column{place}" for place, cell in enumerate(cells, 1)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{path}, line 1: the column {twice[0]!r} stands there twice")
    return names


def named_rows(path: str | Path, header: Sequence[str], cells: Iterable[Cells]) -> Iterator[Row]:
    """Yields the rows below a header, of `iter_cells`; blank lines are left out.

    Raises:
        InputError: a row has more or fewer cells than the header; or a line is blank where a row is
            a single cell.
    """
    for line, values in cells:
        if not values and len(header) > 1:
            continue
        where = f"{path}, line {line}"
        if len(values) != len(header):
            raise InputError(
                f"{where}: {len(values)} field(s), but the header has {len(header)}: "
                f"{', '.join(header)}"
            )
        yield Row(where, dict(zip(header, values, strict=True)))


def _unnamed_rows(
    path: str | Path, names: Sequence[str], rows_read: list[Cells], following: Iterator[Cells]
) -> Iterator[Row]:
    """Yields the rows of a table without a header, each with as many cells as the first one.

    Args:
        path: the file.
        names: of the columns.
        rows_read: the rows that were read already; emptied, so that no row stays in memory.
        following: the other rows.
    """
    while row := rows_read.pop(0) if rows_read else next(following, None):
        line, cells = row
        if len(cells) != len(names):
            count = max(1, len(cells))
            raise InputError(f"{path}, line {line}: {count} column(s), but line 1 has {len(names)}")
        yield Row(f"{path}, line {line}", dict(zip(names, cells, strict=True)))


def _is_parquet(path: str | Path) -> bool:
    return str(path).lower().endswith(".parquet")


def is_json(path: str | Path) -> bool:
    """Whether a file is called ``.jsonl`` or ``.json``, compressed or not."""
    return bare_name(path).endswith((".jsonl", ".json"))


@contextlib.contextmanager
def _opened_parquet(path: str | Path) -> "Iterator[pyarrow.parquet.ParquetFile]":
    import pyarrow
    import pyarrow.parquet

    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        raise InputError(
            f"{path}: cannot be read as Parquet ({str(error).splitlines()[0]})"
        ) from error


def _parquet_schema(path: str | Path) -> "pyarrow.Schema":
    with _opened_parquet(path) as file:
        schema = file.schema_arrow.remove_metadata()
    twice = [name for name in schema.names if schema.names.count(name) > 1]
    if twice:
        raise InputError(f"{path}: the column {twice[0]!r} stands there twice")
    return schema


def _parquet_rows(path: str | Path, columns: Sequence[str] | None) -> Iterator[Row]:
    """Yields rows with some columns, or all; a thousand of them are read at a time."""
    number = 0
    with _opened_parquet(path) as file:
        missing = [name for name in columns or () if name not in file.schema_arrow.names]
        if missing:
            raise InputError(
                f"{path}: no column {missing[0]!r}; the file has: "
                f"{', '.join(file.schema_arrow.names)}"
            )
        for batch in file.iter_batches(batch_size=1000, columns=columns and list(columns)):
            for row in batch.to_pylist():
                number += 1
                yield Row(f"{path}, row {number}", row)


@dataclasses.dataclass(frozen=True)
class Texts:
    """Texts of a file of rows.

    Attributes:
        columns: which of source, translation and reference the file has.
        read: yields the texts of some of these columns.
        count: number of rows; None where it is not known.
        is_decided: whether the file tells the columns apart: of two columns without names, the
            first may be the source or the reference.
    """

    columns: list[str]
    read: Callable[[Sequence[str]], Iterator[list[str]]]
    count: int | None
    is_decided: bool


def open_texts(path: str | Path) -> Texts | None:
    """Opens rows with a translation and the texts that it can be compared with, under
    `COLUMN_NAMES`.

    Cells without a header stand in the order source, translation, reference.

    Returns:
        The texts, or None where there is no row.

    Raises:
        InputError: a column is missing, or there twice, or as `open_table`.
    """
    table = open_table(path, ("source", "translation", "reference"))
    if table is None:
        return None
    if table.is_named:
        required_texts(table, [("translation",), ("source", "reference")])
        names = column_names(path, table.names)
    else:
        names = _names_by_place(table)

    def read(columns: Sequence[str]) -> Iterator[list[str]]:
        return table.texts([names[column] for column in columns])

    is_decided = table.is_named or len(table.names) == 3
    return Texts(list(names), read, table.count, is_decided)


def _names_by_place(table: Table) -> dict[str, str]:
    """Returns text -> column of cells without a header."""
    names = {"source": "source", "translation": "translation"}
    if len(table.names) == 2:
        return names | {"reference": "source"}
    if len(table.names) == 3:
        return names | {"reference": "reference"}
    raise InputError(
        f"{table.path}, line 1: {len(table.names)} column(s), but source TAB translation TAB "
        "reference, or source (or reference) TAB translation are needed, or a header row that "
        "names the columns"
    )


def required_texts(table: Table, needed: Sequence[Sequence[str]]) -> list[str]:
    """Finds the texts that a command reads in a table whose columns have names.

    Args:
        table: the table.
        needed: for each text the fields of `COLUMN_NAMES` that can be it, the preferred one first.

    Returns:
        The name of the column of each text.

    Raises:
        InputError: none of the fields of a text is there, or a field is there under two names.
    """
    names = column_names(table.path, table.names)
    required = []
    for fields in needed:
        columns = [names[field] for field in fields if field in names]
        if not columns:
            readable = "; ".join(
                f"{field} ({', '.join(synonyms)})" for field, synonyms in COLUMN_NAMES.items()
            )
            raise InputError(
                f"{table.path}: no {' or '.join(fields)}; the first row has "
                f"{', '.join(table.names)}; what is read is {readable}"
            )
        required.append(columns[0])
    return required


def count_rows(path: str | Path) -> int | None:
    """Counts the lines of a regular file, or the rows of a Parquet file.

    Returns:
        The number; None for pipes, and for files that cannot be read, which reading reports.
    """
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return None
        if _is_parquet(path):
            from pyarrow import parquet

            rows: int = parquet.read_metadata(path).num_rows
            return rows
        line_ends = 0
        last = b"\n"
        with open_bytes(path) as stream:
            while block := stream.read(2**20):
                line_ends += block.count(b"\n")
                last = block[-1:]
    except (*UNREADABLE, ValueError):
        return None
    return line_ends if last == b"\n" else line_ends + 1


def word_rows(path: str | Path) -> Iterator[Row]:
    """Yields the rows of a list of words: ``source``, ``target`` and, where a line has a third
    cell, ``origin``.

    Lines may have further cells. A header that names source and translation says where they stand.

    Raises:
        InputError: a line has one cell, or as `iter_lines`.
    """
    names = ["source", "target", "origin"]
    for number, cells in iter_cells(path, iter_lines(path), Dialect.TABS):
        where = f"{path}, line {number}"
        if len(cells) < 2:
            raise InputError(f"{where}: 1 column(s), but word TAB translation are needed")
        fields = column_names(path, cells) if number == 1 else {}
        if {"source", "translation"} <= fields.keys():
            renamed = {fields["source"]: "source", fields["translation"]: "target"}
            names = [renamed.get(cell, cell.strip().lower()) for cell in cells]
            continue
        yield Row(where, dict(zip(names, cells, strict=False)))


def read_word_pairs(path: str | Path) -> list[tuple[str, str]]:
    """Reads a list of words as pairs of a word and its translation; see `word_rows`."""
    pairs = []
    for where, fields in word_rows(path):
        word = fields["source"].strip()
        translation = fields.get("target", "").strip()
        if not word or not translation:
            raise InputError(
                f"{where}: a word and its translation are needed, one of them is blank"
            )
        pairs.append((word, translation))
    if not pairs:
        raise InputError(f"{path}: empty; there are no word pairs")
    return pairs
