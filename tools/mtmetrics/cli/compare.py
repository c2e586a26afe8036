"""``mtmetrics compare``: which of several systems is better, and whether the difference is more
than chance."""

import argparse

from mtmetrics.cli import options
from mtmetrics.cli.output import TABLE_FORMATS, print_report
from mtmetrics.cli.rows import read_systems
from mtmetrics.errors import InputError

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
    options.add_row_options(parser, one_file=f"JSON Lines, plain or .gz, with the keys {keys}")

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
    test.add_argument(
        "--seed", type=int, default=12345, help="of the resamples (default: %(default)s)"
    )
    options.add_metric_options(parser, several=True)
    options.add_output_options(parser, TABLE_FORMATS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    specs = options.metric_specs(args)
    others, systems = read_systems(args)
    if len(systems) < 2:
        only = f"only one system ({', '.join(systems)})"
        raise InputError(f"{only}: pass -t with a file for each; for one system: mtmetrics score")
    from mtmetrics.reports.comparison import (
        check_resampling,
        compare_systems,
        enough_resamples,
        report_comparison,
    )
    from mtmetrics.reports.human_agreement import known_agreement

    resamples = args.resamples
    if resamples is None:
        resamples = max(_RESAMPLES, enough_resamples(len(systems), args.correction))
    resampling = {"correction": args.correction, "resamples": resamples, "seed": args.seed}
    check_resampling(len(systems), **resampling)
    pool = options.model_pool(args)
    scorers = {}
    # Every metric is loaded before the first one scores, so that a bad option of the last one does
    # not cost an hour.
    for name, spec in specs.items():
        try:
            scorers[name] = spec.load_for(list(others), pool, args.lp)
        except InputError as error:
            raise error.within(f"--metric {name}") from None
    for scorer in scorers.values():
        scorer.floor_degenerate = args.degenerate == "floor"
        scorer.require_floor()
    with options.scoring(len(scorers) * sum(map(len, systems.values()))):
        results = {
            name: scorer.score_systems(systems, **others) for name, scorer in scorers.items()
        }
    comparisons = {}
    for name, of_metric in results.items():
        scores = {system: result.segments for system, result in of_metric.items()}
        people = known_agreement(specs[name], scorers[name])
        comparisons[name] = compare_systems(
            scores, test=args.test, people=people, progress=options.progress, **resampling
        )
    print_report(report_comparison(comparisons, results), args)
