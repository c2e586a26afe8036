"""The word level: mines parallel sentences by Word Mover's Distance, and takes aligned words from
sentences."""

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mtmetrics import checks
from mtmetrics.errors import InputError
from mtmetrics.matching.align import align_words, word_pair_vectors
from mtmetrics.matching.pairs import masses, run_tasks
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.transport import centroids, cost_matrix, optimal_flow, relaxed_distances
from mtmetrics.mining.kept_pairs import MinedPairs, select
from mtmetrics.mining.neighbours import Index
from mtmetrics.mining.sides import SENTENCES_PER_BLOCK, MapTasks, Side, Wrap, blocks
from mtmetrics.models.packed import PackedTokens
from mtmetrics.models.token_encoder import TokenEncoder

Pairs = Sequence[tuple[str, str]]
Words = tuple[list[str], list[str]]
Languages = tuple[str | None, str | None]
_UNKNOWN: Languages = (None, None)
# Vectors of the words of both sides, row by row.
Vectors = tuple[np.ndarray, np.ndarray]
# Sources whose candidates are in memory together, and sentence pairs that are aligned together.
_SOLVED_AT_ONCE, _ALIGNED_AT_ONCE = 512, 256
_SOURCES_PER_TASK = 64
# Differences of distances up to this one are rounding.
_NOISE = 1e-9


def mine_words(
    sources: Side,
    targets: Side,
    remapping: Remapping | None = None,
    *,
    k: int = 20,
    share: float = 0.05,
    threads: int = 1,
    wrap: Wrap = iter,
    run: MapTasks = map,
) -> MinedPairs:
    """Mines the pairs of the lowest Word Mover's Distance (Sec. 3.1 of Belouadi and Eger, 2023); a
    score is the negative distance, 0 to -4. A target may be in several pairs.

    Args:
        sources: sentences of the source language.
        targets: sentences of the target language.
        remapping: linear map of the source side, or None.
        k: candidates per source; all targets where there are fewer.
        share: pairs to keep, as a share of the sources (at least one pair).
        threads: solver threads.
        wrap: wraps the iteration over blocks of sources, for a progress bar.
        run: does the tasks, one per block of sources, as `map` does; the result does not depend on
            the blocks.

    Returns:
        The pairs; their counts hold also the transport problems that were ``solved`` and
        ``skipped``.

    Raises:
        InputError: `k` is below 1, `share` is not above 0 and at most 1, or no pair is left.
    """
    checks.share("share", share)
    best = find_closest(sources, targets, remapping, k=k, threads=threads, wrap=wrap, run=run)
    limit = max(1, round(share * len(sources.texts)))
    mined = select(-best.distances, best.targets, sources.texts, targets.texts, limit, once=False)
    counts = {**mined.counts, "solved": best.solved, "skipped": best.skipped}
    return dataclasses.replace(mined, counts=counts)


class Closest(NamedTuple):
    """The closest candidate of each of N texts.

    Attributes:
        targets: (N,) int64 number of the candidate; -1 where the text or all candidates are empty.
        distances: (N,) float64 Word Mover's Distance; NaN there.
        solved: transport problems that were solved.
        skipped: transport problems that a lower bound made unnecessary.
    """

    targets: np.ndarray
    distances: np.ndarray
    solved: int
    skipped: int


def _joined(parts: Iterable[Closest]) -> Closest:
    """The closest candidates of several blocks of texts, one after the other."""
    targets, distances, solved, skipped = zip(*parts, strict=True)
    return Closest(np.concatenate(targets), np.concatenate(distances), sum(solved), sum(skipped))


def find_closest(
    sources: Side,
    targets: Side,
    remapping: Remapping | None = None,
    *,
    k: int = 20,
    threads: int = 1,
    wrap: Wrap = iter,
    run: MapTasks = map,
) -> Closest:
    """Finds for each source the closest of the k targets of the nearest centroids; see `mine_words`
    for the arguments."""
    index = Index(targets.centroids, run=run)
    sides = sources.without_texts(), targets.without_texts()
    task = functools.partial(_closest_of_block, *sides, index, remapping, k, threads)
    return _joined(run(task, blocks(len(sources.texts), SENTENCES_PER_BLOCK, wrap)))


def _closest_of_block(
    sources: Side,
    targets: Side,
    index: Index,
    remapping: Remapping | None,
    k: int,
    threads: int,
    block: slice,
) -> Closest:
    mapped = sources.take(block, remapping)
    candidates = index.nearest(centroids(mapped), k).rows
    parts = []
    for part in blocks(len(candidates), _SOLVED_AT_ONCE):
        # Only the words of targets that are a candidate are read.
        numbers, places = np.unique(candidates[part], return_inverse=True)
        best = closest(
            mapped.take(part),
            targets.take(numbers),
            places.reshape(-1, candidates.shape[1]),
            threads=threads,
        )
        best_numbers = np.where(best.targets < 0, -1, numbers[best.targets])
        parts.append(best._replace(targets=best_numbers))
    return _joined(parts)


