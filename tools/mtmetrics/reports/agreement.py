"""The agreement of scores with people: a table of correlations of metrics (rows) with the judgements
of files (columns), with averages, the best row of each column, and tests of the others against it.

A `Measure` is a coefficient, perhaps over groups. `metric_table` makes the table of scores that are
there already; `judge_entries` runs the metrics first.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from mtmetrics.checks import choice
from mtmetrics.errors import InputError
from mtmetrics.judgements.judged import Judged
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.metric_runs import Entry, MetricRuns, RowScores, run_metrics
from mtmetrics.statistics.correlation import (
    COEFFICIENTS,
    Correlation,
    correlate,
    darr_kendall,
    mean,
    pairwise_accuracy,
    ranked_kendall,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from mtmetrics.statistics.significance import (
    ALPHA,
    CorrelationInterval,
    PValue,
    bootstrap_correlation,
    perm_both,
    williams_test,
)

# A score per judgement; None where a segment has none.
Scores = Sequence[float | None]

# Names of coefficients: correlations, and further ones that compare translations of one source.
MEASURES = (*COEFFICIENTS, "darr", "acc23", "spa")
GROUPS = ("none", "item", "system")
# One-sided tests of whether the best scores agree better with people than others.
TESTS = ("williams", "perm-both", "none")


@dataclasses.dataclass(frozen=True)
class Measure:
    """A coefficient of agreement.

    Attributes:
        name: one of `MEASURES`.
        group: one of `GROUPS`. With ``"item"`` the translations of each source are correlated, with
            ``"system"`` those of each system, and the coefficient is the mean over the groups.
            ``darr``, ``acc23`` and ``spa`` compare translations of one source by definition and
            take no group.
    """

    name: str = "pearson"
    group: str = "none"

    def __post_init__(self) -> None:
        choice("coefficient", self.name, MEASURES)
        choice("group", self.group, GROUPS if self.name in COEFFICIENTS else ("none",))

    @property
    def label(self) -> str:
        """Name and group, for people."""
        return self.name if self.group == "none" else f"{self.name} by {self.group}"

    def groups(self, judged: Judged) -> list[str] | None:
        """The group of each judgement; None where all belong together.

        Raises:
            InputError: whole systems were judged, or a segment has no group.
        """
        if self.group == "none":
            return None
        if judged.level == "system":
            raise InputError(
                f"group {self.group!r}: whole systems were judged; groups are of segments",
                option="group",
            )
        labels = judged.judgements[self.group].tolist()
        if None in labels:
            raise InputError(
                f"group {self.group!r}: {judged.file}: a segment has no {self.group}",
                option="group",
            )
        return labels

    def of(self, scores: Scores | np.ndarray, judged: Judged) -> Correlation:
        """The agreement of n scores with the n judgements; a judgement whose score is None is left
        out."""
        if self.name == "darr":
            return _darr(scores, judged)
        if judged.pairs is not None:
            return _undefined("people only said which of two translations is better; use darr")
        if self.name == "acc23":
            return _acc23(scores, judged)
        if self.name == "spa":
            return _spa(scores, judged)
        return correlate(self.name, scores, judged.judgements["human"], groups=self.groups(judged))


PEARSON = Measure()


def _undefined(reason: str) -> Correlation:
    """A correlation that is not defined."""
    return Correlation(np.nan, reason)


def _darr(scores: Scores, judged: Judged) -> Correlation:
    """Kendall's tau over pairs of translations whose judgements differ enough (WMT's DARR)."""
    if judged.pairs is not None:
        return ranked_kendall(scores, judged.pairs)
    rows = judged.judgements
    if judged.level == "system" or "raw" not in rows:
        return _undefined(
            "darr needs judgements of segments on the scale from 0 to 100 (field da_mean), or pairs"
        )
    raw = rows["raw"].astype(object).where(rows["raw"].notna(), None)
    return darr_kendall(scores, raw, rows["item"].tolist())


def _acc23(scores: Scores, judged: Judged) -> Correlation:
    """Pairwise accuracy with tie calibration (Deutsch et al., 2023)."""
    if judged.level == "system":
        return _undefined("acc23 needs judgements of segments; systems have no ties to calibrate")
    rows = judged.judgements
    return tie_calibrated_accuracy(scores, rows["human"], rows["item"].tolist())


def _spa(scores: Scores, judged: Judged) -> Correlation:
    """Soft pairwise accuracy of systems (Thompson et al., 2024)."""
    rows = judged.judgements
    if judged.level == "system" or rows["system"].isna().any():
        return _undefined("spa needs judgements of segments, each with the name of its system")
    items, systems = rows["item"].tolist(), rows["system"].tolist()
    return soft_pairwise_accuracy(scores, rows["human"], items, systems)


def usual_test(measure: Measure) -> str:
    """The test that marks a table where the user names none: Williams' for plain Pearson's r, which
    it is made for."""
    return "williams" if measure == PEARSON else "none"


@dataclasses.dataclass(frozen=True)
class MetricCell:
    """One metric on one file.

    Attributes:
        correlation: of the scores with the judgements.
        best: whether it is the best of several metrics.
        p_value: of the test that the best metric is better; None where there is no test.
        interval: of the correlation; None where none was asked for.
    """

    correlation: Correlation
    best: bool = False
    p_value: PValue | None = None
    interval: CorrelationInterval | None = None

    @property
    def tied(self) -> bool:
        """Whether this is not the best metric, but no test shows that it is worse; an undefined
        test shows nothing."""
        return self.p_value is not None and not self.p_value.value < ALPHA


@dataclasses.dataclass(frozen=True)
class MetricRow:
    """One metric, or a part of it.

    Attributes:
        scored: the scores.
        cells: one per file; none where no file was scored.
        average: the mean of the correlations of the files that were scored.
        best: whether its average is the highest of several.
        accuracy: the share of the pairs of systems of all files that it orders as people do; None
            for segments.
    """

    scored: RowScores
    cells: list[MetricCell]
    average: Correlation
    best: bool = False
    accuracy: Correlation | None = None


@dataclasses.dataclass(frozen=True)
class MetricTable:
    """Metrics in rows, files in columns.

    Attributes:
        columns: the judgements of each file.
        measure: of the agreement.
        test: one of `TESTS`, from which the marks come.
    """

    columns: list[Judged]
    rows: list[MetricRow]
    measure: Measure
    test: str

    @property
    def labels(self) -> list[str]:
        """Names of the columns: the language pair, with the file where several have the pair."""
        pairs = [column.lang_pair for column in self.columns]
        return [
            pair if pairs.count(pair) == 1 else f"{column.file} ({pair})"
            for pair, column in zip(pairs, self.columns, strict=True)
        ]


def judge_entries(
    entries: Sequence[Entry],
    files: Sequence[Judged],
    pool: ModelPool,
    measure: Measure,
    *,
    parts: bool = False,
    titled_by_part: bool = False,
    test: str = "none",
    intervals: bool = False,
) -> tuple[MetricRuns, MetricTable]:
    """Runs the metrics of the rows on judged data, and correlates their scores with the judgements.

    Args:
        entries: the rows.
        files: the columns.
        pool: loaded models to share.
        measure: of the agreement.
        parts: whether each part of a score has a row too.
        titled_by_part: whether the title of a row is the part of its score; all rows are then of
            one metric.
        test, intervals: of `metric_table`.
    """
    runs = run_metrics([entry.metric for entry in entries if entry.metric is not None], files, pool)
    if parts:
        entries = [part for entry in entries for part in runs.with_parts(entry)]
    if titled_by_part:
        entries = [dataclasses.replace(entry, title=entry.part) for entry in entries]
    scored = [runs.scored(entry) for entry in entries]
    return runs, metric_table(scored, files, measure, test=test, intervals=intervals)


def metric_table(
    scored: Sequence[RowScores],
    columns: Sequence[Judged],
    measure: Measure,
    *,
    test: str = "none",
    intervals: bool = False,
) -> MetricTable:
    """Correlates the scores of each row with the judgements of each file, and compares the rows.

    Args:
        scored: the rows.
        columns: the judged files.
        measure: of the agreement.
        test: one of `TESTS`; it compares the other rows with the best of each column.
        intervals: whether cells have 95 % bootstrap intervals.

    Raises:
        InputError: as `check_table`.
    """
    check_table(measure, test, intervals=intervals)
    # For each row its cells, one per file.
    cells: list[list[MetricCell]] = [[] for _ in scored]
    for number, column in enumerate(columns):
        column_scores = []
        for row in scored:
            is_scored = row.scores and number not in row.missing
            column_scores.append(column.take(row.scores[number]) if is_scored else None)
        column_cells = _cells(column_scores, column, measure, test, intervals)
        for row, row_cells, cell in zip(scored, cells, column_cells, strict=True):
            if cell is not None:
                row_cells.append(cell)
            elif row.scores:
                row_cells.append(MetricCell(_undefined(f"not scored: {row.missing[number]}")))
    rows = []
    for row, row_cells in zip(scored, cells, strict=True):
        average = _average(row, row_cells, columns)
        accuracy = _accuracy(row, columns) if row_cells else None
        rows.append(MetricRow(row, row_cells, average, accuracy=accuracy))
    # The average of a row that lacks a file cannot be compared: it is over fewer files.
    best = _highest([None if row.scored.missing else row.average for row in rows])
    rows = [dataclasses.replace(row, best=place in best) for place, row in enumerate(rows)]
    return MetricTable(list(columns), rows, measure, test)


def _average(row: RowScores, cells: Sequence[MetricCell], columns: Sequence[Judged]) -> Correlation:
    """The mean correlation over the files that a row was scored on."""
    correlations = {}
    for number, cell in enumerate(cells):
        if number not in row.missing:
            # The number tells the two columns of a file apart that is passed twice.
            name = f"{columns[number].lang_pair} (file {number + 1})"
            correlations[name] = cell.correlation
    return mean(correlations) if correlations else _undefined("the row was not scored")


def check_table(measure: Measure, test: str, *, intervals: bool) -> None:
    """Refuses a test of significance, or intervals, that are not made for a measure."""
    choice("significance", test, TESTS)
    if test == "williams" and measure != PEARSON:
        raise InputError(
            "significance 'williams': Williams' test is for pearson without groups, not for "
            f"{measure.label}; use perm-both",
            option="significance",
        )
    names = ", ".join(COEFFICIENTS)
    if test == "perm-both" and measure.name not in COEFFICIENTS:
        raise InputError(
            f"significance 'perm-both': compares {names}, not {measure.name}; use none",
            option="significance",
        )
    if intervals and (measure.name not in COEFFICIENTS or measure.group != "none"):
        raise InputError(
            f"--ci: there are intervals for {names} without groups, not for {measure.label}; "
            "leave it out"
        )


def remarks(table: MetricTable) -> list[str]:
    """One line for each correlation or test that is not defined, and each correlation that leaves
    scores out."""
    lines = []
    for row in table.rows:
        title = row.scored.entry.title
        # A row that was not scored has no cells.
        for column, cell in zip(table.columns, row.cells, strict=False):
            file = f"{column.file} ({column.lang_pair})"
            correlation = cell.correlation
            if correlation.reason is not None:
                lines.append(f"{file}: no correlation for {title}: {correlation.reason}")
            elif correlation.left_out:
                count = f"{correlation.left_out} of {len(column.judgements)}"
                lines.append(f"{file}: {title}: {count} judgements have no score and are left out")
            if cell.p_value is not None and cell.p_value.reason is not None:
                lines.append(f"{file}: no test of {title} against the best: {cell.p_value.reason}")
    return lines


def _cells(
    scores: Sequence[Scores | None],
    column: Judged,
    measure: Measure,
    test: str,
    intervals: bool,
) -> list[MetricCell | None]:
    """The cells of one column; None for rows that were not scored on the file.

    Args:
        scores: for each row a score per judgement; None where it was not scored on the file.
        column: the file.
        measure: of the agreement.
        test: one of `TESTS`.
        intervals: whether cells have intervals.
    """
    correlations = [None if one is None else measure.of(one, column) for one in scores]
    best = _highest(correlations)
    human = column.judgements["human"]
    cells: list[MetricCell | None] = []
    for place, (row_scores, correlation) in enumerate(zip(scores, correlations, strict=True)):
        if row_scores is None:
            cells.append(None)
            continue
        p_value = interval = None
        if best and place not in best and correlation.reason is None:
            p_value = _p_value(test, scores[min(best)], row_scores, column, measure)
        if intervals:
            interval = bootstrap_correlation(row_scores, human, coefficient=measure.name)
        cells.append(MetricCell(correlation, place in best, p_value, interval))
    return cells


def _p_value(
    test: str, best: Scores, other: Scores, column: Judged, measure: Measure
) -> PValue | None:
    """The p-value of the test that the best scores are better than other scores; None for no
    test."""
    human = column.judgements["human"]
    if test == "williams":
        return williams_test(best, other, human)
    if test == "perm-both":
        groups = measure.groups(column)
        return perm_both(best, other, human, coefficient=measure.name, groups=groups)
    return None


def _highest(correlations: Sequence[Correlation | None]) -> set[int]:
    """The places of the highest correlation, several where equal ones share it; none where fewer
    than two are defined."""
    values = {
        place: correlation.value
        for place, correlation in enumerate(correlations)
        if correlation is not None and correlation.reason is None
    }
    if len(values) < 2:
        return set()
    highest = max(values.values())
    return {place for place, value in values.items() if value == highest}


def _accuracy(row: RowScores, columns: Sequence[Judged]) -> Correlation | None:
    """Pairwise accuracy over the systems of all files together (Kocmi et al., 2021); None for
    segments."""
    if any(column.level == "segment" for column in columns):
        return None
    accuracies, pairs = [], []
    for scores, column in zip(row.scores, columns, strict=True):
        if not scores:
            continue
        accuracy = pairwise_accuracy(column.take(scores), column.judgements["human"])
        if accuracy.reason is not None:
            return _undefined(accuracy.reason)
        accuracies.append(accuracy.value)
        pairs.append(math.comb(len(column.judgements) - accuracy.left_out, 2))
    return Correlation(float(np.average(accuracies, weights=pairs)))
