"""Monolingual text for mining: which lines are one clean sentence (Appendix B of Belouadi and Eger,
2023)."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mtmetrics.errors import InputError
from mtmetrics.io.languages import language_identifier, tokeniser

_REASONS = (
    "blank",
    "over 1000 characters",
    "with a URL",
    "with a date",
    "of several sentences",
    "repeated",
    "too few tokens",
    "too many tokens",
    "of another language",
)
_MOST_CHARACTERS, _FEWEST_TOKENS, _MOST_TOKENS = 1000, 3, 30
_URL = re.compile(r"\b(?:https?|ftp)://|\bwww\.\w", re.IGNORECASE)
_DATE = re.compile(r"\b\d{4}, ?\d{1,2}:\d{2}\b")
# After a full stop only where the word before it is longer than abbreviations and ordinal numbers
# usually are.
_BOUNDARY = re.compile(r"(?:[^\W\d_]{4}\.|[!?।])[\"'“”’«»)\]]*\s+[\"'“‘„«(\[¿¡]*(\w)")
_UNSPACED_BOUNDARY = re.compile(r"[。！？]+[^\s。！？”’」』）)\"']")


class Prepared(NamedTuple):
    """Distinct sentences that passed all filters, and counts: ``lines`` read, removed by each
    filter, ``kept``."""

    sentences: list[str]
    counts: dict[str, int]


def prepare(lines: Iterable[str], language: str, *, name: str, identify: bool = True) -> Prepared:
    """Keeps the lines that are one clean sentence of a language.

    Runs of white space become one space. Removed are, in this order: blank lines, lines of over
    1,000 characters, with a URL, with a date of the form "year, hh:mm", of several sentences,
    repeated, of too few or too many tokens (see `tokeniser`), and of another language.

    Args:
        lines: the text, one sentence per line; read once.
        language: ISO 639 code.
        name: what messages call the text, such as its path.
        identify: remove sentences of other languages.

    Raises:
        InputError: no sentence is left, most are of one other language, or py3langid does not know
            the language.
    """
    tokens = tokeniser(language)
    identified = language_identifier(language) if identify else lambda _: language
    removed = Counter[str]()
    languages = Counter[str]()
    seen: set[str] = set()
    kept: list[str] = []
    for line in lines:
        sentence = " ".join(line.split())
        reason = _flaw(sentence)
        if not reason:
            reason = "repeated" if sentence in seen else _wrong_length(tokens(sentence))
            seen.add(sentence)
        if not reason:
            its_language = identified(sentence)
            languages[its_language] += 1
            if its_language != language:
                reason = "of another language"
        if reason:
            removed[reason] += 1
        else:
            kept.append(sentence)
    counts = {reason: removed[reason] for reason in _REASONS}
    total = removed.total() + len(kept)
    other, number = next(iter(languages.most_common(1)), (language, 0))
    if other != language and 2 * number > languages.total():
        raise InputError(
            f"{name}: {number} of {languages.total()} sentences are {other!r} according to "
            f"py3langid, not {language!r}; check the file and the language pair, or do without "
            "the language filter"
        )
    if not total:
        raise InputError(f"{name}: empty; there are no sentences")
    if not kept:
        reasons = ", ".join(f"{number} {reason}" for reason, number in counts.items() if number)
        raise InputError(
            f"{name}: none of its {total} lines can be used ({reasons}); one sentence per line "
            "is needed"
        )
    return Prepared(kept, {"lines": total, **counts, "kept": len(kept)})


def _flaw(sentence: str) -> str:
    """The first reason why a line is no single clean sentence; empty for none."""
    if not sentence:
        return "blank"
    if len(sentence) > _MOST_CHARACTERS:
        return "over 1000 characters"
    if _URL.search(sentence):
        return "with a URL"
    if _DATE.search(sentence):
        return "with a date"
    if _has_several(sentence):
        return "of several sentences"
    return ""


def _has_several(sentence: str) -> bool:
    """Whether a sentence ends inside the line; the letter after it is a capital, or of a script
    that has none."""
    starts = (match[1] for match in _BOUNDARY.finditer(sentence))
    return any(start.isalpha() and not start.islower() for start in starts) or bool(
        _UNSPACED_BOUNDARY.search(sentence)
    )


def _wrong_length(tokens: Sequence[str]) -> str:
    if len(tokens) < _FEWEST_TOKENS:
        return "too few tokens"
    if len(tokens) > _MOST_TOKENS:
        return "too many tokens"
    return ""


def draw(sentences: Sequence[str], size: int, seed: int = 1) -> list[str]:
    """A random choice of so many sentences, all of them where there are no more, in their order."""
    chosen = random.Random(seed).sample(range(len(sentences)), min(size, len(sentences)))
    return [sentences[number] for number in sorted(chosen)]


def distinct_sentences(texts: Iterable[str]) -> list[str]:
    """The different texts that are not blank, in order of first appearance; an InputError where
    there are none."""
    distinct = list(dict.fromkeys(text for text in texts if text.strip()))
    if not distinct:
        raise InputError("there are no sentences to mine, or blank ones only")
    return distinct
