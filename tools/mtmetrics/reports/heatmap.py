"""Draws the words of a translation that a metric matched with those of the source."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mtmetrics.errors import require_extra
from mtmetrics.matching.plan import Alignment, Cells
from mtmetrics.reports.figures import INK, LINE, QUIET, LabelFonts, label_fonts, shortened
from mtmetrics.reports.styles import decimals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# Lengths are in points.
_INCH = 72.0
_DPI = 120
_SMALLEST_CELL, _LARGEST_CELL = 13.0, 40.0
_SMALLEST_CELL_WITH_NUMBER = 24.0
# Its side, in cells.
_SMALLEST_SQUARE_WITH_NUMBER = 0.55
_MARGIN, _GAP = 12.0, 5.0
_BAR_WIDTH, _BAR_HEIGHT = 10.0, 120.0
_SMALL, _NORMAL, _LARGE = 8.0, 11.0, 12.0
_NEAR = 30
# Of the largest mass: what is less is not drawn.
_NOTHING = 1e-3


class _Style(NamedTuple):
    """How the values of cells are shown: name, colour map, and the name of the sum of mass times
    value."""

    name: str
    colours: str
    total: str


# Blue is what fits, red what does not, in both of the first.
_STYLES: dict[Cells, _Style] = {
    "cost": _Style("distance", "RdYlBu_r", "Distance in all"),
    "cosine": _Style("cosine", "RdYlBu", "Cosine of the matches"),
    "attention": _Style("attention", "Blues", ""),
}


def segment_title(number: int, score: float, parts: Mapping[str, float]) -> str:
    """Number, score and parts of a segment, in one line."""
    values = {"score": score, **parts}
    return f"Segment {number}: " + ", ".join(
        f"{name} {decimals(value)}" for name, value in values.items()
    )


def draw_alignment(
    alignment: Alignment,
    title: str = "",
    *,
    names: tuple[str, str] = ("source", "translation"),
    special_tokens: bool = False,
) -> "Figure":
    """A heatmap of an alignment: one row per word of the source, one column per word of the
    translation.

    The colour of a square is its value: the distance of the two words, from 0 to that of unrelated
    vectors, their cosine, from 0 to 1, or attention, from 0 to 1; so the colours of two pictures
    can be compared. Its area is its mass, relative to the largest of the picture. Up to some 45
    words, squares in which it fits show their value; else a table below has, for each word of the
    translation, the word that gives most of its mass. Long words are cut. Words keep the order of
    the text, from left to right for every script. Threads may draw side by side.

    Args:
        alignment: of n and m words; where either is 0, the figure says so.
        title: a line above the figure, such as `segment_title`.
        names: of the rows and of the columns.
        special_tokens: also draw such as ``[CLS]``, in grey.

    Warns:
        UserWarning: no font has some of the characters, see
        `mtmetrics.reports.figures.label_fonts`.

    Raises:
        MTMetricsError: matplotlib is absent.
    """
    require_extra("plot", "a heatmap")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style, total = _STYLES[alignment.cells], alignment.total
    if not special_tokens:
        alignment = alignment.without_special_tokens()
    figure = Figure(dpi=_DPI, facecolor="white")
    FigureCanvasAgg(figure)
    fonts = label_fonts([title, *names, *alignment.source, *alignment.prediction])
    fonts.warn(stacklevel=3)
    heading = _write(figure, title, fonts, _LARGE, INK)
    if not alignment.mass.size:
        note = _write(figure, "Nothing to align: one side has no words.", fonts, _NORMAL, QUIET)
        _lay_out(figure, heading, [], note)
        return figure
    words = max(alignment.mass.shape)
    # A comfortable grid, and the largest.
    cell = min(2600.0 / words, max(_SMALLEST_CELL, min(_LARGEST_CELL, 1100.0 / words)))
    figure.set_size_inches(*(side * cell / _INCH for side in alignment.mass.shape[::-1]))
    axes = figure.add_axes((0, 0, 1, 1))
    scale = _paint(axes, alignment, style, cell)
    _label(axes, alignment, names, fonts, cell)
    table = []
    if cell >= _SMALLEST_CELL_WITH_NUMBER:
        _write_values(axes, alignment, scale, fonts, cell)
    else:
        table = _table(figure, alignment, fonts, alignment.mass.shape[1] * cell)
    summed = f"{style.total}: {total:.3f}. " if style.total else ""
    note = _write(figure, f"{summed}Colour: {style.name}; size: mass", fonts, _SMALL, QUIET)
    _add_bar(axes, scale, fonts, style.name)
    _lay_out(figure, heading, table, note)
    return figure


def _write(figure: "Figure", text: str, fonts: LabelFonts, size: float, colour: str) -> "Text":
    # Without parse_math a dollar sign in a text would start a formula.
    return figure.text(
        0,
        0,
        fonts.shown(text),
        fontproperties=fonts.properties(size),
        color=colour,
        va="top",
        parse_math=False,
    )


def _paint(axes: "Axes", alignment: Alignment, style: _Style, cell: float) -> "ScalarMappable":
    """Squares of mass; returns the scale of their colours."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import Normalize
    from matplotlib.patches import Rectangle

    rows, columns = alignment.mass.shape
    scale = ScalarMappable(Normalize(0.0, alignment.unrelated, clip=True), style.colours)
    sides = _sides(alignment.mass)
    drawn = np.argwhere(sides > 0)
    squares = [
        Rectangle((j - sides[i, j] / 2, i - sides[i, j] / 2), sides[i, j], sides[i, j])
        for i, j in drawn
    ]
    colours = scale.to_rgba(alignment.values[tuple(drawn.T)])
    axes.add_collection(
        PatchCollection(squares, facecolors=colours, edgecolors=QUIET, linewidths=cell / 60)
    )
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=LINE, linewidth=cell / 40)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set(color=LINE)
    return scale


