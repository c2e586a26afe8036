"""N-grams, selections and means of packed tokens, by hand and against plain loops."""

import dataclasses

import numpy as np
import pytest
from helpers import packed
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.models.packed import PackedTokens


def pack(lengths: list[int], seed: int = 0) -> PackedTokens:
    generator = np.random.default_rng(seed)
    texts = [generator.normal(size=(length, 3)) for length in lengths]
    return packed(texts, weights=generator.random(sum(lengths)) + 0.1)


def loop_ngrams(tokens: PackedTokens, n: int) -> tuple[list[np.ndarray], list[float], list[int]]:
    vectors, weights, ids = [], [], []
    for text in range(len(tokens.lengths)):
        rows = range(*tokens.rows(text).indices(len(tokens.vectors)))
        size = min(n, len(rows))
        for first in range(rows.start, rows.stop - size + 1) if size else []:
            weight = tokens.weights[first : first + size]
            vectors.append(
                (weight[:, None] * tokens.vectors[first : first + size]).sum(0) / weight.sum()
            )
            weights.append(weight.sum())
            ids.append(int(tokens.token_ids[first]))
    return vectors, weights, ids


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.integers(1, 5), st.integers(0, 999))
@settings(max_examples=80, deadline=None)
def test_ngrams_equal_a_loop(lengths: list[int], n: int, seed: int) -> None:
    tokens = pack(lengths, seed)
    ngrams = tokens.ngrams(n)
    vectors, weights, ids = loop_ngrams(tokens, n)
    assert ngrams.lengths.tolist() == [max(length - n + 1, min(length, 1)) for length in lengths]
    assert ngrams.token_ids.tolist() == ids
    assert ngrams.weights == pytest.approx(weights)
    if vectors:
        assert ngrams.vectors == pytest.approx(np.array(vectors), abs=1e-5)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(0, 999))
@settings(max_examples=50, deadline=None)
def test_means_and_selection(lengths: list[int], seed: int) -> None:
    tokens = pack(lengths, seed)
    means = tokens.means()
    keep = np.random.default_rng(seed).random(sum(lengths)) < 0.5
    chosen = tokens.select(keep)
    assert chosen.token_ids.tolist() == np.flatnonzero(keep).tolist()
    for text, length in enumerate(lengths):
        rows = tokens.rows(text)
        expected = tokens.vectors[rows].mean(0) if length else np.zeros(3)
        assert means[text] == pytest.approx(expected, abs=1e-5)
        assert (
            chosen.token_ids[chosen.rows(text)].tolist()
            == (np.flatnonzero(keep[rows]) + rows.start).tolist()
        )


def test_taking_inputs_keeps_their_texts() -> None:
    tokens = dataclasses.replace(
        pack([2, 3, 0, 1]),
        index=np.array([3, 1, 1, 0, 2]),
        truncated=np.array([False, True, False, True]),
    )
    some = tokens.take(slice(0, 3))
    assert some.lengths.tolist() == [3, 1]
    assert some.index.tolist() == [1, 0, 0]
    assert some.truncated.tolist() == [True, True]
    for whole, part in zip(tokens.index[:3], some.index, strict=True):
        assert (
            some.token_ids[some.rows(part)].tolist()
            == tokens.token_ids[tokens.rows(whole)].tolist()
        )
        assert np.array_equal(some.vectors[some.rows(part)], tokens.vectors[tokens.rows(whole)])


def test_normalising_keeps_zero_vectors() -> None:
    tokens = pack([2])
    tokens.vectors[0] = 0
    normalised = tokens.normalized().vectors
    assert normalised[0].tolist() == [0, 0, 0]
    assert np.linalg.norm(normalised[1]) == pytest.approx(1)
