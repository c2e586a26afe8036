"""How well scores agree with human judgements: coefficients over all segments, or within groups of them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.inputs import choice

# Below this share of its size, the spread of a column is rounding noise and no signal.
_NOISE = 1e-13

Numbers = np.ndarray | Sequence[float | None]


class Columns(NamedTuple):
    """The positions at which no column has a missing value.

    Attributes:
        values: name -> (k,) float64 values at those positions.
        kept: (n,) where they are.
    """

    values: dict[str, np.ndarray]
    kept: np.ndarray

    @property
    def left_out(self) -> int:
        """Number of positions at which a value is missing."""
        return int(len(self.kept) - self.kept.sum())

    @property
    def not_finite(self) -> str | None:
        """Says which column holds values that are not finite, and where; None where all are finite."""
        for name, column in self.values.items():
            bad = np.flatnonzero(~np.isfinite(column))
            if bad.size:
                first = np.flatnonzero(self.kept)[bad[0]]
                return f"the {name} hold {bad.size} values that are not finite, the first at index {first}"
        return None


def complete(columns: Mapping[str, Numbers]) -> Columns:
    """Leaves out the positions at which a column has None; NaN is a value like others.

    Args:
        columns: name, for messages -> (n,) numbers or None.

    Raises:
        InputError: the columns are not vectors of numbers of one length.
    """
    values = {name: _floats(name, column) for name, column in columns.items()}
    shapes = [column.shape for column in values.values()]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise InputError(
            f"{' and '.join(values)} must be vectors of one length, got the shapes {' and '.join(map(str, shapes))}"
        )
    kept = np.ones(shapes[0], dtype=bool)
    for column in columns.values():
        if not (isinstance(column, np.ndarray) and column.dtype.kind in "fiub"):
            kept &= np.array([value is not None for value in column], dtype=bool)
    return Columns({name: column[kept] for name, column in values.items()}, kept)


def codes(name: str, labels: Sequence[Any] | np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Numbers 0, 1, ... that are equal where the labels are, in the order of first appearance.

    Args:
        name: of the labels, for messages.
        labels: (n,) hashable labels.
        kept: (n,) positions whose labels are wanted, k of them.

    Returns:
        (k,) integers.

    Raises:
        InputError: the labels are not as many as the positions, or one that is wanted is None.
    """
    if len(labels) != len(kept):
        raise InputError(f"{name}: one for each segment is needed, got {len(labels)} for {len(kept)} segments")
    numbers: dict[Any, int] = {}
    found = []
    for index in np.flatnonzero(kept):
        if labels[index] is None:
            raise InputError(f"{name}[{index}] is None: each segment needs one to be grouped")
        found.append(numbers.setdefault(labels[index], len(numbers)))
    return np.array(found, dtype=np.intp)


def _floats(name: str, column: Numbers) -> np.ndarray:
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: numbers or None are needed ({error})") from None


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


def correlate(
    name: str, scores: Numbers, human: Numbers, *, groups: Sequence[Any] | np.ndarray | None = None
) -> Correlation:
    """A coefficient over all segments, or its mean over groups of them.

    The mean is the plain one over the groups for which the coefficient is defined, as in Google's mt-metrics-eval: an
    item with one judged translation, or with equal judgements, says nothing about the order of translations.
    `undefined_groups` counts the others. A score or judgement that is not finite leaves the whole undefined, in
    whatever group it stands.

    Args:
        name: a key of `COEFFICIENTS`.
        scores: (n,) scores of a metric; None leaves the segment out.
        human: (n,) human judgements; None leaves the segment out.
        groups: (n,) labels, such as the item or the system of each segment; None for one coefficient over all segments.

    Raises:
        InputError: no such coefficient, columns that are not vectors of numbers of one length, or a segment without a
            group.
    """
    coefficient = COEFFICIENTS[choice("coefficient", name, tuple(COEFFICIENTS))]
    if groups is None:
        return coefficient(scores, human)
    columns = complete({"scores": scores, "human judgements": human})
    if reason := columns.not_finite:
        return Correlation(np.nan, reason, columns.left_out)
    parts = members(codes("groups", groups, columns.kept))
    found = [coefficient(*(column[part] for column in columns.values.values())) for part in parts]
    defined = [correlation.value for correlation in found if correlation.reason is None]
    undefined = len(found) - len(defined)
    if defined:
        return Correlation(float(np.mean(defined)), None, columns.left_out, undefined)
    reason = (
        f"undefined in each of the {len(found)} groups, in the first because {found[0].reason}"
        if found
        else "there is no segment"
    )
    return Correlation(np.nan, reason, columns.left_out, undefined)


def members(groups: np.ndarray) -> list[np.ndarray]:
    """Positions of each group, in order; `groups` are (n,) numbers 0, 1, ... without a gap."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.cumsum(np.bincount(groups))[:-1]) if len(groups) else []


def pairs_within(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of positions that lie in one group: two vectors of positions, side by side."""
    firsts, seconds = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
    by_size: dict[int, list[np.ndarray]] = {}
    for part in members(groups):
        by_size.setdefault(len(part), []).append(part)
    for size, parts in by_size.items():
        first, second = np.triu_indices(size, 1)
        table = np.array(parts)
        firsts.append(table[:, first].ravel())
        seconds.append(table[:, second].ravel())
    return np.concatenate(firsts), np.concatenate(seconds)
