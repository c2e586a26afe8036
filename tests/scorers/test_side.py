"""Sides that metrics compare with."""

import pytest

from mtmetrics.errors import InputError
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.side import Side, resolve_side


def resolved(name: str, options: dict, given: list[str] | None, preset: dict | None = None) -> Side:
    """The side that a metric compares with, by its options, the columns and the preset."""
    metric = METRICS[name]
    preset_side = None if preset is None else metric.side_choice.preset_side(preset)
    return resolve_side(metric.side_choice, metric.requested_side(options), preset_side, given)


@pytest.mark.parametrize(
    ("metric", "given", "options", "side"),
    [
        ("xmoverscore", ["sources"], {}, "source"),
        ("bertr", ["sources", "references"], {}, "reference"),
        ("bertr", ["sources"], {}, "source"),
        ("distilscore", ["sources", "references"], {}, "source"),
        ("distilscore", ["sources", "references"], {"against": "reference"}, "reference"),
        ("sentsim", ["references"], {}, "reference"),
        ("sentsim", ["sources", "references"], {"setting": "src-mt"}, "source"),
        ("sentsim", None, {"setting": "mt-ref", "against": "reference"}, "reference"),
    ],
)
def test_what_is_compared(metric: str, given: list | None, options: dict, side: str) -> None:
    assert resolved(metric, options, given) == side


@pytest.mark.parametrize(
    ("metric", "given", "options", "message"),
    [
        (
            "xmoverscore",
            ["references"],
            {},
            "xmoverscore compares predictions with sources; pass sources",
        ),
        (
            "xmoverscore",
            None,
            {"against": "reference"},
            "compares with sources only, not with a reference",
        ),
        ("sentsim", ["sources", "references"], {}, "pass against='source' or against='reference'"),
        (
            "sentsim",
            ["sources"],
            {"setting": "mt-ref"},
            "against='reference' compares with references; pass",
        ),
        (
            "sentsim",
            None,
            {"setting": "mt-ref", "against": "source"},
            "contradict; pass one of them",
        ),
        ("sentsim", None, {"setting": "ref"}, "setting 'ref': must be one of src-mt, mt-ref"),
        (
            "bertr",
            ["sources"],
            {"against": "target"},
            "against 'target': must be one of source, reference",
        ),
        ("bertr", [], {}, "pass sources or references"),
    ],
)
def test_what_cannot_be_compared(
    metric: str, given: list | None, options: dict, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        resolved(metric, options, given)


def test_a_preset_made_for_one_side_decides_where_both_are_given() -> None:
    both = ["sources", "references"]
    assert resolved("bertr", {}, both, {"score": {"against": "source"}}) == "source"
    assert resolved("sentsim", {}, both, {"mt-refs": {"en": {}}}) == "reference"
    assert resolved("esim", {}, ["references"], {"regressors": {"source": {}}}) == "reference"
