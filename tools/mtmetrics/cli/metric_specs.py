"""Several metrics in one call: ``--metric NAME[:PRESET[:OPTION=VALUE,...]]``, as often as there are metrics."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtmetrics.cli.options import metric_options
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.evaluation.run import MetricSpec

USUAL_METRIC = "xmoverscore"


def metric_specs(args: argparse.Namespace, *, usual: Sequence[str] = (USUAL_METRIC,)) -> "dict[str, MetricSpec]":
    """The metrics as the user names them, with --preset and, for a single metric, the other options.

    Args:
        args: of a command with ``add_metric_options(..., several=True)``.
        usual: what is taken where the user names none.

    Returns:
        What the user wrote for each metric -> the metric.

    Raises:
        InputError: a metric is given twice, options that could belong to several metrics, or as `MetricSpec.parse`.
    """
    from mtmetrics.evaluation.run import MetricSpec

    named = args.metric or [*usual]
    twice = [text for text in named if named.count(text) > 1]
    if twice:
        raise InputError(f"--metric {twice[0]}: given twice")
    own = ("metric", "preset", "lang_pair")
    options = {name: value for name, value in metric_options(args).items() if value is not None and name not in own}
    if len(named) != 1 and options:
        name = next(iter(options))
        raise InputError(
            f"option {name}: for which metric? Write it as in --metric {USUAL_METRIC}:{args.preset}:{name}=VALUE"
        )
    return {text: MetricSpec.parse(text).filled(args.preset, options) for text in named}
