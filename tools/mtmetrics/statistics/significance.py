"""How sure a score or a correlation is, and whether one is higher than another: intervals and
tests."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.checks import choice
from mtmetrics.errors import InputError
from mtmetrics.statistics.correlation import (
    COEFFICIENTS,
    NOISE,
    ROUNDING,
    SEED,
    Labels,
    Numbers,
    codes,
    complete,
    members,
    pearson,
    portions,
    sign_flips,
    unit,
    why_undefined,
)

# A difference is significant where the p-value of its test is below this.
ALPHA = 0.05
_LEVEL = 0.95
# Resamples of one segment are all equal; those of two lie between both values, and their
# correlation is 1 or -1.
FEWEST_FOR_INTERVAL = 3
NO_INTERVAL = f"no interval of fewer than {FEWEST_FOR_INTERVAL} segments"
_TAILS = ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2)


# Two systems by their rows, for each of several comparisons.
Pairs = Sequence[tuple[int, int]]
# Differences that are multiplied with the permutations at once.
_PAIRS_AT_ONCE = 256
# Yields what it is given, and shows how far it is; takes the keywords of tqdm.
Progress = Callable[..., Iterable[np.ndarray]]


def _silent(portions: Iterable[np.ndarray], **_: Any) -> Iterable[np.ndarray]:
    return portions


class Interval(NamedTuple):
    """A confidence interval: its ends, the share of the resamples inside, their number, and the
    seed of the draw."""

    low: float
    high: float
    level: float
    resamples: int
    seed: int


class PValue(NamedTuple):
    """In [0, 1], or NaN with the reason why the test is not defined; segments with a missing value
    are left out."""

    value: float
    reason: str | None = None
    left_out: int = 0

    @property
    def known(self) -> float | None:
        """The value; None where the test is not defined."""
        return self.value if self.reason is None else None


def bootstrap_interval(
    values: np.ndarray | Sequence[float], *, resamples: int = 1000, seed: int = SEED
) -> Interval | None:
    """95 % percentile bootstrap interval of a mean (Efron, 1979): segments are drawn with
    replacement.

    Args:
        values: (n,) scores of segments.
        resamples: number of resamples.
        seed: of the draw; the same seed gives the same interval.

    Returns:
        The interval; None of fewer than `FEWEST_FOR_INTERVAL` segments.

    Raises:
        InputError: no or no finite values.

    Example:
        >>> bootstrap_interval([1.0, 1.0, 1.0])[:2]
        (1.0, 1.0)
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise InputError(
            f"values: a vector of at least one finite number is needed, got shape {values.shape}"
        )
    [interval] = bootstrap_intervals(values[None], resamples=resamples, seed=seed)
    return interval


def bootstrap_intervals(
    columns: np.ndarray, *, resamples: int = 1000, seed: int = SEED, progress: Progress = _silent
) -> list[Interval | None]:
    """`bootstrap_interval` of each of k systems, (k, n) finite scores; all of them share the
    resamples."""
    if columns.shape[1] < FEWEST_FOR_INTERVAL:
        return [None] * len(columns)
    drawn = _shown(progress, resampled_counts, columns.shape[1], resamples, seed, desc="intervals")
    # One column after the other, so that a mean is the same to the last bit whatever stands beside
    # it.
    means = (
        np.hstack([[counts @ column for column in columns] for counts in drawn]) / columns.shape[1]
    )
    ends = np.quantile(means, _TAILS, axis=1).T.tolist()
    return [Interval(low, high, _LEVEL, resamples, seed) for low, high in ends]


def bootstrap_p_values(
    columns: np.ndarray,
    pairs: Pairs,
    *,
    resamples: int = 1000,
    seed: int = SEED,
    progress: Progress = _silent,
) -> np.ndarray:
    """Paired bootstrap (Koehn, 2004): (m,) one-sided p-values for m pairs of k systems, by the share
    of resamples in which the first is not better than the second.

    The (k, n) finite scores of all systems are for the same n segments; all pairs share the
    resamples."""
    n = columns.shape[1]
    counts = np.zeros(len(pairs), dtype=np.int64)
    for drawn in _shown(progress, resampled_counts, n, resamples, seed, desc="testing"):
        for some, differences in _pair_differences(columns, pairs):
            margins = ROUNDING * np.abs(differences).mean(axis=1)
            counts[some] += (drawn @ differences.T / n <= margins).sum(axis=0)
    return _p_value(counts, resamples)


def permutation_p_values(
    columns: np.ndarray,
    pairs: Pairs,
    *,
    resamples: int = 1000,
    seed: int = SEED,
    progress: Progress = _silent,
) -> np.ndarray:
    """Approximate randomisation (Riezler and Maxwell, 2005): (m,) one-sided p-values that the first
    system of a pair leads the second; arguments as `bootstrap_p_values`.

    Each permutation swaps the scores of the two systems on about half of the segments. All pairs
    share the permutations: to draw them costs far more than to look at another pair.
    """
    counts = np.zeros(len(pairs), dtype=np.int64)
    for flips in _shown(progress, sign_flips, columns.shape[1], resamples, seed, desc="testing"):
        for some, differences in _pair_differences(columns, pairs):
            leads = differences.sum(axis=1) - ROUNDING * np.abs(differences).sum(axis=1)
            counts[some] += (flips @ differences.T >= leads).sum(axis=0)
    return _p_value(counts, resamples)


