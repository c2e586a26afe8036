"""The scores of a batch as a metric computes them, the result that the user gets, and functions that
join results of several batches or let several scorers take turns."""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mtmetrics.checks import InputReport
from mtmetrics.scorers.degenerate import any_degenerate, signature_field
from mtmetrics.scorers.signature import with_fields, with_references

# Segments in a batch. A metric may ask for more or fewer, see `Scorer.batch_segments`.
BATCH_SEGMENTS = 1024
_FEWEST_BATCH_SEGMENTS = 64


@dataclasses.dataclass(frozen=True)
class PartScores:
    """Scores of one system on the n segments of a batch, as a metric computes them.

    Attributes:
        segments: (n,) scores. The floor score replaces those of `empty` segments later.
        parts: name -> (n,) values. A part is a number that goes into the score, such as the
            similarity or the likelihood of a language model.
        truncated: (n,) mask of segments with a truncated text.
        empty: (n,) mask of segments in which one text has nothing to compare.
    """

    segments: np.ndarray
    parts: dict[str, np.ndarray]
    truncated: np.ndarray
    empty: np.ndarray

    @classmethod
    def plain(cls, scores: Sequence[float] | np.ndarray) -> "PartScores":
        """Returns scores without parts; no segment is truncated or empty."""
        segments = np.array(scores, dtype=np.float64)
        no_segment = np.zeros(len(segments), dtype=bool)
        return cls(segments, {}, truncated=no_segment, empty=no_segment.copy())

    def apply_floor(
        self, mask: np.ndarray, floor: float | None, floor_parts: Mapping[str, float]
    ) -> None:
        """Marks segments as empty, and gives them the floor score and the lowest parts. Changes the
        arrays in place.

        Args:
            mask: (n,) bool, the segments to change.
            floor: the floor score; None if the segments keep their scores.
            floor_parts: name of a part -> its lowest value.
        """
        self.empty[mask] = True
        if floor is not None:
            self.segments[mask] = floor
        for name, value in floor_parts.items():
            self.parts[name][mask] = value

    def take(self, rows: np.ndarray) -> "PartScores":
        """Returns the scores of the rows with these indices."""
        parts = {name: values[rows] for name, values in self.parts.items()}
        return PartScores(self.segments[rows], parts, self.truncated[rows], self.empty[rows])

    def split(self, systems: int) -> list["PartScores"]:
        """Splits the scores of several systems, one after the other, into those of each."""
        all_rows = np.arange(len(self.segments))
        return [self.take(rows) for rows in np.split(all_rows, systems)]


