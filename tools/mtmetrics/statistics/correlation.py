"""How well scores agree with human judgements: over all segments, within groups, and on pairs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.checks import choice, positive
from mtmetrics.errors import InputError

# Below this share of its size, the spread or variance of a column is rounding noise and no signal.
NOISE = 1e-13
# Sums closer than this share of their terms differ by rounding alone.
ROUNDING = 1e-12
SEED = 12345
_DRAWN_AT_ONCE = 4_000_000
_DARR_POINTS = 25

Numbers = np.ndarray | Sequence[float | None]
Labels = np.ndarray | Sequence[Any]


class Columns(NamedTuple):
    """The (k,) values at the k positions at which no column has None, and which of the n positions
    those are."""

    values: dict[str, np.ndarray]
    kept: np.ndarray

    @property
    def left_out(self) -> int:
        """Number of positions at which a value is missing."""
        return int(len(self.kept) - self.kept.sum())

    @property
    def not_finite(self) -> str | None:
        """A reason that names the column and the place of values that are not finite; None where
        all are finite."""
        for name, column in self.values.items():
            bad = np.flatnonzero(~np.isfinite(column))
            if bad.size:
                first = np.flatnonzero(self.kept)[bad[0]]
                return (
                    f"the {name} hold {bad.size} values that are not finite, the first at index "
                    f"{first}"
                )
        return None


def complete(columns: Mapping[str, Numbers]) -> Columns:
    """Leaves out the positions at which one of the named (n,) columns has None; NaN is a value like
    others."""
    values = {name: _floats(name, column) for name, column in columns.items()}
    shapes = [column.shape for column in values.values()]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise InputError(
            f"{' and '.join(values)} must be vectors of one length, got the shapes "
            f"{' and '.join(map(str, shapes))}"
        )
    kept = np.all(
        [[value is not None for value in column] for column in columns.values()], axis=0
    ).astype(bool)
    return Columns({name: column[kept] for name, column in values.items()}, kept)


def _floats(name: str, column: Numbers) -> np.ndarray:
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: numbers or None are needed ({error})") from None


def codes(name: str, labels: Labels, kept: np.ndarray) -> np.ndarray:
    """Numbers 0, 1, ... for the k of n labels that are kept: equal where the labels are, in order
    of appearance."""
    if len(labels) != len(kept):
        raise InputError(
            f"{name}: one for each segment is needed, got {len(labels)} for {len(kept)} segments"
        )
    places = np.flatnonzero(kept).tolist()
    if missing := [index for index in places if labels[index] is None]:
        raise InputError(f"{name}[{missing[0]}] is None: each segment needs one to be grouped")
    numbers: dict[Any, int] = {}
    return np.array(
        [numbers.setdefault(labels[index], len(numbers)) for index in places], dtype=np.intp
    )


class Correlation(NamedTuple):
    """A coefficient in [-1, 1] (accuracies: [0, 1]), or NaN with the reason why it is not defined.

    Segments without a score or a judgement are left out; an average also leaves out groups for
    which nothing is defined."""

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
        r in [-1, 1]; NaN with its reason where a side is constant or not finite, or fewer than 2
        segments are left.

    Raises:
        InputError: the columns are not vectors of numbers of one length.

    Example:
        >>> pearson([1.0, 2.0, 3.0, 4.0], [3.0, 2.0, 1.0, None])
        Correlation(value=-1.0, reason=None, left_out=1, undefined_groups=0)
        >>> pearson([1.0, 1.0], [0.0, 1.0]).reason
        'the scores are constant'
    """
    return _coefficient(_pearson, scores, human)


def _coefficient(
    formula: Callable[[np.ndarray, np.ndarray], float], scores: Numbers, human: Numbers
) -> Correlation:
    columns = complete({"scores": scores, "human judgements": human})
    if reason := why_undefined(columns):
        return Correlation(np.nan, reason, columns.left_out)
    return Correlation(
        float(np.clip(formula(*columns.values.values()), -1.0, 1.0)), None, columns.left_out
    )


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    units: list[Any] = [unit(x), unit(y)]  # defined, since neither is constant
    return units[0] @ units[1]


