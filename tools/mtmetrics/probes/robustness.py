"""Probes whether a metric notices a small error.

`changed` changes human translations in one place, by each of `CHANGES`; `robustness` counts how often
a metric gives the changed one the lower score.
"""

import dataclasses
import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.probes.probing import preferences
from mtmetrics.reports.metric_runs import measures
from mtmetrics.reports.styles import Grid, decimals
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.results import MetricResult
from mtmetrics.statistics.significance import bootstrap_interval

_NUMBER = re.compile(r"\d+")
# Words that carry content are the longer ones.
_WORD = re.compile(r"[^\W\d_]{4,}")
# A name stands behind another word, where a capital does not begin the sentence.
_NAME = re.compile(r"(?<=[^\W\d_.!?:] )[^\W\d_]{3,}(?=\W|$)")


class Negation(NamedTuple):
    """How a language denies.

    Attributes:
        words: words that deny; a change takes them out.
        verbs: verbs behind which a change puts the first of these words.
    """

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


def _names(text: str) -> list[re.Match[str]]:
    """The names in a text."""
    return [match for match in _NAME.finditer(text) if match[0][0].isupper()]


def _content(text: str) -> list[re.Match[str]]:
    """The words of a text that carry content."""
    return [match for match in _WORD.finditer(text) if match[0].islower()]


class _Changer:
    """Changes texts of a language in one place; a method returns None where a text has no place for
    its change.

    Args:
        texts: all texts, whose words and names are put into other ones.
        language: of the texts.
    """

    def __init__(self, texts: Sequence[str], language: str) -> None:
        self._words = sorted({match[0] for text in texts for match in _content(text)})
        self._names = sorted({match[0] for text in texts for match in _names(text)})
        self._language = language
        self._rng = random.Random()

    def changed(self, text: str, change: str, seed: int) -> str:
        """The text with a change of a name; as it is where it has no place for it."""
        # Draws depend on the seed, the change and the text alone.
        self._rng = random.Random(f"{seed} {change} {text}")
        return CHANGES[change](self, text) or text

    def other_number(self, text: str) -> str | None:
        """Replaces a digit of a number."""

        def other_digits(digits: str) -> str:
            place = self._rng.randrange(len(digits))
            digit = self._rng.choice([one for one in "123456789" if one != digits[place]])
            return digits[:place] + digit + digits[place + 1 :]

        return self._replaced(text, list(_NUMBER.finditer(text)), other_digits)

    def other_name(self, text: str) -> str | None:
        """Replaces a name by a name of another text."""
        return self._replaced(text, _names(text), lambda old: self._another(self._names, old))

    def negation(self, text: str) -> str | None:
        """Takes out a word that denies; where there is none, puts one behind a verb."""
        negation = _NEGATIONS.get(self._language)
        if negation is None:
            return None
        words = list(re.finditer(rf" ({'|'.join(negation.words)})(?= )", text))
        if words:
            return self._replaced(text, words, lambda _: "")
        verbs = list(re.finditer(rf"\b({'|'.join(negation.verbs)})(?= )", text))
        return self._replaced(text, verbs, lambda verb: f"{verb} {negation.words[0]}")

    def other_word(self, text: str) -> str | None:
        """Replaces a word by a word of another text."""
        return self._replaced(text, _content(text), lambda old: self._another(self._words, old))

    def dropped_word(self, text: str) -> str | None:
        """Takes out a word."""
        dropped = self._replaced(text, _content(text), lambda _: "")
        # A second space, or one before a mark, would be an error of its own.
        return None if dropped is None else re.sub(r"\s+(?=[\s.,;:!?]|$)", "", dropped).strip()

    def added_word(self, text: str) -> str | None:
        """Puts a word of another text behind a word."""
        if not self._words:
            return None
        return self._replaced(
            text, _content(text), lambda old: f"{old} {self._rng.choice(self._words)}"
        )

    def swapped_words(self, text: str) -> str | None:
        """Exchanges two words that follow each other."""
        pairs = []
        for match in re.finditer(r"\b([^\W\d_]+) ([^\W\d_]+)\b", text):
            if match[1].lower() != match[2].lower() and match[1].islower():
                pairs.append(match)
        return self._replaced(text, pairs, lambda pair: " ".join(reversed(pair.split(" "))))

    def _replaced(
        self,
        text: str,
        places: Sequence[re.Match[str]],
        replacement: Callable[[str], str | None],
    ) -> str | None:
        """The text with a replacement at one of the places; None without a place or a
        replacement."""
        if not places:
            return None
        place = self._rng.choice(places)
        new = replacement(place[0])
        return None if new is None else text[: place.start()] + new + text[place.end() :]

    def _another(self, words: Sequence[str], old: str) -> str | None:
        """A word that is not the old one; None without any."""
        other_words = [word for word in words if word != old]
        return self._rng.choice(other_words) if other_words else None


# Name of a change -> the method that makes it.
CHANGES: dict[str, Callable[[_Changer, str], str | None]] = {
    "another number": _Changer.other_number,
    "another name": _Changer.other_name,
    "negation": _Changer.negation,
    "another word": _Changer.other_word,
    "a word less": _Changer.dropped_word,
    "a word more": _Changer.added_word,
    "two words swapped": _Changer.swapped_words,
}


@dataclasses.dataclass(frozen=True)
class Noticed:
    """The effect of a change on the score, or on a part of it.

    Attributes:
        change: a key of `CHANGES`.
        measure: ``score``, or the part.
        differences: (n,) scores of changed texts less the scores of the unchanged ones.
        deviation: the standard deviation of the scores of unchanged texts.
    """

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
    """Makes each change of n texts.

    Returns:
        Key of `CHANGES` -> the n texts; a text that has no place for the change stays as it is.
    """
    changer = _Changer(texts, language)
    return {name: [changer.changed(text, name, seed) for text in texts] for name in CHANGES}


def robustness(
    scorer: Scorer,
    sources: Sequence[str],
    references: Sequence[str],
    language: str,
    seed: int = 1,
) -> tuple[list[Noticed], MetricResult]:
    """Compares the scores of changed references with the scores of the unchanged ones, by a metric
    that compares with sources.

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
    # The result has the scores source by source: the reference, then its changes.
    unchanged = slice(0, None, 1 + len(modified))
    deviations = {name: float(values[unchanged].std()) for name, values in measures(result).items()}
    noticed = []
    for preference in compared:
        change, measure = preference.modification, preference.measure
        is_changed = np.array(modified[change]) != np.array(references)
        noticed.append(
            Noticed(change, measure, preference.differences[is_changed], deviations[measure])
        )
    return noticed, result


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
