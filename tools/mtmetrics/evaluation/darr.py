"""Agreement with relative rankings that follow from direct assessments (WMT's daRR)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.columns import Numbers, codes, complete
from mtmetrics.evaluation.correlation import Correlation
from mtmetrics.evaluation.grouping import pairs_within
from mtmetrics.inputs import number


def darr_kendall(
    scores: Numbers, raw_human: Numbers, items: Sequence[Any] | np.ndarray, threshold: float = 25.0
) -> Correlation:
    """Kendall's tau-like agreement of the WMT metrics tasks (Bojar et al., 2017; Ma et al., 2018): (C - D) / (C + D).

    The pairs are two translations of one item whose raw assessments lie at least `threshold` points apart; other pairs
    count as tied and are left out. C pairs are ordered by the metric as by people; the D others are ordered the other
    way or tied by the metric. All pairs of a set count the same, whatever item they belong to.

    Args:
        scores: (n,) scores of a metric; None leaves the translation out.
        raw_human: (n,) raw assessments of 0 to 100 points (not standardised); None leaves the translation out.
        items: (n,) what was translated; equal labels mean the same source segment.
        threshold: in points, above 0.

    Returns:
        In [-1, 1]; NaN with its reason where no pair is left or a value is not finite.

    Raises:
        InputError: the columns are not vectors of one length, or an impossible threshold.

    Example:
        Of three pairs two are concordant, and the metric ties one:

        >>> darr_kendall([0.1, 0.2, 0.2], [10, 40, 80], ["s1", "s1", "s1"]).value
        0.3333333333333333
    """
    if number("threshold", threshold) <= 0:
        raise InputError(f"threshold {threshold!r}: must be above 0; pairs that people hold for equal have no order")
    columns = complete({"scores": scores, "raw human judgements": raw_human})
    if reason := columns.not_finite:
        return Correlation(np.nan, reason, columns.left_out)
    first, second = pairs_within(codes("items", items, columns.kept))
    metric, people = (column[first] - column[second] for column in columns.values.values())
    ranked = np.abs(people) >= threshold
    pairs = int(ranked.sum())
    if not pairs:
        return Correlation(
            np.nan, f"no two translations of one item were judged at least {threshold:g} points apart", columns.left_out
        )
    concordant = int((np.sign(metric) == np.sign(people))[ranked].sum())
    return Correlation((2 * concordant - pairs) / pairs, None, columns.left_out)
