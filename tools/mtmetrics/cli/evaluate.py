"""``mtmetrics evaluate``: how well metrics agree with human judgements.

The command has four uses: it runs a table or figure of a paper (--recipe; --recipes lists them),
tunes a preset on the judgements (--tune), compares the layers of an encoder (--layers), or prints a
table. Beside the table it can draw a plot (--plot), and fit how often people prefer the system with
the higher score (--agreement)."""

import argparse
import sys
from pathlib import Path

from mtmetrics.artifacts.presets import require_extendable
from mtmetrics.checks import choice, positive
from mtmetrics.cli import messages, options
from mtmetrics.cli.judged_files import judged_files
from mtmetrics.cli.layers import layer_studies, save_layers
from mtmetrics.cli.output import TABLE_FORMATS, check_target, print_report, print_warnings
from mtmetrics.cli.plot import draw
from mtmetrics.cli.recipe_runs import run_recipe
from mtmetrics.cli.tune import tune_metric
from mtmetrics.errors import InputError
from mtmetrics.reports.agreement import (
    Measure,
    MetricTable,
    check_table,
    judge_entries,
    remarks,
    usual_test,
)
from mtmetrics.reports.agreement_report import report_files, report_layers, report_metrics
from mtmetrics.reports.figures import check_plot_file
from mtmetrics.reports.human_agreement import (
    SystemMeans,
    bare_signature,
    fit_agreement,
    write_preset,
)
from mtmetrics.reports.metric_runs import Entry
from mtmetrics.reports.recipes import list_recipes
from mtmetrics.reports.styles import terminal
from mtmetrics.scorers.spec import MetricSpec
from mtmetrics.statistics.correlation import COEFFICIENTS


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Scores translations that people have judged, and prints how well the scores agree with "
        "the judgements. One metric gives a row per file and the mean. Several metrics, --column, "
        "--recipe, --level system, --ci, --significance or --plot give a table as in the papers: a "
        "row per metric, a column per language pair, the average, and the best value in bold."
    )
    inputs = parser.add_argument_group("input")
    inputs.add_argument(
        "--data",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help=(
            "JSON Lines, plain or .gz, with the fields lp, source, translation and human; or "
            "tables with a header, MLQE-PE, WMT's metrics tasks, mt-metrics-eval, or a folder; "
            "with --level system: XX-YY.jsonl (judgements) next to XX-YY.outputs.jsonl, "
            "DA-syslevel.csv, or a folder of them; not needed for a --recipe with public data"
        ),
    )
    options.add_judged_options(inputs)
    inputs.add_argument(
        "--column",
        metavar="NAME",
        action="append",
        default=[],
        help="evaluate scores that the data already contains; repeatable",
    )
    _add_agreement_options(parser)
    options.add_metric_options(parser, is_repeatable=True)
    _add_recipe_options(parser)
    output = options.add_output_options(parser, TABLE_FORMATS)
    output.add_argument("--parts", action="store_true", help="correlate each part of the score too")
    _add_plot_options(parser)
    _add_tuning_options(parser)
    parser.set_defaults(run=run)


def _add_agreement_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("agreement")
    group.add_argument(
        "--level",
        choices=("segment", "system"),
        help="agreement on segments or on systems (default: segment, or that of the recipe)",
    )
    group.add_argument(
        "--coefficient",
        metavar="NAME",
        help=(
            "pearson, spearman, kendall-b or kendall-c; or, for several translations of each "
            "source, darr (pairs whose raw scores differ by at least 25 points), acc23 (pairwise accuracy with tie "
            "calibration) or spa (soft pairwise accuracy of systems) (default: pearson, or that of "
            "the recipe)"
        ),
    )
    group.add_argument(
        "--group",
        metavar="none|item|system",
        default="none",
        help=(
            "average the coefficients of each source segment (item) or of each system (default: "
            "%(default)s)"
        ),
    )
    group.add_argument(
        "--significance",
        metavar="williams|perm-both|none",
        help=(
            "test at the 5 %% level whether the best metric of each column beats the others "
            "(default: williams for pearson, else none)"
        ),
    )
    group.add_argument(
        "--ci", action="store_true", help="95 %% bootstrap intervals (1,000 resamples)"
    )
    group.add_argument(
        "--agreement",
        metavar="DIR",
        help=(
            "with --level system: fit how often people prefer the system with the higher score, by "
            "the difference of the scores; write a preset with this curve for mtmetrics compare"
        ),
    )
    group.add_argument(
        "--layers",
        metavar="all|N,N,...",
        help="compare layers of the encoder by the correlation at each (maps fit a single layer)",
    )


