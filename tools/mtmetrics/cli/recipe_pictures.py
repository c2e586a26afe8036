"""Pictures in the reports of ``mtmetrics evaluate --recipe``: the paper's numbers and those measured
here.

Each function draws ``FOLDER/NAME.svg`` and returns the paragraphs of the report that show it: one,
or none where there is nothing to draw."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.cli.plot import bars_of
from mtmetrics.reports.agreement import MetricTable
from mtmetrics.reports.agreement_report import coefficient_name
from mtmetrics.reports.averages import average_rows
from mtmetrics.reports.figures import save_figure
from mtmetrics.reports.plots import Bar, draw_bars, draw_published
from mtmetrics.reports.recipes import Recipe

if TYPE_CHECKING:
    import matplotlib.figure


def draw_against_published(folder: str, table: MetricTable, recipe: Recipe) -> list[str]:
    """Draws each row of a table as points: the paper's numbers against ours."""
    points = {}
    for row, recipe_row in zip(table.rows, recipe.rows, strict=True):
        points_of_row = []
        for column, cell in zip(table.columns, row.cells, strict=False):
            published = recipe_row.published.get(column.lang_pair, math.nan)
            measured = cell.correlation.value
            if not (math.isnan(published) or math.isnan(measured)):
                points_of_row.append((published, measured))
        if points_of_row:
            points[row.scored.entry.title] = points_of_row
    if not points:
        return []
    label = coefficient_name(table.measure)
    figure = draw_published(points, title=_number_in_paper(recipe), label=label)
    return _saved(folder, recipe, figure, "published numbers against those measured here")


def draw_measured(folder: str, table: MetricTable, recipe: Recipe) -> list[str]:
    """Draws the rows of a table that could be run as bars with intervals."""
    bars, groups = bars_of(table)
    if not bars:
        return []
    title = f"{_number_in_paper(recipe)}, 95 % bootstrap intervals"
    figure = draw_bars(bars, groups, title=title, y_label=coefficient_name(table.measure))
    return _saved(folder, recipe, figure, recipe.title)


def draw_averages(folder: str, tables: dict[str, MetricTable], recipe: Recipe) -> list[str]:
    """Draws the paper's averages and ours as bars beside each other, for each row.

    Args:
        folder: of the report.
        tables: name of a recipe -> its table.
        recipe: says which of these tables are averaged.
    """
    rows = average_rows(recipe, tables)
    bars = {}
    for column in recipe.pairs:
        published = [row.published.get(column, math.nan) for row in rows]
        measured = [
            row.measured[column].value if column in row.measured else math.nan for row in rows
        ]
        if not all(map(math.isnan, measured)):
            bars[f"{column}, published"] = [Bar(value) for value in published]
            bars[f"{column}, here"] = [Bar(value) for value in measured]
    if not bars:
        return []
    groups = [row.title for row in rows]
    figure = draw_bars(bars, groups, title=_number_in_paper(recipe), y_label="average correlation")
    return _saved(folder, recipe, figure, "published averages beside those measured here")


def _number_in_paper(recipe: Recipe) -> str:
    """Returns the beginning of the title, such as ``Table 1``."""
    return recipe.title.partition(":")[0]


def _saved(
    folder: str, recipe: Recipe, figure: "matplotlib.figure.Figure", caption: str
) -> list[str]:
    path = Path(folder) / f"{recipe.name}.svg"
    path.parent.mkdir(exist_ok=True)
    save_figure(figure, str(path))
    return [f"![{caption}]({path.name})"]