def _shown(
    progress: Progress,
    draw: Callable[..., Iterator[np.ndarray]],
    n: int,
    resamples: int,
    seed: int,
    desc: str,
) -> Iterable[np.ndarray]:
    """Portions of resamples of n segments, with a bar of how many are done."""
    total = sum(1 for _ in portions(resamples, n))
    return progress(draw(resamples, n, seed), total=total, desc=desc, unit=" portions")


def _pair_differences(columns: np.ndarray, pairs: Pairs) -> Iterator[tuple[slice, np.ndarray]]:
    """Yields which pairs, and (up to `_PAIRS_AT_ONCE`, n) differences of their segments."""
    first, second = np.array(pairs).T
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        some = slice(start, start + _PAIRS_AT_ONCE)
        yield some, columns[first[some]] - columns[second[some]]


def _p_value(count: Any, resamples: int) -> Any:
    return (count + 1) / (resamples + 1)  # what was observed counts as a resample itself


def williams(r12: float, r13: float, r23: float, n: int) -> PValue:
    """Williams' test (1959) of r12 > r13, for correlations that share a variable, as in Graham and
    Baldwin (2014).

    t = (r12 - r13) sqrt((n - 1) (1 + r23)) / sqrt(2 K (n - 1) / (n - 3) + (r12 + r13)^2 (1 - r23)^3
    / 4), K = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23, follows Student's t with n - 3 degrees of
    freedom if they are equal.

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
    if n < 4:
        return PValue(np.nan, f"Williams' test needs at least 4 segments, there are {n}")
    if 1 - r23 <= ROUNDING:
        return PValue(0.5)
    if 1 + r23 <= ROUNDING:
        return PValue(
            np.nan, "the metrics are exact opposites, for which Williams' statistic is 0 / 0"
        )
    from scipy.special import stdtr

    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    spread = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + (r12 + r13) ** 2 / 4 * (1 - r23) ** 3
    with np.errstate(
        divide="ignore"
    ):  # nothing but the difference of the metrics may explain the judgements
        t = (r12 - r13) * np.sqrt(np.divide((n - 1) * (1 + r23), spread))
    return PValue(float(stdtr(n - 3, -t)))


def williams_test(scores_a: Numbers, scores_b: Numbers, human: Numbers) -> PValue:
    """Williams' test on the (n,) scores: is metric A's Pearson correlation with people higher than
    metric B's?"""
    columns = complete(
        {"scores of A": scores_a, "scores of B": scores_b, "human judgements": human}
    )
    if reason := why_undefined(columns):
        return PValue(np.nan, reason, columns.left_out)
    a, b, people = columns.values.values()
    test = williams(
        pearson(people, a).value, pearson(people, b).value, pearson(a, b).value, len(people)
    )
    return test._replace(left_out=columns.left_out)


class CorrelationInterval(NamedTuple):
    """A confidence interval of a correlation; its ends are NaN where that is not defined, for the
    reason given.

    Resamples in which a side is constant are undefined: the ends are percentiles of the others.
    Segments with a missing value are left out."""

    low: float
    high: float
    level: float
    resamples: int
    seed: int
    reason: str | None = None
    undefined: int = 0
    left_out: int = 0


def bootstrap_correlation(
    scores: Numbers,
    human: Numbers,
    *,
    coefficient: str = "pearson",
    resamples: int = 1000,
    seed: int = SEED,
) -> CorrelationInterval:
    """95 % percentile bootstrap interval (Efron, 1979) of a correlation; metrics of one file share
    the resamples.

    The cost of Kendall's coefficients is quadratic in the number of segments.
    """
    choice("coefficient", coefficient, tuple(COEFFICIENTS))
    columns = complete({"scores": scores, "human judgements": human})
    reason = why_undefined(columns)
    x, y = columns.values.values()
    if reason is None and len(x) < FEWEST_FOR_INTERVAL:
        reason = NO_INTERVAL
    values = np.empty(0)
    if reason is None:
        drawn = resampled_counts(resamples, len(x), seed)
        values = np.concatenate(
            [sample_correlations(coefficient, x, y, counts) for counts in drawn]
        )
    defined = values[~np.isnan(values)]
    low, high = np.quantile(defined, _TAILS) if defined.size else (np.nan, np.nan)
    undefined = len(values) - len(defined)
    return CorrelationInterval(
        float(low), float(high), _LEVEL, resamples, seed, reason, undefined, columns.left_out
    )


