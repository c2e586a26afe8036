"""Finds installed fonts that have the glyphs of the labels of a figure."""

import contextlib
import functools
import importlib.util
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.font_manager import FontProperties

_BASE = "DejaVu Sans"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_NORMAL_WEIGHT = 400
_NAMED = 10
_INVISIBLE = {"Cc", "Cf"}


class LabelFonts(NamedTuple):
    """Fonts for the labels of one figure.

    Attributes:
        families: font families in the order in which a glyph is looked up; DejaVu Sans, which comes with matplotlib, is
            the first.
        missing: characters that no family has a glyph for.
    """

    families: list[str]
    missing: frozenset[str]

    def shown(self, label: str) -> str:
        """The label with U+FFFD in place of every missing character; invisible ones (joiners, marks of direction) are
        dropped."""
        characters = (
            character
            if character not in self.missing
            else ""
            if unicodedata.category(character) in _INVISIBLE
            else _REPLACEMENT
            for character in label
        )
        return "".join(characters)

    @property
    def advice(self) -> str:
        """One line that names what is missing and says what mends it, or an empty string."""
        visible = sorted(character for character in self.missing if unicodedata.category(character) not in _INVISIBLE)
        if not visible:
            return ""
        named = " ".join(f"{character} (U+{ord(character):04X})" for character in visible[:_NAMED])
        more = f" and {len(visible) - _NAMED} more" if len(visible) > _NAMED else ""
        mend = "install a font that has them, such as the Noto font of the script"
        if _packaged_font() is None:
            mend += ", or, for Chinese, pip install 'mtmetrics[plot]'"
        return f"no font here has the characters {named}{more} (drawn as {_REPLACEMENT}); {mend}"

    def properties(self, size: float) -> "FontProperties":
        """The families, upright and of normal weight, whatever matplotlib's settings say; the size is in points."""
        from matplotlib.font_manager import FontProperties

        return FontProperties(
            family=self.families, style="normal", variant="normal", weight="normal", stretch="normal", size=size
        )


def label_fonts(labels: Iterable[str]) -> LabelFonts:
    """Chooses font families for labels: DejaVu Sans, and as few others as have the characters that it lacks.

    Other families are chosen greedily: the one with the most of the missing characters first, among equals an installed
    sans serif. One candidate need not be installed: Noto Sans SC (simplified Chinese) from the distribution ``zhplot``,
    a part of the extra ``plot``.

    Whether right-to-left text and scripts such as Devanagari or Arabic are shaped is up to matplotlib: 3.11 and newer
    join and order the signs of a label; older ones set them apart, one by one, from left to right. Colour fonts (emoji)
    cannot be drawn.

    Args:
        labels: texts; white space needs no glyph.
    """
    wanted = {character for label in labels for character in label if not character.isspace()}
    families, missing = _choose(frozenset(wanted - _characters(_BASE, wanted)))
    return LabelFonts([_BASE, *families], missing)


@functools.lru_cache(maxsize=256)
def _choose(missing: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The families that cover most of `missing`, and what is left."""
    chosen: list[str] = []
    while missing:
        found = {family: _characters(family, missing) for family in _candidates()}
        family = max(found, key=lambda name: len(found[name]), default=None)
        if family is None or not found[family]:
            break
        chosen.append(family)
        missing = missing - found[family]
    return tuple(chosen), missing


@functools.cache
def _candidates() -> list[str]:
    """Families with an upright face of normal weight, sans serifs first, the one of zhplot last."""
    from matplotlib import font_manager

    manager = font_manager.fontManager
    for path in sorted(set(font_manager.findSystemFonts()) - {entry.fname for entry in manager.ttflist}):
        # matplotlib keeps its list of fonts for good: what was installed since is not on it, nor is what it cannot
        # read.
        with contextlib.suppress(OSError, RuntimeError, ValueError, LookupError):
            manager.addfont(path)
    packaged = _packaged_font()
    last = None
    if packaged is not None:
        last = font_manager.get_font(packaged).family_name
        manager.addfont(packaged)
    names = {
        entry.name
        for entry in manager.ttflist
        if entry.style == "normal" and font_manager.weight_dict.get(entry.weight, entry.weight) == _NORMAL_WEIGHT
    }
    # The fonts of last resort have a glyph for everything: a box.
    names -= {name for name in names if "last" in name.lower() and "resort" in name.lower()}
    return sorted(names, key=lambda name: (name == last, "sans" not in name.lower(), name))


def _packaged_font() -> Path | None:
    """The font file of zhplot, which is not imported: that would change matplotlib's settings for the whole process."""
    spec = importlib.util.find_spec("zhplot")
    path = Path(spec.origin).parent / "fonts" / "NotoSansSC-Regular.ttf" if spec is not None and spec.origin else None
    return path if path is not None and path.is_file() else None


def _characters(family: str, wanted: Iterable[str]) -> frozenset[str]:
    """Those of `wanted` that a family has glyphs for."""
    import numpy as np

    codes = np.fromiter((ord(character) for character in wanted), dtype=np.int64)
    return frozenset(map(chr, codes[np.isin(codes, _codes(family))].tolist()))


@functools.cache
def _codes(family: str) -> "np.ndarray":
    """(k,) code points that the font file which matplotlib takes for a family has glyphs for; none for colour fonts."""
    import numpy as np
    from matplotlib import font_manager, ft2font

    font = font_manager.get_font(font_manager.findfont(LabelFonts([family], frozenset()).properties(10)))
    codes = () if font.face_flags & ft2font.FaceFlags.COLOR else font.get_charmap()
    return np.fromiter(codes, dtype=np.int64)
