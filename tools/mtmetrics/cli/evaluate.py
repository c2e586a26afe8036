"""``mtmetrics evaluate``: how well metrics agree with human judgements."""

import argparse
import dataclasses
import functools
from typing import TYPE_CHECKING, Any

from mtmetrics.cli.io import print_table, print_warnings
from mtmetrics.cli.options import (
    USUAL_METRIC,
    add_metric_options,
    add_output_options,
    metric_specs,
    model_pool,
    progress,
    scoring,
)
from mtmetrics.cli.results import TABLE_FORMATS, pick_format, print_text
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.evaluation.data import Judged
    from mtmetrics.evaluation.recipes import Recipe
    from mtmetrics.evaluation.run import MetricRuns, MetricSpec
    from mtmetrics.evaluation.table import Measure, MetricTable
    from mtmetrics.scorers.pool import ModelPool

_TRANSLATION = "translation"


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "evaluate",
        help="correlate metrics with human judgements",
        description="Scores translations that people have judged, and prints how well the scores agree with the "
        "judgements. One metric gives a row per file and the mean. Several metrics, a column of the data, a recipe, "
        "systems, intervals or a test give a table as the papers print it: rows metrics, columns language pairs, "
        "average, the best in bold.",
    )
    data = parser.add_argument_group("input")
    data.add_argument(
        "--data",
        nargs="+",
        required=True,
        metavar="FILE",
        help="JSON Lines, plain or .gz, with the fields lp, source, translation and human; or tables with a header, "
        "MLQE-PE, WMT's metrics tasks, mt-metrics-eval, or a folder; for --level system judgements XX-YY.jsonl beside "
        "XX-YY.outputs.jsonl, DA-syslevel.csv, or a folder of them",
    )
    data.add_argument("--lp", dest="pair", metavar="XX-YY", help="read this language pair only")
    text = "the field that holds the translation (default: %(default)s)"
    data.add_argument("--field", default=_TRANSLATION, help=text)
    text = "judge scores that stand in the data; repeatable"
    data.add_argument("--column", action="append", default=[], metavar="NAME", help=text)
    group = parser.add_argument_group("agreement")
    text = "judged segments, or judged systems (default: segment, or as the recipe says)"
    group.add_argument("--level", choices=("segment", "system"), help=text)
    group.add_argument(
        "--coefficient",
        metavar="NAME",
        help="pearson, spearman, kendall-b or kendall-c; or, for several translations of each source, darr (of raw "
        "scores, 25 points apart), acc23 (pairwise accuracy with tie calibration) or spa (soft pairwise accuracy of "
        "systems) (default: pearson, or as the recipe says)",
    )
    text = "mean over the coefficients of each source segment, or of each system (default: %(default)s)"
    group.add_argument("--group", default="none", metavar="none|item|system", help=text)
    text = "test the others against the best metric of each column, at 5 %% (default: williams for pearson, else none)"
    group.add_argument("--significance", metavar="williams|perm-both|none", help=text)
    group.add_argument("--ci", action="store_true", help="95 %% bootstrap intervals (1,000 resamples)")
    text = "compare layers of the encoder: the correlation at each (a map belongs to one layer)"
    group.add_argument("--layers", metavar="all|N,N,...", help=text)
    add_metric_options(parser, several=True)
    group = parser.add_argument_group("tables of the papers")
    text = (
        "run a table, such as zhao2020-table1, and print its numbers beside ours; --metric NAME:PRESET says what its "
    )
    text += "rows of that metric are run with, where {lp} stands for the language pair: --metric uscore:made/{lp}"
    group.add_argument("--recipe", metavar="NAME", help=text)
    text = "list all tables, with their data or why they cannot be run, and exit"
    group.add_argument("--recipes", action=_ListRecipes, nargs=0, help=text)
    output = add_output_options(parser, TABLE_FORMATS)
    output.add_argument("--parts", action="store_true", help="correlate each part of the score too")
    text = "with --layers: also draw the mean correlation against the layer, as .png, .svg or .pdf"
    output.add_argument("--plot", metavar="FILE", help=text)
    parser.set_defaults(run=run)


