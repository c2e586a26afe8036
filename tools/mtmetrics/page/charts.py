"""Pictures of a comparison: means with intervals, and histograms of the segments' scores.

`inline` turns a picture into SVG for the page, in the page's colours.
"""

import html
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mtmetrics.page.comparing import Anchors, ComparisonResult
from mtmetrics.reports.figures import (
    COLOURS,
    INK,
    LINE,
    QUIET,
    finished,
    new_figure,
    plain_axes,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Width of a panel and height of a row, in inches.
_PANEL, _ROW = 3.9, 0.34
_FEWEST_BINS, _MOST_BINS = 8, 40
_LONGEST_NAME = 18
# Shortest axis, as a share of the distance between the anchors: noise shall not look like a
# difference.
_SHORTEST_AXIS = 0.1
# Colour of a figure -> variable of the page's style sheet, which has a light and a dark value.
_THEMED = {INK: "--mt-ink", QUIET: "--mt-quiet", LINE: "--mt-line"}
_THEMED |= {colour.lower(): f"--mt-system-{number}" for number, colour in enumerate(COLOURS)}


def colour(place: int) -> str:
    """Returns the colour of a system, by its place in the input, from 0."""
    return COLOURS[place % len(COLOURS)].lower()


def themed(colour: str) -> str:
    """Returns the variable of the style sheet for a colour of the figures."""
    return f"var({_THEMED[colour]})"


def draw_means(comparison: ComparisonResult, metrics: Sequence[int]) -> "Figure":
    """Draws a panel for each metric, side by side: the mean of each system with its 95 % bootstrap
    interval, the best on top.

    `metrics` are numbers of metrics of the comparison, from 0.
    """
    count = len(comparison.texts.systems)
    figure = new_figure(_PANEL * len(metrics), 1.0 + _ROW * count)
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    colours = {name: colour(place) for place, name in enumerate(comparison.texts.systems)}
    for number, axes in zip(metrics, panels, strict=True):
        metric = comparison.metrics[number]
        systems = metric.comparison.systems
        lows, highs = [], []
        for row, system in enumerate(systems):
            style = {"color": colours[system.name]}
            low = high = system.mean
            if system.interval is not None:
                low, high = system.interval.low, system.interval.high
                axes.plot([low, high], [row, row], linewidth=2.2, alpha=0.55, **style)
            axes.plot([system.mean], [row], "o", markersize=6.5, **style)
            lows.append(low)
            highs.append(high)
        axes.set_xlim(*_limits(min(lows), max(highs), metric.anchors))
        axes.set_ylim(count - 0.4, -0.6)
        names = [shortened(system.name, _LONGEST_NAME) for system in systems]
        axes.set_yticks(range(count), names)
        _plain(axes, metric.offer.title)
    return finished(figure)


def _limits(low: float, high: float, anchors: Anchors | None) -> tuple[float, float]:
    """Returns the ends of an axis for values from `low` to `high`, not shorter than
    `_SHORTEST_AXIS`."""
    span = high - low
    shortest = abs(anchors.human - anchors.random) * _SHORTEST_AXIS if anchors else 0.0
    margin = max(0.12 * span, (shortest - span) / 2, 1e-3)
    return low - margin, high + margin


def draw_histograms(comparison: ComparisonResult, number: int) -> "Figure":
    """Draws histograms of the segments' scores by one metric: a row for each system, all on one
    axis, with a line at the mean."""
    scores = comparison.scores(number)
    systems, segments = scores.shape
    figure = new_figure(_PANEL, 0.7 + 0.62 * systems)
    panels = figure.subplots(systems, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    bins = int(np.clip(2 * segments**0.5, _FEWEST_BINS, _MOST_BINS))
    edges = np.histogram_bin_edges(scores, bins=bins)
    for place, (axes, name) in enumerate(zip(panels, comparison.texts.systems, strict=True)):
        counts, _ = np.histogram(scores[place], edges)
        axes.stairs(counts, edges, fill=True, color=colour(place), alpha=0.75)
        axes.axvline(scores[place].mean(), color=INK, linewidth=1.2)
        label = shortened(name, _LONGEST_NAME)
        axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9)
        axes.set_yticks([])
        _plain(axes, "")
        axes.tick_params(axis="x", length=0)
    return finished(figure)


def _plain(axes: "Axes", title: str) -> None:
    """Gives a panel its title. Of its lines, only the lower axis and the vertical grid stay."""
    from matplotlib.ticker import MaxNLocator

    plain_axes(axes, title, fontsize=10)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    axes.tick_params(length=0, labelsize=9, labelcolor=INK)


def inline(figure: "Figure", alternative: str) -> str:
    """Returns a figure as SVG for a page: as wide as its place, in the colours of the theme, with
    text as text. `alternative` describes the picture to those who cannot see it."""
    import matplotlib

    stream = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": alternative, "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None}, transparent=True)
    _, tag, content = stream.getvalue().partition("<svg")
    svg = re.sub(r"<(metadata|style).*?</\1>", "", tag + content, flags=re.DOTALL)
    for fixed in _THEMED:
        svg = svg.replace(fixed, themed(fixed))
    attributes, _, inside = svg.partition(">")
    view_box = attributes.split('viewBox="')[1].split('"')[0]
    head = f'<svg role="img" aria-label="{html.escape(alternative)}" viewBox="{view_box}">'
    return head + inside
