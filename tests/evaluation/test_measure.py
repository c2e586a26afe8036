"""Which number says how scores agree with judgements."""

import math

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.judged import JudgedSegments, JudgedSystems
from mtmetrics.evaluation.measure import NAMES, Judgements, Measure


def segments(human: list[float], **fields: object) -> JudgedSegments:
    n = len(human)
    fields = {"systems": [None] * n, "items": ["a", "a", "b", "b"][:n]} | fields
    return JudgedSegments("f", "de-en", ["x"] * n, ["y"] * n, [None] * n, human=np.array(human, dtype=float), **fields)


def test_rows_without_a_judgement_are_left_out() -> None:
    judgements = Judgements.of(segments([1.0, math.nan, 3.0, 2.0], raw_human=np.array([10.0, 20.0, math.nan, 40.0])))
    assert judgements.human.tolist() == [1.0, 3.0, 2.0]
    assert judgements.items == ["a", "b", "b"]
    assert judgements.raw_human == [10.0, None, 40.0]
    assert judgements.take([0, 10, 20, 30]) == [0, 20, 30]
    assert Measure().of(judgements.take([1.0, -99.0, 3.0, 2.0]), judgements).value == pytest.approx(1.0)


def test_groups() -> None:
    judgements = Judgements.of(segments([1, 2, 11, 12], systems=["s", "t", "s", "t"]))
    scores = [5.0, 6.0, 1.0, 2.0]
    assert Measure("pearson").of(scores, judgements).value < 0
    assert Measure("pearson", "item").of(scores, judgements).value == pytest.approx(1.0)
    assert Measure("pearson", "system").of(scores, judgements).value == pytest.approx(-1.0)
    assert Measure("spearman", "item").label == "spearman by item"


def test_pairs_of_translations_of_one_source() -> None:
    judgements = Judgements.of(segments([1, 2, 1, 1], raw_human=np.array([10.0, 90.0, 10.0, 30.0])))
    assert Measure("darr").of([1.0, 2.0, 9.0, 8.0], judgements).value == 1.0  # the second pair is closer than 25 points
    assert Measure("acc23").of([1.0, 2.0, 8.0, 8.0], judgements).value == 1.0
    assert Measure("darr").of([1.0, 2.0], Judgements.of(segments([1, 2]))).reason is not None


def test_soft_pairwise_accuracy_needs_systems() -> None:
    human = [1, 2, 11, 12]
    judgements = Judgements.of(segments(human, systems=["s", "t", "s", "t"]))
    assert (
        Measure("spa").of([5.0, 6.0, 1.0, 2.0], judgements).value == 1.0
    )  # by people and by the metric, t is better on both items
    assert Measure("spa").of([6.0, 5.0, 2.0, 1.0], judgements).value < 0.5
    assert "name of its system" in str(Measure("spa").of([5.0, 6.0, 1.0, 2.0], Judgements.of(segments(human))).reason)


def test_whole_systems() -> None:
    judgements = Judgements.of(
        JudgedSystems("f", "de-en", ["x"], [None], {"s": ["y"], "t": ["y"], "u": ["y"]}, {"t": 2.0, "s": 1.0, "u": 3.0})
    )
    assert judgements.human.tolist() == [1.0, 2.0, 3.0]
    assert Measure().of([1.0, 2.0, 3.0], judgements).value == pytest.approx(1.0)
    assert Measure("acc23").of([1.0, 2.0, 3.0], judgements).reason is not None
    with pytest.raises(InputError, match="whole systems"):
        Measure("pearson", "item").of([1.0, 2.0, 3.0], judgements)


def test_unknown_names_and_groups_that_say_nothing() -> None:
    with pytest.raises(InputError, match="coefficient 'tau'"):
        Measure("tau")
    with pytest.raises(InputError, match="group 'file'"):
        Measure("pearson", "file")
    with pytest.raises(InputError, match="group 'item': must be one of none"):
        Measure("acc23", "item")
    assert NAMES[0] == "pearson"
