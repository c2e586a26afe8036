"""``mtmetrics plot``: pictures of how well metrics agree with human judgements."""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mtmetrics.cli.io import print_warnings
from mtmetrics.cli.metric_specs import USUAL_METRIC, metric_specs
from mtmetrics.cli.options import add_metric_options, model_pool, progress
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.evaluation.measure import Measure
    from mtmetrics.evaluation.metric_table import MetricTable
    from mtmetrics.evaluation.scored import Entry, Run

_FORMATS = ("json", "markdown", "latex", "csv", "tsv")
_COEFFICIENTS = ("pearson", "spearman", "kendall-b", "kendall-c")
_DEVELOPMENT = (
    "weights belong to development data: choosing them on the set that is reported makes every number too good"
)


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "plot",
        help="draw how metrics agree with human judgements",
        description="Scores translations that people have judged, and draws the scores and their agreement with the judgements as PNG.",
    )
    kinds = parser.add_subparsers(title="plots", metavar="PLOT", required=True)
    scatter = _add_plot(
        kinds, "scatter", "scores against human judgements, with Pearson's r and the regression line", _scatter
    )
    bars = _add_plot(
        kinds, "bars", "the correlation of each metric for each language pair, with 95 % bootstrap intervals", _bars
    )
    for kind in (scatter, bars):
        kind.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="NAME",
            help="also scores that stand in the data; repeatable",
        )
    weights = _add_plot(
        kinds,
        "weights",
        "the correlation as a function of the weights of two or three parts of a score; prints the numbers too",
        _weights,
    )
    for kind in (bars, weights):
        kind.add_argument(
            "--coefficient", choices=_COEFFICIENTS, default="pearson", help="of agreement (default: %(default)s)"
        )
    weights.add_argument(
        "--parts",
        metavar="A,B[,C]",
        help="parts to weigh (default: all); -A turns the sign of one whose low values are good, such as wmd of sentsim: --parts=-wmd,sss",
    )
    weights.add_argument(
        "--steps", type=int, default=10, help="steps from a weight of 0 to one of 1 (default: %(default)s)"
    )
    weights.add_argument(
        "--format",
        choices=_FORMATS,
        default="json",
        help="of the numbers; json holds full precision (default: %(default)s)",
    )


