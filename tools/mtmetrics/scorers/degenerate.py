"""Output that is no translation: copies, loops, texts in another script or language, texts of
another length by far.

Nothing is unusual where the source, or the reference, is so itself.
"""

import unicodedata
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import regex

from mtmetrics.checks import language_of
from mtmetrics.io.languages import (
    has_py3langid,
    is_in_other_script,
    is_long_and_foreign,
    is_surely_foreign,
    is_unspaced,
)

# Counts of a report that say that an output is no translation.
DEGENERATE = ("identical", "looping", "script", "language", "length")
_LONGEST_PHRASE = 4  # words that are repeated
_LONGEST_CHARACTERS = 12  # of a phrase of a source without spaces
_TIMES = 4
_FEWEST_CHARACTERS = 12
_FACTOR, _CHARACTERS = 6, 60

_NO_LETTERS_OR_DIGITS = regex.compile(r"[^\p{L}\p{M}\p{N}]+")
_LETTER = regex.compile(r"\p{L}")
# Two letters or more, also around apostrophes and hyphens, perhaps in quotes or with punctuation;
# no address, file, formula, or code, which has digits or other signs inside.
_WORD = regex.compile(
    r"[^\p{L}\p{M}\p{N}@#/\\_]*(\p{L}\p{M}*(?:['’‐\-]?\p{L}\p{M}*)+)[^\p{L}\p{M}\p{N}@#/\\_(]*"
)
# A full stop behind three letters or fewer may be that of an abbreviation, as in a name.
_ENDS_SENTENCE = regex.compile(r"(?:[!?…。！？।]|\p{L}\p{M}*(?:\p{L}\p{M}*){3}\.)[^\p{L}\p{N}]*$")
_LONGEST_LINK = 3  # letters of "de" and "and" in a name, and of a unit behind a number
_LONGEST_NAME = 6  # words
_FEWEST_WORDS = 2  # of a sentence
_FEWEST_CAPITALS = 4  # of one in capitals
_FEWEST_CASELESS = 3  # words in a script without capitals
_FEWEST_UNSPACED = 5  # characters in a script without spaces


def degenerate(
    others: Sequence[str],
    predictions: Sequence[str],
    code: str | None,
    column: str = "references",
    rows: np.ndarray | None = None,
    other_code: str | None = None,
) -> dict[str, np.ndarray]:
    """Finds those of n translations that are none.

    Args:
        others: n sources or references.
        predictions: n translations.
        code: of the language of the translations, such as ``de`` or ``sr_Latn``; None where it is
            not known.
        column: what the others are, ``"sources"``, which a translation may be a copy of, or
            ``"references"``.
        rows: numbers of those that count, where a translation stands there several times; all if
            None.
        other_code: of the language of the others; None where it is not known.

    Returns:
        The names of `DEGENERATE` -> (n,) bool; ``language``, of texts in the right script, only
        where py3langid, of the extra ``filter``, is installed.
    """
    pairs = list(zip(others, predictions, strict=True))
    if rows is not None:
        pairs = [pairs[row] for row in rows]
    script = np.array([_is_of_other_script(*pair, other_code, code) for pair in pairs], dtype=bool)
    of_language = {"script": script}
    if code is not None and has_py3langid():
        foreign = np.array(
            [_is_of_other_language(*pair, other_code, code) for pair in pairs], dtype=bool
        )
        of_language["language"] = foreign & ~script
    return {
        "identical": np.array(
            [column == "sources" and is_copy(*pair) for pair in pairs], dtype=bool
        ),
        "looping": np.array([_loops_more(*pair) for pair in pairs], dtype=bool),
        **of_language,
        "length": np.array([is_out_of_proportion(*pair) for pair in pairs], dtype=bool),
    }


