"""Sides that metrics compare with."""

from pathlib import Path

import pytest

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.side import Side, SideChoice, resolve_side


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


def test_a_side_that_there_is_not_is_an_error_of_the_user() -> None:
    with pytest.raises(InputError, match="against 'sources': must be one of source, reference"):
        METRICS["bilstm"].explicit_side("mini", {"against": "sources"})


@pytest.mark.parametrize("against", ["sources", "both"])
def test_a_preset_for_a_side_that_the_metric_does_not_offer_is_refused(
    against: str, tmp_path: Path, tiny_encoder: Path
) -> None:
    encoder = f'[encoder]\nmodel = "{tiny_encoder}"\nlayer = 2\n'
    score = f'[score]\nagainst = "{against}"\n'
    (tmp_path / "preset.toml").write_text(f'metric = "bertr"\n{encoder}{score}', encoding="utf-8")
    with pytest.raises(ArtifactError, match=rf"against '{against}' in \[score\] must be one of"):
        load_scorer("bertr", str(tmp_path))


@pytest.mark.parametrize("given", [None, ["sources", "references"]])
def test_the_advice_names_only_sides_that_the_metric_offers(given: list | None) -> None:
    choice = SideChoice("toy", (Side.SOURCE, Side.BOTH), None)
    with pytest.raises(InputError, match="pass against='source' or against='both'$"):
        resolve_side(choice, None, None, given)
