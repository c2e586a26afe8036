"""Changes of human translations, and how often a metric notices them."""

import re

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.probes.robustness import CHANGES, changed, robustness, robustness_table
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.results import PartScores

TEXTS = [
    "The 17 members of the council said that Angela Merkel is not here.",
    "Berlin is ready for Boris Johnson and his seven friends, it seems.",
    "No!",
]
SOURCES = ["a", "b", "c"]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


class Words(Scorer):
    """Counts the words that a translation shares with the first text, less those that it does
    not."""

    metric = "words"
    usual_preset = None

    def compute(self, batch: Batch) -> list[PartScores]:
        known = {other: set(words(text)) for other, text in zip(SOURCES, TEXTS, strict=True)}
        values = [
            np.array(
                [
                    2.0 * len(known[o] & {*words(t)}) - len(words(t))
                    for o, t in zip(batch.sources_or_references, texts, strict=True)
                ]
            )
            for texts in batch.predictions
        ]
        return [PartScores(found, {}, *np.zeros((2, len(found)), dtype=bool)) for found in values]

    def floor_with_parts(self) -> tuple[float, dict[str, float]]:
        return 0.0, {}


def test_each_change_is_one_error() -> None:
    found = changed(TEXTS, "en", 1)
    assert list(found) == list(CHANGES)
    assert [texts[2] for texts in found.values()] == [TEXTS[2]] * len(
        CHANGES
    )  # has a place for none
    first = {name: texts[0].split() for name, texts in found.items()}
    plain = TEXTS[0].split()
    assert first["another number"][1].isdigit()
    assert first["another number"] == [plain[0], first["another number"][1], *plain[2:]]
    assert first["another number"] != plain
    assert " ".join(first["negation"]) == TEXTS[0].replace(" not", "")
    assert found["negation"][1] == TEXTS[1].replace(" is ", " is not ")
    assert {
        len(first[name]) - len(plain)
        for name in ("another name", "another word", "two words swapped")
    } == {0}
    assert len(set(first["another name"]) - set(plain)) == 1
    assert (len(first["a word less"]), len(first["a word more"])) == (
        len(plain) - 1,
        len(plain) + 1,
    )
    assert sorted(first["two words swapped"]) == sorted(plain)
    assert first["two words swapped"] != plain


def test_what_is_drawn_depends_on_the_seed_alone() -> None:
    assert changed(TEXTS, "en", 1) == changed(TEXTS, "en", 1)
    assert changed(TEXTS, "en", 1) != changed(TEXTS, "en", 2)
    assert changed(TEXTS, "fr", 1)["negation"] == TEXTS  # it is not known how French denies
    assert changed(["Das ist gut so."], "de", 1)["negation"] == ["Das ist nicht gut so."]
    assert changed(["the tree."], "en", 1)["a word less"] == ["the."]


def test_only_texts_with_a_place_count() -> None:
    found, result = robustness(Words(), SOURCES, TEXTS, "en")
    told = {one.change: one.as_dict() for one in found}
    assert len(result.segments) == 3 * (1 + len(CHANGES))
    assert {name: one["n"] for name, one in told.items()} == {
        **dict.fromkeys(CHANGES, 2),
        "another number": 1,
    }
    for name in ("another word", "another name"):
        assert (told[name]["noticed"], told[name]["mean"] < 0) == (1.0, True)
    swapped = told["two words swapped"]
    assert (swapped["noticed"], swapped["equal"], swapped["ci"]) == (0.0, 1.0, None)  # of two texts
    head, *rows = robustness_table(found).rows
    assert head[:5] == ["change", "measure", "n", "noticed", "95 % interval"]
    assert len(rows) == len(CHANGES)


def test_texts_without_a_place_are_refused() -> None:
    with pytest.raises(InputError, match="no reference has a number, a name or words"):
        robustness(Words(), ["a"], ["No!"], "en")
