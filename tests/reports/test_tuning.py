"""Values to try without a request, and the remarks on a tuning."""

import dataclasses

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.reports import tuning as module
from mtmetrics.reports.tuning import Gain, Tuning, default_values_to_try
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.spec import MetricSpec


def test_weights_of_uscore_are_tried_without_pseudo_references_first() -> None:
    weights = default_values_to_try("uscore")["weights"]
    assert len(weights) == len(set(weights)) == 231
    assert weights[0] == "wmd=1+snt=1"
    assert all("pseudo" not in text for text in weights[:66])


def test_another_name_of_a_metric_has_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"sim": METRICS["sentsim"], "e": METRICS["esim"]}
    monkeypatch.setattr(module, "find_metric", names.__getitem__)
    assert default_values_to_try("sim") == module._VALUES_TO_TRY["sentsim"]
    with pytest.raises(InputError, match="^e: has no values that are tried by default"):
        default_values_to_try("e")


def tuning(gain: Gain, unusable: dict[str, str] | None = None) -> Tuning:
    """A tuning that chose another layer, with some gain."""
    metric = MetricSpec.parse("bertr:mini")
    return Tuning(
        metric=metric,
        tuned=metric.having(layer=2),
        steps=[],
        before=0.5,
        after=0.5 + gain.value,
        gain=gain,
        judgement_count=80,
        folds=5,
        coefficient="pearson",
        signatures=[],
        unusable=unusable or {},
    )


@pytest.mark.parametrize(
    ("gain", "remark"),
    [
        (Gain(0.1, 0.05, 0.15), None),
        (Gain(0.1, 0.0, 0.15), "could be chance: its interval holds 0"),
        (Gain(-0.05, -0.15, 0.02), "could be chance: its interval holds 0"),
        (Gain(-0.1, -0.15, 0.0), "could be chance: its interval holds 0"),
        (Gain(-0.1, -0.15, -0.05), "is a loss: its whole interval lies below 0"),
        (Gain(0.1, np.nan, np.nan), "has no interval"),
    ],
)
def test_the_remark_says_where_the_interval_lies(gain: Gain, remark: str | None) -> None:
    remarks = tuning(gain).remarks
    if remark is None:
        assert remarks == []
    else:
        [line] = remarks
        assert remark in line


def test_a_choice_of_nothing_is_neither_gain_nor_loss() -> None:
    unchanged = tuning(Gain(-0.1, -0.15, -0.05))
    unchanged = dataclasses.replace(unchanged, tuned=unchanged.metric)
    assert unchanged.remarks == ["no option is better than what the metric had before"]


def test_values_that_failed_are_not_said_to_be_untried() -> None:
    [line] = tuning(Gain(0.1, 0.05, 0.15), {"encoder=none": "no such folder"}).remarks
    assert line == "cannot be used: encoder=none: no such folder"
