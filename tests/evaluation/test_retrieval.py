"""Matching by hand: candidates, ties, precision, and a metric that finds everything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.errors import InputError
from mtmetrics.evaluation.retrieval import (
    distinct_pairs,
    match,
    matching_table,
    nearest_candidates,
    precision_at,
    random_candidates,
)
from mtmetrics.scorers.registry import load_scorer

SOURCES = ["Anna 1", "Bernd 2", "Clara 3", "Dora 4"]
TARGETS = ["Anna one 1", "Bernd two 2", "Clara three 3", "Dora four 4"]


def test_precision_and_ties() -> None:
    scores = np.array(
        [
            [5.0, 1.0, 2.0, 3.0],  # first
            [2.0, 1.0, 3.0, 0.0],  # second
            [0.0, 1.0, 2.0, 3.0],  # last
            [2.0, 2.0, 2.0, 0.0],  # one of three on the ranks 1 to 3
            [1.0, 3.0, 1.0, 0.0],  # one of two on the ranks 2 and 3
        ]
    )
    assert precision_at(scores, 1) == pytest.approx((1 + 0 + 0 + 1 / 3 + 0) / 5)
    assert precision_at(scores, 2) == pytest.approx((1 + 1 + 0 + 2 / 3 + 1 / 2) / 5)
    assert precision_at(scores, 3) == pytest.approx((1 + 1 + 0 + 1 + 1) / 5)
    assert precision_at(np.zeros((7, 4)), 1) == 0.25


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_the_share_of_ties_is_the_mean_over_random_orders(seed: int, cutoff: int) -> None:
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, 3, size=(1, 6)).astype(float)
    broken = scores + 0.5 * np.array([generator.permutation(6) / 6 for _ in range(4000)])
    assert precision_at(scores, cutoff) == pytest.approx(precision_at(broken, cutoff), abs=0.05)


def test_random_candidates() -> None:
    chosen = random_candidates(50, 10, seed=1)
    assert chosen.shape == (50, 10)
    np.testing.assert_array_equal(chosen[:, 0], np.arange(50))
    assert all(len(set(row)) == 10 for row in chosen)
    assert chosen.min() == 0
    assert chosen.max() == 49
    np.testing.assert_array_equal(chosen, random_candidates(50, 10, seed=1))
    assert not np.array_equal(chosen, random_candidates(50, 10, seed=2))


def test_random_distractors_are_equally_likely() -> None:
    counts = np.zeros(6)
    for seed in range(600):
        counts[random_candidates(6, 3, seed)[2, 1:]] += 1
    assert counts[2] == 0
    assert abs(counts[[0, 1, 3, 4, 5]] - 240).max() < 60


def test_all_are_candidates_where_there_are_few() -> None:
    for chosen in (random_candidates(4, 9, seed=1), nearest_candidates(np.eye(4), np.eye(4), 9)):
        assert [sorted(row) for row in chosen.tolist()] == [[0, 1, 2, 3]] * 4
        assert chosen[:, 0].tolist() == [0, 1, 2, 3]


def test_nearest_candidates_are_nearest_by_cosine_and_the_right_one_is_first_wherever_it_lies() -> None:
    sources = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    targets = np.array([[-1.0, 0.1], [9.0, 9.0], [0.0, 0.2], [0.3, -0.1]])
    # Cosines of source 0: -1, 0.7, 0, 0.95; of source 1: 0.1, 0.7, 1, -0.3; of source 2: -0.6, 1, 0.7, 0.4.
    assert nearest_candidates(sources, targets, 3).tolist() == [[0, 3, 1], [1, 2, 0], [2, 1, 3], [3, 0, 1]]


def test_nearest_candidates_by_blocks_are_those_of_one_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).normal(size=(2, 23, 5))
    whole = nearest_candidates(*vectors, 7)
    monkeypatch.setattr("mtmetrics.evaluation.retrieval._ROWS_AT_ONCE", 4)
    np.testing.assert_array_equal(nearest_candidates(*vectors, 7), whole)


def test_a_second_right_answer_is_left_out() -> None:
    pairs = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "z"), ("c", "y")]
    assert distinct_pairs(pairs) == [("a", "x"), ("b", "z"), ("c", "y")]
    with pytest.raises(InputError, match="at least 2 .* got 1"):
        distinct_pairs(pairs[:3])


def test_overlap_finds_names() -> None:
    found = match(load_scorer("chrf"), SOURCES, TARGETS, random_candidates(4, 4, seed=1), cutoffs=(1, 2))
    assert found.precision == {"score": {1: 1.0, 2: 1.0}}
    assert len(found.result.segments) == 16
    assert found.result.signature == load_scorer("chrf").signature


def test_the_right_target_is_wherever_the_candidates_say() -> None:
    """Shifted by one, no translation is right, and among 3 of 4 candidates it is never the first."""
    shifted = TARGETS[1:] + TARGETS[:1]
    found = match(load_scorer("chrf"), SOURCES, shifted, random_candidates(4, 4, seed=1), cutoffs=(1,))
    assert found.precision["score"][1] == 0.0


def test_a_metric_that_does_not_see_the_candidate_guesses() -> None:
    found = match(load_scorer("source_length"), SOURCES, TARGETS, random_candidates(4, 4, seed=1), cutoffs=(1, 3))
    assert found.precision["score"] == {1: 0.25, 3: 0.75}


def test_progress_sees_every_pair() -> None:
    seen = []
    match(
        load_scorer("random"),
        SOURCES,
        TARGETS,
        random_candidates(4, 3, seed=1),
        (1,),
        wrap=lambda rows: (seen.append(r) or r for r in rows),
    )
    assert len(seen) == 12
    assert seen[0] == (SOURCES[0], TARGETS[0])
    assert {source for source, _ in seen[3:6]} == {SOURCES[1]}


@pytest.mark.parametrize(
    ("cutoff", "message"), [(0, "cutoff 0: must be a whole number"), (3, "cutoff 3: among 3 candidates .* at most 2")]
)
def test_impossible_cutoffs_are_refused_before_scoring(cutoff: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        match(
            load_scorer("random"),
            SOURCES,
            TARGETS,
            random_candidates(4, 3, seed=1),
            (cutoff,),
            wrap=lambda _: pytest.fail("scored"),
        )


def test_table() -> None:
    assert matching_table({"score": {1: 0.5, 5: 1.0}, "lm": {1: 0.25, 5: 0.0}}).splitlines() == [
        "| measure | P@1 | P@5 |",
        "|---|---:|---:|",
        "| score | 0.500 | 1.000 |",
        "| lm | 0.250 | 0.000 |",
    ]
