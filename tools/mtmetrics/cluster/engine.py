"""Maps a worker over the rows of Parquet and JSON Lines files on a Ray cluster, block by block,
into a folder."""

import contextlib
import dataclasses
import itertools
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtmetrics.checks import positive
from mtmetrics.cluster.row_files import (
    Reader,
    absolute,
    list_files,
    read_schema,
    readable,
    resolve,
    write_file,
)
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.io.lines import first_difference, json_line

if TYPE_CHECKING:
    import numpy as np
    import pyarrow

    Worker = Callable[[pyarrow.Table], tuple[pyarrow.Table, Mapping[str, Any]]]

BLOCK_ROWS = 8192
_READER_CPUS = 0.5  # not a whole number, else Ray would make one step of reading and working: a file per worker
_TRIES = 3  # of a block, since what ends the process that works on it may do so each time
_PLAN = "_run.json"  # what begins with _ or . is no data to those who read a folder of Parquet
_KEY = b"mtmetrics"


@dataclasses.dataclass(frozen=True)
class Engine:
    """A Ray cluster, and how it is divided among workers: one per GPU where it has GPUs that may be
    used, else one per `cpus_per_worker` CPUs.

    Attributes:
        address: of a running cluster, or ``"auto"`` for the one that this machine belongs to; None
            starts one on this machine alone. Where this process has joined one already, that is
            taken.
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
            raise InputError(
                f"--engine {text}: must be ray, or ray=ADDRESS such as ray=10.0.0.1:6379 or "
                "ray=auto"
            )
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
    """Runs a worker over all blocks of rows, and writes what it returns to a folder of Parquet, a
    file per block.

    A block is on disk whole or not at all. Called again after the driver died, only the missing
    blocks are computed; a block whose process died is repeated on a new one, until three have died
    of it. Blocks stream: a few per worker are in memory.

    Args:
        make_worker: makes the worker, once per process of the cluster; it is pickled, so take a
            class or function of a module, with `functools.partial` for its arguments. The worker
            gets the rows of a block as a table, without the bad ones, possibly none, with two
            columns added, ``file`` and ``segment`` (number of the row in its file, from 1), and
            returns the table to be written, and a summary that can be written as JSON. Called twice
            with the same block it must return the same.
        path: a file (.parquet, .jsonl, .jsonl.gz) or a folder of such files, or a URI such as
            ``s3://...`` of one.
        out: the folder to be written, or its URI; shared by all nodes of the cluster.
        engine: the cluster.
        texts: columns that must hold a string in each row; other rows are bad, as are lines that
            are not JSON, and rows with a key or a type that the first rows of the first file do not
            have.
        settings: what the result depends on besides the input; JSON. A rerun with other settings is
            refused.
        block_rows: rows per block.
        keep_errors: write bad rows to ``out/errors`` and go on; else the first one stops the run.

    Yields:
        The summary of each block when it is finished, those of earlier runs first, with ``file``
        (number in the order of names), ``first`` and ``rows`` (first row of the block in its file
        from 0, and how many), ``bad`` (how many of them are bad) and ``last`` (of its file).

    Raises:
        InputError: nothing to read, a bad row, or `out` holds something else.
        MissingExtraError: Ray is not installed.
        MTMetricsError: the cluster cannot be had or is too small, a block ended all processes that
            worked on it, or what the worker raised.
    """
    require_extra("ray", "--engine ray")
    positive("block_rows", block_rows)
    positive("cpus_per_worker", engine.cpus_per_worker)
    path, out = (
        absolute(path),
        absolute(out),
    )  # processes of the cluster have working folders of their own
    files = list_files(path)
    schema = read_schema(files[0][0], texts, block_rows)
    sizes = [[name.removeprefix(path).lstrip("/") or name, size] for name, size in files]
    _claim(out, {"files": sizes, "block_rows": block_rows, "settings": dict(settings)})
    _sweep(out)
    known = _finished(out)
    yield from known
    done = _by_file(known, len(files))
    left = [
        {"index": index, "path": files[index][0], "done": [block["first"] for block in blocks]}
        for index, blocks in enumerate(done)
        if not _whole(blocks)
    ]
    if not left:
        return
    reader = Reader(schema, tuple(texts), block_rows, keep_errors)
    new = []
    for block in _run(engine, reader, [json.dumps(unit) for unit in left], make_worker, out):
        new.append(block)
        yield block
    there = _names(out)
    unseen = [name for block in new if (name := _name(block)) not in there]
    if unseen:
        raise MTMetricsError(
            f"{out}: block {unseen[0]} was written, but not here; --out must be shared by all nodes"
        )
    for (name, _), blocks in zip(files, _by_file(known + new, len(files)), strict=True):
        if not _whole(blocks):
            raise MTMetricsError(
                f"{name}: blocks are missing or double in {out}; run again with another --out"
            )


def column_names(path: str) -> list[str]:
    """The columns of the first file of a path, as `map_blocks` reads it; `InputError` where it
    cannot be read."""
    require_extra("ray", "--engine ray")
    return read_schema(list_files(path)[0][0], (), BLOCK_ROWS).names


def written(out: str, column: str) -> "np.ndarray":
    """(n,) values of a column that was written, in the order of the input."""
    import numpy as np

    return np.concatenate([table[column].to_numpy() for _, table in parts(out, [column])])


def parts(out: str, columns: list[str] | None = None) -> "Iterator[tuple[str, pyarrow.Table]]":
    """Yields the files of a folder that was written, in the order of the input: their names, and
    all or some columns of their rows."""
    from pyarrow import parquet

    system, inner = resolve(out)
    for name in sorted(_names(out)):
        yield name, parquet.read_table(f"{inner}/{name}", columns=columns, filesystem=system)


def write_part(
    out: str, name: str, table: "pyarrow.Table", described: Mapping[bytes, bytes] | None = None
) -> None:
    """Writes a file of such a folder, whole or not at all, with this metadata alone."""
    import pyarrow
    from pyarrow import parquet

    system, inner = resolve(out)
    stream = pyarrow.BufferOutputStream()
    parquet.write_table(table.replace_schema_metadata(described), stream)
    write_file(system, f"{inner}/{name}", stream.getvalue())


def _claim(out: str, plan: Mapping[str, Any]) -> None:
    """Writes down what the folder is for; where blocks are finished already, compares it with what
    is written there."""
    from pyarrow import fs

    system, inner = resolve(out)
    file = f"{inner}/{_PLAN}"
    try:
        system.create_dir(inner, recursive=True)
        present = [info.base_name for info in system.get_file_info(fs.FileSelector(inner))]
        if present and _PLAN not in present:
            raise InputError(
                f"--out {out}: not empty, and not of a run that could go on; choose another folder"
            )
        if not any(name.startswith("part-") for name in present):
            write_file(system, file, json.dumps(plan, indent=1).encode())
            return
        with system.open_input_stream(file) as stream:
            before = json.loads(stream.read())
    except OSError as error:
        raise MTMetricsError(
            f"--out {out}: cannot be used ({str(error).splitlines()[0]})"
        ) from error
    if what := first_difference(before, json.loads(json.dumps(plan))):
        what_to_do = "repeat the first call to finish it, or choose another folder"
        raise InputError(f"--out {out}: made with {what}; {what_to_do}")


def _name(block: Mapping[str, Any]) -> str:
    return f"part-{block['file']:05}-{block['first']:012}.parquet"


def _names(out: str) -> set[str]:
    from pyarrow import fs

    system, inner = resolve(out)
    found = system.get_file_info(fs.FileSelector(inner))
    return {info.base_name for info in found if info.base_name.startswith("part-")}


def _finished(out: str) -> list[dict[str, Any]]:
    """The summaries of the blocks that are finished, in the order of the input."""
    from pyarrow import parquet

    system, inner = resolve(out)
    blocks = []
    for name in sorted(_names(out)):
        with readable(f"{out}/{name}"), system.open_input_file(f"{inner}/{name}") as stream:
            blocks.append(json.loads(parquet.read_schema(stream).metadata[_KEY]))
    return blocks


def _sweep(out: str) -> None:
    """Deletes what processes left that were killed while they wrote."""
    from pyarrow import fs

    system, inner = resolve(out)
    for info in system.get_file_info(fs.FileSelector(inner, recursive=True)):
        if info.is_file and info.base_name.startswith("."):
            system.delete_file(info.path)


def _by_file(blocks: Sequence[Mapping[str, Any]], files: int) -> list[list[Mapping[str, Any]]]:
    """The blocks of each file, in order."""
    grouped: list[list[Mapping[str, Any]]] = [[] for _ in range(files)]
    for block in sorted(blocks, key=lambda block: block["first"]):
        grouped[block["file"]].append(block)
    return grouped


def _whole(blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the blocks of a file, in order, follow each other from its first row to its last."""
    ends = [0, *itertools.accumulate(block["rows"] for block in blocks)]
    lasts = [block["last"] for block in blocks]
    return [block["first"] for block in blocks] == ends[:-1] and lasts == [False] * (
        len(blocks) - 1
    ) + [True]


