"""Maps a worker over the rows of Parquet and JSON Lines files on a Ray cluster, block by block, into a
folder.

`map_blocks` is the door. Ray Data reads the input, distributes the blocks, and repeats a block whose
process died. `BlockFolder` holds a file for each finished block; such a block is not computed again.
"""

import contextlib
import dataclasses
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtmetrics.checks import positive
from mtmetrics.cluster.block_folder import BlockFolder, Summary
from mtmetrics.cluster.row_files import Reader, absolute, list_files, read_schema
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.io.lines import JsonObject

if TYPE_CHECKING:
    import pyarrow

    Worker = Callable[[pyarrow.Table], tuple[pyarrow.Table, JsonObject]]

BLOCK_ROWS = 8192
# Not a whole number: else Ray would make one step of reading and working, with a file per worker.
_READER_CPUS = 0.5
# Processes that may die of one block. If the block itself kills them, a next one would die too.
_TRIES = 3


@dataclasses.dataclass(frozen=True)
class Engine:
    """A Ray cluster, and the resources of a worker.

    There is a worker for each GPU, if there are GPUs and workers use them, else a worker for each
    `cpus_per_worker` CPUs.

    Attributes:
        address: of a running cluster, or ``"auto"`` for the one that this machine belongs to; None
            starts a cluster on this machine alone. A cluster that this process has joined already
            is used instead.
        cpus_per_worker: CPUs that a worker takes.
        gpus: whether workers use GPUs, one each.
    """

    address: str | None = None
    cpus_per_worker: int = 1
    gpus: bool = True

    @classmethod
    def parse(cls, text: str, **options: Any) -> "Engine":
        """Reads an engine of the command line: ``ray``, or ``ray=ADDRESS``.

        Raises:
            InputError: it is neither.
        """
        name, sign, address = text.partition("=")
        if name != "ray" or (sign and not address):
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
    settings: JsonObject,
    block_rows: int = BLOCK_ROWS,
    keep_errors: bool = False,
) -> Iterator[JsonObject]:
    """Runs a worker over all blocks of rows, and writes its tables to a folder of Parquet, a file
    per block.

    A block is on disk whole or not at all. Called again after the driver died, only the missing
    blocks are computed; a block whose process died is repeated on a new one, until three have died
    of it. Blocks stream: a few per worker are in memory.

    Args:
        make_worker: makes the worker, once in each process of the cluster. It is pickled: pass a
            class or function of a module, with `functools.partial` for its arguments. The worker is
            called with the good rows of a block as a table, which may be empty. The table has two
            more columns: ``file``, the path or URI of the file, and ``segment``, the number of the
            row in its file, from 1. The worker returns the table to be written, and a summary that
            can be written as JSON. It must return the same for the same block.
        path: a file (.parquet, .jsonl, .jsonl.gz) or a folder of such files, or a URI such as
            ``s3://...`` of one.
        out: the folder to be written, or its URI; shared by all nodes of the cluster.
        engine: the cluster.
        texts: columns that must hold a string in each row. Rows where they do not are bad. Lines
            that are not JSON are bad too, and rows with a key or a type that the first rows of the
            first file do not have.
        settings: JSON on which the result depends besides the input. A rerun with other settings is
            refused.
        block_rows: rows per block.
        keep_errors: go on after bad rows, and list file, segment and error of each (not the row
            itself) in ``out/errors``; else the first one stops the run.

    Yields:
        The summary of each block, first those of earlier runs, then each new one when it is
        finished. To the entries of the worker it adds ``file`` (number of the file in the order of
        names, from 0),
        ``first`` (number of the block's first row in its file, from 0), ``rows`` (how many),
        ``bad`` (how many of these are bad) and ``last`` (whether the file ends with the block).

    Raises:
        InputError: nothing to read, a bad row, a column called ``file`` or ``segment``, a file of
            Parquet with other columns than the first file, or `out` holds something else.
        MissingExtraError: Ray is not installed.
        MTMetricsError: there is no such cluster or it is too small, a block ended all processes that
            worked on it, or an error of the worker.
    """
    require_extra("ray", "--engine ray")
    positive("block_rows", block_rows)
    positive("cpus_per_worker", engine.cpus_per_worker)
    # Processes of the cluster have working folders of their own.
    path, out = absolute(path), absolute(out)
    files = list_files(path)
    schema = read_schema(files[0][0], texts, block_rows)
    sizes = [[name.removeprefix(path).lstrip("/") or name, size] for name, size in files]

    folder = BlockFolder(out)
    folder.claim({"files": sizes, "block_rows": block_rows, "settings": dict(settings)})
    folder.sweep()
    finished = folder.summaries()
    yield from finished

    unfinished = _unfinished(files, finished)
    if not unfinished:
        return
    reader = Reader(schema, tuple(texts), block_rows, keep_errors)
    yield from _run(engine, reader, unfinished, make_worker, out)
    if unfinished := _unfinished(files, folder.summaries()):
        raise MTMetricsError(
            f"{unfinished[0]['path']}: not all of its blocks lie in {out}; --out must be shared by "
            "all nodes"
        )


