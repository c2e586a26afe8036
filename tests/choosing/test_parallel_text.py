"""Checks of parallel text, and which pairs are kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.choosing.parallel_text import CHECKS, Checks, Selection
from mtmetrics.errors import InputError

GOOD = ("Das Haus am See ist klein und alt.", "The house at the lake is small and old.")


@pytest.mark.parametrize(
    ("lang_pair", "source", "target", "flaw"),
    [
        ("de-en", *GOOD, None),
        ("de-en", "Das Haus", " \u00a0", "blank"),
        ("de-en", "Das Haus am See ist klein und alt und schön.", "The house", "length"),
        (
            "zh-en",
            "我付了两百元含税，然后回家睡觉。",
            "I paid two hundred with taxes, and then I went home to sleep.",
            None,
        ),
        ("de-en", "New York, 3. Mai", "NEW YORK 3 mai!", "copy"),
        ("de-en", GOOD[0], "Das Haus an dem See ist klein und sehr alt.", "language"),
        ("de-en", GOOD[1], "The house at the lake is small, and it is old.", "language"),
        (
            "de-en",
            "Am 21.05.2010 kostete es 16,50 Euro.",
            "On May 21, 2010, it cost 16.50 euros.",
            None,
        ),
        (
            "de-en",
            "Es kamen 1.200 Leute in zwei Bussen.",
            "There came 1,200 people in 2 buses.",
            None,
        ),
        (
            "de-en",
            "Es kamen 120 Leute in das Haus.",
            "There came 130 people to the house.",
            "numbers",
        ),
        (
            "de-en",
            "Es kamen viele Leute in das Haus.",
            "There came 130 people to the house.",
            "numbers",
        ),
        (
            "ne-en",
            "सन् १९९४ को पहिलो ठूलो कान्ड थियो।",
            "It was the first major scandal in 1994.",
            None,
        ),
        (
            "ne-en",
            "सन् १९९४ को पहिलो ठूलो कान्ड थियो।",
            "It was the first major scandal in 1995.",
            "numbers",
        ),
    ],
)
def test_checks(lang_pair: str, source: str, target: str, flaw: str | None) -> None:
    checks = Checks(tuple(lang_pair.split("-")))
    assert checks.flaw(source, target) == flaw
    assert Checks(None, skip=CHECKS).flaw(source, target) is None


def test_vowel_signs_make_another_word_and_accents_do_not() -> None:
    checks = Checks(None, skip=("language",))
    assert checks.flaw("यो कि हो।", "What is it?") is None
    assert checks.flaw("यो का हो।", "What is it?") is None
    assert checks.flaw("かき", "A persimmon.") is None
    assert checks.flaw("がき", "A persimmon.") is None
    assert checks.flaw("Le café est là.", "The cafe is here.") is None
    assert checks.flaw("Le cafe est la!", "The café is here!") == "repeated"


def test_near_duplicates_of_pairs_that_passed() -> None:
    checks = Checks(("de", "en"), skip=["language"])
    pairs = [("Seite 3 ist schön", "page 30 is fine"), ("Seite 3 ist schön", "page 3 is fine")]
    assert [checks.flaw(*pair) for pair in pairs] == ["numbers", None]
    assert checks.flaw("SEITE 4: ist schon.", "Page 4 is fine!") == "repeated"
    assert checks.flaw("Seite 3 ist schön", "page 3 is good") is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"languages": None}, "needs one (--lp)"),
        ({"languages": ("qq", "en")}, "py3langid does not know it"),
        ({"languages": ("de", "en"), "skip": ["langs"]}, "must be one of blank, length"),
        ({"languages": ("de", "en"), "length_ratio": 0.5}, "at least 1"),
    ],
)
def test_checks_refuse(arguments: dict, message: str) -> None:
    with pytest.raises(InputError) as raised:
        Checks(**arguments)
    assert message in str(raised.value)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), max_size=20), st.integers(1, 30))
def test_what_is_kept_by_plain_sorting(pairs: list[tuple[int, int]], most: int) -> None:
    scores, tokens = np.array(pairs, dtype=float).reshape(-1, 2).T
    order = sorted(range(len(pairs)), key=lambda place: (-scores[place], place))
    total, expected = 0.0, set()
    for place in order:
        total += tokens[place]
        if total > most:
            break
        expected.add(place)
    assert set(np.flatnonzero(Selection(tokens=most).mask(scores, tokens))) == expected
    half = Selection(top=0.5).mask(scores, tokens)
    assert set(np.flatnonzero(half)) == set(order[: (len(pairs) + 1) // 2])
    assert (Selection(threshold=1.0).mask(scores, tokens) == (scores >= 1)).all()
