"""Reports of correlations with human judgements: `report_metrics` is a table as papers print it,
`report_files` has a row per file, and `report_layers` a row per layer of an encoder."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mtmetrics.errors import InputError
from mtmetrics.reports.agreement import Measure, MetricCell, MetricRow, MetricTable
from mtmetrics.reports.metric_runs import SCORE, RowScores, measures
from mtmetrics.reports.recipes import Recipe
from mtmetrics.reports.styles import Cell, Grid, Marked, Report, Table, correlation_text, decimals
from mtmetrics.scorers.results import MetricResult
from mtmetrics.statistics.correlation import Correlation
from mtmetrics.statistics.significance import ALPHA, NO_INTERVAL, Interval

# Tests and coefficients as papers call them.
_TESTS = {"williams": "Williams' test", "perm-both": "PERM-BOTH"}
_COEFFICIENTS = {
    "pearson": "Pearson's r",
    "spearman": "Spearman's rho",
    "kendall-b": "Kendall's tau-b",
    "kendall-c": "Kendall's tau-c",
    "darr": "DARR Kendall's tau",
    "acc23": "pairwise accuracy with tie calibration",
    "spa": "soft pairwise accuracy of systems",
}


class Column(NamedTuple):
    """A column of a table: its title, and a cell for each row."""

    title: str
    cells: list[Cell]


def report_metrics(
    table: MetricTable, about: Mapping[str, object], recipe: Recipe | None = None
) -> Report:
    """A row per metric, a column per file and one for the average; the best value of a column is
    bold.

    Under a table for readers stand notes: the meaning of the marks, signatures, and the reasons for
    empty rows; in ``csv`` and ``tsv`` signatures and reasons are columns.

    Args:
        table: the correlations.
        about: fields on the judgements, for JSON alone.
        recipe: the table of a paper, whose numbers stand beside ours; it has the same rows.
    """
    columns = _columns(table) if recipe is None else _columns_beside_paper(table, recipe)
    columns = [Column("metric", [row.scored.entry.title for row in table.rows]), *columns]
    signatures = [joined_signature(row.scored.known_signatures) for row in table.rows]
    problems = [_problem(row.scored, table.labels) for row in table.rows]
    flat = [*columns, Column("signature", signatures), Column("problem", problems)]
    notes = _notes(table, recipe)
    document = {**about, **_as_json(table, recipe)}
    return Report(
        document,
        [Grid(_rows(columns), range(1, len(columns))), *notes],
        flat=_rows(flat),
    )


def _rows(columns: Sequence[Column]) -> Table:
    """The rows of a table, the head first."""
    head = [column.title for column in columns]
    return [head, *map(list, zip(*(column.cells for column in columns), strict=True))]


def _columns(table: MetricTable) -> list[Column]:
    """A column per file, then the average of several files, then the accuracy of systems."""
    columns = [_file_column(table, number) for number in range(len(table.columns))]
    if len(table.columns) > 1:
        columns.append(Column("average", [_average(row) for row in table.rows]))
    if any(row.accuracy for row in table.rows):
        accuracies = [correlation_text(row.accuracy) if row.accuracy else "" for row in table.rows]
        columns.append(Column("accuracy", accuracies))
    return columns


def _columns_beside_paper(table: MetricTable, recipe: Recipe) -> list[Column]:
    """For each file our column and the paper's, then the averages of both over these files and
    their difference, then the paper's other columns."""
    pairs = [column.lang_pair for column in table.columns]
    columns = []
    for number, pair in enumerate(pairs):
        columns += [_file_column(table, number), _published_column(recipe, pair)]
    if len(pairs) > 1:
        # The paper's averages are over the files that our row has, so that both can be compared.
        published: list[float | None] = []
        differences: list[Cell] = []
        for row, paper in zip(table.rows, recipe.rows, strict=True):
            row_pairs = [
                pair for number, pair in enumerate(pairs) if number not in row.scored.missing
            ]
            published.append(paper.average_over(row_pairs))
            differences.append(_difference(row, published[-1]))
        columns.append(Column("average", [_average(row) for row in table.rows]))
        columns.append(Column("average published", [_number(average) for average in published]))
        columns.append(Column("difference", differences))
    columns += [_published_column(recipe, pair) for pair in recipe.pairs if pair not in pairs]
    averages = [_number(paper.average) for paper in recipe.rows]
    return [*columns, Column("average of all published", averages)]