def _unfinished(files: Sequence[tuple[str, int]], finished: Sequence[Summary]) -> list[JsonObject]:
    """Returns the files that lack blocks, as items for `Reader.read`: with ``done``, the first rows of
    the blocks that are finished. `finished` are the blocks in the order of the input."""
    blocks_of_file: dict[int, list[Summary]] = {index: [] for index in range(len(files))}
    for block in finished:
        blocks_of_file[block["file"]].append(block)
    items = []
    for index, blocks in blocks_of_file.items():
        if not _is_complete(blocks):
            path, _ = files[index]
            first_rows = [block["first"] for block in blocks]
            items.append({"index": index, "path": path, "done": first_rows})
    return items


def _is_complete(blocks: Sequence[Summary]) -> bool:
    """Whether the blocks of a file, in order, reach from its first row to its last."""
    if not blocks or not blocks[-1]["last"]:
        return False
    row_count = sum(block["rows"] for block in blocks)
    return row_count == blocks[-1]["first"] + blocks[-1]["rows"]


def column_names(path: str) -> list[str]:
    """Returns the columns of the first file of a path, as `map_blocks` reads it.

    Raises:
        InputError: it cannot be read.
    """
    require_extra("ray", "--engine ray")
    return read_schema(list_files(path)[0][0], (), BLOCK_ROWS).names


class _BlockStep:
    """Runs a worker on blocks, and writes its tables. Each process of the cluster has one."""

    def __init__(self, make_worker: "Callable[[], Worker]", out: str) -> None:
        self._make_worker = make_worker
        self._out = out
        self._worker: Worker | None = None

    def __call__(self, row: JsonObject) -> dict[str, str]:
        """Works on a block as `Reader.read` yields it; returns its summary."""
        import pyarrow

        if self._worker is None:
            # Not when the process starts: after an error Ray would start it again and again.
            self._worker = self._make_worker()
        summary = json.loads(row["block"])
        folder = BlockFolder(self._out)
        earlier_attempts = folder.begin(summary)
        if earlier_attempts == _TRIES:
            first, last = summary["first"] + 1, summary["first"] + summary["rows"]
            raise MTMetricsError(
                f"{row['path']}, rows {first} to {last}: {earlier_attempts} processes died of this "
                "block (often because memory ran out); take smaller blocks and another --out, or "
                "leave these rows out"
            )
        rows = pyarrow.ipc.open_stream(row["table"]).read_all()
        table, worker_entries = self._worker(rows)
        summary = dict(worker_entries) | summary
        folder.finish(summary, table, json.loads(row["bad"]))
        return {"block": json.dumps(summary)}


