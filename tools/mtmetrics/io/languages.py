"""Tokenisation, scripts and language identification: splits sentences into tokens, and tells
whether texts are in the language that they should be in.

- A *language* is an ISO 639 code, such as ``sr``.
- A *code* is a code as users write it. It may also name a script or a region, such as
  ``sr_Cyrl_RS``. `mtmetrics.checks` has the functions that read language and script from it.
- A *script* is the first word of the Unicode names of its letters, such as ``CYRILLIC``.
- A *script code* is a code of ISO 15924, such as ``Cyrl``."""

import collections
import functools
import importlib.util
import itertools
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from mtmetrics.checks import language_of, script_of_code, split_pair, warn
from mtmetrics.errors import InputError

# Languages that are written with spaces, and whose letters the Moses rules cover. (The rules would
# split Sinhala words, for example, at joiners.)
_MOSES_LANGUAGES = (
    "bg ca cs da de el en es et fi fr ga hr hu is it lt lv nl no pl pt ro ru sk sl sq sr sv tr uk"
)


def tokeniser(language: str) -> Callable[[str], list[str]]:
    """Returns a function that splits a sentence into tokens: with the Moses rules for European
    languages, with jieba for Chinese, with `words_and_symbols` for others."""
    if language == "zh":
        import logging

        import jieba

        # Otherwise jieba logs to standard error while it loads its dictionary.
        jieba.setLogLevel(logging.WARNING)
        return lambda sentence: [token for token in jieba.cut(sentence) if token.strip()]
    if language in _MOSES_LANGUAGES.split():
        from sacremoses import MosesTokenizer

        moses = MosesTokenizer(lang=language)
        return lambda sentence: moses.tokenize(sentence, escape=False)
    return words_and_symbols


def detokeniser(language: str) -> Callable[[str], str]:
    """Returns a function that undoes the tokenisation of Moses, including its HTML entities and
    ``@-@`` hyphens.

    Texts in languages that the Moses rules do not cover stay as they are.
    """
    if language not in _MOSES_LANGUAGES.split():
        return lambda text: text
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(lang=language)
    return lambda text: moses.detokenize(text.split())


def words_and_symbols(sentence: str) -> list[str]:
    """Splits a sentence into words and symbols; leaves out spaces.

    A word is a run of letters, digits, combining marks and joiners. Any other character is a symbol,
    such as a punctuation mark. A character of an unspaced script (Thai, Japanese) is a token of its
    own, see `is_unspaced`.

    Example:
        >>> words_and_symbols("(a b1)--c")
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


# Beginnings of the Unicode names of unspaced characters. Names of Chinese and Japanese punctuation
# begin with IDEOGRAPHIC.
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


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script without spaces between words. Hangul counts as such a
    script, although Korean has spaces."""
    return unicodedata.name(character, "").startswith(_UNSPACED)


