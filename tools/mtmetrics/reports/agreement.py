"""Scores -> a table of correlations with judgements: averages, the best, and which are not
significantly worse."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mtmetrics.checks import choice
from mtmetrics.errors import InputError
from mtmetrics.judgements.judged import Judged
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.metric_runs import Entry, MetricRuns, RowScores, run_metrics
from mtmetrics.reports.recipes import Recipe
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

Scores = Sequence[float | None]


def _darr(scores: Scores, judged: Judged) -> Correlation:
    rows = judged.judgements
    if judged.pairs is not None:
        return ranked_kendall(scores, judged.pairs)
    if judged.level == "system" or "raw" not in rows:
        scale = "judgements of segments on the scale from 0 to 100 (field da_mean), or pairs"
        return Correlation(np.nan, f"darr needs {scale}")
    return darr_kendall(
        scores, rows["raw"].astype(object).where(rows["raw"].notna(), None), rows["item"].tolist()
    )


def _acc23(scores: Scores, judged: Judged) -> Correlation:
    rows = judged.judgements
    if judged.level == "system":
        return Correlation(
            np.nan, "acc23 needs judgements of segments; systems have no ties to calibrate"
        )
    return tie_calibrated_accuracy(scores, rows["human"], rows["item"].tolist())


def _spa(scores: Scores, judged: Judged) -> Correlation:
    rows = judged.judgements
    if judged.level == "system" or rows["system"].isna().any():
        return Correlation(
            np.nan, "spa needs judgements of segments, each with the name of its system"
        )
    return soft_pairwise_accuracy(
        scores, rows["human"], rows["item"].tolist(), rows["system"].tolist()
    )


_SPECIAL: dict[str, Callable[[Scores, Judged], Correlation]] = {
    "darr": _darr,
    "acc23": _acc23,
    "spa": _spa,
}
MEASURES = (*COEFFICIENTS, *_SPECIAL)
# How the reason begins why a file has no correlation that a row could not be run on.
NOT_SCORED = "not scored"
GROUPS = ("none", "item", "system")


@dataclasses.dataclass(frozen=True)
class Measure:
    """A coefficient (one of `MEASURES`), over all segments or as the mean over groups of them (one
    of `GROUPS`).

    ``"item"`` correlates the translations of each source by themselves, ``"system"`` each system's.
    ``darr``, ``acc23`` and ``spa`` compare translations of one source by definition and take no
    group."""

    name: str = "pearson"
    group: str = "none"

    def __post_init__(self) -> None:
        choice("coefficient", self.name, MEASURES)
        choice("group", self.group, GROUPS if self.name in COEFFICIENTS else ("none",))

    @property
    def label(self) -> str:
        """Name and group, for people."""
        return self.name if self.group == "none" else f"{self.name} by {self.group}"

    def groups(self, judged: Judged) -> list[Any] | None:
        """The label of each judgement's group; None where all belong together. Refused where groups
        are not known."""
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
        """The agreement of n scores with the n judgements; None for one without score, which is
        left out."""
        if judged.pairs is not None and self.name != "darr":
            return Correlation(
                np.nan, "people only said which of two translations is better; use darr"
            )
        if self.name in _SPECIAL:
            return _SPECIAL[self.name](scores, judged)
        return correlate(self.name, scores, judged.judgements["human"], groups=self.groups(judged))


PEARSON = Measure()


# One-sided tests of whether the first scores agree better with people than the second.
TESTS: dict[str, Callable[[Scores, Scores, Judged, Measure], PValue] | None] = {
    "williams": lambda best, other, judged, _: williams_test(
        best, other, judged.judgements["human"]
    ),
    "perm-both": lambda best, other, judged, measure: perm_both(
        best,
        other,
        judged.judgements["human"],
        coefficient=measure.name,
        groups=measure.groups(judged),
    ),
    "none": None,
}


def usual_test(measure: Measure) -> str:
    """The test that marks a table where the user names none: Williams' for plain Pearson's r, which
    it is made for."""
    return "williams" if measure == PEARSON else "none"


@dataclasses.dataclass(frozen=True)
class MetricCell:
    """One metric on one file: is it the best of several, and the p-value of the test that the best
    one is better."""

    correlation: Correlation
    best: bool = False
    p_value: PValue | None = None
    interval: CorrelationInterval | None = None

    @property
    def tied(self) -> bool:
        """Whether this is not the best one, and nothing shows that it is worse; so too for an
        undefined test."""
        return self.p_value is not None and not self.p_value.value < ALPHA


@dataclasses.dataclass(frozen=True)
class MetricRow:
    """One metric, or a part of it: a cell per file (none where no file was scored), and the mean of
    the correlations of the files that were scored.

    `accuracy` is the share of the pairs of systems of all files that it orders as people do; None
    for segments."""

    scored: RowScores
    cells: list[MetricCell]
    average: Correlation
    best: bool = False
    accuracy: Correlation | None = None


@dataclasses.dataclass(frozen=True)
class MetricTable:
    """The judgements of each file, the metrics, what the numbers are, and the test that the marks
    come from."""

    columns: list[Judged]
    rows: list[MetricRow]
    measure: Measure
    test: str

    @property
    def labels(self) -> list[str]:
        """Names of the columns: language pairs, and files where a pair stands there twice."""
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
    recipe: Recipe | None = None,
    one: bool = False,
    **settings: Any,
) -> tuple[MetricRuns, MetricTable]:
    """Runs the metrics of the rows on judged data, and correlates their scores with the judgements.

    Args:
        entries: the rows.
        files: the columns.
        pool: loaded models to share.
        measure: of the agreement.
        parts: a row for each part of a score too.
        recipe: the rows are those of this table of a paper: a metric that cannot be run is left
            out, and what is not run as published is marked.
        one: rows are called by the part of the score, since they are all of one metric.
        **settings: of `metric_table`.
    """
    metrics = [entry.metric for entry in entries if entry.metric is not None]
    runs = run_metrics(metrics, files, pool, lenient=recipe is not None)
    if parts:
        entries = [part for entry in entries for part in runs.with_parts(entry)]
    if one:
        entries = [dataclasses.replace(entry, title=entry.part) for entry in entries]
    scored = [runs.scored(entry) for entry in entries]
    if recipe is not None:
        pairs = [file.lang_pair for file in files]
        scored = [row.marked(found, pairs) for row, found in zip(recipe.rows, scored, strict=True)]
    return runs, metric_table(scored, files, measure, **settings)


def metric_table(
    scored: Sequence[RowScores],
    columns: Sequence[Judged],
    measure: Measure,
    *,
    test: str = "none",
    intervals: bool = False,
) -> MetricTable:
    """Correlates the scores of each row with the judgements of each file, and compares the rows.

    The test, one of `TESTS`, compares the others with the best of each column; `intervals` asks for
    95 % bootstrap intervals. Refused is what does not go with the measure, see `check_table`."""
    check_table(measure, test, intervals=intervals)
    cells: list[list[MetricCell]] = [[] for _ in scored]
    for number, column in enumerate(columns):
        present = [
            place for place, row in enumerate(scored) if row.scores and number not in row.missing
        ]
        values = [column.take(scored[place].scores[number]) for place in present]
        of_column = dict(
            zip(present, _cells(values, column, measure, test, intervals), strict=True)
        )
        for place, row in enumerate(scored):
            if row.scores:
                cells[place].append(of_column.get(place) or _not_scored(row.missing[number]))
    # Numbered, since the same file may be given twice.
    names = [f"{column.lang_pair} (file {number})" for number, column in enumerate(columns, 1)]
    nothing = Correlation(np.nan, "the row was not scored")
    rows = []
    for row, of_row in zip(scored, cells, strict=True):
        there = {
            name: cell.correlation
            for number, (name, cell) in enumerate(zip(names, of_row, strict=False))
            if number not in row.missing
        }
        average = mean(there) if there else nothing
        rows.append(
            MetricRow(row, of_row, average, accuracy=_accuracy(row, columns) if of_row else None)
        )
    # The average of a row that lacks a file is over other files than those of the others.
    averages = [nothing if row.scored.missing else row.average for row in rows]
    best = _highest(averages)
    rows = [dataclasses.replace(row, best=number in best) for number, row in enumerate(rows)]
    return MetricTable(list(columns), rows, measure, test)


def _not_scored(why: str) -> MetricCell:
    return MetricCell(Correlation(np.nan, f"{NOT_SCORED}: {why}"))


def check_table(measure: Measure, test: str, *, intervals: bool) -> None:
    """Refuses a test, or intervals, that do not go with a measure."""
    choice("significance", test, tuple(TESTS))
    label = measure.label
    if test == "williams" and measure != PEARSON:
        what = f"Williams' test is for pearson without groups, not for {label}"
        raise InputError(f"significance 'williams': {what}; use perm-both")
    known = ", ".join(COEFFICIENTS)
    if test == "perm-both" and measure.name not in COEFFICIENTS:
        raise InputError(
            f"significance 'perm-both': compares {known}, not {measure.name}; use none"
        )
    if intervals and (measure.name not in COEFFICIENTS or measure.group != "none"):
        raise InputError(
            f"--ci: there are intervals for {known} without groups, not for {label}; leave it out"
        )


def remarks(table: MetricTable) -> list[str]:
    """One line for each correlation or test that is not defined, and each correlation that leaves
    scores out."""
    found = []
    for row in table.rows:
        # A row that was not scored has no cells.
        for column, cell in zip(table.columns, row.cells, strict=False):
            where, title = f"{column.file} ({column.lang_pair})", row.scored.entry.title
            if cell.correlation.reason is not None:
                found.append(f"{where}: no correlation for {title}: {cell.correlation.reason}")
            elif cell.correlation.left_out:
                missing = f"{cell.correlation.left_out} of {len(column.judgements)} judgements"
                found.append(f"{where}: {title}: {missing} have no score and are left out")
            if cell.p_value is not None and cell.p_value.reason is not None:
                found.append(f"{where}: no test of {title} against the best: {cell.p_value.reason}")
    return found


def _cells(
    scores: list[list[float | None]], column: Judged, measure: Measure, test: str, intervals: bool
) -> list[MetricCell]:
    correlations = [measure.of(values, column) for values in scores]
    best = _highest(correlations)
    compare = TESTS[test]
    cells = []
    for number, (values, found) in enumerate(zip(scores, correlations, strict=True)):
        p_value = interval = None
        if best and compare is not None and number not in best and found.reason is None:
            p_value = compare(scores[min(best)], values, column, measure)
        if intervals:
            interval = bootstrap_correlation(
                values, column.judgements["human"], coefficient=measure.name
            )
        cells.append(MetricCell(found, number in best, p_value, interval))
    return cells


def _highest(correlations: Sequence[Correlation]) -> set[int]:
    """Where the highest of several values stand."""
    known = [correlation.value for correlation in correlations if correlation.reason is None]
    return (
        {i for i, found in enumerate(correlations) if found.value == max(known)}
        if len(known) > 1
        else set()
    )


def _accuracy(row: RowScores, columns: Sequence[Judged]) -> Correlation | None:
    """Pairwise accuracy over the systems of all files together (Kocmi et al., 2021); None for
    segments."""
    if any(column.level == "segment" for column in columns):
        return None
    found = [
        pairwise_accuracy(column.take(scores), column.judgements["human"])
        for scores, column in zip(row.scores, columns, strict=True)
        if scores
    ]
    reason = next((accuracy.reason for accuracy in found if accuracy.reason is not None), None)
    if reason is not None:
        return Correlation(np.nan, reason)
    judged = zip(
        found,
        [column for number, column in enumerate(columns) if number not in row.missing],
        strict=True,
    )
    pairs = [
        math.comb(len(column.judgements) - accuracy.left_out, 2) for accuracy, column in judged
    ]
    return Correlation(float(np.average([accuracy.value for accuracy in found], weights=pairs)))
