"""`map` on a Ray cluster, for tasks that are no rows of text, such as blocks of sentences whose
partners are looked for."""

import functools
import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.cluster.block_folder import BlockFolder
from mtmetrics.cluster.engine import Engine, map_blocks
from mtmetrics.io.atomic import make_folder
from mtmetrics.io.checksums import sha256_file
from mtmetrics.io.lines import JsonObject
from mtmetrics.io.row_writer import write_rows
from mtmetrics.io.tables import max_row_count

if TYPE_CHECKING:
    import pyarrow

# A slice of sentences, or the number of the first sentence and the sentences.
Task = slice | tuple[int, list[str]]
Result = tuple[np.ndarray | float | str, ...]
Function = Callable[[Any], Result | None]


class TaskMap:
    """Maps functions over tasks. A function returns a tuple of arrays, numbers and strings, or None
    for an empty tuple.

    Args:
        engine: the cluster.
        folder: where tasks and results are kept, on a disk that all its nodes share. The same calls
            in the same order with the same folder repeat no task that is finished.
        settings: JSON on which the results depend besides the tasks; a folder of a run with other
            settings is refused.
        wrap: called with an iterator over finished tasks and their number as `total`; returns an
            iterator over the same, such as a progress bar.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        settings: JsonObject,
        wrap: Callable[..., Iterable[JsonObject]],
    ) -> None:
        self._engine = engine
        self._folder = folder
        self._settings = settings
        self._wrap = wrap
        self._calls = 0

    def __call__(self, function: Function, tasks: Iterable[Task]) -> Iterator[Result]:
        """Yields the results in the order of the tasks, once all are finished; raises the errors of
        `map_blocks`."""
        folder = self._folder / str(self._calls)
        self._calls += 1
        make_folder(folder)
        file, results = folder / "tasks.jsonl", folder / "results"
        write_rows(file, map(_row, tasks))
        settings = {**self._settings, "tasks": sha256_file(file)}
        worker = functools.partial(_Worker, function)
        blocks = map_blocks(
            worker, str(file), str(results), engine=self._engine, settings=settings, block_rows=1
        )
        for _ in self._wrap(blocks, total=max_row_count(file)):
            pass
        for result in BlockFolder(str(results)).column("result"):
            with np.load(io.BytesIO(result), allow_pickle=False) as stored:
                values = [stored[name] for name in stored.files]
            yield tuple(value if value.ndim else value.item() for value in values)


def _row(task: Task) -> dict[str, object]:
    """Returns a task as a row of JSON Lines."""
    if isinstance(task, slice):
        return {"start": task.start, "stop": task.stop}
    return {"start": task[0], "texts": task[1]}


class _Worker:
    """Calls a function for the task of a block, which has one row; the result is stored as bytes."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def __call__(self, table: "pyarrow.Table") -> tuple["pyarrow.Table", JsonObject]:
        import pyarrow

        [row] = table.to_pylist()
        task = slice(row["start"], row["stop"]) if "stop" in row else (row["start"], row["texts"])
        result = self._function(task) or ()
        stream = io.BytesIO()
        np.savez(stream, *result)
        return pyarrow.table({"result": [stream.getvalue()]}), {}
