"""Columns side by side: None leaves a position out, NaN does not."""

import math

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.columns import codes, complete


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


def test_nothing() -> None:
    columns = complete({"a": [], "b": []})
    assert columns.left_out == 0
    assert columns.values["a"].shape == (0,)


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
