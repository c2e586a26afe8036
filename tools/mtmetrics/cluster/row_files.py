"""Rows of Parquet and JSON Lines files, in blocks, on any file system that pyarrow reaches.

`list_files` finds the files, `read_schema` their columns. A `Reader` runs on the cluster and reads
one file. Rows that do not fit the columns are bad rows: errors, or entries of a list.
"""

import contextlib
import dataclasses
import io
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mtmetrics.checks import warn
from mtmetrics.errors import InputError
from mtmetrics.io.lines import JsonObject, parse_json_object, shown_json

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.fs

ENDS = (".parquet", ".jsonl", ".jsonl.gz")


def resolve(path: str) -> "tuple[pyarrow.fs.FileSystem, str]":
    """Returns the file system of a path or URI, and the path in it."""
    import pyarrow
    from pyarrow import fs

    if "://" not in path:
        return fs.LocalFileSystem(), absolute(path)
    try:
        return fs.FileSystem.from_uri(path)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be reached ({str(error).splitlines()[0]})") from error


def absolute(path: str) -> str:
    """Returns the path from the root; a URI as it is."""
    return path if "://" in path else os.path.abspath(os.path.expanduser(path))


def list_files(path: str) -> list[tuple[str, int]]:
    """Lists the files of a folder in the order of their names, or the file itself, with their sizes.

    Names that begin with _ or a dot are left out.

    Raises:
        InputError: there is no file that can be read.
    """
    from pyarrow import fs

    system, inner = resolve(path)
    info = system.get_file_info(inner)
    if info.type == fs.FileType.NotFound:
        raise InputError(f"{path}: no such file or folder")
    root = path[: len(path) - len(inner)] if "://" in path else ""
    if info.type == fs.FileType.File:
        if not inner.endswith(ENDS):
            raise InputError(f"{path}: ends in none of {', '.join(ENDS)}, which --engine ray reads")
        return [(root + inner, info.size)]
    readable_files = []
    unreadable_names = []
    for info in system.get_file_info(fs.FileSelector(inner, recursive=True)):
        parts = info.path[len(inner) :].split("/")
        if not info.is_file or any(part.startswith(("_", ".")) for part in parts):
            continue
        if info.path.endswith(ENDS):
            readable_files.append((root + info.path, info.size))
        else:
            unreadable_names.append(info.base_name)
    if not readable_files:
        raise InputError(f"{path}: holds no file that ends in {', '.join(ENDS)}")
    if unreadable_names:
        warn(
            f"{path}: {len(unreadable_names)} file(s) that end in none of {', '.join(ENDS)} are "
            f"left out, such as {unreadable_names[0]}"
        )
    return sorted(readable_files)


def read_schema(path: str, texts: Sequence[str], count: int) -> "pyarrow.Schema":
    """Reads the columns of a file.

    Args:
        path: the file.
        texts: columns that must be there, and hold strings.
        count: rows of JSON Lines that are read to find the columns.

    Raises:
        InputError: a column of `texts` is missing, there is one of a name that the engine adds, or
            the file cannot be read.
    """
    import pyarrow
    from pyarrow import parquet

    system, inner = resolve(path)
    with readable(path):
        if path.endswith(".parquet"):
            with system.open_input_file(inner) as stream:
                schema = parquet.read_schema(stream).remove_metadata()
        else:
            first_rows = itertools.islice(_json_rows(path), count)
            rows = [row for _, row in first_rows if isinstance(row, dict)]
            # Columns of `texts` hold strings, whatever the rows hold.
            strings = {name: "" for name in texts if any(name in row for row in rows)}
            schema = _consistent_schema([strings | row | strings for row in rows])
    # A column of nulls has no type of its own, and would not fit beside that of another block.
    fields = [
        pyarrow.field(field.name, pyarrow.string()) if field.type == pyarrow.null() else field
        for field in schema
    ]
    schema = pyarrow.schema(fields)
    missing = [name for name in texts if name not in schema.names]
    if missing:
        raise InputError(
            f"{path}: no column {missing[0]!r}; the file has: {', '.join(schema.names) or 'none'}"
        )
    reserved = [name for name in ("file", "segment") if name in schema.names]
    if reserved:
        raise InputError(
            f"{path}: the engine adds a column {reserved[0]!r}, and there is one; rename it"
        )
    return schema


