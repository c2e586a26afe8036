"""Prints agreement as a function of the weights of parts: JSON with full precision, tables with three decimals."""

import json
from collections.abc import Mapping
from typing import Any

from mtmetrics.evaluation.correlation import Correlation
from mtmetrics.evaluation.table_styles import STYLES, rounded
from mtmetrics.evaluation.weights import WeightGrid, mean_grid


def render_weights(grids: Mapping[str, WeightGrid], about: Mapping[str, str], style: str) -> str:
    """A row per point of the grid: the weights, the correlation on each file, and the mean, without a final line end.

    Args:
        grids: file -> its grid, all of the same parts and steps.
        about: what was weighed and how, for JSON alone.
        style: ``json``, or one of the styles of tables.
    """
    whole = mean_grid(grids)
    columns: dict[str, list[Correlation]] = {file: grid.correlations for file, grid in grids.items()} | {
        "mean": whole.correlations
    }
    if style == "json":
        rows: list[dict[str, Any]] = [
            {
                "weights": _weights(whole, row),
                "correlations": {name: values[row].known for name, values in columns.items()},
            }
            for row in range(len(whole.points))
        ]
        best = None if whole.best is None else rows[whole.best]
        return json.dumps(
            {**about, "parts": whole.parts, "best": best, "grid": rows}, indent=2, ensure_ascii=False, allow_nan=False
        )
    table = [[*whole.parts, *columns]]
    for row in range(len(whole.points)):
        table.append([*map(_shown, whole.points[row]), *(rounded(values[row]) for values in columns.values())])
    return STYLES[style](table, range(len(table[0])))


def best_weights(grid: WeightGrid) -> str:
    """One line that names the best weights."""
    if grid.best is None:
        return f"no weights are best: {grid.correlations[0].reason}"
    weights = ", ".join(f"{name} {_shown(weight)}" for name, weight in _weights(grid, grid.best).items())
    return f"best weights: {weights} ({rounded(grid.correlations[grid.best])})"


def _weights(grid: WeightGrid, row: int) -> dict[str, float]:
    return dict(zip(grid.parts, grid.points[row].tolist(), strict=True))


def _shown(weight: float) -> str:
    return f"{weight:.3g}"
