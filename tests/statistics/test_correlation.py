"""Coefficients of agreement, within groups and on pairs too, and the columns that they are computed
from."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mtmetrics.errors import InputError
from mtmetrics.statistics import correlation
from mtmetrics.statistics.correlation import (
    COEFFICIENTS,
    Correlation,
    codes,
    complete,
    correlate,
    darr_kendall,
    mean,
    pairs_within,
    pairwise_accuracy,
    pearson,
    ranked_kendall,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)

# Of the 6 pairs 3 are concordant, 1 is discordant, 1 is tied on each side; 3 distinct values on
# each side.
_TIED = [1, 2, 2, 3], [1, 3, 2, 2]


@pytest.mark.parametrize(
    ("name", "columns", "value"),
    [
        # Centred: (-1.5, -.5, .5, 1.5) and (-.5, -1.5, 1.5, .5); product 3, squared lengths 5 and
        # 5.
        ("pearson", ([1, 2, 3, 4], [2, 1, 4, 3]), 0.6),
        ("pearson", ([1, 2, 3], [1, -2, 1]), 0.0),
        ("pearson", ([1, 2], [5, -5]), -1.0),
        # Neither overflow nor underflow; small differences beside a large offset; float32 as
        # float64.
        ("pearson", (np.array([1, 2, 3, 4]) * 1e-300, [2, 1, 4, 3]), 0.6),
        ("pearson", (np.array([1, 2, 3, 4]) * 1e300, [2, 1, 4, 3]), 0.6),
        ("pearson", (1e6 + np.array([1, 2, 3, 4]) * 2.0**-10, [2, 1, 4, 3]), 0.6),
        (
            "pearson",
            (np.float32(1) + np.array([1, 2, 3, 4], np.float32) * np.float32(2**-20), [2, 1, 4, 3]),
            0.6,
        ),
        ("spearman", _TIED, 0.5),  # ranks less their mean: (-1.5, 0, 0, 1.5) and (-1.5, 1.5, 0, 0)
        ("kendall-b", _TIED, 0.4),  # (3 - 1) / sqrt(5 * 5)
        ("kendall-c", _TIED, 0.375),  # 2 * (3 - 1) * 3 / (16 * 2)
    ],
)
def test_values_worked_out_by_hand(name, columns, value):
    assert COEFFICIENTS[name](*columns) == Correlation(pytest.approx(value, abs=1e-12))


_SCIPY = {
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "kendall-b": lambda x, y: stats.kendalltau(x, y).statistic,
    "kendall-c": lambda x, y: stats.kendalltau(x, y, variant="c").statistic,
}


@given(
    st.sampled_from([*COEFFICIENTS]),
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=2, max_size=25),
)
def test_agrees_with_scipy_on_ties_and_is_symmetric(name, pairs):
    x, y = np.array(pairs, dtype=float).T
    result = COEFFICIENTS[name](x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert result.known is None
        assert "constant" in result.reason
    else:
        assert result.value == pytest.approx(_SCIPY[name](x, y), abs=1e-12)
        assert result.value == pytest.approx(COEFFICIENTS[name](y, x).value, abs=1e-12)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_none_leaves_a_segment_out_and_is_counted(name):
    result = COEFFICIENTS[name]([1.0, None, 2.0, 3.0, 9.0], [2.0, 7.0, 1.0, 3.0, None])
    assert result == COEFFICIENTS[name]([1.0, 2.0, 3.0], [2.0, 1.0, 3.0])._replace(left_out=2)


@pytest.mark.parametrize(
    ("scores", "human", "reason"),
    [
        ([None] * 4, [1.0, 2.0, 3.0, 4.0], "there are 0, 4 have no score or no judgement"),
        ([], [], "at least 2 segments, there are 0"),
        ([0.5], [0.7], "at least 2 segments, there is 1"),
        ([0.0, 0.0], [0.0, 1.0], "the scores are constant"),
        ([0.1] * 7, list(range(7)), "the scores are constant"),
        (
            1000.0 * np.array([0.1 + 0.2, 0.3]),
            [1, 2],
            "the scores are constant",
        ),  # rounding noise is no signal
        ([1.0, 2.0, 3.0], [2.0, 2.0, None], "the human judgements are constant"),
        (
            [1.0, math.nan, 3.0],
            [1, 2, 3],
            "the scores hold 1 values that are not finite, the first at index 1",
        ),
        (
            [None, 1.0, 3.0],
            [1, 2, -math.inf],
            "judgements hold 1 values that are not finite, the first at index 2",
        ),
    ],
)
def test_what_is_not_defined_has_a_reason(scores, human, reason):
    for coefficient in COEFFICIENTS.values():
        result = coefficient(scores, human)
        assert math.isnan(result.value)
        assert reason in result.reason


def test_mean_over_sets_never_leaves_out_an_undefined_one():
    assert mean({"a": Correlation(0.5), "b": Correlation(-0.1)}) == Correlation(
        pytest.approx(0.2), None
    )
    result = mean({"a": Correlation(0.5), "b": Correlation(math.nan, "the scores are constant")})
    assert (result.known, result.reason) == (None, "undefined for b")
    with pytest.raises(InputError, match="nothing to average"):
        mean({})


# Columns side by side.


def test_a_position_where_a_column_has_none_is_left_out_of_all() -> None:
    columns = complete({"a": [1, None, 3.0, 4], "b": np.array([5.0, 6.0, None, 8.0], dtype=object)})
    assert [column.tolist() for column in columns.values.values()] == [[1.0, 4.0], [5.0, 8.0]]
    assert (columns.kept.tolist(), columns.left_out) == ([True, False, False, True], 2)
    columns = complete({"a": [None, 1.0, math.nan, math.inf], "b": np.zeros(4)})
    assert columns.not_finite == "the a hold 2 values that are not finite, the first at index 2"
    assert complete({"a": [None, 1.0], "b": [math.nan, 2.0]}).not_finite is None


@pytest.mark.parametrize(
    ("b", "message"),
    [
        ([1.0], "must be vectors of one length"),
        ([[1.0], [2.0]], "of one length"),
        (["x", 2.0], "b: numbers or None"),
        ([10**400, 2.0], "b: numbers or None"),
    ],
)
def test_what_cannot_be_used_is_refused(b: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        complete({"a": [1.0, 2.0], "b": b})


# Groups.


def test_labels_follow_the_first_appearance_among_the_positions_that_are_kept() -> None:
    assert codes("items", [None, "y", "x", "y"], np.array([False, True, True, True])).tolist() == [
        0,
        1,
        0,
    ]
    with pytest.raises(InputError, match=r"items\[0\] is None"):
        codes("items", [None, "a"], np.array([True, False]))
    with pytest.raises(InputError, match="got 1 for 2 segments"):
        codes("items", ["a"], np.array([True, False]))


def test_pairs_within_groups() -> None:
    pairs = pairs_within(np.array([0, 1, 0, 2, 1, 0]))
    assert sorted(map(tuple, pairs.T.tolist())) == [(0, 2), (0, 5), (1, 4), (2, 5)]
    assert pairs_within(np.array([], dtype=int)).shape == (2, 0)


_SCORES = [1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 5.0, 5.0, 9.0]
_HUMAN = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 4.0]
_ITEMS = ["a", "a", "a", "b", "b", "b", "c", "c", "d"]


def test_the_mean_is_over_the_groups_that_say_something() -> None:
    # a: 1, b: -1, c: the scores are tied, d: one translation.
    result = correlate("pearson", _SCORES, _HUMAN, groups=_ITEMS)
    assert result == Correlation(pytest.approx(0.0, abs=1e-15), None, 0, 2)
    assert correlate("pearson", _SCORES, _HUMAN) == pearson(_SCORES, _HUMAN)
    # One value that is not finite is never hidden by the mean.
    assert (
        "at index 8"
        in correlate("kendall-b", [*_SCORES[:-1], math.nan], _HUMAN, groups=_ITEMS).reason
    )
    result = correlate("pearson", [1.0, 2.0, None], [1.0, 2.0, 3.0], groups=["a", "b", "c"])
    why = (
        "undefined in each of the 2 groups, in the first because a correlation needs at least 2 "
        "segments"
    )
    assert result.reason.startswith(why)
    assert (result.left_out, result.undefined_groups) == (1, 2)
    assert correlate("pearson", [None], [1.0], groups=["a"]).reason == "there is no segment"
    with pytest.raises(InputError, match="coefficient"):
        correlate("kendall", _SCORES, _HUMAN)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_groups_count_the_same_whatever_their_size_and_order(name: str) -> None:
    generator = np.random.default_rng(5)
    groups = generator.permutation(np.repeat(["x", "y", "z"], [4, 9, 20]))
    scores, human = generator.normal(size=(2, 33))
    expected = np.mean(
        [
            COEFFICIENTS[name](scores[groups == label], human[groups == label]).value
            for label in "xyz"
        ]
    )
    assert correlate(name, scores, human, groups=groups).value == pytest.approx(expected, abs=1e-12)


# Agreement on pairs, against brute force.


def test_accuracy_of_systems() -> None:
    assert pairwise_accuracy([1, 2, 3], [10, 30, 20]).value == pytest.approx(2 / 3)
    # The pairs (a, b) and (a, c): tied by one side alone; (b, c): by both.
    assert pairwise_accuracy([1, 1, 1], [1, 2, 2]).value == pytest.approx(1 / 3)
    assert pairwise_accuracy([1, None, 3, 4], [1, 2, 3, None]) == Correlation(1.0, None, 2)
    one = "pairs need at least 2 systems with a score and a judgement, there is 1"
    assert pairwise_accuracy([0.3], [0.2]).reason == one
    assert "not finite" in pairwise_accuracy([1, math.nan], [1, 2]).reason


def _brute_force(scores: list[float], human: list[float], items: list[int]) -> float | None:
    """Tries every epsilon, counts every pair."""
    by_item = [[i for i, item in enumerate(items) if item == label] for label in sorted(set(items))]
    pairs = [list(itertools.combinations(members, 2)) for members in by_item if len(members) > 1]
    best = []
    for epsilon in {0.0, *(abs(scores[i] - scores[j]) for group in pairs for i, j in group)}:
        shares = []
        for group in pairs:
            differences = [(scores[i] - scores[j], human[i] - human[j]) for i, j in group]
            shares.append(
                np.mean(
                    [
                        np.sign(ours) * (abs(ours) > epsilon) == np.sign(own)
                        for ours, own in differences
                    ]
                )
            )
        best.append(np.mean(shares) if pairs else math.nan)
    return max(best) if pairs else None


@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=20
    )
)
def test_tie_calibration_finds_what_trying_every_epsilon_finds(
    rows: list[tuple[int, int, int]],
) -> None:
    scores, human, items = (
        [float(value) for value in column] for column in zip(*rows, strict=True)
    )
    found, expected = (
        tie_calibrated_accuracy(scores, human, items),
        _brute_force(scores, human, items),
    )
    assert found.known == (None if expected is None else pytest.approx(expected, abs=1e-12))


def test_tie_calibration_by_hand() -> None:
    # s: people tie the first two, the metric is 0.1 apart there; t: the metric is 0.05 apart and
    # right.
    scores, human, items = [0.5, 0.6, 0.9, 0.40, 0.45], [1, 1, 2, 1, 2], ["s", "s", "s", "t", "t"]
    # epsilon 0: (2/3 + 1) / 2; epsilon 0.05 loses t; epsilon 0.1: (3/3 + 0) / 2.
    assert tie_calibrated_accuracy(scores, human, items).value == pytest.approx(5 / 6)
    # Without the judgement of t's second translation there is no pair in t.
    without = tie_calibrated_accuracy(scores, [*human[:4], None], items)
    assert without == Correlation(pytest.approx(1.0), None, 1, 1)
    reason = "no item has two translations with a score and a judgement"
    assert tie_calibrated_accuracy([1.0, 2.0], [1.0, 2.0], ["s", "t"])[1:] == (reason, 0, 2)
    assert "not finite" in tie_calibrated_accuracy([math.nan, 1.0], [1.0, 2.0], ["s", "s"]).reason


def _set(systems: int = 4, items: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scores, judgements, items and systems, system after system."""
    generator = np.random.default_rng(4)
    human = generator.normal(size=(systems, 1)) / 2 + generator.normal(size=(systems, items))
    scores = human + generator.normal(size=(systems, items))
    rows, columns = np.indices(human.shape)
    return scores.ravel(), human.ravel(), columns.ravel(), rows.ravel()


