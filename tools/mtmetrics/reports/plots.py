"""Plots: scores against judgements, numbers of a paper against ours, bars of correlations, curves,
and agreement as a function of weights.

The last has a computation of its own: `weight_grid` correlates weighted sums of the parts of a score
with judgements, `report_weights` and `draw_weights` show the correlations.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mtmetrics.reports.figures import (
    COLOURS,
    INK,
    QUIET,
    finished,
    label_fonts,
    new_figure,
    plain_axes,
    wrapped,
)
from mtmetrics.reports.styles import Grid, Report, correlation_text, decimals
from mtmetrics.statistics.correlation import (
    COEFFICIENTS,
    Correlation,
    Numbers,
    complete,
    mean,
    pearson,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Width of a bar, in inches.
_BAR = 0.22
# Characters of a line of a panel's title.
_LONGEST_TITLE = 36
# Grey for black, on which whiskers cannot be seen.
_BAR_COLOURS = (*COLOURS[:-1], "#999999")
_HATCHES = ("", "//", "..", "xx")
_MARKERS = "osD^vPX"
# Of the x axis of curves.
_MOST_TICKS = 30
# Differences that mean nothing shall not look like much.
_LEAST_SPAN = 0.1
# Above so many steps the cells of a grid are too small for numbers.
_STEPS_WITH_NUMBERS = 12


class Bar(NamedTuple):
    """A correlation with its interval.

    Attributes:
        value: the correlation; NaN where it is not defined.
        low: the lower end of the interval; NaN for no interval.
        high: the upper end.
    """

    value: float
    low: float = np.nan
    high: float = np.nan


def draw_scatter(panels: Mapping[str, Mapping[str, tuple[Numbers, Numbers]]]) -> "Figure":
    """Scores of a metric against human judgements (Fig. 1 and 2 of Song et al., 2021), with
    Pearson's r and the least-squares line.

    Args:
        panels: file (a row) -> metric (a column) -> (n,) scores and (n,) judgements, None where
            there is none.
    """
    metrics = list(dict.fromkeys(metric for row in panels.values() for metric in row))
    figure = new_figure(3.4 * len(metrics), 3.0 * len(panels))
    grid = figure.subplots(len(panels), len(metrics), squeeze=False)
    for row, (file, columns) in zip(grid, panels.items(), strict=True):
        for axes, metric in zip(row, metrics, strict=True):
            scores, human = columns[metric]
            complete_columns = complete({"scores": scores, "human judgements": human}).values
            heading = _draw_points(axes, *complete_columns.values())
            names = [wrapped(name, _LONGEST_TITLE) for name in (metric, file)]
            plain_axes(axes, "\n".join([*names, heading]), fontsize=9)
        row[0].set_ylabel("score")
    for axes in grid[-1]:
        axes.set_xlabel("human judgement")
    return finished(figure)


def draw_published(
    points: Mapping[str, Sequence[tuple[float, float]]], *, title: str, label: str
) -> "Figure":
    """The numbers of a paper's table against ours; equal numbers lie on the diagonal.

    Args:
        points: row of the table -> (published, measured) for each language pair.
        title: of the plot.
        label: name of the numbers, for the axes.
    """
    legend = 0.6 + 0.075 * max(map(len, points))
    figure = new_figure(5.2 + legend, 4.8)
    axes = figure.add_subplot()
    for number, (row, pairs) in enumerate(points.items()):
        # Rows beyond the number of colours have the first colours again, with other markers.
        marker = _MARKERS[(number + number // len(COLOURS)) % len(_MARKERS)]
        published, measured = zip(*pairs, strict=True)
        axes.scatter(
            published,
            measured,
            label=row,
            color=COLOURS[number % len(COLOURS)],
            marker=marker,
            s=30,
            linewidths=0,
            alpha=0.85,
        )
    values = [value for pairs in points.values() for pair in pairs for value in pair]
    ends = (min(values) - 0.03, max(values) + 0.03)
    axes.plot(ends, ends, color=QUIET, linewidth=1.0, zorder=0)
    axes.set(xlim=ends, ylim=ends, xlabel=f"{label}, published", ylabel=f"{label}, here")
    axes.set_aspect("equal")
    plain_axes(axes, title, fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return finished(figure)


def draw_bars(
    bars: Mapping[str, Sequence[Bar]],
    groups: Sequence[str],
    *,
    title: str,
    y_label: str,
) -> "Figure":
    """Bars of metrics side by side for each group, with whiskers for intervals (Fig. 5 to 7 of Song
    et al., 2021); ``n/a`` stands in place of a bar that is not defined.

    Args:
        bars: metric -> its bar for each group.
        groups: names of the groups, below the axis.
        title: of the plot.
        y_label: of the y axis.
    """
    # Width of a group, and of the gap behind it.
    span = len(bars) * _BAR + 0.3
    legend = 0.6 + 0.075 * max(map(len, bars)) if len(bars) > 1 else 0.0
    figure = new_figure(legend + min(24.0, max(5.0, 1.2 + len(groups) * span)), 4.4)
    axes = figure.add_subplot()
    middles = np.arange(len(groups)) * span
    for number, (metric, row) in enumerate(bars.items()):
        places = middles + (number - (len(bars) - 1) / 2) * _BAR
        _draw_metric_bars(axes, number, metric, places, row)
    # Unlike other texts, labels of ticks are written anew whenever a figure is drawn.
    fonts = label_fonts(groups)
    fonts.warn(stacklevel=3)
    axes.set_xticks(middles, map(fonts.shown, groups))
    axes.set_xlim(-0.75 * span, middles[-1] + 0.75 * span)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.set_ylabel(y_label)
    plain_axes(axes, title)
    axes.grid(visible=False, axis="x")
    axes.tick_params(axis="x", length=0)
    if len(bars) > 1:
        axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return finished(figure)


def draw_curves(
    lines: Mapping[str, Mapping[float, float]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    intervals: Mapping[str, Mapping[float, tuple[float, float]]] | None = None,
    least_span: float = 0.0,
) -> "Figure":
    """A line per name: correlation against layer or number of training instances, loss against
    steps.

    Args:
        lines: name -> x -> y; values that are not finite leave a gap.
        title, x_label, y_label: texts over, under and beside the plot.
        intervals: name -> x -> the ends of an interval around y, drawn as bands, which the y axis
            has room for.
        least_span: of the y axis, so that noise does not look like a change.
    """
    figure = new_figure(7.0, 4.4)
    axes = figure.add_subplot()
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(
            list(line),
            list(line.values()),
            label=name,
            color=colour,
            marker=_MARKERS[number % len(_MARKERS)],
            linewidth=1.8,
            markersize=5,
        )
        bands = (intervals or {}).get(name)
        if bands:
            low, high = zip(*bands.values(), strict=True)
            axes.fill_between(list(bands), low, high, color=colour, alpha=0.15, linewidth=0)
    xs = sorted({x for line in lines.values() for x in line})
    are_whole = all(float(x).is_integer() for x in xs)
    # Layers and rounds have a tick each; matplotlib chooses the ticks of steps.
    if len(xs) <= _MOST_TICKS and are_whole and xs[-1] <= _MOST_TICKS:
        axes.set_xticks(xs)
    axes.set(xlabel=x_label, ylabel=y_label)
    plain_axes(axes, title)
    _widen(axes, least_span)
    if len(lines) > 1:
        axes.legend(frameon=False)
    return finished(figure)


def _draw_points(axes: "Axes", scores: np.ndarray, human: np.ndarray) -> str:
    """Draws (n,) scores against (n,) judgements with the least-squares line; returns a heading with
    Pearson's r."""
    axes.scatter(human, scores, s=9, alpha=0.35, color=COLOURS[0], linewidths=0)
    r = pearson(scores, human)
    if r.reason is not None:
        return f"r not defined, n = {len(scores)}"
    ends = np.array([human.min(), human.max()])
    fitted = np.polyval(np.polyfit(human, scores, 1), ends)
    axes.plot(ends, fitted, color=COLOURS[1], linewidth=1.8)
    return f"r = {decimals(r.value)}, n = {len(scores)}"


