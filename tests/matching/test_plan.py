"""Plans between words, checked by hand and against the distance between n-grams."""

import numpy as np
import pytest

from mtmetrics.matching.plan import Units, ngram_units, word_plan
from mtmetrics.matching.transport import optimal_flow


def test_shares_of_unigrams_bigrams_and_short_texts():
    words, positions = ["[CLS]", "Haus", "tür"], np.array([0, 1, 1, 2])
    unigrams = ngram_units(words, positions, np.ones(4), 1)
    assert unigrams.words == words
    assert unigrams.shares.tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    bigrams = ngram_units(words, positions, np.array([1.0, 3.0, 1.0, 1.0]), 2)
    assert bigrams.shares.tolist() == [[0.25, 0.75, 0], [0, 1, 0], [0, 0.5, 0.5]]
    assert ngram_units(words, positions[:1], np.ones(1), 2).shares.tolist() == [[1]]
    # Words without tokens are left out.
    assert ngram_units(["a", ",", "b"], np.array([0, 2]), np.ones(2), 1).words == ["a", "b"]


def test_pieces_of_a_word_are_summed():
    source = Units(["ab"], np.ones((2, 1)))
    target = Units(["c", "d"], np.eye(2))
    plan = word_plan(source, target, np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([[0.2, 0.4], [0.6, 1.0]]))
    assert plan.flow.tolist() == [[0.5, 0.5]]
    assert plan.cost.tolist() == [[0.2, 1.0]]
    assert plan.distance == pytest.approx(0.6)


def test_idle_words_show_their_mean_distance():
    source, moved, cost = Units(["a", "b"], np.eye(2)), np.diag([0.5, 0.5]), np.array([[0.1, 0.3], [0.5, 0.7]])
    plan = word_plan(source, Units(["c"], np.ones((2, 1))), moved, cost)
    assert plan.flow.tolist() == [[0.5], [0.5]]
    assert plan.cost.tolist() == [[0.1], [0.7]]
    assert word_plan(source, Units(["c", "d"], np.eye(2)), moved, cost).cost.tolist() == [[0.1, 0.3], [0.5, 0.7]]


def test_the_distance_of_bigrams_is_kept():
    generator = np.random.default_rng(0)
    source = ngram_units(list("abc"), np.array([0, 1, 1, 2, 2, 2]), generator.uniform(1, 2, 6), 2)
    target = ngram_units(list("wxyz"), np.array([0, 1, 2, 3]), generator.uniform(1, 2, 4), 2)
    cost = generator.uniform(size=(5, 3))
    flow, value = optimal_flow(cost, np.full(5, 0.2), np.full(3, 1 / 3))
    plan = word_plan(source, target, flow, cost)
    assert plan.distance == pytest.approx(value)
    assert plan.flow.sum() == pytest.approx(1)
    assert plan.as_dict()["flow"] == plan.flow.tolist()
