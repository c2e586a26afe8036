"""Results of scoring: scores with their report and signature, and how those of several batches and
scorers go together."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mtmetrics.checks import InputReport
from mtmetrics.scorers.degenerate import any_degenerate, policy
from mtmetrics.scorers.signature import extended, with_references

BATCH_SEGMENTS = 1024


@dataclasses.dataclass(frozen=True)
class MetricResult:
    """Scores of one system.

    Attributes:
        segments: (n,) float64, one score per segment; higher is better.
        parts: named (n,) float64 arrays that the score is combined from.
        empty: (n,) bool, segments that got the floor score.
        report: counts of unusual segments.
        signature: one line that pins the score.
        unusual: name of a count of the report -> (n,) bool, the segments that it counts.
        reference_counts: how many references segments have, each number once; none where they are
            no lists.
    """

    segments: np.ndarray
    parts: dict[str, np.ndarray]
    empty: np.ndarray
    report: InputReport
    signature: str
    unusual: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    reference_counts: frozenset[int] = frozenset()

    @property
    def system(self) -> float:
        """The system score: the mean over the segments, without those that were left out (NaN)."""
        scores = self.segments[~np.isnan(self.segments)]
        return float(scores.mean()) if scores.size else np.nan

    @property
    def degenerate(self) -> np.ndarray:
        """(n,) bool, segments whose output is no translation, see `DEGENERATE`."""
        return any_degenerate(self.unusual)

    def with_degenerate_as_nan(self) -> "MetricResult":
        """The result in which scores and parts of `degenerate` segments are NaN."""
        is_degenerate = self.degenerate
        parts = {
            name: np.where(is_degenerate, np.nan, values) for name, values in self.parts.items()
        }
        segments = np.where(is_degenerate, np.nan, self.segments)
        signature = extended(self.signature, policy("null", self.unusual))
        return dataclasses.replace(self, segments=segments, parts=parts, signature=signature)

    def unusual_names(self) -> list[str]:
        """The names in `unusual` under which each segment is counted, joined by ``+``."""
        masks = [mask.tolist() for mask in self.unusual.values()]
        rows = zip(*masks, strict=True)
        return ["+".join(itertools.compress(self.unusual, row)) for row in rows]

    def without_parts(self) -> "MetricResult":
        return dataclasses.replace(self, parts={})

    def as_dict(self, *, scores: bool = True, parts: bool = False) -> dict[str, Any]:
        """Plain floats and lists: ``mean_score``, ``signature``, ``report``; where asked ``scores``
        and ``parts``."""
        result: dict[str, Any] = {"mean_score": self.system}
        if scores:
            result["scores"] = self.segments.tolist()
        if parts:
            result["parts"] = {name: values.tolist() for name, values in self.parts.items()}
        return result | {"signature": self.signature, "report": self.report.as_dict()}


@dataclasses.dataclass(frozen=True)
class PartScores:
    """Scores of one system on the n segments of a batch, as a metric computes them.

    Attributes:
        segments: (n,) scores; whatever `empty` marks gets the floor score.
        parts: named (n,) parts.
        truncated: (n,) bool, segments of which a text was cut.
        empty: (n,) bool, segments of which a side holds nothing that can be compared.
    """

    segments: np.ndarray
    parts: dict[str, np.ndarray]
    truncated: np.ndarray
    empty: np.ndarray

    @classmethod
    def plain(cls, scores: Sequence[float] | np.ndarray) -> "PartScores":
        """Scores without parts, of texts of which none was cut and none is empty."""
        return cls(np.array(scores, dtype=np.float64), {}, *np.zeros((2, len(scores)), dtype=bool))

    def apply_floor(
        self, mask: np.ndarray, floor: float | None, floor_parts: Mapping[str, float]
    ) -> None:
        """Marks segments as empty, and gives them the floor score and the lowest parts.

        Args:
            mask: (n,) bool, the segments.
            floor: the score; None where segments keep their scores.
            floor_parts: part -> its lowest value.
        """
        self.empty[mask] = True
        if floor is not None:
            self.segments[mask] = floor
        for name, value in floor_parts.items():
            self.parts[name][mask] = value

    def take(self, rows: np.ndarray) -> "PartScores":
        """The scores of some rows, by their numbers."""
        parts = {name: values[rows] for name, values in self.parts.items()}
        return PartScores(self.segments[rows], parts, self.truncated[rows], self.empty[rows])


def join_part_scores(batches: Sequence[PartScores]) -> PartScores:
    """Joins the scores of one system on several batches, one after the other."""
    parts = {
        name: np.concatenate([scores.parts[name] for scores in batches])
        for name in batches[0].parts
    }
    return PartScores(
        np.concatenate([scores.segments for scores in batches]),
        parts,
        np.concatenate([scores.truncated for scores in batches]),
        np.concatenate([scores.empty for scores in batches]),
    )


def join_results(results: Sequence[MetricResult]) -> MetricResult:
    """Joins the results of one system on several chunks."""
    report = InputReport()
    for result in results:
        report.add(result.report)
    parts = {
        name: np.concatenate([result.parts[name] for result in results])
        for name in results[0].parts
    }
    segments = np.concatenate([result.segments for result in results])
    empty = np.concatenate([result.empty for result in results])
    unusual = {
        name: np.concatenate([result.unusual[name] for result in results])
        for name in results[0].unusual
    }
    counts = frozenset().union(*(result.reference_counts for result in results))
    signature = with_references(results[0].signature, counts)
    return MetricResult(segments, parts, empty, report, signature, unusual, counts)


def join_systems(chunks: Iterable[list[MetricResult]]) -> list[MetricResult]:
    """Joins the results of all systems on several chunks: one result per system, none where there
    are no chunks."""
    return [join_results(system) for system in zip(*chunks, strict=True)]


def take_turns(
    streams: Sequence[Iterator[list[MetricResult]]],
) -> Iterator[tuple[int, list[MetricResult]]]:
    """Scores the same segments with several scorers, which take turns after every batch.

    So the cache of an encoder still holds the texts of a batch when the next scorer needs them. A
    scorer that needs its whole input first gives everything in its first turn.

    Args:
        streams: the generators of `Scorer.score_batches`, one per scorer.

    Yields:
        The number of the scorer, and a result per system.
    """
    running = dict(enumerate(streams))
    while running:
        for number, stream in list(running.items()):
            if (results := next(stream, None)) is None:
                del running[number]
            else:
                yield number, results


def score_together(streams: Sequence[Iterator[list[MetricResult]]]) -> list[list[MetricResult]]:
    """Returns for each scorer its result on each system; the scorers work `take_turns`."""
    collected: list[list[list[MetricResult]]] = [[] for _ in streams]
    for number, results in take_turns(streams):
        collected[number].append(results)
    return [join_systems(chunks) for chunks in collected]


def total_report(results: Iterable[MetricResult]) -> InputReport:
    """Adds up the reports of several systems on the same segments."""
    report = InputReport()
    for result in results:
        report.add(result.report, same_segments=True)
    return report


def segments_per_batch(lines: Sequence[int], columns: int) -> int:
    """Returns how many rows of texts make a chunk.

    Several scorers take turns after smaller chunks, so that the cache of an encoder still holds the
    texts of a chunk for the next scorer; unless one of them asks for larger chunks than usual.

    Args:
        lines: `Scorer.batch_segments` of each scorer; empty where only columns of numbers are judged.
        columns: number of columns of texts in a row.
    """
    most = max(lines, default=BATCH_SEGMENTS)
    if len(lines) == 1 or most > BATCH_SEGMENTS:
        return most
    return max(64, BATCH_SEGMENTS // columns)


def column_batches(
    rows: Iterable[Sequence[str]], lines: int | None = BATCH_SEGMENTS
) -> Iterator[list[list[str]]]:
    """Yields lists of columns, each of at most `lines` rows; one of all rows if None."""
    rows = iter(rows)
    while block := list(itertools.islice(rows, lines)):
        yield [list(column) for column in zip(*block, strict=True)]


def best_rows(scores: np.ndarray, segment_of_row: np.ndarray) -> np.ndarray:
    """Finds the row with the highest score of each segment, the first of equal ones.

    Args:
        scores: (m,) scores of rows.
        segment_of_row: (m,) numbers of segments, ascending.

    Returns:
        (n,) numbers of rows.
    """
    order = np.lexsort((-scores, segment_of_row))
    return order[np.flatnonzero(np.diff(segment_of_row[order], prepend=-1))]