def _draw_metric_bars(
    axes: "Axes", number: int, metric: str, places: np.ndarray, bars: Sequence[Bar]
) -> None:
    """Draws the bars of a metric, the one of a number among all, at (groups,) places."""
    values, low, high = np.array(bars, dtype=np.float64).reshape(len(places), 3).T
    # More metrics than colours: the next round of colours is hatched.
    rounds, colour = divmod(number, len(_BAR_COLOURS))
    axes.bar(
        places,
        np.nan_to_num(values),
        0.9 * _BAR,
        label=metric,
        linewidth=0,
        color=_BAR_COLOURS[colour],
        hatch=_HATCHES[rounds % len(_HATCHES)],
        edgecolor="white",
    )
    has_interval = ~np.isnan(low) & ~np.isnan(values)
    # A percentile interval need not hold the value itself.
    whiskers = np.maximum([values - low, high - values], 0.0)[:, has_interval]
    axes.errorbar(
        places[has_interval],
        values[has_interval],
        yerr=whiskers,
        fmt="none",
        ecolor=INK,
        elinewidth=1.0,
        capsize=2.5,
    )
    for place in places[np.isnan(values)]:
        axes.text(
            place, 0.0, " n/a", rotation=90, ha="center", va="bottom", fontsize=8, color=QUIET
        )


