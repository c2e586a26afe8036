"""Reports of correlations: a table as the papers print it, a row per file, or a row per layer."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtmetrics.errors import InputError
from mtmetrics.reports.agreement import NOT_SCORED, Measure, MetricCell, MetricRow, MetricTable
from mtmetrics.reports.metric_runs import SCORE, measures
from mtmetrics.reports.recipes import Recipe, RecipeRow
from mtmetrics.reports.styles import Cell, Grid, Marked, Report, Table, correlation_text, decimals
from mtmetrics.scorers.results import MetricResult
from mtmetrics.statistics.correlation import Correlation
from mtmetrics.statistics.significance import ALPHA, NO_INTERVAL, Interval

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


def report_metrics(
    table: MetricTable, about: Mapping[str, Any], recipe: Recipe | None = None
) -> Report:
    """Rows metrics, columns files, average, the best in bold.

    Under a table for readers stand what the marks mean, signatures, and why rows are empty; ``csv``
    and ``tsv`` hold the last two as columns.

    Args:
        about: what was judged, for JSON alone.
        recipe: puts the numbers of a paper's table beside ours; its rows are those of the table.
    """
    rows = _table(table, recipe)
    details = [
        (joined_signature(row.scored.known_signatures), _problem(row, table.labels))
        for row in table.rows
    ]
    flat = [
        [*row, *more] for row, more in zip(rows, [("signature", "problem"), *details], strict=True)
    ]
    blocks = [Grid(rows, range(1, len(rows[0]))), *_notes(table, recipe)]
    return Report({**about, **_as_json(table, recipe)}, blocks, flat=flat)


def report_files(
    table: MetricTable, results: Sequence[MetricResult], about: Mapping[str, Any]
) -> Report:
    """One metric: a row per file, and the mean over the files.

    An undefined correlation is null beside its reason in JSON, ``nan`` in tables.

    Args:
        table: its rows are the score, and perhaps parts of it.
        results: of the metric on each file.
        about: what was judged and how, for JSON alone.
    """
    means = {row.scored.entry.part: row.average for row in table.rows}
    cells = zip(*(row.cells for row in table.rows), strict=True)
    by_file = [
        dict(zip(means, (cell.correlation for cell in column), strict=True)) for column in cells
    ]
    judged = [(column.file, column.lang_pair, len(column.judgements)) for column in table.columns]
    files = [
        dict(zip(("file", "lp", "n"), names, strict=True))
        | _numbers(found, table.measure.label)
        | {
            "range": _ranges(result, [*found]),
            "signature": result.signature,
            "report": result.report.as_dict(),
        }
        for names, found, result in zip(judged, by_file, results, strict=True)
    ]
    rows: list[list[Cell]] = [["file", "lp", "n", *means, "signature"]]
    for (file, pair, n), found, result in zip(judged, by_file, results, strict=True):
        rows.append([file, pair, str(n), *map(correlation_text, found.values()), result.signature])
    rows.append(
        ["mean", "", str(sum(n for *_, n in judged)), *map(correlation_text, means.values()), ""]
    )
    numbers = range(2, len(rows[0]) - 1)
    # A column of signatures would leave no room for the numbers.
    terminal = [
        Grid([row[:-1] for row in rows], numbers),
        joined_signature([result.signature for result in results]),
    ]
    document = {**about, "files": files, "mean": _numbers(means, table.measure.label)}
    return Report(document, [Grid(rows, numbers)], terminal)


def _numbers(correlations: Mapping[str, Correlation], coefficient: str) -> dict[str, Any]:
    reasons = {
        name: found.reason for name, found in correlations.items() if found.reason is not None
    }
    values = {coefficient: {name: found.known for name, found in correlations.items()}}
    return values | ({"undefined": reasons} if reasons else {})


def _ranges(result: MetricResult, parts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The lowest and highest value of each part, without segments that have a blank side."""
    known = {part: measures(result)[part][~result.empty] for part in parts}
    return {
        part: (float(values.min()), float(values.max()))
        for part, values in known.items()
        if values.size
    }


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
    known = {str(layer): layer for layer in range(depth + 1)}
    names = {name.strip() for name in text.split(",")}
    if not known.keys() >= names:
        raise InputError(
            f"--layers {text!r}: 'all' or numbers from 0 to {depth} joined by commas are needed"
        )
    return sorted(known[name] for name in names)


def report_layers(studies: Mapping[int, MetricTable], about: Mapping[str, str]) -> Report:
    """One metric at each layer of its encoder (Fig. 3 and 4 of Song et al., 2021): a row per
    measure and layer, a column per file, and their mean.

    Args:
        studies: layer -> a table with a row for the score, and perhaps for parts of it.
        about: what was judged and how, for JSON alone.
    """
    lines = layer_curves(studies)
    first = next(iter(studies.values()))
    files = [f"{column.file} ({column.lang_pair})" for column in first.columns]
    cells = [
        (name, layer, values) for name, layers in lines.items() for layer, values in layers.items()
    ]
    label, names = first.measure.label, [*files, "mean"]
    rows = [
        {
            "measure": name,
            "layer": layer,
            label: dict(zip(names, (value.known for value in values), strict=True)),
        }
        for name, layer, values in cells
    ]
    table = [["measure", "layer", *names]]
    table += [[name, str(layer), *map(correlation_text, values)] for name, layer, values in cells]
    return Report({**about, "layers": rows}, [Grid(table, range(1, len(table[0])))])


