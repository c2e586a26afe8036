"""Worker processes for what several threads cannot share, since it holds the interpreter's lock.

They are those of joblib's loky; that joblib itself hands the arrays over, by files that it maps,
was tried: 8,600 pairs of 22 tokens a second, where memory that the workers share has 34,000."""

import atexit
import collections
import contextlib
import functools
import importlib
import itertools
import math
import multiprocessing
import os
import signal
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mtmetrics.checks import warn
from mtmetrics.errors import MTMetricsError

# Pairs that a process solves by itself before it starts workers: a start costs as much as they do.
_WORTH = 16_384
_IDLE_SECONDS = 30.0
# Calls whose pairs wait at the workers; their vectors take memory.
_CALLS = 2
# Arrays of a call: vectors and masses of both sides.
_ARRAYS = 4
# Shared memory that is free is kept for arrays of at least half its size.
_SPARE = 2
_LEFT_OUT = {
    "POT_BACKEND_DISABLE_PYTORCH": "1",
    "POT_BACKEND_DISABLE_JAX": "1",
    "POT_BACKEND_DISABLE_CUPY": "1",
    "POT_BACKEND_DISABLE_TENSORFLOW": "1",
}

# None stands for workers that could not be started.
_pools: dict[tuple[int, int], "Pool | None"] = {}
# An executor that is collected later, while modules vanish, calls what is gone already, and Python
# prints a traceback.
atexit.register(_pools.clear)
_solved = 0


def pool_for(workers: int, pairs: int) -> "Pool | None":
    """So many worker processes to solve this number of pairs, or None where they are better solved
    here: where there was not enough work so far, while the first worker starts, in a process that
    may have no children, on systems other than Linux, and where no process can be started, of which
    a warning tells once.

    The processes do not import the caller's main module, and end after a time without work, or with
    the process that started them."""
    global _solved
    _solved += pairs
    if (
        _solved <= _WORTH
        or multiprocessing.current_process().daemon
        or not hasattr(os, "memfd_create")
    ):
        return None
    key = os.getpid(), workers  # the pool of a forked process is its parent's
    if key not in _pools:
        _pools[key] = _started_pool(workers)
    pool = _pools[key]
    if pool is None or not pool.started.done():
        return None
    problem = pool.started.exception()
    if problem is not None:
        _give_up(pool, problem)
        return None
    return pool


def _give_up(pool: "Pool", problem: BaseException) -> None:
    """Does without workers from now on, and warns."""
    for key in [key for key, one in _pools.items() if one is pool]:
        _pools[key] = None
    _warn_of_no_workers(problem)


def _started_pool(workers: int) -> "Pool | None":
    """Worker processes that begin to start; None where the system does not let them, as without
    shared memory or beyond its limits."""
    try:
        return Pool(workers)
    except (OSError, RuntimeError, ImportError) as error:
        _warn_of_no_workers(error)
        return None


def _warn_of_no_workers(problem: BaseException) -> None:
    reason = (str(problem).splitlines() or [type(problem).__name__])[0]
    what = (
        f"worker processes cannot be started here ({reason}); transport problems are solved one "
        "after the other"
    )
    warn(f"{what}, which takes longer; --workers 1 asks for no such processes")


class Pool:
    """Worker processes that read the vectors of pairs from memory that they share with this
    process."""

    def __init__(self, workers: int) -> None:
        # Where there is no shared memory joblib says so when it is imported, and
        # `_warn_of_no_workers` does.
        warnings.filterwarnings(
            "ignore", message=".*joblib will operate in serial mode", category=UserWarning
        )
        from joblib.externals.loky import ProcessPoolExecutor

        # Workers may end for want of work just when there is some again; others take their place.
        warnings.filterwarnings(
            "ignore", message="A worker stopped while some jobs", category=UserWarning
        )
        options = {"env": {**_LEFT_OUT, "OMP_NUM_THREADS": "1"}, "timeout": _IDLE_SECONDS}
        self.executor = ProcessPoolExecutor(workers, initializer=_prepare_worker, **options)
        self.started = self.executor.submit(os.getpid)
        self._begun: collections.deque[_Begun] = collections.deque()

    def solve(
        self, function: Callable[..., Any], arrays: Sequence[np.ndarray], tasks: Iterable[Any]
    ) -> "Callable[[], list[tuple[Any, Any]]] | None":
        """Has workers call ``function(arrays, task)`` for each task; what it returns waits for them
        and gives each task with its result. Arrays that are not `shared_empty` are copied; None
        where there is too little memory for that, or no worker can be started.

        Raises:
            MTMetricsError: a worker was killed. What is returned raises that too, and whatever the
                function raised.
        """
        with self._told_of_death():
            while len(self._begun) >= _CALLS:
                self._begun[0]()
            shared = [array if _place(array) else _shared_copy(array) for array in arrays]
            places = [_place(array) for array in shared]
            if None in places:
                return None
            try:
                futures = [
                    (task, self.executor.submit(_call, function, places, task)) for task in tasks
                ]
            except OSError as error:  # workers that ended for want of work cannot be started again
                _give_up(self, error)
                return None
        begun = _Begun(self, shared, futures)
        self._begun.append(begun)
        return begun

    def end(self, begun: "_Begun") -> list[tuple[Any, Any]]:
        """Waits for the results of a call, whose memory is free then."""
        if begun in self._begun:  # a call that failed may be waited for twice
            self._begun.remove(begun)
        with self._told_of_death():
            results = [(task, future.result()) for task, future in begun.futures]
        begun.arrays.clear()
        return results

    @contextlib.contextmanager
    def _told_of_death(self) -> Iterator[None]:
        from joblib.externals.loky import BrokenProcessPool

        try:
            yield
        except BrokenProcessPool as error:
            for key in [key for key, pool in _pools.items() if pool is self]:
                del _pools[key]
            what = (
                "a worker process that solved transport problems was killed (often because "
                "memory ran out)"
            )
            raise MTMetricsError(
                f"{what}; run again, with --workers 1 to do without such processes"
            ) from error


