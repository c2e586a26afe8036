"""Several metrics on several files: correlations, averages, the best of each column, and which others are not significantly worse."""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import COEFFICIENTS, Correlation, mean
from mtmetrics.evaluation.measure import Judgements, Measure
from mtmetrics.evaluation.pairwise import pairwise_accuracy
from mtmetrics.evaluation.resampling import CorrelationInterval, bootstrap_correlations, perm_both
from mtmetrics.evaluation.scored import Scored
from mtmetrics.evaluation.significance import PValue
from mtmetrics.evaluation.williams import williams_test
from mtmetrics.inputs import choice

# A metric is significantly worse than the best one where the p-value of the test is below this.
ALPHA = 0.05

Scores = Sequence[float | None]


def _williams(best: Scores, other: Scores, judgements: Judgements, measure: Measure) -> PValue:
    return williams_test(best, other, judgements.human)


def _perm_both(best: Scores, other: Scores, judgements: Judgements, measure: Measure) -> PValue:
    return perm_both(best, other, judgements.human, coefficient=measure.name, groups=measure.groups(judgements))


# One-sided tests of whether the first scores agree better with people than the second.
TESTS: dict[str, Callable[[Scores, Scores, Judgements, Measure], PValue] | None] = {
    "williams": _williams,
    "perm-both": _perm_both,
    "none": None,
}
TEST_NAMES = {"williams": "Williams' test", "perm-both": "PERM-BOTH"}


def usual_test(measure: Measure) -> str:
    """The test that marks a table where the user names none: Williams' for plain Pearson's r, which it is made for."""
    return "williams" if measure == Measure() else "none"


@dataclasses.dataclass
class MetricCell:
    """One metric on one file.

    Attributes:
        correlation: with the judgements.
        best: whether no metric is higher.
        p_value: of the test that the best metric is better than this one; None where none was made.
        interval: bootstrap interval of the correlation; None where none was asked for.
    """

    correlation: Correlation
    best: bool = False
    p_value: PValue | None = None
    interval: CorrelationInterval | None = None

    @property
    def tied(self) -> bool:
        """Whether this is not the best one, and not significantly worse."""
        return self.p_value is not None and self.p_value.value >= ALPHA


@dataclasses.dataclass
class MetricRow:
    """One metric on all files.

    Attributes:
        scored: the scores, or why there are none.
        cells: one per file; none where the row was not scored.
        average: mean of the correlations.
        best: whether no metric has a higher average.
        accuracy: share of the pairs of systems of all files that the metric orders as people do; None for segments.
    """

    scored: Scored
    cells: list[MetricCell]
    average: Correlation
    best: bool = False
    accuracy: Correlation | None = None


@dataclasses.dataclass(frozen=True)
class MetricTable:
    """The table, and how it was made.

    Attributes:
        columns: the judgements of each file.
        rows: the metrics.
        measure: what the numbers are.
        test: one of `TESTS`, which p-values and marks come from.
    """

    columns: list[Judgements]
    rows: list[MetricRow]
    measure: Measure
    test: str

    @property
    def labels(self) -> list[str]:
        """Names of the columns: language pairs, and files where a pair stands there twice."""
        pairs = [column.lang_pair for column in self.columns]
        return [pair if pairs.count(pair) == 1 else f"{column.file} ({pair})" for pair, column in zip(pairs, self.columns, strict=True)]


def metric_table(
    scored: Sequence[Scored], columns: Sequence[Judgements], measure: Measure, *, test: str = "none", intervals: bool = False
) -> MetricTable:
    """Correlates the scores of each row with the judgements of each file, and compares the rows.

    Args:
        scored: the rows.
        columns: the judgements of each file.
        measure: what the numbers are.
        test: one of `TESTS`: how the others are compared with the best of each column.
        intervals: also 95 % bootstrap intervals.

    Raises:
        InputError: the test or the intervals do not go with the measure.
    """
    check_table(measure, test, intervals=intervals)
    rows = []
    for row in scored:
        correlations = [measure.of(*pair) for pair in _pairs(row, columns)] if row.scores else []
        names = {f"{column.lang_pair} (file {number})": value for number, (column, value) in enumerate(zip(columns, correlations), 1)}
        average = mean(names) if names else Correlation(np.nan, row.problem)
        rows.append(MetricRow(row, [MetricCell(value) for value in correlations], average, accuracy=_accuracy(row, columns)))
    table = MetricTable(list(columns), rows, measure, test)
    present = [row for row in rows if row.cells]
    for number in range(len(columns)):
        _compare([row.cells[number] for row in present], [_pairs(row.scored, columns)[number] for row in present], measure, test)
        if intervals:
            _add_intervals([row.cells[number] for row in present], [_pairs(row.scored, columns)[number] for row in present], measure)
    highest = max((row.average.value for row in present if row.average.reason is None), default=None)
    for row in present:
        row.best = row.average.value == highest
    return table