def _sides(mass: np.ndarray) -> np.ndarray:
    """(n, m) sides of squares whose areas are the masses, the largest one filling its cell; 0 where
    there is next to no mass."""
    relative = mass / max(mass.max(), np.finfo(float).tiny)
    return np.where(relative > _NOTHING, 0.94 * np.sqrt(relative), 0.0)


def _label(
    axes: "Axes",
    alignment: Alignment,
    names: tuple[str, str],
    fonts: LabelFonts,
    cell: float,
) -> None:
    size = min(_NORMAL, 0.62 * cell)
    rows, columns = alignment.mass.shape
    axes.tick_params(
        labeltop=True,
        labelbottom=rows > _NEAR,
        labelleft=True,
        labelright=columns > _NEAR,
        pad=_GAP,
    )
    sides = (
        (axes.xaxis, alignment.prediction, alignment.spans),
        (axes.yaxis, alignment.source, alignment.source_spans),
    )
    for axis, words, spans in sides:
        axis.set_ticks(range(len(words)), [fonts.shown(shortened(word, 24)) for word in words])
        for tick, end in zip(axis.get_major_ticks(), spans[:, 1], strict=True):
            shrunk, colour = (1.0, INK) if end else (0.85, QUIET)
            for label in (tick.label1, tick.label2):
                label.set(
                    fontproperties=fonts.properties(shrunk * size),
                    color=colour,
                    parse_math=False,
                )
    if max(_extent(tick.label2)[0] for tick in axes.xaxis.get_major_ticks()) > 0.95 * cell:
        # Slanted labels are closer to each other than their columns are.
        slope = 45 if cell >= _SMALLEST_CELL_WITH_NUMBER else 60
        for tick in axes.xaxis.get_major_ticks():
            tick.label2.set(rotation=slope, rotation_mode="anchor", ha="left")
            tick.label1.set(rotation=slope, rotation_mode="anchor", ha="right")
    corner = fonts.shown(f"{names[1]} →\n{names[0]} ↓")
    place = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right"}
    axes.annotate(
        corner,
        (0, 1),
        (-_GAP, _GAP),
        fontproperties=fonts.properties(_SMALL),
        color=QUIET,
        **place,
    )


def _write_values(
    axes: "Axes",
    alignment: Alignment,
    scale: "ScalarMappable",
    fonts: LabelFonts,
    cell: float,
) -> None:
    font = fonts.properties(min(9.0, 0.34 * cell))
    sides = _sides(alignment.mass)
    for row, column in np.argwhere(sides >= _SMALLEST_SQUARE_WITH_NUMBER):
        value = alignment.values[row, column]
        dark = np.dot(scale.to_rgba(value)[:3], (0.3, 0.59, 0.11)) < 0.5
        colour, text = "white" if dark else INK, decimals(value, 2)
        axes.text(
            column,
            row,
            text,
            ha="center",
            va="center_baseline",
            fontproperties=font,
            color=colour,
        )


