"""How sure a system score is, and whether one system is better than another by one metric."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.columns import Numbers, complete
from mtmetrics.inputs import number, positive

SEED = 12345
_DRAWN_AT_ONCE = 4_000_000
# Sums closer than this share of their terms differ by rounding alone.
_ROUNDING = 1e-12


class Interval(NamedTuple):
    """A confidence interval.

    Attributes:
        low: lower end.
        high: upper end.
        level: share of resamples inside.
        resamples: number of resamples.
        seed: of the draw.
    """

    low: float
    high: float
    level: float
    resamples: int
    seed: int


class PValue(NamedTuple):
    """The p-value of a test.

    Attributes:
        value: in [0, 1], or NaN where the test is not defined.
        reason: why it is not defined; None where it is.
        left_out: segments with a missing value, which do not count.
    """

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
    """Percentile bootstrap interval of a mean (Efron, 1979): segments are drawn with replacement, as often as there
    are.

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
    quantiles = tails(level)
    low, high = np.quantile(_resampled_means(values, resamples, seed), quantiles)
    return Interval(float(low), float(high), level, resamples, seed)


def paired_bootstrap(a: Numbers, b: Numbers, *, resamples: int = 1000, seed: int = SEED) -> float:
    """Paired bootstrap (Koehn, 2004): the share of resamples in which system A is not better than system B.

    Args:
        a: (n,) scores of A's segments.
        b: (n,) scores of B's, for the same sources; None on either side leaves the segment out.
        resamples: number of resamples of the segments.
        seed: of the draw.

    Returns:
        One-sided p, (count + 1) / (resamples + 1).

    Raises:
        InputError: the columns are not vectors of numbers of one length, no segment is left, or a score is not finite.
    """
    differences = _differences(a, b)
    margin = _ROUNDING * np.abs(differences).mean()
    return p_value(int((_resampled_means(differences, resamples, seed) <= margin).sum()), resamples)


def paired_permutation(a: Numbers, b: Numbers, *, resamples: int = 1000, seed: int = SEED) -> float:
    """Approximate randomisation (Riezler and Maxwell, 2005): does A's mean lead B's by more than swapped scores would?

    In each resample the scores of the two systems change places on about half of the segments, each with probability
    one half.

    Args:
        a: (n,) scores of A's segments.
        b: (n,) scores of B's, for the same sources; None on either side leaves the segment out.
        resamples: number of permutations.
        seed: of the draw.

    Returns:
        One-sided p, (count + 1) / (resamples + 1), where count is the number of permutations in which A leads by at
        least as much.

    Raises:
        InputError: the columns are not vectors of numbers of one length, no segment is left, or a score is not finite.
    """
    differences = _differences(a, b)
    lead = differences.sum() - _ROUNDING * np.abs(differences).sum()
    count = sum(int((flips @ differences >= lead).sum()) for flips in sign_flips(resamples, len(differences), seed))
    return p_value(count, resamples)


def p_value(count: int, resamples: int) -> float:
    """(count + 1) / (resamples + 1): `count` resamples were at least as extreme as what was observed, which counts as
    one itself."""
    return (count + 1) / (resamples + 1)


def sign_flips(resamples: int, n: int, seed: int) -> Iterator[np.ndarray]:
    """Random signs, (k, n) at a time until there are `resamples` rows: -1 swaps the two scores of a segment, 1 leaves
    them.

    Raises:
        InputError: `resamples` is no positive whole number.
    """
    generator = np.random.default_rng(seed)
    for count in portions(resamples, n):
        yield 1.0 - 2.0 * generator.integers(2, size=(count, n), dtype=np.int8)


def portions(resamples: int, n: int) -> Iterator[int]:
    """How many resamples of n segments to draw at once, such that a few tens of megabytes hold them; sums up to
    `resamples`.

    Raises:
        InputError: `resamples` is no positive whole number.
    """
    at_once = max(1, _DRAWN_AT_ONCE // n)
    for first in range(0, positive("resamples", resamples), at_once):
        yield min(at_once, resamples - first)


def tails(level: float) -> tuple[float, float]:
    """The quantiles between which the share `level` lies, with equal shares on either side.

    Raises:
        InputError: an impossible level.
    """
    if not 0.0 < number("level", level) < 1.0:
        raise InputError(f"level {level!r}: must lie between 0 and 1")
    return (1 - level) / 2, (1 + level) / 2


def _resampled_means(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """(resamples,) means of the values, drawn with replacement as often as there are."""
    generator = np.random.default_rng(seed)
    means = []
    for count in portions(resamples, len(values)):
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
