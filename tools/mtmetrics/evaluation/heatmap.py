"""Draws how the mass of a source was moved to its translation."""

import re
from typing import TYPE_CHECKING

import numpy as np

from mtmetrics.errors import require_extra
from mtmetrics.evaluation.figures import INK, LINE, QUIET, LabelFonts, label_fonts, shortened
from mtmetrics.matching.plan import Alignment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# Lengths are in points.
_INCH = 72.0
_DPI = 120
_SMALLEST_CELL, _LARGEST_CELL = 13.0, 40.0
_SMALLEST_CELL_WITH_COST = 18.0
_MARGIN, _GAP = 12.0, 5.0
_BAR_WIDTH, _BAR_HEIGHT, _BAR_LABELS = 10.0, 120.0, 42.0
_SMALL, _NORMAL, _LARGE = 8.0, 11.0, 12.0
_NEAR = 30
_SPECIAL = re.compile(r"\[[A-Z]+\]|</?[a-z]+>|<\|[a-z]+\|>")


def draw_alignment(
    alignment: Alignment, title: str = "", *, names: tuple[str, str] = ("source", "translation")
) -> "Figure":
    """A heatmap of an alignment: one row per word of the source, one column per word of the translation.

    The colour of a cell is the share of its row's mass that moves there. Where cells are large enough, those that
    receive at least a tenth of their row's mass or half of their column's show the distance that it moves. Special
    tokens are grey, long words are cut. Words keep the order of the text, from left to right for every script; labels
    become hard to read above some 300. Threads may draw side by side.

    Args:
        alignment: of n and m words; where either is 0, the figure says so.
        title: a line above the figure.
        names: what the rows and the columns are.

    Warns:
        UserWarning: no font has some of the characters, see `mtmetrics.evaluation.figures.label_fonts`.

    Raises:
        MTMetricsError: matplotlib is absent.
    """
    require_extra("plot", "a heatmap")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(dpi=_DPI, facecolor="white")
    FigureCanvasAgg(figure)
    fonts = label_fonts([title, *names, *alignment.source, *alignment.prediction])
    fonts.warn(stacklevel=3)
    heading = _write(figure, title, fonts, _LARGE, INK)
    if not alignment.mass.size:
        note = _write(figure, "Nothing to align: one side has no words.", fonts, _NORMAL, QUIET)
        _place(figure, heading, note, (0.0, 0.0), (0.0, 0.0))
        return figure
    words = max(alignment.mass.shape)
    # A comfortable grid, and the largest.
    cell = min(2600.0 / words, max(_SMALLEST_CELL, min(_LARGEST_CELL, 1100.0 / words)))
    axes = figure.add_axes((0, 0, 1, 1))
    mass = alignment.mass.sum(1, keepdims=True)
    # Partial transport may leave a row without mass.
    shares = np.divide(alignment.mass, mass, out=np.zeros_like(alignment.mass), where=mass > 0)
    _paint(axes, shares, cell)
    _label(axes, alignment, names, fonts, cell)
    meaning = ""
    if cell >= _SMALLEST_CELL_WITH_COST:
        _write_costs(axes, alignment, shares, fonts, cell)
        meaning = "\nNumber in a cell: distance that this mass moves"
    note = _write(figure, f"Distance in all: {alignment.total:.3f}{meaning}", fonts, _SMALL, QUIET)
    _lay_out(figure, axes, heading, note, fonts, cell)
    return figure


def _write(figure: "Figure", text: str, fonts: LabelFonts, size: float, colour: str) -> "Text":
    # Without parse_math a dollar sign in a text would start a formula.
    return figure.text(
        0, 0, fonts.shown(text), fontproperties=fonts.properties(size), color=colour, va="top", parse_math=False
    )


def _paint(axes: "Axes", shares: np.ndarray, cell: float) -> None:
    rows, columns = shares.shape
    axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=LINE, linewidth=cell / 40)
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set(color=LINE)


def _label(axes: "Axes", alignment: Alignment, names: tuple[str, str], fonts: LabelFonts, cell: float) -> None:
    size = min(_NORMAL, 0.62 * cell)
    rows, columns = alignment.mass.shape
    axes.tick_params(labeltop=True, labelbottom=rows > _NEAR, labelleft=True, labelright=columns > _NEAR, pad=_GAP)
    for axis, words in ((axes.xaxis, alignment.prediction), (axes.yaxis, alignment.source)):
        axis.set_ticks(range(len(words)), [fonts.shown(shortened(word, 24)) for word in words])
        for tick, word in zip(axis.get_major_ticks(), words, strict=True):
            shrunk, colour = (0.85, QUIET) if _SPECIAL.fullmatch(word) else (1.0, INK)
            for label in (tick.label1, tick.label2):
                label.set(fontproperties=fonts.properties(shrunk * size), color=colour, parse_math=False)
    if max(_extent(tick.label2)[0] for tick in axes.xaxis.get_major_ticks()) > 0.95 * cell:
        # Slanted labels are closer to each other than their columns are.
        slope = 45 if cell >= _SMALLEST_CELL_WITH_COST else 60
        for tick in axes.xaxis.get_major_ticks():
            tick.label2.set(rotation=slope, rotation_mode="anchor", ha="left")
            tick.label1.set(rotation=slope, rotation_mode="anchor", ha="right")
    corner = fonts.shown(f"{names[1]} →\n{names[0]} ↓")
    place = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right"}
    axes.annotate(corner, (0, 1), (-_GAP, _GAP), fontproperties=fonts.properties(_SMALL), color=QUIET, **place)


