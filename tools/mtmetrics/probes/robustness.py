"""Whether a metric notices a small error: human translations that are changed in one place."""

import dataclasses
import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

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
    """The words and names of all texts, from which changes draw, and their language."""

    words: list[str]
    names: list[str]
    language: str

    @classmethod
    def of(cls, texts: Sequence[str], language: str) -> "Corpus":
        words = {match[0] for text in texts for match in _content(text)}
        names = {match[0] for text in texts for match in _names(text)}
        return cls(sorted(words), sorted(names), language)


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
    other_words = [word for word in words if word != old]
    return rng.choice(other_words) if other_words else None


def _number(text: str, corpus: Corpus, rng: random.Random) -> str | None:
    def other(digits: str) -> str:
        place = rng.randrange(len(digits))
        digit = rng.choice([one for one in "123456789" if one != digits[place]])
        return digits[:place] + digit + digits[place + 1 :]

    return _replaced(text, list(_NUMBER.finditer(text)), other, rng)


def _name(text: str, corpus: Corpus, rng: random.Random) -> str | None:
    return _replaced(text, _names(text), lambda old: _another(corpus.names, old, rng), rng)


def _negation(text: str, corpus: Corpus, rng: random.Random) -> str | None:
    negation = _NEGATIONS.get(corpus.language)
    if negation is None:
        return None
    words = list(re.finditer(rf" ({'|'.join(negation.words)})(?= )", text))
    if words:
        return _replaced(text, words, lambda _: "", rng)
    verbs = list(re.finditer(rf"\b({'|'.join(negation.verbs)})(?= )", text))
    return _replaced(text, verbs, lambda verb: f"{verb} {negation.words[0]}", rng)


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

    def as_dict(self) -> dict[str, object]:
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
    scorer: Scorer,
    sources: Sequence[str],
    references: Sequence[str],
    language: str,
    seed: int = 1,
) -> tuple[list[Noticed], MetricResult]:
    """How often a metric that compares with sources gives a changed reference the lower score.

    Args:
        scorer: the metric.
        sources: n sentences.
        references: their n human translations.
        language: of the references; negation is known of English and German.
        seed: of the draws.

    Returns:
        For each change that some texts have a place for, and each measure, the differences in
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
    compared, result = preferences(scorer, sources, references, modified)
    unchanged = slice(0, None, 1 + len(modified))
    deviations = {name: float(values[unchanged].std()) for name, values in measures(result).items()}
    noticed = [
        _noticed(
            preference,
            modified[preference.modification],
            references,
            deviations[preference.measure],
        )
        for preference in compared
    ]
    return noticed, result


def _noticed(
    preference: Preference,
    texts: Sequence[str],
    references: Sequence[str],
    deviation: float,
) -> Noticed:
    """The differences in the texts that were changed."""
    is_changed = np.array(
        [text != reference for text, reference in zip(texts, references, strict=True)]
    )
    differences = preference.differences[is_changed]
    return Noticed(preference.modification, preference.measure, differences, deviation)


def robustness_table(noticed: Sequence[Noticed]) -> Grid:
    """The statistics as a table, three decimals."""
    rows = [["change", "measure", "n", "noticed", "95 % interval", "equal", "mean d / sd"]]
    for change in noticed:
        statistics = change.as_dict()
        interval = statistics["ci"]
        between = "none"
        if interval is not None:
            between = f"[{decimals(interval['low'])}, {decimals(interval['high'])}]"
        share, equal, mean = (decimals(statistics[name]) for name in ("noticed", "equal", "mean"))
        count = str(statistics["n"])
        rows.append([change.change, change.measure, count, share, between, equal, mean])
    return Grid(rows, range(2, 7))
