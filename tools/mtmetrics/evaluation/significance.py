"""How sure a score or a correlation is, and whether one is higher than another: intervals and tests."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import (
    COEFFICIENTS,
    Columns,
    Numbers,
    codes,
    complete,
    members,
    pearson,
    sample_correlations,
    unit,
    why_undefined,
)
from mtmetrics.inputs import choice, number, positive

SEED = 12345
# A difference is significant where the p-value of its test is below this.
ALPHA = 0.05
_DRAWN_AT_ONCE = 4_000_000
# Sums closer than this share of their terms differ by rounding alone.
_ROUNDING = 1e-12


class Interval(NamedTuple):
    """A confidence interval: its ends, the share of the resamples inside, their number, and the seed of the draw."""

    low: float
    high: float
    level: float
    resamples: int
    seed: int


class PValue(NamedTuple):
    """In [0, 1], or NaN with the reason why the test is not defined; segments with a missing value are left out."""

    value: float
    reason: str | None = None
    left_out: int = 0

    @property
    def known(self) -> float | None:
        """The value; None where the test is not defined."""
        return self.value if self.reason is None else None


def bootstrap_interval(
    values: np.ndarray | Sequence[float], *, level: float = 0.95, resamples: int = 1000, seed: int = SEED
) -> Interval:
    """Percentile bootstrap interval of a mean (Efron, 1979): segments are drawn with replacement.

    Args:
        values: (n,) scores of segments.
        level: share of the resampled means that the interval holds, between 0 and 1.
        resamples: number of resamples.
        seed: of the draw; the same seed gives the same interval.

    Raises:
        InputError: no or no finite values, or an impossible level.

    Example:
        >>> bootstrap_interval([1.0, 1.0, 1.0])[:2]
        (1.0, 1.0)
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise InputError(f"values: a vector of at least one finite number is needed, got shape {values.shape}")
    low, high = np.quantile(_resampled_means(values, resamples, seed), _tails(level))
    return Interval(float(low), float(high), level, resamples, seed)


def paired_bootstrap(a: Numbers, b: Numbers, *, resamples: int = 1000, seed: int = SEED) -> float:
    """Paired bootstrap (Koehn, 2004): one-sided p, by the share of resamples in which A is not better than B.

    The (n,) scores of A's and B's segments are for the same sources; None on either side leaves the segment out.
    """
    differences = _differences(a, b)
    margin = _ROUNDING * np.abs(differences).mean()
    return _p_value(int((_resampled_means(differences, resamples, seed) <= margin).sum()), resamples)


def paired_permutation(a: Numbers, b: Numbers, *, resamples: int = 1000, seed: int = SEED) -> float:
    """Approximate randomisation (Riezler and Maxwell, 2005): one-sided p that A leads B; columns as `paired_bootstrap`.

    Each permutation swaps the scores of the two systems on about half of the segments.
    """
    differences = _differences(a, b)
    lead = differences.sum() - _ROUNDING * np.abs(differences).sum()
    count = sum(int((flips @ differences >= lead).sum()) for flips in sign_flips(resamples, len(differences), seed))
    return _p_value(count, resamples)


def _p_value(count: int, resamples: int) -> float:
    return (count + 1) / (resamples + 1)  # what was observed counts as a resample itself


def sign_flips(resamples: int, n: int, seed: int) -> Iterator[np.ndarray]:
    """Random signs, (k, n) at a time until there are `resamples` rows: -1 swaps the two scores of a segment."""
    generator = np.random.default_rng(seed)
    for count in _portions(resamples, n):
        yield 1.0 - 2.0 * generator.integers(2, size=(count, n), dtype=np.int8)


