"""``mtmetrics evaluate``: how well metrics agree with human judgements."""

import argparse
from typing import TYPE_CHECKING, Any

from mtmetrics.cli.io import print_warnings
from mtmetrics.cli.metric_specs import USUAL_METRIC, metric_specs
from mtmetrics.cli.options import add_metric_options, model_pool, progress
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.evaluation.judged import JudgedSegments
    from mtmetrics.evaluation.measure import Measure
    from mtmetrics.evaluation.recipes import Recipe
    from mtmetrics.evaluation.scored import Entry, Judged
    from mtmetrics.evaluation.specs import MetricSpec
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.pool import ModelPool

_FORMATS = ("json", "markdown", "latex", "csv", "tsv")
_TRANSLATION = "translation"


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "evaluate",
        help="correlate metrics with human judgements",
        description="Scores translations that people have judged, and prints how well the scores agree with the judgements. One metric "
        "gives a row per file and the mean. Several metrics, a column of the data, a recipe, systems, intervals or a test give a table as "
        "the papers print it: rows metrics, columns language pairs, average, the best in bold.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--data",
        nargs="+",
        metavar="FILE",
        help="JSON Lines, plain or .gz, with the fields lp, source, translation and human; or tables with a header, MLQE-PE, folders of "
        "files, mt-metrics-eval; for --level system judgements XX-YY.jsonl beside XX-YY.outputs.jsonl, or a folder of them",
    )
    what.add_argument(
        "--cards",
        nargs="*",
        metavar="METRIC",
        help="measure the tables of the metrics' cards again and write them (all metrics by default)",
    )
    parser.add_argument(
        "--data-root", metavar="DIR", help="with --cards: the folder that the file names in the cards start at"
    )
    parser.add_argument("--lp", dest="pair", metavar="XX-YY", help="read this language pair only")
    parser.add_argument(
        "--field", default=_TRANSLATION, help="the field that holds the translation (default: %(default)s)"
    )
    parser.add_argument(
        "--column", action="append", default=[], metavar="NAME", help="judge scores that stand in the data; repeatable"
    )
    parser.add_argument(
        "--recipe",
        metavar="NAME",
        help="run a table of a paper, such as zhao2020-table1, and print its numbers beside ours",
    )
    parser.add_argument("--parts", action="store_true", help="correlate each part of the score too")
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        default="json",
        help="json holds full precision, the tables 3 decimals (default: %(default)s)",
    )
    parser.add_argument(
        "--layers",
        metavar="all|N,N,...",
        help="compare layers of the encoder: the correlation at each (a map belongs to one layer)",
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="with --layers: also draw the mean correlation against the layer, as PNG"
    )
    group = parser.add_argument_group("agreement")
    group.add_argument(
        "--level",
        choices=("segment", "system"),
        help="judged segments, or judged systems (default: segment, or as the recipe says)",
    )
    group.add_argument(
        "--coefficient",
        default="pearson",
        metavar="NAME",
        help="pearson, spearman, kendall-b or kendall-c; or, for several translations of each source, darr (of raw scores, 25 points "
        "apart), acc23 (pairwise accuracy with tie calibration) or spa (soft pairwise accuracy of systems) (default: %(default)s)",
    )
    group.add_argument(
        "--group",
        default="none",
        metavar="none|item|system",
        help="mean over the coefficients of each source segment, or of each system (default: %(default)s)",
    )
    group.add_argument(
        "--significance",
        metavar="williams|perm-both|none",
        help="test the others against the best metric of each column, at 5 %% (default: williams for pearson, else none)",
    )
    group.add_argument("--ci", action="store_true", help="95 %% bootstrap intervals (1,000 resamples)")
    add_metric_options(parser, several=True)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Reads all files, runs the metrics with shared models, and prints the agreement."""
    from mtmetrics.evaluation.measure import Measure

    if args.cards is not None:
        return _write_cards(args)
    if args.data_root is not None:
        raise InputError("--data-root belongs to --cards; --data takes whole paths")
    if args.plot is not None and args.layers is None:
        raise InputError("--plot draws the correlation against the layer; pass --layers too")
    measure = Measure(args.coefficient, args.group)
    specs = _specs(args)
    table = len(specs) != 1 or args.column or args.recipe or args.level == "system" or args.ci or args.significance
    if args.layers is not None and table:
        raise InputError("--layers compares the layers of one metric; leave out what asks for a table of metrics")
    if table:
        return _print_table(args, specs, measure)
    return (_print_files if args.layers is None else _compare_layers)(args, specs[0], measure)


def _specs(args: argparse.Namespace) -> "list[MetricSpec]":
    """The metrics to run; a recipe names its own."""
    if args.recipe and (args.metric or args.column or args.parts):
        raise InputError("--recipe names its own rows; leave out --metric, --column and --parts (--preset counts)")
    return list(metric_specs(args, usual=() if args.column or args.recipe else (USUAL_METRIC,)).values())


def _print_files(args: argparse.Namespace, spec: "MetricSpec", measure: "Measure") -> int:
    from mtmetrics.evaluation.agreement import judge
    from mtmetrics.evaluation.report import render, undefined

    # Every file is read before the first is scored, so that a bad line in the last one does not cost an hour.
    files = _segments(args)
    scorers = _scorers(spec, files, model_pool(args))
    agreements = [
        judge(scorers[file.lang_pair], file, measure) for file in progress(files, desc="evaluate", unit="file")
    ]
    print(render(agreements, _about(args, spec), args.format, parts=args.parts, coefficient=measure.label))
    unusual = [f"{agreement.file}: {agreement.report.note}" for agreement in agreements if agreement.report.note]
    print_warnings([*unusual, *undefined(agreements, parts=args.parts)])
    return 0


def _segments(args: argparse.Namespace) -> "list[JudgedSegments]":
    from mtmetrics.evaluation.data import read_judged

    return [part for path in args.data for part in read_judged(path, prediction_field=args.field, lang_pair=args.pair)]


def _scorers(spec: "MetricSpec", files: "list[JudgedSegments]", pool: "ModelPool") -> "dict[str, Scorer]":
    """A scorer for each language pair."""
    return {pair: spec.load(pool, pair) for pair in dict.fromkeys(file.lang_pair for file in files)}


def _about(args: argparse.Namespace, spec: "MetricSpec") -> dict[str, str]:
    options = {
        name: value for name, value in {"metric": spec.metric, "preset": spec.preset}.items() if value is not None
    }
    return {**options, "field": args.field}


def _compare_layers(args: argparse.Namespace, spec: "MetricSpec", measure: "Measure") -> int:
    from mtmetrics.evaluation.agreement import judge
    from mtmetrics.evaluation.curves import save_curves
    from mtmetrics.evaluation.figures import check_plot_file
    from mtmetrics.evaluation.heatmap import require_matplotlib
    from mtmetrics.evaluation.layers import chosen_layers, curves, render_layers
    from mtmetrics.evaluation.report import undefined

    if args.plot is not None:
        require_matplotlib("--plot")
        check_plot_file(args.plot)
    files = _segments(args)
    pool = model_pool(args)
    depth = next(iter(_scorers(spec, files, pool).values())).depth
    studies = {}
    for layer in progress(chosen_layers(args.layers, depth), desc="layers", unit="layer"):
        scorers = _scorers(spec.having(layer=layer), files, pool)
        studies[layer] = [judge(scorers[file.lang_pair], file, measure) for file in files]
    print(render_layers(studies, _about(args, spec), args.format, parts=args.parts, coefficient=measure.label))
    for agreements in studies.values():
        print_warnings(undefined(agreements, parts=args.parts))
    if args.plot is not None:
        lines = {
            name: {layer: values[-1].value for layer, values in layers.items()}
            for name, layers in curves(studies, parts=args.parts).items()
        }
        title = f"{spec.metric}, preset {spec.preset}: mean of {len(files)} file{'s' if len(files) > 1 else ''}"
        save_curves(lines, args.plot, title=title, x_label="layer", y_label=f"{measure.label} with human judgements")
    return 0


def _print_table(args: argparse.Namespace, specs: "list[MetricSpec]", measure: "Measure") -> int:
    from mtmetrics.evaluation.measure import PEARSON, Judgements
    from mtmetrics.evaluation.metric_report import render_metrics
    from mtmetrics.evaluation.metric_table import check_table, metric_table, remarks, usual_test
    from mtmetrics.evaluation.recipes import load_recipe
    from mtmetrics.evaluation.scored import run_metrics

    test = args.significance or usual_test(measure)
    check_table(measure, test, intervals=args.ci)
    recipe = None if args.recipe is None else load_recipe(args.recipe)
    if recipe is not None and (measure != PEARSON or args.level not in (None, recipe.level)):
        raise InputError(
            f"--recipe {recipe.name}: the paper's numbers are pearson of each {recipe.level}; leave out other choices"
        )
    files = _judged(args, recipe)
    entries = _entries(args, specs, recipe)
    result = run_metrics(
        [entry.metric for entry in entries if entry.metric is not None],
        files,
        model_pool(args),
        lenient=recipe is not None,
        wrap=progress,
    )
    if args.parts:
        entries = [part for entry in entries for part in result.with_parts(entry)]
    judgements = [Judgements.of(file) for file in files]
    table = metric_table([result.scored(entry) for entry in entries], judgements, measure, test=test, intervals=args.ci)
    print(render_metrics(table, {"field": args.field}, args.format, recipe=recipe))
    print_warnings([*result.notes(), *remarks(table)])
    return 0


def _judged(args: argparse.Namespace, recipe: "Recipe | None") -> "list[Judged]":
    level = args.level or (recipe.level if recipe is not None else "segment")
    if level == "segment":
        return [*_segments(args)]
    if args.field != _TRANSLATION:
        raise InputError(
            f"--field {args.field}: is of judged segments; whole systems have their translations in the field outputs"
        )
    from mtmetrics.evaluation.data import read_judged_systems

    # A pattern such as wmt17_sys/*.jsonl.gz names the outputs too, which are read beside the judgements.
    paths = [path for path in args.data if ".outputs.jsonl" not in path] or args.data
    return [part for path in paths for part in read_judged_systems(path, lang_pair=args.pair)]


def _entries(args: argparse.Namespace, specs: "list[MetricSpec]", recipe: "Recipe | None") -> "list[Entry]":
    from mtmetrics.evaluation.scored import Entry

    if recipe is not None:
        return [row.entry(args.preset) for row in recipe.rows]
    return [*(Entry(str(spec), spec) for spec in specs), *map(Entry.of_column, args.column)]


def _write_cards(args: argparse.Namespace) -> int:
    from pathlib import Path

    from mtmetrics.evaluation.cards import write_cards

    if args.data_root is None:
        raise InputError("--cards: pass --data-root DIR, the folder that holds the judged sets")
    if args.metric or args.column or args.recipe or args.layers:
        raise InputError(
            "--cards measures what the tables of the cards name; leave out --metric, --column, --recipe and --layers"
        )
    for card in write_cards(args.cards, Path(args.data_root), model_pool(args), wrap=progress):
        print(card)
    return 0
