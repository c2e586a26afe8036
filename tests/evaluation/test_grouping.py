"""Correlations within groups, means over systems."""

import math

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import COEFFICIENTS, pearson
from mtmetrics.evaluation.grouping import correlate, pairs_within, system_means

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


def test_system_means_keep_nan_and_name_every_system() -> None:
    means = system_means([1.0, None, 2.0, math.nan, 4.0], ["b", "c", "b", "a", "d"])
    assert list(means) == ["b", "c", "a", "d"]
    assert (means["b"], means["c"], means["d"]) == (1.5, None, 4.0)
    assert math.isnan(means["a"])


def test_pairs_within_groups() -> None:
    first, second = pairs_within(np.array([0, 1, 0, 2, 1, 0]))
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == [(0, 2), (0, 5), (1, 4), (2, 5)]
    assert [side.size for side in pairs_within(np.array([], dtype=int))] == [0, 0]
