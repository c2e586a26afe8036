"""Sentences that no translator writes: words in random order, and word-by-word translations (Sec. 5.1 of Zhao et al.,
2020)."""

import itertools
import random
import string
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mtmetrics.errors import InputError
from mtmetrics.models.words import is_unspaced
from mtmetrics.textio import iter_table

_PUNCTUATION = string.punctuation + "¡¿«»„“”‚‘’–—…。，、！？；：（）《》"


def words(text: str) -> list[str]:
    """The words of a text with their punctuation: what white space separates; in scripts that know none, each
    character.

    Example:
        >>> words("To be, or 是不是")
        ['To', 'be,', 'or', '是', '不', '是']
    """
    return "".join(f" {character} " if _stands_alone(character) else character for character in text).split()


def bare_words(text: str) -> list[str]:
    """The words of a text without the punctuation around them.

    Example:
        >>> bare_words('To be, "or" - not.')
        ['To', 'be', 'or', 'not']
    """
    return [bare for word in words(text) if (bare := word.strip(_PUNCTUATION))]


def random_order(text: str, seed: int) -> str:
    """The words of a text in an order that depends on the text and the seed alone; it may be the old one where there
    are few words."""
    shuffled = words(text)
    random.Random(f"{seed} {text}").shuffle(shuffled)
    return _joined(shuffled)


class Literal(NamedTuple):
    """A word-by-word translation.

    Attributes:
        text: the translation.
        found: words of the source that were translated.
        words: words of the source that have letters.
    """

    text: str
    found: int
    words: int


class Dictionary:
    """Translates word by word, left to right, without regard to the context.

    A word is looked up without the punctuation around it, as it is written and then in lower case; one that is not
    found, or is a number, stays as it is. The paper takes the first translation that a web service offers. Word lists
    are in no such order, so of several translations the one counts whose pair is listed most often (word pairs mined
    from text repeat themselves), then the one whose words are the most frequent in `texts`, then the first.

    Args:
        pairs: words and their translations; entries of several words on the source side are used for scripts without
            spaces alone.
        texts: text in the target language.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]], texts: Iterable[str] = ()) -> None:
        frequency = Counter(word.lower() for text in texts for word in bare_words(text))
        listed: dict[str, Counter[str]] = defaultdict(Counter)
        for source, target in pairs:
            listed[source][target] += 1

        def rank(entry: tuple[str, int]) -> tuple[int, int]:
            target, count = entry
            return count, min(frequency[word.lower()] for word in words(target))

        # `max` keeps the first of equals, and a Counter the order of the file.
        self._best = {source: max(targets.items(), key=rank)[0] for source, targets in listed.items()}
        self._longest = max((len(source) for source in self._best if is_unspaced(source[0])), default=1)

    def translate(self, text: str) -> Literal:
        """The word-by-word translation of a text; it begins with a capital letter where the text does."""
        rest = words(text)
        translated: list[str] = []
        found = total = 0
        while rest:
            size, target = self._look_up(rest)
            counted = sum(map(_has_letter, rest[:size]))
            total += counted
            found += 0 if target is None else counted
            translated.append(rest[0] if target is None else target)
            rest = rest[size:]
        result = _joined(translated)
        return Literal(result[:1].upper() + result[1:] if text.strip()[:1].isupper() else result, found, total)

    def _look_up(self, rest: list[str]) -> tuple[int, str | None]:
        """How many of the words the longest entry covers, and its translation with the punctuation of the source around
        it."""
        for size in range(min(self._longest, len(rest)) if is_unspaced(rest[0][0]) else 1, 0, -1):
            whole = "".join(rest[:size])
            bare = whole.strip(_PUNCTUATION)
            target = self._best.get(bare, self._best.get(bare.lower()))
            if target is not None and _has_letter(bare):
                begin = whole.index(bare)
                return size, whole[:begin] + target + whole[begin + len(bare) :]
        return 1, None


def read_word_pairs(path: str | Path) -> list[tuple[str, str]]:
    """Reads tab-separated lines, plain or ``.gz``: a word, its translation, and columns that are not read.

    Raises:
        InputError: the file cannot be read or is empty, or a line has fewer than two words.
    """
    pairs = []
    for number, (word, translation) in enumerate(iter_table(path, ("word", "translation"), jsonl=False), 1):
        if not word.strip() or not translation.strip():
            raise InputError(f"{path}, line {number}: a word and its translation are needed, one of them is blank")
        pairs.append((word.strip(), translation.strip()))
    if not pairs:
        raise InputError(f"{path}: empty; there are no word pairs")
    return pairs


def coverage(literals: Iterable[Literal]) -> float:
    """The share of the source's words that a dictionary knew; 0 where there is no word."""
    literals = list(literals)
    total = sum(literal.words for literal in literals)
    return sum(literal.found for literal in literals) / total if total else 0.0


def _joined(pieces: list[str]) -> str:
    """One text, with spaces but between characters of a script that knows none."""
    glued = [_stands_alone(left[-1]) and _stands_alone(right[0]) for left, right in itertools.pairwise(pieces)]
    return "".join(piece + ("" if glue else " ") for piece, glue in zip(pieces, [*glued, True], strict=False))


def _has_letter(word: str) -> bool:
    return any(map(str.isalpha, word))


def _stands_alone(character: str) -> bool:
    """Whether a character is of a script without spaces, or full-width punctuation."""
    return is_unspaced(character) or unicodedata.east_asian_width(character) in "WF"
