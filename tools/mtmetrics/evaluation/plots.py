"""Plots of agreement with people: scores against judgements, bars of correlations, correlation against the weights of
parts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import Numbers, complete, pearson
from mtmetrics.evaluation.figures import COLOURS, INK, QUIET, new_figure, plain_axes, save_figure, set_fonts
from mtmetrics.evaluation.fonts import label_fonts
from mtmetrics.evaluation.table_styles import three_decimals
from mtmetrics.evaluation.weights import WeightGrid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Lengths are in inches.
_PANEL = (3.4, 3.0)
_LONGEST_TITLE = 42
_BAR, _GAP_OF_GROUPS = 0.22, 0.3
_NARROWEST, _WIDEST = 5.0, 24.0
_LETTER = 0.075
# Grey for black, on which whiskers cannot be seen.
_BAR_COLOURS = (*COLOURS[:-1], "#999999")
_HATCHES = ("", "//", "..", "xx")
_CELL = 0.52
# Above so many steps the cells of a grid are too small for numbers.
_STEPS_WITH_NUMBERS = 12
_GRID_COLOURS = "cividis"
_MIDDLE = 0.5


class Bar(NamedTuple):
    """A correlation with its interval.

    Attributes:
        value: NaN where it is not defined.
        low: lower end of the interval; NaN for none.
        high: upper end.
    """

    value: float
    low: float = np.nan
    high: float = np.nan


def draw_scatter(panels: Mapping[str, Mapping[str, tuple[Numbers, Numbers]]]) -> "Figure":
    """Scores of a metric against human judgements (Fig. 1 and 2 of Song et al., 2021), with Pearson's r and the
    least-squares line.

    Args:
        panels: file -> metric -> (n,) scores and (n,) judgements, None where there is none; a row of panels per file, a
            column per metric.
    """
    metrics = list(dict.fromkeys(metric for row in panels.values() for metric in row))
    fonts = label_fonts([*panels, *metrics])
    figure = new_figure(_PANEL[0] * len(metrics), _PANEL[1] * len(panels))
    grid = figure.subplots(len(panels), len(metrics), squeeze=False)
    for row, (file, columns) in zip(grid, panels.items(), strict=True):
        for axes, metric in zip(row, metrics, strict=True):
            scores, human = complete(
                dict(zip(("scores", "human judgements"), columns[metric], strict=True))
            ).values.values()
            r = pearson(scores, human)
            axes.scatter(human, scores, s=9, alpha=0.35, color=COLOURS[0], linewidths=0)
            if r.reason is None:
                ends = np.array([human.min(), human.max()])
                axes.plot(ends, np.polyval(np.polyfit(human, scores, 1), ends), color=COLOURS[1], linewidth=1.8)
            found = f"r = {three_decimals(r.value)}" if r.reason is None else "r not defined"
            lines = [_cut(fonts.shown(metric)), _cut(fonts.shown(file)), f"{found}, n = {len(scores)}"]
            axes.set_title("\n".join(lines), loc="left", fontsize=9, color=INK)
            plain_axes(axes)
        row[0].set_ylabel("score")
    for axes in grid[-1]:
        axes.set_xlabel("human judgement")
    set_fonts(figure, fonts)
    return figure


def draw_bars(bars: Mapping[str, Sequence[Bar]], groups: Sequence[str], *, title: str, y_label: str) -> "Figure":
    """Correlations of several metrics side by side for each language pair (Fig. 5 to 7 of Song et al., 2021), with
    interval whiskers.

    Args:
        bars: metric -> a bar per group; one that is not defined is written as ``n/a``.
        groups: what stands below the bars, such as language pairs.
        title: over the plot.
        y_label: what the height of a bar is.
    """
    fonts = label_fonts([*bars, *groups, title, y_label])
    span = len(bars) * _BAR + _GAP_OF_GROUPS
    legend = 0.6 + _LETTER * max(map(len, bars)) if len(bars) > 1 else 0.0
    figure = new_figure(legend + min(_WIDEST, max(_NARROWEST, 1.2 + len(groups) * span)), 4.4)
    axes = figure.add_subplot()
    middles = np.arange(len(groups)) * span
    for number, (metric, row) in enumerate(bars.items()):
        places = middles + (number - (len(bars) - 1) / 2) * _BAR
        values, low, high = np.array(row, dtype=np.float64).reshape(len(groups), 3).T
        # More metrics than colours: the next round of colours is hatched.
        hatch = _HATCHES[number // len(_BAR_COLOURS) % len(_HATCHES)]
        axes.bar(
            places,
            np.nan_to_num(values),
            0.9 * _BAR,
            label=fonts.shown(metric),
            color=_BAR_COLOURS[number % len(_BAR_COLOURS)],
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
        )
        known = ~np.isnan(low) & ~np.isnan(values)
        # A percentile interval need not hold the value itself.
        whiskers = np.maximum([values[known] - low[known], high[known] - values[known]], 0.0)
        axes.errorbar(places[known], values[known], yerr=whiskers, fmt="none", ecolor=INK, elinewidth=1.0, capsize=2.5)
        for place in places[np.isnan(values)]:
            axes.text(place, 0.0, " n/a", rotation=90, ha="center", va="bottom", fontsize=8, color=QUIET)
    axes.set_xticks(middles, [fonts.shown(group) for group in groups])
    axes.set_xlim(-0.75 * span, middles[-1] + 0.75 * span)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.set_title(fonts.shown(title), loc="left", fontsize=11, color=INK)
    axes.set_ylabel(fonts.shown(y_label))
    plain_axes(axes)
    axes.grid(visible=False, axis="x")
    axes.tick_params(axis="x", length=0)
    if len(bars) > 1:
        axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    set_fonts(figure, fonts)
    return figure


def draw_weights(grid: WeightGrid, *, title: str, label: str) -> "Figure":
    """Agreement as a function of the weights of two or three parts (Fig. 4 of Belouadi and Eger, 2023); the best point
    is framed.

    Three parts make a triangle: the second part's weight to the right, the third one's upwards, and what is left is the
    first one's. Two parts make a line.

    Args:
        grid: of two or three parts.
        title: over the plot.
        label: what the correlation is.

    Raises:
        InputError: the grid has more parts.
    """
    if len(grid.parts) > 3:
        raise InputError(f"parts: {', '.join(grid.parts)} given; a plot of weights shows two or three")
    fonts = label_fonts([*grid.parts, title, label])
    first, *others = (fonts.shown(part) for part in grid.parts)
    side = _CELL * (min(grid.steps, _STEPS_WITH_NUMBERS) + 1)
    figure = new_figure(6.4, 4.2) if len(others) == 1 else new_figure(side + 2.2, side + 1.1)
    axes = figure.add_subplot()
    axes.set_title(f"{fonts.shown(title)}\nweight of {first}: what is left of 1", loc="left", fontsize=10, color=INK)
    axes.set_xlabel(f"weight of {others[0]}")
    if len(others) == 1:
        _draw_line(axes, grid)
        axes.set_ylabel(fonts.shown(label))
    else:
        axes.set_ylabel(f"weight of {others[1]}")
        _draw_triangle(axes, grid)
        bar = figure.colorbar(axes.images[0], ax=axes, shrink=0.8, label=fonts.shown(label))
        bar.outline.set_visible(False)
    set_fonts(figure, fonts)
    return figure


def _cut(label: str) -> str:
    """The label without its middle where it is wider than a panel."""
    half = _LONGEST_TITLE // 2
    return label if len(label) <= _LONGEST_TITLE else f"{label[:half]}…{label[1 - half :]}"


def _draw_line(axes: "Axes", grid: WeightGrid) -> None:
    values = [correlation.value for correlation in grid.correlations]
    axes.plot(grid.points[:, 1], values, color=COLOURS[0], marker="o", markersize=5, linewidth=1.8)
    plain_axes(axes)
    if grid.best is not None:
        best = (grid.points[grid.best, 1], values[grid.best])
        axes.scatter(*best, s=130, facecolors="none", edgecolors=COLOURS[1], linewidths=2.0, zorder=3)
        axes.annotate(three_decimals(best[1]), best, (0, 12), textcoords="offset points", ha="center")
        axes.margins(y=0.18)


def _draw_triangle(axes: "Axes", grid: WeightGrid) -> None:
    from matplotlib.patches import Rectangle

    count = grid.steps + 1
    cells = np.full((count, count), np.nan)
    columns, rows = np.rint(grid.points[:, 1:] * grid.steps).astype(int).T
    cells[rows, columns] = [correlation.value for correlation in grid.correlations]
    image = axes.imshow(cells, origin="lower", cmap=_GRID_COLOURS)
    every = max(1, grid.steps // 10)
    ticks = range(0, count, every)
    names = [f"{tick / grid.steps:.3g}" for tick in ticks]
    axes.set_xticks(ticks, names)
    axes.set_yticks(ticks, names)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)
    if grid.steps <= _STEPS_WITH_NUMBERS:
        for row, column in zip(rows, columns, strict=True):
            value = cells[row, column]
            colour = "white" if not np.isnan(value) and image.norm(value) < _MIDDLE else "black"
            shown = "n/a" if np.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)
            axes.text(column, row, shown, ha="center", va="center", fontsize=8, color=colour)
    if grid.best is not None:
        place = (columns[grid.best] - 0.5, rows[grid.best] - 0.5)
        axes.add_patch(Rectangle(place, 1, 1, fill=False, edgecolor=COLOURS[1], linewidth=2.5))


def save_scatter(panels: Mapping[str, Mapping[str, tuple[Numbers, Numbers]]], path: str | Path) -> None:
    """Writes the plot of `draw_scatter` as a PNG file, which is whole or absent.

    Raises:
        MTMetricsError: the file cannot be written.
    """
    save_figure(draw_scatter(panels), path)


def save_bars(
    bars: Mapping[str, Sequence[Bar]], groups: Sequence[str], path: str | Path, *, title: str, y_label: str
) -> None:
    """Writes the plot of `draw_bars` as a PNG file, which is whole or absent.

    Raises:
        MTMetricsError: the file cannot be written.
    """
    save_figure(draw_bars(bars, groups, title=title, y_label=y_label), path)


def save_weight_heatmap(grid: WeightGrid, path: str | Path, *, title: str, label: str) -> None:
    """Writes the plot of `draw_weights` as a PNG file, which is whole or absent.

    Raises:
        InputError: as `draw_weights`.
        MTMetricsError: the file cannot be written.
    """
    save_figure(draw_weights(grid, title=title, label=label), path)
