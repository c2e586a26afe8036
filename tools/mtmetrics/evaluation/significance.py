"""How sure a system score is."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.inputs import number, positive

SEED = 12345
_DRAWN_AT_ONCE = 4_000_000


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


def bootstrap_interval(values: np.ndarray | Sequence[float], *, level: float = 0.95, resamples: int = 1000, seed: int = SEED) -> Interval:
    """Percentile bootstrap interval of a mean (Efron, 1979): segments are drawn with replacement, as often as there are.

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
    if not 0.0 < number("level", level) < 1.0:
        raise InputError(f"level {level!r}: must lie between 0 and 1")
    generator = np.random.default_rng(seed)
    means = np.empty(positive("resamples", resamples))
    # As many resamples at once as a few tens of megabytes hold; very long columns are summed up in stretches.
    at_once = max(1, _DRAWN_AT_ONCE // len(values))
    for first in range(0, resamples, at_once):
        count = min(at_once, resamples - first)
        total = np.zeros(count)
        for begin in range(0, len(values), _DRAWN_AT_ONCE):
            width = min(_DRAWN_AT_ONCE, len(values) - begin)
            total += values[generator.integers(len(values), size=(count, width))].sum(1)
        means[first : first + count] = total / len(values)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, resamples, seed)