@dataclasses.dataclass(frozen=True)
class MetricResult:
    """Scores of one system, with their report and signature.

    Attributes:
        segments: (n,) float64, one score per segment; higher is better.
        parts: name -> (n,) float64, the parts that the score is combined from.
        empty: (n,) mask of the segments that have the floor score, if the metric has one: segments
            with nothing to compare and, with `Scorer.floor_degenerate`, degenerate ones.
        report: counts of unusual segments.
        signature: one line that identifies how the scores were computed.
        unusual: kind of unusual segment, as in the report -> (n,) mask of the segments of that kind.
        reference_counts: the distinct numbers of references per segment; empty if the references
            were plain strings.
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
        """The system score: the mean over the segments, ignoring NaN."""
        scores = self.segments[~np.isnan(self.segments)]
        return float(scores.mean()) if scores.size else np.nan

    @property
    def degenerate(self) -> np.ndarray:
        """(n,) mask of the segments whose output is not a translation, see
        `mtmetrics.scorers.degenerate`."""
        return any_degenerate(self.unusual)

    def with_degenerate_as_nan(self) -> "MetricResult":
        """Returns a copy with NaN for the scores and parts of `degenerate` segments."""
        is_degenerate = self.degenerate
        parts = {
            name: np.where(is_degenerate, np.nan, values) for name, values in self.parts.items()
        }
        segments = np.where(is_degenerate, np.nan, self.segments)
        signature = with_fields(self.signature, signature_field("null", self.unusual))
        return dataclasses.replace(self, segments=segments, parts=parts, signature=signature)

    def without_parts(self) -> "MetricResult":
        return dataclasses.replace(self, parts={})

    def unusual_names(self) -> list[str]:
        """Returns for each segment its kinds in `unusual`, joined by ``+``; ``""`` for none."""
        masks = [mask.tolist() for mask in self.unusual.values()]
        rows = zip(*masks, strict=True)
        return ["+".join(itertools.compress(self.unusual, row)) for row in rows]

    def as_dict(self, *, scores: bool = True, parts: bool = False) -> dict[str, Any]:
        """Returns a dictionary of plain floats and lists: ``mean_score``, ``signature`` and
        ``report``, and on request ``scores`` and ``parts``. Missing scores are NaN, which JSON does
        not have."""
        result: dict[str, Any] = {"mean_score": self.system}
        if scores:
            result["scores"] = self.segments.tolist()
        if parts:
            result["parts"] = {name: values.tolist() for name, values in self.parts.items()}
        return result | {"signature": self.signature, "report": self.report.as_dict()}


def best_rows(scores: np.ndarray, segment_of_row: np.ndarray) -> np.ndarray:
    """Finds for each segment its row with the highest score; the first of equal ones.

    Args:
        scores: (m,) scores of rows.
        segment_of_row: (m,) segment index of each row, ascending.

    Returns:
        (n,) row indices.
    """
    best_first = np.lexsort((-scores, segment_of_row))
    return best_first[first_rows(segment_of_row[best_first])]


def first_rows(segment_of_row: np.ndarray) -> np.ndarray:
    """Returns the (n,) index of the first row of each segment, from the ascending (m,) segment index
    of each row."""
    return np.flatnonzero(np.diff(segment_of_row, prepend=-1))


def join_results(batches: Sequence[MetricResult]) -> MetricResult:
    """Joins the results of one system on several batches, one after the other."""
    report = InputReport()
    for result in batches:
        report.add(result.report)
    counts = frozenset().union(*(result.reference_counts for result in batches))
    return MetricResult(
        np.concatenate([result.segments for result in batches]),
        _join_named([result.parts for result in batches]),
        np.concatenate([result.empty for result in batches]),
        report,
        with_references(batches[0].signature, counts),
        _join_named([result.unusual for result in batches]),
        counts,
    )


def _join_named(batches: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([arrays[name] for arrays in batches]) for name in batches[0]}


def join_systems(batches: Iterable[list[MetricResult]]) -> list[MetricResult]:
    """Joins the results of all systems on several batches: one result per system; an empty list
    without batches."""
    return [join_results(results) for results in zip(*batches, strict=True)]


def take_turns(
    streams: Sequence[Iterator[list[MetricResult]]],
) -> Iterator[tuple[int, list[MetricResult]]]:
    """Scores the same segments with several scorers, which take turns after every batch.

    That way the cache of an encoder still holds the texts of a batch when the next scorer needs
    them. A scorer that needs its whole input first gives all its results in its first turn.

    Args:
        streams: the generators of `Scorer.score_batches`, one per scorer.

    Yields:
        The index of the scorer, and a result per system.
    """
    waiting = collections.deque(enumerate(streams))
    while waiting:
        index, stream = waiting.popleft()
        results = next(stream, None)
        if results is not None:
            yield index, results
            waiting.append((index, stream))


def join_turns(streams: Sequence[Iterator[list[MetricResult]]]) -> list[list[MetricResult]]:
    """Lets several scorers take turns, see `take_turns`, and returns for each its result on each
    system."""
    batches_of_scorer: list[list[list[MetricResult]]] = [[] for _ in streams]
    for index, results in take_turns(streams):
        batches_of_scorer[index].append(results)
    return [join_systems(batches) for batches in batches_of_scorer]


def total_report(results: Iterable[MetricResult]) -> InputReport:
    """Adds up the reports of several systems on the same segments."""
    report = InputReport()
    for result in results:
        report.add(result.report, same_segments=True)
    return report


def segments_per_batch(batch_sizes: Sequence[int], columns: int) -> int:
    """Returns how many segments to score at a time.

    Several scorers share smaller batches, so that the cache of an encoder still holds the texts of a
    batch for the next scorer. If a scorer asks for larger batches than the default, its size counts.
    A smaller size counts only for a scorer alone.

    Args:
        batch_sizes: `Scorer.batch_segments` of each scorer; may be empty.
        columns: number of texts per segment.
    """
    largest = max(batch_sizes, default=BATCH_SEGMENTS)
    if len(batch_sizes) == 1 or largest > BATCH_SEGMENTS:
        return largest
    return max(_FEWEST_BATCH_SEGMENTS, BATCH_SEGMENTS // columns)


def column_batches(
    rows: Iterable[Sequence[str]], size: int | None = BATCH_SEGMENTS
) -> Iterator[list[list[str]]]:
    """Splits rows into batches of at most `size` rows (one batch if None), and yields each as a list
    of columns."""
    remaining_rows = iter(rows)
    while batch := list(itertools.islice(remaining_rows, size)):
        yield [list(column) for column in zip(*batch, strict=True)]