def _widen(axes: "Axes", least_span: float) -> None:
    """Widens the y axis to a span, evenly on both sides."""
    low, high = axes.get_ylim()
    if high - low < least_span:
        axes.set_ylim((low + high - least_span) / 2, (low + high + least_span) / 2)


# Agreement with people as a function of the weights of a score's parts.


@dataclasses.dataclass(frozen=True)
class WeightGrid:
    """The agreement of weighted sums of k parts.

    Attributes:
        parts: names of the parts.
        steps: number of steps of a weight from 0 to 1.
        points: (m, k) weights that sum up to 1; those of later parts vary fastest.
        correlations: for each point the correlation of the weighted sum with human judgements.
    """

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
    parts: Mapping[str, np.ndarray],
    human: Numbers,
    steps: int = 10,
    *,
    coefficient: str = "pearson",
) -> WeightGrid:
    """Correlates every weighted sum of parts with human judgements (Fig. 4 of Belouadi and Eger,
    2023).

    The parts are summed up without scaling, as in their Eq. 3 and 6. Since a correlation does not
    change with the scale of a score, weights that sum up to 1 stand for all proportions.

    Args:
        parts: two parts or more, k (n,) vectors, higher is better.
        human: (n,) human judgements; None leaves the segment out.
        steps: with 10 a weight is 0.0, 0.1, ..., 1.0.
        coefficient: a key of `mtmetrics.statistics.correlation.COEFFICIENTS`.
    """
    correlate = COEFFICIENTS[coefficient]
    points = simplex(len(parts), steps)
    columns = np.array([np.asarray(values, dtype=np.float64) for values in parts.values()])
    correlations = [correlate(point @ columns, human) for point in points]
    return WeightGrid(tuple(parts), steps, points, correlations)


def simplex(k: int, steps: int) -> np.ndarray:
    """(m, k) all ways to share 1 among k weights in whole steps, m = C(steps + k - 1, k - 1).

    Example:
        >>> simplex(2, 2).tolist()
        [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """
    later_weights = itertools.product(range(steps + 1), repeat=k - 1)
    points = [(steps - sum(later), *later) for later in later_weights if sum(later) <= steps]
    return np.array(points) / steps