def _spearman(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import rankdata

    return _pearson(rankdata(x), rankdata(y))


def _kendall(x: np.ndarray, y: np.ndarray, variant: str) -> float:
    from scipy.stats import kendalltau

    return kendalltau(x, y, variant=variant).statistic


# All are called like `pearson`. Spearman's rho is Pearson's r of the mean ranks. Of P pairs, T of
# them tied on a side, Kendall's tau-b is (C - D) / sqrt((P - T_x)(P - T_y)); Stuart's tau-c is 2 (C
# - D) m / (n^2 (m - 1)), m the smaller number of distinct values.
COEFFICIENTS: dict[str, Callable[[Numbers, Numbers], Correlation]] = {
    "pearson": pearson,
    "spearman": partial(_coefficient, _spearman),
    "kendall-b": partial(_coefficient, partial(_kendall, variant="b")),
    "kendall-c": partial(_coefficient, partial(_kendall, variant="c")),
}


def mean(correlations: Mapping[str, Correlation]) -> Correlation:
    """The plain mean over named sets; undefined, with the names of the sets, where one of them is
    undefined."""
    if not correlations:
        raise InputError("correlations: empty; there is nothing to average")
    undefined = [
        name for name, correlation in correlations.items() if correlation.reason is not None
    ]
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
    return None if length <= NOISE * np.linalg.norm(column) else centred / length


def why_undefined(columns: Columns) -> str | None:
    """Why no coefficient is defined for the columns; None where all are."""
    n = int(columns.kept.sum())
    if n < 2:
        without = f", {columns.left_out} have no score or no judgement" if columns.left_out else ""
        return (
            f"a correlation needs at least 2 segments, there {'is' if n == 1 else 'are'} "
            f"{n}{without}"
        )
    if reason := columns.not_finite:
        return reason
    return next(
        (
            f"the {name} are constant"
            for name, column in columns.values.items()
            if unit(column) is None
        ),
        None,
    )


def correlate(
    name: str, scores: Numbers, human: Numbers, *, groups: Labels | None = None
) -> Correlation:
    """A coefficient over all segments, or its mean over groups of them.

    The mean is the plain one over the groups for which the coefficient is defined, as in Google's
    mt-metrics-eval; `undefined_groups` counts the others. A value that is not finite leaves the
    whole undefined, whatever its group.

    Args:
        name: a key of `COEFFICIENTS`.
        scores: (n,) scores of a metric; None leaves the segment out.
        human: (n,) human judgements; None leaves the segment out.
        groups: (n,) labels, such as the item or the system of each segment; None for one
            coefficient over all.
    """
    coefficient = COEFFICIENTS[choice("coefficient", name, tuple(COEFFICIENTS))]
    if groups is None:
        return coefficient(scores, human)
    columns = complete({"scores": scores, "human judgements": human})
    if reason := columns.not_finite:
        return Correlation(np.nan, reason, columns.left_out)
    parts = members(codes("groups", groups, columns.kept))
    correlations = [
        coefficient(*(column[part] for column in columns.values.values())) for part in parts
    ]
    defined = [correlation.value for correlation in correlations if correlation.reason is None]
    undefined = len(correlations) - len(defined)
    if defined:
        return Correlation(float(np.mean(defined)), None, columns.left_out, undefined)
    reason = "there is no segment"
    if correlations:
        first = correlations[0].reason
        reason = f"undefined in each of the {undefined} groups, in the first because {first}"
    return Correlation(np.nan, reason, columns.left_out, undefined)


def members(groups: np.ndarray) -> list[np.ndarray]:
    """Positions of each group, in order; `groups` are (n,) numbers 0, 1, ... without a gap."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.cumsum(np.bincount(groups))[:-1]) if len(groups) else []


def pairs_within(groups: np.ndarray) -> np.ndarray:
    """(2, k) all pairs of positions that lie in one group."""
    pairs = [part[np.stack(np.triu_indices(len(part), 1))] for part in members(groups)]
    return np.concatenate([np.empty((2, 0), dtype=np.intp), *pairs], axis=1)


# Agreement on pairs: of systems, and of translations of one item.


def darr_kendall(scores: Numbers, raw_human: Numbers, items: Labels) -> Correlation:
    """Kendall's tau-like agreement of the WMT metrics tasks (Bojar et al., 2017; Ma et al., 2018):
    (C - D) / (C + D).

    The pairs are two translations of one item whose raw assessments (0 to 100, not standardised)
    lie at least 25 points apart. C pairs are ordered by the metric as by people; the D others the
    other way, or tied by the metric.

    Example:
        Of three pairs two are concordant, and the metric ties one:

        >>> darr_kendall([0.1, 0.2, 0.2], [10, 40, 80], ["s1", "s1", "s1"]).value
        0.3333333333333333
    """
    columns = complete({"scores": scores, "raw human judgements": raw_human})
    if reason := columns.not_finite:
        return Correlation(np.nan, reason, columns.left_out)
    metric, people = columns.values.values()
    pairs = pairs_within(codes("items", items, columns.kept))
    lead = people[pairs[0]] - people[pairs[1]]
    pairs = np.where(lead < 0, pairs[::-1], pairs)[:, np.abs(lead) >= _DARR_POINTS]
    if not pairs.size:
        reason = f"no two translations of one item were judged at least {_DARR_POINTS} points apart"
        return Correlation(np.nan, reason, columns.left_out)
    return ranked_kendall(metric, pairs.T)._replace(left_out=columns.left_out)


def ranked_kendall(scores: Numbers, pairs: np.ndarray) -> Correlation:
    """The agreement of `darr_kendall` on pairs that people ordered, as WMT publishes them since
    2017.

    Args:
        scores: (n,) scores of a metric; None leaves the pairs of the segment out.
        pairs: (k, 2) numbers of segments, the better one first.

    Example:
        >>> ranked_kendall([0.1, 0.2, 0.2], np.array([[1, 0], [2, 0], [2, 1]])).value
        0.3333333333333333
    """
    columns = complete({"scores": scores})
    if reason := columns.not_finite:
        return Correlation(np.nan, reason, columns.left_out)
    all_scores = np.full(len(columns.kept), np.nan)
    all_scores[columns.kept] = columns.values["scores"]
    better, worse = all_scores[pairs].T
    scored = ~(np.isnan(better) | np.isnan(worse))
    if not scored.any():
        return Correlation(np.nan, "no pair has scores", columns.left_out)
    agreement = np.where(better > worse, 1.0, -1.0)[scored].mean()
    return Correlation(float(agreement), None, columns.left_out)


def pairwise_accuracy(scores: Numbers, human: Numbers) -> Correlation:
    """Share of the pairs of systems that metric and people order, or tie, alike (Kocmi et al.,
    2021).

    Example:
        >>> pairwise_accuracy([0.1, 0.2, 0.3, 0.4], [1, 3, 2, 4]).value  # one of six pairs is the wrong way round
        0.8333333333333334
    """
    columns = complete({"scores": scores, "human judgements": human})
    systems = int(columns.kept.sum())
    if reason := _too_few(systems) or columns.not_finite:
        return Correlation(np.nan, reason, columns.left_out)
    first, second = np.triu_indices(systems, 1)
    metric, people = (np.sign(column[first] - column[second]) for column in columns.values.values())
    return Correlation(float(np.mean(metric == people)), None, columns.left_out)


def tie_calibrated_accuracy(scores: Numbers, human: Numbers, items: Labels) -> Correlation:
    """Pairwise accuracy with tie calibration, acc_eq* (Deutsch, Foster and Freitag, 2023), WMT's
    "acc23".

    Pairs are two translations of one item. The metric calls a pair tied where its scores differ by
    at most epsilon; it is right where it orders a pair as people do, or calls it tied as people do.
    The accuracy is the mean over the items of the share of pairs that it is right about, at the
    best epsilon: 0 or the difference of a pair. Items with fewer than two translations are left out
    and counted.

    Example:
        Where a difference of 0.01 is a tie, the metric is right about all pairs:

        >>> tie_calibrated_accuracy([0.50, 0.51, 0.90], [1, 1, 2], ["s1", "s1", "s1"]).value
        1.0
    """
    columns = complete({"scores": scores, "human judgements": human})
    if reason := columns.not_finite:
        return Correlation(np.nan, reason, columns.left_out)
    groups = codes("items", items, columns.kept)
    first, second = pairs_within(groups)
    sizes = np.bincount(groups)
    compared = int((sizes >= 2).sum())
    left_out = columns.left_out, len(sizes) - compared
    if not compared:
        return Correlation(
            np.nan, "no item has two translations with a score and a judgement", *left_out
        )
    metric, people = (column[first] - column[second] for column in columns.values.values())
    weights = 1 / ((sizes * (sizes - 1) / 2)[groups[first]] * compared)
    ordered = weights * (np.sign(metric) == np.sign(people))
    # As epsilon grows past the distance of a pair, the pair becomes tied; pairs of one distance do
    # so together.
    order = np.argsort(np.abs(metric), kind="stable")
    distances = np.abs(metric)[order]
    gained = np.cumsum((weights * (people == 0) - ordered)[order])[
        np.append(np.diff(distances) > 0, True)
    ]
    accuracy = ordered.sum() + max(0.0, gained.max())
    return Correlation(float(min(accuracy, 1.0)), None, *left_out)


def soft_pairwise_accuracy(
    scores: Numbers,
    human: Numbers,
    items: Labels,
    systems: Labels,
    *,
    resamples: int = 1000,
    seed: int = SEED,
) -> Correlation:
    """Soft pairwise accuracy (Thompson et al., 2024): 1 - mean |p_human - p_metric| over the pairs
    of systems.

    p is the one-sided p-value that one system of the pair is better, by a paired permutation test
    on the scores of segments; all share the same permutations. The items are those that every
    system has a score and a judgement for; other segments are left out."""
    import pandas as pd

    columns = complete({"scores": scores, "human judgements": human})
    if reason := columns.not_finite:
        return Correlation(np.nan, reason, columns.left_out)
    labels = {
        "system": codes("systems", systems, columns.kept),
        "item": codes("items", items, columns.kept),
    }
    rows = pd.DataFrame(labels | columns.values, index=np.flatnonzero(columns.kept))
    twice = rows[rows.duplicated(["system", "item"])]
    if len(twice):
        raise InputError(
            f"items and systems: segment {twice.index[0]} has the system and the item of another "
            "one"
        )
    tables = [
        rows.pivot(index="system", columns="item", values=name).dropna(axis=1)
        for name in columns.values
    ]
    system_count, item_count = tables[0].shape
    left_out = len(columns.kept) - system_count * item_count
    if reason := _too_few(system_count):
        return Correlation(np.nan, reason, left_out)
    if not item_count:
        return Correlation(np.nan, "no item has a score and a judgement for every system", left_out)
    first, second = np.triu_indices(system_count, 1)
    # Less the mean of its item, a score is as large as the differences are: less is lost to
    # rounding.
    tables = [table - table.mean(0) for table in (table.to_numpy() for table in tables)]
    leads = [
        table.sum(1)[first] - table.sum(1)[second] - ROUNDING * np.abs(table).sum()
        for table in tables
    ]
    counts = np.zeros((2, len(first)))
    for flips in sign_flips(resamples, item_count, seed):
        for count, table, lead in zip(counts, tables, leads, strict=True):
            sums = flips @ table.T
            count += (sums[:, first] - sums[:, second] >= lead).sum(0)
    # p is (count + 1) / (resamples + 1), of which the 1 of both sides cancels.
    return Correlation(
        float(1 - np.abs(counts[1] - counts[0]).mean() / (resamples + 1)), None, left_out
    )


def _too_few(systems: int) -> str | None:
    if systems >= 2:
        return None
    count = f"there {'is' if systems == 1 else 'are'} {systems}"
    return f"pairs need at least 2 systems with a score and a judgement, {count}"


def sign_flips(resamples: int, n: int, seed: int) -> Iterator[np.ndarray]:
    """Random signs, (k, n) at a time until there are `resamples` rows: -1 swaps the two scores of a
    segment."""
    generator = np.random.default_rng(seed)
    for count in portions(resamples, n):
        yield 1.0 - 2.0 * generator.integers(2, size=(count, n), dtype=np.int8)


def portions(resamples: int, n: int) -> Iterator[int]:
    """How many resamples of n segments to draw at once, so that a few tens of megabytes hold
    them."""
    at_once = max(1, _DRAWN_AT_ONCE // n)
    for first in range(0, positive("resamples", resamples), at_once):
        yield min(at_once, resamples - first)
