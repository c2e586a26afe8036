"""Detects output that is not a translation: copies, loops, text in the wrong script or language, and
text that is far too long or short.

A property does not count if the source or the reference has it as well. A reference is never copied.
"""

import itertools
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence

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

# The counts in `mtmetrics.checks.InputReport` of output that is not a translation.
DEGENERATE = ("identical", "looping", "script", "language", "length")

# Loops: a phrase of one to four units is repeated. Units are words, or characters in a text without
# spaces. Longer phrases of characters count only in the other text, where they excuse a loop.
_MAX_PHRASE_UNITS = 4
_MAX_PHRASE_CHARACTERS = 12
_MIN_REPETITIONS = 4
_MIN_LOOP_CHARACTERS = 12
# Lengths: a ratio above the first limit, and a difference of at least the second, in characters.
_MAX_LENGTH_RATIO = 6
_MIN_LENGTH_DIFFERENCE = 60

_NO_LETTERS_OR_DIGITS = regex.compile(r"[^\p{L}\p{M}\p{N}]+")
_LETTER = regex.compile(r"\p{L}")
# A word of at least two letters, perhaps with apostrophes or hyphens inside and punctuation around
# it. Addresses, paths, formulas and code do not match: they have digits or other signs inside.
_WORD = regex.compile(
    r"[^\p{L}\p{M}\p{N}@#/\\_]*(\p{L}\p{M}*(?:['’‐\-]?\p{L}\p{M}*)+)[^\p{L}\p{M}\p{N}@#/\\_(]*"
)
# A full stop after at most three letters may belong to an abbreviation, so it ends no sentence.
_ENDS_SENTENCE = regex.compile(r"(?:[!?…。！？।]|\p{L}\p{M}*(?:\p{L}\p{M}*){3}\.)[^\p{L}\p{N}]*$")
# Letters of a short word inside a name ("de", "and"), or of a unit after a number ("km").
_MAX_LINK_LETTERS = 3
_MAX_NAME_WORDS = 6
# Fewer words, or characters where a script has no spaces, may be a name.
_MIN_SENTENCE_WORDS = 2
_MIN_SENTENCE_CAPITALS = 4  # if all words are in capitals
_MIN_SENTENCE_CASELESS = 3  # if the script has no capitals
_MIN_SENTENCE_UNSPACED = 5  # characters, if the script has no spaces


