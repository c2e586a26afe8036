"""Several metrics in one call: ``--metric NAME[:PRESET[:OPTION=VALUE,...]]``, as often as there are metrics."""

import argparse
from typing import TYPE_CHECKING

from mtmetrics.cli.options import DEFAULT_METRIC, add_model_options, add_scorer_options, metric_options
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.evaluation.specs import MetricSpec


def add_metrics_options(parser: argparse.ArgumentParser) -> None:
    """Adds the choice of metrics, their common preset and options, and how models are run."""
    group = parser.add_argument_group("metrics")
    group.add_argument(
        "--metric",
        action="append",
        metavar="NAME[:PRESET[:OPTION=VALUE,...]]",
        help="metric, its preset and options, such as sentsim:minilm or xmoverscore:mini:ngram=1,lm=none; may be given several times "
        f"(default: {DEFAULT_METRIC})",
    )
    group.add_argument("--preset", metavar="NAME|DIR", help="preset of the metrics that name none (default: paper)")
    add_scorer_options(parser)
    add_model_options(parser)


def metric_specs(args: argparse.Namespace) -> "dict[str, MetricSpec]":
    """What the user wrote for each metric -> the metric, with the preset and options of the command for what it does not say itself.

    Args:
        args: of a command with `add_metrics_options`.

    Raises:
        InputError: a metric is given twice, or as `mtmetrics.evaluation.specs.MetricSpec.parse`.
    """
    from mtmetrics.evaluation.specs import MetricSpec

    common = {name: value for name, value in metric_options(args).items() if value is not None}
    for name in ("metric", "preset", "lang_pair"):
        common.pop(name, None)
    specs: dict[str, MetricSpec] = {}
    for text in args.metric or [DEFAULT_METRIC]:
        if text in specs:
            raise InputError(f"--metric {text}: given twice")
        specs[text] = MetricSpec.parse(text).filled(args.preset, common)
    return specs
