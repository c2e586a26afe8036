"""Prints a table of metrics as the papers do: rows metrics, columns language pairs, average, the best in bold; or as
JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mtmetrics.evaluation.correlation import Correlation
from mtmetrics.evaluation.metric_table import ALPHA, TEST_NAMES, MetricCell, MetricRow, MetricTable
from mtmetrics.evaluation.recipes import Recipe, RecipeRow
from mtmetrics.evaluation.scored import SCORE
from mtmetrics.evaluation.table_styles import (
    FOR_READERS,
    STYLES,
    Cell,
    Marked,
    Table,
    latex_text,
    one_line,
    rounded,
    three_decimals,
)

_COEFFICIENTS = {
    "pearson": "Pearson's r",
    "spearman": "Spearman's rho",
    "kendall-b": "Kendall's tau-b",
    "kendall-c": "Kendall's tau-c",
    "darr": "DARR Kendall's tau",
    "acc23": "pairwise accuracy with tie calibration",
    "spa": "soft pairwise accuracy of systems",
}


def render_metrics(table: MetricTable, about: Mapping[str, Any], style: str, *, recipe: Recipe | None = None) -> str:
    """The table without a final line end.

    Args:
        table: the metrics.
        about: what was judged, for JSON alone.
        style: ``json`` (full precision), or a style of tables (three decimals). Under a table for readers stand what
            the marks mean, the signatures, and why rows are empty; ``csv`` and ``tsv`` hold signatures and reasons in
            columns of their own.
        recipe: puts the numbers of a paper's table beside ours; its rows are those of the table.
    """
    if style == "json":
        return json.dumps({**about, **_as_json(table, recipe)}, indent=2, ensure_ascii=False, allow_nan=False)
    rows = _published_table(table, recipe) if recipe is not None else _table(table)
    if style not in FOR_READERS:
        details = [
            ["signature", "problem"],
            *([joined_signature(row.scored.signatures), row.scored.problem or ""] for row in table.rows),
        ]
        return STYLES[style]([[*row, *more] for row, more in zip(rows, details, strict=True)], ())
    text = STYLES[style](rows, range(1, len(rows[0])))
    escape = latex_text if style == "latex" else one_line
    return "\n\n".join(
        [text, *(("\\noindent " if style == "latex" else "") + escape(note) for note in _notes(table, recipe))]
    )


def joined_signature(signatures: Sequence[str]) -> str:
    """One signature for several files: where they differ, such as in language pair and map, all values joined by
    commas.

    Example:
        >>> joined_signature(["xmoverscore|lp:de-en|layer:1", "xmoverscore|lp:fi-en|layer:1"])
        'xmoverscore|lp:de-en,fi-en|layer:1'
    """
    columns = [signature.split("|") for signature in dict.fromkeys(signatures)]
    if len({len(column) for column in columns}) > 1:
        return " ".join(dict.fromkeys(signatures))
    fields = []
    for values in zip(*columns, strict=True):
        first, *others = dict.fromkeys(values)
        fields.append(",".join([first, *(other.partition(":")[2] for other in others)]))
    return "|".join(fields)


def _table(table: MetricTable) -> Table:
    several = len(table.columns) > 1
    accuracy = any(row.accuracy is not None for row in table.rows)
    rows: list[list[Cell]] = [
        ["metric", *table.labels, *(["average"] if several else []), *(["accuracy"] if accuracy else [])]
    ]
    for row in table.rows:
        cells: list[Cell] = [row.scored.entry.title, *_own_cells(table, row)]
        cells += [_average(row)] if several else []
        rows.append([*cells, *([_number(row.accuracy)] if accuracy else [])])
    return rows


def _published_table(table: MetricTable, recipe: Recipe) -> Table:
    """Beside each of our columns the paper's, the averages of both over the pairs that are given, then the paper's
    other columns."""
    given = [column.lang_pair for column in table.columns]
    other = [pair for pair in recipe.pairs if pair not in given]
    head: list[Cell] = ["metric"]
    for label, pair in zip(table.labels, given, strict=True):
        head += [label, f"{pair} published"]
    several = len(given) > 1
    head += ["average", "average published"] if several else []
    head += [*(f"{pair} published" for pair in other), "average of all published"]
    rows: list[list[Cell]] = [head]
    for row, paper in zip(table.rows, recipe.rows, strict=True):
        cells: list[Cell] = [paper.title]
        for own, pair in zip(_own_cells(table, row), given, strict=True):
            cells += [own, _optional(paper.published.get(pair))]
        cells += [_average(row), _optional(_published_average(paper, given))] if several else []
        rows.append([*cells, *(_optional(paper.published.get(pair)) for pair in other), _optional(paper.average)])
    return rows


def _own_cells(table: MetricTable, row: MetricRow) -> list[Cell]:
    return [_cell(cell) for cell in row.cells] or [""] * len(table.columns)


def _cell(cell: MetricCell) -> Cell:
    text = rounded(cell.correlation)
    if cell.interval is not None and cell.interval.reason is None:
        text += f" [{three_decimals(cell.interval.low)}, {three_decimals(cell.interval.high)}]"
    return Marked(text, cell.best, cell.tied)


def _average(row: MetricRow) -> Cell:
    return Marked(rounded(row.average), row.best) if row.cells else ""


def _number(correlation: Correlation | None) -> str:
    return "" if correlation is None else rounded(correlation)


def _optional(value: float | None) -> str:
    return "" if value is None else three_decimals(value)


def _published_average(paper: RecipeRow, given: Sequence[str]) -> float | None:
    """Mean of the paper's numbers for the pairs that are given, None where it lacks one of them."""
    values = [paper.published.get(pair) for pair in given]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _notes(table: MetricTable, recipe: Recipe | None) -> list[str]:
    what = _COEFFICIENTS[table.measure.name]
    by = "" if table.measure.group == "none" else f", mean over the {table.measure.group}s"
    notes = [f"{what}{by} with human judgements."]
    if sum(bool(row.cells) for row in table.rows) > 1:
        notes[0] += " The highest value of a column is bold."
    if any(cell.p_value is not None for row in table.rows for cell in row.cells):
        notes[0] += f" † marks values that are not significantly lower ({TEST_NAMES[table.test]}, p ≥ {ALPHA})."
    if any(cell.interval is not None for row in table.rows for cell in row.cells):
        notes[0] += " In brackets: 95 % bootstrap intervals (1,000 resamples)."
    if recipe is None and any(row.accuracy is not None for row in table.rows):
        notes[0] += " Accuracy: share of all pairs of systems that the metric orders as people do."
    if recipe is not None:
        notes.append(f"Published: {recipe.title}. {recipe.citation}")
        notes += [recipe.note] if recipe.note else []
    for row in table.rows:
        if row.scored.problem is not None:
            notes.append(f"Not run: {row.scored.entry.title}: {row.scored.problem}")
        elif row.scored.signatures and row.scored.entry.part == SCORE:
            notes.append(f"{row.scored.entry.title}: {joined_signature(row.scored.signatures)}")
    return notes


