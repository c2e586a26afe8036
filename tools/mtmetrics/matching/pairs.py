"""Pairs of texts: masses of their tokens, one loop over them on several threads, and what needs no matching."""

import functools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import ThreadpoolController

from mtmetrics.models.packed import PackedTokens

_PAIRS_PER_TASK = 64


def text_sums(tokens: PackedTokens, values: np.ndarray) -> np.ndarray:
    """(S,) sums of (T,) float64 values over the tokens of each text; 0 for a text without tokens."""
    if not len(tokens.lengths):
        return np.zeros(0)
    sums = np.add.reduceat(np.append(values, 0.0), tokens.offsets[:-1])
    return np.where(tokens.lengths > 0, sums, 0.0)


def masses(tokens: PackedTokens) -> np.ndarray:
    """(T,) weights divided by their sum over the text; NaN in a text whose weights are all 0."""
    totals = text_sums(tokens, tokens.weights)
    return tokens.weights / np.repeat(np.where(totals > 0, totals, np.nan), tokens.lengths)


def for_each_pair(
    work: Callable[[int, slice, slice], None],
    sources: PackedTokens,
    targets: PackedTokens,
    wanted: np.ndarray,
    threads: int,
) -> None:
    """Calls ``work(pair, source_rows, target_rows)``, in several threads, for the (N,) wanted ones of N pairs of
    texts."""
    numbers = np.flatnonzero(wanted)
    rows = [side.offsets[side.index[numbers] + end].tolist() for side in (sources, targets) for end in (0, 1)]
    pairs = list(zip(numbers.tolist(), *rows, strict=True))

    def run(first: int) -> None:
        for pair, x, x_end, y, y_end in pairs[first : first + _PAIRS_PER_TASK]:
            work(pair, slice(x, x_end), slice(y, y_end))

    run_tasks(run, range(0, len(pairs), _PAIRS_PER_TASK), threads)


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
    """(N,) float64 cosines of the rows of two (N, d) matrices: the sentence semantic similarity of SentSim (Song et
    al., 2021, Eq. 6). NaN where a row is zero, as the mean of no token vectors is."""
    first, second = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = np.einsum("ij,ij->i", first, second)
    return np.divide(products, lengths, out=np.full(len(products), np.nan), where=lengths > 0)


def sentence_mover_distances(sources: PackedTokens, targets: PackedTokens) -> np.ndarray:
    """(N,) Euclidean distances of the mean token vectors of pairs of texts (Song et al., 2021, Eq. 9); NaN for empty
    sides.

    Args:
        sources: packed tokens as they were encoded, special tokens left out as in the published code.
        targets: the other side; input i is paired with input i of `sources`.
    """
    means = [side.means().astype(np.float64)[side.index] for side in (sources, targets)]
    filled = (sources.lengths > 0)[sources.index] & (targets.lengths > 0)[targets.index]
    return np.where(filled, np.linalg.norm(means[0] - means[1], axis=1), np.nan)