def _consistent_schema(rows: list[JsonObject]) -> "pyarrow.Schema":
    """Finds the columns of the first rows, as many rows as do not contradict each other; the rows
    behind them are bad rows then."""
    import pyarrow

    try:
        return pyarrow.Table.from_pylist(rows).schema
    except (pyarrow.ArrowException, UnicodeError, OverflowError):
        if len(rows) == 1:
            raise
        return _consistent_schema(rows[: len(rows) // 2])


@contextlib.contextmanager
def readable(path: str) -> Iterator[None]:
    """Turns errors of reading a file into an InputError."""
    import pyarrow

    try:
        yield
    except (OSError, EOFError, UnicodeError, OverflowError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from error


def _json_rows(path: str) -> Iterator[tuple[str, JsonObject | str]]:
    """Yields the place of each row, for messages, and its values, or the message of an error."""
    system, inner = resolve(path)
    with system.open_input_stream(inner) as stream, io.BufferedReader(stream) as lines:
        for number, raw in enumerate(lines, 1):
            where = f"{path}, line {number}"
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                if text.strip():
                    yield where, parse_json_object(text, where)
            except UnicodeDecodeError as error:
                yield where, f"{where}: byte {error.start + 1} is not valid UTF-8"
            except InputError as error:
                yield where, str(error)


@dataclasses.dataclass(frozen=True)
class Reader:
    """Reads a file in blocks, without blocks that are finished.

    Attributes:
        schema: columns of all files.
        texts: columns that must hold strings.
        block_rows: rows of a block.
        keep_errors: list bad rows; else the first one is an error.
    """

    schema: "pyarrow.Schema"
    texts: tuple[str, ...]
    block_rows: int
    keep_errors: bool

    def read(self, row: Mapping[str, str]) -> Iterator[JsonObject]:
        """Yields the blocks of a file that are not finished. An empty file has one empty block.

        Args:
            row: its ``item`` is JSON with the ``path`` of the file, its ``index`` among the files,
                and ``done``, the first rows of finished blocks.

        Yields:
            The path, the summary of the block, its table as bytes (which Ray cannot join or split),
            and its bad rows.
        """
        item = json.loads(row["item"])
        path = item["path"]
        with readable(path):
            rows = self._parquet_rows(path) if path.endswith(".parquet") else _json_rows(path)
            first = 0
            following = list(itertools.islice(rows, self.block_rows))
            is_last = False
            while not is_last:
                block = following
                following = list(itertools.islice(rows, self.block_rows))
                is_last = not following
                if first not in item["done"]:
                    table, bad = self._table(path, first, block)
                    summary = {
                        "file": item["index"],
                        "first": first,
                        "rows": len(block),
                        "bad": len(bad),
                        "last": is_last,
                    }
                    yield {
                        "path": path,
                        "block": json.dumps(summary),
                        "table": _table_bytes(table),
                        "bad": json.dumps(bad),
                    }
                first += len(block)

    def _parquet_rows(self, path: str) -> Iterator[tuple[str, JsonObject]]:
        """Yields the place of each row, for messages, and its values."""
        from pyarrow import parquet

        system, inner = resolve(path)
        number = 0
        with system.open_input_file(inner) as stream:
            file = parquet.ParquetFile(stream)
            names = file.schema_arrow.names
            if names != self.schema.names:
                raise InputError(
                    f"{path}: has the columns {', '.join(names)}, the first file "
                    f"{', '.join(self.schema.names)}"
                )
            for batch in file.iter_batches(batch_size=1000):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row

    def _table(
        self, path: str, first: int, block: Sequence[tuple[str, JsonObject | str]]
    ) -> "tuple[pyarrow.Table, list[JsonObject]]":
        """Returns the good rows of a block, with the columns ``file`` and ``segment``; and file,
        segment and error of each bad row.

        Raises:
            InputError: there is a bad row, and `keep_errors` is not set.
        """
        import pyarrow

        good, bad = [], []
        for segment, (where, row) in enumerate(block, first + 1):
            place: JsonObject = {"file": path, "segment": segment}
            error = row if isinstance(row, str) else self._misfit(row, where)
            if error is None:
                good.append(row | place)
            elif self.keep_errors:
                bad.append(place | {"error": error})
            else:
                raise InputError(error)
        places = [("file", pyarrow.string()), ("segment", pyarrow.int64())]
        schema = pyarrow.schema([*self.schema, *places])
        return pyarrow.Table.from_pylist(good, schema), bad

    def _misfit(self, row: JsonObject, where: str) -> str | None:
        """Says why values cannot be a row of the table; None if they can."""
        import pyarrow

        for name in self.texts:
            if not isinstance(row.get(name), str):
                return f"{where}: {name!r} must be a string, got {shown_json(row.get(name))}"
        for name, value in row.items():
            if name not in self.schema.names:
                return f"{where}: has a key {name!r}, which the first rows of the input do not have"
            kind = self.schema.field(name).type
            try:
                pyarrow.scalar(value, kind)
            except (pyarrow.ArrowException, UnicodeError, OverflowError, TypeError, ValueError):
                return (
                    f"{where}: {name!r} cannot be of type {kind} as in the first rows: "
                    f"{shown_json(value)}"
                )
        return None


def _table_bytes(table: "pyarrow.Table") -> bytes:
    import pyarrow

    stream = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue().to_pybytes()
