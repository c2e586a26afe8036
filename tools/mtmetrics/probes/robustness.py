"""Whether a metric notices a small error: human translations that are changed in one place."""

import dataclasses
import random
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.probes.probing import Preference, preferences
from mtmetrics.reports.metric_runs import measures
from mtmetrics.reports.styles import Grid, decimals
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.results import MetricResult
from mtmetrics.statistics.significance import bootstrap_interval

_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]{4,}")
_NAME = re.compile(r"(?<=[^\W\d_.!?:] )[^\W\d_]{3,}(?=\W|$)")


class Negation(NamedTuple):
    """How a language denies: words that do, which are taken out, and verbs behind which the first
    of them is put in."""

    words: tuple[str, ...]
    verbs: tuple[str, ...]


_NEGATIONS = {
    "en": Negation(
        ("not",),
        (
            "is",
            "are",
            "was",
            "were",
            "has",
            "have",
            "had",
            "will",
            "would",
            "can",
            "could",
            "should",
            "may",
            "must",
        ),
    ),
    "de": Negation(("nicht",), ("ist", "sind", "war", "waren", "bin", "seid", "wird")),
}


class Corpus(NamedTuple):
    """What a change may draw from: words and names of all texts, and their language."""

    words: list[str]
    names: list[str]
    language: str

    @classmethod
    def of(cls, texts: Sequence[str], language: str) -> "Corpus":
        found, names = (
            sorted({match[0] for text in texts for match in of(text)}) for of in (_content, _names)
        )
        return cls(found, names, language)


Change = Callable[[str, Corpus, random.Random], str | None]


def _names(text: str) -> list[re.Match[str]]:
    return [match for match in _NAME.finditer(text) if match[0][0].isupper()]


def _content(text: str) -> list[re.Match[str]]:
    return [match for match in _WORD.finditer(text) if match[0].islower()]


def _replaced(
    text: str,
    places: Sequence[re.Match[str]],
    other: Callable[[str], str | None],
    rng: random.Random,
) -> str | None:
    """The text with one of the places filled otherwise; None without a place or a filling."""
    if not places:
        return None
    place = rng.choice(places)
    new = other(place[0])
    return None if new is None else text[: place.start()] + new + text[place.end() :]


def _another(words: Sequence[str], old: str, rng: random.Random) -> str | None:
    others = [word for word in words if word != old]
    return rng.choice(others) if others else None


def _number(text: str, corpus: Corpus, rng: random.Random) -> str | None:
    def other(digits: str) -> str:
        place = rng.randrange(len(digits))
        digit = rng.choice([one for one in "123456789" if one != digits[place]])
        return digits[:place] + digit + digits[place + 1 :]

    return _replaced(text, list(_NUMBER.finditer(text)), other, rng)


def _name(text: str, corpus: Corpus, rng: random.Random) -> str | None:
    return _replaced(text, _names(text), lambda old: _another(corpus.names, old, rng), rng)


def _negation(text: str, corpus: Corpus, rng: random.Random) -> str | None:
    known = _NEGATIONS.get(corpus.language)
    if known is None:
        return None
    denied = list(re.finditer(rf" ({'|'.join(known.words)})(?= )", text))
    if denied:
        return _replaced(text, denied, lambda _: "", rng)
    verbs = list(re.finditer(rf"\b({'|'.join(known.verbs)})(?= )", text))
    return _replaced(text, verbs, lambda verb: f"{verb} {known.words[0]}", rng)


def _replaced_word(text: str, corpus: Corpus, rng: random.Random) -> str | None:
    return _replaced(text, _content(text), lambda old: _another(corpus.words, old, rng), rng)


def _dropped_word(text: str, corpus: Corpus, rng: random.Random) -> str | None:
    dropped = _replaced(text, _content(text), lambda _: "", rng)
    return None if dropped is None else re.sub(r"\s+(?=[\s.,;:!?]|$)", "", dropped).strip()


def _added_word(text: str, corpus: Corpus, rng: random.Random) -> str | None:
    if not corpus.words:
        return None
    return _replaced(text, _content(text), lambda old: f"{old} {rng.choice(corpus.words)}", rng)


