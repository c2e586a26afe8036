"""Worker processes for what several threads cannot share, since it holds the interpreter's lock."""

import collections
import contextlib
import importlib.util
import multiprocessing
import os
import signal
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from mtmetrics.errors import MTMetricsError

# Pairs of a call that are worth sharing, and such pairs that a process solves by itself before it starts workers: a
# start costs as much as they do.
_LEAST, _WORTH = 512, 16_384
_IDLE_SECONDS = 30.0
_TASKS_PER_WORKER = 4
# The solver's package would import these, and they take seconds and hundreds of megabytes in each worker.
_LEFT_OUT = {f"POT_BACKEND_DISABLE_{name}": "1" for name in ("PYTORCH", "JAX", "CUPY", "TENSORFLOW")}
Result = TypeVar("Result")
_pools: dict[tuple[int, int], Any] = {}
_solved = 0


class Later(Generic[Result]):
    """What worker processes may still be computing; a call waits for it. `ready` says whether it is there already."""

    def __init__(self, finish: Callable[[], Result], *, ready: bool) -> None:
        self._finish, self.ready = finish, ready

    def __call__(self) -> Result:
        return self._finish()


def pool_for(workers: int, pairs: int) -> Any:
    """The executor of so many worker processes to solve this number of pairs, or None where they are better solved
    here: with one worker, where they are few or there was not enough work so far, or in a process that may have no
    children.

    The processes are started in the background, do not import the caller's main module, and end after a time without
    work, or with the process that started them.
    """
    global _solved
    if workers == 1 or pairs < _LEAST:
        return None
    _solved += pairs
    if _solved <= _WORTH or multiprocessing.current_process().daemon:
        return None
    key = os.getpid(), workers  # the pool of a forked process is its parent's
    if key not in _pools:
        from joblib.externals.loky import ProcessPoolExecutor

        options = {"env": {**_LEFT_OUT, "OMP_NUM_THREADS": "1"}, "timeout": _IDLE_SECONDS}
        new = ProcessPoolExecutor(workers, initializer=_prepare_worker, **options)
        _pools[key] = new, new.submit(os.getpid)
    pool, started = _pools[key]
    return pool if started.done() else None


def _prepare_worker() -> None:
    """Leaves Ctrl-C to the caller, and loads the solver without all that its package imports: 0.4 seconds and 70 MB
    instead of 2.5 and 210."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    [folder] = importlib.util.find_spec("ot").submodule_search_locations
    for name, place in (("ot", folder), ("ot.lp", os.path.join(folder, "lp"))):
        sys.modules[name] = package = types.ModuleType(name)
        package.__path__ = [place]
    importlib.import_module("ot.lp.emd_wrap")


def submitted(
    pool: Any, workers: int, function: Callable[..., Any], tasks: Iterable[tuple[Any, tuple[Any, ...]]]
) -> Callable[[], Iterator[tuple[Any, Any]]]:
    """Has a pool call ``function(*arguments)`` for each (name, arguments), a few per worker ahead; what it returns
    waits for the rest and yields each name with its result.

    Raises:
        MTMetricsError: what the function raised, also when what is returned is called; or a worker was killed.
    """
    waiting: collections.deque[tuple[Any, Any]] = collections.deque()
    done = []
    with _told_of_death(workers):
        for name, arguments in tasks:
            if len(waiting) >= _TASKS_PER_WORKER * workers:
                first, future = waiting.popleft()
                done.append((first, future.result()))
            waiting.append((name, pool.submit(function, *arguments)))

    def finish() -> Iterator[tuple[Any, Any]]:
        yield from done
        for name, future in waiting:
            with _told_of_death(workers):
                result = future.result()
            yield name, result

    return finish


@contextlib.contextmanager
def _told_of_death(workers: int) -> Iterator[None]:
    from joblib.externals.loky import BrokenProcessPool

    try:
        yield
    except BrokenProcessPool as error:
        _pools.pop((os.getpid(), workers), None)
        what = "a worker process that solved transport problems was killed (often because memory ran out)"
        raise MTMetricsError(f"{what}; run again, with workers=1 (--workers 1) to do without such processes") from error