def test_soft_accuracy_against_swapping_the_scores_of_each_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores, human, items, systems = _set()
    every = np.array(list(itertools.product([1.0, -1.0], repeat=8)))
    monkeypatch.setattr(
        correlation, "sign_flips", lambda resamples, n, seed: [every[:100], every[100:]]
    )
    found = soft_pairwise_accuracy(scores, human, items, systems, resamples=len(every))

    def p(values: np.ndarray, i: int, j: int) -> float:
        a, b = values[systems == i], values[systems == j]
        leads = [
            np.where(signs > 0, a, b).mean() - np.where(signs > 0, b, a).mean() for signs in every
        ]
        return (1 + sum(lead >= a.mean() - b.mean() - 1e-12 for lead in leads)) / (len(every) + 1)

    differences = [
        abs(p(human, i, j) - p(scores, i, j)) for i, j in itertools.combinations(range(4), 2)
    ]
    assert found.value == pytest.approx(1 - np.mean(differences), abs=1e-12)


def test_soft_accuracy_of_people_order_seed_and_missing_items() -> None:
    scores, human, items, systems = _set(items=50)
    assert soft_pairwise_accuracy(3 * human + 1, human, items, systems).value == pytest.approx(1.0)
    # Opposed p-values: |p - (1 - p)| is large where people are sure.
    assert soft_pairwise_accuracy(-human, human, items, systems).value < 0.5
    value = soft_pairwise_accuracy(scores, human, items, systems).value
    assert soft_pairwise_accuracy(scores, human, items, systems, seed=2).value != value
    order = np.argsort(items, kind="stable")
    ordered = (column[order] for column in (scores, human, items, systems))
    assert soft_pairwise_accuracy(*ordered).value == pytest.approx(value, abs=1e-12)
    # Only items that every system has count.
    partial = np.where((systems == 2) & (items == 5), None, human.astype(object))
    kept = items != 5
    expected = soft_pairwise_accuracy(scores[kept], human[kept], items[kept], systems[kept])
    assert soft_pairwise_accuracy(scores, partial, items, systems) == expected._replace(left_out=4)