def _add_plot(kinds: Any, name: str, what: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    # Unlike a description, help is a format.
    parser: argparse.ArgumentParser = kinds.add_parser(name, help=what.replace("%", "%%"), description=f"Draws {what}.")
    parser.add_argument(
        "--data",
        nargs="+",
        required=True,
        metavar="FILE",
        help="human judgements, in any layout that mtmetrics evaluate reads",
    )
    parser.add_argument("--lp", dest="pair", metavar="XX-YY", help="read this language pair only")
    parser.add_argument(
        "--field", default="translation", help="the field that holds the translation (default: %(default)s)"
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="the picture, FILE.png")
    add_metric_options(parser, several=True)
    parser.set_defaults(run=run)
    return parser


class _Judged(NamedTuple):
    """The metrics on the data, and a table of their agreement, which names the files and holds the judgements."""

    result: "Run"
    entries: "list[Entry]"
    table: "MetricTable"


def _scatter(args: argparse.Namespace) -> int:
    from mtmetrics.evaluation.measure import Measure
    from mtmetrics.evaluation.plots import save_scatter

    judged = _judged(args, args.column, Measure())
    rows = zip(judged.table.labels, judged.table.columns, strict=True)
    panels = {
        label: {
            row.scored.entry.title: (column.take(row.scored.scores[number]), column.human) for row in judged.table.rows
        }
        for number, (label, column) in enumerate(rows)
    }
    save_scatter(panels, args.out)
    return 0


def _bars(args: argparse.Namespace) -> int:
    from mtmetrics.evaluation.measure import Measure
    from mtmetrics.evaluation.plots import Bar, save_bars

    measure = Measure(args.coefficient)
    table = _judged(args, args.column, measure, intervals=True).table
    bars = {
        row.scored.entry.title: [
            *(Bar(cell.correlation.value, *(cell.interval or ())[:2]) for cell in row.cells),
            *([Bar(row.average.value)] if len(row.cells) > 1 else []),
        ]
        for row in table.rows
    }
    groups = [*table.labels, *(["mean"] if len(table.labels) > 1 else [])]
    save_bars(bars, groups, args.out, title="95 % bootstrap intervals", y_label=_agreement(measure))
    return 0


def _weights(args: argparse.Namespace) -> int:
    from mtmetrics.evaluation.measure import Measure
    from mtmetrics.evaluation.plots import save_weight_heatmap
    from mtmetrics.evaluation.weight_report import best_weights, render_weights
    from mtmetrics.evaluation.weights import mean_grid, weight_grid
    from mtmetrics.inputs import positive

    if len(args.metric or []) > 1:
        raise InputError("--metric: a plot of weights shows the parts of one metric")
    positive("steps", args.steps)
    measure = Measure(args.coefficient)
    judged = _judged(args, [], measure)
    parts = _chosen_parts(args.parts, judged)
    grids = {}
    for number, (label, column) in enumerate(zip(judged.table.labels, judged.table.columns, strict=True)):
        values = {part.title: column.take(judged.result.scored(part).scores[number]) for part in parts}
        grids[label] = weight_grid(values, column.human, args.steps, coefficient=args.coefficient)
    whole = mean_grid(grids)
    print(render_weights(grids, {"metric": judged.entries[0].title, "coefficient": args.coefficient}, args.format))
    title = f"{judged.entries[0].title}: " + (f"mean of {len(grids)} files" if len(grids) > 1 else next(iter(grids)))
    save_weight_heatmap(whole, args.out, title=title, label=_agreement(measure))
    print(f"mtmetrics: {best_weights(whole)}", file=sys.stderr)
    print_warnings([_DEVELOPMENT])
    return 0


def _judged(args: argparse.Namespace, columns: list[str], measure: "Measure", *, intervals: bool = False) -> _Judged:
    """Runs the metrics on the data, and says on standard error what is unusual."""
    from mtmetrics.evaluation.data import read_judged
    from mtmetrics.evaluation.figures import check_plot_file
    from mtmetrics.evaluation.heatmap import require_matplotlib
    from mtmetrics.evaluation.measure import Judgements
    from mtmetrics.evaluation.metric_table import metric_table, remarks
    from mtmetrics.evaluation.scored import Entry, run_metrics

    require_matplotlib("mtmetrics plot")
    check_plot_file(args.out)
    specs = metric_specs(args, usual=() if columns else (USUAL_METRIC,))
    files = [
        segments
        for path in args.data
        for segments in read_judged(path, prediction_field=args.field, lang_pair=args.pair)
    ]
    for file in files:
        for name in columns:
            file.column(name)  # refused before an hour of scoring
    result = run_metrics(specs.values(), files, model_pool(args), wrap=progress)
    entries = [*(Entry(name, spec) for name, spec in specs.items()), *map(Entry.of_column, columns)]
    scored = [result.scored(entry) for entry in entries]
    table = metric_table(scored, [Judgements.of(file) for file in files], measure, intervals=intervals)
    print_warnings([*result.notes(), *remarks(table)])
    return _Judged(result, entries, table)


def _chosen_parts(asked: str | None, judged: _Judged) -> "list[Entry]":
    """The parts to weigh, as rows of their own."""
    import dataclasses

    whole, *parts = judged.result.with_parts(judged.entries[0])
    names = [part.part for part in parts]
    chosen = names if asked is None else [name.strip() for name in asked.split(",")]
    if not 2 <= len(chosen) <= 3 or len({name.removeprefix("-") for name in chosen}) != len(chosen):
        raise InputError(
            f"--parts: two or three of {', '.join(names) or '(the metric has no parts)'} are needed, got {', '.join(chosen)}"
        )
    return [
        dataclasses.replace(whole, title=name, part=name.removeprefix("-"), falls=name.startswith("-"))
        for name in chosen
    ]


def _agreement(measure: "Measure") -> str:
    return f"{measure.label} with human judgements"