class _Step:
    """Has a worker work on blocks, and writes what it returns; one in each process of the
    cluster."""

    def __init__(self, make_worker: "Callable[[], Worker]", out: str) -> None:
        self._make, self._out = make_worker, out
        self._worker: Worker | None = None

    def __call__(self, row: Mapping[str, Any]) -> dict[str, str]:
        import pyarrow

        self._worker = (
            self._worker or self._make()
        )  # not when the process starts: errors there would be retried
        block = json.loads(row["block"])
        system, inner = resolve(self._out)
        begun = f"{inner}/.begun-{_name(block)}"
        tries = system.get_file_info(begun).size or 0
        if tries == _TRIES:
            where = f"{row['path']}, rows {block['first'] + 1} to {block['first'] + block['rows']}"
            what = f"{where}: {tries} processes died of this block (often because memory ran out)"
            raise MTMetricsError(
                f"{what}; take smaller blocks and another --out, or leave these rows out"
            )
        with system.open_output_stream(begun) as stream:
            stream.write(b"." * (tries + 1))
        table, summary = self._worker(pyarrow.ipc.open_stream(row["table"]).read_all())
        block = dict(summary) | block
        bad = json.loads(row["bad"])
        if bad:
            system.create_dir(f"{inner}/errors", recursive=True)
            lines = "".join(map(json_line, bad))
            name = _name(block).replace("part-", "_part-").replace(".parquet", ".jsonl")
            write_file(system, f"{inner}/errors/{name}", lines.encode("utf-8", "backslashreplace"))
        described = (table.schema.metadata or {}) | {_KEY: json.dumps(block).encode()}
        write_part(self._out, _name(block), table, described)
        system.delete_file(begun)
        return {"block": json.dumps(block)}