def layer_curves(studies: Mapping[int, MetricTable]) -> dict[str, dict[int, list[Correlation]]]:
    """Measure -> layer -> the correlation on each file, and last their mean."""
    found: dict[str, dict[int, list[Correlation]]] = {}
    for layer, table in studies.items():
        for row in table.rows:
            values = [*(cell.correlation for cell in row.cells), row.average]
            found.setdefault(row.scored.entry.part, {})[layer] = values
    return found


def mean_intervals(studies: Mapping[int, MetricTable]) -> dict[str, dict[int, tuple[float, float]]]:
    """Measure -> layer -> the ends of the 95 % interval of the mean over the files, whose errors
    are independent; none where a file has no interval."""
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for layer, table in studies.items():
        for row in table.rows:
            ends = [
                (
                    cell.correlation.value - cell.interval.low,
                    cell.interval.high - cell.correlation.value,
                )
                for cell in row.cells
                if cell.interval is not None and cell.interval.reason is None
            ]
            if len(ends) == len(row.cells):
                below, above = (math.hypot(*side) / len(ends) for side in zip(*ends, strict=True))
                bounds = (row.average.value - below, row.average.value + above)
                found.setdefault(row.scored.entry.part, {})[layer] = bounds
    return found


def joined_signature(signatures: Sequence[str]) -> str:
    """One signature for several files: of values that differ, such as the language pair, all,
    joined by commas."""
    columns = [signature.split("|") for signature in dict.fromkeys(signatures)]
    if len({len(column) for column in columns}) > 1:
        return " ".join(dict.fromkeys(signatures))
    fields = []
    for values in zip(*columns, strict=True):
        first, *others = dict.fromkeys(values)
        fields.append(",".join([first, *(other.partition(":")[2] for other in others)]))
    return "|".join(fields)


def _table(table: MetricTable, recipe: Recipe | None) -> Table:
    """With a recipe, beside each of our columns the paper's, the averages of both over the given
    pairs, then its other columns."""
    given = [column.lang_pair for column in table.columns]
    other = [pair for pair in recipe.pairs if pair not in given] if recipe is not None else []
    papers = recipe.rows if recipe is not None else [RecipeRow("", {})] * len(table.rows)
    accuracy = recipe is None and any(row.accuracy for row in table.rows)
    head: list[Cell] = ["metric"]
    rows: list[list[Cell]] = [[row.scored.entry.title] for row in table.rows]

    def add(title: str, cells: Iterable[Cell]) -> None:
        head.append(title)
        for row, cell in zip(rows, cells, strict=True):
            row.append(cell)

    def add_published(title: str, values: Iterable[float | None]) -> None:
        if recipe is not None:
            add(title, ("" if value is None else decimals(value) for value in values))

    for number, (label, pair) in enumerate(zip(table.labels, given, strict=True)):
        add(label, (_cell(row.cells[number]) if row.cells else "" for row in table.rows))
        add_published(f"{pair} published", (paper.published.get(pair) for paper in papers))
    if len(given) > 1:
        add("average", map(_average, table.rows))
        # The paper's average over the files that the row has, so that both can be compared.
        scored = [
            [pair for number, pair in enumerate(given) if number not in row.scored.missing]
            for row in table.rows
        ]
        averages = [paper.average_over(pairs) for paper, pairs in zip(papers, scored, strict=True)]
        add_published("average published", averages)
        if recipe is not None:
            both = zip(table.rows, averages, strict=True)
            known = [
                row.average.known if row.cells and paper is not None else None
                for row, paper in both
            ]
            pairs = zip(known, averages, strict=True)
            add(
                "difference",
                ("" if ours is None else f"{ours - paper:+.3f}" for ours, paper in pairs),
            )
    if accuracy:
        add(
            "accuracy",
            (correlation_text(row.accuracy) if row.accuracy else "" for row in table.rows),
        )
    for pair in other:
        add_published(f"{pair} published", (paper.published.get(pair) for paper in papers))
    add_published("average of all published", (paper.average for paper in papers))
    return [head, *rows]


def _average(row: MetricRow) -> Cell:
    """The average of a row, with the number of files behind it where some are missing."""
    if not row.cells:
        return ""
    there = len(row.cells) - len(row.scored.missing)
    over = f" ({there} of {len(row.cells)})" if row.scored.missing else ""
    return Marked(correlation_text(row.average) + over, row.best)


def coefficient_name(measure: Measure) -> str:
    """A coefficient as papers call it."""
    return _COEFFICIENTS[measure.name]


