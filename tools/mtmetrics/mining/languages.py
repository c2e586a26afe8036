"""What monolingual preparation knows of languages: how to count their tokens, and which one a sentence is in."""

import itertools
import unicodedata
from collections.abc import Callable

from mtmetrics.errors import InputError
from mtmetrics.models.words import is_unspaced

# Written with spaces and in letters that Moses' rules know; Sinhala, for example, it takes apart at joiners inside
# words.
_MOSES = "bg ca cs da de el en es et fi fr ga hr hu is it lt lv nl no pl pt ro ru sk sl sq sr sv tr uk".split()  # noqa: SIM905


def tokeniser(language: str) -> Callable[[str], list[str]]:
    """Splits a sentence into tokens: Moses' rules for European languages, jieba for Chinese, `words_and_marks` for all
    others.

    Args:
        language: ISO 639 code.
    """
    if language == "zh":
        return _jieba()
    if language not in _MOSES:
        return words_and_marks
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=language)
    return lambda sentence: moses.tokenize(sentence, escape=False)


def _jieba() -> Callable[[str], list[str]]:
    import logging

    import jieba

    jieba.setLogLevel(logging.WARNING)  # it would report on standard error how it loads its dictionary
    return lambda sentence: [token for token in jieba.cut(sentence) if token.strip()]


def words_and_marks(sentence: str) -> list[str]:
    """The fallback tokeniser: runs of letters, digits and what joins or modifies them, and every other mark alone.

    A character of a script that is written without spaces (Thai, Japanese) counts as a token of its own.
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
    """Tells the ISO 639 code of a sentence's language, by py3langid.

    Args:
        language: the language that is wanted.

    Raises:
        InputError: it is none of those that py3langid knows.
    """
    import py3langid

    known = sorted({code for code, _ in py3langid.rank("")})
    if language not in known:
        raise InputError(
            f"language {language!r}: py3langid does not know it, so do without the language filter; it knows: {' '.join(known)}"
        )
    return lambda sentence: py3langid.classify(sentence)[0]
