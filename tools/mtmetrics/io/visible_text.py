"""Texts as they are read: without characters that nobody sees and that say nothing."""

import re

import numpy as np
import regex

# Soft hyphens, spaces and joiners of no width, marks and embeddings of direction, tags.
_UNSEEN = (
    "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
_HAS_UNSEEN = re.compile(f"[{_UNSEEN}]")
# Letters and marks of scripts whose letters change their form where a joiner stands, such as Arabic
# and Devanagari: of all but those that are known to have no such letters.
_PLAIN_SCRIPTS = (
    "Latin Greek Cyrillic Armenian Hebrew Georgian Han Hiragana Katakana Hangul Bopomofo Thai "
    "Lao Ethiopic Cherokee Common Inherited"
)
_JOINING = (
    "[[\\p{L}\\p{M}]--["
    + "".join(f"\\p{{Script={name}}}" for name in _PLAIN_SCRIPTS.split())
    + "]]"
)
_MEANT = "|".join(
    [
        # Behind such a letter: its form, which ends a word as well; a non-joiner stands between
        # two.
        rf"(?<={_JOINING}\p{{Mn}}{{0,3}})(?:\u200d|\u200c(?={_JOINING}))",
        # Between two emoji that make one.
        r"(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f\u20e3])\u200d(?=\p{Extended_Pictographic})",
        # The last vowel of a Mongolian word.
        r"(?<=\p{Script=Mongolian})\u180e(?=\p{Script=Mongolian})",
        # Flags of regions.
        "\U0001f3f4[\U000e0020-\U000e007f]{1,8}",
    ]
)
_SIGNS = regex.compile(f"(?P<meant>{_MEANT})|[{_UNSEEN}]", regex.V1)
_NOTHING = regex.compile(r"[\s\p{Default_Ignorable_Code_Point}]*+")


def visible(text: str) -> str:
    """Returns a text without invisible characters that mean nothing; it may become empty.

    Joiners stay between letters of scripts that are written with them, such as Devanagari, Sinhala
    and Arabic, and in emoji.

    Example:
        >>> visible("Aus\\u00adschuss\\u200b"), visible("\\u200b\\u2060")
        ('Ausschuss', '')
    """
    if text.isascii():
        return text
    if _HAS_UNSEEN.search(text):
        text = _SIGNS.sub(lambda sign: sign["meant"] or "", text)
    return "" if _NOTHING.fullmatch(text) else text


def is_blank(text: str) -> bool:
    """Whether a text is empty, or has nothing but spaces and invisible characters."""
    return not visible(text).strip()


def spans_as_written(text: str, spans: np.ndarray) -> np.ndarray:
    """Converts (k, 2) spans of ``visible(text)`` to spans of the text itself; empty spans stay."""
    places = _visible_places(text)
    if places is None:
        return spans
    is_filled = spans[:, 0] < spans[:, 1]
    first = spans[is_filled, 0]
    last = spans[is_filled, 1] - 1
    written = spans.copy()
    written[is_filled] = np.stack([places[first], places[last] + 1], axis=1)
    return written


def spans_as_seen(text: str, spans: np.ndarray) -> np.ndarray:
    """Converts (k, 2) spans of a text to spans of ``visible(text)``."""
    places = _visible_places(text)
    return spans if places is None else np.searchsorted(places, spans)


def _visible_places(text: str) -> np.ndarray | None:
    """Returns the place of each character of ``visible(text)`` in the text; None where both are
    equal."""
    if visible(text) == text:
        return None
    dropped = [sign.start() for sign in _SIGNS.finditer(text) if not sign["meant"]]
    return np.delete(np.arange(len(text)), dropped)