def test_soft_accuracy_that_is_not_defined() -> None:
    assert "there is 1" in soft_pairwise_accuracy([1.0, 2.0], [1.0, 2.0], [0, 1], ["a", "a"]).reason
    assert "there are 0" in soft_pairwise_accuracy([None], [1.0], [0], ["a"]).reason
    apart = soft_pairwise_accuracy([1.0, 2.0], [1.0, 2.0], [0, 1], ["a", "b"])
    assert (apart.reason, apart.left_out) == (
        "no item has a score and a judgement for every system",
        2,
    )
    assert (
        "not finite"
        in soft_pairwise_accuracy([1.0, math.nan], [1.0, 2.0], [0, 0], ["a", "b"]).reason
    )
    with pytest.raises(InputError, match="segment 3 has the system and the item of another one"):
        soft_pairwise_accuracy([1.0] * 4, [1.0] * 4, [0, 0, 1, 0], ["a", "b", "a", "b"])


def test_darr() -> None:
    scores = [0.9, 0.5, 0.5, 0.1, 0.3, 0.2]
    people = [90.0, 65.0, 40.0, 64.9, 20.0, 80.0]
    # s: 90 over 65, 40 and 64.9: concordant thrice; 65 over 40: tied by the metric, so discordant;
    # 65, 64.9 and 64.9, 40 are too close. t: 80 over 20: discordant. (3 - 2) / 5
    assert darr_kendall(scores, people, ["s", "s", "s", "s", "t", "t"]).value == pytest.approx(0.2)
    alone = darr_kendall([0.1, 0.2, None], [0.0, 100.0, 50.0], ["s", "t", "s"])
    assert alone.reason == "no two translations of one item were judged at least 25 points apart"
    assert alone.left_out == 1
    assert "not finite" in darr_kendall([0.1, math.nan], [0.0, 100.0], ["s", "s"]).reason
    assert "not finite" in ranked_kendall([0.1, math.nan], np.array([[0, 1]])).reason


def test_darr_against_counting_pair_by_pair() -> None:
    generator = np.random.default_rng(3)
    items = generator.integers(0, 20, 150)
    people = generator.integers(0, 101, 150).astype(float)
    scores = np.round(people / 100 + generator.normal(0, 0.4, 150), 1)
    pairs = [(i, j) for i, j in itertools.permutations(range(150), 2) if items[i] == items[j]]
    right = [scores[i] > scores[j] for i, j in pairs if people[i] - people[j] >= 25]
    expected = 2 * np.mean(right) - 1
    assert darr_kendall(scores, people, items).value == pytest.approx(expected, abs=1e-12)