# Script -> languages that are written in no other script.
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
_SCRIPT_OF_LANGUAGE = {
    language: script for script, languages in _SCRIPTS.items() for language in languages.split()
}
# Script code -> script.
_SCRIPT_OF_CODE = {
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
# Scripts that are mixed in Japanese. They count as one script, CJK.
_CJK = {"CJK", "HIRAGANA", "KATAKANA"}


def expected_script(code: str) -> str | None:
    """Returns the script of texts in a language: the script that the code names. If it names none,
    the only script of the language.

    Returns:
        The script; None if the tables of this module do not say which.

    Example:
        >>> expected_script("de"), expected_script("sr_Cyrl")
        ('LATIN', 'CYRILLIC')
    """
    script_code = script_of_code(code)
    if script_code is None:
        return _SCRIPT_OF_LANGUAGE.get(language_of(code))
    return _SCRIPT_OF_CODE.get(script_code)


def is_in_other_script(text: str, code: str | None) -> bool:
    """Whether the main script of a text, in which most of its letters are, is not the script of a
    language. False if the code is None, `expected_script` returns None, or the text has no letters.
    """
    expected = None if code is None else expected_script(code)
    return expected is not None and _main_script(text) not in ("", expected)


def _main_script(text: str) -> str:
    """Returns the most frequent script of the letters of a text; an empty string if it has no
    letters."""
    scripts = collections.Counter(map(_script_of_letter, filter(str.isalpha, text)))
    return scripts.most_common(1)[0][0] if scripts else ""


@functools.lru_cache(maxsize=4096)
def _script_of_letter(letter: str) -> str:
    name = unicodedata.name(letter, "").split(" ")[0]
    return "CJK" if name in _CJK else name


def standard_pair(lang_pair: str) -> str:
    """Returns a language pair in its standard form: both languages, each with a script code only if
    it names another script than the only one of the language.

    Pairs with the same standard form give the same scores.

    Example:
        >>> standard_pair("deu_Latn-eng_Latn"), standard_pair("en-sr_Cyrl_RS")
        ('de-en', 'en-sr_Cyrl')
    """
    return "-".join(map(_standard_code, split_pair(lang_pair)))


def _standard_code(code: str) -> str:
    language, script_code = language_of(code), script_of_code(code)
    if script_code is None:
        return language
    # A script code that is not in the table stands for a script that no language of the other table
    # has. Simplified and traditional Chinese (Hans, Hant) have the same script.
    script = _SCRIPT_OF_CODE.get(script_code, script_code)
    is_only_script = script == _SCRIPT_OF_LANGUAGE.get(language)
    return language if is_only_script else f"{language}_{script_code}"


@functools.cache
def has_py3langid() -> bool:
    """Whether py3langid, which identifies languages, is installed."""
    return importlib.util.find_spec("py3langid") is not None


def language_identifier(language: str) -> Callable[[str], str]:
    """Checks that py3langid knows a language, and returns a function that identifies the language
    of a sentence, which may be any language that py3langid knows.

    Raises:
        InputError: py3langid does not know `language`.
    """
    import py3langid

    languages = sorted({code for code, _ in py3langid.rank("")})  # `rank` returns all languages
    if language not in languages:
        advice = f"so do without the language filter; it knows: {' '.join(languages)}"
        raise InputError(f"language {language!r}: py3langid does not know it, {advice}")
    return lambda sentence: py3langid.classify(sentence)[0]


# A text is surely foreign if another language is e^20 times as likely as the language that it should
# be in. With texts of 40 characters or more, this is wrong for 4 of 12,000 human translations into
# English, and right for 994 of 1,000 German texts that should be English.
_MIN_LENGTH, _MIN_LOG_RATIO = 40, 20.0
# Languages that py3langid confuses.
_CONFUSABLE = tuple(group.split() for group in ("bs hr sr", "da nb nn no", "id ms", "wuu yue zh"))


def is_long_and_foreign(text: str, language: str) -> bool:
    """Whether a text has 40 characters or more, and is certainly not in a language."""
    return len(text) >= _MIN_LENGTH and is_surely_foreign(text, language)


@functools.lru_cache(maxsize=4096)
def is_surely_foreign(text: str, language: str) -> bool:
    """Whether a text of any length is certainly not in a language. Few short texts are so certain.
    False if py3langid does not know the language."""
    import py3langid

    log_probabilities = dict(py3langid.rank(text))
    if language not in log_probabilities:
        return False
    accepted_languages = [language]
    for group in _CONFUSABLE:
        if language in group:
            accepted_languages = group
    best_accepted = max(
        log_probabilities[accepted]
        for accepted in accepted_languages
        if accepted in log_probabilities
    )
    return max(log_probabilities.values()) - best_accepted > _MIN_LOG_RATIO


_Row = TypeVar("_Row", bound=Sequence[str | Sequence[str]])
# Smallest and largest number of texts per column on which a warning is based.
_MIN_TEXTS, _MAX_TEXTS = 5, 100
# For warnings, the language of a text with fewer characters is not identified.
_MIN_LENGTH_IN_WARNINGS = 15


def with_language_warning(
    lang_pair: str | None, columns: Sequence[str], rows: Iterable[_Row]
) -> Iterator[_Row]:
    """Yields the rows unchanged. Warns once if most texts at the beginning of a column contradict
    the language pair.

    They contradict it in one of these cases:

    - The main script of most texts is not the script of the language.
    - py3langid identifies the same other language for most texts. This needs py3langid to be
      installed and to know the language.

    Args:
        lang_pair: such as ``de-en``; None for no warning.
        columns: ``sources``, ``references`` or ``predictions`` for each column.
        rows: rows of texts. If a cell is a list of texts, only its first text is checked.
    """
    if lang_pair is None:
        yield from rows
        return
    rows = iter(rows)
    first_rows = []
    for row in itertools.islice(rows, _MAX_TEXTS):
        first_rows.append([text if isinstance(text, str) else text[0] for text in row])
        yield row
    if len(first_rows) >= _MIN_TEXTS:
        _warn_of_wrong_language(lang_pair, columns, first_rows)
    first_rows.clear()  # long texts take memory as long as the generator lives
    yield from rows


def _warn_of_wrong_language(lang_pair: str, columns: Sequence[str], rows: list[list[str]]) -> None:
    """Warns about the first column whose texts contradict the language pair."""
    source, target = split_pair(lang_pair)
    for column, texts in zip(columns, zip(*rows, strict=True), strict=True):
        code = source if column == "sources" else target
        texts_with_words = [text for text in texts if text.strip()]
        contradiction = _describe_other_script(code, texts_with_words)
        contradiction = contradiction or _describe_other_language(
            language_of(code), texts_with_words
        )
        if contradiction:
            advice = f"is --lp {lang_pair} right, and is each file where it belongs?"
            warn(f"{column} are to be {code!r}, but {contradiction}; {advice}")
            return


def _describe_other_script(code: str, texts: Sequence[str]) -> str:
    """Says how many texts are in one other script, the most frequent one, if most texts are in
    scripts other than the script of a language. Otherwise returns an empty string."""
    expected = expected_script(code)
    scripts = [script for text in texts if (script := _main_script(text))]
    wrong_scripts = [script for script in scripts if script != expected]
    if expected is None or len(scripts) < _MIN_TEXTS or 2 * len(wrong_scripts) <= len(scripts):
        return ""
    [(script, count)] = collections.Counter(wrong_scripts).most_common(1)
    return f"{count} of {len(scripts)} segments are in {script.title()} letters"


def _describe_other_language(language: str, texts: Sequence[str]) -> str:
    """Says how many texts are in one other language. Returns an empty string unless most texts are."""
    long_texts = [text for text in texts if len(text) >= _MIN_LENGTH_IN_WARNINGS]
    if len(long_texts) < _MIN_TEXTS:
        return ""
    try:
        identify = language_identifier(language)
    except (ImportError, InputError):  # py3langid is absent, or does not know the language
        return ""
    [(other, count)] = collections.Counter(map(identify, long_texts)).most_common(1)
    if other == language or 2 * count <= len(long_texts):
        return ""
    return f"{count} of {len(long_texts)} segments look like {other!r}"
