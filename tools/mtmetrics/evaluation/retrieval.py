"""Parallel sentence matching: does a metric find the translation of a sentence among others? (Sec. 4.1 of Belouadi and
Eger, 2023)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.run import SCORE
from mtmetrics.evaluation.table_styles import markdown, three_decimals
from mtmetrics.inputs import check, positive
from mtmetrics.scorers.base import MetricResult, Scorer, chunked

_ROWS_AT_ONCE = 512


class Matching(NamedTuple):
    """How well translations were found.

    Attributes:
        precision: ``"score"``, and each part of the score -> N -> Precision@N.
        result: the scores of all candidates, source by source.
    """

    precision: dict[str, dict[int, float]]
    result: MetricResult


def distinct_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first pair of each source and of each target, since a second right answer would count as a wrong one.

    Raises:
        InputError: fewer than two are left.
    """
    kept = []
    sources: set[str] = set()
    targets: set[str] = set()
    for source, target in pairs:
        if source not in sources and target not in targets:
            kept.append((source, target))
            sources.add(source)
            targets.add(target)
    if len(kept) < 2:
        raise InputError(f"sentence pairs: at least 2 with different sources and targets are needed, got {len(kept)}")
    return kept


def random_candidates(pairs: int, candidates: int, seed: int) -> np.ndarray:
    """For each source the target that belongs to it, and others drawn at random without repetition.

    Args:
        pairs: n, the number of sentence pairs.
        candidates: k, the number of targets that a source is compared with; all where there are not so many.
        seed: of the draw.

    Returns:
        (n, min(k, n)) numbers of targets; the first column holds the right ones.
    """
    others = min(positive("candidates", candidates), pairs) - 1
    generator = np.random.default_rng(seed)
    drawn = np.array([generator.choice(pairs - 1, size=others, replace=False) for _ in range(pairs)], dtype=np.int64)
    own = np.arange(pairs)[:, None]
    # The numbers from the own one up are moved by one, which leaves it out.
    return np.hstack([own, drawn + (drawn >= own)])


def nearest_candidates(sources: np.ndarray, targets: np.ndarray, candidates: int) -> np.ndarray:
    """For each source the target that belongs to it, and the others that are nearest by cosine: the hardest to tell
    apart.

    Args:
        sources: (n, d) sentence vectors, such as the means of token vectors.
        targets: (n, d) sentence vectors in the same space.
        candidates: as `random_candidates`.

    Returns:
        As `random_candidates`. The right target is there wherever it is ranked, so that the metric is judged and not
        the vectors.
    """
    count = min(positive("candidates", candidates), len(sources))
    left, right = (
        vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12) for vectors in (sources, targets)
    )
    found = []
    for first in range(0, len(left), _ROWS_AT_ONCE):
        cosines = left[first : first + _ROWS_AT_ONCE] @ right.T
        rows = np.arange(len(cosines))
        cosines[rows, first + rows] = np.inf
        found.append(np.argsort(-cosines, axis=1, kind="stable")[:, :count])
    return np.concatenate(found)


def match(
    scorer: Scorer,
    sources: Sequence[str],
    targets: Sequence[str],
    candidates: np.ndarray,
    cutoffs: Sequence[int] = (1, 5, 10),
    *,
    wrap: Callable[[Iterator[tuple[str, str]]], Iterable[tuple[str, str]]] = iter,
) -> Matching:
    """Ranks for every source the candidates by the metric's score.

    Args:
        scorer: any metric. One that compares with references is given the source in their place: overlap of characters
            finds names and numbers without knowing a language.
        sources: n sentences.
        targets: their n translations.
        candidates: (n, k) numbers of targets, the right one first, see `random_candidates` and `nearest_candidates`.
            Precision among k candidates is at least what it would be among all.
        cutoffs: each N of Precision@N, below k.
        wrap: wraps the iteration over all n * k pairs of texts, for a progress bar.

    Raises:
        InputError: the columns are empty or of unequal length, or there is no such cutoff.
    """
    most = candidates.shape[1] - 1
    for cutoff in cutoffs:
        if positive("cutoff", cutoff) > most:
            raise InputError(
                f"cutoff {cutoff}: among {most + 1} candidates all translations are found by then; at most {most}"
            )
    checked = check(sources=sources, targets=targets)
    rows = ((checked[0][source], checked[1][target]) for source, row in enumerate(candidates) for target in row)
    [result] = scorer.score_stream(chunked(wrap(rows)))
    measures = {SCORE: result.segments, **result.parts}
    precision = {
        name: {cutoff: precision_at(values.reshape(candidates.shape), cutoff) for cutoff in cutoffs}
        for name, values in measures.items()
    }
    return Matching(precision, result)


def precision_at(scores: np.ndarray, cutoff: int) -> float:
    """Precision@N: the share of sources whose translation is among the N candidates with the highest scores (Guo et
    al., 2018).

    Equal scores are ranked in every order at once: a translation that shares the ranks 1 and 2 with another candidate
    counts 1/2 for N = 1.

    Args:
        scores: (n, k) scores of the candidates, the right one first.
        cutoff: N, at least 1.

    Example:
        >>> precision_at(np.array([[0.9, 0.1, 0.2], [0.5, 0.7, 0.5]]), 1), precision_at(np.array([[0.5, 0.7, 0.5]]), 2)
        (0.5, 0.5)
    """
    right, others = scores[:, :1], scores[:, 1:]
    better, equal = (others > right).sum(1), (others == right).sum(1)
    return float(np.clip((cutoff - better) / (equal + 1), 0.0, 1.0).mean())


def matching_table(precision: Mapping[str, Mapping[int, float]]) -> str:
    """Measure -> N -> Precision@N as a Markdown table, three decimals."""
    cutoffs = list(next(iter(precision.values())))
    rows = [["measure", *(f"P@{cutoff}" for cutoff in cutoffs)]]
    rows += [[name, *(three_decimals(values[cutoff]) for cutoff in cutoffs)] for name, values in precision.items()]
    return markdown(rows, range(1, len(rows[0])))
