"""The form of ``--metric`` that several commands share."""

import argparse

import pytest

from mtmetrics.cli.options import add_metric_options, metric_specs
from mtmetrics.errors import InputError
from mtmetrics.evaluation.run import MetricSpec


def specs(*argv: str) -> dict[str, MetricSpec]:
    parser = argparse.ArgumentParser()
    add_metric_options(parser, several=True)
    return metric_specs(parser.parse_args(argv))


def test_each_metric_has_its_own_preset_and_options() -> None:
    texts = ("xmoverscore:mini:lm_weight=0.5,ngram=1", "sentsim::normalize=fixed")
    assert specs("--metric", texts[0], "--metric", texts[1], "--preset", "minilm") == {
        texts[0]: MetricSpec("xmoverscore", "mini", (("lm_weight", 0.5), ("ngram", 1))),
        texts[1]: MetricSpec("sentsim", "minilm", (("normalize", "fixed"),)),
    }


def test_a_single_metric_takes_the_options_of_the_command_for_what_it_does_not_say() -> None:
    (spec,) = specs("--metric", "sentsim:mini:layer=2", "--combine", "sss+wmd", "--layer", "3").values()
    assert (spec.metric, spec.preset, dict(spec.options)) == ("sentsim", "mini", {"layer": 2, "combine": "sss+wmd"})


def test_without_metric_it_is_xmoverscore_as_in_other_commands() -> None:
    assert specs() == {"xmoverscore": MetricSpec("xmoverscore", "paper")}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--metric", "bertr", "--metric", "bertr"], "--metric bertr: given twice"),
        (["--metric", "bertr", "--metric", "esim", "--layer", "1"], "--layer: for which metric"),
        (["--metric", "bertr:mini:layer"], "'layer' cannot be used"),
    ],
)
def test_refusals(argv: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        specs(*argv)
