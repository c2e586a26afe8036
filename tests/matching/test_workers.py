"""Worker processes that share memory."""

import concurrent.futures
import operator
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from helpers import packed

from mtmetrics.matching import workers
from mtmetrics.matching.transport import euclidean_distances, word_mover_distances


def test_workers_read_an_array_where_it_lies_and_its_memory_is_used_again_when_no_view_of_it_is_left(
    processes: Callable[[], None],
) -> None:
    shape = (3, 100_000)
    processes()
    array = workers.shared_empty(shape)
    array[...] = np.arange(array.size).reshape(shape)
    given = [array[:1], array, array[1:], array[:, 1:], np.full(1, 7.0)]
    assert [workers._place(one) is None for one in given] == [False, False, True, True, True]
    for number, found in workers.pool_for(2, 1).solve(operator.getitem, given, range(5))():
        assert np.array_equal(found, given[number])
    memory = array.ctypes.data
    view = array[1:, ::2]
    del array, given
    other = workers.shared_empty(shape)
    assert other.ctypes.data != memory
    del view
    assert workers.shared_empty(shape).ctypes.data == memory


@pytest.mark.parametrize("at", ["start", "first task", "first worker", "later task"])
def test_where_no_process_can_be_started_the_pairs_are_solved_here_with_one_warning(
    at: str, processes: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Executor:
        def __init__(self, *_: object, **__: object) -> None:
            self.fail("start")

        def fail(self, place: str) -> None:
            if at == place:
                raise OSError(30, "Read-only file system")

        def submit(self, function: Callable, *_: object) -> concurrent.futures.Future:
            self.fail("first task" if function is os.getpid else "later task")
            future: concurrent.futures.Future = concurrent.futures.Future()
            if at == "first worker":
                future.set_exception(RuntimeError("can't start new thread"))
            else:
                future.set_result(1)
            return future

    monkeypatch.setattr("joblib.externals.loky.ProcessPoolExecutor", Executor)
    monkeypatch.setattr(workers, "_pools", {})
    sides = [packed([np.arange(6.0).reshape(3, 2) + i, np.ones((2, 2)) * i]) for i in (1, 2)]
    with pytest.warns(UserWarning, match="solved one after the other") as warned:
        shared = [word_mover_distances(*sides, euclidean_distances, workers=2) for _ in range(3)]
    assert [str(warning.message)[:39] for warning in warned] == [
        "worker processes cannot be started here"
    ]
    alone = word_mover_distances(*sides, euclidean_distances, workers=1)
    assert all(np.array_equal(values, alone) for values in shared)


def test_the_end_of_a_program_that_has_workers_is_silent() -> None:
    started = (
        "workers.pool_for(2, workers._WORTH + 1); "
        "next(iter(workers._pools.values())).started.result()"
    )
    program = f"import torch\nfrom mtmetrics.matching import transport, workers\n{started}\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