class _Begun:
    """The results of a call, waited for once; its arrays stay where workers read them until
    then."""

    def __init__(
        self, pool: Pool, arrays: list[np.ndarray], futures: list[tuple[Any, Any]]
    ) -> None:
        self.pool, self.arrays, self.futures = pool, arrays, futures
        self._results: list[tuple[Any, Any]] | None = None

    def __call__(self) -> list[tuple[Any, Any]]:
        if self._results is None:
            self._results = self.pool.end(self)
        return self._results


class _Memory:
    """Memory that workers can map; it vanishes with this process, however that ends."""

    _numbers = itertools.count()

    def __init__(self, size: int) -> None:
        file = os.memfd_create("mtmetrics")
        weakref.finalize(self, os.close, file)
        os.posix_fallocate(file, 0, size)
        # The number tells a worker that this is not what it mapped under that path before.
        self.name = f"/proc/{os.getpid()}/fd/{file}", next(self._numbers)
        self.bytes = np.memmap(self.name[0], dtype=np.uint8, mode="r+")
        self.first = self.bytes.ctypes.data


class _Memories:
    """The shared memory of one process: what arrays lie in, and some that is free, since new memory
    is slow."""

    def __init__(self) -> None:
        self.used: dict[int, _Memory] = {}
        self.free: list[_Memory] = []

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array that fills the beginning of some memory, which is free again when no view of the
        array is left."""
        size = max(1, math.prod(shape) * dtype.itemsize)
        memory = self._fitting(size) or _Memory(size)
        owner = memory.bytes[:size].view(np.ndarray)
        self.used[memory.first] = memory
        weakref.finalize(owner, self._release, memory).atexit = False
        return owner[: math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)

    def _fitting(self, size: int) -> _Memory | None:
        fitting = [memory for memory in self.free if size <= len(memory.bytes) <= _SPARE * size]
        for memory in sorted(fitting, key=lambda memory: len(memory.bytes)):
            with contextlib.suppress(ValueError):  # another thread was faster
                self.free.remove(memory)
                return memory
        return None

    def _release(self, memory: _Memory) -> None:
        del self.used[memory.first]
        self.free.append(memory)
        del self.free[: -_ARRAYS * _CALLS]


@functools.lru_cache(maxsize=1)
def _memories(process: int) -> _Memories:
    """Those of this process; a forked one must not write where its parent does."""
    return _Memories()


def shared_empty(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """As `numpy.empty`, but where worker processes were started the array lies in memory that they
    can map, if there is enough, so that `Pool.solve` need not copy it."""
    if all(process != os.getpid() or pool is None for (process, _), pool in _pools.items()):
        return np.empty(shape, dtype)
    try:
        return _memories(os.getpid()).empty(shape, np.dtype(dtype))
    except OSError:
        return np.empty(shape, dtype)


def _shared_copy(array: np.ndarray) -> np.ndarray:
    copy = shared_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def _place(array: np.ndarray) -> tuple[Any, ...] | None:
    """How a worker finds an array: the name of its memory, type and shape. None where the array is
    no shared memory, or does not begin where that begins."""
    memory = _memories(os.getpid()).used.get(array.ctypes.data)
    if memory is None or not array.flags.c_contiguous:
        return None
    return memory.name, array.dtype.str, array.shape


@functools.lru_cache(maxsize=_ARRAYS * (_CALLS + 1))
def _mapped(path: str, number: int) -> np.ndarray:
    return np.memmap(path, dtype=np.uint8, mode="r")


def _call(function: Callable[..., Any], places: Sequence[tuple[Any, ...]], task: Any) -> Any:
    arrays = []
    for name, dtype, shape in places:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        arrays.append(np.asarray(_mapped(*name))[:size].view(dtype).reshape(shape))
    return function(arrays, task)


def _prepare_worker() -> None:
    """Leaves Ctrl-C to the caller, and loads the solver before there is anything to solve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    importlib.import_module("mtmetrics.matching.pot")
