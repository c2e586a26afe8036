"""The pairs that mining keeps: copies, repeated targets and the limit, by hand."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.errors import InputError
from mtmetrics.mining.kept_pairs import is_copy, select, write_pairs
from mtmetrics.training.corpus import read_pairs


@pytest.mark.parametrize(
    ("source", "target", "copied"),
    [
        ("Berlin 2017 !", "Berlin , 2017 !", True),
        ("abcd", "abxy", True),  # 2 of 4: not above one half
        ("abcd", "axyz", False),
        ("Das Haus ist klein.", "The house is small.", False),
        ("same", "same", True),
    ],
)
def test_copies(source: str, target: str, copied: bool) -> None:
    assert is_copy(source, target) is copied
    assert is_copy(target, source) is copied


def test_best_first_each_target_once_and_no_copies() -> None:
    sources = [
        "eins zwei drei",
        "rot grün blau",
        "hund katze maus",
        "tokyo, japan",
        "bei licht besehen",
        "...",
    ]
    targets = ["one two three", "dog cat mouse", "tokyo, japan!", "day and night"]
    scores = np.array([-0.3, -0.1, -0.2, -0.01, -0.4, np.nan])
    mined = select(scores, np.array([0, 1, 1, 2, 3, -1]), sources, targets, limit=2)
    # The copy is the best pair, "dog cat mouse" goes to the better of its two sources, and the last
    # one is over the limit.
    assert mined.pairs() == [
        ("rot grün blau", "dog cat mouse"),
        ("eins zwei drei", "one two three"),
    ]
    assert mined.scores.tolist() == [-0.1, -0.3]
    left_out = dict.fromkeys(("unmatched", "copies", "repeated targets", "beyond the limit"), 1)
    assert mined.counts == {"sources": 6, "targets": 4, **left_out, "kept": 2}
    mined = select(scores, np.array([0, 1, 1, 2, 3, -1]), sources, targets, limit=2, once=False)
    assert mined.pairs() == [
        ("rot grün blau", "dog cat mouse"),
        ("hund katze maus", "dog cat mouse"),
    ]


def test_a_copy_does_not_use_up_its_target() -> None:
    sources = ["paris in spring", "frühling an der seine"]
    mined = select(np.array([2.0, 1.0]), np.array([0, 0]), sources, ["paris in spring!"], limit=5)
    assert mined.sources == ["frühling an der seine"]


def test_nothing_left_is_an_error() -> None:
    with pytest.raises(
        InputError, match="no pairs were mined: 1 of 2 sources have no match, 1 are copies"
    ):
        select(np.array([np.nan, 1.0]), np.array([-1, 0]), ["a b c", "x y z"], ["x y z"], limit=5)


# All of Unicode but half characters, and the NUL that no text holds.
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12
).filter(str.strip)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_pairs_that_are_written_are_read_back(pairs: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "de-en.jsonl")
        write_pairs(path, pairs, "mined", np.linspace(1, 0, len(pairs)))
        rows, counts = read_pairs([path])
    stripped = [(source.strip(), target.strip()) for source, target in pairs]
    assert [(row.source, row.target) for row in rows] == list(dict.fromkeys(stripped))
    assert {(row.origin, row.group) for row in rows} == {("mined", "de-en")}
    assert counts.left_out.total() == len(pairs) - len(rows)
