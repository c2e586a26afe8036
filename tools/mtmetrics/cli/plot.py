"""``mtmetrics plot``: pictures of how well metrics agree with human judgements."""

import argparse
import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from mtmetrics.cli import options
from mtmetrics.cli.judged_files import judge, judged_files
from mtmetrics.cli.output import TABLE_FORMATS, print_report, print_warnings
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.reports.agreement import MetricTable
    from mtmetrics.reports.metric_runs import Entry, MetricRuns

_DEVELOPMENT = (
    "weights belong to development data: choosing them on the set that is reported makes every "
    "number too good"
)
_INPUT: options.Options = {
    "--data FILE ...!": "human judgements, in any layout that mtmetrics evaluate reads",
    **options.JUDGED,
    "--out FILE!": "the picture, .png, .svg or .pdf",
}
_COLUMN: options.Options = {
    "--column NAME": ("also scores that stand in the data; repeatable", {"action": "append"})
}
_COEFFICIENT: options.Options = {
    "--coefficient": ("of agreement", ("pearson", "spearman", "kendall-b", "kendall-c"))
}
_PARTS: options.Options = {
    "--parts A,B[,C]": (
        "parts to weigh (default: all; of uscore wmd, pseudo and lm); -A turns the sign of one "
        "whose low values are good, such as wmd of sentsim: --parts=-wmd,sss"
    ),
    "--steps": ("steps from a weight of 0 to one of 1", 10),
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Scores translations that people have judged, and draws the scores and their agreement "
        "with the judgements as PNG, SVG or PDF."
    )
    plots = {
        name: (run, what, f"Draws {what}.", _INPUT | own)
        for name, (run, what, own) in _PLOTS.items()
    }
    for name, plot in options.add_actions(parser, plots, title="plots", metavar="PLOT").items():
        plot.set_defaults(level="segment", column=[], coefficient="pearson")
        options.add_metric_options(plot, several=True)
        if name == "weights":
            options.add_output_options(plot, TABLE_FORMATS)


def _scatter(args: argparse.Namespace) -> None:
    from mtmetrics.reports import figures, plots

    _, _, table = _judged(args)
    panels = {
        label: {
            row.scored.entry.title: (
                column.take(row.scored.scores[number]),
                column.judgements["human"],
            )
            for row in table.rows
        }
        for number, (label, column) in enumerate(zip(table.labels, table.columns, strict=True))
    }
    figures.save_figure(plots.draw_scatter(panels), args.out)


def _bars(args: argparse.Namespace) -> None:
    from mtmetrics.reports import figures, plots

    _, _, table = _judged(args, intervals=True)
    several = len(table.labels) > 1
    bars = {
        row.scored.entry.title: [
            *(plots.Bar(cell.correlation.value, *(cell.interval or ())[:2]) for cell in row.cells),
            *([plots.Bar(row.average.value)] if several else []),
        ]
        for row in table.rows
    }
    groups = [*table.labels, *(["mean"] if several else [])]
    figure = plots.draw_bars(
        bars, groups, title="95 % bootstrap intervals", y_label=_agreement(args)
    )
    figures.save_figure(figure, args.out)


def _weights(args: argparse.Namespace) -> None:
    from mtmetrics.checks import positive
    from mtmetrics.reports import figures, plots

    if len(args.metric or []) > 1:
        raise InputError("--metric: a plot of weights shows the parts of one metric")
    positive("steps", args.steps)
    result, [whole, *_], table = _judged(args)
    parts = _chosen_parts(args.parts, *result.with_parts(whole))
    grids = {}
    for number, (label, column) in enumerate(zip(table.labels, table.columns, strict=True)):
        values = {part.title: column.take(result.scored(part).scores[number]) for part in parts}
        grids[label] = plots.weight_grid(
            values, column.judgements["human"], args.steps, coefficient=args.coefficient
        )
    mean = plots.mean_grid(grids)
    about = {"metric": whole.title, "coefficient": args.coefficient}
    print_report(plots.report_weights(grids, about), args)
    over = f"mean of {len(grids)} files" if len(grids) > 1 else next(iter(grids))
    figures.save_figure(
        plots.draw_weights(mean, title=f"{whole.title}: {over}", label=_agreement(args)), args.out
    )
    print(f"mtmetrics: {plots.best_weights(mean)}", file=sys.stderr)
    print_warnings([_DEVELOPMENT])


def _judged(
    args: argparse.Namespace, *, intervals: bool = False
) -> "tuple[MetricRuns, list[Entry], MetricTable]":
    """Runs the metrics on the data, and says on standard error what is unusual; the table of their
    agreement names the files and holds the judgements."""
    from mtmetrics.reports.agreement import Measure, remarks
    from mtmetrics.reports.figures import check_plot_file
    from mtmetrics.reports.metric_runs import Entry

    check_plot_file(args.out, "mtmetrics plot")
    specs = options.metric_specs(args, usual=() if args.column else (options.USUAL_METRIC,))
    files = judged_files(args)
    entries = [
        *(Entry(name, spec) for name, spec in specs.items()),
        *map(Entry.of_column, args.column),
    ]
    result, table = judge(args, entries, files, Measure(args.coefficient), intervals=intervals)
    print_warnings([*result.notes(), *remarks(table)])
    return result, entries, table


def _chosen_parts(asked: str | None, whole: "Entry", *parts: "Entry") -> "list[Entry]":
    """The parts to weigh, as rows of their own."""
    from mtmetrics.scorers.uscore import WORD_PARTS

    names = [part.part for part in parts]
    # Fig. 4 of Belouadi and Eger (2023): the other parts of UScore hold these, or are of another
    # level.
    of_words = (
        [name for name in names if name in WORD_PARTS] if whole.metric.metric == "uscore" else names
    )
    chosen = of_words if asked is None else [name.strip() for name in asked.split(",")]
    if not 2 <= len(chosen) <= 3 or len({name.removeprefix("-") for name in chosen}) != len(chosen):
        if not names:
            raise InputError(f"{whole.title}: has no parts to weigh; take another metric")
        raise InputError(
            f"--parts: two or three of {', '.join(names)} are needed, got {', '.join(chosen)}"
        )
    return [
        dataclasses.replace(
            whole, title=name, part=name.removeprefix("-"), falls=name.startswith("-")
        )
        for name in chosen
    ]


def _agreement(args: argparse.Namespace) -> str:
    return f"{args.coefficient} with human judgements"


# Name -> what draws it, what it shows, and options.
_PLOTS: dict[str, tuple[Any, str, options.Options]] = {
    "scatter": (
        _scatter,
        "scores against human judgements, with Pearson's r and the regression line",
        _COLUMN,
    ),
    "bars": (
        _bars,
        "the correlation of each metric for each language pair, with 95 % bootstrap intervals",
        _COEFFICIENT | _COLUMN,
    ),
    "weights": (
        _weights,
        (
            "the correlation as a function of the weights of two or three parts of a score; prints "
            "the numbers too"
        ),
        _COEFFICIENT | _PARTS,
    ),
}
