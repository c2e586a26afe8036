"""Colours, axes, fonts that have the characters of the labels, and files, for all pictures."""

import contextlib
import functools
import importlib.util
import unicodedata
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mtmetrics.errors import InputError, install_command, require_extra
from mtmetrics.io.atomic import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties

# Okabe and Ito's colours, which colour-blind people can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK, QUIET, LINE = "#1f2933", "#7b8794", "#dfe3e8"
# The same picture is the same file: formats -> what would say when it was drawn.
_UNDATED: dict[str, dict[str, None]] = {
    ".png": {},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
_BASE = "DejaVu Sans"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_NAMED_AT_MOST = 10
_UPRIGHT = {("normal", weight) for weight in (400, "normal", "regular", "book")}

_named: set[str] = set()


def check_plot_file(path: str | Path, purpose: str) -> None:
    """Refuses, before anything is scored, to draw for a purpose without matplotlib, or to a file
    that ends in none of ``.png``, ``.svg`` and ``.pdf`` or whose folder does not exist."""
    require_extra("plot", purpose)
    if Path(path).suffix.lower() not in _UNDATED:
        raise InputError(f"{path}: the name of a plot must end in {', '.join(_UNDATED)}")
    if not Path(path).parent.is_dir():
        raise InputError(f"{path}: there is no folder {Path(path).parent}")


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Writes a figure as PNG, SVG or PDF, as the file's name ends; the file is whole or absent."""
    import matplotlib

    with atomic_path(path) as temporary, matplotlib.rc_context({"svg.hashsalt": "mtmetrics"}):
        kind = Path(path).suffix.lower()
        figure.savefig(
            temporary,
            format=kind.removeprefix("."),
            dpi="figure",
            metadata=_UNDATED[kind],
        )


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches, that nothing of matplotlib's global state knows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plain_axes(axes: "Axes", title: str, *, loc: str = "left", fontsize: float = 11) -> None:
    """A title, light lines at the ticks, behind what is drawn, and no frame but at the left and
    below."""
    axes.set_title(title, loc=loc, fontsize=fontsize, color=INK)
    axes.grid(color=LINE)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def finished(figure: "Figure") -> "Figure":
    """The figure with fonts that have the characters of its texts; a ``$`` in them is no
    formula."""
    from matplotlib.text import Text

    texts = figure.findobj(Text)
    fonts = label_fonts(text.get_text() for text in texts)
    fonts.warn(stacklevel=4)
    for text in texts:
        text.set(text=fonts.shown(text.get_text()), fontfamily=fonts.families, parse_math=False)
    return figure


def shortened(label: str, longest: int) -> str:
    """The label without its middle where it has more than `longest` characters."""
    half = longest // 2
    return label if len(label) <= longest else f"{label[:half]}…{label[1 - half :]}"


def wrapped(label: str, longest: int) -> str:
    """The label in two lines of at most so many characters where it has more: NAME:PRESET, then its
    options."""
    name, colon, options = label.rpartition(":")
    lines = [f"{name}:", options] if colon and len(label) > longest else [label]
    return "\n".join(shortened(line, longest) for line in lines)


class LabelFonts(NamedTuple):
    """Font families, from the first of which that has it matplotlib takes a glyph, and characters
    that none has."""

    families: list[str]
    missing: frozenset[str]

    def shown(self, label: str) -> str:
        """The label with U+FFFD for every missing character, without invisible ones (joiners, marks
        of direction)."""
        return label.translate(
            {ord(char): _REPLACEMENT if _is_visible(char) else "" for char in self.missing}
        )

    @property
    def advice(self) -> str:
        """One line that names what is missing and says what mends it, or an empty string."""
        visible = sorted(filter(_is_visible, self.missing))
        if not visible:
            return ""
        listed = " ".join(
            f"{character} (U+{ord(character):04X})" for character in visible[:_NAMED_AT_MOST]
        )
        more = f" and {len(visible) - _NAMED_AT_MOST} more" if len(visible) > _NAMED_AT_MOST else ""
        mend = "install a font that has them, such as the Noto font of the script"
        if _packaged_font() is None:
            mend += f", or, for Chinese, {install_command('plot')}"
        return f"no font here has the characters {listed}{more} (drawn as {_REPLACEMENT}); {mend}"

    def warn(self, stacklevel: int) -> None:
        """Gives the advice, unless a warning has named all these characters before: a hundred
        pictures need it once."""
        if self.advice and not self.missing <= _named:
            _named.update(self.missing)
            warnings.warn(self.advice, UserWarning, stacklevel)

    def properties(self, size: float) -> "FontProperties":
        """The families, upright and of normal weight, whatever matplotlib's settings say; the size
        is in points."""
        from matplotlib.font_manager import FontProperties

        return FontProperties(
            family=self.families,
            style="normal",
            variant="normal",
            weight="normal",
            stretch="normal",
            size=size,
        )


def label_fonts(labels: Iterable[str]) -> LabelFonts:
    """The fonts that matplotlib is to fall back on: DejaVu Sans, then, as far as characters are
    left, Noto Sans SC (simplified Chinese, from the distribution ``zhplot`` of the extra ``plot``),
    installed sans serifs, and others.

    Whether right-to-left text and scripts such as Devanagari or Arabic are shaped is up to
    matplotlib: 3.11 and newer join and order the signs of a label; older ones set them apart, one
    by one, from left to right. Colour fonts (emoji) cannot be drawn."""
    missing = frozenset(char for label in labels for char in label if not char.isspace())
    families = [_BASE]
    missing -= _characters(_BASE)
    for family in _families() if missing else ():
        if missing & _characters(family):
            families.append(family)
            missing -= _characters(family)
        if not missing:
            break
    return LabelFonts(families, missing)


@functools.cache
def _families() -> list[str]:
    """Families with an upright face of normal weight: the one of zhplot, sans serifs, others."""
    from matplotlib import font_manager

    manager = font_manager.fontManager
    for path in sorted(
        set(font_manager.findSystemFonts()) - {entry.fname for entry in manager.ttflist}
    ):
        # matplotlib keeps its list of fonts for good: what was installed since is not on it, nor
        # what it cannot read.
        with contextlib.suppress(OSError, RuntimeError, ValueError, LookupError):
            manager.addfont(path)
    packaged, first = _packaged_font(), None
    if packaged is not None:
        manager.addfont(packaged)
        first = font_manager.get_font(packaged).family_name
    upright = {entry.name for entry in manager.ttflist if (entry.style, entry.weight) in _UPRIGHT}
    # The fonts of last resort have a glyph for everything: a box.
    names = [name for name in upright if "resort" not in name.lower()]
    return sorted(names, key=lambda name: (name != first, "sans" not in name.lower(), name))


def _packaged_font() -> Path | None:
    """The font file of zhplot, which is not imported: that would change matplotlib's settings for
    the whole process."""
    spec = importlib.util.find_spec("zhplot")
    path = (
        Path(spec.origin).parent / "fonts" / "NotoSansSC-Regular.ttf"
        if spec is not None and spec.origin
        else None
    )
    return path if path is not None and path.is_file() else None


@functools.cache
def _characters(family: str) -> frozenset[str]:
    """The characters for which the font file that matplotlib takes for a family has glyphs; none
    for colour fonts."""
    from matplotlib import font_manager, ft2font

    font = font_manager.get_font(
        font_manager.findfont(LabelFonts([family], frozenset()).properties(10))
    )
    return frozenset(
        () if font.face_flags & ft2font.FaceFlags.COLOR else map(chr, font.get_charmap())
    )


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cf"}
