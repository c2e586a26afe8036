"""Draws an alignment as a heatmap: the words of a source and of its translation that a metric matched.

`draw_alignment` paints the squares, labels the axes, adds values, a colour bar and notes, and at the
end sizes the figure by its content (`_lay_out`).
"""

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
# Sides of the cells of the grid.
_SMALLEST_CELL, _LARGEST_CELL = 13.0, 40.0
_SMALLEST_CELL_WITH_NUMBER = 24.0
# Side of the smallest square that shows its value, in cells.
_SMALLEST_SQUARE_WITH_NUMBER = 0.55
_MARGIN, _GAP = 12.0, 5.0
_BAR_WIDTH, _BAR_HEIGHT = 10.0, 120.0
# Sizes of fonts.
_SMALL, _NORMAL, _LARGE = 8.0, 11.0, 12.0
# With more words than this the labels stand on both sides.
_NEAR = 30
# Masses below this share of the largest one are not drawn.
_NOTHING = 1e-3


class _Style(NamedTuple):
    """The way in which a kind of values is shown.

    Attributes:
        name: of the values.
        colours: the colour map.
        total: name of the sum of mass times value; empty for no such sum.
    """

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
    texts = [f"{name} {decimals(value)}" for name, value in values.items()]
    return f"Segment {number}: {', '.join(texts)}"


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
    """Writes a text at the lower left corner of the figure; `_lay_out` moves it."""
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
    """Paints the squares, and lines between the cells; returns the scale of the colours."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import Normalize
    from matplotlib.patches import Rectangle

    rows, columns = alignment.mass.shape
    scale = ScalarMappable(Normalize(0.0, alignment.unrelated, clip=True), style.colours)
    sides = _sides(alignment.mass)
    drawn_cells = np.argwhere(sides > 0)
    squares = []
    for row, column in drawn_cells:
        side = sides[row, column]
        squares.append(Rectangle((column - side / 2, row - side / 2), side, side))
    colours = scale.to_rgba(alignment.values[tuple(drawn_cells.T)])
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
    """Writes the words at the axes, special tokens small and grey, and the names of both sides in
    the corner."""
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
            # A special token has an empty span.
            factor, colour = (1.0, INK) if end else (0.85, QUIET)
            font = fonts.properties(factor * size)
            for label in (tick.label1, tick.label2):
                label.set(fontproperties=font, color=colour, parse_math=False)
    widest = max(_extent(tick.label2)[0] for tick in axes.xaxis.get_major_ticks())
    if widest > 0.95 * cell:
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
    """Writes the values into the squares that are large enough."""
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
    """Writes, for each word of the translation, the word that gives most of its mass, and the value.

    Returns:
        The columns of this table, which together are as wide as `width`, where they fit.
    """
    lines = []
    for word, partner, value in alignment.partners():
        match = f"{shortened(partner, 16)} {decimals(value, 2)}" if partner else "–"
        lines.append(f"{shortened(word, 16)} ← {match}")
    # Written to measure it.
    longest = _write(figure, max(lines, key=len), fonts, _SMALL, INK)
    widest, _ = _extent(longest)
    longest.remove()
    columns = max(1, int(width // (widest + 4 * _GAP)))
    height = -(-len(lines) // columns)
    blocks = [lines[first : first + height] for first in range(0, len(lines), height)]
    return [_write(figure, "\n".join(block), fonts, _SMALL, INK) for block in blocks]


def _add_bar(axes: "Axes", scale: "ScalarMappable", fonts: LabelFonts, name: str) -> None:
    """Adds a colour bar to the right of the axes, which fill the figure, and of their labels."""
    figure_size = axes.figure.get_size_inches() * _INCH
    labels_end = axes.yaxis.get_tightbbox().x1 * _INCH / _DPI
    left = max(labels_end, figure_size[0]) + 2 * _GAP
    corner = np.array([left, figure_size[1] - _BAR_HEIGHT])
    size = np.array([_BAR_WIDTH, _BAR_HEIGHT])
    # In shares of the figure.
    bar = axes.figure.add_axes((*corner / figure_size, *size / figure_size))
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
    """Sizes the figure by its content, from top to bottom: the heading, the axes with their labels,
    the columns of the table side by side, and the note.

    A constrained layout fits axes into a figure of a fixed size; here the size of a cell is fixed.
    """
    from matplotlib.transforms import Affine2D, Bbox

    old_size = figure.get_size_inches() * _INCH
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    # The box of all axes and their labels.
    box = Bbox.union(boxes or [Bbox.from_bounds(0, 0, 0, 0)])
    drawn = box.transformed(Affine2D().scale(_INCH / _DPI))
    blocks = [_extent(block) for block in table]
    title_width, title_height = _extent(heading)
    note_width, note_height = _extent(note)
    table_width = sum(block_width + 4 * _GAP for block_width, _ in blocks)
    table_height = max((block_height + 2 * _GAP for _, block_height in blocks), default=0.0)
    head = title_height + 2 * _GAP if heading.get_text() else 0.0
    # The upper end of the table, or of the note.
    below = _MARGIN + note_height + table_height
    width = 2 * _MARGIN + max(drawn.width, title_width, note_width, table_width)
    height = below + 2 * _GAP + drawn.height + head + _MARGIN
    figure.set_size_inches(width / _INCH, height / _INCH)
    moved = Affine2D().scale(*old_size)
    moved.translate(_MARGIN - drawn.x0, below + 2 * _GAP - drawn.y0)
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
