"""Greedy matching against values worked out by hand and under its symmetries."""

import dataclasses
import math

import numpy as np
import pytest
from helpers import packed

from mtmetrics.matching.greedy import bertr, bertscore
from mtmetrics.models.packed import PackedTokens


def pack(
    texts: list[list[float]], special: bool = False, weights: list[float] | None = None
) -> PackedTokens:
    """Packs unit vectors, given by their angles in degrees; with `special`, the first of each text
    is a special token."""
    radians = [np.radians(np.array(text, dtype=np.float64)) for text in texts]
    tokens = packed(
        [np.stack([np.cos(text), np.sin(text)], axis=1) for text in radians], weights=weights
    )
    if special:
        tokens.word_positions[
            [first for first, length in zip(tokens.offsets, tokens.lengths, strict=False) if length]
        ] = -1
    return tokens


def cosine(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def test_bertscore_by_hand() -> None:
    # Prediction at 0 and 90 degrees, reference at 0, 60 and 180.
    scores = bertscore(pack([[0, 90]]), pack([[0, 60, 180]]))
    precision, recall = (1 + cosine(30)) / 2, (1 + cosine(30) + cosine(90)) / 3
    assert scores.precision == pytest.approx([precision], abs=1e-6)
    assert scores.recall == pytest.approx([recall], abs=1e-6)
    assert scores.f1 == pytest.approx([2 * precision * recall / (precision + recall)], abs=1e-6)


def test_bertscore_weighs_tokens() -> None:
    scores = bertscore(pack([[0, 90]], weights=[3, 1]), pack([[0, 60, 180]], weights=[0, 1, 1]))
    assert scores.precision == pytest.approx([(3 * 1 + cosine(30)) / 4], abs=1e-6)
    assert scores.recall == pytest.approx([(cosine(30) + cosine(90)) / 2], abs=1e-6)


def test_special_tokens_are_partners_of_bertscore_without_weight_of_their_own() -> None:
    # The special tokens, at 0 and at 100 degrees, would score worst, but the second is the best
    # partner of the prediction's token.
    prediction, reference = pack([[0, 90]], special=True), pack([[100, 10]], special=True)
    scores = bertscore(prediction, reference)
    assert scores.precision == pytest.approx([cosine(10)], abs=1e-6)
    assert scores.recall == pytest.approx([cosine(10)], abs=1e-6)
    assert bertr(prediction, reference) == pytest.approx([cosine(80)], abs=1e-6)
    assert bertr(prediction, reference, special_tokens=True) == pytest.approx(
        [cosine(10)], abs=1e-6
    )


def test_bertr_covers_the_reference_alone() -> None:
    assert bertr(pack([[0, 120]]), pack([[0]])) == pytest.approx([1], abs=1e-6)
    assert bertr(pack([[0]]), pack([[0, 120]])) == pytest.approx([(1 + cosine(120)) / 2], abs=1e-6)


def test_texts_without_words_have_no_score() -> None:
    words, blank = [0.0, 10.0], [0.0]
    predictions, references = (
        pack([blank, words, blank, [], words], special=True),
        pack([words, blank, blank, words, words], special=True),
    )
    expected = [True, True, True, True, False]
    for values in (*bertscore(predictions, references), bertr(predictions, references)):
        assert np.isnan(values).tolist() == expected
    assert np.isnan(bertr(predictions, references, special_tokens=True)).tolist() == [
        False,
        False,
        False,
        True,
        False,
    ]


def test_a_side_without_weight_loses_its_own_number() -> None:
    scores = bertscore(pack([[0, 30]], weights=[0, 0]), pack([[0, 0]]))
    assert np.isnan(scores.precision)
    assert scores.recall == pytest.approx([1], abs=1e-6)
    assert np.isnan(scores.f1)


def test_orthogonal_texts_have_an_f1_of_0() -> None:
    first = pack([[0, 0]]).map_vectors(np.round)
    scores = bertscore(first, first.map_vectors(np.fliplr))
    assert [values.tolist() for values in scores] == [[0.0], [0.0], [0.0]]


def test_threads_order_and_repetition_change_nothing_and_sides_swap() -> None:
    generator = np.random.default_rng(3)
    left, right = (
        [generator.uniform(0, 360, generator.integers(1, 15)).tolist() for _ in range(150)]
        for _ in range(2)
    )
    one = bertscore(pack(left), pack(right))
    for found, expected in zip(bertscore(pack(left), pack(right), threads=4), one, strict=True):
        assert np.array_equal(found, expected)
    swapped = bertscore(pack(right), pack(left))
    assert swapped.f1 == pytest.approx(one.f1, abs=1e-6)
    assert swapped.recall == pytest.approx(one.precision, abs=1e-6)
    order = generator.integers(0, 150, 400)
    chosen = [dataclasses.replace(pack(side), index=order) for side in (left, right)]
    assert np.array_equal(bertr(*chosen, threads=2), bertr(pack(left), pack(right))[order])
