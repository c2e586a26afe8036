"""Coefficients of agreement, within groups too, and the columns that they are computed from."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mtmetrics.errors import InputError
from mtmetrics.evaluation import correlation
from mtmetrics.evaluation.correlation import (
    COEFFICIENTS,
    Correlation,
    codes,
    complete,
    correlate,
    mean,
    pairs_within,
    pearson,
    sample_correlations,
)

_COLUMN = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


@pytest.mark.parametrize(
    ("human", "value"), [([10, 20, 30], 1.0), ([3, 2, 1], -1.0), ([1, -2, 1], 0.0), ([-5, 5], 1.0), ([5, -5], -1.0)]
)
def test_extremes(human, value):
    assert pearson(range(1, len(human) + 1), human) == Correlation(pytest.approx(value, abs=1e-15), None)


# Of the 6 pairs 3 are concordant, 1 is discordant, 1 is tied on each side; 3 distinct values on each side.
_TIED = [1, 2, 2, 3], [1, 3, 2, 2]


@pytest.mark.parametrize(
    ("name", "columns", "value"),
    [
        # Centred: (-1.5, -.5, .5, 1.5) and (-.5, -1.5, 1.5, .5); product 3, squared lengths 5 and 5.
        ("pearson", ([1, 2, 3, 4], [2, 1, 4, 3]), 0.6),
        ("spearman", _TIED, 0.5),  # ranks less their mean: (-1.5, 0, 0, 1.5) and (-1.5, 1.5, 0, 0)
        ("kendall-b", _TIED, 0.4),  # (3 - 1) / sqrt(5 * 5)
        ("kendall-c", _TIED, 0.375),  # 2 * (3 - 1) * 3 / (16 * 2)
    ],
)
def test_values_worked_out_by_hand(name, columns, value):
    assert COEFFICIENTS[name](*columns).value == pytest.approx(value, abs=1e-15)


_SCIPY = {
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "kendall-b": lambda x, y: stats.kendalltau(x, y).statistic,
    "kendall-c": lambda x, y: stats.kendalltau(x, y, variant="c").statistic,
}


@pytest.mark.parametrize("name", COEFFICIENTS)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=2, max_size=25))
def test_agrees_with_scipy_on_ties(name, pairs):
    x, y = np.array(pairs, dtype=float).T
    result = COEFFICIENTS[name](x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert math.isnan(result.value)
        assert "constant" in result.reason
    else:
        assert result.value == pytest.approx(_SCIPY[name](x, y), abs=1e-12)


@pytest.mark.parametrize("name", ["spearman", "kendall-b", "kendall-c"])
@given(st.lists(st.floats(-100, 100), min_size=3, max_size=20, unique=True), st.integers(0, 2**32 - 1))
def test_ranks_alone_count(name, scores, seed):
    human = np.random.default_rng(seed).normal(size=len(scores))
    ranked = stats.rankdata(scores)
    value = COEFFICIENTS[name](ranked, human).value
    assert COEFFICIENTS[name](ranked**3, human).value == pytest.approx(value, abs=1e-12)
    assert COEFFICIENTS[name](-ranked, human).value == pytest.approx(-value, abs=1e-12)


@pytest.mark.parametrize("name", COEFFICIENTS)
class TestEveryCoefficient:
    def test_none_leaves_a_segment_out_and_is_counted(self, name):
        scores, human = [1.0, None, 2.0, 3.0, 9.0], [2.0, 7.0, 1.0, 3.0, None]
        result = COEFFICIENTS[name](scores, human)
        assert result == COEFFICIENTS[name]([1.0, 2.0, 3.0], [2.0, 1.0, 3.0])._replace(left_out=2)
        assert result.reason is None

    @pytest.mark.parametrize(
        ("scores", "human", "reason"),
        [
            ([None] * 4, [1.0, 2.0, 3.0, 4.0], "there are 0, 4 have no score or no judgement"),
            ([], [], "at least 2 segments, there are 0"),
            ([0.5], [0.7], "at least 2 segments, there is 1"),
            ([0.0, 0.0], [0.0, 1.0], "the scores are constant"),
            ([0.1] * 7, list(range(7)), "the scores are constant"),
            ([2.0, 2.0, 2.0], [1.0, 2.0, 3.0], "the scores are constant"),
            ([1.0, 2.0, 3.0], [2.0, 2.0, None], "the human judgements are constant"),
            ([1.0, math.nan, 3.0], [1, 2, 3], "the scores hold 1 values that are not finite, the first at index 1"),
            ([None, 1.0, 3.0], [1, 2, -math.inf], "judgements hold 1 values that are not finite, the first at index 2"),
        ],
    )
    def test_what_is_not_defined_has_a_reason(self, name, scores, human, reason):
        result = COEFFICIENTS[name](scores, human)
        assert math.isnan(result.value)
        assert reason in result.reason


def test_rounding_noise_is_no_signal():
    noisy = 1000.0 * np.array([0.1 + 0.2, 0.3, 0.1 + 0.2, 0.3])
    assert np.ptp(noisy) > 0
    assert pearson(noisy, [1, 2, 3, 4]).reason == "the scores are constant"


def test_small_differences_beside_a_large_offset_count():
    assert pearson(1e6 + np.array([1, 2, 3, 4]) * 1e-3, [2, 1, 4, 3]).value == pytest.approx(0.6, abs=1e-5)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_neither_overflow_nor_underflow(scale):
    assert pearson(np.array([1, 2, 3, 4]) * scale, [2, 1, 4, 3]).value == pytest.approx(0.6, abs=1e-12)


def test_float32_scores_are_correlated_in_float64():
    scores = np.linspace(0.9, 0.9001, 200).astype(np.float32)
    human = np.sin(np.arange(200))
    assert pearson(scores, human).value == pytest.approx(np.corrcoef(scores.astype(np.float64), human)[0, 1], abs=1e-12)


@pytest.mark.parametrize(("scores", "human"), [([1, 2], [1, 2, 3]), ([[1, 2]], [[1, 2]])])
def test_other_shapes_are_refused(scores, human):
    with pytest.raises(InputError, match="must be vectors of one length"):
        pearson(scores, human)


@given(_COLUMN, st.integers(0, 2**32 - 1))
def test_agrees_with_numpy_and_is_symmetric_and_bounded(scores, seed):
    human = np.random.default_rng(seed).normal(size=len(scores))
    result = pearson(scores, human)
    if result.reason is None:
        assert -1.0 <= result.value <= 1.0
        assert result.value == pytest.approx(pearson(human, scores).value, abs=1e-12)
        if np.std(scores) > 1e-6 * np.abs(scores).max():
            assert result.value == pytest.approx(np.corrcoef(scores, human)[0, 1], abs=1e-6)


def test_mean_over_sets_never_leaves_out_an_undefined_one():
    assert mean({"a": Correlation(0.5), "b": Correlation(-0.1)}) == Correlation(pytest.approx(0.2), None)
    result = mean({"a": Correlation(0.5), "b": Correlation(math.nan, "the scores are constant")})
    assert math.isnan(result.value)
    assert result.reason == "undefined for b"
    with pytest.raises(InputError, match="nothing to average"):
        mean({})


# Columns side by side.


def test_a_position_where_a_column_has_none_is_left_out_of_all() -> None:
    columns = complete({"a": [1, None, 3.0, 4], "b": np.array([5.0, 6.0, None, 8.0], dtype=object)})
    assert [column.tolist() for column in columns.values.values()] == [[1.0, 4.0], [5.0, 8.0]]
    assert columns.kept.tolist() == [True, False, False, True]
    assert columns.left_out == 2


def test_nan_is_kept_and_named_at_its_own_position() -> None:
    columns = complete({"a": [None, 1.0, math.nan, math.inf], "b": np.zeros(4)})
    assert columns.left_out == 1
    assert columns.not_finite == "the a hold 2 values that are not finite, the first at index 2"
    assert complete({"a": [None, 1.0], "b": [math.nan, 2.0]}).not_finite is None
    assert complete({"a": [], "b": []}).values["a"].shape == (0,)


@pytest.mark.parametrize(
    ("b", "message"),
    [
        ([1.0], "of one length"),
        ([[1.0], [2.0]], "of one length"),
        (["x", 2.0], "b: numbers or None"),
        ([10**400, 2.0], "b: numbers or None"),
    ],
)
def test_what_cannot_be_used_is_refused(b: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        complete({"a": [1.0, 2.0], "b": b})


def test_codes_follow_the_first_appearance_among_the_positions_that_are_kept() -> None:
    assert codes("items", ["z", "y", "x", "y", "x"], np.array([False, True, True, True, True])).tolist() == [0, 1, 0, 1]


def test_a_label_is_needed_only_where_the_position_counts() -> None:
    kept = np.array([True, False])
    assert codes("items", ["a", None], kept).tolist() == [0]
    with pytest.raises(InputError, match=r"items\[0\] is None"):
        codes("items", [None, "a"], kept)
    with pytest.raises(InputError, match="got 1 for 2 segments"):
        codes("items", ["a"], kept)


# Groups.

_SCORES = [1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 5.0, 5.0, 9.0]
_HUMAN = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 4.0]
_ITEMS = ["a", "a", "a", "b", "b", "b", "c", "c", "d"]


def test_the_mean_is_over_the_groups_that_say_something() -> None:
    # a: 1, b: -1, c: the scores are tied, d: one translation.
    result = correlate("pearson", _SCORES, _HUMAN, groups=_ITEMS)
    assert result.value == pytest.approx(0.0, abs=1e-15)
    assert (result.reason, result.undefined_groups) == (None, 2)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_groups_count_the_same_whatever_their_size_and_order(name: str) -> None:
    generator = np.random.default_rng(5)
    groups = generator.permutation(np.repeat(["x", "y", "z"], [4, 9, 20]))
    scores, human = generator.normal(size=(2, 33))
    expected = np.mean([COEFFICIENTS[name](scores[groups == label], human[groups == label]).value for label in "xyz"])
    assert correlate(name, scores, human, groups=groups).value == pytest.approx(expected, abs=1e-12)


def test_without_groups_all_segments_are_one() -> None:
    assert correlate("pearson", _SCORES, _HUMAN) == pearson(_SCORES, _HUMAN)


def test_one_value_that_is_not_finite_is_never_hidden_by_the_mean() -> None:
    result = correlate("kendall-b", [*_SCORES[:-1], math.nan], _HUMAN, groups=_ITEMS)
    assert math.isnan(result.value)
    assert "the first at index 8" in result.reason


def test_no_group_is_defined() -> None:
    result = correlate("pearson", [1.0, 2.0, None], [1.0, 2.0, 3.0], groups=["a", "b", "c"])
    assert math.isnan(result.value)
    assert result.reason.startswith(
        "undefined in each of the 2 groups, in the first because a correlation needs at least 2 segments"
    )
    assert (result.left_out, result.undefined_groups) == (1, 2)
    assert correlate("pearson", [None], [1.0], groups=["a"]).reason == "there is no segment"


def test_refusals() -> None:
    with pytest.raises(InputError, match="coefficient"):
        correlate("kendall", _SCORES, _HUMAN)
    with pytest.raises(InputError, match=r"groups\[1\] is None"):
        correlate("pearson", [1.0, 2.0], [1.0, 2.0], groups=["a", None])


def test_pairs_within_groups() -> None:
    first, second = pairs_within(np.array([0, 1, 0, 2, 1, 0]))
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == [(0, 2), (0, 5), (1, 4), (2, 5)]
    assert [side.size for side in pairs_within(np.array([], dtype=int))] == [0, 0]


# Samples given by counts, against samples written out.

_POINT = st.tuples(st.integers(-3, 3), st.integers(0, 4), st.lists(st.integers(0, 3), min_size=4, max_size=4))


@pytest.mark.parametrize("name", COEFFICIENTS)
@given(st.lists(_POINT, min_size=1, max_size=12))
def test_as_if_each_sample_were_written_out(name: str, points: list) -> None:
    x, y = (np.array([point[side] for point in points], dtype=float) for side in (0, 1))
    counts = np.array([point[2] for point in points], dtype=float).T
    found = sample_correlations(name, x, y, counts)
    for value, count in zip(found, counts.astype(int), strict=True):
        expected = COEFFICIENTS[name](np.repeat(x, count), np.repeat(y, count)).value
        assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_portions_of_the_sign_matrix_and_offsets_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    x, y = generator.normal(size=(2, 40))
    counts = generator.integers(0, 3, size=(7, 40)).astype(float)
    whole = sample_correlations(name, x, y, counts)
    monkeypatch.setattr(correlation, "_SIGNS_AT_ONCE", 100)
    assert sample_correlations(name, 1e4 + x, y * 1e-9, counts) == pytest.approx(whole, abs=1e-9)
