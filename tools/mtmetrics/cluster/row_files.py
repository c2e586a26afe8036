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
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

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
        message = (
            f"{path}: {len(unreadable_names)} file(s) that end in none of {', '.join(ENDS)} are "
            f"left out, such as {unreadable_names[0]}"
        )
        warnings.warn(message, UserWarning, stacklevel=4)
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


class Block(NamedTuple):
    """Some rows of a file.

    Attributes:
        first: number of the first row in the file, from 0.
        rows: how many there are.
        table: the good rows, with the columns ``file`` and ``segment``.
        bad: file, segment and error of each bad row.
    """

    first: int
    rows: int
    table: "pyarrow.Table"
    bad: list[JsonObject]


class _RawBlock(NamedTuple):
    """Some rows of a file, before their texts are checked.

    Attributes:
        first: number of the first row in the file, from 0.
        places: of all rows, for messages.
        table: rows that could be read.
        numbers: of these rows, from 0, in the block.
        errors: number of a row that could not be read -> message.
    """

    first: int
    places: list[str]
    table: "pyarrow.Table"
    numbers: list[int]
    errors: dict[int, str]


def _json_rows(path: str) -> Iterator[tuple[str, JsonObject | str]]:
    """Yields the place of each row of JSON Lines, and its object, or the message of an error."""
    system, inner = resolve(path)
    with system.open_input_stream(inner) as stream, io.BufferedReader(stream) as lines:
        for number, raw in enumerate(lines, 1):
            place = f"line {number}"
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                if text.strip():
                    yield place, parse_json_object(text, f"{path}, {place}")
            except UnicodeDecodeError as error:
                yield place, f"{path}, {place}: byte {error.start + 1} is not valid UTF-8"
            except InputError as error:
                yield place, str(error)


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
        """Yields the blocks of a file that are not finished.

        Args:
            row: its ``item`` is JSON with the ``path`` of the file, its ``index`` among the files,
                and ``done``, the first rows of finished blocks.

        Yields:
            The path, the summary of the block, its table as bytes (which Ray cannot join or split),
            and its bad rows.
        """
        item = json.loads(row["item"])
        path, done = item["path"], set(item["done"])
        with readable(path):
            blocks = self._blocks(path, done)
            block = next(blocks, None) or Block(0, 0, self.schema.empty_table(), [])
            while block is not None:
                following = next(blocks, None)
                if block.first not in done:
                    summary = {
                        "file": item["index"],
                        "first": block.first,
                        "rows": block.rows,
                        "bad": len(block.bad),
                        "last": following is None,
                    }
                    yield {
                        "path": path,
                        "block": json.dumps(summary),
                        "table": _table_bytes(block.table),
                        "bad": json.dumps(block.bad),
                    }
                block = following

    def _blocks(self, path: str, done: set[int]) -> Iterator[Block]:
        """Yields all blocks of a file, finished ones without their rows."""
        read = self._parquet if path.endswith(".parquet") else self._json
        for block in read(path, done):
            yield block if isinstance(block, Block) else self._checked(path, block)

    def _finished(self, first: int, rows: int) -> Block:
        return Block(first, rows, self.schema.empty_table(), [])

    def _parquet(self, path: str, done: set[int]) -> Iterator[Block | _RawBlock]:
        import pyarrow
        from pyarrow import parquet

        system, inner = resolve(path)
        first = 0
        with system.open_input_file(inner) as stream:
            file = parquet.ParquetFile(stream)
            names = file.schema_arrow.names
            if names != self.schema.names:
                raise InputError(
                    f"{path}: has the columns {', '.join(names)}, the first file "
                    f"{', '.join(self.schema.names)}"
                )
            for batch in file.iter_batches(self.block_rows):
                if first in done:
                    yield self._finished(first, len(batch))
                else:
                    places = [f"row {first + number}" for number in range(1, len(batch) + 1)]
                    table = pyarrow.Table.from_batches([batch]).cast(self.schema)
                    yield _RawBlock(first, places, table, list(range(len(batch))), {})
                first += len(batch)

    def _json(self, path: str, done: set[int]) -> Iterator[Block | _RawBlock]:
        import pyarrow

        rows = _json_rows(path)
        first = 0
        while batch := list(itertools.islice(rows, self.block_rows)):
            if first in done:
                yield self._finished(first, len(batch))
            else:
                objects: dict[int, JsonObject] = {}
                errors: dict[int, str] = {}
                for number, (place, row) in enumerate(batch):
                    if isinstance(row, str):
                        errors[number] = row
                    elif reason := self._misfit(row):
                        errors[number] = f"{path}, {place}: {reason}"
                    else:
                        objects[number] = row
                table = pyarrow.Table.from_pylist(list(objects.values()), self.schema)
                places = [place for place, _ in batch]
                yield _RawBlock(first, places, table, list(objects), errors)
            first += len(batch)

    def _misfit(self, row: JsonObject) -> str | None:
        """Says why an object cannot be a row of the table; None where it can."""
        import pyarrow

        for name in self.texts:
            if not isinstance(row.get(name), str):
                return f"{name!r} must be a string, got {shown_json(row.get(name))}"
        unknown = [name for name in row if name not in self.schema.names]
        if unknown:
            return f"has a key {unknown[0]!r}, which the first rows of the input do not have"
        for name, value in row.items():
            kind = self.schema.field(name).type
            try:
                pyarrow.scalar(value, kind)
            except (pyarrow.ArrowException, UnicodeError, OverflowError, TypeError, ValueError):
                return (
                    f"{name!r} cannot be of type {kind} as in the first rows: {shown_json(value)}"
                )
        return None

    def _checked(self, path: str, block: _RawBlock) -> Block:
        """Takes out the rows that do not hold strings where they must, and adds the columns
        ``file`` and ``segment``."""
        import pyarrow

        errors = dict(block.errors)
        for name in self.texts:
            for number, value in zip(block.numbers, block.table[name], strict=True):
                reason = _text_error(value)
                if reason:
                    place = f"{path}, {block.places[number]}"
                    errors.setdefault(number, f"{place}: {name!r} {reason}")
        if errors and not self.keep_errors:
            raise InputError(errors[min(errors)])
        good = [row for row, number in enumerate(block.numbers) if number not in errors]
        files = [path] * len(good)
        segments = [block.first + block.numbers[row] + 1 for row in good]
        table = block.table.take(pyarrow.array(good, pyarrow.int64()))
        table = table.append_column("file", pyarrow.array(files, pyarrow.string()))
        table = table.append_column("segment", pyarrow.array(segments, pyarrow.int64()))
        bad = [
            {"file": path, "segment": block.first + number + 1, "error": errors[number]}
            for number in sorted(errors)
        ]
        return Block(block.first, len(block.places), table, bad)


def _text_error(value: "pyarrow.Scalar") -> str | None:
    """Says why a value is no text; None where it is one."""
    try:
        text = value.as_py()
    except UnicodeDecodeError:
        return "is not valid UTF-8"
    return None if isinstance(text, str) else f"must be a string, got {shown_json(text)}"


def _table_bytes(table: "pyarrow.Table") -> bytes:
    import pyarrow

    stream = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue().to_pybytes()
