"""Maps a worker over the rows of Parquet and JSON Lines files on a Ray cluster, block by block, into a folder."""

import contextlib
import dataclasses
import io
import itertools
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.inputs import positive
from mtmetrics.textio import json_object, shown

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.fs

    Worker = Callable[[pyarrow.Table], tuple[pyarrow.Table, Mapping[str, Any]]]

BLOCK_ROWS = 8192
_ENDS = (".parquet", ".jsonl", ".jsonl.gz")
_READER_CPUS = 0.5  # not a whole number, else Ray would make one step of reading and working: a file per worker
_PLAN = "_run.json"  # what begins with _ or . is no data to those who read a folder of Parquet
_KEY = b"mtmetrics"


@dataclasses.dataclass(frozen=True)
class Engine:
    """A Ray cluster, and how it is divided among workers: one per GPU where it has GPUs that may be used, else one per
    `cpus_per_worker` CPUs.

    Attributes:
        address: of a running cluster, or ``"auto"`` for the one that this machine belongs to; None starts one on this
            machine alone.
        cpus_per_worker: CPUs that a worker takes.
        gpus: whether workers take a GPU each where there are any.
    """

    address: str | None = None
    cpus_per_worker: int = 1
    gpus: bool = True

    @classmethod
    def parse(cls, text: str, **options: Any) -> "Engine":
        """An engine as the command line names it: ``ray``, or ``ray=ADDRESS``."""
        name, given, address = text.partition("=")
        if name != "ray" or (given and not address):
            raise InputError(f"--engine {text}: must be ray, or ray=ADDRESS such as ray=10.0.0.1:6379 or ray=auto")
        return cls(address or None, **options)


def map_blocks(
    make_worker: "Callable[[], Worker]",
    path: str,
    out: str,
    *,
    engine: Engine,
    texts: Sequence[str] = (),
    settings: Mapping[str, Any],
    block_rows: int = BLOCK_ROWS,
    keep_errors: bool = False,
) -> Iterator[dict[str, Any]]:
    """Runs a worker over all blocks of rows, and writes what it returns to a folder of Parquet, a file per block.

    A block is on disk whole or not at all. Called again after the driver died, only the missing blocks are computed; a
    block whose process died is repeated on another one. Blocks stream: of the data, a few blocks per worker are in
    memory.

    Args:
        make_worker: makes the worker, once per process of the cluster; it is pickled, so take a class or function of a
            module, with `functools.partial` for its arguments. The worker gets the rows of a block as a table, without
            the bad ones, possibly none, with two columns added, ``file`` and ``segment`` (number of the row in its
            file, from 1), and returns the table to be written, and a summary that can be written as JSON. Called twice
            with the same block it must return the same.
        path: a file (.parquet, .jsonl, .jsonl.gz) or a folder of such files, or a URI such as ``s3://...`` of one.
        out: the folder to be written, or its URI; shared by all nodes of the cluster.
        engine: the cluster.
        texts: columns that must hold a string in each row; other rows are bad, as are lines that are not JSON, and rows
            with a key or a type that the first rows of the first file do not have.
        settings: what the result depends on besides the input; JSON. A rerun with other settings is refused.
        block_rows: rows per block.
        keep_errors: write bad rows to ``out/errors`` and go on; else the first one stops the run.

    Yields:
        The summary of each block when it is finished, those of earlier runs first, with ``file`` (number in the order
        of names), ``first`` and ``rows`` (first row of the block in its file from 0, and how many), ``bad`` (how many
        of them are bad) and ``last`` (of its file).

    Raises:
        InputError: nothing to read, a bad row, or `out` holds something else.
        MissingExtraError: Ray is not installed.
        MTMetricsError: the cluster cannot be had or is too small, or what the worker raised.
    """
    require_extra("ray", "--engine ray")
    positive("block_rows", block_rows)
    positive("cpus_per_worker", engine.cpus_per_worker)
    files = _files(path)
    schema = _schema(files[0][0], texts, block_rows)
    sizes = [[name.removeprefix(path).lstrip("/") or name, size] for name, size in files]
    _claim(out, {"files": sizes, "block_rows": block_rows, "settings": dict(settings)})
    known = _finished(out)
    yield from known
    spans = {index: _span(index, known) for index in range(len(files))}
    left = [
        {"index": index, "path": name, "done": [block["first"] for block in known if block["file"] == index]}
        for index, (name, _) in enumerate(files)
        if not spans[index]
    ]
    if not left:
        return
    reader = _Reader(schema, tuple(texts), block_rows, keep_errors)
    new = []
    for block in _run(engine, reader, [json.dumps(unit) for unit in left], make_worker, out):
        new.append(block)
        yield block
    there = _names(out)
    unseen = [name for block in new if (name := _name(block)) not in there]
    if unseen:
        raise MTMetricsError(f"{out}: block {unseen[0]} was written, but not here; --out must be shared by all nodes")
    incomplete = [name for index, (name, _) in enumerate(files) if not _span(index, known + new)]
    if incomplete:
        raise MTMetricsError(
            f"{incomplete[0]}: blocks are missing or double in {out}; run again, or with another --out"
        )


