"""Mines parallel sentences by the ratio margin of sentence vectors (Artetxe and Schwenk, 2019)."""

import functools
from typing import NamedTuple

import numpy as np

from mtmetrics.checks import positive
from mtmetrics.mining.kept_pairs import MinedPairs, select
from mtmetrics.mining.neighbours import Index, Neighbours, joined
from mtmetrics.mining.sides import SENTENCES_PER_BLOCK, MapTasks, Rows, Side, Wrap, blocks


class Margins(NamedTuple):
    """For each of N sentences the (N,) int64 number of its best partner and the (N,) float64 margin
    of the two."""

    targets: np.ndarray
    margins: np.ndarray


def mine_sentences(
    sources: Side,
    targets: Side,
    *,
    k: int = 5,
    limit: int = 10**5,
    wrap: Wrap = iter,
    run: MapTasks = map,
) -> MinedPairs:
    """Mines the pairs of the highest ratio margin (Sec. 3.2 of Belouadi and Eger, 2023); a score is a margin,
    around 1.

    Args:
        sources: sentences of the source language.
        targets: sentences of the target language.
        k: neighbours on either side; all sentences where there are fewer.
        limit: pairs to keep.
        wrap: wraps the iteration over blocks of either side, for a progress bar.
        run: does the tasks, one per block, as `map` does; the result does not depend on the blocks.

    Raises:
        InputError: `k` or `limit` is below 1, or no pair is left.
    """
    positive("limit", limit)
    best = ratio_margins(sources.centroids, targets.centroids, k, wrap=wrap, run=run)
    return select(best.margins, best.targets, sources.texts, targets.texts, limit)


def ratio_margins(
    sources: np.ndarray | Rows,
    targets: np.ndarray | Rows,
    k: int = 5,
    *,
    wrap: Wrap = iter,
    run: MapTasks = map,
) -> Margins:
    """The best partner of each of N sources among its k nearest of M targets (Eq. 5 of Belouadi and
    Eger, 2023).

    ``margin(x, y) = cos(x, y) / (sum_z cos(x, z) / 2k + sum_z cos(y, z) / 2k)``, z over the k
    nearest of the other language; both sides are (N, d) and (M, d) sentence vectors."""

    def neighbours(queries: np.ndarray | Rows, base: np.ndarray | Rows) -> Neighbours:
        search = functools.partial(_search, queries, Index(base, measure="cosine", run=run), k)
        return joined(run(search, blocks(len(queries), SENTENCES_PER_BLOCK, wrap)))

    forward = neighbours(sources, targets)
    around = neighbours(targets, sources).values.mean(axis=1)
    margins = 2.0 * forward.values / (forward.values.mean(axis=1)[:, None] + around[forward.rows])
    best = np.arange(len(margins)), margins.argmax(axis=1)
    return Margins(forward.rows[best], margins[best])


def _search(queries: np.ndarray | Rows, index: Index, k: int, block: slice) -> Neighbours:
    return index.nearest(queries[block], k)