def mean_grid(grids: Mapping[str, WeightGrid]) -> WeightGrid:
    """A grid of the mean correlations over files, undefined where a correlation is undefined.

    Args:
        grids: file -> its grid; all have the same parts and steps.
    """
    first = next(iter(grids.values()))
    means = []
    for number in range(len(first.points)):
        means.append(mean({file: grid.correlations[number] for file, grid in grids.items()}))
    return dataclasses.replace(first, correlations=means)


def report_weights(grids: Mapping[str, WeightGrid], about: Mapping[str, str]) -> Report:
    """A row per point of the grid: the weights, the correlation on each file, and the mean.

    Args:
        grids: file -> its grid; all have the same parts and steps.
        about: fields on the judgements and the metric, for JSON alone.
    """
    mean_of_files = mean_grid(grids)
    columns = {**grids, "mean": mean_of_files}
    table = [[*mean_of_files.parts, *columns]]
    rows = []
    for number, point in enumerate(mean_of_files.points):
        correlations = {name: grid.correlations[number] for name, grid in columns.items()}
        values = {name: correlation.known for name, correlation in correlations.items()}
        rows.append({"weights": mean_of_files.weights(number), "correlations": values})
        weights = [f"{weight:.3g}" for weight in point]
        table.append([*weights, *map(correlation_text, correlations.values())])
    best = None if mean_of_files.best is None else rows[mean_of_files.best]
    document = {**about, "parts": mean_of_files.parts, "best": best, "grid": rows}
    return Report(document, [Grid(table, range(len(table[0])))])


def best_weights(grid: WeightGrid) -> str:
    """One line that names the best weights."""
    if grid.best is None:
        return f"no weights are best: {grid.correlations[0].reason}"
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in grid.weights(grid.best).items())
    return f"best weights: {weights} ({correlation_text(grid.correlations[grid.best])})"


def draw_weights(grid: WeightGrid, *, title: str, label: str) -> "Figure":
    """The agreement at all weights: a line for two parts, a triangle for three; the best point is
    framed.

    Args:
        grid: of two or three parts.
        title: of the plot.
        label: name of the coefficient.
    """
    first, second, *third = grid.parts
    side = 0.52 * (min(grid.steps, _STEPS_WITH_NUMBERS) + 1)
    figure = new_figure(side + 2.2, side + 1.1) if third else new_figure(6.4, 4.2)
    axes = figure.add_subplot()
    axes.set(xlabel=f"weight of {second}", ylabel=f"weight of {third[0]}" if third else label)
    plain_axes(axes, f"{title}\nweight of {first}: what is left of 1", fontsize=10)
    if third:
        _draw_triangle(axes, grid)
        figure.colorbar(axes.images[0], ax=axes, shrink=0.8, label=label).outline.set_visible(False)
    else:
        _draw_line(axes, grid)
    return finished(figure)


def _draw_line(axes: "Axes", grid: WeightGrid) -> None:
    """Draws the agreement against the weight of the second of two parts."""
    values = [correlation.value for correlation in grid.correlations]
    axes.plot(grid.points[:, 1], values, color=COLOURS[0], marker="o", markersize=5, linewidth=1.8)
    if grid.best is not None:
        best = (grid.points[grid.best, 1], values[grid.best])
        axes.scatter(
            *best,
            s=130,
            facecolors="none",
            edgecolors=COLOURS[1],
            linewidths=2.0,
            zorder=3,
        )
        axes.annotate(decimals(best[1]), best, (0, 12), textcoords="offset points", ha="center")
        axes.margins(y=0.18)
    _widen(axes, _LEAST_SPAN)


def _draw_triangle(axes: "Axes", grid: WeightGrid) -> None:
    """Draws the agreement as coloured cells: the weight of the second part to the right, of the
    third upwards."""
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
