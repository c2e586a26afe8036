"""Agreement on pairs, against brute force."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtmetrics.errors import InputError
from mtmetrics.evaluation import pairwise
from mtmetrics.evaluation.pairwise import (
    darr_kendall,
    pairwise_accuracy,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)


def test_systems_in_order_and_tied() -> None:
    assert pairwise_accuracy([1, 2, 3], [10, 30, 20]).value == pytest.approx(2 / 3)
    # The pairs (a, b) and (a, c): tied by one side alone; (b, c): by both.
    assert pairwise_accuracy([1, 1, 1], [1, 2, 2]).value == pytest.approx(1 / 3)


def test_systems_without_a_value() -> None:
    result = pairwise_accuracy([1, None, 3, 4], [1, 2, 3, None])
    assert (result.value, result.left_out) == (1.0, 2)
    one = pairwise_accuracy([0.3], [0.2])
    assert math.isnan(one.value)
    assert one.reason == "pairs need at least 2 systems with a score and a judgement, there is 1"
    assert "not finite" in pairwise_accuracy([1, math.nan], [1, 2]).reason


def _brute_force(scores: list[float], human: list[float], items: list[int]) -> tuple[float, float]:
    """Tries every epsilon, counts every pair."""
    by_item = [[i for i, item in enumerate(items) if item == label] for label in sorted(set(items))]
    pairs = [list(itertools.combinations(members, 2)) for members in by_item if len(members) > 1]
    best = (-1.0, math.nan)
    if not pairs:
        return best
    for epsilon in sorted({0.0, *(abs(scores[i] - scores[j]) for group in pairs for i, j in group)}):
        shares = []
        for group in pairs:
            right = 0
            for i, j in group:
                difference = scores[i] - scores[j]
                called = 0 if abs(difference) <= epsilon else math.copysign(1, difference)
                right += called == np.sign(human[i] - human[j])
            shares.append(right / len(group))
        if np.mean(shares) > best[0] + 1e-9:
            best = (float(np.mean(shares)), epsilon)
    return best


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=30))
def test_tie_calibration_finds_what_trying_every_epsilon_finds(rows: list[tuple[int, int, int]]) -> None:
    scores, human, items = ([float(value) for value in column] for column in zip(*rows, strict=True))
    found = tie_calibrated_accuracy(scores, human, items)
    accuracy, epsilon = _brute_force(scores, human, items)
    if accuracy < 0:
        assert found.accuracy.reason == "no item has two translations with a score and a judgement"
        assert math.isnan(found.epsilon)
    else:
        assert (found.accuracy.value, found.epsilon) == (pytest.approx(accuracy, abs=1e-12), epsilon)


def test_tie_calibration_by_hand() -> None:
    # s: people tie the first two, the metric is 0.1 apart there; t: the metric is 0.05 apart and right.
    scores, human, items = [0.5, 0.6, 0.9, 0.40, 0.45], [1, 1, 2, 1, 2], ["s", "s", "s", "t", "t"]
    # epsilon 0: (2/3 + 1) / 2; epsilon 0.05 loses t; epsilon 0.1: (3/3 + 0) / 2.
    found = tie_calibrated_accuracy(scores, human, items)
    assert (found.accuracy.value, found.epsilon) == (pytest.approx(5 / 6), 0.0)
    # Without the judgement of t's second translation there is no pair in t.
    without = tie_calibrated_accuracy(scores, [*human[:4], None], items)
    assert (without.accuracy.value, without.epsilon) == (pytest.approx(1.0), pytest.approx(0.1))
    assert (without.accuracy.left_out, without.accuracy.undefined_groups) == (1, 1)


def test_a_metric_that_is_always_right_needs_no_epsilon() -> None:
    human = np.random.default_rng(0).normal(size=60)
    found = tie_calibrated_accuracy(10 * human, human, np.arange(60) // 6)
    assert (found.accuracy.value, found.epsilon) == (pytest.approx(1.0), 0.0)
    assert "not finite" in tie_calibrated_accuracy([math.nan, 1.0], [1.0, 2.0], ["s", "s"]).accuracy.reason


def _set(systems: int = 4, items: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scores, judgements, items and systems, system after system."""
    generator = np.random.default_rng(4)
    quality = generator.normal(size=(systems, 1)) / 2
    human = quality + generator.normal(size=(systems, items))
    scores = human + generator.normal(size=(systems, items))
    rows, columns = np.indices(human.shape)
    return scores.ravel(), human.ravel(), columns.ravel(), rows.ravel()


def test_soft_accuracy_against_swapping_the_scores_of_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, human, items, systems = _set()
    every = np.array(list(itertools.product([1.0, -1.0], repeat=8)))
    monkeypatch.setattr(pairwise, "sign_flips", lambda resamples, n, seed: [every[:100], every[100:]])
    found = soft_pairwise_accuracy(scores, human, items, systems, resamples=len(every))

    def p(values: np.ndarray, i: int, j: int) -> float:
        a, b = values[systems == i], values[systems == j]
        leads = [np.where(signs > 0, a, b).mean() - np.where(signs > 0, b, a).mean() for signs in every]
        return (1 + sum(lead >= a.mean() - b.mean() - 1e-12 for lead in leads)) / (len(every) + 1)

    differences = [abs(p(human, i, j) - p(scores, i, j)) for i, j in itertools.combinations(range(4), 2)]
    assert found.value == pytest.approx(1 - np.mean(differences), abs=1e-12)


