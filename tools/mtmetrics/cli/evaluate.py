"""``mtmetrics evaluate``: how well a metric agrees with human judgements."""

import argparse
import sys
from typing import Any

from mtmetrics.cli.options import add_metric_options, metric_options, model_pool, progress

_FORMATS = ("json", "tsv", "markdown")


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "evaluate",
        help="correlate a metric with human judgements",
        description="Scores translations that people have judged, and prints Pearson's r between scores and judgements for every file, and "
        "the mean over the files.",
    )
    parser.add_argument(
        "--data",
        nargs="+",
        required=True,
        metavar="FILE",
        help="JSON Lines, plain or .gz, one language pair per file, with the fields lp, source, translation and human",
    )
    parser.add_argument("--field", default="translation", help="the field that holds the translation (default: %(default)s)")
    parser.add_argument("--parts", action="store_true", help="correlate each part of the score too")
    parser.add_argument(
        "--format", choices=_FORMATS, default="json", help="json holds full precision, the tables 3 decimals (default: %(default)s)"
    )
    add_metric_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Reads all files, scores them one by one with shared models, and prints the correlations."""
    from mtmetrics.evaluation.agreement import judge
    from mtmetrics.evaluation.data import read_judged_segments
    from mtmetrics.evaluation.report import render, undefined
    from mtmetrics.scorers.load import load_scorer

    # Every file is read before the first is scored, so that a bad line in the last one does not cost an hour.
    files = [read_judged_segments(path, prediction_field=args.field) for path in args.data]
    pool, options = model_pool(args), metric_options(args)
    metric = options.pop("metric")
    scorers = {pair: load_scorer(metric, pool=pool, lang_pair=pair, **options) for pair in dict.fromkeys(file.lang_pair for file in files)}
    agreements = [judge(scorers[file.lang_pair], file) for file in progress(files, desc="evaluate", unit="file")]
    about = {"metric": args.metric, "preset": args.preset, "field": args.field}
    print(render(agreements, about, args.format, parts=args.parts))
    for line in undefined(agreements, parts=args.parts):
        print(f"mtmetrics: warning: {line}", file=sys.stderr)
    return 0