def _run(
    engine: Engine, reader: Reader, units: list[str], make_worker: "Callable[[], Worker]", out: str
) -> Iterator[dict[str, Any]]:
    with connected(engine):
        import ray.data

        workers, readers, gpus = _divide(
            engine, [node["Resources"] for node in ray.nodes() if node["Alive"]]
        )
        logging.getLogger("ray.data").setLevel(
            logging.CRITICAL
        )  # its errors are raised too; after the import, which sets it
        context = ray.data.DataContext.get_current()
        context.target_max_block_size = (
            1  # what the reader yields is passed on at once, not gathered
        )
        context.raise_original_map_exception = True  # it would else lose its cause on the way here
        context.enable_progress_bars = context.print_on_execution_start = False
        blocks = (
            ray.data.from_items(units, override_num_blocks=len(units))
            .flat_map(
                reader.read,
                compute=ray.data.TaskPoolStrategy(size=min(readers, len(units))),
                num_cpus=_READER_CPUS,
            )
            .map(
                _Step,
                fn_constructor_args=(make_worker, out),
                compute=ray.data.ActorPoolStrategy(size=workers),
                num_cpus=engine.cpus_per_worker,
                num_gpus=gpus,
            )
        )
        try:
            for row in blocks.iter_rows():
                yield json.loads(row["block"])
        except Exception as error:
            raise _reason(error) from error