def _portions(resamples: int, n: int) -> Iterator[int]:
    """How many resamples of n segments to draw at once, so that a few tens of megabytes hold them."""
    at_once = max(1, _DRAWN_AT_ONCE // n)
    for first in range(0, positive("resamples", resamples), at_once):
        yield min(at_once, resamples - first)


def _tails(level: float) -> tuple[float, float]:
    if not 0.0 < number("level", level) < 1.0:
        raise InputError(f"level {level!r}: must lie between 0 and 1")
    return (1 - level) / 2, (1 + level) / 2


def _resampled_means(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """(resamples,) means of the values, drawn with replacement as often as there are."""
    generator = np.random.default_rng(seed)
    means = []
    for count in _portions(resamples, len(values)):
        total = np.zeros(count)
        # Very long columns are summed up in stretches.
        for begin in range(0, len(values), _DRAWN_AT_ONCE):
            width = min(_DRAWN_AT_ONCE, len(values) - begin)
            total += values[generator.integers(len(values), size=(count, width))].sum(1)
        means.append(total / len(values))
    return np.concatenate(means)


def _differences(a: Numbers, b: Numbers) -> np.ndarray:
    columns = complete({"scores of A": a, "scores of B": b})
    if not columns.kept.any():
        raise InputError("no segment has a score of both systems; there is nothing to compare")
    if reason := columns.not_finite:
        raise InputError(reason)
    return columns.values["scores of A"] - columns.values["scores of B"]


def williams(r12: float, r13: float, r23: float, n: int) -> PValue:
    """Williams' test (1959) of r12 > r13, for correlations that share a variable, as in Graham and Baldwin (2014).

    t = (r12 - r13) sqrt((n - 1) (1 + r23)) / sqrt(2 K (n - 1) / (n - 3) + (r12 + r13)^2 (1 - r23)^3 / 4),
    K = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23, follows Student's t with n - 3 degrees of freedom if they are equal.

    Args:
        r12: Pearson's r of people and metric A.
        r13: of people and metric B.
        r23: of both metrics.
        n: number of segments.

    Returns:
        One-sided p; 0.5 for metrics that agree fully.

    Example:
        >>> round(williams(0.6, 0.4, 0.5, 100).value, 4)
        0.0081
    """
    for name, value in (("r12", r12), ("r13", r13), ("r23", r23)):
        if not -1 <= value <= 1:
            raise InputError(f"{name} {value!r}: a correlation must lie between -1 and 1")
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    if determinant < -1e-6:
        raise InputError(f"r12 {r12!r}, r13 {r13!r} and r23 {r23!r} cannot occur together")
    if positive("n", n) < 4:
        return PValue(np.nan, f"Williams' test needs at least 4 segments, there are {n}")
    if 1 - r23 <= _ROUNDING:
        return PValue(0.5)
    if 1 + r23 <= _ROUNDING:
        return PValue(np.nan, "the metrics are exact opposites, for which Williams' statistic is 0 / 0")
    from scipy.special import stdtr

    spread = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + (r12 + r13) ** 2 / 4 * (1 - r23) ** 3
    with np.errstate(divide="ignore"):  # nothing but the difference of the metrics may explain the judgements
        t = (r12 - r13) * np.sqrt(np.divide((n - 1) * (1 + r23), spread))
    return PValue(float(stdtr(n - 3, -t)))


def williams_test(scores_a: Numbers, scores_b: Numbers, human: Numbers) -> PValue:
    """Williams' test on the (n,) scores: is metric A's Pearson correlation with people higher than metric B's?"""
    columns = complete({"scores of A": scores_a, "scores of B": scores_b, "human judgements": human})
    if reason := why_undefined(columns):
        return PValue(np.nan, reason, columns.left_out)
    a, b, people = columns.values.values()
    found = williams(pearson(people, a).value, pearson(people, b).value, pearson(a, b).value, len(people))
    return found._replace(left_out=columns.left_out)


class CorrelationInterval(NamedTuple):
    """A confidence interval of a correlation; its ends are NaN where that is not defined, for the reason given.

    Resamples in which a side is constant are undefined: the ends are percentiles of the others. Segments with a missing
    value are left out.
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
    """Percentile bootstrap intervals (Efron, 1979) of the correlations of m metrics, which share the resamples.

    `columns` are (m, n), `human` (n,); a segment that one of them lacks is left out for all. The cost of Kendall's
    coefficients is quadratic in n.
    """
    choice("coefficient", coefficient, tuple(COEFFICIENTS))
    quantiles = _tails(level)
    aligned = complete({"human judgements": human} | {f"scores[{row}]": column for row, column in enumerate(columns)})
    people, *metrics = aligned.values.values()
    sides = [Columns({"scores": scores, "human judgements": people}, aligned.kept) for scores in metrics]
    reasons = [why_undefined(side) for side in sides]
    drawn: dict[int, list[np.ndarray]] = {row: [] for row, reason in enumerate(reasons) if reason is None}
    for counts in _resamples(resamples, len(people), seed) if drawn else ():
        for row, found in drawn.items():
            found.append(sample_correlations(coefficient, metrics[row], people, counts))
    intervals = []
    for row, reason in enumerate(reasons):
        values = np.concatenate(drawn.get(row, [np.empty(0)]))
        defined = values[~np.isnan(values)]
        low, high = np.quantile(defined, quantiles) if defined.size else (np.nan, np.nan)
        known = reason, len(values) - len(defined), aligned.left_out
        intervals.append(CorrelationInterval(float(low), float(high), level, resamples, seed, *known))
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

    The scores of both metrics, standardised, change places on about half of the segments, and the difference of the
    correlations (means over groups, see `correlate`) is compared with the observed one. A permutation without a defined
    difference counts against A. The cost of Kendall's coefficients is quadratic in n.
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
        """(k,) A's mean correlation less B's; `swapped` (k, n) is 1 where the scores change places."""
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
    return PValue(_p_value(resamples - smaller, resamples), None, columns.left_out)


def _resamples(resamples: int, n: int, seed: int) -> Iterator[np.ndarray]:
    generator = np.random.default_rng(seed)
    for count in _portions(resamples, n):
        drawn = generator.integers(n, size=(count, n)) + n * np.arange(count)[:, None]
        yield np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n).astype(np.float64)


def _mean_of_defined(values: np.ndarray) -> np.ndarray:
    """(k,) means over the rows of (groups, k) values that are not NaN; NaN where all are."""
    defined = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(defined, values, 0.0).sum(0) / defined.sum(0)
