"""Worker processes for what several threads cannot share, since it holds the interpreter's lock."""

import collections
import contextlib
import functools
import importlib.util
import multiprocessing
import os
import signal
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from mtmetrics.errors import MTMetricsError

# Pairs that a process solves by itself before it starts workers: a start costs as much as they do.
_WORTH = 16_384
_IDLE_SECONDS = 30.0
# Tasks of a call that wait at each worker, and memory for those of two calls; it takes matrices of float64.
_TASKS_PER_WORKER = 3
CELLS_PER_TASK = 2**17
_LEFT_OUT = {
    "POT_BACKEND_DISABLE_PYTORCH": "1",
    "POT_BACKEND_DISABLE_JAX": "1",
    "POT_BACKEND_DISABLE_CUPY": "1",
    "POT_BACKEND_DISABLE_TENSORFLOW": "1",
}

Result = TypeVar("Result")
_pools: dict[tuple[int, int], "Pool"] = {}
_solved = 0


def pool_for(workers: int, pairs: int) -> "Pool | None":
    """So many worker processes to solve this number of pairs, or None where they are better solved here: where there
    was not enough work so far, while the first worker starts, or in a process that may have no children.

    The processes do not import the caller's main module, and end after a time without work, or with the process that
    started them.
    """
    global _solved
    _solved += pairs
    if _solved <= _WORTH or multiprocessing.current_process().daemon:
        return None
    key = os.getpid(), workers  # the pool of a forked process is its parent's
    pool = _pools[key] = _pools.get(key) or Pool(workers)
    return pool if pool.started.done() else None


class Pool:
    """Worker processes, and memory that they share with this one, so that matrices need not go through pipes."""

    def __init__(self, workers: int) -> None:
        from joblib.externals.loky import ProcessPoolExecutor

        options = {"env": {**_LEFT_OUT, "OMP_NUM_THREADS": "1"}, "timeout": _IDLE_SECONDS}
        self.executor = ProcessPoolExecutor(workers, initializer=_prepare_worker, **options)
        self.started = self.executor.submit(os.getpid)
        self._ahead = _TASKS_PER_WORKER * workers
        self._free: list[int] = []
        with contextlib.suppress(OSError, AttributeError):  # too little memory, or another system: pipes will do
            # Never closed, since its number names the memory; it vanishes with this process, however that ends.
            memory = os.memfd_create("mtmetrics")
            os.posix_fallocate(memory, 0, 2 * self._ahead * CELLS_PER_TASK * 8)
            self._path = f"/proc/{os.getpid()}/fd/{memory}"
            self._free = list(range(2 * self._ahead))

    def solve(
        self, function: Callable[..., Any], tasks: Iterable[tuple[Any, np.ndarray, tuple[Any, ...]]]
    ) -> Callable[[], Iterator[tuple[Any, Any]]]:
        """Has workers call ``function(array, *arguments)`` for each (name, array, arguments), a few ahead; what it
        returns waits for the rest and yields each name with its result.

        Raises:
            MTMetricsError: what the function raised, also when what is returned is called; or a worker was killed.
        """
        waiting: collections.deque[tuple[Any, Any, int | None]] = collections.deque()
        done = []
        for name, array, arguments in tasks:
            if len(waiting) >= self._ahead:
                done.append(self._result(*waiting.popleft()))
            slot = self._free.pop() if self._free and array.size <= CELLS_PER_TASK else None
            given: Any = array
            if slot is not None:
                given = self._path, slot, array.dtype.str, array.size
                _shared(*given)[:] = array
            with self._told_of_death():
                waiting.append((name, self.executor.submit(_call, function, given, *arguments), slot))

        def finish() -> Iterator[tuple[Any, Any]]:
            yield from done
            while waiting:
                yield self._result(*waiting.popleft())

        return finish

    def _result(self, name: Any, future: Any, slot: int | None) -> tuple[Any, Any]:
        with self._told_of_death():
            result = future.result()
        if slot is not None:
            self._free.append(slot)
        return name, result

    @contextlib.contextmanager
    def _told_of_death(self) -> Iterator[None]:
        from joblib.externals.loky import BrokenProcessPool

        try:
            yield
        except BrokenProcessPool as error:
            for key in [key for key, pool in _pools.items() if pool is self]:
                del _pools[key]
            what = "a worker process that solved transport problems was killed (often because memory ran out)"
            raise MTMetricsError(f"{what}; run again, with --workers 1 to do without such processes") from error


@functools.lru_cache(maxsize=4)
def _opened(path: str) -> np.ndarray:
    return np.memmap(path, dtype=np.uint8, mode="r+")


def _shared(path: str, slot: int, dtype: str, size: int) -> np.ndarray:
    """An array in shared memory."""
    first = slot * CELLS_PER_TASK * 8
    return _opened(path)[first : first + size * np.dtype(dtype).itemsize].view(dtype)


def _call(function: Callable[..., Result], given: Any, *arguments: Any) -> Result:
    return function(_shared(*given) if isinstance(given, tuple) else given, *arguments)


def _prepare_worker() -> None:
    """Leaves Ctrl-C to the caller, and loads the solver without all that its package imports: 0.4 seconds and 70 MB
    instead of 2.5 and 210."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    [folder] = importlib.util.find_spec("ot").submodule_search_locations
    for name, place in (("ot", folder), ("ot.lp", os.path.join(folder, "lp"))):
        sys.modules[name] = package = types.ModuleType(name)
        package.__path__ = [place]
    importlib.import_module("ot.lp.emd_wrap")