def grid_beside_paper(
    columns: Sequence[str], rows: Sequence[tuple[str, Mapping[str, float], Mapping[str, float]]]
) -> Grid:
    """A table with our number of each column, then the paper's; empty where there is none.

    Args:
        columns: the paper's.
        rows: title, column -> our number, column -> the paper's.
    """
    head: list[Cell] = ["metric"]
    for column in columns:
        head += [column, f"{column} published"]
    table = [head]
    for title, measured, published in rows:
        line: list[Cell] = [title]
        for column in columns:
            line += [_number(measured.get(column)), _number(published.get(column))]
        table.append(line)
    return Grid(table, range(1, len(head)))


def _file_column(table: MetricTable, number: int) -> Column:
    """The column of the file of a number; rows that were not scored on it have empty cells."""
    cells: list[Cell] = []
    for row in table.rows:
        is_scored = row.cells and number not in row.scored.missing
        cells.append(_cell(row.cells[number]) if is_scored else "")
    return Column(table.labels[number], cells)


def _published_column(recipe: Recipe, pair: str) -> Column:
    """The paper's numbers for a language pair."""
    cells = [_number(paper.published.get(pair)) for paper in recipe.rows]
    return Column(f"{pair} published", cells)


def _number(value: float | None) -> str:
    """A number with three decimals; empty for None."""
    return "" if value is None else decimals(value)


def _difference(row: MetricRow, published: float | None) -> str:
    """Our average less the paper's; empty where one of them is missing."""
    measured = row.average.known
    if measured is None or published is None:
        return ""
    return f"{measured - published:+.3f}"


def _average(row: MetricRow) -> Cell:
    """The average of a row, with the number of files behind it where some are missing."""
    if not row.cells:
        return ""
    text = correlation_text(row.average)
    if row.scored.missing:
        text += f" ({len(row.cells) - len(row.scored.missing)} of {len(row.cells)})"
    return Marked(text, row.best)


def _cell(cell: MetricCell) -> Cell:
    """A correlation with its interval and its marks."""
    interval = cell.interval
    text = correlation_text(cell.correlation)
    if interval is not None and interval.reason is None:
        text += f" [{decimals(interval.low)}, {decimals(interval.high)}]"
    elif interval is not None and cell.correlation.reason is None:
        text += " [none]"
    return Marked(text, cell.best, cell.tied)


def coefficient_name(measure: Measure) -> str:
    """A coefficient as papers call it."""
    return _COEFFICIENTS[measure.name]


def _notes(table: MetricTable, recipe: Recipe | None) -> list[str]:
    """The lines under a table for readers."""
    notes = [_legend(table, with_accuracy=recipe is None)]
    if recipe is not None:
        notes.append(f"Published: {recipe.title}. {recipe.citation}")
        if recipe.note:
            notes.append(recipe.note)
        titles = [row.scored.entry.title for row in table.rows]
        if titles != [paper.title for paper in recipe.rows]:
            notes.append("In brackets: how a metric was run here, where that is not as published.")
    for row in table.rows:
        title = row.scored.entry.title
        notes += not_run(row.scored, table.labels)
        if row.scored.signatures and row.scored.entry.part == SCORE:
            notes.append(f"{title}: {joined_signature(row.scored.known_signatures)}")
    return notes


def _legend(table: MetricTable, *, with_accuracy: bool) -> str:
    """A line on the coefficient and the marks of a table."""
    cells = [cell for row in table.rows for cell in row.cells]
    intervals = [cell.interval for cell in cells if cell.interval is not None]
    group = table.measure.group
    by_group = "" if group == "none" else f", mean over the {group}s"
    legend = f"{coefficient_name(table.measure)}{by_group} with human judgements."
    if sum(bool(row.cells) for row in table.rows) > 1:
        legend += " The highest value of a column is bold."
    if any(cell.p_value is not None for cell in cells):
        test = _TESTS[table.test]
        legend += f" † marks values that are not significantly lower ({test}, p ≥ {ALPHA})."
    if intervals:
        legend += " In brackets: 95 % bootstrap intervals (1,000 resamples)."
    if any(interval.reason == NO_INTERVAL for interval in intervals):
        legend += f" [none]: {NO_INTERVAL}."
    if with_accuracy and any(row.accuracy is not None for row in table.rows):
        legend += " Accuracy: share of all pairs of systems that the metric orders as people do."
    return legend


def not_run(row: RowScores, labels: Sequence[str]) -> list[str]:
    """The lines under a table on what was not scored of a row; `labels` name its files."""
    title = row.entry.title
    if row.problem is not None:
        return [f"Not run: {title}: {row.problem}"]
    return [
        f"Not run: {title} for {' '.join(names)}: {reason}"
        for reason, names in _missing(row, labels).items()
    ]


def _problem(row: RowScores, labels: Sequence[str]) -> str:
    """The reasons why the row, or some of its files, were not scored; empty where all files
    were."""
    if row.problem is not None:
        return row.problem
    missing = _missing(row, labels)
    return "; ".join(f"{' '.join(names)}: {reason}" for reason, names in missing.items())