def perm_both(
    scores_a: Numbers,
    scores_b: Numbers,
    human: Numbers,
    *,
    coefficient: str = "pearson",
    groups: Labels | None = None,
    resamples: int = 1000,
    seed: int = SEED,
) -> PValue:
    """PERM-BOTH (Deutsch, Dror and Roth, 2021): is metric A's correlation with people higher than
    metric B's?

    The scores of both metrics, standardised, change places on about half of the segments, and the
    difference of the correlations (means over groups, see `correlate`) is compared with the
    observed one. A permutation without a defined difference counts against A. The cost of Kendall's
    coefficients is quadratic in n."""
    choice("coefficient", coefficient, tuple(COEFFICIENTS))
    columns = complete(
        {"scores of A": scores_a, "scores of B": scores_b, "human judgements": human}
    )
    if reason := why_undefined(columns):
        return PValue(np.nan, reason, columns.left_out)
    a, b, people = columns.values.values()
    n = len(people)
    labels = np.zeros(n, dtype=np.intp) if groups is None else codes("groups", groups, columns.kept)
    # One pool holds the scores of both metrics: a permutation is a choice of one of the two points
    # of each segment.
    pool, judged = np.concatenate([unit(a), unit(b)]), np.concatenate([people, people])
    parts = [np.concatenate([part, part + n]) for part in members(labels)]

    def lead(swapped: np.ndarray) -> np.ndarray:
        """(k,) A's mean correlation less B's; `swapped` (k, n) is 1 where the scores change
        places."""
        chosen = np.concatenate([1 - swapped, swapped], axis=1)
        sides = []
        for counts in (chosen, 1 - chosen):
            correlations = [
                sample_correlations(coefficient, pool[part], judged[part], counts[:, part])
                for part in parts
            ]
            sides.append(_mean_of_defined(np.array(correlations)))
        return sides[0] - sides[1]

    observed = lead(np.zeros((1, n)))[0]
    if np.isnan(observed):
        return PValue(
            np.nan,
            "the correlation of a metric with people is undefined in each group",
            columns.left_out,
        )
    smaller = sum(
        int((lead((1 - flips) / 2) < observed - ROUNDING).sum())
        for flips in sign_flips(resamples, n, seed)
    )
    return PValue(_p_value(resamples - smaller, resamples), None, columns.left_out)


def resampled_counts(resamples: int, n: int, seed: int) -> Iterator[np.ndarray]:
    """(k, n) how often each bootstrap resample holds each of n segments, for `sample_correlations`;
    in portions that fit into memory."""
    generator = np.random.default_rng(seed)
    for count in portions(resamples, n):
        drawn = generator.integers(n, size=(count, n)) + n * np.arange(count)[:, None]
        yield np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n).astype(np.float64)


def _mean_of_defined(values: np.ndarray) -> np.ndarray:
    """(k,) means over the rows of (groups, k) values that are not NaN; NaN where all are."""
    defined = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(defined, values, 0.0).sum(0) / defined.sum(0)


# Correlations of many samples at once.


def sample_correlations(name: str, x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(k,) coefficients, one of each sample of a pool of p points; NaN where it is not defined.

    `x` and `y` are (p,) finite coordinates, `counts` (k, p) float64 say how often each sample holds
    each point: bootstrap resamples hold a point several times, permutations of two metrics one of
    the two points of each segment."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(_SAMPLED[name](x, y, counts), -1.0, 1.0)


def _sampled_pearson(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    first, second = unit(x), unit(y)
    if first is None or second is None:
        return np.full(len(counts), np.nan)
    x, y = first, second
    sums = counts @ np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    mean_x, mean_y, xx, yy, xy = sums[:, 1:].T / sums[:, 0]
    variance_x, variance_y = xx - mean_x**2, yy - mean_y**2
    variance_x = np.where(variance_x > NOISE * xx, variance_x, np.nan)
    variance_y = np.where(variance_y > NOISE * yy, variance_y, np.nan)
    return (xy - mean_x * mean_y) / np.sqrt(variance_x * variance_y)


def _sampled_spearman(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    middle = (counts.sum(1, keepdims=True) + 1) / 2
    x, y = (_ranks(column, counts) - middle for column in (x, y))
    products = [np.einsum("kp,kp,kp->k", counts, *pair) for pair in ((x, y), (x, x), (y, y))]
    return products[0] / np.sqrt(products[1] * products[2])


def _sampled_kendall(variant: str, x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    from scipy.stats import kendalltau

    coefficients = np.full(len(counts), np.nan)
    for number, held in enumerate(counts.astype(int)):
        first, second = np.repeat(x, held), np.repeat(y, held)
        if len(first) and np.ptp(first) and np.ptp(second):
            coefficients[number] = kendalltau(first, second, variant=variant).statistic
    return coefficients


_SAMPLED: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "pearson": _sampled_pearson,
    "spearman": _sampled_spearman,
    "kendall-b": functools.partial(_sampled_kendall, "b"),
    "kendall-c": functools.partial(_sampled_kendall, "c"),
}


def _held(column: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(k, u) how often each sample holds each of the u distinct values, ascending; (p,) which of
    them a point has."""
    _, which, repeats = np.unique(column, return_inverse=True, return_counts=True)
    order = np.argsort(which, kind="stable")
    return np.add.reduceat(counts[:, order], np.cumsum(repeats) - repeats, axis=1), which


def _ranks(column: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(k, p) rank of each point within each sample, the mean rank where values are tied."""
    held, which = _held(column, counts)
    return (held.cumsum(1) - (held - 1) / 2)[:, which]