def _place(path: str) -> "tuple[pyarrow.fs.FileSystem, str]":
    """The file system of a path or URI, and the path in it."""
    import pyarrow
    from pyarrow import fs

    if "://" not in path:
        return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(path))
    try:
        return fs.FileSystem.from_uri(path)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be reached ({str(error).splitlines()[0]})") from error


def _files(path: str) -> list[tuple[str, int]]:
    """The files of a folder in the order of their names, or the file itself, and their sizes."""
    from pyarrow import fs

    system, inner = _place(path)
    info = system.get_file_info(inner)
    if info.type == fs.FileType.NotFound:
        raise InputError(f"{path}: no such file or folder")
    start = path[: len(path) - len(inner)] if "://" in path else ""
    if info.type == fs.FileType.File:
        if not inner.endswith(_ENDS):
            raise InputError(f"{path}: ends in none of {', '.join(_ENDS)}, which --engine ray reads")
        return [(start + inner, info.size)]
    found = [info for info in system.get_file_info(fs.FileSelector(inner, recursive=True)) if info.is_file]
    data = [info for info in found if not any(part[:1] in "_." for part in info.path[len(inner) :].split("/") if part)]
    usable = sorted((start + info.path, info.size) for info in data if info.path.endswith(_ENDS))
    if not usable:
        raise InputError(f"{path}: holds no file that ends in {', '.join(_ENDS)}")
    others = [info.base_name for info in data if not info.path.endswith(_ENDS)]
    if others:
        what = f"{path}: {len(others)} file(s) that end in none of {', '.join(_ENDS)} are left out, such as {others[0]}"
        warnings.warn(what, UserWarning, stacklevel=4)
    return usable


def _schema(path: str, texts: Sequence[str], count: int) -> "pyarrow.Schema":
    """The columns of the first file, `texts` as strings; of JSON Lines those of its first rows."""
    import pyarrow
    from pyarrow import parquet

    system, inner = _place(path)
    with _readable(path):
        if path.endswith(".parquet"):
            with system.open_input_file(inner) as stream:
                schema = parquet.read_schema(stream).remove_metadata()
        else:
            first = [row for _, row in itertools.islice(_json_rows(path), count) if isinstance(row, dict)]
            names = [name for name in texts if any(name in row for row in first)]
            others = [{name: value for name, value in row.items() if name not in names} for row in first]
            schema = pyarrow.unify_schemas(
                [pyarrow.schema([(name, pyarrow.string()) for name in names]), pyarrow.Table.from_pylist(others).schema]
            )
    # A column of nulls has no type of its own, and would not fit beside that of another block.
    fields = [pyarrow.field(f.name, pyarrow.string()) if f.type == pyarrow.null() else f for f in schema]
    schema = pyarrow.schema(fields)
    missing = [name for name in texts if name not in schema.names]
    if missing:
        raise InputError(f"{path}: no column {missing[0]!r}; the file has: {', '.join(schema.names) or 'none'}")
    taken = [name for name in ("file", "segment") if name in schema.names]
    if taken:
        raise InputError(f"{path}: the engine adds a column {taken[0]!r}, and there is one; rename it")
    return schema


