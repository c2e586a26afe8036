"""Pairs of texts: masses of their tokens, the loops over them, and what needs no matching."""

import functools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import ThreadpoolController

from mtmetrics.models.packed import PackedTokens

_PAIRS_PER_TASK = 64


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
    pairs = np.flatnonzero(wanted)
    x_mass, y_mass = masses(first), masses(second)
    values = np.full((2, len(wanted)), np.nan)

    def run(task: int) -> None:
        for pair in pairs[task : task + _PAIRS_PER_TASK]:
            x, y = first.rows(first.index[pair]), second.rows(second.index[pair])
            values[:, pair] = compute(first.vectors[x], x_mass[x], second.vectors[y], y_mass[y])

    run_tasks(run, range(0, len(pairs), _PAIRS_PER_TASK), threads)
    return values


def run_tasks(run: Callable[[int], None], tasks: Iterable[int], threads: int) -> None:
    """Calls ``run(task)`` for each task, in a number of threads.

    The linear algebra library gets one thread each: the products are too small to share out.
    """
    with _linear_algebra().limit(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
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
    filled = both_filled(sources, targets, lambda side: np.ones(len(side.word_positions)))
    return np.where(filled, np.linalg.norm(means[0] - means[1], axis=1), np.nan)