def test_soft_accuracy_of_people_themselves_and_of_their_opposite() -> None:
    _, human, items, systems = _set(items=200)
    assert soft_pairwise_accuracy(3 * human + 1, human, items, systems).value == pytest.approx(1.0)
    # Opposed p-values: |p - (1 - p)| is large where people are sure.
    assert soft_pairwise_accuracy(-human, human, items, systems).value < 0.5


def test_soft_accuracy_does_not_depend_on_the_order_of_rows_but_on_the_seed() -> None:
    scores, human, items, systems = _set(items=50)
    value = soft_pairwise_accuracy(scores, human, items, systems).value
    assert soft_pairwise_accuracy(scores, human, items, systems).value == value
    assert soft_pairwise_accuracy(scores, human, items, systems, seed=2).value != value
    order = np.argsort(items, kind="stable")
    ordered = (column[order] for column in (scores, human, items, systems))
    assert soft_pairwise_accuracy(*ordered).value == pytest.approx(value, abs=1e-12)


def test_soft_accuracy_counts_items_that_every_system_has() -> None:
    scores, human, items, systems = _set()
    rows = zip(human, systems, items, strict=True)
    partial = [None if (system, item) == (2, 5) else value for value, system, item in rows]
    kept = items != 5
    expected = soft_pairwise_accuracy(scores[kept], human[kept], items[kept], systems[kept])
    assert soft_pairwise_accuracy(scores, partial, items, systems) == expected._replace(left_out=4)


def test_soft_accuracy_that_is_not_defined() -> None:
    assert "there is 1" in soft_pairwise_accuracy([1.0, 2.0], [1.0, 2.0], [0, 1], ["a", "a"]).reason
    assert "there are 0" in soft_pairwise_accuracy([None], [1.0], [0], ["a"]).reason
    apart = soft_pairwise_accuracy([1.0, 2.0], [1.0, 2.0], [0, 1], ["a", "b"])
    assert (apart.reason, apart.left_out) == ("no item has a score and a judgement for every system", 2)
    assert "not finite" in soft_pairwise_accuracy([1.0, math.nan], [1.0, 2.0], [0, 0], ["a", "b"]).reason
    with pytest.raises(InputError, match="segments 1 and 3 are of one system and one item"):
        soft_pairwise_accuracy([1.0] * 4, [1.0] * 4, [0, 0, 1, 0], ["a", "b", "a", "b"])


# Relative rankings from direct assessments.


def test_darr_by_hand() -> None:
    scores = [0.9, 0.5, 0.5, 0.1, 0.3, 0.2]
    people = [90.0, 65.0, 40.0, 64.9, 20.0, 80.0]
    items = ["s", "s", "s", "s", "t", "t"]
    # s: 90 over 65, 40 and 64.9: concordant thrice; 65 over 40: tied by the metric, so discordant; 65, 64.9 and 64.9,
    # 40 are too close.
    # t: 80 over 20: discordant. (3 - 2) / 5
    assert darr_kendall(scores, people, items).value == pytest.approx(0.2)
    # 64.9 over 40 counts from a threshold of 24.9 down, and is discordant.
    assert darr_kendall(scores, people, items, threshold=24.5).value == pytest.approx(0.0)


def test_the_threshold_of_darr_itself_is_far_enough() -> None:
    assert darr_kendall([0.1, 0.2], [50.0, 75.0], ["s", "s"]).value == 1.0


def test_darr_against_counting_pair_by_pair() -> None:
    generator = np.random.default_rng(3)
    items = generator.integers(0, 40, 300)
    people = generator.integers(0, 101, 300).astype(float)
    scores = np.round(people / 100 + generator.normal(0, 0.4, 300), 1)
    concordant = discordant = 0
    for i, j in itertools.combinations(range(300), 2):
        if items[i] == items[j] and abs(people[i] - people[j]) >= 25:
            better, worse = (i, j) if people[i] > people[j] else (j, i)
            concordant += scores[better] > scores[worse]
            discordant += scores[better] <= scores[worse]
    expected = (concordant - discordant) / (concordant + discordant)
    assert darr_kendall(scores, people, items).value == pytest.approx(expected, abs=1e-15)


def test_darr_that_is_not_defined_has_a_reason() -> None:
    alone = darr_kendall([0.1, 0.2, None], [0.0, 100.0, 50.0], ["s", "t", "s"])
    assert math.isnan(alone.value)
    assert alone.reason == "no two translations of one item were judged at least 25 points apart"
    assert alone.left_out == 1
    assert "not finite" in darr_kendall([0.1, math.nan], [0.0, 100.0], ["s", "s"]).reason


@pytest.mark.parametrize("threshold", [0, -25, math.nan])
def test_impossible_thresholds_are_refused(threshold: float) -> None:
    with pytest.raises(InputError, match="threshold"):
        darr_kendall([0.1, 0.2], [0.0, 100.0], ["s", "s"], threshold)
