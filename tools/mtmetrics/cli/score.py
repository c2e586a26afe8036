"""``mtmetrics score``: scores translations and prints the result."""

import argparse
from typing import Any

from mtmetrics.cli.engine import add_engine_options
from mtmetrics.cli.engine import score as score_on_engine
from mtmetrics.cli.io import FORMATS, input_rows, open_writer, pick_format
from mtmetrics.cli.options import add_metric_options, add_row_options, metric_options, model_pool, progress


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "score",
        help="score translations",
        description="Scores translations: parallel files (-s or -r, and -t), or one FILE of rows. TSV holds source and "
        "prediction, or reference and prediction, or source, prediction and reference; JSONL and Parquet have the keys "
        "source, translation and reference. Memory does not grow with the input, but for --format json.",
    )
    add_row_options(parser)
    parser.add_argument(
        "--out", metavar="FILE", help="write there instead of to standard output; appears when all is scored"
    )
    parser.add_argument("--format", choices=FORMATS, help="output format (default: as --out ends, else json)")
    parser.add_argument("--parts", action="store_true", help="also print the parts of the scores")
    parser.add_argument(
        "--ci",
        action="store_true",
        help="95 %% bootstrap interval of the system score (1,000 resamples of the segments)",
    )
    add_metric_options(parser)
    add_engine_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Scores and prints."""
    if args.engine is not None:
        return score_on_engine(args)
    form = pick_format(args.format, args.out)
    names, rows, compared = input_rows(args)
    from mtmetrics.scorers.base import chunked, joined, total_report
    from mtmetrics.scorers.registry import load_scorer

    options = metric_options(args) | compared
    with open_writer(form, args.out, names, parts=args.parts) as writer:
        scorer = load_scorer(options.pop("metric"), pool=model_pool(args), **options)
        kept: list[list[Any]] = [[] for _ in names]
        for results in scorer.score_chunks(chunked(progress(rows, unit=" lines", desc="scoring"))):
            writer.add(results)
            for system, result in zip(kept, results, strict=True):
                system.append(result.without_parts())
        totals = [joined(system) for system in kept]
        writer.finish([total.as_dict(scores=False) | _interval(total, wanted=args.ci) for total in totals])
    total_report(totals).warn()
    return 0


def _interval(result: Any, *, wanted: bool) -> dict[str, Any]:
    from mtmetrics.evaluation.significance import bootstrap_interval

    return {"ci": bootstrap_interval(result.segments)._asdict()} if wanted else {}
