"""Agreement within groups of segments (items, systems), and over systems."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mtmetrics.evaluation.columns import Numbers, codes, complete
from mtmetrics.evaluation.correlation import COEFFICIENTS, Correlation
from mtmetrics.inputs import choice


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


def system_means(values: Numbers, systems: Sequence[str]) -> dict[str, float | None]:
    """The mean of each system's scores or judgements: its score at the level of systems.

    Args:
        values: (n,) scores or judgements of segments; None leaves the segment out.
        systems: (n,) names.

    Returns:
        System -> mean, None where all its segments are left out; in the order of first appearance.

    Raises:
        InputError: the columns are not of one length, or a segment has no system.

    Example:
        >>> system_means([1.0, 2.0, None, 3.0, None], ["a", "b", "a", "b", "c"])
        {'a': 1.0, 'b': 2.5, 'c': None}
    """
    columns = complete({"values": values})
    parts = members(codes("systems", systems, np.ones_like(columns.kept)))
    full = np.asarray(values, dtype=np.float64)
    present = [part[columns.kept[part]] for part in parts]
    names = [systems[part[0]] for part in parts]
    return {name: float(full[part].mean()) if part.size else None for name, part in zip(names, present, strict=True)}


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
