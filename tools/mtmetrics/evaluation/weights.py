"""Agreement with people as a function of the weights of a score's parts (Fig. 4 of Belouadi and Eger, 2023)."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import COEFFICIENTS, Correlation, Numbers, mean
from mtmetrics.evaluation.figures import COLOURS, finished, new_figure, plain_axes
from mtmetrics.evaluation.table_styles import STYLES, as_json, rounded, three_decimals
from mtmetrics.inputs import choice, positive

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Above so many steps the cells of a grid are too small for numbers.
_LEAST_SPAN = 0.1
_STEPS_WITH_NUMBERS = 12


@dataclasses.dataclass(frozen=True)
class WeightGrid:
    """The agreement of weighted sums of k parts: (m, k) weights which sum up to 1, later parts vary fastest, and the m
    correlations with human judgements; `steps` is into how many the way from 0 to 1 is cut."""

    parts: tuple[str, ...]
    steps: int
    points: np.ndarray
    correlations: list[Correlation]

    @property
    def best(self) -> int | None:
        """Index of the highest correlation, the first of equal ones; None where none is defined."""
        values = np.array([correlation.value for correlation in self.correlations])
        return None if np.isnan(values).all() else int(np.nanargmax(values))

    def weights(self, point: int) -> dict[str, float]:
        """Part -> its weight at a point."""
        return dict(zip(self.parts, self.points[point].tolist(), strict=True))


def weight_grid(
    parts: Mapping[str, np.ndarray], human: Numbers, steps: int = 10, *, coefficient: str = "pearson"
) -> WeightGrid:
    """Correlates every weighted sum of parts with human judgements.

    The parts are summed up without scaling, as in Eq. 3 and 6 of Belouadi and Eger (2023). Since a correlation does not
    change with the scale of a score, weights that sum up to 1 stand for all proportions.

    Args:
        parts: two parts or more, k (n,) vectors, higher is better.
        human: (n,) human judgements; None leaves the segment out.
        steps: with 10 a weight is 0.0, 0.1, ..., 1.0.
        coefficient: a key of `mtmetrics.evaluation.correlation.COEFFICIENTS`.

    Raises:
        InputError: fewer than two parts, or as the coefficient.
    """
    if len(parts) < 2:
        raise InputError(f"parts: {', '.join(parts) or 'none'} given; weights need at least two")
    correlate = COEFFICIENTS[choice("coefficient", coefficient, tuple(COEFFICIENTS))]
    points = simplex(len(parts), positive("steps", steps))
    columns = np.array([np.asarray(values, dtype=np.float64) for values in parts.values()])
    return WeightGrid(tuple(parts), steps, points, [correlate(point @ columns, human) for point in points])


def simplex(k: int, steps: int) -> np.ndarray:
    """(m, k) all ways to share 1 among k weights in whole steps, m = C(steps + k - 1, k - 1).

    Example:
        >>> simplex(2, 2).tolist()
        [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """
    others = (counts for counts in itertools.product(range(steps + 1), repeat=k - 1) if sum(counts) <= steps)
    return np.array([(steps - sum(counts), *counts) for counts in others]) / steps


def mean_grid(grids: Mapping[str, WeightGrid]) -> WeightGrid:
    """The mean over files of the correlation at each point; undefined where it is undefined for a file.

    Raises:
        InputError: there is no file, or the grids are not of the same parts and steps.
    """
    if len({(grid.parts, grid.steps) for grid in grids.values()}) != 1:
        raise InputError("grids: one or several of the same parts and steps are needed for a mean")
    first = next(iter(grids.values()))
    at_points = zip(*(grid.correlations for grid in grids.values()), strict=True)
    return dataclasses.replace(first, correlations=[mean(dict(zip(grids, row, strict=True))) for row in at_points])


def render_weights(grids: Mapping[str, WeightGrid], about: Mapping[str, str], style: str) -> str:
    """A row per point of the grid: the weights, the correlation on each file, and the mean.

    Args:
        grids: file -> its grid, all of the same parts and steps.
        about: what was weighed and how, for JSON alone.
        style: ``json`` (full precision), or a style of tables (three decimals).
    """
    whole = mean_grid(grids)
    columns = {file: grid.correlations for file, grid in grids.items()} | {"mean": whole.correlations}
    found = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if style == "json":
        known = [{name: correlation.known for name, correlation in row.items()} for row in found]
        rows = [{"weights": whole.weights(point), "correlations": row} for point, row in enumerate(known)]
        document = {**about, "parts": whole.parts, "best": None if whole.best is None else rows[whole.best]}
        return as_json(document | {"grid": rows})
    table = [[*whole.parts, *columns]]
    for point, row in zip(whole.points, found, strict=True):
        table.append([*(f"{weight:.3g}" for weight in point), *map(rounded, row.values())])
    return STYLES[style](table, range(len(table[0])))


def best_weights(grid: WeightGrid) -> str:
    """One line that names the best weights."""
    if grid.best is None:
        return f"no weights are best: {grid.correlations[0].reason}"
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in grid.weights(grid.best).items())
    return f"best weights: {weights} ({rounded(grid.correlations[grid.best])})"


def draw_weights(grid: WeightGrid, *, title: str, label: str) -> "Figure":
    """The agreement at the weights of two parts, a line, or of three, a triangle; the best point is framed.

    Args:
        grid: of two or three parts.
        title: over the plot.
        label: what the correlation is.

    Raises:
        InputError: the grid has more parts.
    """
    if len(grid.parts) > 3:
        raise InputError(f"parts: {', '.join(grid.parts)} given; a plot of weights shows two or three")
    first, *others = grid.parts
    side = 0.52 * (min(grid.steps, _STEPS_WITH_NUMBERS) + 1)
    figure = new_figure(6.4, 4.2) if len(others) == 1 else new_figure(side + 2.2, side + 1.1)
    axes = figure.add_subplot()
    axes.set_xlabel(f"weight of {others[0]}")
    axes.set_ylabel(label if len(others) == 1 else f"weight of {others[1]}")
    plain_axes(axes, f"{title}\nweight of {first}: what is left of 1", fontsize=10)
    if len(others) == 1:
        _draw_line(axes, grid)
    else:
        _draw_triangle(axes, grid)
        figure.colorbar(axes.images[0], ax=axes, shrink=0.8, label=label).outline.set_visible(False)
    return finished(figure)


def _draw_line(axes: "Axes", grid: WeightGrid) -> None:
    values = [correlation.value for correlation in grid.correlations]
    axes.plot(grid.points[:, 1], values, color=COLOURS[0], marker="o", markersize=5, linewidth=1.8)
    if grid.best is not None:
        best = (grid.points[grid.best, 1], values[grid.best])
        axes.scatter(*best, s=130, facecolors="none", edgecolors=COLOURS[1], linewidths=2.0, zorder=3)
        axes.annotate(three_decimals(best[1]), best, (0, 12), textcoords="offset points", ha="center")
        axes.margins(y=0.18)
    low, high = axes.get_ylim()
    if high - low < _LEAST_SPAN:  # differences that mean nothing shall not look like much
        axes.set_ylim((low + high - _LEAST_SPAN) / 2, (low + high + _LEAST_SPAN) / 2)


def _draw_triangle(axes: "Axes", grid: WeightGrid) -> None:
    from matplotlib.patches import Rectangle

    count = grid.steps + 1
    cells = np.full((count, count), np.nan)
    columns, rows = np.rint(grid.points[:, 1:] * grid.steps).astype(int).T
    cells[rows, columns] = [correlation.value for correlation in grid.correlations]
    image = axes.imshow(cells, origin="lower", cmap="cividis")
    axes.grid(visible=False)
    ticks = range(0, count, max(1, grid.steps // 10))
    names = [f"{tick / grid.steps:.3g}" for tick in ticks]
    axes.set_xticks(ticks, names)
    axes.set_yticks(ticks, names)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    if grid.steps <= _STEPS_WITH_NUMBERS:
        for row, column in zip(rows, columns, strict=True):
            value = cells[row, column]
            colour = "white" if not np.isnan(value) and image.norm(value) < 0.5 else "black"
            shown = "n/a" if np.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)
            axes.text(column, row, shown, ha="center", va="center", fontsize=8, color=colour)
    if grid.best is not None:
        place = (columns[grid.best] - 0.5, rows[grid.best] - 0.5)
        axes.add_patch(Rectangle(place, 1, 1, fill=False, edgecolor=COLOURS[1], linewidth=2.5))