def _write_costs(axes: "Axes", alignment: Alignment, shares: np.ndarray, fonts: LabelFonts, cell: float) -> None:
    font = fonts.properties(min(9.0, 0.34 * cell))
    received = alignment.mass.sum(0, keepdims=True)
    noticeable = (shares >= 0.1) | ((alignment.mass > 0) & (alignment.mass >= 0.5 * received))
    for row, column in np.argwhere(noticeable):
        colour = "white" if shares[row, column] > 0.55 else INK
        # Adding 0.0 turns -0.00 into 0.00.
        cost = round(float(alignment.values[row, column]), 2) + 0.0
        axes.text(column, row, f"{cost:.2f}", ha="center", va="center_baseline", fontproperties=font, color=colour)


def _lay_out(figure: "Figure", axes: "Axes", heading: "Text", note: "Text", fonts: LabelFonts, cell: float) -> None:
    """Sizes the figure by what its texts need, and adds the colour bar to the right."""
    [image] = axes.images
    rows, columns = image.get_size()
    grid = (columns * cell, rows * cell)
    corner = _extent(axes.texts[0])
    row_ticks, column_ticks = axes.yaxis.get_major_ticks(), axes.xaxis.get_major_ticks()
    row_labels = max(_extent(tick.label1)[0] for tick in row_ticks)
    column_labels = max(_extent(tick.label2)[1] for tick in column_ticks)
    rows_twice, columns_twice = row_ticks[0].label2.get_visible(), column_ticks[0].label1.get_visible()
    left = _GAP + max(corner[0], row_labels)
    above = 2 * _GAP + max(corner[1], column_labels)
    beside = 2 * _GAP + (row_labels if rows_twice else 0.0)
    overhang = max((number + 0.5) * cell + _extent(tick.label2)[0] for number, tick in enumerate(column_ticks))
    right = max(overhang, grid[0] + beside + _BAR_WIDTH + _BAR_LABELS)
    below = max(grid[1] + (_GAP + column_labels if columns_twice else 0.0), _BAR_HEIGHT)
    origin = _place(figure, heading, note, (left + right, above + below), (left, above))
    width, height = (side * _INCH for side in figure.get_size_inches())
    axes.set_position((origin[0] / width, (origin[1] - grid[1]) / height, grid[0] / width, grid[1] / height))
    x, y = origin[0] + grid[0] + beside, origin[1] - _BAR_HEIGHT
    bar = figure.add_axes((x / width, y / height, _BAR_WIDTH / width, _BAR_HEIGHT / height))
    figure.colorbar(image, cax=bar, ticks=[0, 0.5, 1], format="%g").outline.set(color=LINE)
    bar.tick_params(length=0, pad=_GAP / 2, labelcolor=QUIET, labelfontfamily=fonts.families, labelsize=_SMALL)
    bar.set_ylabel("share of the row's mass", fontproperties=fonts.properties(_SMALL), color=QUIET)


def _place(
    figure: "Figure", heading: "Text", note: "Text", body: tuple[float, float], offset: tuple[float, float]
) -> tuple[float, float]:
    """Puts heading and note above and below a body of that width and height; returns where `offset` from its top left
    corner is."""
    heading_width, heading_height = _extent(heading)
    note_width, note_height = _extent(note)
    head = heading_height + 2 * _GAP if heading.get_text() else 0.0
    width = 2 * _MARGIN + max(body[0], heading_width, note_width)
    height = 2 * _MARGIN + head + body[1] + 2 * _GAP + note_height
    figure.set_size_inches(width / _INCH, height / _INCH)
    heading.set_position((_MARGIN / width, 1 - _MARGIN / height))
    note.set_position((_MARGIN / width, (_MARGIN + note_height) / height))
    return _MARGIN + offset[0], height - _MARGIN - head - offset[1]


def _extent(text: "Text") -> tuple[float, float]:
    """Width and height in points."""
    box = text.get_window_extent()
    return box.width * _INCH / _DPI, box.height * _INCH / _DPI