def _table(figure: "Figure", alignment: Alignment, fonts: LabelFonts, width: float) -> "list[Text]":
    """For each word of the translation the word that gives most of its mass, and the value, in
    columns."""
    lines = [
        (
            f"{shortened(word, 16)} ← "
            f"{f'{shortened(partner, 16)} {decimals(value, 2)}' if partner else '–'}"
        )
        for word, partner, value in alignment.partners()
    ]
    widest = _extent(longest := _write(figure, max(lines, key=len), fonts, _SMALL, INK))[0]
    longest.remove()
    columns = max(1, int(width // (widest + 4 * _GAP)))
    height = -(-len(lines) // columns)
    blocks = [lines[first : first + height] for first in range(0, len(lines), height)]
    return [_write(figure, "\n".join(block), fonts, _SMALL, INK) for block in blocks]


def _add_bar(axes: "Axes", scale: "ScalarMappable", fonts: LabelFonts, name: str) -> None:
    """A colour bar to the right of the axes, which fill the figure, and of their labels."""
    grid = axes.figure.get_size_inches() * _INCH
    right = max(axes.yaxis.get_tightbbox().x1 * _INCH / _DPI, grid[0]) + 2 * _GAP
    corner, size = np.array([right, grid[1] - _BAR_HEIGHT]), np.array([_BAR_WIDTH, _BAR_HEIGHT])
    bar = axes.figure.add_axes((*corner / grid, *size / grid))
    low, high = scale.get_clim()
    colours = axes.figure.colorbar(
        scale,
        cax=bar,
        ticks=[low, (low + high) / 2, high],
        format="%.2g",
    )
    colours.outline.set(color=LINE)
    bar.tick_params(
        length=0,
        pad=_GAP / 2,
        labelcolor=QUIET,
        labelfontfamily=fonts.families,
        labelsize=_SMALL,
    )
    bar.set_ylabel(name, fontproperties=fonts.properties(_SMALL), color=QUIET)


def _lay_out(figure: "Figure", heading: "Text", table: "Sequence[Text]", note: "Text") -> None:
    """Sizes the figure by its content: the heading, below it the axes with their labels, the table,
    the note.

    A constrained layout fits axes into a figure of a given size; here the size of a cell is given.
    """
    from matplotlib.transforms import Affine2D, Bbox

    size, boxes = figure.get_size_inches() * _INCH, [axes.get_tightbbox() for axes in figure.axes]
    drawn = Bbox.union(boxes or [Bbox.from_bounds(0, 0, 0, 0)]).transformed(
        Affine2D().scale(_INCH / _DPI)
    )
    blocks = [_extent(block) for block in table]
    (title_width, title_height), (note_width, note_height) = _extent(heading), _extent(note)
    head = title_height + 2 * _GAP if heading.get_text() else 0.0
    below = _MARGIN + note_height + max((block[1] + 2 * _GAP for block in blocks), default=0.0)
    width = 2 * _MARGIN + max(
        drawn.width,
        title_width,
        note_width,
        sum(block[0] + 4 * _GAP for block in blocks),
    )
    height = below + 2 * _GAP + drawn.height + head + _MARGIN
    figure.set_size_inches(width / _INCH, height / _INCH)
    moved = Affine2D().scale(*size).translate(_MARGIN - drawn.x0, below + 2 * _GAP - drawn.y0)
    moved.scale(1 / width, 1 / height)
    for axes in figure.axes:
        axes.set_position(axes.get_position().transformed(moved))
    heading.set_position((_MARGIN / width, 1 - _MARGIN / height))
    note.set_position((_MARGIN / width, (_MARGIN + note_height) / height))
    left = _MARGIN
    for block, extent in zip(table, blocks, strict=True):
        block.set_position((left / width, below / height))
        left += extent[0] + 4 * _GAP


def _extent(text: "Text") -> tuple[float, float]:
    """Width and height in points."""
    box = text.get_window_extent()
    return box.width * _INCH / _DPI, box.height * _INCH / _DPI