def any_degenerate(unusual: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns (n,) bool: whether an output is no translation, by one of `DEGENERATE`.

    Args:
        unusual: name of a count of the report -> (n,) bool, the segments that it counts; names may
            be missing.
    """
    return np.any([unusual[name] for name in DEGENERATE if name in unusual], axis=0)


def policy(how: str, counted: Collection[str]) -> str:
    """The field of a signature that says what was done with such output, and whether its language
    was looked at."""
    return f"degenerate:{how}{'+language' if 'language' in counted else ''}"


def is_copy(source: str, text: str) -> bool:
    """Whether a text is its source, but for case and punctuation, though there is something to
    translate.

    Example:
        >>> is_copy("Das Haus ist klein!", "DAS HAUS IST KLEIN"), is_copy("Angela Merkel", "Angela Merkel")
        (True, False)
    """
    is_same = source == text or _letters_and_digits(source) == _letters_and_digits(text)
    return is_same and (has_words(source) or has_words(text))


def has_words(text: str) -> bool:
    """Whether a text has words that a translation changes: more than names, numbers, addresses,
    code and signs.

    A name is told by its capitals, and by what is missing around it: words in lower case, and the
    end of a sentence. Of words in lower case a name may have short ones between its parts. In
    capitals alone, and in scripts without capitals, a few words may be a name.

    Example:
        >>> [has_words(text) for text in ("Ludwig van Beethoven", "5 km", "https://example.org/a", "Das Haus ist rot.")]
        [False, False, False, True]
    """
    tokens = text.split()
    if len(text.strip()) == 1:
        return text.islower()
    words = [found[1] if (found := _WORD.fullmatch(token)) else "" for token in tokens]
    lower, caseless = [], []
    for place, word in enumerate(words):
        follows_number = place > 0 and any(map(str.isdecimal, tokens[place - 1]))
        if not word or (follows_number and len(word) <= _LONGEST_LINK):
            continue
        if _has_no_case(word):
            caseless.append(word)
        elif word == word.lower():
            lower.append(word)
    if (
        sum(map(is_unspaced, "".join(caseless))) >= _FEWEST_UNSPACED
        or len(caseless) >= _FEWEST_CASELESS
    ):
        return True
    real_words = [word for word in words if word]
    if not lower:
        fewest = (
            _FEWEST_CAPITALS if all(word == word.upper() for word in real_words) else _FEWEST_WORDS
        )
        return len(real_words) >= fewest and bool(_ENDS_SENTENCE.search(text))
    links = max(map(len, lower)) <= _LONGEST_LINK and not {real_words[0], real_words[-1]} & {*lower}
    return not (links and len(real_words) <= _LONGEST_NAME and not _ENDS_SENTENCE.search(text))


def _has_no_case(word: str) -> bool:
    # Georgian has capitals, but names are not written with them.
    return word.lower() == word.upper() or unicodedata.name(word[0], "").startswith("GEORGIAN")


def _letters_and_digits(text: str) -> str:
    return _NO_LETTERS_OR_DIGITS.sub("", unicodedata.normalize("NFKC", text).casefold())


def is_looping(text: str) -> bool:
    """Whether one to four words follow themselves three times or more, and make up half of the
    text; of a text without spaces, the same of its characters.

    Example:
        >>> is_looping("the cat the cat the cat the cat sat"), is_looping("a very very good day")
        (True, False)
    """
    units: Sequence[str] = text.split()
    if len(units) == 1 and len(text) >= _FEWEST_CHARACTERS:
        units = text
    return any(
        longest >= (_TIMES - 1) * phrase and 2 * (longest + phrase) >= len(units)
        for phrase, longest in _runs(units, _LONGEST_PHRASE)
    )


def _runs(units: Sequence[str], longest_phrase: int) -> list[tuple[int, int]]:
    """For each length of a phrase, how many units in a row are those that stand a phrase before
    them."""
    runs = []
    for phrase in range(1, longest_phrase + 1):
        run = longest = 0
        for first, second in zip(units, units[phrase:], strict=False):
            run = run + 1 if first == second else 0
            longest = max(longest, run)
        runs.append((phrase, longest))
    return runs


def _repetitions(units: Sequence[str], longest_phrase: int) -> int:
    """How often a phrase follows itself, at most; 1 where none does."""
    return max(longest // phrase + 1 for phrase, longest in _runs(units, longest_phrase))


def _loops_more(other: str, text: str) -> bool:
    """Whether a text is looping, and says its phrase more than twice as often as the other one says
    one of its own."""
    if not is_looping(text) or not (_LETTER.search(text) or _LETTER.search(other)):
        return False
    spoken = _with_letters(text)
    if is_looping(spoken):  # words, for which a row of dots is no excuse
        text, other = spoken, _with_letters(other)
    units = text.split()
    repetitions = _repetitions(units if len(units) > 1 else text, _LONGEST_PHRASE)
    words = [_letters_and_digits(word) or word for word in other.split()]
    characters = "".join(words).casefold()
    return repetitions > 2 * max(
        _repetitions(words, _LONGEST_PHRASE), _repetitions(characters, _LONGEST_CHARACTERS)
    )


def _with_letters(text: str) -> str:
    return " ".join(token for token in text.split() if _LETTER.search(token))


def is_out_of_proportion(other: str, text: str) -> bool:
    """Whether one of two texts that are not blank is more than six times as long as the other, and
    60 characters longer."""
    short, long = sorted((len(other.strip()), len(text.strip())))
    return 0 < _FACTOR * short < long and long - short >= _CHARACTERS


def _is_of_other_script(other: str, text: str, other_code: str | None, code: str | None) -> bool:
    """Whether a text is in another script than its language is, but for what stays as it is in the
    other text, and though that one is not in another script than its own language is."""
    if not is_in_other_script(text, code) or not is_in_other_script(_own_words(other, text), code):
        return False
    return not is_in_other_script(other, other_code)


def _is_of_other_language(other: str, text: str, other_code: str | None, code: str) -> bool:
    """Whether a text is in another language than it should be, but for what stays as it is in the
    other text, and though that one is not in another language than its own."""
    language = language_of(code)
    if not is_long_and_foreign(text, language) or not is_surely_foreign(
        _own_words(other, text), language
    ):
        return False
    return other_code is None or not is_long_and_foreign(other, language_of(other_code))


def _own_words(other: str, text: str) -> str:
    """A text without the names, addresses and code that stand in the other one, too."""
    shared = {token for token in other.split() if not has_words(token)}
    return " ".join(token for token in text.split() if token not in shared)
