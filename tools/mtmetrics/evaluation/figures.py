"""What the plots of numbers share: colours, size, plain axes, and how they are saved."""

from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.artifacts.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind people can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK, LINE = "#1f2933", "#dfe3e8"
TITLE_SIZE = 11
_DPI = 150


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of that size in inches with an Agg canvas of its own; nothing of matplotlib's global settings is changed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plain(axes: "Axes") -> None:
    """A light grid behind the data, and no frame above and to the right."""
    axes.grid(color=LINE)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def save_png(figure: "Figure", path: str | Path) -> None:
    """Writes a figure as a PNG file, which is whole or absent.

    Raises:
        MTMetricsError: the file cannot be written.
    """
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=_DPI)
