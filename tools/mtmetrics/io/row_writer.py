"""Rows out: cells between tabs or commas, JSON Lines or Parquet, for all commands.

A writer knows the names and types of all columns before it writes the first row. `Columns` refuses
values that a format cannot hold; a command fills it before its work."""

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

_ROWS_AT_ONCE = 10_000
_MEND = "write .jsonl or .parquet"


class Columns:
    """Columns of rows that will be written: their names, in the order in which they come first,
    and for Parquet their types.

    Args:
        form: ``tsv``, ``csv``, ``jsonl`` or ``parquet``.
        names: names of columns that come first, whether or not rows have them.
        schema: types for Parquet of columns whose type need not be inferred.
    """

    def __init__(
        self, form: str, names: Iterable[str] = (), schema: "pyarrow.Schema | None" = None
    ) -> None:
        self.form = form
        self._schema = schema
        self._types: dict[str, ValueType] = {}
        for name in names:
            self._add_name(name, "")

    @property
    def names(self) -> list[str]:
        """The names, in their order."""
        return list(self._types)

    def add(self, row: Row) -> None:
        """Takes a row into account.

        Raises:
            InputError: the format cannot hold a value, with the file and row where it stands.
        """
        for name, value in row.fields.items():
            if name not in self._types:
                self._add_name(name, f"{row.where}: ")
            if self.form == "jsonl":
                _check_json(value, row, name)
            elif self.form != "parquet":
                _check_cell(self.form, cell_text(value), f"{row.where}, column {name!r}: ")
            elif self._schema is None or name not in self._schema.names:
                self._types[name].add(value, row.where, name)

    def add_numbers(self, names: Iterable[str]) -> None:
        """Adds columns of numbers with a fraction."""
        for name in names:
            self._add_name(name, "")
            self._types[name].add(0.0, "", name)

    def check(self, values: Mapping[str, object], subject: str) -> None:
        """Refuses values of future rows that the format cannot hold.

        Args:
            values: column -> value.
            subject: name of the values in the message.
        """
        self.add(Row(subject, values))

    def check_types(self) -> None:
        """Refuses columns that Parquet has no type for, where it is written; see `schema`."""
        if self.form == "parquet":
            self.schema()

    def schema(self) -> "pyarrow.Schema":
        """Returns names and types for Parquet.

        Raises:
            InputError: Parquet has no type for a column.
        """
        import pyarrow

        fields = []
        for name, kind in self._types.items():
            if self._schema is not None and name in self._schema.names:
                fields.append(self._schema.field(name))
            else:
                fields.append(pyarrow.field(name, kind.arrow(name)))
        return pyarrow.schema(fields)

    def _add_name(self, name: str, where: str) -> None:
        if self.form in ("tsv", "csv"):
            if not name.strip():
                raise InputError(
                    f"{where}a column has no name, which {self.form.upper()} needs; {_MEND}"
                )
            _check_cell(self.form, name, f"{where}the name of a column: ")
        self._types[name] = ValueType()


def _check_cell(form: str, text: str, place: str) -> None:
    if "\0" in text:
        raise InputError(f"{place}{text[:60]!r} holds a NUL character, which no text does")
    if form == "tsv" and ("\t" in text or "\n" in text):
        raise InputError(
            f"{place}{text[:60]!r} holds a tab or a line break, which TSV cannot; {_MEND}"
        )


def _check_json(value: object, row: Row, name: str) -> None:
    if isinstance(value, list):
        for item in value:
            _check_json(item, row, name)
    elif isinstance(value, dict):
        for item in value.values():
            _check_json(item, row, name)
    elif value is not None and not isinstance(value, str | int | float):
        kind = type(value).__name__
        raise InputError(
            f"{row.where}, column {name!r}: JSON has no {kind} ({shown_json(value)}); write .parquet"
        )


def cell_text(value: object) -> str:
    """Writes a value as a cell: None as an empty one; true, false, lists and objects as in JSON."""
    if value is None:
        return ""
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


class RowWriter:
    """Writes rows to an open stream, as they arrive.

    Args:
        stream: a stream of bytes for Parquet, else of text.
        columns: the columns of all rows. Cells and Parquet have each of them in every row, empty
            where a row lacks it.
        header: whether the first line of a table of cells holds the names.
    """

    def __init__(self, stream: IO[Any], columns: Columns, *, header: bool = True) -> None:
        self._stream = stream
        self._columns = columns
        self._form = columns.form
        self._parquet: Any = None
        if self._form == "parquet":
            from pyarrow import parquet

            self._parquet = parquet.ParquetWriter(stream, columns.schema())
        elif self._form != "jsonl" and header:
            self._write_cells(columns.names)

    def write(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Writes rows.

        Raises:
            InputError: a cell holds what TSV cannot.
        """
        if self._form == "parquet":
            self._write_parquet(iter(rows))
        elif self._form == "jsonl":
            self._stream.writelines(map(json_line, rows))
        else:
            for row in rows:
                self._write_cells([cell_text(row.get(name)) for name in self._columns.names])

    def describe(self, key: str, text: str) -> None:
        """Adds to the metadata of a Parquet file."""
        self._parquet.add_key_value_metadata({key: text})

    def close(self) -> None:
        """Ends a Parquet file; the stream stays open."""
        if self._parquet is not None:
            self._parquet.close()

    def _write_cells(self, cells: Sequence[str]) -> None:
        for cell in cells:
            _check_cell(self._form, cell, "")
        line = join_tabs(cells) if self._form == "tsv" else join_commas(cells)
        self._stream.write(line + "\n")

    def _write_parquet(self, rows: Iterator[Mapping[str, object]]) -> None:
        import pyarrow

        while block := list(itertools.islice(rows, _ROWS_AT_ONCE)):
            self._parquet.write_table(pyarrow.Table.from_pylist(block, schema=self._parquet.schema))


def write_rows(path: str | Path, rows: Iterable[Mapping[str, object]], form: str = "jsonl") -> None:
    """Writes rows to a file of text, compressed where its name ends in .gz, that appears when all
    are written."""
    columns = Columns(form)
    if form != "jsonl":
        rows = list(rows)
        for number, row in enumerate(rows, 1):
            columns.add(Row(f"{path}, row {number}", row))
    with atomic_text(path) as stream:
        RowWriter(stream, columns).write(rows)
