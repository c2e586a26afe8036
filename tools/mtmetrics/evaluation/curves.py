"""Line plots: correlation against layer or number of training instances, loss against steps."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.evaluation.figures import COLOURS, INK, TITLE_SIZE, new_figure, plain_axes, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKERS = "osD^vPX"
_MOST_TICKS = 30


def draw_curves(
    lines: Mapping[str, Mapping[float, float]], *, title: str, x_label: str, y_label: str, least_span: float = 0.0
) -> "Figure":
    """A plot with one line per name.

    Args:
        lines: name -> x -> y; values that are not finite leave a gap.
        title: over the plot.
        x_label: of the x axis.
        y_label: of the y axis.
        least_span: the y axis spans at least so much, so that noise does not look like a change.
    """
    figure = new_figure(7.0, 4.4)
    axes = figure.add_subplot()
    for number, (name, line) in enumerate(lines.items()):
        look = {"color": COLOURS[number % len(COLOURS)], "marker": _MARKERS[number % len(_MARKERS)]}
        axes.plot(list(line), list(line.values()), label=name, linewidth=1.8, markersize=5, **look)
    ticks = sorted({x for line in lines.values() for x in line})
    if len(ticks) <= _MOST_TICKS and all(float(x).is_integer() for x in ticks) and ticks[-1] <= _MOST_TICKS:
        axes.set_xticks(ticks)
    axes.set_title(title, loc="left", fontsize=TITLE_SIZE, color=INK)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    plain_axes(axes)
    low, high = axes.get_ylim()
    if high - low < least_span:
        axes.set_ylim((low + high - least_span) / 2, (low + high + least_span) / 2)
    if len(lines) > 1:
        axes.legend(frameon=False)
    return figure


def save_curves(
    lines: Mapping[str, Mapping[float, float]],
    path: str | Path,
    *,
    title: str,
    x_label: str,
    y_label: str,
    least_span: float = 0.0,
) -> None:
    """Writes the plot of `draw_curves` as a PNG file, which is whole or absent.

    Raises:
        MTMetricsError: the file cannot be written.
    """
    figure = draw_curves(lines, title=title, x_label=x_label, y_label=y_label, least_span=least_span)
    save_figure(figure, path)