# What Ray Data writes behind the message of an error.
_ADDED = "Failed to apply UDF transform"


def _reason(error: BaseException) -> MTMetricsError:
    """The error of ours that stopped the cluster, else one that says what did."""
    seen: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in seen:
        # What Ray raises is of the class of its cause as well, but holds the text of a traceback.
        if isinstance(found, MTMetricsError) and not getattr(found, "cause", None):
            return type(found)(str(found).partition(_ADDED)[0].rstrip())
        seen.append(found)
        found = getattr(found, "cause", None) or found.__cause__
    lines = [line for line in str(seen[-1]).splitlines() if line.strip()] or [
        type(seen[-1]).__name__
    ]
    return MTMetricsError(f"the engine stopped: {lines[-1]}; run again to go on")


@contextlib.contextmanager
def connected(engine: Engine) -> Iterator[None]:
    """Joins or starts a cluster, which all calls of `map_blocks` meanwhile take."""
    host = (engine.address or "127.0.0.1").rpartition(":")[0] or engine.address
    if engine.address is None or host in ("127.0.0.1", "localhost"):
        os.environ.setdefault(
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0"
        )  # so named; Ray then stays on loopback
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault(
        "RAY_BACKEND_LOG_LEVEL", "fatal"
    )  # on standard error; the files of Ray's logs say more
    os.environ.setdefault(
        "RAY_DEDUP_LOGS_SKIP_REGEX", "."
    )  # what it says of workers that died, on standard output
    import ray

    joined = ray.is_initialized()
    if not joined:
        options = {
            "address": engine.address or "local",
            "log_to_driver": False,
            "logging_level": "ERROR",
        }
        options |= {} if engine.address else {"include_dashboard": False}
        try:
            ray.init(**options)
        except (
            Exception
        ) as error:  # Ray has no class of its own for what goes wrong here, such as a slow node
            where = f"at {engine.address}" if engine.address else "on this machine"
            raise MTMetricsError(f"no Ray cluster {where}: {str(error).splitlines()[0]}") from error
    try:
        yield
    finally:
        if not joined:
            ray.shutdown()


def _divide(engine: Engine, nodes: Sequence[Mapping[str, float]]) -> tuple[int, int, int]:
    """Workers, readers and GPUs per worker on nodes of these resources; workers leave a reader its
    room, which would else never start."""
    size = engine.cpus_per_worker
    cpus = [node.get("CPU", 0.0) for node in nodes]
    gpus = [int(node.get("GPU", 0)) for node in nodes]
    use = engine.gpus and any(gpus)
    workers = sum(
        int(cpu // size) if not use else min(int(cpu // size), gpu)
        for cpu, gpu in zip(cpus, gpus, strict=True)
    )
    workers -= sum(cpus) - workers * size < _READER_CPUS
    if workers < 1:
        what = f"a worker takes {size} CPU(s){' and a GPU' if use else ''}, reading {_READER_CPUS}"
        there = f"the nodes have {', '.join(f'{cpu:g}' for cpu in cpus)} CPU(s)"
        raise MTMetricsError(
            f"the cluster is too small: {what}, but {there}; lower --cpus-per-worker or add a node"
        )
    return workers, int((sum(cpus) - workers * size) / _READER_CPUS), int(use)