def check_table(measure: Measure, test: str, *, intervals: bool) -> None:
    """Refuses a test, or intervals, that do not go with a measure.

    Raises:
        InputError: they do not.
    """
    if choice("significance", test, tuple(TESTS)) == "williams" and measure != Measure():
        raise InputError(f"significance 'williams': Williams' test is for pearson without groups, not for {measure.label}; use perm-both")
    if test == "perm-both" and measure.name not in COEFFICIENTS:
        raise InputError(f"significance 'perm-both': compares {', '.join(COEFFICIENTS)}, not {measure.name}; use none")
    if intervals and (measure.name not in COEFFICIENTS or measure.group != "none"):
        raise InputError(f"--ci: there are intervals for {', '.join(COEFFICIENTS)} without groups, not for {measure.label}; leave it out")


def undefined(table: MetricTable) -> list[str]:
    """One line for each correlation that is not defined, with its reason."""
    return [
        f"{column.file} ({column.lang_pair}): no correlation for {row.scored.entry.title}: {cell.correlation.reason}"
        for row in table.rows
        for column, cell in zip(table.columns, row.cells)
        if cell.correlation.reason is not None
    ]


def _pairs(row: Scored, columns: Sequence[Judgements]) -> list[tuple[list[float | None], Judgements]]:
    return [(column.take(scores), column) for scores, column in zip(row.scores, columns, strict=True)]


def _accuracy(row: Scored, columns: Sequence[Judgements]) -> Correlation | None:
    """Pairwise accuracy over the systems of all files together, as Kocmi et al. (2021) count it."""
    if not row.scores or any(column.items is not None for column in columns):
        return None
    found = [pairwise_accuracy(scores, column.human) for scores, column in _pairs(row, columns)]
    reason = next((accuracy.reason for accuracy in found if accuracy.reason is not None), None)
    if reason is not None:
        return Correlation(np.nan, reason)
    pairs = [math.comb(len(column) - accuracy.left_out, 2) for accuracy, column in zip(found, columns, strict=True)]
    return Correlation(float(np.average([accuracy.value for accuracy in found], weights=pairs)))


def _compare(cells: list[MetricCell], scores: list[tuple[list[float | None], Judgements]], measure: Measure, test: str) -> None:
    """Marks the best cell of a column, and tests the others against it."""
    known = [number for number, cell in enumerate(cells) if cell.correlation.reason is None]
    if not known:
        return
    first = max(known, key=lambda number: cells[number].correlation.value)
    compare = TESTS[test]
    for number in known:
        cells[number].best = cells[number].correlation.value == cells[first].correlation.value
        if compare is not None and not cells[number].best:
            cells[number].p_value = compare(scores[first][0], *scores[number], measure)


def _add_intervals(cells: list[MetricCell], scores: list[tuple[list[float | None], Judgements]], measure: Measure) -> None:
    """Metrics that score the same segments share the resamples; one that lacks a score somewhere does not cost the others a segment."""
    alike: dict[tuple[bool, ...], list[int]] = {}
    for number, (values, _) in enumerate(scores):
        alike.setdefault(tuple(value is None for value in values), []).append(number)
    for numbers in alike.values():
        columns = [scores[number][0] for number in numbers]
        found = bootstrap_correlations(columns, scores[numbers[0]][1].human, coefficient=measure.name)
        for number, interval in zip(numbers, found, strict=True):
            cells[number].interval = interval