def _as_json(table: MetricTable, recipe: Recipe | None) -> dict[str, Any]:
    columns = [{"file": column.file, "lp": column.lang_pair, "n": len(column)} for column in table.columns]
    rows = [_row_as_json(row) for row in table.rows]
    about = {
        "coefficient": table.measure.name,
        "group": table.measure.group,
        "significance": table.test,
        "columns": columns,
    }
    if recipe is None:
        return {**about, "rows": rows}
    published = [{"published": paper.published, "published_average": paper.average} for paper in recipe.rows]
    rows = [row | paper for row, paper in zip(rows, published, strict=True)]
    return {
        "recipe": {"name": recipe.name, "title": recipe.title, "citation": recipe.citation, "note": recipe.note},
        **about,
        "rows": rows,
    }


def _row_as_json(row: MetricRow) -> dict[str, Any]:
    entry = row.scored.entry
    result: dict[str, Any] = {"title": entry.title}
    if entry.metric is not None:
        result |= {"metric": str(entry.metric), "part": entry.part, "sign_turned": entry.falls}
    if entry.column is not None:
        result["column"] = entry.column
    if row.scored.problem is not None:
        return {**result, "problem": row.scored.problem}
    result |= {"values": [_cell_as_json(cell) for cell in row.cells], "average": row.average.known, "best": row.best}
    if row.accuracy is not None:
        result["accuracy"] = row.accuracy.known
    return {**result, "signatures": row.scored.signatures}


def _cell_as_json(cell: MetricCell) -> dict[str, Any]:
    result: dict[str, Any] = {"value": cell.correlation.known, "best": cell.best}
    if cell.correlation.reason is not None:
        result["undefined"] = cell.correlation.reason
    if cell.correlation.left_out:
        result["left_out"] = cell.correlation.left_out
    if cell.correlation.undefined_groups:
        result["undefined_groups"] = cell.correlation.undefined_groups
    if cell.p_value is not None:
        result |= {"p": cell.p_value.known, "not_significantly_worse": cell.tied}
        if cell.p_value.reason is not None:
            result["p_undefined"] = cell.p_value.reason
    if cell.interval is not None and cell.interval.reason is None:
        interval = cell.interval
        result["ci"] = {name: getattr(interval, name) for name in ("low", "high", "level", "resamples", "seed")}
        if interval.undefined:
            result["ci"]["undefined_resamples"] = interval.undefined
    return result
