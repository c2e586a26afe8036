"""The pictures of a comparison: means with intervals, and histograms of segments; for the page and
as files."""

import html
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mtmetrics.page.comparing import Compared
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

# In inches.
_PANEL, _ROW = 3.9, 0.34
_BINS = 40
_LONGEST_NAME = 18
# Of the distance between the anchors, so that noise does not look like a difference.
_LEAST_SPAN = 0.1
# Colours of a figure -> variables of the page's style sheet, which knows light and dark.
_THEMED = {INK: "--mt-ink", QUIET: "--mt-quiet", LINE: "--mt-line"}
_THEMED |= {colour.lower(): f"--mt-system-{number}" for number, colour in enumerate(COLOURS)}


def colour(number: int) -> str:
    """The colour of a system, by its place among those that were given."""
    return COLOURS[number % len(COLOURS)].lower()


def themed(colour: str) -> str:
    """A colour of the figures as the style sheet calls it."""
    return f"var({_THEMED[colour]})"


def draw_means(compared: Compared, metrics: Sequence[int]) -> "Figure":
    """A panel per metric, side by side: the mean of each system with its 95 % bootstrap interval,
    the best on top."""
    systems = len(compared.texts.systems)
    figure = new_figure(_PANEL * len(metrics), 1.0 + _ROW * systems)
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    places = {name: number for number, name in enumerate(compared.texts.systems)}
    for number, axes in zip(metrics, panels, strict=True):
        metric = compared.metrics[number]
        rows = metric.comparison.systems
        for row, system in enumerate(rows):
            look = {"color": colour(places[system.name])}
            if system.interval is not None:
                axes.plot(
                    [system.interval.low, system.interval.high],
                    [row, row],
                    linewidth=2.2,
                    alpha=0.55,
                    **look,
                )
            axes.plot([system.mean], [row], "o", markersize=6.5, **look)
        low = min(system.interval.low if system.interval else system.mean for system in rows)
        high = max(system.interval.high if system.interval else system.mean for system in rows)
        span = (
            abs(metric.anchors.human - metric.anchors.random) * _LEAST_SPAN
            if metric.anchors
            else 0.0
        )
        margin = max(0.12 * (high - low), (span - (high - low)) / 2, 1e-3)
        axes.set_xlim(low - margin, high + margin)
        axes.set_ylim(systems - 0.4, -0.6)
        axes.set_yticks(range(systems), [shortened(system.name, _LONGEST_NAME) for system in rows])
        _plain(axes, metric.offer.title)
    return finished(figure)


def draw_histograms(compared: Compared, number: int) -> "Figure":
    """Histograms of the segments' scores by one metric: a row per system, on one axis; a line is
    the mean."""
    scores = compared.scores(number)
    figure = new_figure(_PANEL, 0.7 + 0.62 * len(scores))
    panels = figure.subplots(len(scores), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    edges = np.histogram_bin_edges(scores, bins=int(np.clip(2 * scores.shape[1] ** 0.5, 8, _BINS)))
    for place, (axes, name) in enumerate(zip(panels, compared.texts.systems, strict=True)):
        axes.stairs(
            np.histogram(scores[place], edges)[0], edges, fill=True, color=colour(place), alpha=0.75
        )
        axes.axvline(scores[place].mean(), color=INK, linewidth=1.2)
        axes.set_ylabel(
            shortened(name, _LONGEST_NAME), rotation=0, ha="right", va="center", fontsize=9
        )
        axes.set_yticks([])
        _plain(axes, "")
        axes.tick_params(axis="x", length=0)
    return finished(figure)


def _plain(axes: "Axes", title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    plain_axes(axes, title, fontsize=10)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    axes.tick_params(length=0, labelsize=9, labelcolor=INK)


def inline(figure: "Figure", alternative: str) -> str:
    """The figure as SVG inside a page: as wide as its place, in the colours of the theme, with text
    as text."""
    import matplotlib

    stream = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": alternative, "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None}, transparent=True)
    text = stream.getvalue()
    text = re.sub(r"<(metadata|style).*?</\1>", "", text[text.index("<svg") :], flags=re.DOTALL)
    for fixed in _THEMED:
        text = text.replace(fixed, themed(fixed))
    end = text.index(">")
    head = (
        f'<svg role="img" aria-label="{html.escape(alternative)}" viewBox="{_view_box(text[:end])}"'
    )
    return head + text[end:]


def _view_box(tag: str) -> str:
    return tag.split('viewBox="')[1].split('"')[0]
