"""A paper's table of averages over its other tables, and ours beside them."""

import dataclasses
from collections.abc import Mapping

from mtmetrics.reports.agreement import MetricTable
from mtmetrics.reports.recipes import Mean, Recipe, RecipeRow, load_recipe
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
    """The averages of the rows of some tables, recipe -> table, over the language pairs that were
    run."""
    titles = {name: [row.title for row in load_recipe(name).rows] for name in tables}
    return [_average_row(row, recipe.means, tables, titles) for row in recipe.rows]


def _average_row(
    paper: RecipeRow,
    means: Mapping[str, Mean],
    tables: Mapping[str, MetricTable],
    titles: Mapping[str, list[str]],
) -> AverageRow:
    measured = {}
    marks: dict[str, None] = {}  # in the order of the columns, each once
    for column, wanted in means.items():
        if paper.title not in titles.get(wanted.recipe, []):
            continue
        table = tables[wanted.recipe]
        row = table.rows[titles[wanted.recipe].index(paper.title)]
        correlations, missing_pairs = {}, {}
        for number, file in enumerate(table.columns):
            if wanted.pairs and file.lang_pair not in wanted.pairs:
                continue
            if number in row.scored.missing:
                missing_pairs[file.lang_pair] = None
            elif row.cells:
                correlations[f"{number}: {file.file}"] = row.cells[number].correlation
        if not correlations:
            continue
        measured[column] = mean(correlations)
        if missing_pairs:
            marks[f"{column} without {' '.join(missing_pairs)}"] = None
        marks[row.scored.entry.title.removeprefix(paper.title).strip(" []")] = None
    mark = "; ".join(filter(None, marks))
    title = f"{paper.title} [{mark}]" if mark else paper.title
    return AverageRow(title, paper.published, measured)


def report_averages(recipe: Recipe, tables: Mapping[str, MetricTable]) -> Report:
    """Rows metrics, columns as the paper has them, ours before its own."""
    head: list[Cell] = ["metric"]
    for column in recipe.pairs:
        head += [column, f"{column} published"]
    lines: list[list[Cell]] = []
    rows = []
    for row in average_rows(recipe, tables):
        line: list[Cell] = [row.title]
        for column in recipe.pairs:
            line.append(correlation_text(row.measured[column]) if column in row.measured else "")
            line.append(decimals(row.published[column]) if column in row.published else "")
        lines.append(line)
        measured = {column: average.known for column, average in row.measured.items()}
        rows.append({"title": row.title, "published": row.published, "measured": measured})
    notes = [*_coverage(recipe, tables), f"Published: {recipe.title}. {recipe.citation}"]
    document = {"recipe": recipe.name, "coefficient": recipe.coefficient, "rows": rows}
    return Report(document, [Grid([head, *lines], range(1, len(head))), *notes])


def _coverage(recipe: Recipe, tables: Mapping[str, MetricTable]) -> list[str]:
    """A line for each column whose average is not over the language pairs of the paper's."""
    lines = []
    for column, wanted in recipe.means.items():
        pairs = list(wanted.pairs) or load_recipe(wanted.recipe).pairs
        table = tables.get(wanted.recipe)
        table_pairs = {file.lang_pair for file in table.columns} if table is not None else set()
        covered = [pair for pair in pairs if pair in table_pairs]
        if covered != pairs:
            over = f"over {' '.join(covered)}" if covered else "not run"
            lines.append(f"{column}: {over}; the paper's average is over {' '.join(pairs)}.")
    return lines
