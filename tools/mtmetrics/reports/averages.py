"""A paper's table whose columns are averages over its other tables: our averages beside the
published ones."""

import dataclasses
from collections.abc import Mapping

from mtmetrics.reports.agreement import MetricTable
from mtmetrics.reports.agreement_report import grid_beside_paper
from mtmetrics.reports.recipes import Mean, Recipe, RecipeRow, load_recipe
from mtmetrics.reports.styles import Report
from mtmetrics.statistics.correlation import Correlation, mean


@dataclasses.dataclass(frozen=True)
class AverageRow:
    """A row of the paper's table.

    Attributes:
        title: its name; differences from the published row stand in brackets.
        published: column -> the paper's average, where it has one.
        measured: column -> our average, where there is one.
    """

    title: str
    published: dict[str, float]
    measured: dict[str, Correlation]


def average_rows(recipe: Recipe, tables: Mapping[str, MetricTable]) -> list[AverageRow]:
    """The rows of a table of averages, over the language pairs that were run.

    Args:
        recipe: the table of averages.
        tables: recipe of another table -> its correlations, where it was run.
    """
    titles = {name: [row.title for row in load_recipe(name).rows] for name in tables}
    return [_average_row(row, recipe.means, tables, titles) for row in recipe.rows]


def _average_row(
    paper: RecipeRow,
    means: Mapping[str, Mean],
    tables: Mapping[str, MetricTable],
    titles: Mapping[str, list[str]],
) -> AverageRow:
    """Averages a row of the paper.

    Args:
        paper: the row.
        means: column -> the table that it averages.
        tables: recipe -> its correlations.
        titles: recipe -> the titles of its rows.
    """
    measured: dict[str, Correlation] = {}
    differences: list[str] = []
    for column, averaged in means.items():
        if paper.title not in titles.get(averaged.recipe, []):
            continue
        table = tables[averaged.recipe]
        row = table.rows[titles[averaged.recipe].index(paper.title)]
        correlations: dict[str, Correlation] = {}
        missing_pairs: list[str] = []
        for number, file in enumerate(table.columns):
            if averaged.pairs and file.lang_pair not in averaged.pairs:
                continue
            if number in row.scored.missing:
                missing_pairs.append(file.lang_pair)
            elif row.cells:
                correlations[f"{number}: {file.file}"] = row.cells[number].correlation
        if not correlations:
            continue
        measured[column] = mean(correlations)
        if missing_pairs:
            pairs = " ".join(dict.fromkeys(missing_pairs))
            differences.append(f"{column} without {pairs}")
        # The title of the row has its own differences in brackets.
        differences.append(row.scored.entry.title.removeprefix(paper.title).strip(" []"))
    distinct = "; ".join(filter(None, dict.fromkeys(differences)))
    title = f"{paper.title} [{distinct}]" if distinct else paper.title
    return AverageRow(title, paper.published, measured)


def report_averages(recipe: Recipe, tables: Mapping[str, MetricTable]) -> Report:
    """A row per metric; for each column of the paper our averages, then the published ones."""
    lines = []
    rows = []
    for row in average_rows(recipe, tables):
        values = {column: average.value for column, average in row.measured.items()}
        lines.append((row.title, values, row.published))
        measured = {column: average.known for column, average in row.measured.items()}
        rows.append({"title": row.title, "published": row.published, "measured": measured})
    notes = [*_coverage(recipe, tables), f"Published: {recipe.title}. {recipe.citation}"]
    document = {"recipe": recipe.name, "coefficient": recipe.coefficient, "rows": rows}
    return Report(document, [grid_beside_paper(recipe.pairs, lines), *notes])


def _coverage(recipe: Recipe, tables: Mapping[str, MetricTable]) -> list[str]:
    """A line for each column whose average is not over the language pairs of the paper's."""
    lines = []
    for column, averaged in recipe.means.items():
        pairs = list(averaged.pairs) or load_recipe(averaged.recipe).pairs
        covered: list[str] = []
        if averaged.recipe in tables:
            table_pairs = {file.lang_pair for file in tables[averaged.recipe].columns}
            covered = [pair for pair in pairs if pair in table_pairs]
        if covered != pairs:
            over = f"over {' '.join(covered)}" if covered else "not run"
            lines.append(f"{column}: {over}; the paper's average is over {' '.join(pairs)}.")
    return lines
