"""Pictures of how well metrics agree with human judgements, for ``mtmetrics evaluate --plot``."""

import argparse
import dataclasses
import sys

from mtmetrics.cli.output import print_report, print_warnings
from mtmetrics.errors import InputError
from mtmetrics.reports import figures, plots
from mtmetrics.reports.agreement import MetricTable
from mtmetrics.reports.metric_runs import Entry, MetricRuns
from mtmetrics.reports.plots import Bar
from mtmetrics.scorers.uscore import WORD_PARTS

_DEVELOPMENT = (
    "weights belong to development data: choosing them on the set that is reported makes every "
    "number too good"
)


def draw(
    args: argparse.Namespace,
    path: str,
    runs: MetricRuns,
    entries: list[Entry],
    table: MetricTable,
) -> None:
    """Draws the picture that the arguments name, and prints the numbers of one of weights."""
    if args.draw == "scatter":
        _draw_scatter(table, path)
    elif args.draw == "bars":
        _draw_bars(table, path)
    else:
        _draw_weights(args, path, runs, entries[0], table)


def _draw_scatter(table: MetricTable, path: str) -> None:
    panels = {}
    for number, (label, column) in enumerate(zip(table.labels, table.columns, strict=True)):
        human = column.judgements["human"]
        panels[label] = {
            row.scored.entry.title: (column.take(row.scored.scores[number]), human)
            for row in table.rows
        }
    figures.save_figure(plots.draw_scatter(panels), path)


def _draw_bars(table: MetricTable, path: str) -> None:
    bars, groups = bars_of(table)
    figure = plots.draw_bars(
        bars, groups, title="95 % bootstrap intervals", y_label=_agreement(table)
    )
    figures.save_figure(figure, path)


def bars_of(table: MetricTable) -> tuple[dict[str, list[Bar]], list[str]]:
    """Returns the bars of each row that could be run, and the names of their groups: the columns
    and, of several columns, their mean."""
    has_mean = len(table.labels) > 1
    bars = {}
    for row in table.rows:
        if not row.cells:
            continue
        bars_of_row = []
        for cell in row.cells:
            ends = (cell.interval or ())[:2]
            bars_of_row.append(Bar(cell.correlation.value, *ends))
        if has_mean:
            bars_of_row.append(Bar(row.average.value))
        bars[row.scored.entry.title] = bars_of_row
    return bars, [*table.labels, "mean"] if has_mean else table.labels


def _draw_weights(
    args: argparse.Namespace, path: str, runs: MetricRuns, entry: Entry, table: MetricTable
) -> None:
    parts = _chosen_parts(args.weigh, *runs.with_parts(entry))
    coefficient = table.measure.name
    grids = {}
    for number, (label, column) in enumerate(zip(table.labels, table.columns, strict=True)):
        values = {part.title: column.take(runs.scored(part).scores[number]) for part in parts}
        grids[label] = plots.weight_grid(
            values, column.judgements["human"], args.steps, coefficient=coefficient
        )
    mean = plots.mean_grid(grids)
    about = {"metric": entry.title, "coefficient": coefficient}
    print_report(plots.report_weights(grids, about), args)
    files = f"mean of {len(grids)} files" if len(grids) > 1 else next(iter(grids))
    figure = plots.draw_weights(mean, title=f"{entry.title}: {files}", label=_agreement(table))
    figures.save_figure(figure, path)
    print(f"mtmetrics: {plots.best_weights(mean)}", file=sys.stderr)
    print_warnings([_DEVELOPMENT])


def _chosen_parts(names: str | None, score: Entry, *parts: "Entry") -> list[Entry]:
    """Returns the parts to weigh, as rows of their own.

    Args:
        names: of the parts, joined by commas; -A turns the sign of A.
        score: the row of the whole score.
        parts: the rows of its parts.

    Raises:
        InputError: these are not two or three different parts.
    """
    available = [part.part for part in parts]
    if names is not None:
        chosen = [name.strip() for name in names.split(",")]
    elif score.metric is not None and score.metric.metric == "uscore":
        # Fig. 4 of Belouadi and Eger (2023): the other parts of UScore hold these, or are of
        # another level.
        chosen = [name for name in available if name in WORD_PARTS]
    else:
        chosen = available
    distinct_parts = {name.removeprefix("-") for name in chosen}
    if not 2 <= len(chosen) <= 3 or len(distinct_parts) != len(chosen):
        if not available:
            raise InputError(f"{score.title}: has no parts to weigh; take another metric")
        raise InputError(
            f"--weigh: two or three of {', '.join(available)} are needed, got {', '.join(chosen)}"
        )
    return [
        dataclasses.replace(
            score, title=name, part=name.removeprefix("-"), falls=name.startswith("-")
        )
        for name in chosen
    ]


def _agreement(table: MetricTable) -> str:
    return f"{table.measure.name} with human judgements"
