"""Prints a comparison of systems: JSON with full precision, tables with four decimals."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

from mtmetrics.evaluation.compare import ALPHA, SystemComparison
from mtmetrics.evaluation.table_styles import FOR_READERS, STYLES
from mtmetrics.scorers.base import MetricResult


def render(
    comparisons: Mapping[str, SystemComparison], results: Mapping[str, Mapping[str, MetricResult]], style: str
) -> str:
    """What one or several metrics say of the same systems, without a final line end.

    Args:
        comparisons: metric, as the user wrote it -> its comparison of the systems; all of one test set, with the same
            settings.
        results: metric -> system -> what was compared, for signatures and reports.
        style: ``json``, or a style of tables. Markdown and LaTeX hold a table of systems and metrics, a table of
            p-values per metric and the signatures; TSV and CSV one table with a row per metric and system.
    """
    if style == "json":
        return json.dumps(_as_json(comparisons, results), indent=2, ensure_ascii=False, allow_nan=False)
    if style not in FOR_READERS:
        return STYLES[style](_flat(comparisons, results), ())
    comment = "% " if style == "latex" else ""
    overview = _overview(comparisons)
    blocks = [STYLES[style](overview, range(1, len(overview[0])))]
    for metric, comparison in comparisons.items():
        table = _p_values(comparison)
        blocks += [f"{comment}p-values of {metric}:", STYLES[style](table, range(1, len(table[0])))]
    notes = [
        _method(next(iter(comparisons.values()))),
        *(f"{metric}: {_signature(systems)}" for metric, systems in results.items()),
    ]
    return "\n\n".join([*blocks, *(comment + note for note in notes)])


def _method(comparison: SystemComparison) -> str:
    """What the tables show, in words."""
    corrected = (
        "not corrected for their number"
        if comparison.correction == "none"
        else f"corrected by {comparison.correction.title()}"
    )
    return (
        f"Means of {comparison.segments} segments with their 95 % bootstrap intervals; two-sided p-values of the paired {comparison.test} "
        f"test of every two systems, {corrected}; {comparison.resamples} resamples, seed {comparison.seed}. A cluster ends where each "
        f"system above has p < {ALPHA} against each system below."
    )


def _as_json(
    comparisons: Mapping[str, SystemComparison], results: Mapping[str, Mapping[str, MetricResult]]
) -> dict[str, Any]:
    first = next(iter(comparisons.values()))
    metrics = []
    for metric, comparison in comparisons.items():
        systems = [
            {
                "system": system.name,
                "mean_score": system.mean,
                "ci": system.interval._asdict(),
                "rank": system.rank,
                "cluster": system.cluster,
                "report": results[metric][system.name].report.as_dict(),
            }
            for system in comparison.systems
        ]
        pairs = [
            {
                "better": better.name,
                "worse": worse.name,
                "difference": better.mean - worse.mean,
                "p": float(comparison.p_values[i, j]),
                "significant": bool(comparison.p_values[i, j] < ALPHA),
            }
            for (i, better), (j, worse) in itertools.combinations(enumerate(comparison.systems), 2)
        ]
        metrics.append({"metric": metric, "signature": _signature(results[metric]), "systems": systems, "pairs": pairs})
    settings = {name: getattr(first, name) for name in ("segments", "test", "correction", "resamples", "seed")}
    return settings | {"alpha": ALPHA, "metrics": metrics}


def _overview(comparisons: Mapping[str, SystemComparison]) -> list[list[str]]:
    """A row per system, in the order of the first metric."""
    first = next(iter(comparisons.values()))
    rows = {system.name: [system.name] for system in first.systems}
    for comparison in comparisons.values():
        for system in comparison.systems:
            between = f"[{_shown(system.interval.low)}, {_shown(system.interval.high)}]"
            rows[system.name] += [f"{_shown(system.mean)} {between}", str(system.rank), str(system.cluster)]
    return [["system", *(cell for metric in comparisons for cell in (metric, "rank", "cluster"))], *rows.values()]


def _p_values(comparison: SystemComparison) -> list[list[str]]:
    """The upper triangle: rows are the better systems, columns the worse ones."""
    names = [system.name for system in comparison.systems]
    rows = [
        [name, *("" if j <= i else _p(comparison.p_values[i, j]) for j in range(1, len(names)))]
        for i, name in enumerate(names[:-1])
    ]
    return [["better than", *names[1:]], *rows]


def _flat(
    comparisons: Mapping[str, SystemComparison], results: Mapping[str, Mapping[str, MetricResult]]
) -> list[list[str]]:
    """A row per metric and system, with the p-values against each system in the order in which the systems were
    given."""
    names = list(next(iter(results.values())))
    table = [
        ["metric", "system", "mean", "low", "high", "rank", "cluster", *(f"p {name}" for name in names), "signature"]
    ]
    for metric, comparison in comparisons.items():
        places = {system.name: place for place, system in enumerate(comparison.systems)}
        for place, system in enumerate(comparison.systems):
            numbers = map(_shown, (system.mean, system.interval.low, system.interval.high))
            p_values = (_p(comparison.p_values[place, places[name]]) for name in names)
            ranks = (str(system.rank), str(system.cluster))
            table.append([metric, system.name, *numbers, *ranks, *p_values, results[metric][system.name].signature])
    return table


def _signature(systems: Mapping[str, MetricResult]) -> str:
    """Of a metric, which is the same for all systems."""
    return next(iter(systems.values())).signature


def _shown(value: float) -> str:
    # Adding 0.0 turns -0.0000 into 0.0000.
    return f"{round(value, 4) + 0.0:.4f}"


def _p(value: float) -> str:
    return f"{value:.4f}"
