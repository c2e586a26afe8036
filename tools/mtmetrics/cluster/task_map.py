"""`map` on a Ray cluster, for tasks that are not rows of text, such as blocks of sentences to find partners for."""

import functools
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.cluster.engine import Engine, map_blocks, written
from mtmetrics.io.atomic import atomic_path, make_folder, sha256_file

if TYPE_CHECKING:
    import pyarrow

Task = slice | tuple[int, list[str]]


class TaskMap:
    """Like `map`, with functions of a task that return a tuple of arrays, numbers and strings, or None.

    Args:
        engine: the cluster.
        folder: where tasks and results are kept, on a disk that all its nodes share. The same calls in the same order
            with the same folder repeat no task that is finished.
        settings: what the results depend on besides the tasks, JSON; the folder of a run with others is refused.
        wrap: wraps the iteration over finished tasks, given their number as `total`, for a progress bar.
    """

    def __init__(
        self, engine: Engine, folder: Path, settings: Mapping[str, Any], wrap: Callable[..., Iterable[Any]]
    ) -> None:
        self._engine, self._folder, self._settings, self._wrap = engine, folder, settings, wrap
        self._calls = 0

    def __call__(
        self, function: Callable[[Any], tuple[Any, ...] | None], tasks: Iterable[Task]
    ) -> Iterator[tuple[Any, ...]]:
        """Yields the results in the order of the tasks, when all are there; raises what `map_blocks` does."""
        place = self._folder / str(self._calls)
        self._calls += 1
        make_folder(place)
        file, results, count = place / "tasks.jsonl", place / "results", 0
        with atomic_path(file) as path, open(path, "w", encoding="utf-8") as stream:
            for task in tasks:
                count += 1
                names = ("start", "stop") if isinstance(task, slice) else ("start", "texts")
                values = (task.start, task.stop) if isinstance(task, slice) else task
                stream.write(json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False) + "\n")
        settings = {**self._settings, "tasks": sha256_file(file)}
        worker = functools.partial(_Worker, function)
        done = map_blocks(worker, str(file), str(results), engine=self._engine, settings=settings, block_rows=1)
        for _ in self._wrap(done, total=count):
            pass
        for result in written(str(results), "result"):
            with np.load(io.BytesIO(result), allow_pickle=False) as stored:
                values = [stored[name] for name in stored.files]
            yield tuple(value if value.ndim else value.item() for value in values)


class _Worker:
    def __init__(self, function: Callable[[Task], tuple[Any, ...] | None]) -> None:
        self._function = function

    def __call__(self, table: "pyarrow.Table") -> tuple["pyarrow.Table", dict[str, Any]]:
        import pyarrow

        [row] = table.to_pylist()
        task = slice(row["start"], row["stop"]) if "stop" in row else (row["start"], row["texts"])
        result = self._function(task) or ()
        stream = io.BytesIO()
        np.savez(stream, *result)
        return pyarrow.table({"result": [stream.getvalue()]}), {}
