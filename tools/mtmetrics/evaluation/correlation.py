"""How well scores agree with human judgements."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mtmetrics.errors import InputError

# Below this share of its size, the spread of a column is rounding noise and no signal.
_NOISE = 1e-13


class Correlation(NamedTuple):
    """A correlation coefficient.

    Attributes:
        value: in [-1, 1], or NaN where it is not defined.
        reason: why it is not defined; None where it is.
    """

    value: float
    reason: str | None = None


def pearson(scores: np.ndarray | Sequence[float], human: np.ndarray | Sequence[float]) -> Correlation:
    """Pearson's r: the cosine of the centred columns, in float64.

    Args:
        scores: (n,) scores of a metric.
        human: (n,) human judgements.

    Returns:
        r in [-1, 1]; NaN with its reason where a side is constant or not finite, or where n < 2.

    Raises:
        InputError: the columns are not vectors of one length.

    Example:
        >>> pearson([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])
        Correlation(value=-1.0, reason=None)
        >>> pearson([1.0, 1.0], [0.0, 1.0])
        Correlation(value=nan, reason='the scores are constant')
    """
    columns = {"scores": np.asarray(scores, dtype=np.float64), "human judgements": np.asarray(human, dtype=np.float64)}
    shapes = [column.shape for column in columns.values()]
    if shapes[0] != shapes[1] or len(shapes[0]) != 1:
        raise InputError(f"scores and human judgements must be two vectors of one length, got the shapes {shapes[0]} and {shapes[1]}")
    n = shapes[0][0]
    if n < 2:
        return Correlation(np.nan, f"a correlation needs at least 2 segments, there {'is' if n == 1 else 'are'} {n}")
    units = []
    for name, column in columns.items():
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            return Correlation(np.nan, f"the {name} hold {bad.size} values that are not finite, the first at index {bad[0]}")
        unit = _unit(column)
        if unit is None:
            return Correlation(np.nan, f"the {name} are constant")
        units.append(unit)
    return Correlation(float(np.clip(units[0] @ units[1], -1.0, 1.0)))


def mean(correlations: Mapping[str, Correlation]) -> Correlation:
    """The plain mean over named sets; undefined, with the names of the sets, where one of them is undefined.

    Raises:
        InputError: there is no set.
    """
    if not correlations:
        raise InputError("correlations: empty; there is nothing to average")
    undefined = [name for name, correlation in correlations.items() if correlation.reason is not None]
    if undefined:
        return Correlation(np.nan, f"undefined for {', '.join(undefined)}")
    return Correlation(float(np.mean([correlation.value for correlation in correlations.values()])))


def _unit(column: np.ndarray) -> np.ndarray | None:
    """The column centred and scaled to length 1, or None where it does not vary."""
    largest = np.abs(column).max()
    if largest == 0:
        return None
    column = column / largest  # no square overflows
    centred = column - column.mean()
    length = np.linalg.norm(centred)
    return None if length <= _NOISE * np.linalg.norm(column) else centred / length
