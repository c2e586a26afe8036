"""Reads the rows of Parquet and JSON Lines files, on any file system that pyarrow reaches, in
blocks."""

import contextlib
import dataclasses
import io
import itertools
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mtmetrics.errors import InputError
from mtmetrics.io.lines import json_object, shown

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.fs

ENDS = (".parquet", ".jsonl", ".jsonl.gz")


def resolve(path: str) -> "tuple[pyarrow.fs.FileSystem, str]":
    """The file system of a path or URI, and the path in it."""
    import pyarrow
    from pyarrow import fs

    if "://" not in path:
        return fs.LocalFileSystem(), absolute(path)
    try:
        return fs.FileSystem.from_uri(path)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be reached ({str(error).splitlines()[0]})") from error


def absolute(path: str) -> str:
    """The path from the root; a URI as it is."""
    return path if "://" in path else os.path.abspath(os.path.expanduser(path))


def list_files(path: str) -> list[tuple[str, int]]:
    """The files of a folder in the order of their names, or the file itself, and their sizes."""
    from pyarrow import fs

    system, inner = resolve(path)
    info = system.get_file_info(inner)
    if info.type == fs.FileType.NotFound:
        raise InputError(f"{path}: no such file or folder")
    start = path[: len(path) - len(inner)] if "://" in path else ""
    if info.type == fs.FileType.File:
        if not inner.endswith(ENDS):
            raise InputError(f"{path}: ends in none of {', '.join(ENDS)}, which --engine ray reads")
        return [(start + inner, info.size)]
    infos = [
        info
        for info in system.get_file_info(fs.FileSelector(inner, recursive=True))
        if info.is_file
    ]
    data = [
        info
        for info in infos
        if not any(part[:1] in "_." for part in info.path[len(inner) :].split("/") if part)
    ]
    usable = sorted((start + info.path, info.size) for info in data if info.path.endswith(ENDS))
    if not usable:
        raise InputError(f"{path}: holds no file that ends in {', '.join(ENDS)}")
    others = [info.base_name for info in data if not info.path.endswith(ENDS)]
    if others:
        what = (
            f"{path}: {len(others)} file(s) that end in none of {', '.join(ENDS)} are left out, "
            f"such as {others[0]}"
        )
        warnings.warn(what, UserWarning, stacklevel=4)
    return usable


def read_schema(path: str, texts: Sequence[str], count: int) -> "pyarrow.Schema":
    """The columns of the first file, `texts` as strings; of JSON Lines those of its first rows."""
    import pyarrow
    from pyarrow import parquet

    system, inner = resolve(path)
    with readable(path):
        if path.endswith(".parquet"):
            with system.open_input_file(inner) as stream:
                schema = parquet.read_schema(stream).remove_metadata()
        else:
            first = [
                row for _, row in itertools.islice(_json_rows(path), count) if isinstance(row, dict)
            ]
            names = [name for name in texts if any(name in row for row in first)]
            others = [
                {name: value for name, value in row.items() if name not in names} for row in first
            ]
            given = pyarrow.schema([(name, pyarrow.string()) for name in names])
            schema = pyarrow.unify_schemas([given, _consistent(others)])
    # A column of nulls has no type of its own, and would not fit beside that of another block.
    fields = [
        pyarrow.field(f.name, pyarrow.string()) if f.type == pyarrow.null() else f for f in schema
    ]
    schema = pyarrow.schema(fields)
    missing = [name for name in texts if name not in schema.names]
    if missing:
        raise InputError(
            f"{path}: no column {missing[0]!r}; the file has: {', '.join(schema.names) or 'none'}"
        )
    taken = [name for name in ("file", "segment") if name in schema.names]
    if taken:
        raise InputError(
            f"{path}: the engine adds a column {taken[0]!r}, and there is one; rename it"
        )
    return schema


