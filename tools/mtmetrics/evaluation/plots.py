"""Plots: scores against judgements, bars of correlations, curves, and histograms of preferences."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mtmetrics.evaluation.correlation import Numbers, complete, pearson
from mtmetrics.evaluation.figures import COLOURS, INK, QUIET, finished, label_fonts, new_figure, plain_axes, shortened
from mtmetrics.evaluation.table_styles import three_decimals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mtmetrics.evaluation.probes import Preference

# In inches.
_BAR = 0.22
_LONGEST_TITLE = 42
# Grey for black, on which whiskers cannot be seen.
_BAR_COLOURS = (*COLOURS[:-1], "#999999")
_HATCHES = ("", "//", "..", "xx")
_MARKERS = "osD^vPX"
_MOST_TICKS = 30
_BINS = 30


class Bar(NamedTuple):
    """A correlation, NaN where it is not defined, and the ends of its interval, NaN for none."""

    value: float
    low: float = np.nan
    high: float = np.nan


def draw_scatter(panels: Mapping[str, Mapping[str, tuple[Numbers, Numbers]]]) -> "Figure":
    """Scores of a metric against human judgements (Fig. 1 and 2 of Song et al., 2021), with Pearson's r and the
    least-squares line.

    Args:
        panels: file (a row) -> metric (a column) -> (n,) scores and (n,) judgements, None where there is none.
    """
    metrics = list(dict.fromkeys(metric for row in panels.values() for metric in row))
    figure = new_figure(3.4 * len(metrics), 3.0 * len(panels))
    grid = figure.subplots(len(panels), len(metrics), squeeze=False)
    for row, (file, columns) in zip(grid, panels.items(), strict=True):
        for axes, metric in zip(row, metrics, strict=True):
            pairs = complete(dict(zip(("scores", "human judgements"), columns[metric], strict=True)))
            scores, human = pairs.values.values()
            r = pearson(scores, human)
            found = "r not defined"
            axes.scatter(human, scores, s=9, alpha=0.35, color=COLOURS[0], linewidths=0)
            if r.reason is None:
                ends = np.array([human.min(), human.max()])
                axes.plot(ends, np.polyval(np.polyfit(human, scores, 1), ends), color=COLOURS[1], linewidth=1.8)
                found = f"r = {three_decimals(r.value)}"
            lines = [shortened(metric, _LONGEST_TITLE), shortened(file, _LONGEST_TITLE), f"{found}, n = {len(scores)}"]
            plain_axes(axes, "\n".join(lines), fontsize=9)
        row[0].set_ylabel("score")
    for axes in grid[-1]:
        axes.set_xlabel("human judgement")
    return finished(figure)


def draw_bars(bars: Mapping[str, Sequence[Bar]], groups: Sequence[str], *, title: str, y_label: str) -> "Figure":
    """Correlations of several metrics side by side for each language pair (Fig. 5 to 7 of Song et al., 2021), with
    interval whiskers.

    Args:
        bars: metric -> a bar per group; one that is not defined is written as ``n/a``.
        groups: what stands below the bars.
        title: over the plot.
        y_label: what the height of a bar is.
    """
    span = len(bars) * _BAR + 0.3
    legend = 0.6 + 0.075 * max(map(len, bars)) if len(bars) > 1 else 0.0
    figure = new_figure(legend + min(24.0, max(5.0, 1.2 + len(groups) * span)), 4.4)
    axes = figure.add_subplot()
    middles = np.arange(len(groups)) * span
    for number, (metric, row) in enumerate(bars.items()):
        places = middles + (number - (len(bars) - 1) / 2) * _BAR
        values, low, high = np.array(row, dtype=np.float64).reshape(len(groups), 3).T
        # More metrics than colours: the next round of colours is hatched.
        rounds, colour = divmod(number, len(_BAR_COLOURS))
        look = {"color": _BAR_COLOURS[colour], "hatch": _HATCHES[rounds % len(_HATCHES)], "edgecolor": "white"}
        axes.bar(places, np.nan_to_num(values), 0.9 * _BAR, label=metric, linewidth=0, **look)
        known = ~np.isnan(low) & ~np.isnan(values)
        # A percentile interval need not hold the value itself.
        whiskers = np.maximum([values[known] - low[known], high[known] - values[known]], 0.0)
        axes.errorbar(places[known], values[known], yerr=whiskers, fmt="none", ecolor=INK, elinewidth=1.0, capsize=2.5)
        for place in places[np.isnan(values)]:
            axes.text(place, 0.0, " n/a", rotation=90, ha="center", va="bottom", fontsize=8, color=QUIET)
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
    """A line per name: correlation against layer or number of training instances, loss against steps.

    Args:
        lines: name -> x -> y; values that are not finite leave a gap.
        title: over the plot.
        x_label: under it.
        y_label: beside it.
        intervals: name -> x -> the ends of an interval around y, drawn as bands, which the y axis has room for.
        least_span: of the y axis, so that noise does not look like a change.
    """
    figure = new_figure(7.0, 4.4)
    axes = figure.add_subplot()
    for number, (name, line) in enumerate(lines.items()):
        look = {"color": COLOURS[number % len(COLOURS)], "marker": _MARKERS[number % len(_MARKERS)]}
        axes.plot(list(line), list(line.values()), label=name, linewidth=1.8, markersize=5, **look)
        bands = (intervals or {}).get(name)
        if bands:
            low, high = zip(*bands.values(), strict=True)
            axes.fill_between(list(bands), low, high, color=look["color"], alpha=0.15, linewidth=0)
    ticks = sorted({x for line in lines.values() for x in line})
    if len(ticks) <= _MOST_TICKS and all(float(x).is_integer() for x in ticks) and ticks[-1] <= _MOST_TICKS:
        axes.set_xticks(ticks)
    axes.set(xlabel=x_label, ylabel=y_label)
    plain_axes(axes, title)
    low, high = axes.get_ylim()
    if high - low < least_span:
        axes.set_ylim((low + high - least_span) / 2, (low + high + least_span) / 2)
    if len(lines) > 1:
        axes.legend(frameon=False)
    return finished(figure)


def draw_preferences(found: "Sequence[Preference]", *, title: str) -> "Figure":
    """A histogram of score differences ``d`` for each modification, a row of panels for each measure (Fig. 3 of Zhao et
    al., 2020).

    Right of 0, in another colour, stand the sentences whose modified version is preferred; those where neither is are
    left out and counted above.

    Args:
        found: one preference per modification and measure.
        title: over the plot.
    """
    from matplotlib.ticker import MaxNLocator

    measures = list(dict.fromkeys(preference.measure for preference in found))
    modifications = list(dict.fromkeys(preference.modification for preference in found))
    figure = new_figure(1.0 + 3.2 * len(modifications), 0.8 + 2.7 * len(measures))
    panels = figure.subplots(len(measures), len(modifications), sharex="row", sharey="row", squeeze=False)
    for measure, row in zip(measures, panels, strict=True):
        of_measure = [preference for preference in found if preference.measure == measure]
        edges = _edges(np.concatenate([preference.differences for preference in of_measure]))
        for preference, axes in zip(of_measure, row, strict=True):
            d = preference.differences
            axes.hist([d[d < 0], d[d > 0]], bins=edges, stacked=True, color=COLOURS[:2])
            axes.axvline(0.0, color=INK, linewidth=1.0)
            equal = f", {preference.equal:.1%} equal" if preference.equal else ""
            heading = f"{preference.modification}\n{preference.preferred:.1%} preferred{equal}"
            axes.set_xlabel(f"d ({measure})")
            plain_axes(axes, heading, loc="center", fontsize=10)
        row[0].set_ylabel("sentences")
        row[0].yaxis.set_major_locator(MaxNLocator(integer=True))
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK)
    return finished(figure)


def _edges(d: np.ndarray) -> np.ndarray:
    """Edges of the bins, among them 0."""
    low, high = min(d.min(), 0.0), max(d.max(), 0.0)
    if low == high:
        return np.array([-1.0, 0.0, 1.0])
    width = (high - low) / _BINS
    edges = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)
    # Rounding must not leave the extremes outside.
    edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)
    return edges
