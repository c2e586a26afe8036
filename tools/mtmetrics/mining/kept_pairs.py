"""The choice of mined pairs (no copies, the best ones), and their file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.io.row_writer import write_rows

_LEAST_DIFFERENCE = 0.5


@dataclass(frozen=True)
class MinedPairs:
    """Sentences that seem to translate each other, best first.

    Attributes:
        scores: (P,) float64.
        sources: P sentences.
        targets: P sentences.
        counts: sentences that were searched, and pairs that were left out and kept.
    """

    scores: np.ndarray
    sources: list[str]
    targets: list[str]
    counts: dict[str, int]

    def pairs(self) -> list[tuple[str, str]]:
        """Source and target side by side."""
        return list(zip(self.sources, self.targets, strict=True))

    def write(self, path: str | Path) -> None:
        write_pairs(path, self.pairs(), "mined", self.scores)


def write_pairs(
    path: str | Path,
    pairs: Sequence[tuple[str, str]],
    origin: str,
    scores: Iterable[float] = (),
) -> None:
    """Writes sentences, their translations and scores as JSON Lines, which trainings and `mtmetrics
    remap` read."""
    rows: list[dict[str, str | float]] = [
        {"source": source, "target": target, "origin": origin} for source, target in pairs
    ]
    for row, score in zip(rows, scores, strict=False):
        row["score"] = round(float(score), 6)
    write_rows(path, rows)


def is_copy(source: str, target: str) -> bool:
    """Whether the Levenshtein distance of characters is at most half the longer length, as it is for
    names and untranslated text (Appendix B of Belouadi and Eger, 2023)."""
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.normalized_distance(source, target) <= _LEAST_DIFFERENCE


def select(
    scores: np.ndarray,
    matches: np.ndarray,
    sources: Sequence[str],
    targets: Sequence[str],
    limit: int,
    *,
    once: bool = True,
) -> MinedPairs:
    """Selects the best pairs of N sources and their matches.

    Args:
        scores: (N,) scores; NaN for a source without a match.
        matches: (N,) number of the target of each source.
        sources: N sentences.
        targets: sentences.
        limit: pairs to keep.
        once: keep each target in one pair only. Contrastive training needs that, and there alone
            the paper asks for it (Sec. 4.2 of Belouadi and Eger, 2023).

    Raises:
        InputError: no pair is left.
    """
    kept: list[int] = []
    used: set[int] = set()
    reasons = ("unmatched", "copies", "repeated targets", "beyond the limit")
    counts = {"sources": len(sources), "targets": len(targets), **dict.fromkeys(reasons, 0)}
    for source in np.argsort(-scores, kind="stable").tolist():
        target = int(matches[source])
        if np.isnan(scores[source]):
            counts["unmatched"] += 1
        elif is_copy(sources[source], targets[target]):
            counts["copies"] += 1
        elif once and target in used:
            counts["repeated targets"] += 1
        elif len(kept) == limit:
            counts["beyond the limit"] += 1
        else:
            used.add(target)
            kept.append(source)
    if not kept:
        unmatched = f"{counts['unmatched']} of {len(sources)} sources have no match"
        raise InputError(f"no pairs were mined: {unmatched}, {counts['copies']} are copies")
    return MinedPairs(
        scores=scores[kept],
        sources=[sources[number] for number in kept],
        targets=[targets[int(matches[number])] for number in kept],
        counts={**counts, "kept": len(kept)},
    )
