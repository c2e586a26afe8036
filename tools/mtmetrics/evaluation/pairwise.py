"""Agreement on pairs: of systems, and of translations of one item."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import Columns, Correlation, Numbers, codes, complete, pairs_within
from mtmetrics.evaluation.significance import SEED, sign_flips
from mtmetrics.inputs import number

# Accuracies closer than this differ by rounding alone.
_ROUNDING = 1e-12


def darr_kendall(
    scores: Numbers, raw_human: Numbers, items: Sequence[Any] | np.ndarray, threshold: float = 25.0
) -> Correlation:
    """Kendall's tau-like agreement of the WMT metrics tasks (Bojar et al., 2017; Ma et al., 2018): (C - D) / (C + D).

    The pairs are two translations of one item whose raw assessments (0 to 100, not standardised) lie at least
    `threshold` points apart. C pairs are ordered by the metric as by people; the D others the other way, or tied by the
    metric.

    Example:
        Of three pairs two are concordant, and the metric ties one:

        >>> darr_kendall([0.1, 0.2, 0.2], [10, 40, 80], ["s1", "s1", "s1"]).value
        0.3333333333333333
    """
    if number("threshold", threshold) <= 0:
        raise InputError(f"threshold {threshold!r}: must be above 0; pairs that people hold for equal have no order")
    columns = complete({"scores": scores, "raw human judgements": raw_human})
    if reason := columns.not_finite:
        return Correlation(np.nan, reason, columns.left_out)
    pairs = np.stack(pairs_within(codes("items", items, columns.kept)), axis=1)
    metric, people = columns.values.values()
    pairs = np.where((people[pairs[:, 0]] < people[pairs[:, 1]])[:, None], pairs[:, ::-1], pairs)
    pairs = pairs[people[pairs[:, 0]] - people[pairs[:, 1]] >= threshold]
    if not len(pairs):
        reason = f"no two translations of one item were judged at least {threshold:g} points apart"
        return Correlation(np.nan, reason, columns.left_out)
    return ranked_kendall(metric, pairs)._replace(left_out=columns.left_out)


def ranked_kendall(scores: Numbers, pairs: np.ndarray) -> Correlation:
    """The agreement of `darr_kendall` on pairs that people ordered, as WMT publishes them since 2017.

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
    known = np.full(len(columns.kept), np.nan)
    known[columns.kept] = columns.values["scores"]
    better, worse = known[pairs].T
    scored = ~(np.isnan(better) | np.isnan(worse))
    if not scored.any():
        return Correlation(np.nan, "no pair has scores", columns.left_out)
    agreement = np.where(better > worse, 1.0, -1.0)[scored].mean()
    return Correlation(float(agreement), None, columns.left_out)


class TieCalibrated(NamedTuple):
    """Pairwise accuracy with tie calibration, and the largest difference of scores that counts as a tie, or NaN."""

    accuracy: Correlation
    epsilon: float


def pairwise_accuracy(scores: Numbers, human: Numbers) -> Correlation:
    """Share of the pairs of systems that metric and people order, or tie, alike (Kocmi et al., 2021).

    Example:
        >>> pairwise_accuracy([0.1, 0.2, 0.3, 0.4], [1, 3, 2, 4]).value  # one of six pairs is the wrong way round
        0.8333333333333334
    """
    columns = complete({"scores": scores, "human judgements": human})
    if reason := _too_few(int(columns.kept.sum())) or columns.not_finite:
        return Correlation(np.nan, reason, columns.left_out)
    first, second = np.triu_indices(int(columns.kept.sum()), 1)
    metric, people = (np.sign(column[first] - column[second]) for column in columns.values.values())
    return Correlation(float(np.mean(metric == people)), None, columns.left_out)


def tie_calibrated_accuracy(scores: Numbers, human: Numbers, items: Sequence[Any] | np.ndarray) -> TieCalibrated:
    """Pairwise accuracy with tie calibration, acc_eq* (Deutsch, Foster and Freitag, 2023), WMT's "acc23".

    Pairs are two translations of one item. The metric calls a pair tied where its scores differ by at most epsilon; it
    is right where it orders a pair as people do, or calls it tied as people do. The accuracy is the mean over the items
    of the share of pairs that it is right about; epsilon is the smallest of those with the highest accuracy: 0 or the
    difference of a pair. Items with fewer than two translations are left out and counted.

    Example:
        >>> found = tie_calibrated_accuracy([0.50, 0.51, 0.90], [1, 1, 2], ["s1", "s1", "s1"])
        >>> found.accuracy.value, round(found.epsilon, 6)
        (1.0, 0.01)
    """
    columns = complete({"scores": scores, "human judgements": human})
    if reason := columns.not_finite:
        return TieCalibrated(Correlation(np.nan, reason, columns.left_out), np.nan)
    groups = codes("items", items, columns.kept)
    first, second = pairs_within(groups)
    sizes = np.bincount(groups)
    compared = int((sizes >= 2).sum())
    left_out = columns.left_out, len(sizes) - compared
    if not compared:
        reason = "no item has two translations with a score and a judgement"
        return TieCalibrated(Correlation(np.nan, reason, *left_out), np.nan)
    metric, people = (column[first] - column[second] for column in columns.values.values())
    pairs = sizes * (sizes - 1) / 2
    weights = 1 / (pairs[groups[first]] * compared)
    ordered = weights * (np.sign(metric) == np.sign(people))
    accuracy, epsilon = _calibrated(np.abs(metric), ordered, weights * (people == 0))
    return TieCalibrated(Correlation(accuracy, None, *left_out), epsilon)


