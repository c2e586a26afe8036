"""A paper's table of averages over its other tables, and ours beside them."""

import dataclasses
from collections.abc import Mapping

from mtmetrics.reports.agreement import MetricTable
from mtmetrics.reports.recipes import Recipe, load_recipe
from mtmetrics.reports.styles import Cell, Grid, Report, correlation_text, decimals
from mtmetrics.statistics.correlation import Correlation, mean


@dataclasses.dataclass(frozen=True)
class AverageRow:
    """A row of the paper's table with how it was run here in brackets: column -> its average,
    published and measured, where there is one."""

    title: str
    published: dict[str, float]
    measured: dict[str, Correlation]


def average_rows(recipe: Recipe, tables: Mapping[str, MetricTable]) -> list[AverageRow]:
    """The averages of the rows of some tables, recipe -> what was measured, over the language pairs
    that were run."""
    titles = {name: [row.title for row in load_recipe(name).rows] for name in tables}
    rows = []
    for paper in recipe.rows:
        measured, marks = {}, {}
        for column, wanted in recipe.means.items():
            if wanted.recipe not in tables or paper.title not in titles[wanted.recipe]:
                continue
            table = tables[wanted.recipe]
            row = table.rows[titles[wanted.recipe].index(paper.title)]
            cells = zip(table.columns, row.cells, strict=False)
            found = {
                f"{number}: {file.file}": cell.correlation
                for number, (file, cell) in enumerate(cells)
                if file.lang_pair in (wanted.pairs or [file.lang_pair])
                and number not in row.scored.missing
            }
            lacking = [
                file.lang_pair
                for number, file in enumerate(table.columns)
                if file.lang_pair in (wanted.pairs or [file.lang_pair])
                and number in row.scored.missing
            ]
            if found:
                measured[column] = mean(found)
                if lacking:
                    marks[f"{column} without {' '.join(dict.fromkeys(lacking))}"] = None
                marks[row.scored.entry.title.removeprefix(paper.title).strip(" []")] = None
        mark = "; ".join(filter(None, marks))
        rows.append(
            AverageRow(
                f"{paper.title} [{mark}]" if mark else paper.title, paper.published, measured
            )
        )
    return rows


def report_averages(recipe: Recipe, tables: Mapping[str, MetricTable]) -> Report:
    """Rows metrics, columns as the paper has them, ours before its own."""
    rows = average_rows(recipe, tables)
    found = [
        {
            "title": row.title,
            "published": row.published,
            "measured": {column: value.known for column, value in row.measured.items()},
        }
        for row in rows
    ]
    head: list[Cell] = [
        "metric",
        *(name for column in recipe.pairs for name in (column, f"{column} published")),
    ]
    lines: list[list[Cell]] = []
    for row in rows:
        line: list[Cell] = [row.title]
        for column in recipe.pairs:
            line.append(correlation_text(row.measured[column]) if column in row.measured else "")
            line.append(decimals(row.published[column]) if column in row.published else "")
        lines.append(line)
    notes = [*_coverage(recipe, tables), f"Published: {recipe.title}. {recipe.citation}"]
    document = {"recipe": recipe.name, "coefficient": recipe.coefficient, "rows": found}
    return Report(document, [Grid([head, *lines], range(1, len(head))), *notes])


def _coverage(recipe: Recipe, tables: Mapping[str, MetricTable]) -> list[str]:
    """A line for each column whose average is not over the language pairs of the paper's."""
    lines = []
    for column, wanted in recipe.means.items():
        pairs = list(wanted.pairs) or load_recipe(wanted.recipe).pairs
        there = (
            [file.lang_pair for file in tables[wanted.recipe].columns]
            if wanted.recipe in tables
            else []
        )
        given = [pair for pair in pairs if pair in there]
        if given != pairs:
            over = f"over {' '.join(given)}" if given else "not run"
            lines.append(f"{column}: {over}; the paper's average is over {' '.join(pairs)}.")
    return lines