def _run(
    engine: Engine,
    reader: Reader,
    files: Sequence[JsonObject],
    make_worker: "Callable[[], Worker]",
    out: str,
) -> Iterator[JsonObject]:
    """Yields the summaries of the blocks of files as Ray Data finishes them.

    Tasks read the files, a task per file, and actors work on their blocks. Ray Data repeats a block
    whose process died.
    """
    with connected(engine):
        import ray.data

        resources = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        workers, readers, gpus = _divide(engine, resources)
        # Errors are raised; no need to log them. The import sets the level, so it is set here.
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        context = ray.data.DataContext.get_current()
        # In bytes. Ray then hands on each of our blocks by itself, at once.
        context.target_max_block_size = 1
        # An error keeps its cause.
        context.raise_original_map_exception = True
        context.enable_progress_bars = context.print_on_execution_start = False
        tasks = [json.dumps(file) for file in files]
        blocks = (
            ray.data.from_items(tasks, override_num_blocks=len(tasks))
            .flat_map(
                reader.read,
                compute=ray.data.TaskPoolStrategy(size=min(readers, len(tasks))),
                num_cpus=_READER_CPUS,
            )
            .map(
                _BlockStep,
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
            raise _cause(error) from error


# Ray Data writes this behind the message of an error.
_ADDED_BY_RAY = "Failed to apply UDF transform"


def _cause(error: BaseException) -> MTMetricsError:
    """Returns the error of this package that stopped the cluster, or else an error that names the
    first cause."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        inner = getattr(current, "cause", None)
        # Ray also raises copies, of the class of the cause, whose text is a traceback. The cause
        # itself has no `cause`.
        if isinstance(current, MTMetricsError) and not inner:
            message = str(current).partition(_ADDED_BY_RAY)[0].rstrip()
            return type(current)(message)
        chain.append(current)
        current = inner or current.__cause__
    first = chain[-1]
    lines = [line for line in str(first).splitlines() if line.strip()]
    reason = lines[-1] if lines else type(first).__name__
    return MTMetricsError(f"the engine stopped: {reason}; run again to go on")


@contextlib.contextmanager
def connected(engine: Engine) -> Iterator[None]:
    """Joins or starts a cluster, which all calls of `map_blocks` inside the ``with`` use."""
    is_local = engine.address is None
    if engine.address is not None:
        is_local = engine.address.partition(":")[0] in ("127.0.0.1", "localhost")
    if is_local:
        # Ray then stays on loopback, despite the name of the variable.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Keeps messages off standard error; the files of Ray's logs hold them.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    # Keeps messages about workers that died off standard output.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    import ray

    if ray.is_initialized():
        yield
        return
    options: JsonObject = {"log_to_driver": False, "logging_level": "ERROR"}
    if engine.address is None:
        options["include_dashboard"] = False
    try:
        ray.init(address=engine.address or "local", **options)
    # Ray has no class of its own for what goes wrong here, such as a slow node.
    except Exception as error:
        where = f"at {engine.address}" if engine.address else "on this machine"
        raise MTMetricsError(f"no Ray cluster {where}: {str(error).splitlines()[0]}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _divide(engine: Engine, nodes: Sequence[Mapping[str, float]]) -> tuple[int, int, int]:
    """Divides the nodes among workers and readers.

    Args:
        engine: the engine.
        nodes: the resources of each node.

    Returns:
        The number of workers, the number of readers, and the GPUs of each worker. There is always
        room for a reader.

    Raises:
        MTMetricsError: there is no room for a worker and a reader.
    """
    size = engine.cpus_per_worker
    cpus = [node.get("CPU", 0.0) for node in nodes]
    gpus = [int(node.get("GPU", 0)) for node in nodes]
    uses_gpus = engine.gpus and any(gpus)
    workers = 0
    for node_cpus, node_gpus in zip(cpus, gpus, strict=True):
        fitting = int(node_cpus // size)
        workers += min(fitting, node_gpus) if uses_gpus else fitting
    if sum(cpus) - workers * size < _READER_CPUS:
        workers -= 1
    if workers < 1:
        gpu = " and a GPU" if uses_gpus else ""
        present = ", ".join(f"{count:g}" for count in cpus)
        raise MTMetricsError(
            f"the cluster is too small: a worker takes {size} CPU(s){gpu}, reading {_READER_CPUS}, "
            f"but the nodes have {present} CPU(s); lower --cpus-per-worker or add a node"
        )
    readers = int((sum(cpus) - workers * size) / _READER_CPUS)
    return workers, readers, int(uses_gpus)
