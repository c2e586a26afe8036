"""Worsened translations: they differ, keep their special tokens, and are made of words that were there."""

import numpy as np
import pytest

from mtmetrics.training.corruption import corrupt, split_words

CLS, SEP = 1, 2
# Subwords from 100 up continue a word.
BEGINS = np.arange(200) < 100


def text(*ids: int) -> np.ndarray:
    return np.array([CLS, *ids, SEP], dtype=np.int32)


def test_split_words_keeps_pieces_together() -> None:
    assert split_words(text(10, 101, 11, 12, 102, 103), BEGINS) == [[10, 101], [11], [12, 102, 103]]
    assert split_words(text(101, 10), BEGINS) == [[101], [10]]
    assert split_words(text(), BEGINS) == []


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_a_worsened_translation_differs_and_is_made_of_known_words(share: float) -> None:
    source, target, other = text(20, 120, 21, 22), text(10, 101, 11, 12, 13), text(30, 31, 130)
    words = {(20, 120), (21,), (22,), (10, 101), (11,), (12,), (13,), (30,), (31, 130)}
    rng = np.random.default_rng(0)
    same = 0
    for _ in range(300):
        worse = corrupt(source, target, other, BEGINS, share, rng)
        assert (worse[0], worse[-1]) == (CLS, SEP)
        assert worse.dtype == target.dtype
        assert {tuple(word) for word in split_words(worse, BEGINS)} <= words
        same += np.array_equal(worse, target)
    # Only a word that was moved to its own place changes nothing.
    assert same < 15


def test_words_that_both_sides_share_are_never_called_untranslated() -> None:
    rng = np.random.default_rng(1)
    source, target = text(10, 11), text(10, 11, 12)
    found = {tuple(corrupt(source, target, target, BEGINS, 0.2, rng)) for _ in range(200)}
    assert all(sorted(worse[1:-1]) != sorted((10, 11, 11)) for worse in found)


def test_empty_translations_stay_empty() -> None:
    worse = corrupt(text(20), text(), text(30), BEGINS, 0.5, np.random.default_rng(0))
    assert worse.tolist() == [CLS, SEP]
