"""How well scores agree with human judgements."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.columns import Columns, Numbers, complete

# Below this share of its size, the spread of a column is rounding noise and no signal.
_NOISE = 1e-13


class Correlation(NamedTuple):
    """A coefficient of agreement.

    Attributes:
        value: in [-1, 1], accuracies in [0, 1]; NaN where it is not defined.
        reason: why it is not defined; None where it is.
        left_out: segments without a score or without a judgement, which do not count.
        undefined_groups: groups (items or systems) that an average leaves out, since nothing is defined for them.
    """

    value: float
    reason: str | None = None
    left_out: int = 0
    undefined_groups: int = 0

    @property
    def known(self) -> float | None:
        """The value; None where it is not defined."""
        return self.value if self.reason is None else None


def pearson(scores: Numbers, human: Numbers) -> Correlation:
    """Pearson's r: the cosine of the centred columns, in float64.

    Args:
        scores: (n,) scores of a metric; None leaves the segment out.
        human: (n,) human judgements; None leaves the segment out.

    Returns:
        r in [-1, 1]; NaN with its reason where a side is constant or not finite, or where fewer than 2 segments have
        both values.

    Raises:
        InputError: the columns are not vectors of numbers of one length.

    Example:
        >>> pearson([1.0, 2.0, 3.0, 4.0], [3.0, 2.0, 1.0, None])
        Correlation(value=-1.0, reason=None, left_out=1, undefined_groups=0)
        >>> pearson([1.0, 1.0], [0.0, 1.0]).reason
        'the scores are constant'
    """
    return _coefficient(_pearson, scores, human)


def spearman(scores: Numbers, human: Numbers) -> Correlation:
    """Spearman's rho: Pearson's r of the ranks, where tied values share the mean of their ranks.

    Arguments, results and errors are those of `pearson`.
    """
    return _coefficient(_spearman, scores, human)


def kendall_b(scores: Numbers, human: Numbers) -> Correlation:
    """Kendall's tau-b: (C - D) / sqrt((P - T_x)(P - T_y)) over the P pairs of segments, of which T are tied on one
    side.

    Arguments, results and errors are those of `pearson`.
    """
    return _coefficient(partial(_kendall, variant="b"), scores, human)


def kendall_c(scores: Numbers, human: Numbers) -> Correlation:
    """Kendall's (Stuart's) tau-c: 2 (C - D) m / (n^2 (m - 1)), m the smaller number of distinct values of the two
    columns.

    Arguments, results and errors are those of `pearson`.
    """
    return _coefficient(partial(_kendall, variant="c"), scores, human)


COEFFICIENTS: dict[str, Callable[[Numbers, Numbers], Correlation]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall-b": kendall_b,
    "kendall-c": kendall_c,
}


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


def unit(column: np.ndarray) -> np.ndarray | None:
    """The column centred and scaled to length 1, or None where it does not vary."""
    largest = np.abs(column).max()
    if largest == 0:
        return None
    column = column / largest  # no square overflows
    centred = column - column.mean()
    length = np.linalg.norm(centred)
    return None if length <= _NOISE * np.linalg.norm(column) else centred / length


def why_undefined(columns: Columns) -> str | None:
    """Says why no coefficient is defined for the columns, or None where all are."""
    n = int(columns.kept.sum())
    if n < 2:
        without = f", {columns.left_out} have no score or no judgement" if columns.left_out else ""
        return f"a correlation needs at least 2 segments, there {'is' if n == 1 else 'are'} {n}{without}"
    if reason := columns.not_finite:
        return reason
    return next((f"the {name} are constant" for name, column in columns.values.items() if unit(column) is None), None)


def _coefficient(formula: Callable[[np.ndarray, np.ndarray], float], scores: Numbers, human: Numbers) -> Correlation:
    columns = complete({"scores": scores, "human judgements": human})
    if reason := why_undefined(columns):
        return Correlation(np.nan, reason, columns.left_out)
    return Correlation(float(np.clip(formula(*columns.values.values()), -1.0, 1.0)), None, columns.left_out)


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    return unit(x) @ unit(y)


def _spearman(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import rankdata

    return _pearson(rankdata(x), rankdata(y))


def _kendall(x: np.ndarray, y: np.ndarray, variant: str) -> float:
    from scipy.stats import kendalltau

    return kendalltau(x, y, variant=variant).statistic
