"""Are the texts in the languages that the user says they are in?"""

import collections
import itertools
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from mtmetrics.errors import InputError
from mtmetrics.inputs import language_pair, warn

_Row = TypeVar("_Row", bound=Sequence[Any])
# Script, as the names of its characters begin -> languages that are written in no other.
_SCRIPTS = {
    "LATIN": "af ca cs cy da de en es et eu fi fr ga gl hr hu id is it lt lv ms mt nl no pl pt ro sk sl sq sv tl tr vi",
    "CYRILLIC": "be bg kk ky mk ru tg tt uk",
    "GREEK": "el",
    "ARABIC": "ar fa ps ur",
    "HEBREW": "he yi",
    "DEVANAGARI": "hi mr ne sa",
    "CJK": "ja zh",
    "HANGUL": "ko",
    "THAI": "th",
    "SINHALA": "si",
    "TAMIL": "ta",
    "TELUGU": "te",
    "BENGALI": "as bn",
    "GUJARATI": "gu",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
    "KHMER": "km",
    "LAO": "lo",
    "MYANMAR": "my",
    "ETHIOPIC": "am ti",
}
_SCRIPT_OF = {language: script for script, languages in _SCRIPTS.items() for language in languages.split()}
_CJK = {"CJK", "HIRAGANA", "KATAKANA"}
_FEWEST = 5
_SHORTEST = 15
_MOST = 100


def language_checked(lang_pair: str | None, columns: Sequence[str], rows: Iterable[_Row]) -> Iterator[_Row]:
    """Yields the rows, and gives one warning if most texts at the beginning of a column contradict the language pair.

    They do by their script or, where py3langid is installed and knows the language, by being in one other language.

    Args:
        lang_pair: such as ``de-en``; None for no check.
        columns: ``sources``, ``references`` or ``predictions`` for each column.
        rows: of texts; of a list of texts the first one counts.
    """
    rows = iter(rows)
    seen = []
    for row in itertools.islice(rows, _MOST if lang_pair is not None else 0):
        seen.append([text if isinstance(text, str) else text[0] for text in row])
        yield row
    if len(seen) >= _FEWEST:
        source, target = language_pair(lang_pair)
        languages = [source if column == "sources" else target for column in columns]
        _warn_once(str(lang_pair), columns, languages, list(zip(*seen, strict=True)))
    seen.clear()
    yield from rows


def _warn_once(
    lang_pair: str, columns: Sequence[str], languages: Sequence[str], texts: Sequence[Sequence[str]]
) -> None:
    for column, language, segments in zip(columns, languages, texts, strict=True):
        found = _contradicting(language, [text for text in segments if text.strip()])
        if found:
            advice = f"is --lp {lang_pair} right, and is each file where it belongs?"
            warn(f"{column} are to be {language!r}, but {found}; {advice}")
            return


def _contradicting(language: str, texts: Sequence[str]) -> str:
    """What speaks against the language, or an empty string."""
    expected = _SCRIPT_OF.get(language)
    scripts = [script for text in texts if (script := _script(text))]
    others = [script for script in scripts if script != expected]
    if expected is not None and len(scripts) >= _FEWEST and 2 * len(others) > len(scripts):
        [(script, _)] = collections.Counter(others).most_common(1)
        return f"{len(others)} of {len(scripts)} segments are in {script.title()} letters"
    texts = [text for text in texts if len(text) >= _SHORTEST]
    if len(texts) < _FEWEST:
        return ""
    from mtmetrics.mining.text import language_identifier

    try:
        identified = language_identifier(language)
    except (ImportError, InputError):  # py3langid is absent, or does not know the language
        return ""
    [(other, count)] = collections.Counter(map(identified, texts)).most_common(1)
    found = f"{count} of {len(texts)} segments look like {other!r}"
    return found if other != language and 2 * count > len(texts) else ""


def _script(text: str) -> str:
    """The script of most letters, as the names of its characters begin; empty where there are no letters."""
    names = (unicodedata.name(letter, "").split(" ")[0] for letter in text if letter.isalpha())
    found = collections.Counter("CJK" if name in _CJK else name for name in names)
    return found.most_common(1)[0][0] if found else ""
