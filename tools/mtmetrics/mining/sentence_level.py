"""Mines parallel sentences by the ratio margin of sentence vectors (Artetxe and Schwenk, 2019)."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from mtmetrics.inputs import positive
from mtmetrics.mining.candidates import nearest
from mtmetrics.mining.selection import MinedPairs, distinct_sentences, select
from mtmetrics.models.packed import Encoder

_SENTENCES_PER_BLOCK = 4096


class Margins(NamedTuple):
    """For each of N sentences the (N,) int64 number of its best partner and the (N,) float64 ratio margin of the
    two."""

    targets: np.ndarray
    margins: np.ndarray


def mine_sentences(
    sources: Iterable[str],
    targets: Iterable[str],
    encoder: Encoder,
    *,
    k: int = 5,
    limit: int = 100_000,
    wrap: Callable[[Iterable[int]], Iterable[int]] = iter,
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
    (source_texts, x), (target_texts, y) = (_encoded(texts, encoder, wrap) for texts in (sources, targets))
    found = ratio_margins(x, y, k)
    return select(found.margins, found.targets, source_texts, target_texts, limit)


def _encoded(
    texts: Iterable[str], encoder: Encoder, wrap: Callable[[Iterable[int]], Iterable[int]]
) -> tuple[list[str], np.ndarray]:
    distinct = distinct_sentences(texts)
    blocks = wrap(range(0, len(distinct), _SENTENCES_PER_BLOCK))
    return distinct, np.concatenate(
        [encoder.encode(distinct[first : first + _SENTENCES_PER_BLOCK]).vectors for first in blocks]
    )


def ratio_margins(sources: np.ndarray, targets: np.ndarray, k: int = 5, *, legacy: bool = False) -> Margins:
    """The best partner of each source among its k nearest targets (Eq. 5 of Belouadi and Eger, 2023).

    ``margin(x, y) = cos(x, y) / (sum_z cos(x, z) / 2k + sum_z cos(y, z) / 2k)``, z over the k nearest of the other
    language.

    Args:
        sources: (N, d) sentence vectors.
        targets: (M, d) sentence vectors.
        k: neighbours on either side; all where there are fewer.
        legacy: as the published code has it: backwards, the mean squared Euclidean distance of unit vectors in the
            place of the mean cosine.

    Raises:
        InputError: `k` is below 1.
    """
    forward = nearest(sources, targets, k, measure="cosine")
    backward = nearest(targets, sources, k, measure="cosine").values
    around = (2.0 - 2.0 * backward if legacy else backward).mean(axis=1)
    margins = 2.0 * forward.values / (forward.values.mean(axis=1)[:, None] + around[forward.rows])
    best = margins.argmax(axis=1)[:, None]
    return Margins(
        np.take_along_axis(forward.rows, best, axis=1)[:, 0], np.take_along_axis(margins, best, axis=1)[:, 0]
    )
