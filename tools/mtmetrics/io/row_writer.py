"""Writes rows as TSV, CSV, JSON Lines or Parquet.

A `RowWriter` needs the names and types of all columns before it writes the first row. A command
fills a `Columns` with them before it starts to compute, so that a value that the format cannot hold
is refused early."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mtmetrics.errors import InputError
from mtmetrics.io.atomic import atomic_text
from mtmetrics.io.cells import join_commas, join_tabs
from mtmetrics.io.lines import json_line, shown_json
from mtmetrics.io.tables import Row
from mtmetrics.io.value_types import ValueType

if TYPE_CHECKING:
    import pyarrow

_PARQUET_BATCH = 10_000  # rows
_ADVICE = "write .jsonl or .parquet"


class Columns:
    """Names and Parquet types of the columns of rows that will be written. Columns stand in the
    order of their first appearance.

    Args:
        file_format: ``tsv``, ``csv``, ``jsonl`` or ``parquet``.
        names: the first columns, which are written even if no row has them (but not in JSON
            Lines, whose rows name their own columns).
        known_types: Parquet types of some columns. The types of the others are inferred.
    """

    def __init__(
        self,
        file_format: str,
        names: Iterable[str] = (),
        known_types: "pyarrow.Schema | None" = None,
    ) -> None:
        self.file_format = file_format
        self._known_fields = {field.name: field for field in known_types or ()}
        self._types: dict[str, ValueType] = {}
        for name in names:
            self._add_name(name, "")

    @property
    def names(self) -> list[str]:
        """The names, in their order."""
        return list(self._types)

    def add_row(self, row: Row) -> None:
        """Adds the columns of a row and the types of its values.

        Raises:
            InputError: the format cannot hold a value; the message names the row.
        """
        for name, value in row.values.items():
            if name not in self._types:
                self._add_name(name, f"{row.where}: ")
            if self.file_format == "jsonl":
                _check_json(value, f"{row.where}, column {name!r}")
            elif self.file_format != "parquet":
                _check_cell(self.file_format, cell_text(value), f"{row.where}, column {name!r}: ")
            elif name not in self._known_fields:
                self._types[name].add(value, row.where, name)

    def add_floats(self, names: Iterable[str]) -> None:
        """Adds columns of floats. A column that is there already gets this type instead."""
        for name in names:
            self._add_name(name, "")
            self._types[name].add(0.0, "", name)

    def check_types(self) -> None:
        """Refuses columns without a type in Parquet, if that is the format; see `schema`."""
        if self.file_format == "parquet":
            self.schema()

    def schema(self) -> "pyarrow.Schema":
        """Returns the Arrow schema of all columns.

        Raises:
            InputError: Parquet has no type for a column.
        """
        import pyarrow

        fields = []
        for name, value_type in self._types.items():
            if name in self._known_fields:
                fields.append(self._known_fields[name])
            else:
                fields.append(pyarrow.field(name, value_type.arrow(name)))
        return pyarrow.schema(fields)

    def _add_name(self, name: str, where: str) -> None:
        if self.file_format in ("tsv", "csv"):
            if not name.strip():
                raise InputError(
                    f"{where}a column has no name, which {self.file_format.upper()} needs; {_ADVICE}"
                )
            _check_cell(self.file_format, name, f"{where}the name of a column: ")
        self._types[name] = ValueType()


def _check_cell(file_format: str, text: str, where: str) -> None:
    """Refuses a text that a cell cannot hold. The message begins with `where`."""
    if "\0" in text:
        raise InputError(f"{where}{text[:60]!r} holds a NUL character, which no text does")
    if file_format == "tsv" and ("\t" in text or "\n" in text):
        raise InputError(
            f"{where}{text[:60]!r} holds a tab or a line break, which TSV cannot hold; {_ADVICE}"
        )


def _check_json(value: object, where: str) -> None:
    """Refuses a value that JSON cannot hold. The message begins with `where`."""
    if isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            _check_json(item, where)
    elif value is not None and not isinstance(value, str | int | float):
        raise InputError(
            f"{where}: JSON has no {type(value).__name__} ({shown_json(value)}); write .parquet"
        )


def cell_text(value: object) -> str:
    """Returns the text of a cell for a value: an empty text for None; JSON for a bool, a list or a
    dict. Values that JSON lacks, such as dates in Parquet, become their ``str`` in it."""
    if value is None:
        return ""
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


class RowWriter:
    """Writes rows to an open stream, as they arrive.

    Args:
        stream: a stream of bytes for Parquet, else of text.
        columns: the columns of all rows. TSV, CSV and Parquet have all of them in every row; a
            value that a row lacks is empty.
        with_header: whether the first line of a TSV or CSV file holds the names.
    """

    def __init__(self, stream: IO[Any], columns: Columns, *, with_header: bool = True) -> None:
        self._stream = stream
        self._columns = columns
        self._format = columns.file_format
        self._parquet: Any = None
        if self._format == "parquet":
            from pyarrow import parquet

            self._parquet = parquet.ParquetWriter(stream, columns.schema())
        elif self._format != "jsonl" and with_header:
            self._write_cells(columns.names)

    def write(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Writes rows. `Columns.add_row` has refused what the format cannot hold."""
        if self._format == "parquet":
            self._write_parquet(iter(rows))
        elif self._format == "jsonl":
            self._stream.writelines(map(json_line, rows))
        else:
            for row in rows:
                self._write_cells([cell_text(row.get(name)) for name in self._columns.names])

    def add_metadata(self, key: str, value: str) -> None:
        """Adds an entry to the metadata of a Parquet file. Must not be called for other formats,
        which have no metadata."""
        self._parquet.add_key_value_metadata({key: value})

    def close(self) -> None:
        """Finishes a Parquet file. The stream stays open."""
        if self._parquet is not None:
            self._parquet.close()

    def _write_cells(self, cells: Sequence[str]) -> None:
        line = join_tabs(cells) if self._format == "tsv" else join_commas(cells)
        self._stream.write(line + "\n")

    def _write_parquet(self, rows: Iterator[Mapping[str, object]]) -> None:
        import pyarrow

        while batch := list(itertools.islice(rows, _PARQUET_BATCH)):
            self._parquet.write_table(pyarrow.Table.from_pylist(batch, schema=self._parquet.schema))


def write_rows(
    path: str | Path, rows: Iterable[Mapping[str, object]], file_format: str = "jsonl"
) -> None:
    """Writes rows to a text file with `mtmetrics.io.atomic.atomic_text`.

    Args:
        path: the file. It is compressed if its name ends in ``.gz``.
        rows: column -> value for each row.
        file_format: ``tsv``, ``csv`` or ``jsonl``.
    """
    columns = Columns(file_format)
    if file_format != "jsonl":
        rows = list(rows)  # all columns must be known before the first row is written
        for number, row in enumerate(rows, 1):
            columns.add_row(Row(f"{path}, row {number}", row))
    with atomic_text(path) as stream:
        RowWriter(stream, columns).write(rows)