def _add_recipe_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("tables of the papers")
    group.add_argument(
        "--recipe",
        metavar="NAME",
        help=(
            "run a table or figure, such as zhao2020-table1, and print its numbers beside ours; "
            "--metric NAME:PRESET replaces the preset in the rows of that metric; {lp} stands for "
            "the language pair, as in --metric uscore:made/{lp}; --maps is for all rows that have "
            "a map"
        ),
    )
    group.add_argument(
        "--vectors",
        metavar="MODEL=FILE|ENCODER[,maps=DIR]",
        **options.REPEATABLE_LIST,
        help=(
            "with --recipe: sentence vectors of a model that is not part of this package, such as "
            "LASER (Parquet, columns text and vector), or another encoder of sentences in its place; "
            "and maps of them (mtmetrics train maps --level sentence)"
        ),
    )
    group.add_argument(
        "--text",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help="with --recipe: text that its models learn from; --recipes says which",
    )
    group.add_argument(
        "--report",
        metavar="DIR",
        help="with --recipe: also write the report to this folder, as Markdown with pictures",
    )
    group.add_argument(
        "--recipes",
        action="store_true",
        help="list all tables and figures with their data, and exit",
    )


def _add_plot_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("plot")
    group.add_argument(
        "--plot", metavar="FILE", help="also draw the agreement, as .png, .svg or .pdf"
    )
    group.add_argument(
        "--draw",
        choices=("scatter", "bars", "weights"),
        help="with --plot: scatter (scores against judgements), bars (the correlations with "
        "intervals) or weights (the correlation at each weighting of two or three parts of a score, "
        "which is also printed) (default: bars; --layers draws the correlation at each layer)",
    )
    group.add_argument(
        "--weigh",
        metavar="A,B[,C]",
        help="with --draw weights: parts to weigh (default: all; of uscore wmd, pseudo and lm); -A "
        "turns the sign of one whose low values are good, such as wmd of sentsim: --weigh=-wmd,sss",
    )
    group.add_argument(
        "--steps",
        type=int,
        default=10,
        help="with --draw weights: steps from a weight of 0 to one of 1 (default: %(default)s)",
    )


def _add_tuning_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("tuning")
    group.add_argument(
        "--tune",
        metavar="DIR",
        dest="tuned_preset",
        help="choose the options of the metric that agree best with the judgements, such as the layer "
        "of an encoder, the weights of parts, or one of several encoders; needs at least 50 "
        "judgements, of no test set; writes the options as a preset, a new folder for --preset; "
        "cross-validation says what the choice gains on held-out judgements, with a 95 %% interval",
    )
    group.add_argument(
        "--try",
        metavar="OPTION=VALUE,...",
        dest="tried",
        action="append",
        default=[],
        help="values to try of an option, 'all' for layers; repeatable, chosen one after the "
        "other, but each encoder is tried at every layer (default: layers, weights and some other "
        "options, as the metric has them)",
    )
    group.add_argument(
        "--folds", type=int, default=5, help="of the cross-validation (default: %(default)s)"
    )
    group.add_argument("--overwrite", action="store_true", help="replace a folder of that name")


def run(args: argparse.Namespace) -> None:
    """Runs the use of the command that the arguments choose.

    Raises:
        InputError: arguments contradict each other, or data is missing.
    """
    if args.recipes:
        print(terminal(list_recipes(), ()))
        return
    if args.recipe is not None:
        run_recipe(args)
        return
    if not args.data:
        raise InputError("--data is missing: which judgements?")
    _refuse_options_of_recipes(args)
    coefficient = args.coefficient or "pearson"
    measure = Measure(coefficient, args.group)
    # Not before `run_recipe`: a recipe has its own default.
    args.level = args.level or "segment"
    if args.tuned_preset is not None:
        _refuse_options_beside_tuning(args)
        tune_metric(args, coefficient)
        return
    if args.tried:  # the values of --try
        raise InputError("--try says which values --tune tries; pass --tune too")
    default_metrics = () if args.column else (options.DEFAULT_METRIC,)
    specs = list(options.metric_specs(args, default_metrics=default_metrics).values())
    if args.agreement is not None:
        _check_preference_curve(args, specs)
    if args.plot is None and (args.draw or args.weigh):
        raise InputError("--draw and --weigh say what --plot draws; pass --plot too")
    if args.weigh and args.draw != "weights":
        raise InputError("--weigh has no effect without --draw weights; pass it too")
    has_test = args.significance not in (None, "none")
    needs_metric_table = any(
        (len(specs) != 1, args.column, args.level == "system", args.ci, has_test)
    )
    if args.layers is None:
        by_file = not needs_metric_table and args.plot is None
        _print_table(args, specs, measure, by_file=by_file)
    elif needs_metric_table or args.draw:  # --plot is allowed: it draws the layers
        raise InputError(
            "--layers compares the layers of one metric; leave out further metrics, --column, "
            "--level system, --ci, --significance and --draw"
        )
    else:
        _compare_layers(args, specs[0], measure)


def _refuse_options_of_recipes(args: argparse.Namespace) -> None:
    if args.report is not None:
        raise InputError("--report is written of a table of a paper; pass --recipe too")
    if args.vectors:
        raise InputError("--vectors are for rows of a table of a paper; pass --recipe too")
    if args.text:
        raise InputError("--text is what a figure of a paper learns from; pass --recipe too")


