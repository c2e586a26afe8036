"""Rows of text as scorers take them, chunk by chunk, and what scoring returns: scores, their
report, the signature."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mtmetrics.checks import InputReport
from mtmetrics.scorers.degenerate import DEGENERATE, policy
from mtmetrics.scorers.signature import extended, with_references

CHUNK_LINES = 1024


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
        """(n,) bool, segments whose translation is none."""
        return np.any([self.unusual[name] for name in DEGENERATE if name in self.unusual], axis=0)

    def without_degenerate(self) -> "MetricResult":
        """The result without segments whose translation is none: their scores and parts are NaN."""
        none = self.degenerate
        parts = {name: np.where(none, np.nan, values) for name, values in self.parts.items()}
        segments = np.where(none, np.nan, self.segments)
        line = extended(self.signature, policy("null", self.unusual))
        return dataclasses.replace(self, segments=segments, parts=parts, signature=line)

    def unusual_names(self) -> list[str]:
        """Of each segment what is unusual, by the names of the counts of the report, joined by
        ``+``."""
        flags = zip(*(counted.tolist() for counted in self.unusual.values()), strict=True)
        return ["+".join(itertools.compress(self.unusual, of_segment)) for of_segment in flags]

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

    def put(self, rows: np.ndarray, floor: float | None, parts: Mapping[str, float]) -> None:
        """Gives some segments, a mask, the floor score and the lowest parts; without a floor they
        keep their scores."""
        self.empty[rows] = True
        if floor is not None:
            self.segments[rows] = floor
        for name, value in parts.items():
            self.parts[name][rows] = value

    def take(self, rows: np.ndarray) -> "PartScores":
        parts = {name: values[rows] for name, values in self.parts.items()}
        return PartScores(self.segments[rows], parts, self.truncated[rows], self.empty[rows])


def joined_scores(several: Sequence[PartScores]) -> PartScores:
    """The scores of one system on several batches, one after the other."""
    parts = {
        name: np.concatenate([scores.parts[name] for scores in several])
        for name in several[0].parts
    }
    return PartScores(
        np.concatenate([scores.segments for scores in several]),
        parts,
        np.concatenate([scores.truncated for scores in several]),
        np.concatenate([scores.empty for scores in several]),
    )


def joined(results: Sequence[MetricResult]) -> MetricResult:
    """The result of several chunks of one system."""
    report = InputReport()
    for result in results:
        report.add(result.report)
    parts = {
        name: np.concatenate([result.parts[name] for result in results])
        for name in results[0].parts
    }
    segments, empty = (
        np.concatenate([getattr(result, name) for result in results])
        for name in ("segments", "empty")
    )
    unusual = {
        name: np.concatenate([result.unusual[name] for result in results])
        for name in results[0].unusual
    }
    counts = frozenset().union(*(result.reference_counts for result in results))
    line = with_references(results[0].signature, counts)
    return MetricResult(segments, parts, empty, report, line, unusual, counts)


def joined_systems(chunks: Iterable[list[MetricResult]]) -> list[MetricResult]:
    """The result of each system, from those of all systems in several chunks; none where there are
    no chunks."""
    return [joined(system) for system in zip(*chunks, strict=True)]


def in_turns(
    streams: Sequence[Iterator[list[MetricResult]]],
) -> Iterator[tuple[int, list[MetricResult]]]:
    """Has several scorers score the same segments, batch by batch: yields the number of the scorer,
    and a result per system.

    They take turns, so that what one has encoded is still there for the next. One that needs its
    whole input first gives everything in its first turn.

    Args:
        streams: what `Scorer.score_batches` returns, of each scorer.
    """
    running = dict(enumerate(streams))
    while running:
        for number, stream in list(running.items()):
            if (results := next(stream, None)) is None:
                del running[number]
            else:
                yield number, results


def scored_together(streams: Sequence[Iterator[list[MetricResult]]]) -> list[list[MetricResult]]:
    """For each scorer its result on each system, as `in_turns`."""
    collected: list[list[list[MetricResult]]] = [[] for _ in streams]
    for number, results in in_turns(streams):
        collected[number].append(results)
    return [joined_systems(chunks) for chunks in collected]


def total_report(results: Iterable[MetricResult]) -> InputReport:
    """Of several systems on the same segments."""
    report = InputReport()
    for result in results:
        report.add(result.report, same_segments=True)
    return report


def chunk_lines(lines: Sequence[int], columns: int) -> int:
    """How many lines of so many columns are a chunk, for scorers that are best given so many each.
    Several take turns after fewer: then the cache of an encoder still holds what the one before
    encoded; unless one needs more."""
    most = max(lines, default=CHUNK_LINES)  # without a scorer, only columns of numbers are judged
    return most if len(lines) == 1 or most > CHUNK_LINES else max(64, CHUNK_LINES // columns)


def chunked(
    rows: Iterable[Sequence[str]], lines: int | None = CHUNK_LINES
) -> Iterator[list[list[str]]]:
    """Turns rows into lists of columns, so many rows at a time; one list of all rows if None."""
    rows = iter(rows)
    while block := list(itertools.islice(rows, lines)):
        yield [list(column) for column in zip(*block, strict=True)]


def best_of_each(scores: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(n,) row of the highest of the (m,) scores of each segment, the first of equal ones; owners
    ascend."""
    order = np.lexsort((-scores, owners))
    return order[np.flatnonzero(np.diff(owners[order], prepend=-1))]
