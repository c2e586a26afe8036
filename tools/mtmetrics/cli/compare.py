"""``mtmetrics compare``: which of several systems is better, and whether the difference is more than chance."""

import argparse
from typing import TYPE_CHECKING, Any

from mtmetrics.cli.io import Systems, read_systems
from mtmetrics.cli.options import (
    add_metric_options,
    add_output_options,
    add_row_options,
    metric_specs,
    model_pool,
    scoring,
)
from mtmetrics.cli.results import TABLE_FORMATS, pick_format, print_text
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.evaluation.run import MetricSpec
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.pool import ModelPool


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "compare",
        help="compare systems on one test set",
        description="Scores the translations of several systems with one or several metrics, and prints the mean of "
        "each system with its 95 % bootstrap interval, its rank, the significance of the difference between every two "
        "systems, and clusters of systems that cannot be told apart. Input: parallel files (-s, -r or both, and -t "
        "with a file per system), or one FILE of rows.",
    )
    keys = "source, reference or both, and outputs, an object: system name -> translation"
    add_row_options(parser, one_file=f"JSON Lines, plain or .gz, with the keys {keys}")
    test = parser.add_argument_group("test")
    for flag, options, text in (
        (
            "--test",
            ("permutation", "bootstrap"),
            "paired test between every two systems: permutation (approximate randomisation) or bootstrap",
        ),
        (
            "--correction",
            ("none", "holm"),
            "of the p-values of a metric for the number of pairs of systems; WMT's clusters are made without",
        ),
    ):
        test.add_argument(flag, choices=options, default=options[0], help=f"{text} (default: %(default)s)")
    text = "resamples of tests and intervals (default: %(default)s)"
    test.add_argument("--resamples", type=int, default=1000, help=text)
    test.add_argument("--seed", type=int, default=12345, help="of the resamples (default: %(default)s)")
    add_metric_options(parser, several=True)
    add_output_options(parser, TABLE_FORMATS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Reads everything, scores all systems with each metric, and prints the comparison."""
    args.format = pick_format(args.format)
    specs = metric_specs(args)
    systems = read_systems(args)
    if len(systems.predictions) < 2:
        only = f"only one system ({', '.join(systems.predictions)})"
        raise InputError(f"{only}: pass -t with a file for each; for one system: mtmetrics score")
    from mtmetrics.evaluation.compare import check_resampling, compare_systems, render_comparison

    resampling = {"correction": args.correction, "resamples": args.resamples, "seed": args.seed}
    check_resampling(len(systems.predictions), **resampling)
    pool = model_pool(args)
    # Every metric is loaded before the first one scores, so that a bad option of the last one does not cost an hour.
    scorers = {name: _loaded(name, spec, args, systems, pool) for name, spec in specs.items()}
    results, comparisons = {}, {}
    with scoring(len(scorers) * sum(map(len, systems.predictions.values()))):
        for name, scorer in scorers.items():
            results[name] = scorer.score_systems(systems.others[scorer.compares], systems.predictions)
    for name, of_metric in results.items():
        scores = {system: result.segments for system, result in of_metric.items()}
        comparisons[name] = compare_systems(scores, test=args.test, **resampling)
    print_text(render_comparison(comparisons, results, args.format), args)
    return 0


def _loaded(name: str, spec: "MetricSpec", args: argparse.Namespace, systems: Systems, pool: "ModelPool") -> "Scorer":
    try:
        return spec.load_for(list(systems.others), pool, args.lp)
    except InputError as error:
        raise InputError(f"--metric {name}: {error}") from None
