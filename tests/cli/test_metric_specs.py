"""The form of ``--metric`` that several commands share."""

import argparse

import pytest

from mtmetrics.cli.metric_specs import add_metrics_options, metric_specs
from mtmetrics.errors import InputError
from mtmetrics.evaluation.specs import MetricSpec


def specs(*argv: str) -> dict[str, MetricSpec]:
    parser = argparse.ArgumentParser()
    add_metrics_options(parser)
    return metric_specs(parser.parse_args(argv))


def test_each_metric_has_its_own_options_and_those_of_the_call() -> None:
    found = specs(
        *("--metric", "xmoverscore:mini:lm_weight=0.5,ngram=1", "--metric", "sentsim::normalize=fixed", "--metric", "bertr"),
        *("--preset", "minilm", "--layer", "3", "--ngram", "2", "--combine", "sss+wmd"),
    )
    assert list(found) == ["xmoverscore:mini:lm_weight=0.5,ngram=1", "sentsim::normalize=fixed", "bertr"]
    common = {"layer": 3, "ngram": 2, "parts": "sss+wmd"}
    assert [(spec.metric, spec.preset, dict(spec.options)) for spec in found.values()] == [
        ("xmoverscore", "mini", common | {"lm_weight": 0.5, "ngram": 1}),
        ("sentsim", "minilm", common | {"normalize": "fixed"}),
        ("bertr", "minilm", common),
    ]


def test_without_metric_it_is_xmoverscore_with_its_own_preset() -> None:
    assert specs() == {"xmoverscore": MetricSpec("xmoverscore")}


def test_a_metric_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match="--metric bertr: given twice"):
        specs("--metric", "bertr", "--metric", "bertr")
