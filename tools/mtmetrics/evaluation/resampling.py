"""How sure the correlation of a metric is, and whether it is higher than that of another, by resampling."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.evaluation.columns import Columns, Numbers, codes, complete
from mtmetrics.evaluation.correlation import COEFFICIENTS, unit, why_undefined
from mtmetrics.evaluation.grouping import members
from mtmetrics.evaluation.samples import sample_correlations
from mtmetrics.evaluation.significance import SEED, PValue, p_value, portions, sign_flips, tails
from mtmetrics.inputs import choice

# Differences of correlations closer than this differ by rounding alone.
_ROUNDING = 1e-12


class CorrelationInterval(NamedTuple):
    """A confidence interval of a correlation.

    Attributes:
        low: lower end, NaN where the correlation is not defined.
        high: upper end, NaN likewise.
        level: share of resamples inside.
        resamples: number of resamples.
        seed: of the draw.
        reason: why the correlation is not defined; None where it is.
        undefined: resamples in which a side is constant; the ends are percentiles of the other resamples.
        left_out: segments with a missing value, which do not count.
    """

    low: float
    high: float
    level: float
    resamples: int
    seed: int
    reason: str | None = None
    undefined: int = 0
    left_out: int = 0


def bootstrap_correlations(
    columns: Sequence[Numbers] | np.ndarray,
    human: Numbers,
    *,
    coefficient: str = "pearson",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = SEED,
) -> list[CorrelationInterval]:
    """Percentile bootstrap intervals (Efron, 1979) of the correlations of several metrics, which share the resamples of
    the segments.

    Args:
        columns: (m, n) scores of m metrics; a segment that one of them lacks is left out for all.
        human: (n,) human judgements; None leaves the segment out.
        coefficient: a key of `COEFFICIENTS`; the cost of Kendall's is quadratic in n.
        resamples: number of resamples.
        level: share of the resampled correlations that an interval holds, between 0 and 1.
        seed: of the draw.

    Returns:
        m intervals.

    Raises:
        InputError: no such coefficient, columns that are not vectors of numbers of one length, or an impossible level.
    """
    choice("coefficient", coefficient, tuple(COEFFICIENTS))
    quantiles = tails(level)
    aligned = complete({"human judgements": human} | {f"scores[{row}]": column for row, column in enumerate(columns)})
    people, *metrics = aligned.values.values()
    reasons = [
        why_undefined(Columns({"scores": scores, "human judgements": people}, aligned.kept)) for scores in metrics
    ]
    drawn: dict[int, list[np.ndarray]] = {row: [] for row, reason in enumerate(reasons) if reason is None}
    for counts in _resamples(resamples, len(people), seed) if drawn else ():
        for row, found in drawn.items():
            found.append(sample_correlations(coefficient, metrics[row], people, counts))
    intervals = []
    for row, reason in enumerate(reasons):
        values = np.concatenate(drawn.get(row, [np.empty(0)]))
        defined = values[~np.isnan(values)]
        low, high = np.quantile(defined, quantiles) if defined.size else (np.nan, np.nan)
        undefined = len(values) - len(defined)
        intervals.append(
            CorrelationInterval(float(low), float(high), level, resamples, seed, reason, undefined, aligned.left_out)
        )
    return intervals


def perm_both(
    scores_a: Numbers,
    scores_b: Numbers,
    human: Numbers,
    *,
    coefficient: str = "pearson",
    groups: Sequence[Any] | np.ndarray | None = None,
    resamples: int = 1000,
    seed: int = SEED,
) -> PValue:
    """PERM-BOTH (Deutsch, Dror and Roth, 2021): is metric A's correlation with people higher than metric B's?

    The scores of each metric are standardised over all segments. In each resample the two metrics' scores change places
    on about half of the segments, each with probability one half, and the difference of the correlations is compared
    with the observed one.

    Args:
        scores_a: (n,) scores of metric A; None leaves the segment out.
        scores_b: (n,) scores of metric B; None leaves the segment out.
        human: (n,) human judgements; None leaves the segment out.
        coefficient: a key of `COEFFICIENTS`; the cost of Kendall's is quadratic in n.
        groups: (n,) labels; the correlations are then means over the groups in which they are defined, as `correlate`
            computes them.
        resamples: number of permutations.
        seed: of the draw.

    Returns:
        One-sided p, (count + 1) / (resamples + 1), where count is the number of permutations with a difference at least
        as large or with a correlation that is not defined; NaN with its reason where the correlation of a metric is not
        defined.

    Raises:
        InputError: no such coefficient, columns that are not vectors of numbers of one length, or a segment without a
            group.
    """
    choice("coefficient", coefficient, tuple(COEFFICIENTS))
    columns = complete({"scores of A": scores_a, "scores of B": scores_b, "human judgements": human})
    if reason := why_undefined(columns):
        return PValue(np.nan, reason, columns.left_out)
    a, b, people = columns.values.values()
    n = len(people)
    labels = np.zeros(n, dtype=np.intp) if groups is None else codes("groups", groups, columns.kept)
    # One pool holds the scores of both metrics: a permutation is a choice of one of the two points of each segment.
    pool, judged = np.concatenate([unit(a), unit(b)]), np.concatenate([people, people])
    parts = [np.concatenate([part, part + n]) for part in members(labels)]

    def lead(swapped: np.ndarray) -> np.ndarray:
        """(k,) A's mean correlation less B's, where `swapped` (k, n) is 1 for segments whose scores change places."""
        chosen = np.concatenate([1 - swapped, swapped], axis=1)
        sides = []
        for counts in (chosen, 1 - chosen):
            found = [sample_correlations(coefficient, pool[part], judged[part], counts[:, part]) for part in parts]
            sides.append(_mean_of_defined(np.array(found)))
        return sides[0] - sides[1]

    observed = lead(np.zeros((1, n)))[0]
    if np.isnan(observed):
        return PValue(np.nan, "the correlation of a metric with people is undefined in each group", columns.left_out)
    smaller = sum(int((lead((1 - flips) / 2) < observed - _ROUNDING).sum()) for flips in sign_flips(resamples, n, seed))
    return PValue(p_value(resamples - smaller, resamples), None, columns.left_out)


def _resamples(resamples: int, n: int, seed: int) -> Iterator[np.ndarray]:
    """How often each of n segments is drawn, (k, n) at a time until there are `resamples` rows."""
    generator = np.random.default_rng(seed)
    for count in portions(resamples, n):
        drawn = generator.integers(n, size=(count, n)) + n * np.arange(count)[:, None]
        yield np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n).astype(np.float64)


def _mean_of_defined(values: np.ndarray) -> np.ndarray:
    """(k,) means over the rows of (groups, k) values that are not NaN; NaN where all are."""
    defined = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(defined, values, 0.0).sum(0) / defined.sum(0)
