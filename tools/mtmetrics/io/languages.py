"""Languages of texts: tokens of a sentence, scripts, and whether texts are in the language that they
should be in."""

import collections
import functools
import importlib.util
import itertools
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from mtmetrics.checks import language_of, script_of_code, split_pair, warn
from mtmetrics.errors import InputError

_Row = TypeVar("_Row", bound=Sequence[str | Sequence[str]])
# Languages that are written with spaces and in letters that Moses' rules know. (Sinhala, for example,
# would be taken apart at joiners in words.)
_MOSES = (
    "bg ca cs da de el en es et fi fr ga hr hu is it lt lv nl no pl pt ro ru sk sl sq sr sv tr uk"
)
# Scripts that are written without spaces: there a SentencePiece entry without the space mark is no
# continuation.
_UNSPACED = (
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "HANGUL",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
    "TIBETAN",
    "IDEOGRAPHIC",
)
# Script, as the names of its characters begin -> languages that are written in no other.
_SCRIPTS = {
    "LATIN": (
        "af ca cs cy da de en es et eu fi fr ga gl hr hu id is it lt lv ms mt nl no pl pt ro sk "
        "sl sq sv tl tr vi"
    ),
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
_SCRIPT_OF = {
    language: script for script, languages in _SCRIPTS.items() for language in languages.split()
}
# ISO 15924 code of a script -> how the names of its characters begin.
_SCRIPT_CODES = {
    "Latn": "LATIN",
    "Cyrl": "CYRILLIC",
    "Grek": "GREEK",
    "Arab": "ARABIC",
    "Hebr": "HEBREW",
    "Deva": "DEVANAGARI",
    **dict.fromkeys(("Hans", "Hant", "Hani", "Jpan", "Hira", "Kana"), "CJK"),
    **dict.fromkeys(("Kore", "Hang"), "HANGUL"),
    "Thai": "THAI",
    "Sinh": "SINHALA",
    "Taml": "TAMIL",
    "Telu": "TELUGU",
    "Beng": "BENGALI",
    "Gujr": "GUJARATI",
    "Guru": "GURMUKHI",
    "Knda": "KANNADA",
    "Mlym": "MALAYALAM",
    "Orya": "ORIYA",
    "Geor": "GEORGIAN",
    "Armn": "ARMENIAN",
    "Khmr": "KHMER",
    "Laoo": "LAO",
    "Mymr": "MYANMAR",
    "Ethi": "ETHIOPIC",
    "Tibt": "TIBETAN",
    "Mong": "MONGOLIAN",
    "Tfng": "TIFINAGH",
    "Olck": "OL",
}
_CJK = {"CJK", "HIRAGANA", "KATAKANA"}
# From this length on py3langid is sure where another language is e^20 times as likely: it is wrong
# about 4 of 12,000 human translations into English, and sees 994 of 1,000 German texts that are
# taken for English.
_LONG, _SURE = 40, 20.0
# Languages that it mistakes for each other.
_ALIKE = ("bs hr sr", "da nb nn no", "id ms", "wuu yue zh")
_FEWEST_TEXTS = 5  # that can contradict a language
_SHORTEST_TEXT = 15  # that py3langid is asked about, in characters
_MOST_TEXTS = 100  # that are looked at


def tokeniser(language: str) -> Callable[[str], list[str]]:
    """Returns a function that splits a sentence into tokens: by Moses' rules for European languages,
    jieba for Chinese, else `words_and_marks`."""
    if language == "zh":
        import logging

        import jieba

        # It would report on standard error how it loads its dictionary.
        jieba.setLogLevel(logging.WARNING)
        return lambda sentence: [token for token in jieba.cut(sentence) if token.strip()]
    if language in _MOSES.split():
        from sacremoses import MosesTokenizer

        moses = MosesTokenizer(lang=language)
        return lambda sentence: moses.tokenize(sentence, escape=False)
    return words_and_marks


def detokeniser(language: str) -> Callable[[str], str]:
    """Returns a function that undoes Moses' tokenisation, its entities and joined hyphens, too.

    Texts in languages that Moses does not know stay as they are.
    """
    if language not in _MOSES.split():
        return lambda text: text
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(lang=language)
    return lambda text: moses.detokenize(text.split())


def words_and_marks(sentence: str) -> list[str]:
    """Runs of letters, digits and what joins or modifies them, and every other mark alone.

    A character of a script that is written without spaces (Thai, Japanese) counts as a token of its
    own.

    Example:
        >>> words_and_marks("(a b1)--c")
        ['(', 'a', 'b1', ')', '-', '-', 'c']
    """
    tokens: list[str] = []
    for chunk in sentence.split():
        for is_word, group in itertools.groupby(chunk, _belongs_to_word):
            characters = list(group)
            tokens += ["".join(characters)] if is_word else characters
    return tokens


def _belongs_to_word(character: str) -> bool:
    category = unicodedata.category(character)
    return (category[0] in "LMN" or category == "Cf") and not is_unspaced(character)


def language_identifier(language: str) -> Callable[[str], str]:
    """Returns a function that tells the ISO 639 code of a sentence's language, by py3langid.

    Raises:
        InputError: py3langid does not know `language`.
    """
    import py3langid

    languages = sorted({code for code, _ in py3langid.rank("")})
    if language not in languages:
        advice = f"so do without the language filter; it knows: {' '.join(languages)}"
        raise InputError(f"language {language!r}: py3langid does not know it, {advice}")
    return lambda sentence: py3langid.classify(sentence)[0]


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without spaces between words."""
    return unicodedata.name(character, "").startswith(_UNSPACED)


def language_checked(
    lang_pair: str | None, columns: Sequence[str], rows: Iterable[_Row]
) -> Iterator[_Row]:
    """Yields the rows, and gives one warning if most texts at the beginning of a column contradict
    the language pair.

    They do by their script or, where py3langid is installed and knows the language, by being in one
    other language.

    Args:
        lang_pair: such as ``de-en``; None for no check.
        columns: ``sources``, ``references`` or ``predictions`` for each column.
        rows: of texts; of a list of texts the first one counts.
    """
    rows = iter(rows)
    beginning = []
    for row in itertools.islice(rows, _MOST_TEXTS if lang_pair is not None else 0):
        beginning.append([text if isinstance(text, str) else text[0] for text in row])
        yield row
    if len(beginning) >= _FEWEST_TEXTS:
        _warn_once(str(lang_pair), columns, beginning)
    beginning.clear()
    yield from rows


def _warn_once(lang_pair: str, columns: Sequence[str], rows: list[list[str]]) -> None:
    """Warns of the first column whose texts contradict the language pair."""
    source, target = split_pair(lang_pair)
    for column, texts in zip(columns, zip(*rows, strict=True), strict=True):
        language = source if column == "sources" else target
        contradiction = _contradiction(language, [text for text in texts if text.strip()])
        if contradiction:
            advice = f"is --lp {lang_pair} right, and is each file where it belongs?"
            warn(f"{column} are to be {language!r}, but {contradiction}; {advice}")
            return


def expected_script(code: str) -> str | None:
    """Returns the script of texts in a language, as the names of its characters begin.

    It is the script that the code names, else the one that the language is always written in; None
    where that is not known.

    Example:
        >>> expected_script("de"), expected_script("sr_Cyrl")
        ('LATIN', 'CYRILLIC')
    """
    script = script_of_code(code)
    if script is None:
        return _SCRIPT_OF.get(language_of(code))
    return _SCRIPT_CODES.get(script)


def standard_pair(lang_pair: str) -> str:
    """Returns a language pair by the codes of its languages, each with its script where that is not
    the usual one. Scores depend on nothing else of it.

    Example:
        >>> standard_pair("deu_Latn-eng_Latn"), standard_pair("en-sr_Cyrl_RS")
        ('de-en', 'en-sr_Cyrl')
    """
    return "-".join(map(_standard_code, split_pair(lang_pair)))


def _standard_code(code: str) -> str:
    language, script = language_of(code), script_of_code(code)
    is_usual = script is None or _SCRIPT_OF.get(language) == _SCRIPT_CODES.get(script, script)
    return language if is_usual else f"{language}_{script}"


def _contradiction(code: str, texts: Sequence[str]) -> str:
    """Says how texts contradict the language of a code; an empty string where they do not."""
    expected = expected_script(code)
    scripts = [script for text in texts if (script := _script(text))]
    wrong_scripts = [script for script in scripts if script != expected]
    is_most = 2 * len(wrong_scripts) > len(scripts)
    if expected is not None and len(scripts) >= _FEWEST_TEXTS and is_most:
        [(script, _)] = collections.Counter(wrong_scripts).most_common(1)
        return f"{len(wrong_scripts)} of {len(scripts)} segments are in {script.title()} letters"
    language = language_of(code)
    texts = [text for text in texts if len(text) >= _SHORTEST_TEXT]
    if len(texts) < _FEWEST_TEXTS:
        return ""
    try:
        identified = language_identifier(language)
    except (ImportError, InputError):  # py3langid is absent, or does not know the language
        return ""
    [(other, count)] = collections.Counter(map(identified, texts)).most_common(1)
    if other == language or 2 * count <= len(texts):
        return ""
    return f"{count} of {len(texts)} segments look like {other!r}"


def is_of_other_script(text: str, code: str | None) -> bool:
    """Whether most letters of a text are of another script than that of a language, by its code;
    False where the language or its script is not known."""
    expected = None if code is None else expected_script(code)
    return expected is not None and _script(text) not in ("", expected)


@functools.cache
def tells_languages() -> bool:
    """Whether py3langid, which tells the language of a text, is installed."""
    return importlib.util.find_spec("py3langid") is not None


def is_of_other_language(text: str, language: str) -> bool:
    """Whether a text of 40 characters or more is surely not in a language that py3langid knows."""
    return len(text) >= _LONG and is_surely_foreign(text, language)


@functools.lru_cache(maxsize=4096)
def is_surely_foreign(text: str, language: str) -> bool:
    """Whether a text of any length is surely not in a language; hardly ever true of a short one."""
    import py3langid

    ranks = dict(py3langid.rank(text))
    if language not in ranks:
        return False
    alike = [language]
    for group in _ALIKE:
        if language in group.split():
            alike = group.split()
    rank = max(ranks[code] for code in alike if code in ranks)
    return max(ranks.values()) - rank > _SURE


def _script(text: str) -> str:
    """Returns the script of most letters, as the names of its characters begin; an empty string
    where there are no letters."""
    scripts = collections.Counter(map(_script_of_letter, filter(str.isalpha, text)))
    return scripts.most_common(1)[0][0] if scripts else ""


@functools.lru_cache(maxsize=4096)
def _script_of_letter(letter: str) -> str:
    name = unicodedata.name(letter, "").split(" ")[0]
    return "CJK" if name in _CJK else name