def _consistent(rows: list[dict[str, Any]]) -> "pyarrow.Schema":
    """The columns of the first rows, as many of them as do not contradict each other; the others
    are bad rows then."""
    import pyarrow

    try:
        return pyarrow.Table.from_pylist(rows).schema
    except (pyarrow.ArrowException, UnicodeError, OverflowError):
        if len(rows) == 1:
            raise
        return _consistent(rows[: len(rows) // 2])


@contextlib.contextmanager
def readable(path: str) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except (OSError, EOFError, UnicodeError, OverflowError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from error


def write_file(system: "pyarrow.fs.FileSystem", path: str, data: bytes) -> None:
    """Writes a file that is there whole or not at all."""
    folder, _, name = path.rpartition("/")
    temporary = f"{folder}/.{name}.{os.getpid()}-{os.urandom(4).hex()}"
    with system.open_output_stream(temporary) as stream:
        stream.write(data)
    system.move(temporary, path)


class Block(NamedTuple):
    """Rows of a file: the first one from 0, how many, and what they hold."""

    first: int
    rows: int
    table: "pyarrow.Table"
    bad: list[dict[str, Any]]


def _json_rows(path: str) -> Iterator[tuple[str, Any]]:
    """Yields the place of each row of JSON Lines, and its object, or in a string why it has
    none."""
    system, inner = resolve(path)
    with system.open_input_stream(inner) as stream, io.BufferedReader(stream) as lines:
        for number, raw in enumerate(lines, 1):
            place = f"line {number}"
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                if text.strip():
                    yield place, json_object(text, f"{path}, {place}")
            except UnicodeDecodeError as error:
                yield place, f"{path}, {place}: byte {error.start + 1} is not valid UTF-8"
            except InputError as error:
                yield place, str(error)


@dataclasses.dataclass(frozen=True)
class Reader:
    """Reads a file in blocks, but for those that are finished; runs on the cluster."""

    schema: "pyarrow.Schema"
    texts: tuple[str, ...]
    block_rows: int
    keep_errors: bool

    def read(self, row: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yields the blocks of a file, serialised: as one value each Ray cannot join or split
        them."""
        import pyarrow

        unit = json.loads(row["item"])
        path = unit["path"]
        read = self._parquet if path.endswith(".parquet") else self._json
        with readable(path):
            blocks = read(path, set(unit["done"]))
            block = next(blocks, None) or Block(0, 0, self.schema.empty_table(), [])
            while block is not None:
                following = next(blocks, None)
                if block.first not in unit["done"]:
                    summary = {
                        "file": unit["index"],
                        "first": block.first,
                        "rows": block.rows,
                        "bad": len(block.bad),
                    }
                    summary["last"] = following is None
                    stream = pyarrow.BufferOutputStream()
                    with pyarrow.ipc.new_stream(stream, block.table.schema) as writer:
                        writer.write_table(block.table)
                    data = stream.getvalue().to_pybytes()
                    yield {
                        "path": path,
                        "block": json.dumps(summary),
                        "table": data,
                        "bad": json.dumps(block.bad),
                    }
                block = following

    def _parquet(self, path: str, done: set[int]) -> "Iterator[Block]":
        import pyarrow
        from pyarrow import parquet

        system, inner = resolve(path)
        first = 0
        with system.open_input_file(inner) as stream:
            file = parquet.ParquetFile(stream)
            if file.schema_arrow.names != self.schema.names:
                names = ", ".join(file.schema_arrow.names)
                raise InputError(
                    f"{path}: has the columns {names}, the first file "
                    f"{', '.join(self.schema.names)}"
                )
            for batch in file.iter_batches(self.block_rows):
                if first in done:
                    yield Block(first, len(batch), self.schema.empty_table(), [])
                else:
                    places = [
                        f"row {number}" for number in range(first + 1, first + len(batch) + 1)
                    ]
                    table = pyarrow.Table.from_batches([batch]).cast(self.schema)
                    yield self._checked(
                        path, first, len(batch), table, list(range(len(batch))), places, {}
                    )
                first += len(batch)

    def _json(self, path: str, done: set[int]) -> "Iterator[Block]":
        import pyarrow

        rows = _json_rows(path)
        first = 0
        while batch := list(itertools.islice(rows, self.block_rows)):
            if first in done:
                yield Block(first, len(batch), self.schema.empty_table(), [])
            else:
                bad = {number: row for number, (_, row) in enumerate(batch) if isinstance(row, str)}
                for number, (place, row) in enumerate(batch):
                    if number not in bad and (reason := self._misfit(row)):
                        bad[number] = f"{path}, {place}: {reason}"
                good = [number for number in range(len(batch)) if number not in bad]
                table = pyarrow.Table.from_pylist(
                    [batch[number][1] for number in good], self.schema
                )
                yield self._checked(
                    path, first, len(batch), table, good, [place for place, _ in batch], bad
                )
            first += len(batch)

    def _misfit(self, row: Mapping[str, Any]) -> str | None:
        """Why an object cannot be a row of the table."""
        import pyarrow

        for name in self.texts:
            if not isinstance(row.get(name), str):
                return f"{name!r} must be a string, got {shown(row.get(name))}"
        unknown = [name for name in row if name not in self.schema.names]
        if unknown:
            return f"has a key {unknown[0]!r}, which the first rows of the input do not have"
        for name, value in row.items():
            try:
                pyarrow.scalar(value, self.schema.field(name).type)
            except (pyarrow.ArrowException, UnicodeError, OverflowError, TypeError, ValueError):
                return (
                    f"{name!r} cannot be of type {self.schema.field(name).type} as in the first "
                    f"rows: {shown(value)}"
                )
        return None

    def _checked(
        self,
        path: str,
        first: int,
        rows: int,
        table: "pyarrow.Table",
        numbers: list[int],
        places: list[str],
        bad: dict[int, str],
    ) -> Block:
        """A block of the rows of a table that hold strings where they must, `numbers` counting from
        the first of the block; `bad` are the numbers of those that did not get that far."""
        import pyarrow

        for name in self.texts:
            for number, value in zip(numbers, table[name], strict=True):
                try:
                    text = value.as_py()
                    reason = (
                        None if isinstance(text, str) else f"must be a string, got {shown(text)}"
                    )
                except UnicodeDecodeError:
                    reason = "is not valid UTF-8"
                if reason:
                    bad.setdefault(number, f"{path}, {places[number]}: {name!r} {reason}")
        if bad and not self.keep_errors:
            raise InputError(bad[min(bad)])
        kept = [place for place, number in enumerate(numbers) if number not in bad]
        table = table.take(pyarrow.array(kept, pyarrow.int64()))
        segments = [first + numbers[place] + 1 for place in kept]
        table = table.append_column("file", pyarrow.array([path] * len(kept), pyarrow.string()))
        table = table.append_column("segment", pyarrow.array(segments, pyarrow.int64()))
        errors = [
            {"file": path, "segment": first + number + 1, "error": bad[number]}
            for number in sorted(bad)
        ]
        return Block(first, rows, table, errors)
