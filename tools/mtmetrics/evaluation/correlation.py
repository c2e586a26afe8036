"""How well scores agree with human judgements: over all segments, within groups, and in many samples of them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.inputs import choice

# Below this share of its size, the spread or variance of a column is rounding noise and no signal.
_NOISE = 1e-13
_SIGNS_AT_ONCE = 4_000_000

Numbers = np.ndarray | Sequence[float | None]


class Columns(NamedTuple):
    """The (k,) values at the k positions at which no column has None, and which of the n positions those are."""

    values: dict[str, np.ndarray]
    kept: np.ndarray

    @property
    def left_out(self) -> int:
        """Number of positions at which a value is missing."""
        return int(len(self.kept) - self.kept.sum())

    @property
    def not_finite(self) -> str | None:
        """Which column holds values that are not finite, and where; None where all are finite."""
        for name, column in self.values.items():
            bad = np.flatnonzero(~np.isfinite(column))
            if bad.size:
                first = np.flatnonzero(self.kept)[bad[0]]
                return f"the {name} hold {bad.size} values that are not finite, the first at index {first}"
        return None


def complete(columns: Mapping[str, Numbers]) -> Columns:
    """Leaves out the positions at which one of the named (n,) columns has None; NaN is a value like others."""
    values = {name: _floats(name, column) for name, column in columns.items()}
    shapes = [column.shape for column in values.values()]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        found = " and ".join(map(str, shapes))
        raise InputError(f"{' and '.join(values)} must be vectors of one length, got the shapes {found}")
    kept = np.ones(shapes[0], dtype=bool)
    for column in columns.values():
        if not (isinstance(column, np.ndarray) and column.dtype.kind in "fiub"):
            kept &= np.array([value is not None for value in column], dtype=bool)
    return Columns({name: column[kept] for name, column in values.items()}, kept)


def _floats(name: str, column: Numbers) -> np.ndarray:
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: numbers or None are needed ({error})") from None


def codes(name: str, labels: Sequence[Any] | np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Numbers 0, 1, ... for the k of n labels that are kept: equal where the labels are, in order of appearance."""
    if len(labels) != len(kept):
        raise InputError(f"{name}: one for each segment is needed, got {len(labels)} for {len(kept)} segments")
    numbers: dict[Any, int] = {}
    found = []
    for index in np.flatnonzero(kept):
        if labels[index] is None:
            raise InputError(f"{name}[{index}] is None: each segment needs one to be grouped")
        found.append(numbers.setdefault(labels[index], len(numbers)))
    return np.array(found, dtype=np.intp)


class Correlation(NamedTuple):
    """A coefficient in [-1, 1] (accuracies: [0, 1]), or NaN with the reason why it is not defined.

    Segments without a score or a judgement are left out; an average also leaves out groups for which nothing is
    defined.
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
        r in [-1, 1]; NaN with its reason where a side is constant or not finite, or fewer than 2 segments are left.

    Raises:
        InputError: the columns are not vectors of numbers of one length.

    Example:
        >>> pearson([1.0, 2.0, 3.0, 4.0], [3.0, 2.0, 1.0, None])
        Correlation(value=-1.0, reason=None, left_out=1, undefined_groups=0)
        >>> pearson([1.0, 1.0], [0.0, 1.0]).reason
        'the scores are constant'
    """
    return _coefficient(_pearson, scores, human)


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


# All are called like `pearson`. Spearman's rho is Pearson's r of the mean ranks. Of P pairs, T of them tied on a side,
# Kendall's tau-b is (C - D) / sqrt((P - T_x)(P - T_y)); Stuart's tau-c is 2 (C - D) m / (n^2 (m - 1)), m the smaller
# number of distinct values.
COEFFICIENTS: dict[str, Callable[[Numbers, Numbers], Correlation]] = {
    "pearson": pearson,
    "spearman": partial(_coefficient, _spearman),
    "kendall-b": partial(_coefficient, partial(_kendall, variant="b")),
    "kendall-c": partial(_coefficient, partial(_kendall, variant="c")),
}


def mean(correlations: Mapping[str, Correlation]) -> Correlation:
    """The plain mean over named sets; undefined, with the names of the sets, where one of them is undefined."""
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
    """Why no coefficient is defined for the columns; None where all are."""
    n = int(columns.kept.sum())
    if n < 2:
        without = f", {columns.left_out} have no score or no judgement" if columns.left_out else ""
        return f"a correlation needs at least 2 segments, there {'is' if n == 1 else 'are'} {n}{without}"
    if reason := columns.not_finite:
        return reason
    return next((f"the {name} are constant" for name, column in columns.values.items() if unit(column) is None), None)