@contextlib.contextmanager
def _readable(path: str) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except (OSError, EOFError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from error


def _claim(out: str, plan: Mapping[str, Any]) -> None:
    """Writes down what the folder is for, or compares it with what is written there."""
    from pyarrow import fs

    system, inner = _place(out)
    written = f"{inner}/{_PLAN}"
    plan = json.loads(json.dumps(plan))
    try:
        system.create_dir(inner, recursive=True)
        if system.get_file_info(written).type == fs.FileType.NotFound:
            if system.get_file_info(fs.FileSelector(inner)):
                raise InputError(f"--out {out}: not empty, and not of a run that could go on; choose another folder")
            _write(system, written, json.dumps(plan, indent=1).encode())
            return
        with system.open_input_stream(written) as stream:
            before = json.loads(stream.read())
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise MTMetricsError(f"--out {out}: cannot be used ({str(error).splitlines()[0]})") from error
    differs = [key for key in plan if plan[key] != before.get(key)]
    if differs:
        key, old, new = differs[0], before.get(differs[0]), plan[differs[0]]
        if isinstance(new, dict) and isinstance(old, dict):
            key = next(name for name in new | old if new.get(name) != old.get(name))
            old, new = old.get(key), new.get(key)
        what = f"made with {key} {shown(old)}, not {shown(new)}"
        raise InputError(f"--out {out}: {what}; repeat the first call to finish it, or choose another folder")


def _write(system: "pyarrow.fs.FileSystem", path: str, data: bytes) -> None:
    """Writes a file that is there whole or not at all."""
    folder, _, name = path.rpartition("/")
    temporary = f"{folder}/.{name}.{os.getpid()}-{os.urandom(4).hex()}"
    with system.open_output_stream(temporary) as stream:
        stream.write(data)
    system.move(temporary, path)


def _name(block: Mapping[str, Any]) -> str:
    return f"part-{block['file']:05}-{block['first']:012}.parquet"


def _names(out: str) -> set[str]:
    from pyarrow import fs

    system, inner = _place(out)
    found = system.get_file_info(fs.FileSelector(inner))
    return {info.base_name for info in found if info.base_name.startswith("part-")}


def _finished(out: str) -> list[dict[str, Any]]:
    """The summaries of the blocks that are finished, in the order of the input."""
    from pyarrow import parquet

    system, inner = _place(out)
    blocks = []
    for name in sorted(_names(out)):
        with _readable(f"{out}/{name}"), system.open_input_file(f"{inner}/{name}") as stream:
            blocks.append(json.loads(parquet.read_schema(stream).metadata[_KEY]))
    return blocks


def _span(index: int, blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the blocks of a file follow each other from its first row to its last."""
    row, ended = 0, False
    for block in sorted((block for block in blocks if block["file"] == index), key=lambda block: block["first"]):
        if ended or block["first"] != row:
            return False
        row, ended = row + block["rows"], block["last"]
    return ended


class _Block(NamedTuple):
    """Rows of a file: the first one from 0, how many, and what they hold."""

    first: int
    rows: int
    table: "pyarrow.Table"
    bad: list[dict[str, Any]]


def _json_rows(path: str) -> Iterator[tuple[str, Any]]:
    """Yields the place of each row of JSON Lines, and its object, or in a string why it has none."""
    system, inner = _place(path)
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
class _Reader:
    """Reads a file in blocks, but for those that are finished; runs on the cluster."""

    schema: "pyarrow.Schema"
    texts: tuple[str, ...]
    block_rows: int
    keep_errors: bool

    def read(self, row: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yields the blocks of a file, serialised: as one value each Ray cannot join or split them."""
        import pyarrow

        unit = json.loads(row["item"])
        path = unit["path"]
        read = self._parquet if path.endswith(".parquet") else self._json
        with _readable(path):
            blocks = read(path, set(unit["done"]))
            block = next(blocks, None) or _Block(0, 0, self.schema.empty_table(), [])
            while block is not None:
                following = next(blocks, None)
                if block.first not in unit["done"]:
                    summary = {"file": unit["index"], "first": block.first, "rows": block.rows, "bad": len(block.bad)}
                    summary["last"] = following is None
                    stream = pyarrow.BufferOutputStream()
                    with pyarrow.ipc.new_stream(stream, block.table.schema) as writer:
                        writer.write_table(block.table)
                    data = stream.getvalue().to_pybytes()
                    yield {"path": path, "block": json.dumps(summary), "table": data, "bad": json.dumps(block.bad)}
                block = following

    def _parquet(self, path: str, done: set[int]) -> "Iterator[_Block]":
        import pyarrow
        from pyarrow import parquet

        system, inner = _place(path)
        first = 0
        with system.open_input_file(inner) as stream:
            file = parquet.ParquetFile(stream)
            if file.schema_arrow.names != self.schema.names:
                found = ", ".join(file.schema_arrow.names)
                raise InputError(f"{path}: has the columns {found}, the first file {', '.join(self.schema.names)}")
            for batch in file.iter_batches(self.block_rows):
                if first in done:
                    yield _Block(first, len(batch), self.schema.empty_table(), [])
                else:
                    places = [f"row {number}" for number in range(first + 1, first + len(batch) + 1)]
                    table = pyarrow.Table.from_batches([batch]).cast(self.schema)
                    yield self._checked(path, first, len(batch), table, list(range(len(batch))), places, {})
                first += len(batch)

    def _json(self, path: str, done: set[int]) -> "Iterator[_Block]":
        import pyarrow

        rows = _json_rows(path)
        first = 0
        while batch := list(itertools.islice(rows, self.block_rows)):
            if first in done:
                yield _Block(first, len(batch), self.schema.empty_table(), [])
            else:
                bad = {number: row for number, (_, row) in enumerate(batch) if isinstance(row, str)}
                for number, (place, row) in enumerate(batch):
                    if number not in bad and (reason := self._misfit(row)):
                        bad[number] = f"{path}, {place}: {reason}"
                good = [number for number in range(len(batch)) if number not in bad]
                table = pyarrow.Table.from_pylist([batch[number][1] for number in good], self.schema)
                yield self._checked(path, first, len(batch), table, good, [place for place, _ in batch], bad)
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
                return f"{name!r} cannot be of type {self.schema.field(name).type} as in the first rows: {shown(value)}"
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
    ) -> _Block:
        """A block of the rows of a table that hold strings where they must, `numbers` counting from the first of the
        block; `bad` are the numbers of those that did not get that far."""
        for name in self.texts:
            for number, value in zip(numbers, table[name], strict=True):
                try:
                    text = value.as_py()
                    reason = None if isinstance(text, str) else f"must be a string, got {shown(text)}"
                except UnicodeDecodeError:
                    reason = "is not valid UTF-8"
                if reason:
                    bad.setdefault(number, f"{path}, {places[number]}: {name!r} {reason}")
        if bad and not self.keep_errors:
            raise InputError(bad[min(bad)])
        kept = [place for place, number in enumerate(numbers) if number not in bad]
        table = table.take(kept)
        table = table.append_column("file", [[path] * len(kept)])
        table = table.append_column("segment", [[first + numbers[place] + 1 for place in kept]])
        errors = [{"file": path, "segment": first + number + 1, "error": bad[number]} for number in sorted(bad)]
        return _Block(first, rows, table, errors)


class _Step:
    """Has a worker work on blocks, and writes what it returns; one in each process of the cluster."""

    def __init__(self, make_worker: "Callable[[], Worker]", out: str) -> None:
        self._make, self._out = make_worker, out
        self._worker: Worker | None = None

    def __call__(self, row: Mapping[str, Any]) -> dict[str, str]:
        import pyarrow
        from pyarrow import parquet

        self._worker = self._worker or self._make()  # not when the process starts: errors there would be retried
        table, summary = self._worker(pyarrow.ipc.open_stream(row["table"]).read_all())
        block = dict(summary) | json.loads(row["block"])
        system, inner = _place(self._out)
        bad = json.loads(row["bad"])
        if bad:
            system.create_dir(f"{inner}/errors", recursive=True)
            lines = "".join(json.dumps(error, ensure_ascii=False) + "\n" for error in bad)
            name = _name(block).replace("part-", "_part-").replace(".parquet", ".jsonl")
            _write(system, f"{inner}/errors/{name}", lines.encode("utf-8", "backslashreplace"))
        stream = pyarrow.BufferOutputStream()
        described = (table.schema.metadata or {}) | {_KEY: json.dumps(block).encode()}
        parquet.write_table(table.replace_schema_metadata(described), stream)
        _write(system, f"{inner}/{_name(block)}", stream.getvalue())
        return {"block": json.dumps(block)}


def _run(
    engine: Engine, reader: _Reader, units: list[str], make_worker: "Callable[[], Worker]", out: str
) -> Iterator[dict[str, Any]]:
    with _cluster(engine) as (workers, readers, gpus):
        import ray.data

        with ray.data.DataContext.get_current().current(context := ray.data.DataContext.get_current().copy()):
            context.target_max_block_size = 1  # what the reader yields is passed on at once, not gathered
            context.enable_progress_bars = context.print_on_execution_start = False
            read = ray.data.TaskPoolStrategy(size=min(readers, len(units)))
            work = ray.data.ActorPoolStrategy(size=workers)
            blocks = (
                ray.data.from_items(units, override_num_blocks=len(units))
                .flat_map(reader.read, compute=read, num_cpus=_READER_CPUS)
                .map(
                    _Step,
                    fn_constructor_args=(make_worker, out),
                    compute=work,
                    num_cpus=engine.cpus_per_worker,
                    num_gpus=gpus,
                )
            )
        try:
            for row in blocks.iter_rows():
                yield json.loads(row["block"])
        except Exception as error:
            raise _reason(error) from error


def _reason(error: BaseException) -> MTMetricsError:
    """The error of ours that stopped the cluster, else one that says what did."""
    seen: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in seen:
        if isinstance(found, MTMetricsError):
            return type(found)(*found.args)
        seen.append(found)
        found = getattr(found, "cause", None) or found.__cause__
    lines = [line for line in str(seen[-1]).splitlines() if line.strip()] or [type(seen[-1]).__name__]
    return MTMetricsError(f"the engine stopped: {lines[-1]}; run again to go on")


@contextlib.contextmanager
def _cluster(engine: Engine) -> Iterator[tuple[int, int, int]]:
    """Joins or starts a cluster: the number of its workers, of its readers, and of the GPUs of a worker."""
    host = (engine.address or "127.0.0.1").rpartition(":")[0] or engine.address
    if engine.address is None or host in ("127.0.0.1", "localhost"):
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # so named; Ray then stays on loopback
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    joined = ray.is_initialized()
    if not joined:
        options = {"address": engine.address or "local", "log_to_driver": False, "logging_level": "ERROR"}
        options |= {} if engine.address else {"include_dashboard": False}
        try:
            ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            where = f"at {engine.address}" if engine.address else "on this machine"
            raise MTMetricsError(f"no Ray cluster {where}: {str(error).splitlines()[0]}") from error
    try:
        yield _divide(engine, [node["Resources"] for node in ray.nodes() if node["Alive"]])
    finally:
        if not joined:
            ray.shutdown()


def _divide(engine: Engine, nodes: Sequence[Mapping[str, float]]) -> tuple[int, int, int]:
    """Workers, readers and GPUs per worker on nodes of these resources; workers leave a reader its room, which would
    else never start."""
    size = engine.cpus_per_worker
    cpus = [node.get("CPU", 0.0) for node in nodes]
    gpus = [int(node.get("GPU", 0)) for node in nodes]
    use = engine.gpus and any(gpus)
    workers = sum(
        int(cpu // size) if not use else min(int(cpu // size), gpu) for cpu, gpu in zip(cpus, gpus, strict=True)
    )
    workers -= sum(cpus) - workers * size < _READER_CPUS
    if workers < 1:
        what = f"a worker takes {size} CPU(s){' and a GPU' if use else ''}, reading {_READER_CPUS}"
        there = f"the nodes have {', '.join(f'{cpu:g}' for cpu in cpus)} CPU(s)"
        raise MTMetricsError(f"the cluster is too small: {what}, but {there}; lower --cpus-per-worker or add a node")
    return workers, int((sum(cpus) - workers * size) / _READER_CPUS), int(use)
