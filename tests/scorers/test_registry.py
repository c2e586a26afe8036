"""The metrics by name: what they compare with, which options they take, and that all of them are there."""

import argparse
import ast
import inspect
from pathlib import Path

import pytest

from mtmetrics.artifacts.presets import load_preset
from mtmetrics.cli.options import add_metric_options
from mtmetrics.errors import InputError
from mtmetrics.layout import metric_names, metric_path
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.registry import METRICS


@pytest.mark.parametrize(
    ("metric", "given", "asked", "column", "option"),
    [
        ("xmoverscore", ["sources"], None, "sources", {}),
        ("bertr", ["sources", "references"], None, "references", {"against": "reference"}),
        ("bertr", ["sources"], None, "sources", {"against": "source"}),
        ("distilscore", ["sources", "references"], None, "sources", {"against": "source"}),
        ("distilscore", ["sources", "references"], "reference", "references", {"against": "reference"}),
        ("sentsim", ["references"], None, "references", {"setting": "mt-ref"}),
        ("sentsim", ["sources", "references"], "src-mt", "sources", {"setting": "src-mt"}),
    ],
)
def test_what_is_compared(metric: str, given: list, asked: str | None, column: str, option: dict) -> None:
    assert METRICS[metric].choose(given, asked) == (column, option)


@pytest.mark.parametrize(
    ("metric", "given", "asked", "message"),
    [
        ("xmoverscore", ["references"], None, "xmoverscore compares predictions with sources; pass sources"),
        ("sentsim", ["sources", "references"], None, "pass setting='src-mt' or setting='mt-ref'"),
        ("sentsim", ["sources"], "mt-ref", "setting='mt-ref' compares with references; pass references"),
        ("bertr", ["sources"], "target", "against 'target': must be one of source, reference"),
        ("bertr", [], None, "pass sources or references"),
    ],
)
def test_what_cannot_be_compared(metric: str, given: list, asked: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        METRICS[metric].choose(given, asked)


def test_every_script_has_a_scorer_that_says_its_name() -> None:
    assert set(metric_names()) <= METRICS.keys()
    for name in metric_names():
        scorer = METRICS[name].made_by()
        assert issubclass(scorer, Scorer)
        assert scorer.metric == name


def test_an_option_is_declared_once() -> None:
    """Settings that ``from_preset`` passes on as they are, such as `drop_rate`, stand in ``__init__`` alone."""
    made_by = METRICS["xmoverscore"].made_by()
    assert "drop_rate" not in inspect.signature(made_by.from_preset).parameters
    assert METRICS["xmoverscore"].options()["drop_rate"].default is None
    assert "remapping" not in METRICS["xmoverscore"].options()


def test_the_command_line_has_a_flag_for_every_option() -> None:
    parser = argparse.ArgumentParser()
    add_metric_options(parser)
    flags = {flag for action in parser._actions for flag in action.option_strings} | {"--lp"}
    named = {"lang_pair": "lp"}
    names = {name for metric in METRICS.values() for name in metric.options()}
    for name in names - {"pool", "seed"}:
        assert f"--{named.get(name, name).replace('_', '-')}" in flags


@pytest.mark.parametrize("name", metric_names())
def test_compute_takes_every_option(name: str) -> None:
    script = ast.parse(Path(metric_path(name), f"{name}.py").read_text(encoding="utf-8"))
    [compute] = [node for node in ast.walk(script) if isinstance(node, ast.FunctionDef) and node.name == "_compute"]
    taken = {argument.arg for argument in compute.args.args} - {"self", "predictions", "sources", "references"}
    options = {option for option in taken if not option.startswith("return_")}
    assert options == METRICS[name].options().keys() - {"preset", "pool"}


@pytest.mark.parametrize("metric", ["xmoverscore", "uscore"])
def test_paper_names_a_language_model_of_each_target_that_its_authors_had_one_for(metric: str) -> None:
    models = load_preset(metric, "paper").settings["language_models"]
    assert list(models) == ["en", "de", "zh", "ru"]  # evaluate.load prepares the first one
    assert len({table["model"] for table in models.values()}) == 4
    assert {table["start_token"] for table in models.values()} == {"short"}