def soft_pairwise_accuracy(
    scores: Numbers,
    human: Numbers,
    items: Sequence[Any] | np.ndarray,
    systems: Sequence[Any] | np.ndarray,
    *,
    resamples: int = 1000,
    seed: int = SEED,
) -> Correlation:
    """Soft pairwise accuracy (Thompson et al., 2024): 1 - mean |p_human - p_metric| over the pairs of systems.

    p is the one-sided p-value that one system of the pair is better, by a paired permutation test on the scores of
    segments; all share the same permutations. The items are those that every system has a score and a judgement for;
    other segments are left out.
    """
    columns = complete({"scores": scores, "human judgements": human})
    if reason := columns.not_finite:
        return Correlation(np.nan, reason, columns.left_out)
    tables = _tables(columns, items, systems)
    system_count, item_count = tables[0].shape
    left_out = len(columns.kept) - system_count * item_count
    if reason := _too_few(system_count):
        return Correlation(np.nan, reason, left_out)
    if not item_count:
        return Correlation(np.nan, "no item has a score and a judgement for every system", left_out)
    first, second = np.triu_indices(system_count, 1)
    # Less the mean of its item, a score is as large as the differences are: less is lost to rounding.
    tables = [table - table.mean(0) for table in tables]
    leads = [table.sum(1)[first] - table.sum(1)[second] - _ROUNDING * np.abs(table).sum() for table in tables]
    counts = np.zeros((2, len(first)))
    for flips in sign_flips(resamples, item_count, seed):
        for count, table, lead in zip(counts, tables, leads, strict=True):
            sums = flips @ table.T
            count += (sums[:, first] - sums[:, second] >= lead).sum(0)
    # p is (count + 1) / (resamples + 1), of which the 1 of both sides cancels.
    return Correlation(float(1 - np.abs(counts[1] - counts[0]).mean() / (resamples + 1)), None, left_out)


def _tables(
    columns: Columns, items: Sequence[Any] | np.ndarray, systems: Sequence[Any] | np.ndarray
) -> list[np.ndarray]:
    """Each column as a table (systems, items), of the items that every system has."""
    row, item = codes("systems", systems, columns.kept), codes("items", items, columns.kept)
    shape = row.max(initial=-1) + 1, item.max(initial=-1) + 1
    cells, times = np.unique(row * shape[1] + item, return_counts=True)
    if (times > 1).any():
        twice = np.flatnonzero(columns.kept)[row * shape[1] + item == cells[times.argmax()]]
        raise InputError(f"items and systems: segments {twice[0]} and {twice[1]} are of one system and one item")
    common = np.bincount(item, minlength=shape[1]) == shape[0]
    tables = [np.zeros(shape) for _ in columns.values]
    for table, values in zip(tables, columns.values.values(), strict=True):
        table[row, item] = values
    return [table[:, common] for table in tables]


def _calibrated(distances: np.ndarray, ordered: np.ndarray, tied: np.ndarray) -> tuple[float, float]:
    """The highest accuracy and the smallest epsilon that reaches it, for p pairs.

    A pair at a distance (p,) of scores adds `ordered` (p,) to the accuracy, and `tied` (p,) once the metric ties it.
    """
    order = np.argsort(distances, kind="stable")
    epsilons = np.concatenate([[0.0], distances[order]])
    # As epsilon grows past the distance of a pair, the pair becomes tied.
    accuracies = ordered.sum() + np.concatenate([[0.0], np.cumsum((tied - ordered)[order])])
    complete_steps = np.append(epsilons[1:] != epsilons[:-1], True)  # pairs of one distance become tied together
    accuracies, epsilons = accuracies[complete_steps], epsilons[complete_steps]
    best = np.flatnonzero(accuracies >= accuracies.max() - _ROUNDING)[0]
    return float(np.clip(accuracies[best], 0.0, 1.0)), float(epsilons[best])


def _too_few(systems: int) -> str | None:
    there = f"there {'is' if systems == 1 else 'are'} {systems}"
    return f"pairs need at least 2 systems with a score and a judgement, {there}" if systems < 2 else None
