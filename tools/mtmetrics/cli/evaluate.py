"""``mtmetrics evaluate``: how well a metric agrees with human judgements."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from mtmetrics.cli.options import add_metric_options, metric_options, model_pool, progress
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.evaluation.data import JudgedSegments
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.pool import ModelPool

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
    parser.add_argument(
        "--layers",
        metavar="all|N,N,...",
        help="compare layers of the encoder: the correlation at each (a map belongs to one layer)",
    )
    parser.add_argument("--plot", metavar="FILE", help="with --layers: also draw the mean correlation against the layer, as PNG")
    add_metric_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Reads all files, scores them one by one with shared models, and prints the correlations."""
    from mtmetrics.evaluation.agreement import judge
    from mtmetrics.evaluation.data import read_judged_segments
    from mtmetrics.evaluation.report import render, undefined

    if args.plot is not None and args.layers is None:
        raise InputError("--plot draws the correlation against the layer; pass --layers too")
    # Every file is read before the first is scored, so that a bad line in the last one does not cost an hour.
    files = [read_judged_segments(path, prediction_field=args.field) for path in args.data]
    pool = model_pool(args)
    about = {"metric": args.metric, "preset": args.preset, "field": args.field}
    if args.layers is not None:
        return _compare_layers(args, files, pool, about)
    scorers = _scorers(args, files, pool)
    agreements = [judge(scorers[file.lang_pair], file) for file in progress(files, desc="evaluate", unit="file")]
    print(render(agreements, about, args.format, parts=args.parts))
    _warn(undefined(agreements, parts=args.parts))
    return 0


def _scorers(args: argparse.Namespace, files: "list[JudgedSegments]", pool: "ModelPool", **options: Any) -> "dict[str, Scorer]":
    """A scorer for each language pair."""
    from mtmetrics.scorers.load import load_scorer

    options = metric_options(args) | options
    metric = options.pop("metric")
    pairs = dict.fromkeys(file.lang_pair for file in files)
    return {pair: load_scorer(metric, pool=pool, lang_pair=pair, **options) for pair in pairs}


def _compare_layers(args: argparse.Namespace, files: "list[JudgedSegments]", pool: "ModelPool", about: dict[str, str]) -> int:
    from mtmetrics.evaluation.agreement import judge
    from mtmetrics.evaluation.curves import save_curves
    from mtmetrics.evaluation.heatmap import require_matplotlib
    from mtmetrics.evaluation.layers import chosen_layers, curves, render_layers
    from mtmetrics.evaluation.report import undefined

    if args.plot is not None:
        require_matplotlib("--plot")
    depth = next(iter(_scorers(args, files, pool).values())).depth
    studies = {}
    for layer in progress(chosen_layers(args.layers, depth), desc="layers", unit="layer"):
        scorers = _scorers(args, files, pool, layer=layer)
        studies[layer] = [judge(scorers[file.lang_pair], file) for file in files]
    print(render_layers(studies, about, args.format, parts=args.parts))
    for agreements in studies.values():
        _warn(undefined(agreements, parts=args.parts))
    if args.plot is not None:
        lines = {
            name: {layer: values[-1].value for layer, values in layers.items()}
            for name, layers in curves(studies, parts=args.parts).items()
        }
        title = f"{args.metric}, preset {args.preset}: mean of {len(files)} file{'s' if len(files) > 1 else ''}"
        save_curves(lines, args.plot, title=title, x_label="layer", y_label="Pearson's r with human judgements")
    return 0


def _warn(lines: list[str]) -> None:
    for line in lines:
        print(f"mtmetrics: warning: {line}", file=sys.stderr)
