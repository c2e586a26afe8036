"""Scores judged segments with a metric and measures how score and parts agree with the human judgements."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import Correlation, mean
from mtmetrics.evaluation.judged import JudgedSegments
from mtmetrics.evaluation.measure import PEARSON, Judgements, Measure
from mtmetrics.evaluation.scored import SCORE, compared_with
from mtmetrics.inputs import InputReport
from mtmetrics.scorers.base import Scorer


@dataclasses.dataclass(frozen=True)
class Agreement:
    """What a metric achieves on one file.

    Attributes:
        file: the file, as the user wrote it.
        lang_pair: such as ``"de-en"``.
        segments: number of judged segments, which the correlations are of.
        correlations: ``"score"``, and each named part of the score -> its correlation with the human judgements.
        ranges: ``"score"``, and each part -> its lowest and highest value among segments without a blank side.
        signature: one line that pins the scores.
        report: counts of unusual segments.
    """

    file: str
    lang_pair: str
    segments: int
    correlations: dict[str, Correlation]
    ranges: dict[str, tuple[float, float]]
    signature: str
    report: InputReport


def judge(scorer: Scorer, segments: JudgedSegments, measure: Measure = PEARSON) -> Agreement:
    """Scores the translations of a file and measures how the result agrees with the human judgements.

    Raises:
        InputError: the metric compares with references, and a segment has none.
    """
    result = scorer.score(compared_with(scorer, segments, scorer.signature), segments.predictions)
    judgements = Judgements.of(segments)
    columns: dict[str, np.ndarray] = {SCORE: result.segments, **result.parts}
    correlations = {name: measure.of(judgements.take(values), judgements) for name, values in columns.items()}
    known = {name: values[~result.empty] for name, values in columns.items()}
    ranges = {name: (float(values.min()), float(values.max())) for name, values in known.items() if len(values)}
    return Agreement(
        segments.file, segments.lang_pair, len(judgements), correlations, ranges, result.signature, result.report
    )


def mean_agreement(agreements: Sequence[Agreement]) -> dict[str, Correlation]:
    """The mean over the files of each correlation; undefined where it is undefined for a file or a file lacks the part.

    Raises:
        InputError: there is no file.
    """
    if not agreements:
        raise InputError("files: none given; there is nothing to average")
    names = dict.fromkeys(name for agreement in agreements for name in agreement.correlations)
    lacking = Correlation(np.nan, "no such part")
    # Numbered, since the same file may be given twice.
    return {
        name: mean(
            {f"{a.lang_pair} (file {i})": a.correlations.get(name, lacking) for i, a in enumerate(agreements, 1)}
        )
        for name in names
    }
