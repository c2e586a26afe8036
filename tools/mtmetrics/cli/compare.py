"""``mtmetrics compare``: which of several systems is better, and whether the difference is more
than chance."""

import argparse
from collections.abc import Mapping, Sequence

from mtmetrics.cli import messages, options
from mtmetrics.cli.output import TABLE_FORMATS, print_report
from mtmetrics.cli.rows import read_systems
from mtmetrics.errors import InputError
from mtmetrics.reports.comparison import (
    check_resampling,
    compare_systems,
    enough_resamples,
    report_comparison,
)
from mtmetrics.reports.human_agreement import known_agreement
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.side import Column
from mtmetrics.scorers.spec import MetricSpec

_RESAMPLES = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Scores the translations of several systems with one or several metrics, and prints the "
        "mean of each system with its 95 % bootstrap interval, its rank, the significance of "
        "the difference between every two systems, and clusters of systems that cannot be told "
        "apart. Input: parallel files (-s, -r or both, and -t with a file per system), or one "
        "FILE of rows."
    )
    keys = "source, reference or both, and outputs, an object: system name -> translation"
    options.add_row_options(parser, file_help=f"JSON Lines, plain or .gz, with the keys {keys}")

    test = parser.add_argument_group("test")
    test.add_argument(
        "--test",
        choices=("permutation", "bootstrap"),
        default="permutation",
        help=(
            "paired test between every two systems: permutation (approximate randomisation) or "
            "bootstrap (default: %(default)s)"
        ),
    )
    test.add_argument(
        "--correction",
        choices=("none", "holm"),
        default="none",
        help=(
            "of the p-values of a metric for the number of pairs of systems; WMT's clusters are "
            "made without (default: %(default)s)"
        ),
    )
    test.add_argument(
        "--degenerate",
        choices=("keep", "floor"),
        default="keep",
        help=(
            "output that is no translation (copies of the source, loops, another language, odd "
            "lengths) keeps its score, or gets the floor score (default: %(default)s)"
        ),
    )
    test.add_argument(
        "--resamples",
        metavar="N",
        type=int,
        help=(
            "resamples of tests and intervals (default: 1000, or as many as Holm's correction "
            "needs for the number of systems: 49,000 for 50)"
        ),
    )
    options.add_seed(test, "the resamples", default=12345)
    options.add_metric_options(parser, is_repeatable=True)
    options.add_output_options(parser, TABLE_FORMATS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    specs = options.metric_specs(args)
    columns, systems = read_systems(args)
    if len(systems) < 2:
        raise InputError(
            f"only one system ({', '.join(systems)}): pass -t with a file for each; for one "
            "system: mtmetrics score"
        )
    resamples = args.resamples
    if resamples is None:
        resamples = max(_RESAMPLES, enough_resamples(len(systems), args.correction))
    resampling = {"correction": args.correction, "resamples": resamples, "seed": args.seed}
    check_resampling(len(systems), **resampling)
    scorers = _load(args, specs, list(columns))
    segments = sum(map(len, systems.values()))
    results = {}
    with messages.scoring(len(scorers) * segments):
        for name, scorer in scorers.items():
            results[name] = scorer.score_systems(systems, **columns)
    comparisons = {}
    for name, system_results in results.items():
        comparisons[name] = compare_systems(
            {system: result.segments for system, result in system_results.items()},
            test=args.test,
            people=known_agreement(specs[name], scorers[name]),
            progress=messages.progress,
            **resampling,
        )
    print_report(report_comparison(comparisons, results), args)


def _load(
    args: argparse.Namespace, specs: Mapping[str, MetricSpec], columns: Sequence[Column]
) -> dict[str, Scorer]:
    """Loads all metrics before the first one scores, so that a bad option of the last one does not
    cost an hour."""
    pool = options.model_pool(args)
    scorers = {}
    for name, spec in specs.items():
        try:
            scorers[name] = spec.load_for(columns, pool, args.lp)
        except InputError as error:
            raise error.within(f"--metric {name}") from None
    for scorer in scorers.values():
        scorer.floor_degenerate = args.degenerate == "floor"
        scorer.require_floor()
    return scorers
