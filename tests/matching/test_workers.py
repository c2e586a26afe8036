"""Worker processes that share memory."""

import operator
import subprocess
import sys
from collections.abc import Callable

import numpy as np

from mtmetrics.matching import workers


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


def test_the_end_of_a_program_that_has_workers_is_silent() -> None:
    started = "workers.pool_for(2, workers._WORTH + 1); next(iter(workers._pools.values())).started.result()"
    program = f"import torch\nfrom mtmetrics.matching import transport, workers\n{started}\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
