"""Several metrics in one call: ``--metric NAME[:PRESET[:OPTION=VALUE,...]]``, as often as there are metrics."""

import argparse
from typing import NoReturn

from mtmetrics.cli.options import DEFAULT_METRIC, add_model_options, add_scorer_options
from mtmetrics.errors import InputError


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
    group.add_argument("--preset", default="paper", metavar="NAME|DIR", help="preset of the metrics that name none (default: %(default)s)")
    add_scorer_options(parser)
    add_model_options(parser)


def metric_specs(args: argparse.Namespace) -> dict[str, argparse.Namespace]:
    """What the user wrote for each metric -> the arguments as they would stand in a call with that metric alone.

    An option of a metric is an option of the command without its dashes. It counts more than the option of the command itself, which holds
    for all metrics.

    Args:
        args: of a command with `add_metrics_options`.

    Raises:
        InputError: a metric is given twice, without a name, or with an option that does not exist or a value that it cannot have.
    """
    specs: dict[str, argparse.Namespace] = {}
    for text in args.metric or [DEFAULT_METRIC]:
        if text in specs:
            raise InputError(f"--metric {text}: given twice")
        metric, preset, options = [*text.split(":", 2), "", ""][:3]
        if not metric:
            raise InputError(f"--metric {text!r}: a metric's name is needed before the colon, such as {DEFAULT_METRIC}:mini")
        given = argparse.Namespace(**vars(args) | {"metric": metric, "preset": preset or args.preset})
        specs[text] = _with_options(given, options, text)
    return specs


def _with_options(given: argparse.Namespace, options: str, spec: str) -> argparse.Namespace:
    parser = _OptionParser(add_help=False, allow_abbrev=False)
    add_scorer_options(parser)
    flags = []
    for option in options.split(",") if options else []:
        name, *value = option.split("=", 1)
        if not name.strip():
            raise InputError(f"--metric {spec}: an option without a name")
        flags.append("=".join(["--" + name.strip().replace("_", "-"), *value]))
    try:
        return parser.parse_args(flags, given)
    except InputError as error:
        raise InputError(f"--metric {spec}: {error}") from None


class _OptionParser(argparse.ArgumentParser):
    """Raises what it finds wrong."""

    def error(self, message: str) -> NoReturn:
        raise InputError(message)