def _missing(row: RowScores, labels: Sequence[str]) -> dict[str, list[str]]:
    """Reason why a row lacks files -> the names of their columns."""
    labels_by_reason: dict[str, list[str]] = {}
    for number, reason in row.missing.items():
        labels_by_reason.setdefault(reason, []).append(labels[number])
    return labels_by_reason


def _as_json(table: MetricTable, recipe: Recipe | None) -> dict[str, object]:
    """The table as plain data."""
    rows = [_row_as_json(row) for row in table.rows]
    document: dict[str, object] = {}
    if recipe is not None:
        fields = ("name", "title", "citation", "note")
        document["recipe"] = {field: getattr(recipe, field) for field in fields}
        for row, paper in zip(rows, recipe.rows, strict=True):
            row |= {"published": paper.published, "published_average": paper.average}
    return document | {
        "coefficient": table.measure.name,
        "group": table.measure.group,
        "significance": table.test,
        "columns": [
            {"file": column.file, "lp": column.lang_pair, "n": len(column.judgements)}
            for column in table.columns
        ],
        "rows": rows,
    }


def _row_as_json(row: MetricRow) -> dict[str, object]:
    """A row as plain data."""
    entry = row.scored.entry
    document: dict[str, object] = {"title": entry.title}
    if entry.metric is not None:
        document |= {"metric": str(entry.metric), "part": entry.part, "sign_turned": entry.falls}
    if entry.column is not None:
        document["column"] = entry.column
    if row.scored.problem is not None:
        return {**document, "problem": row.scored.problem}
    document["values"] = [_cell_as_json(cell) for cell in row.cells]
    document["average"] = row.average.known
    document["best"] = row.best
    if row.accuracy is not None:
        document["accuracy"] = row.accuracy.known
    return {**document, "signatures": row.scored.known_signatures}


def _cell_as_json(cell: MetricCell) -> dict[str, object]:
    """A cell as plain data; fields that do not apply are absent."""
    correlation, p_value, interval = cell.correlation, cell.p_value, cell.interval
    document: dict[str, object] = {"value": correlation.known, "best": cell.best}
    if correlation.reason is not None:
        document["undefined"] = correlation.reason
    if correlation.left_out:
        document["left_out"] = correlation.left_out
    if correlation.undefined_groups:
        document["undefined_groups"] = correlation.undefined_groups
    if p_value is not None:
        document |= {"p": p_value.known, "not_significantly_worse": cell.tied}
        if p_value.reason is not None:
            document["p_undefined"] = p_value.reason
    if interval is not None and interval.reason is None:
        ends = {field: getattr(interval, field) for field in Interval._fields}
        if interval.undefined:
            ends["undefined_resamples"] = interval.undefined
        document["ci"] = ends
    elif interval is not None and correlation.reason is None:
        document |= {"ci": None, "ci_undefined": interval.reason}
    return document


def report_files(
    table: MetricTable, results: Sequence[MetricResult], about: Mapping[str, object]
) -> Report:
    """A row per file for one metric, and the mean over the files.

    An undefined correlation is null beside its reason in JSON, and ``nan`` in tables.

    Args:
        table: its rows are the score, and perhaps parts of it.
        results: of the metric on each file.
        about: fields on the judgements and the settings, for JSON alone.
    """
    label = table.measure.label
    means = {row.scored.entry.part: row.average for row in table.rows}
    files = []
    rows: list[list[Cell]] = [["file", "lp", "n", *means, "signature"]]
    judgements = 0
    for number, (column, result) in enumerate(zip(table.columns, results, strict=True)):
        correlations = {row.scored.entry.part: row.cells[number].correlation for row in table.rows}
        count = len(column.judgements)
        judgements += count
        files.append(
            {"file": column.file, "lp": column.lang_pair, "n": count}
            | _numbers(correlations, label)
            | {
                "range": _ranges(result, list(correlations)),
                "signature": result.signature,
                "report": result.report.as_dict(),
            }
        )
        numbers = map(correlation_text, correlations.values())
        rows.append([column.file, column.lang_pair, str(count), *numbers, result.signature])
    rows.append(["mean", "", str(judgements), *map(correlation_text, means.values()), ""])
    number_columns = range(2, len(rows[0]) - 1)
    # On a terminal a column of signatures would leave no room for the numbers.
    terminal = [
        Grid([row[:-1] for row in rows], number_columns),
        joined_signature([result.signature for result in results]),
    ]
    document = {**about, "files": files, "mean": _numbers(means, label)}
    return Report(document, [Grid(rows, number_columns)], terminal)


