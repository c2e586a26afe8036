"""Plans between words, checked by hand and against the distance between n-grams."""

import numpy as np
import pytest

from mtmetrics.matching.plan import Units, attention_plan, greedy_plan, ngram_units, word_plan
from mtmetrics.matching.transport import optimal_flow
from mtmetrics.models.text_units import TextUnits, spans_of


def text(words):
    """Of one letter each, without spaces."""
    spans = [(place, place + 1) for place in range(len(words))]
    return TextUnits([*words], spans_of(spans), np.arange(len(words)))


def units(words, shares):
    return Units([*words], text(words).spans, shares)


def test_shares_of_unigrams_bigrams_and_short_texts():
    words, positions = text(["[CLS]", "Haus", "tür"]), np.array([0, 1, 1, 2])
    unigrams = ngram_units(words, positions, np.ones(4), 1)
    assert unigrams.words == words.words
    assert unigrams.spans.tolist() == words.spans.tolist()
    assert unigrams.shares.tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    bigrams = ngram_units(words, positions, np.array([1.0, 3.0, 1.0, 1.0]), 2)
    assert bigrams.shares.tolist() == [[0.25, 0.75, 0], [0, 1, 0], [0, 0.5, 0.5]]
    assert ngram_units(words, positions[:1], np.ones(1), 2).shares.tolist() == [[1]]
    # Words without tokens are left out.
    kept = ngram_units(text("a,b"), np.array([0, 2]), np.ones(2), 1)
    assert (kept.words, kept.spans.tolist()) == (["a", "b"], [[0, 1], [2, 3]])


def test_pieces_of_a_word_are_summed():
    source = units(["ab"], np.ones((2, 1)))
    target = units("cd", np.eye(2))
    plan = word_plan(
        source, target, np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([[0.2, 0.4], [0.6, 1.0]])
    )
    assert plan.mass.tolist() == [[0.5, 0.5]]
    assert plan.values.tolist() == [[0.2, 1.0]]
    assert plan.total == pytest.approx(0.6)


def test_idle_words_show_their_mean_distance():
    source, moved, cost = (
        units("ab", np.eye(2)),
        np.diag([0.5, 0.5]),
        np.array([[0.1, 0.3], [0.5, 0.7]]),
    )
    plan = word_plan(source, units("c", np.ones((2, 1))), moved, cost)
    assert plan.mass.tolist() == [[0.5], [0.5]]
    assert plan.values.tolist() == [[0.1], [0.7]]
    assert word_plan(source, units("cd", np.eye(2)), moved, cost).values.tolist() == [
        [0.1, 0.3],
        [0.5, 0.7],
    ]


def test_the_distance_of_bigrams_is_kept():
    generator = np.random.default_rng(0)
    source = ngram_units(text("abc"), np.array([0, 1, 1, 2, 2, 2]), generator.uniform(1, 2, 6), 2)
    target = ngram_units(text("wxyz"), np.array([0, 1, 2, 3]), generator.uniform(1, 2, 4), 2)
    cost = generator.uniform(size=(5, 3))
    flow, value = optimal_flow(cost, np.full(5, 0.2), np.full(3, 1 / 3))
    plan = word_plan(source, target, flow, cost)
    assert plan.total == pytest.approx(value)
    assert plan.mass.sum() == pytest.approx(1)
    assert plan.as_dict()["mass"] == plan.mass.tolist()


def test_greedy_matches_add_up_to_recall_and_to_the_mean_with_precision():
    cosines = np.array([[0.9, 0.2, 0.1], [0.8, 0.3, 0.4]], dtype=np.float32)
    recall = greedy_plan(text("ab"), text("xyz"), cosines, (0, np.ones(2)))
    assert recall.mass.tolist() == [[0.5, 0, 0], [0.5, 0, 0]]
    assert recall.total == pytest.approx((0.9 + 0.8) / 2)
    # The last piece of the translation has no weight of its own.
    both = greedy_plan(
        text("ab"), text("xyz"), cosines, (0, np.ones(2)), (1, np.array([1.0, 1.0, 0.0]))
    )
    assert both.mass.tolist() == [[0.5, 0, 0], [0.25, 0.25, 0]]
    assert both.total == pytest.approx(((0.9 + 0.8) / 2 + (0.9 + 0.3) / 2) / 2)
    assert (both.cells, both.spans.tolist()) == ("cosine", [[0, 1], [1, 2], [2, 3]])


def test_attention_is_the_mean_of_both_directions():
    plan = attention_plan(text("a"), text("xy"), np.array([[0.25, 0.75]]), np.array([[1.0], [1.0]]))
    assert plan.values.tolist() == [[0.625, 0.875]]
    assert plan.mass == pytest.approx(plan.values / 1.5)
