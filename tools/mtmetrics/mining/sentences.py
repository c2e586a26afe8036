"""Mines parallel sentences by the ratio margin of sentence vectors (Artetxe and Schwenk, 2019)."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from mtmetrics.inputs import positive
from mtmetrics.mining.neighbours import Wrap, blocks, nearest
from mtmetrics.mining.pairs import MinedPairs, select
from mtmetrics.mining.text import distinct_sentences
from mtmetrics.models.packed import Encoder

_SENTENCES_PER_BLOCK = 4096


class Margins(NamedTuple):
    """For each of N sentences the (N,) int64 number of its best partner and the (N,) float64 margin of the two."""

    targets: np.ndarray
    margins: np.ndarray


def mine_sentences(
    sources: Iterable[str],
    targets: Iterable[str],
    encoder: Encoder,
    *,
    k: int = 5,
    limit: int = 10**5,
    wrap: Wrap = iter,
) -> MinedPairs:
    """Pairs of the highest ratio margin (Sec. 3.2 of Belouadi and Eger, 2023); a score is a margin, around 1.

    Args:
        sources: sentences of the source language; blank and repeated ones are left out.
        targets: sentences of the target language, alike.
        encoder: gives one vector per text.
        k: neighbours on either side; all sentences where there are fewer.
        limit: pairs to keep.
        wrap: wraps the iteration over blocks of sentences, for a progress bar.

    Raises:
        InputError: a side is empty, or `k` or `limit` is below 1.
    """
    positive("limit", limit)
    texts = [distinct_sentences(side) for side in (sources, targets)]
    vectors = []
    for side in texts:
        encoded = [encoder.encode(side[block]).vectors for block in blocks(len(side), _SENTENCES_PER_BLOCK, wrap)]
        vectors.append(np.concatenate(encoded))
    found = ratio_margins(*vectors, k)
    return select(found.margins, found.targets, *texts, limit)


def ratio_margins(sources: np.ndarray, targets: np.ndarray, k: int = 5) -> Margins:
    """The best partner of each of N sources among its k nearest of M targets (Eq. 5 of Belouadi and Eger, 2023).

    ``margin(x, y) = cos(x, y) / (sum_z cos(x, z) / 2k + sum_z cos(y, z) / 2k)``, z over the k nearest of the other
    language; both sides are (N, d) and (M, d) sentence vectors.
    """
    forward = nearest(sources, targets, k, measure="cosine")
    around = nearest(targets, sources, k, measure="cosine").values.mean(axis=1)
    margins = 2.0 * forward.values / (forward.values.mean(axis=1)[:, None] + around[forward.rows])
    best = np.arange(len(margins)), margins.argmax(axis=1)
    return Margins(forward.rows[best], margins[best])
