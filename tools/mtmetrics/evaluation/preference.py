"""What a metric prefers: modified sentences or human references (Sec. 5.1 of Zhao et al., 2020)."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.run import SCORE
from mtmetrics.evaluation.table_styles import markdown, three_decimals
from mtmetrics.inputs import check
from mtmetrics.scorers.base import MetricResult, Scorer

# What batching changes in a float32 score is no preference.
_NOISE = 1e-6


@dataclasses.dataclass(frozen=True)
class Preference:
    """How a metric ranks modified sentences y~ and references y* of the same sources x.

    Attributes:
        modification: what was done to the sentences.
        measure: ``"score"``, or a part of it.
        differences: (n,) ``d(y~, y*; x) = m(x, y~) - m(x, y*)`` (Eq. 1), above 0 where the modified sentence is
            preferred; 0 where the two differ by rounding noise alone.
    """

    modification: str
    measure: str
    differences: np.ndarray

    @property
    def preferred(self) -> float:
        """The share of modified sentences that the metric prefers; for word-by-word translations the W2W statistic (Eq.
        2)."""
        return float((self.differences > 0).mean())

    @property
    def equal(self) -> float:
        """The share of sentences of which the metric prefers neither."""
        return float((self.differences == 0).mean())

    def as_dict(self) -> dict[str, Any]:
        """The statistics and the differences, as plain numbers."""
        return {
            "modification": self.modification,
            "measure": self.measure,
            "preferred": self.preferred,
            "equal": self.equal,
            "mean": float(self.differences.mean()),
            "median": float(np.median(self.differences)),
            "differences": self.differences.tolist(),
        }


def preferences(
    scorer: Scorer, sources: Sequence[str], references: Sequence[str], modified: Mapping[str, Sequence[str]]
) -> tuple[list[Preference], MetricResult]:
    """Compares modified sentences with the references.

    Everything is scored in one call, so that metrics that scale their scores by the extremes of a call put all on one
    scale.

    Args:
        scorer: a metric that compares translations with the source.
        sources: n source segments.
        references: their n human translations.
        modified: modification -> n sentences.

    Returns:
        One preference per modification and measure (the score, then its parts), and the scores of all texts.

    Raises:
        InputError: the metric compares with references, there is no modification, or the columns are empty or of
            unequal length.
    """
    if scorer.compares != "sources":
        raise InputError(
            "preferences: the metric compares with references, which would be compared with themselves; use a reference-free one"
        )
    if not modified:
        raise InputError("modified: empty; there is nothing to compare the references with")
    columns = check(sources=sources, references=references, **modified)
    texts = columns[1:]
    # A source and all its translations stand together, so that it is encoded once.
    result = scorer.score(
        [source for source in columns[0] for _ in texts],
        [text for row in zip(*texts, strict=True) for text in row],
    )
    found = []
    measures = {SCORE: result.segments, **result.parts}
    for number, modification in enumerate(modified, 1):
        for measure, values in measures.items():
            of_texts = values.reshape(-1, len(texts))
            differences = of_texts[:, number] - of_texts[:, 0]
            found.append(Preference(modification, measure, np.where(abs(differences) <= _NOISE, 0.0, differences)))
    return found, result


def preference_table(found: Sequence[Preference]) -> str:
    """The statistics as a Markdown table, three decimals."""
    rows = [["modification", "measure", "n", "preferred", "equal", "mean d", "median d"]]
    for preference in found:
        values = (
            preference.preferred,
            preference.equal,
            preference.differences.mean(),
            np.median(preference.differences),
        )
        rows.append(
            [
                preference.modification,
                preference.measure,
                str(len(preference.differences)),
                *map(three_decimals, values),
            ]
        )
    return markdown(rows, range(2, 7))
