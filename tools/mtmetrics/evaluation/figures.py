"""What the plots have in common: colours, axes, fonts, and files that are whole or absent."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.artifacts.files import atomic_path
from mtmetrics.errors import InputError
from mtmetrics.evaluation.fonts import LabelFonts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind people can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK, QUIET, LINE = "#1f2933", "#7b8794", "#dfe3e8"
TITLE_SIZE = 11
_DPI = 150


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches, that nothing of matplotlib's global state knows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plain_axes(axes: "Axes") -> None:
    """Light lines at the ticks, behind what is drawn, and no frame but at the left and below."""
    axes.grid(color=LINE)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def set_fonts(figure: "Figure", fonts: LabelFonts) -> None:
    """Gives all texts of a figure these fonts; a ``$`` in them is no formula.

    Warns:
        UserWarning: no font has some of the characters.
    """
    from matplotlib.text import Text

    if fonts.advice:
        warnings.warn(fonts.advice, UserWarning, stacklevel=3)
    for text in figure.findobj(Text):
        text.set(fontfamily=fonts.families, parse_math=False)


def check_plot_file(path: str | Path) -> None:
    """Refuses, before anything is scored, a file that no plot can be written to.

    Raises:
        InputError: the name does not end in ``.png``, or the folder does not exist.
    """
    if Path(path).suffix.lower() != ".png":
        raise InputError(f"{path}: plots are PNG files; the name must end in .png")
    if not Path(path).parent.is_dir():
        raise InputError(f"{path}: there is no folder {Path(path).parent}")


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Writes a figure as a PNG file, which is whole or absent.

    Raises:
        MTMetricsError: the file cannot be written.
    """
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png")