class _ListRecipes(argparse.Action):
    """Like ``--version``, it needs no other argument."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from mtmetrics.evaluation.recipes import list_recipes

        print_table(list_recipes())
        parser.exit()


def run(args: argparse.Namespace) -> int:
    """Reads all files, runs the metrics with shared models, and prints the agreement."""
    from mtmetrics.evaluation.recipes import load_recipe
    from mtmetrics.evaluation.table import Measure

    args.format = pick_format(args.format)
    if args.plot is not None and args.layers is None:
        raise InputError("--plot draws the correlation against the layer; pass --layers too")
    if args.recipe and (args.column or args.parts):
        raise InputError("--recipe names its own rows; leave out --column and --parts")
    recipe = None if args.recipe is None else load_recipe(args.recipe)
    usual, level = ("pearson", args.level) if recipe is None else (recipe.coefficient, recipe.level)
    measure = Measure(args.coefficient or usual, args.group)
    if recipe is not None and (measure.label, args.level or level) != (usual, level):
        what = f"the paper's numbers are {usual} of each {level}"
        raise InputError(f"--recipe {recipe.name}: {what}; leave out other choices")
    specs = list(metric_specs(args, usual=() if args.column or args.recipe else (USUAL_METRIC,)).values())
    several = len(specs) != 1 or args.column or args.recipe or args.level == "system" or args.ci or args.significance
    if args.layers is not None and several:
        raise InputError("--layers compares the layers of one metric; leave out what asks for a table of metrics")
    if several:
        return _print_table(args, specs, measure, recipe)
    return (_print_files if args.layers is None else _compare_layers)(args, specs[0], measure)


def _print_table(
    args: argparse.Namespace, specs: "list[MetricSpec]", measure: "Measure", recipe: "Recipe | None"
) -> int:
    from mtmetrics.evaluation.report import render_metrics
    from mtmetrics.evaluation.run import Entry, run_metrics
    from mtmetrics.evaluation.table import check_table, metric_table, remarks, usual_test

    test = args.significance or usual_test(measure)
    check_table(measure, test, intervals=args.ci)
    if recipe is not None:
        entries = recipe.entries(args.preset, {spec.metric: spec for spec in specs})
    else:
        entries = [*(Entry(str(spec), spec) for spec in specs), *map(Entry.of_column, args.column)]
    files = _judged(args, recipe)
    metrics = [entry.metric for entry in entries if entry.metric is not None]
    with scoring(len(metrics) * sum(len(file.rows) for file in files)):
        runs = run_metrics(metrics, files, model_pool(args), lenient=recipe is not None)
    if args.parts:
        entries = [part for entry in entries for part in runs.with_parts(entry)]
    scored = [runs.scored(entry) for entry in entries]
    if recipe is not None:
        pairs = [file.lang_pair for file in files]
        scored = [row.marked(found, pairs) for row, found in zip(recipe.rows, scored, strict=True)]
    table = metric_table(scored, files, measure, test=test, intervals=args.ci)
    print_text(render_metrics(table, {"field": args.field}, args.format, recipe=recipe), args)
    print_warnings([*runs.notes(), *remarks(table)])
    return 0


def _print_files(args: argparse.Namespace, spec: "MetricSpec", measure: "Measure") -> int:
    from mtmetrics.evaluation.report import render_files
    from mtmetrics.evaluation.table import remarks

    files = _judged(args)
    with scoring(sum(map(len, files))):
        runs, table = _single(spec, files, model_pool(args), measure, parts=args.parts)
    results = [systems[0] for systems in runs.results[spec]]
    print_text(render_files(table, results, _about(args, spec), args.format), args)
    print_warnings([*runs.notes(), *remarks(table)])
    return 0


def _compare_layers(args: argparse.Namespace, spec: "MetricSpec", measure: "Measure") -> int:
    from mtmetrics.evaluation.figures import check_plot_file, save_figure
    from mtmetrics.evaluation.plots import draw_curves
    from mtmetrics.evaluation.report import chosen_layers, layer_curves, mean_intervals, render_layers
    from mtmetrics.evaluation.table import remarks

    if args.plot is not None:
        check_plot_file(args.plot, "--plot")
    files = _judged(args)
    pool = model_pool(args)
    drawn = args.plot is not None
    depth = spec.load(pool, files[0].lang_pair).depth
    studies = {
        layer: _single(spec.having(layer=layer), files, pool, measure, parts=args.parts, intervals=drawn)[1]
        for layer in progress(chosen_layers(args.layers, depth), desc="layers", unit="layer")
    }
    print_text(render_layers(studies, _about(args, spec), args.format), args)
    for table in studies.values():
        print_warnings(remarks(table))
    if drawn:
        lines = {
            name: {layer: values[-1].value for layer, values in layers.items()}
            for name, layers in layer_curves(studies).items()
        }
        over = f"mean of {len(files)} files" if len(files) > 1 else next(iter(studies.values())).labels[0]
        axes = {"x_label": "layer", "y_label": f"{measure.label} with human judgements"}
        title = f"{spec.metric}, preset {spec.preset}: {over}, 95 % intervals"
        figure = draw_curves(lines, title=title, intervals=mean_intervals(studies), **axes)
        save_figure(figure, args.plot)
    return 0


def _single(
    spec: "MetricSpec",
    files: "list[Judged]",
    pool: "ModelPool",
    measure: "Measure",
    *,
    parts: bool,
    intervals: bool = False,
) -> "tuple[MetricRuns, MetricTable]":
    """One metric, and a table whose rows are its score and, where wanted, the parts of it."""
    from mtmetrics.evaluation.run import Entry, run_metrics
    from mtmetrics.evaluation.table import metric_table

    runs = run_metrics([spec], files, pool)
    whole = Entry(str(spec), spec)
    entries = runs.with_parts(whole) if parts else [whole]
    named = [dataclasses.replace(entry, title=entry.part) for entry in entries]
    return runs, metric_table([runs.scored(entry) for entry in named], files, measure, intervals=intervals)


def _about(args: argparse.Namespace, spec: "MetricSpec") -> dict[str, str]:
    preset = {} if spec.preset is None else {"preset": spec.preset}
    return {"metric": spec.metric, **preset, "field": args.field}


def _judged(args: argparse.Namespace, recipe: "Recipe | None" = None) -> "list[Judged]":
    """All files, read before the first is scored, so that a bad line in the last one does not cost an hour."""
    from mtmetrics.evaluation.data import read_judged, read_judged_systems

    level = args.level or (recipe.level if recipe is not None else "segment")
    if level == "segment":
        read = functools.partial(read_judged, prediction_field=args.field, lang_pair=args.pair)
        return [part for path in args.data for part in read(path)]
    if args.field != _TRANSLATION:
        where = "whole systems have their translations in the field outputs"
        raise InputError(f"--field {args.field}: is of judged segments; {where}")
    # A pattern such as wmt17_sys/*.jsonl.gz names the outputs too, which are read beside the judgements.
    paths = [path for path in args.data if ".outputs.jsonl" not in path] or args.data
    return [part for path in paths for part in read_judged_systems(path, lang_pair=args.pair)]