def _refuse_options_beside_tuning(args: argparse.Namespace) -> None:
    value_of_option = {
        "--level system": args.level == "system",
        "--column": args.column,
        "--group": args.group != "none",
        "--significance": args.significance,
        "--ci": args.ci,
        "--agreement": args.agreement,
        "--layers": args.layers,
        "--parts": args.parts,
        "--plot": args.plot,
        "--draw": args.draw,
        "--weigh": args.weigh,
    }
    for option, value in value_of_option.items():
        if value:
            raise InputError(
                f"--tune chooses options of one metric by judged segments; leave out {option}"
            )


def _check_preference_curve(args: argparse.Namespace, specs: list[MetricSpec]) -> None:
    """Checks, before the scoring, that the curve of --agreement can be fitted and written."""
    if args.level != "system" or len(specs) != 1 or args.column:
        raise InputError("--agreement is fitted for one metric and --level system")
    if specs[0].preset is None:  # `metric_specs` has filled in the default preset
        raise InputError(
            f"--agreement: {specs[0].metric} has no presets, so the curve cannot be written to one"
        )
    check_target(args.agreement, "--agreement", overwrite=False, advice="choose another name")
    pool = options.model_pool(args)
    require_extendable(specs[0].metric, specs[0].preset, local_files_only=pool.local_files_only)


def _check_plot(args: argparse.Namespace, measure: Measure) -> None:
    """Checks, before the scoring, that the plot of `args.draw` can be drawn and written."""
    check_plot_file(args.plot, "--plot")
    if args.level != "segment":
        raise InputError(f"--draw {args.draw} needs judged segments; leave out --level system")
    if args.draw == "weights":
        choice("coefficient", measure.name, tuple(COEFFICIENTS))
        if args.group != "none" or args.column:
            raise InputError("--draw weights: leave out --group and --column")
        if len(args.metric or []) > 1:
            raise InputError("--metric: a plot of weights shows the parts of one metric")
        positive("steps", args.steps)


def _print_table(
    args: argparse.Namespace, specs: list[MetricSpec], measure: Measure, *, by_file: bool
) -> None:
    """Prints a table with a row per metric; or, `by_file`, with a row per file of the only metric.

    With --draw weights it only draws, which also prints the numbers of the plot."""
    if args.plot is not None:
        args.draw = args.draw or "bars"
        _check_plot(args, measure)
    test = "none" if by_file else args.significance or usual_test(measure)
    intervals = args.ci or args.draw == "bars"
    check_table(measure, test, intervals=intervals)
    entries = [*(Entry(str(spec), spec) for spec in specs), *map(Entry.of_column, args.column)]
    files = judged_files(args)
    with messages.scoring(len(specs) * sum(map(len, files))):
        runs, table = judge_entries(
            entries,
            files,
            options.model_pool(args),
            measure,
            parts=args.parts,
            titled_by_part=by_file,
            test=test,
            intervals=intervals,
        )
    warnings = [*runs.notes(), *remarks(table)]
    if args.draw == "weights":
        print_warnings(warnings)
        draw(args, args.plot, runs, entries, table)
        return
    if by_file:
        [spec] = specs
        # Each file has the result of one system, because judged segments count as one.
        results_per_file = [result_of_file for [result_of_file] in runs.results[spec]]
        report = report_files(table, results_per_file, _metric_fields(args, spec))
    else:
        report = report_metrics(table, {"field": args.field})
    print_report(report, args)
    print_warnings(warnings)
    if args.plot is not None:
        draw(args, args.plot, runs, entries, table)
    if args.agreement is not None:
        _write_preference_curve(args, specs[0], table)


def _write_preference_curve(args: argparse.Namespace, spec: MetricSpec, table: MetricTable) -> None:
    """Fits how often people prefer the system that the metric scores higher, and writes a preset
    with the curve."""
    row = table.rows[0]  # with --parts, the rows of the parts follow
    scores_per_file = zip(table.columns, row.scored.scores, strict=True)
    files = " ".join(Path(path).name for path in args.data)
    curve = fit_agreement(
        [SystemMeans.of(file, scores) for file, scores in scores_per_file],
        data=f"{files}: systems as people judged them",
        signature=bare_signature(row.scored.signatures[0]),
    )
    write_preset(curve, spec, args.agreement)
    message = f"people's agreement: {curve.about}; written to {args.agreement}"
    print(f"mtmetrics: {message}", file=sys.stderr)


def _compare_layers(args: argparse.Namespace, spec: MetricSpec, measure: Measure) -> None:
    is_drawn = args.plot is not None
    if is_drawn:
        check_plot_file(args.plot, "--plot")
    files = judged_files(args)
    studies = layer_studies(args, Entry(str(spec), spec), files, measure, intervals=is_drawn)
    print_report(report_layers(studies, _metric_fields(args, spec)), args)
    for table in studies.values():
        print_warnings(remarks(table))
    if is_drawn:
        save_layers(args.plot, studies, f"{spec.metric}, preset {spec.preset}")


def _metric_fields(args: argparse.Namespace, spec: MetricSpec) -> dict[str, str]:
    """Returns the metric, its preset and the field of the translations, for JSON."""
    preset = {} if spec.preset is None else {"preset": spec.preset}
    return {"metric": spec.metric, **preset, "field": args.field}