def _cell(cell: MetricCell) -> Cell:
    text = correlation_text(cell.correlation)
    if cell.correlation.reason is not None and cell.correlation.reason.startswith(NOT_SCORED):
        return ""
    if cell.interval is not None and cell.interval.reason is None:
        text += f" [{decimals(cell.interval.low)}, {decimals(cell.interval.high)}]"
    elif cell.interval is not None and cell.correlation.reason is None:
        text += " [none]"
    return Marked(text, cell.best, cell.tied)


def _notes(table: MetricTable, recipe: Recipe | None) -> list[str]:
    by = "" if table.measure.group == "none" else f", mean over the {table.measure.group}s"
    notes = [f"{coefficient_name(table.measure)}{by} with human judgements."]
    if sum(bool(row.cells) for row in table.rows) > 1:
        notes[0] += " The highest value of a column is bold."
    if any(cell.p_value is not None for row in table.rows for cell in row.cells):
        notes[0] += (
            f" † marks values that are not significantly lower ({_TESTS[table.test]}, p ≥ {ALPHA})."
        )
    if any(cell.interval is not None for row in table.rows for cell in row.cells):
        notes[0] += " In brackets: 95 % bootstrap intervals (1,000 resamples)."
    intervals = [
        cell.interval for row in table.rows for cell in row.cells if cell.interval is not None
    ]
    if any(interval.reason == NO_INTERVAL for interval in intervals):
        notes[0] += f" [none]: {NO_INTERVAL}."
    if recipe is None and any(row.accuracy is not None for row in table.rows):
        notes[0] += " Accuracy: share of all pairs of systems that the metric orders as people do."
    if recipe is not None:
        notes.append(f"Published: {recipe.title}. {recipe.citation}")
        notes += [recipe.note] if recipe.note else []
        if any(
            row.scored.entry.title != paper.title
            for row, paper in zip(table.rows, recipe.rows, strict=True)
        ):
            notes.append("In brackets: how a metric was run here, where that is not as published.")
    for row in table.rows:
        if row.scored.problem is not None:
            notes.append(f"Not run: {row.scored.entry.title}: {row.scored.problem}")
        for why, labels in _missing(row, table.labels).items():
            notes.append(f"Not run: {row.scored.entry.title} for {' '.join(labels)}: {why}")
        if row.scored.signatures and row.scored.entry.part == SCORE:
            notes.append(
                f"{row.scored.entry.title}: {joined_signature(row.scored.known_signatures)}"
            )
    return notes


def _problem(row: MetricRow, labels: Sequence[str]) -> str:
    """Why the row, or some of its files, were not scored; empty where nothing is missing."""
    if row.scored.problem is not None:
        return row.scored.problem
    return "; ".join(f"{' '.join(names)}: {why}" for why, names in _missing(row, labels).items())


def _missing(row: MetricRow, labels: Sequence[str]) -> dict[str, list[str]]:
    """Why a row lacks files -> the names of their columns."""
    reasons: dict[str, list[str]] = {}
    for number, why in row.scored.missing.items():
        reasons.setdefault(why, []).append(labels[number])
    return reasons


def _as_json(table: MetricTable, recipe: Recipe | None) -> dict[str, Any]:
    rows = [_row_as_json(row) for row in table.rows]
    about = {
        "coefficient": table.measure.name,
        "group": table.measure.group,
        "significance": table.test,
        "columns": [
            {"file": column.file, "lp": column.lang_pair, "n": len(column.judgements)}
            for column in table.columns
        ],
        "rows": rows,
    }
    if recipe is None:
        return about
    for row, paper in zip(rows, recipe.rows, strict=True):
        row |= {"published": paper.published, "published_average": paper.average}
    return {
        "recipe": {name: getattr(recipe, name) for name in ("name", "title", "citation", "note")},
        **about,
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
    result |= {
        "values": [_cell_as_json(cell) for cell in row.cells],
        "average": row.average.known,
        "best": row.best,
    }
    if row.accuracy is not None:
        result["accuracy"] = row.accuracy.known
    return {**result, "signatures": row.scored.known_signatures}


def _cell_as_json(cell: MetricCell) -> dict[str, Any]:
    found, p_value, interval = cell.correlation, cell.p_value, cell.interval
    result: dict[str, Any] = {"value": found.known, "best": cell.best}
    if found.reason is not None:
        result["undefined"] = found.reason
    result |= {
        name: getattr(found, name)
        for name in ("left_out", "undefined_groups")
        if getattr(found, name)
    }
    if p_value is not None:
        result |= {"p": p_value.known, "not_significantly_worse": cell.tied}
        result |= {"p_undefined": p_value.reason} if p_value.reason is not None else {}
    if interval is not None and interval.reason is None:
        result["ci"] = {name: getattr(interval, name) for name in Interval._fields}
        result["ci"] |= {"undefined_resamples": interval.undefined} if interval.undefined else {}
    elif interval is not None and found.reason is None:
        result |= {"ci": None, "ci_undefined": interval.reason}
    return result