def closest(
    sources: PackedTokens,
    targets: PackedTokens,
    candidates: np.ndarray,
    *,
    threads: int = 1,
) -> Closest:
    """Finds for each of N texts the candidate of the lowest Word Mover's Distance, the first of
    equal ones.

    Candidates are visited by increasing lower bound, until the bound lies above the lowest distance
    found. The result is that of solving them all.

    Args:
        sources: N packed, L2-normalised texts, uniformly weighted.
        targets: the texts that `candidates` counts, alike.
        candidates: (N, k) int64 positions of inputs of `targets`.
        threads: threads that share the texts.
    """
    source_masses, target_masses = masses(sources), masses(targets)
    numbers = np.full(len(candidates), -1)
    distances = np.full(len(candidates), np.nan)
    # Of each source, problems that were solved, and all problems.
    solved, offered = np.zeros((2, len(candidates)), dtype=np.int64)
    texts = targets.index[candidates]

    def find(source: int) -> None:
        """Finds the closest candidate of a source."""
        words = sources.rows(sources.index[source])
        filled = np.flatnonzero(targets.lengths[texts[source]])
        if words.start == words.stop or not len(filled):
            return
        # The words of all candidates stand side by side; those of one are `columns`.
        rows = [targets.rows(text) for text in texts[source, filled]]
        vectors = np.concatenate([targets.vectors[row] for row in rows])
        mass = np.concatenate([target_masses[row] for row in rows])
        ends = np.cumsum([row.stop - row.start for row in rows])
        starts = np.append(0, ends[:-1])
        cost = cost_matrix(sources.vectors[words], vectors, "sqeuclidean")
        bounds = relaxed_distances(cost, source_masses[words], mass, starts)
        source_distances = np.full(len(rows), np.inf)
        for candidate in np.argsort(bounds, kind="stable"):
            # A bound and the solver may differ by rounding where they are equal.
            if bounds[candidate] > source_distances.min() + _NOISE:
                break
            columns = slice(starts[candidate], ends[candidate])
            candidate_cost = np.ascontiguousarray(cost[:, columns])
            flow = optimal_flow(candidate_cost, source_masses[words], mass[columns])
            source_distances[candidate] = flow[1]
            solved[source] += 1
        offered[source] = len(rows)
        best = source_distances.argmin()
        numbers[source] = candidates[source, filled[best]]
        distances[source] = source_distances[best]

    def run(first: int) -> None:
        for source in range(first, min(first + _SOURCES_PER_TASK, len(candidates))):
            find(source)

    run_tasks(run, range(0, len(candidates), _SOURCES_PER_TASK), threads)
    return Closest(numbers, distances, int(solved.sum()), int((offered - solved).sum()))


def vectors_from_sentences(
    pairs: Pairs,
    encoder: TokenEncoder,
    aligner: TokenEncoder,
    languages: Languages = _UNKNOWN,
    *,
    threshold: float = 1e-3,
    wrap: Wrap = iter,
) -> Vectors:
    """Vectors of the words that are aligned in parallel sentences.

    Args:
        pairs: parallel sentences.
        encoder: encoder at the layer to remap.
        aligner: encoder at the layer that aligns; may be the same.
        languages: of the two sides; for encoders that read some languages differently.
        threshold: see `mtmetrics.matching.align.align_pieces`.
        wrap: wraps the iteration over batches, for a progress bar.

    Returns:
        Two (k, d) float32 matrices, one row per aligned word pair.

    Raises:
        InputError: not a single word pair was aligned.
    """
    source_language, target_language = languages
    source_vectors, target_vectors = [], []
    for block in blocks(len(pairs), _ALIGNED_AT_ONCE, wrap):
        sources, targets = ([pair[side] for pair in pairs[block]] for side in (0, 1))
        alignments = align_words(
            aligner.encode(sources, source_language),
            aligner.encode(targets, target_language),
            threshold,
        )
        vectors = word_pair_vectors(
            encoder.encode(sources, source_language),
            encoder.encode(targets, target_language),
            alignments,
        )
        source_vectors.append(vectors[0])
        target_vectors.append(vectors[1])
    if not any(map(len, source_vectors)):
        problem = f"no words could be aligned in {len(pairs)} sentence pairs"
        raise InputError(f"{problem}; check that the two sides are translations")
    return np.concatenate(source_vectors), np.concatenate(target_vectors)


def words_from_sentences(
    pairs: Sequence[Words],
    aligner: TokenEncoder,
    languages: Languages = _UNKNOWN,
    *,
    wrap: Wrap = iter,
) -> list[tuple[str, str]]:
    """The words that are aligned in parallel sentences, given as words, one pair per occurrence."""
    source_language, target_language = languages
    word_pairs = []
    for block in blocks(len(pairs), _ALIGNED_AT_ONCE, wrap):
        sources, targets = ([pair[side] for pair in pairs[block]] for side in (0, 1))
        alignments = align_words(
            aligner.encode_words(sources, source_language),
            aligner.encode_words(targets, target_language),
        )
        for source, target, alignment in zip(sources, targets, alignments, strict=True):
            word_pairs += [(source[i], target[j]) for i, j in alignment]
    return word_pairs


def vectors_from_words(
    pairs: Pairs,
    encoder: TokenEncoder,
    languages: Languages = _UNKNOWN,
) -> Vectors:
    """Vectors of word pairs, each word encoded alone: the mean over its pieces without the special
    tokens.

    Returns:
        Two (k, d) float32 matrices, one row per word pair; pairs of which a side has no pieces are
        left out.

    Raises:
        InputError: no pair is left.
    """
    packed = [encoder.encode([pair[side] for pair in pairs], languages[side]) for side in (0, 1)]
    words = [tokens.select(tokens.word_positions >= 0) for tokens in packed]
    source, target = (tokens.means()[tokens.index] for tokens in words)
    kept = (words[0].lengths[words[0].index] > 0) & (words[1].lengths[words[1].index] > 0)
    if not kept.any():
        raise InputError(f"none of the {len(pairs)} word pairs can be encoded")
    return source[kept], target[kept]