def correlate(
    name: str, scores: Numbers, human: Numbers, *, groups: Sequence[Any] | np.ndarray | None = None
) -> Correlation:
    """A coefficient over all segments, or its mean over groups of them.

    The mean is the plain one over the groups for which the coefficient is defined, as in Google's mt-metrics-eval;
    `undefined_groups` counts the others. A value that is not finite leaves the whole undefined, whatever its group.

    Args:
        name: a key of `COEFFICIENTS`.
        scores: (n,) scores of a metric; None leaves the segment out.
        human: (n,) human judgements; None leaves the segment out.
        groups: (n,) labels, such as the item or the system of each segment; None for one coefficient over all.
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
    why = f"undefined in each of the {len(found)} groups, in the first because {found[0].reason}" if found else None
    return Correlation(np.nan, why or "there is no segment", columns.left_out, undefined)


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


def sample_correlations(name: str, x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(k,) coefficients, one of each sample of a pool of p points; NaN where it is not defined.

    `x` and `y` are (p,) finite coordinates, `counts` (k, p) float64 say how often each sample holds each point:
    bootstrap resamples hold a point several times, permutations of two metrics one of the two points of each segment.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(_SAMPLED[name](x, y, counts), -1.0, 1.0)


def _sampled_pearson(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    centred = [unit(column) for column in (x, y)]
    if any(column is None for column in centred):
        return np.full(len(counts), np.nan)
    x, y = centred
    sums = counts @ np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    mean_x, mean_y, xx, yy, xy = sums[:, 1:].T / sums[:, 0]
    found = ((square - mean**2, square) for mean, square in ((mean_x, xx), (mean_y, yy)))
    variances = [np.where(variance > _NOISE * square, variance, np.nan) for variance, square in found]
    return (xy - mean_x * mean_y) / np.sqrt(variances[0] * variances[1])


def _sampled_spearman(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    middle = (counts.sum(1, keepdims=True) + 1) / 2
    x, y = (_ranks(column, counts) - middle for column in (x, y))
    products = [np.einsum("kp,kp,kp->k", counts, *pair) for pair in ((x, y), (x, x), (y, y))]
    return products[0] / np.sqrt(products[1] * products[2])


def _sampled_kendall_b(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    size = counts.sum(1)
    pairs = size * (size - 1) / 2
    untied = [pairs - (held * (held - 1)).sum(1) / 2 for held in (_held(column, counts)[0] for column in (x, y))]
    return _concordance(x, y, counts) / np.sqrt(untied[0] * untied[1])


def _sampled_kendall_c(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    distinct = np.minimum(*((_held(column, counts)[0] > 0).sum(1) for column in (x, y)))
    return 2 * _concordance(x, y, counts) * distinct / (counts.sum(1) ** 2 * (distinct - 1))


_SAMPLED: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "pearson": _sampled_pearson,
    "spearman": _sampled_spearman,
    "kendall-b": _sampled_kendall_b,
    "kendall-c": _sampled_kendall_c,
}


def _held(column: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(k, u) how often each sample holds each of the u distinct values, ascending; (p,) which of them a point has."""
    _, which, repeats = np.unique(column, return_inverse=True, return_counts=True)
    order = np.argsort(which, kind="stable")
    return np.add.reduceat(counts[:, order], np.cumsum(repeats) - repeats, axis=1), which


def _ranks(column: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(k, p) rank of each point within each sample, the mean rank where values are tied."""
    held, which = _held(column, counts)
    return (held.cumsum(1) - (held - 1) / 2)[:, which]


def _concordance(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Concordant less discordant pairs in each sample, from the signs of all pairs of the pool: quadratic in it."""
    x, y = (np.unique(column, return_inverse=True)[1].astype(np.float32) for column in (x, y))
    single = counts.astype(np.float32)  # exact: the products are whole numbers far below 2^24
    total = np.zeros(len(counts))
    height = max(1, _SIGNS_AT_ONCE // len(x))
    for begin in range(0, len(x), height):
        rows = slice(begin, begin + height)
        signs = np.sign(x[rows, None] - x) * np.sign(y[rows, None] - y)
        total += np.einsum("kr,kr->k", counts[:, rows], single @ signs.T)
    return total / 2
