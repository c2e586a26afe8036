"""Output that is no translation: loops, texts in another script or language, texts of another length by far."""

from collections.abc import Collection, Sequence

import numpy as np

from mtmetrics.checks import language_of
from mtmetrics.io.languages import is_of_other_language, is_of_other_script, tells_languages

# Counts of a report that say that an output is no translation.
DEGENERATE = ("identical", "looping", "script", "language", "length")
_LONGEST_PHRASE = 4  # words that are repeated
_TIMES = 4
_FEWEST_CHARACTERS = 12
_FACTOR, _CHARACTERS = 6, 60


def degenerate(
    others: Sequence[str],
    predictions: Sequence[str],
    code: str | None,
    column: str = "references",
    rows: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """What of n translations is no translation.

    Args:
        others: n sources or references.
        predictions: n translations.
        code: of the language of the translations, such as ``de`` or ``sr_Latn``; None where it is not known.
        column: what the others are, ``"sources"``, which a translation may be a copy of, or ``"references"``.
        rows: numbers of those that count, where a translation stands there several times; all if None.

    Returns:
        The names of `DEGENERATE` -> (n,) bool; ``language``, of texts in the right script, only where py3langid, of the
        extra ``filter``, is installed.
    """
    pairs = list(zip(others, predictions, strict=True))
    if rows is not None:
        pairs = [pairs[row] for row in rows]
        predictions = [text for _, text in pairs]
    script = np.array([is_of_other_script(text, code) for text in predictions], dtype=bool)
    known = {"script": script}
    if code is not None and tells_languages():
        language = language_of(code)
        foreign = np.array([is_of_other_language(text, language) for text in predictions], dtype=bool)
        known["language"] = foreign & ~script
    return {
        "identical": np.array([column == "sources" and other == text for other, text in pairs], dtype=bool),
        "looping": np.array([is_looping(text) for text in predictions], dtype=bool),
        **known,
        "length": np.array([is_out_of_proportion(*pair) for pair in pairs], dtype=bool),
    }


def policy(how: str, counted: Collection[str]) -> str:
    """The field of a signature that says what was done with such output, and whether its language was looked at."""
    return f"degenerate:{how}{'+language' if 'language' in counted else ''}"


def is_looping(text: str) -> bool:
    """Whether one to four words follow themselves three times or more, and make up half of the text; of a text without
    spaces, the same of its characters.

    Example:
        >>> is_looping("the cat the cat the cat the cat sat"), is_looping("a very very good day")
        (True, False)
    """
    units: Sequence[str] = text.split()
    if len(units) == 1 and len(text) >= _FEWEST_CHARACTERS:
        units = text
    for phrase in range(1, _LONGEST_PHRASE + 1):
        run = longest = 0
        for first, second in zip(units, units[phrase:], strict=False):
            run = run + 1 if first == second else 0
            longest = max(longest, run)
        if longest >= (_TIMES - 1) * phrase and 2 * (longest + phrase) >= len(units):
            return True
    return False


def is_out_of_proportion(other: str, text: str) -> bool:
    """Whether one of two texts that are not blank is more than six times as long as the other, and 60 characters
    longer."""
    short, long = sorted((len(other.strip()), len(text.strip())))
    return 0 < _FACTOR * short < long and long - short >= _CHARACTERS
