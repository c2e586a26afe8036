"""Pairs of texts: masses of their tokens, the loops over them, and what needs no matching."""

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from mtmetrics.matching.workers import pool_for
from mtmetrics.models.packed import PackedTokens

_PAIRS_PER_TASK = 64
# Fewer pairs of a call are not worth sharing.
_LEAST = 512
# Costs of the pairs that a worker is asked for at a time, some hundreds of pairs.
_CELLS_PER_TASK = 2**17

Result = TypeVar("Result")


class Pending(Generic[Result]):
    """What worker processes may still be computing; a call waits for it. `ready` says whether it is
    there already."""

    def __init__(self, finish: Callable[[], Result], *, ready: bool) -> None:
        self._finish, self.ready = finish, ready

    def __call__(self) -> Result:
        return self._finish()


def text_sums(tokens: PackedTokens, values: np.ndarray) -> np.ndarray:
    """(S,) sums of (T,) float64 values over the tokens of each text; 0 for a text without
    tokens."""
    if not len(tokens.lengths):
        return np.zeros(0)
    sums = np.add.reduceat(np.append(values, 0.0), tokens.offsets[:-1])
    return np.where(tokens.lengths > 0, sums, 0.0)


def masses(tokens: PackedTokens) -> np.ndarray:
    """(T,) weights divided by their sum over the text; NaN in a text whose weights are all 0."""
    totals = text_sums(tokens, tokens.weights)
    return tokens.weights / np.repeat(np.where(totals > 0, totals, np.nan), tokens.lengths)


def both_filled(
    first: PackedTokens, second: PackedTokens, counted: Callable[[PackedTokens], np.ndarray]
) -> np.ndarray:
    """(N,) mask of the pairs of texts on both sides of which the (T,) values of `counted` sum to
    more than 0."""
    return np.logical_and(
        *((text_sums(side, counted(side)) > 0)[side.index] for side in (first, second))
    )


def pair_values(
    compute: Callable[..., object],
    first: PackedTokens,
    second: PackedTokens,
    wanted: np.ndarray,
    threads: int,
) -> np.ndarray:
    """(2, N) of what ``compute(vectors, masses, other_vectors, other_masses)``, called in several
    threads, gives for N pairs of texts: two numbers, or one that stands twice; NaN where the (N,)
    mask does not want it."""
    pairs = _places(first, second, wanted)
    x_mass, y_mass = masses(first), masses(second)
    values = np.full((2, len(wanted)), np.nan)

    def run(task: int) -> None:
        for pair, x, x_end, y, y_end in pairs[task : task + _PAIRS_PER_TASK]:
            sides = (
                first.vectors[x:x_end],
                x_mass[x:x_end],
                second.vectors[y:y_end],
                y_mass[y:y_end],
            )
            values[:, pair] = compute(*sides)

    run_tasks(run, range(0, len(pairs), _PAIRS_PER_TASK), threads)
    return values


def solved_pairs(
    solve: Callable[[Sequence[np.ndarray], list[tuple[int, ...]]], list[float]],
    first: PackedTokens,
    second: PackedTokens,
    wanted: np.ndarray,
    workers: int,
) -> Pending[np.ndarray]:
    """The (N,) numbers that `solve` gives for N pairs of texts, in worker processes where these
    pay; NaN where the (N,) mask does not want one.

    Args:
        solve: takes vectors and masses of one side, vectors and masses of the other, and for each
            of several pairs its number and where its rows begin and end on either side; gives a
            number for each pair. Of a module, since it is pickled.
        first: one side of the pairs.
        second: the other side.
        wanted: which pairs have a number.
        workers: processes to share them among; 1 for this one alone.
    """
    arrays = first.vectors, masses(first), second.vectors, masses(second)
    values = np.full(len(wanted), np.nan)
    tasks = _tasks(_places(first, second, wanted))
    count = int(wanted.sum())
    pool = pool_for(workers, count) if workers > 1 and count >= _LEAST else None
    rest = None if pool is None else pool.solve(solve, arrays, tasks)

    def keep(task: list[tuple[int, ...]], found: list[float]) -> None:
        values[[number for number, *_ in task]] = found

    if rest is None:
        with _linear_algebra().limit(limits=1, user_api="blas"):
            for task in tasks:
                keep(task, solve(arrays, task))
        return Pending(lambda: values, ready=True)

    def finish() -> np.ndarray:
        for task, found in rest():
            keep(task, found)
        return values

    return Pending(finish, ready=False)


def _places(first: PackedTokens, second: PackedTokens, wanted: np.ndarray) -> list[tuple[int, ...]]:
    """Of each wanted pair its number, and where its rows begin and end on either side."""
    numbers = np.flatnonzero(wanted)
    rows = [
        side.offsets[side.index[numbers] + end].tolist()
        for side in (first, second)
        for end in (0, 1)
    ]
    return list(zip(numbers.tolist(), *rows, strict=True))


def _tasks(pairs: list[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """Pairs that are solved together."""
    sizes = np.cumsum([(x_end - x) * (y_end - y) for _, x, x_end, y, y_end in pairs])
    full = np.arange(1, sizes[-1] // _CELLS_PER_TASK + 1) * _CELLS_PER_TASK if pairs else sizes
    ends = [0, *np.searchsorted(sizes, full).tolist(), len(pairs)]
    return [part for part in (pairs[a:b] for a, b in itertools.pairwise(ends)) if part]


def run_tasks(run: Callable[[int], None], tasks: Iterable[int], threads: int) -> None:
    """Calls ``run(task)`` for each task, several at a time where there are threads for it.

    The linear algebra library gets one thread each: the products are too small to share out.
    """
    with _linear_algebra().limit(limits=1, user_api="blas"):
        if threads == 1:
            for task in tasks:
                run(task)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(run, tasks))


@functools.cache
def _linear_algebra() -> ThreadpoolController:
    return ThreadpoolController()


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(N,) float64 cosines of the rows of two (N, d) matrices: the sentence semantic similarity of
    SentSim (Song et al., 2021, Eq. 6). NaN where a row is zero, as the mean of no token vectors
    is."""
    first, second = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = np.einsum("ij,ij->i", first, second)
    return np.divide(products, lengths, out=np.full(len(products), np.nan), where=lengths > 0)


def text_cosines(first: PackedTokens, second: PackedTokens) -> np.ndarray:
    """(n,) cosines of the vectors of n pairs of texts."""
    return cosines(first.vectors[first.index], second.vectors[second.index])


def sentence_mover_distances(sources: PackedTokens, targets: PackedTokens) -> np.ndarray:
    """(N,) Euclidean distances of the mean token vectors of pairs of texts (Song et al., 2021, Eq.
    9); NaN for empty sides.

    Args:
        sources: packed tokens as they were encoded, special tokens left out as in the published
            code.
        targets: the other side; input i is paired with input i of `sources`.
    """
    means = [side.means().astype(np.float64)[side.index] for side in (sources, targets)]
    filled = both_filled(sources, targets, lambda side: np.ones(len(side.words)))
    return np.where(filled, np.linalg.norm(means[0] - means[1], axis=1), np.nan)