def _numbers(correlations: Mapping[str, Correlation], coefficient: str) -> dict[str, object]:
    """Correlations by the part of a score as plain data, with the reasons of undefined ones."""
    reasons = {
        part: value.reason for part, value in correlations.items() if value.reason is not None
    }
    numbers: dict[str, object] = {
        coefficient: {part: value.known for part, value in correlations.items()}
    }
    return numbers | {"undefined": reasons} if reasons else numbers


def _ranges(result: MetricResult, parts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Part -> its lowest and highest value, without segments that have a blank side."""
    ranges = {}
    for part in parts:
        values = measures(result)[part][~result.empty]
        if values.size:
            ranges[part] = (float(values.min()), float(values.max()))
    return ranges


def chosen_layers(text: str, depth: int | None) -> list[int]:
    """The layers that a user names: ``all``, or numbers up to `depth` (None: no choice) joined by
    commas.

    Example:
        >>> chosen_layers("all", 2), chosen_layers("2,1", 2)
        ([0, 1, 2], [1, 2])
    """
    if depth is None:
        raise InputError("--layers: the encoder of this metric leaves no choice of layer")
    if text == "all":
        return list(range(depth + 1))
    layers = {str(layer): layer for layer in range(depth + 1)}
    names = {name.strip() for name in text.split(",")}
    if not layers.keys() >= names:
        raise InputError(
            f"--layers {text!r}: 'all' or numbers from 0 to {depth} joined by commas are needed"
        )
    return sorted(layers[name] for name in names)


def report_layers(studies: Mapping[int, MetricTable], about: Mapping[str, str]) -> Report:
    """A row per measure and layer for one metric, a column per file, and their mean (Fig. 3 and 4 of
    Song et al., 2021).

    Args:
        studies: layer -> a table with a row for the score, and perhaps for parts of it.
        about: fields on the judgements and the settings, for JSON alone.
    """
    first = next(iter(studies.values()))
    columns = [*(f"{column.file} ({column.lang_pair})" for column in first.columns), "mean"]
    rows = []
    table = [["measure", "layer", *columns]]
    for name, by_layer in layer_curves(studies).items():
        for layer, correlations in by_layer.items():
            values = [correlation.known for correlation in correlations]
            numbers = dict(zip(columns, values, strict=True))
            rows.append({"measure": name, "layer": layer, first.measure.label: numbers})
            table.append([name, str(layer), *map(correlation_text, correlations)])
    return Report({**about, "layers": rows}, [Grid(table, range(1, len(table[0])))])


def layer_curves(studies: Mapping[int, MetricTable]) -> dict[str, dict[int, list[Correlation]]]:
    """Measure -> layer -> the correlation on each file, and last their mean."""
    curves: dict[str, dict[int, list[Correlation]]] = {}
    for layer, table in studies.items():
        for row in table.rows:
            correlations = [*(cell.correlation for cell in row.cells), row.average]
            curves.setdefault(row.scored.entry.part, {})[layer] = correlations
    return curves


def mean_intervals(studies: Mapping[int, MetricTable]) -> dict[str, dict[int, tuple[float, float]]]:
    """Measure -> layer -> the ends of the 95 % interval of the mean over the files, whose errors
    are independent; none where a file has no interval."""
    intervals: dict[str, dict[int, tuple[float, float]]] = {}
    for layer, table in studies.items():
        for row in table.rows:
            below, above = [], []
            for cell in row.cells:
                if cell.interval is not None and cell.interval.reason is None:
                    below.append(cell.correlation.value - cell.interval.low)
                    above.append(cell.interval.high - cell.correlation.value)
            if below and len(below) == len(row.cells):
                low = row.average.value - math.hypot(*below) / len(below)
                high = row.average.value + math.hypot(*above) / len(above)
                intervals.setdefault(row.scored.entry.part, {})[layer] = (low, high)
    return intervals


def joined_signature(signatures: Sequence[str]) -> str:
    """Joins the signatures of several files into one. Where they differ, such as in the language
    pair, all values stand there, joined by commas.

    Example:
        >>> joined_signature(["chrf|lp:de-en", "chrf|lp:cs-en"])
        'chrf|lp:de-en,cs-en'
    """
    distinct = list(dict.fromkeys(signatures))
    split_signatures = [signature.split("|") for signature in distinct]
    # Signatures of different fields cannot be joined.
    if len(set(map(len, split_signatures))) > 1:
        return " ".join(distinct)
    joined_fields = []
    for fields in zip(*split_signatures, strict=True):
        first, *further = dict.fromkeys(fields)
        further_values = [field.partition(":")[2] for field in further]
        joined_fields.append(",".join([first, *further_values]))
    return "|".join(joined_fields)