def _swapped_words(text: str, corpus: Corpus, rng: random.Random) -> str | None:
    places = list(re.finditer(r"\b([^\W\d_]+) ([^\W\d_]+)\b", text))
    apart = [
        match for match in places if match[1].lower() != match[2].lower() and match[1].islower()
    ]
    return _replaced(text, apart, lambda pair: " ".join(reversed(pair.split(" "))), rng)


CHANGES: dict[str, Change] = {
    "another number": _number,
    "another name": _name,
    "negation": _negation,
    "another word": _replaced_word,
    "a word less": _dropped_word,
    "a word more": _added_word,
    "two words swapped": _swapped_words,
}


@dataclasses.dataclass(frozen=True)
class Noticed:
    """How the score, or a part of it, takes a change: (n,) differences to the unchanged texts, and
    the standard deviation of the scores of those."""

    change: str
    measure: str
    differences: np.ndarray
    deviation: float

    def as_dict(self) -> dict[str, Any]:
        """The statistics as plain numbers: how often the changed text has the lower score, with an
        interval, and the mean difference in standard deviations."""
        lower = (self.differences < 0).astype(np.float64)
        interval = bootstrap_interval(lower)
        return {
            "change": self.change,
            "measure": self.measure,
            "n": len(self.differences),
            "noticed": float(lower.mean()),
            "ci": interval and {"low": interval.low, "high": interval.high},
            "equal": float((self.differences == 0).mean()),
            "mean": float(self.differences.mean() / self.deviation) if self.deviation else 0.0,
        }


def changed(texts: Sequence[str], language: str, seed: int) -> dict[str, list[str]]:
    """Each change of all n texts; a text that has no place for it stays as it is. What is drawn
    depends on the text and the seed alone, and on the words of the others."""
    corpus = Corpus.of(texts, language)
    return {
        name: [
            change(text, corpus, random.Random(f"{seed} {name} {text}")) or text for text in texts
        ]
        for name, change in CHANGES.items()
    }


def robustness(
    scorer: Scorer, sources: Sequence[str], references: Sequence[str], language: str, seed: int = 1
) -> tuple[list[Noticed], MetricResult]:
    """How often a metric that compares with sources gives a changed reference the lower score.

    Args:
        scorer: the metric.
        sources: n sentences.
        references: their n human translations.
        language: of the references; negation is known of English and German.
        seed: of what is drawn.

    Returns:
        For each change that some texts have a place for, and each measure, what was noticed in
        these texts; and the scores of all texts.

    Raises:
        InputError: no text has a place for any change, or as
            `mtmetrics.probes.probing.preferences`.
    """
    modified = {
        name: texts
        for name, texts in changed(references, language, seed).items()
        if texts != list(references)
    }
    if not modified:
        raise InputError(
            "robustness: no reference has a number, a name or words that could be changed"
        )
    found, result = preferences(scorer, sources, references, modified)
    unchanged = slice(0, None, 1 + len(modified))
    deviations = {name: float(values[unchanged].std()) for name, values in measures(result).items()}
    return [
        _noticed(one, modified[one.modification], references, deviations[one.measure])
        for one in found
    ], result


def _noticed(
    found: Preference, texts: Sequence[str], references: Sequence[str], deviation: float
) -> Noticed:
    other = np.array([text != reference for text, reference in zip(texts, references, strict=True)])
    return Noticed(found.modification, found.measure, found.differences[other], deviation)


def robustness_table(found: Sequence[Noticed]) -> Grid:
    """The statistics as a table, three decimals."""
    rows = [["change", "measure", "n", "noticed", "95 % interval", "equal", "mean d / sd"]]
    for told in (one.as_dict() for one in found):
        between = "none"
        if told["ci"] is not None:
            between = f"[{decimals(told['ci']['low'])}, {decimals(told['ci']['high'])}]"
        values = [
            decimals(told["noticed"]),
            between,
            decimals(told["equal"]),
            decimals(told["mean"]),
        ]
        rows.append([told["change"], told["measure"], str(told["n"]), *values])
    return Grid(rows, range(2, 7))
