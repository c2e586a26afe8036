"""Mines parallel sentences by Word Mover's Distance: candidates by centroid distance, exact distances where a bound
allows the best."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.inputs import number
from mtmetrics.maps.remapping import Remapping
from mtmetrics.matching.bounds import centroids, relaxed_distances
from mtmetrics.matching.pairs import masses, run_tasks
from mtmetrics.matching.transport import Distance, cost_matrix, optimal_flow
from mtmetrics.mining.candidates import nearest
from mtmetrics.mining.selection import MinedPairs, select
from mtmetrics.mining.token_store import EncodedSide
from mtmetrics.models.packed import PackedTokens

_SENTENCES_PER_BLOCK = 2048
_SOURCES_PER_TASK = 64
_NOISE = 1e-9


class Closest(NamedTuple):
    """What was found for each of N texts.

    Attributes:
        targets: (N,) int64 number of the closest candidate; -1 where the text or all its candidates are empty.
        distances: (N,) float64 Word Mover's Distances; NaN there.
        solved: transport problems that were solved.
        skipped: candidates that a lower bound ruled out.
    """

    targets: np.ndarray
    distances: np.ndarray
    solved: int
    skipped: int


def mine_words(
    sources: EncodedSide,
    targets: EncodedSide,
    remapping: Remapping | None = None,
    *,
    k: int = 20,
    share: float = 0.05,
    threads: int = 1,
    wrap: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> MinedPairs:
    """Pairs of the lowest Word Mover's Distance (Sec. 3.1 of Belouadi and Eger, 2023); a score is minus a distance, 0
    to -4.

    Args:
        sources: sentences of the source language.
        targets: sentences of the target language.
        remapping: linear map of the source side, or None.
        k: candidates per source; all targets where there are fewer.
        share: pairs to keep, as a share of the sources (at least one pair).
        threads: solver threads.
        wrap: wraps the iteration over blocks of sources, for a progress bar.

    Returns:
        The pairs; their counts hold also the transport problems that were ``solved`` and ``skipped``.

    Raises:
        InputError: `k` is below 1, `share` is not above 0 and at most 1, or no pair is left.
    """
    if not 0.0 < number("share", share) <= 1.0:
        raise InputError(f"share {share!r}: must be above 0 and at most 1")
    found = find_closest(sources, targets, remapping, k=k, threads=threads, wrap=wrap)
    mined = select(
        -found.distances, found.targets, sources.texts, targets.texts, max(1, round(share * len(sources.texts)))
    )
    return dataclasses.replace(mined, counts={**mined.counts, "solved": found.solved, "skipped": found.skipped})


def find_closest(
    sources: EncodedSide,
    targets: EncodedSide,
    remapping: Remapping | None = None,
    *,
    k: int = 20,
    threads: int = 1,
    wrap: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Closest:
    """For each source the target of the lowest Word Mover's Distance among the k of the nearest centroids; options as
    `mine_words`.

    Raises:
        InputError: `k` is below 1.
    """
    candidates = nearest(_centroids(sources, remapping), _centroids(targets, None), k, wrap=wrap).rows
    found = [
        closest(
            _block(sources, first, remapping),
            targets.tokens,
            candidates[first : first + _SENTENCES_PER_BLOCK],
            threads=threads,
        )
        for first in wrap(range(0, len(sources.texts), _SENTENCES_PER_BLOCK))
    ]
    return Closest(
        np.concatenate([block.targets for block in found]),
        np.concatenate([block.distances for block in found]),
        sum(block.solved for block in found),
        sum(block.skipped for block in found),
    )


def closest(
    sources: PackedTokens,
    targets: PackedTokens,
    candidates: np.ndarray,
    *,
    distance: Distance = "sqeuclidean",
    prune: bool = True,
    threads: int = 1,
) -> Closest:
    """For each of N texts the candidate of the lowest Word Mover's Distance; of equal ones that which stands first.

    Candidates are visited by increasing lower bound, until the bound lies above the lowest distance found. The result
    is that of solving them all.

    Args:
        sources: N packed, L2-normalised texts, uniformly weighted.
        targets: the texts that `candidates` counts, alike.
        candidates: (N, k) int64 positions of inputs of `targets`.
        distance: cost of moving a token.
        prune: leave out what a bound rules out; only a comparison wants it otherwise.
        threads: threads that share the texts.
    """
    x_mass, y_mass = masses(sources), masses(targets)
    result = np.full(len(candidates), -1), np.full(len(candidates), np.nan)
    solved = np.zeros(len(candidates), dtype=np.int64)
    offered = np.zeros(len(candidates), dtype=np.int64)
    texts = targets.index[candidates]

    def find(source: int) -> None:
        x = sources.rows(sources.index[source])
        filled = np.flatnonzero(targets.lengths[texts[source]])
        if x.start == x.stop or not len(filled):
            return
        rows = [targets.rows(text) for text in texts[source, filled]]
        vectors = np.concatenate([targets.vectors[row] for row in rows])
        mass = np.concatenate([y_mass[row] for row in rows])
        ends = np.cumsum([row.stop - row.start for row in rows])
        starts = np.append(0, ends[:-1])
        cost = cost_matrix(sources.vectors[x], vectors, distance)
        bounds = relaxed_distances(cost, x_mass[x], mass, starts) if prune else np.zeros(len(rows))
        values = np.full(len(rows), np.inf)
        for candidate in np.argsort(bounds, kind="stable"):
            # A bound and the solver may differ by rounding where they are equal.
            if bounds[candidate] > values.min() + _NOISE:
                break
            columns = slice(starts[candidate], ends[candidate])
            values[candidate] = optimal_flow(np.ascontiguousarray(cost[:, columns]), x_mass[x], mass[columns])[1]
            solved[source] += 1
        offered[source] = len(rows)
        best = values.argmin()
        result[0][source], result[1][source] = candidates[source, filled[best]], values[best]

    def run(first: int) -> None:
        for source in range(first, min(first + _SOURCES_PER_TASK, len(candidates))):
            find(source)

    run_tasks(run, range(0, len(candidates), _SOURCES_PER_TASK), threads)
    return Closest(*result, int(solved.sum()), int((offered - solved).sum()))


def _centroids(side: EncodedSide, remapping: Remapping | None) -> np.ndarray:
    return np.concatenate(
        [centroids(_block(side, first, remapping)) for first in range(0, len(side.texts), _SENTENCES_PER_BLOCK)]
    )


def _block(side: EncodedSide, first: int, remapping: Remapping | None) -> PackedTokens:
    """Some of the sentences, remapped; normalised again, since a map may change lengths."""
    tokens = side.tokens.take(slice(first, first + _SENTENCES_PER_BLOCK))
    return tokens if remapping is None else tokens.with_vectors(remapping.apply).normalized()