def find_degenerate(
    compared: Sequence[str],
    predictions: Sequence[str],
    language: str | None,
    *,
    compares_sources: bool = False,
    compared_language: str | None = None,
    rows: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Flags the translations that are degenerate.

    Args:
        compared: n sources or references.
        predictions: n translations.
        language: code of the language of the translations, such as ``de`` or ``sr_Latn``; None if
            it is unknown.
        compares_sources: whether `compared` are sources, which a translation may be a copy of.
        compared_language: code of the language of `compared`; None if it is unknown.
        rows: (m,) indices of the pairs to check, where a translation stands in several pairs; None
            for all n.

    Returns:
        Name of `DEGENERATE` -> (n,) or (m,) bool. ``language`` flags texts in the right script only;
        it is missing if `language` is None, or if py3langid, of the extra ``filter``, is not
        installed.
    """
    pairs = list(zip(compared, predictions, strict=True))
    if rows is not None:
        pairs = [pairs[row] for row in rows]

    def mask(is_degenerate: Callable[[str, str], bool]) -> np.ndarray:
        return np.array([is_degenerate(*pair) for pair in pairs], dtype=bool)

    masks = {
        "identical": mask(is_copy) if compares_sources else np.zeros(len(pairs), dtype=bool),
        "looping": mask(_loops_more),
        "script": mask(
            lambda other, text: _has_wrong_script(other, text, compared_language, language)
        ),
    }
    if language is not None and has_py3langid():
        has_wrong_language = mask(
            lambda other, text: _has_wrong_language(other, text, compared_language, language)
        )
        masks["language"] = has_wrong_language & ~masks["script"]
    masks["length"] = mask(is_out_of_proportion)
    return masks


def any_degenerate(masks: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns (n,) bool: whether an output is degenerate, by one of the names of `DEGENERATE`.

    Args:
        masks: name of a count of the report -> (n,) bool, the segments that it counts. Other names
            than those of `DEGENERATE` have no effect, and some of these may be missing.
    """
    return np.any([masks[name] for name in DEGENERATE if name in masks], axis=0)


def signature_field(treatment: str, counts: Collection[str]) -> str:
    """Returns the field of a signature for the treatment of degenerate output.

    Args:
        treatment: ``floor`` (it gets the floor score) or ``null`` (its scores are left out).
        counts: names of the counts that were made; the field says whether ``language`` is one.
    """
    checked_language = "+language" if "language" in counts else ""
    return f"degenerate:{treatment}{checked_language}"


def is_copy(source: str, text: str) -> bool:
    """Whether a text equals its source apart from case and punctuation, though one of them has words
    to translate, see `has_words`.

    Example:
        >>> is_copy("Das Haus ist klein!", "DAS HAUS IST KLEIN"), is_copy("Angela Merkel", "Angela Merkel")
        (True, False)
    """
    is_same = source == text or _letters_and_digits(source) == _letters_and_digits(text)
    return is_same and (has_words(source) or has_words(text))


def has_words(text: str) -> bool:
    """Whether a text has words that a translation changes: more than names, numbers, addresses,
    code and signs.

    A text counts as a name if its words begin with capitals, except for short words between them,
    and if it does not end like a sentence. If all letters are capitals, or if the script has no
    capitals, a few words may be a name, too.

    Example:
        >>> [has_words(text) for text in ("Ludwig van Beethoven", "5 km", "https://example.org/a", "Das Haus ist rot.")]
        [False, False, False, True]
    """
    if len(text.strip()) == 1:
        return text.islower()  # a capital or a sign alone is a label
    words: list[str] = []
    lower: list[str] = []
    caseless: list[str] = []
    for previous, token in itertools.pairwise(["", *text.split()]):
        match = _WORD.fullmatch(token)
        if match is None:
            continue
        word = match[1]
        words.append(word)
        is_unit = any(map(str.isdecimal, previous)) and len(word) <= _MAX_LINK_LETTERS
        if is_unit:
            continue
        if _has_no_case(word):
            caseless.append(word)
        elif word == word.lower():
            lower.append(word)
    unspaced_characters = sum(map(is_unspaced, "".join(caseless)))
    if unspaced_characters >= _MIN_SENTENCE_UNSPACED or len(caseless) >= _MIN_SENTENCE_CASELESS:
        return True
    ends_sentence = bool(_ENDS_SENTENCE.search(text))
    if lower:
        return ends_sentence or not _is_name(words, lower)
    has_only_capitals = all(word == word.upper() for word in words)
    fewest = _MIN_SENTENCE_CAPITALS if has_only_capitals else _MIN_SENTENCE_WORDS
    return ends_sentence and len(words) >= fewest


def _is_name(words: Sequence[str], lower: Sequence[str]) -> bool:
    """Whether words may be a name, though those of `lower` have no capitals: they are short, and
    they stand between the others."""
    return (
        len(words) <= _MAX_NAME_WORDS
        and max(map(len, lower)) <= _MAX_LINK_LETTERS
        and words[0] not in lower
        and words[-1] not in lower
    )


def _has_no_case(word: str) -> bool:
    # Georgian has capitals, but names are not written with them.
    return word.lower() == word.upper() or unicodedata.name(word[0], "").startswith("GEORGIAN")


def _letters_and_digits(text: str) -> str:
    return _NO_LETTERS_OR_DIGITS.sub("", unicodedata.normalize("NFKC", text).casefold())


def is_looping(text: str) -> bool:
    """Whether a phrase of one to four words stands at least four times in a row, and this makes up
    at least half of the text. In a text without spaces, of at least twelve characters, characters
    count instead of words.

    Example:
        >>> is_looping("the cat the cat the cat the cat sat"), is_looping("a very very good day")
        (True, False)
    """
    units: Sequence[str] = text.split()
    if len(units) == 1 and len(text) >= _MIN_LOOP_CHARACTERS:
        units = text  # a text is the sequence of its characters
    return any(
        longest_run >= (_MIN_REPETITIONS - 1) * phrase_length
        and 2 * (longest_run + phrase_length) >= len(units)
        for phrase_length, longest_run in _longest_runs(units, _MAX_PHRASE_UNITS)
    )


def _longest_runs(units: Sequence[str], max_length: int) -> list[tuple[int, int]]:
    """Returns for each length of a phrase, 1 to `max_length`, the longest run of units of which each
    equals the unit that stands one phrase earlier."""
    runs = []
    for phrase_length in range(1, max_length + 1):
        run = longest_run = 0
        for first, second in zip(units, units[phrase_length:], strict=False):
            run = run + 1 if first == second else 0
            longest_run = max(longest_run, run)
        runs.append((phrase_length, longest_run))
    return runs


def _repetitions(units: Sequence[str], max_length: int) -> int:
    """Returns how often one phrase stands in a row, at most; 1 if none is repeated."""
    runs = _longest_runs(units, max_length)
    return max(longest_run // phrase_length + 1 for phrase_length, longest_run in runs)


def _loops_more(other: str, text: str) -> bool:
    """Whether a text is looping, and does so more than the other text."""
    if not is_looping(text) or not (_LETTER.search(text) or _LETTER.search(other)):
        return False
    text_words = _words_with_letters(text)
    if is_looping(text_words):
        # The words loop, not only dots or dashes. A row of dots in the other text excuses no words.
        return _repeats_more(_words_with_letters(other), text_words)
    return _repeats_more(other, text)


def _repeats_more(other: str, text: str) -> bool:
    """Whether a text repeats a phrase more than twice as often as the other text repeats any."""
    units = text.split()
    repetitions = _repetitions(units if len(units) > 1 else text, _MAX_PHRASE_UNITS)
    other_words = [_letters_and_digits(word) or word for word in other.split()]
    other_characters = "".join(other_words).casefold()
    return repetitions > 2 * max(
        _repetitions(other_words, _MAX_PHRASE_UNITS),
        _repetitions(other_characters, _MAX_PHRASE_CHARACTERS),
    )


def _words_with_letters(text: str) -> str:
    return " ".join(token for token in text.split() if _LETTER.search(token))


def is_out_of_proportion(other: str, text: str) -> bool:
    """Whether one of two texts, none of which is blank, is more than six times as long as the other,
    and at least 60 characters longer."""
    short, long = sorted((len(other.strip()), len(text.strip())))
    return 0 < _MAX_LENGTH_RATIO * short < long and long - short >= _MIN_LENGTH_DIFFERENCE


def _has_wrong_script(
    other: str, text: str, other_language: str | None, language: str | None
) -> bool:
    """Whether a text is in the wrong script for its language, even without the names and addresses
    that the other text has, too. False if the other text is in the wrong script itself."""
    return (
        is_in_other_script(text, language)
        and is_in_other_script(_without_shared_names(text, other), language)
        and not is_in_other_script(other, other_language)
    )


def _has_wrong_language(other: str, text: str, other_language: str | None, language: str) -> bool:
    """Whether a text is in the wrong language, even without the names and addresses that the other
    text has, too. False if the other text is in the wrong language itself."""
    iso_language = language_of(language)
    if not is_long_and_foreign(text, iso_language):
        return False
    # The rest may be short, so its length is not tested again.
    if not is_surely_foreign(_without_shared_names(text, other), iso_language):
        return False
    return other_language is None or not is_long_and_foreign(other, language_of(other_language))


def _without_shared_names(text: str, other: str) -> str:
    """Returns a text without the names, addresses and code that stand in the other text, too."""
    shared = {token for token in other.split() if not has_words(token)}
    return " ".join(token for token in text.split() if token not in shared)
