"""The form of ``--metric`` that several commands share."""

import argparse

import pytest

from mtmetrics.cli.metric_specs import add_metrics_options, metric_specs
from mtmetrics.cli.options import metric_options
from mtmetrics.errors import InputError


def specs(*argv: str) -> dict[str, argparse.Namespace]:
    parser = argparse.ArgumentParser()
    add_metrics_options(parser)
    return metric_specs(parser.parse_args(argv))


def test_each_metric_has_its_preset_and_options_and_those_of_the_call() -> None:
    found = specs(
        *("--metric", "xmoverscore:mini:lm-weight=0.5,ngram=1,no-normalize-vectors"),
        *("--metric", "sentsim::normalize=fixed,combine=sss+wmd"),
        *("--metric", "bertr", "--preset", "minilm", "--layer", "3", "--ngram", "2"),
    )
    assert list(found) == [
        "xmoverscore:mini:lm-weight=0.5,ngram=1,no-normalize-vectors",
        "sentsim::normalize=fixed,combine=sss+wmd",
        "bertr",
    ]
    first, second, third = map(metric_options, found.values())
    assert (first["metric"], first["preset"], first["layer"], first["ngram"], first["lm_weight"]) == ("xmoverscore", "mini", 3, 1, 0.5)
    assert first["normalize_vectors"] is False
    assert (second["metric"], second["preset"], second["normalize"], second["parts"]) == ("sentsim", "minilm", "fixed", "sss+wmd")
    assert (third["metric"], third["preset"], third["ngram"], third["normalize"]) == ("bertr", "minilm", 2, None)


def test_without_metric_it_is_xmoverscore_as_in_other_commands() -> None:
    ((name, args),) = specs().items()
    assert name == "xmoverscore"
    assert metric_options(args) == dict.fromkeys(metric_options(args)) | {"metric": "xmoverscore", "preset": "paper"}


def test_a_preset_may_be_a_folder_and_underscores_are_hyphens() -> None:
    (args,) = specs("--metric", "xmoverscore:./a=b/preset:lm_weight=1").values()
    assert (args.preset, args.lm_weight) == ("./a=b/preset", 1.0)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--metric", "bertr", "--metric", "bertr"], "--metric bertr: given twice"),
        (["--metric", ":mini"], "a metric's name is needed before the colon"),
        (["--metric", "bertr:mini:layer=x"], "--metric bertr:mini:layer=x: argument --layer: invalid int value: 'x'"),
        (["--metric", "bertr:mini:layer"], "argument --layer: expected one argument"),
        (["--metric", "bertr:mini:colour=red"], "unrecognized arguments: --colour=red"),
        (["--metric", "bertr:mini:device=cuda"], "unrecognized arguments: --device=cuda"),
        (["--metric", "bertr:mini:layer=1,"], "an option without a name"),
        (["--metric", "bertr:mini:special-tokens=yes"], "--special-tokens: ignored explicit argument 'yes'"),
    ],
)
def test_what_cannot_be_read_is_named(argv: list[str], message: str) -> None:
    with pytest.raises(InputError, match="--metric") as error:
        specs(*argv)
    assert message in str(error.value)
