"""Rows of text as scorers take them, chunk by chunk, and what scoring returns: scores, their report, the signature."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mtmetrics.checks import InputReport, SourceAndReference
from mtmetrics.matching.pairs import Pending
from mtmetrics.scorers.degenerate import DEGENERATE, policy
from mtmetrics.scorers.preset_tables import extended

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
    """

    segments: np.ndarray
    parts: dict[str, np.ndarray]
    empty: np.ndarray
    report: InputReport
    signature: str
    unusual: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @property
    def system(self) -> float:
        """The system score: the mean over the segments, without those that were left out (NaN)."""
        known = self.segments[~np.isnan(self.segments)]
        return float(known.mean()) if known.size else np.nan

    @property
    def degenerate(self) -> np.ndarray:
        """(n,) bool, segments whose translation is none."""
        return np.any([self.unusual[name] for name in DEGENERATE if name in self.unusual], axis=0)

    def without_degenerate(self) -> "MetricResult":
        """The same, where segments whose translation is none are left out: their scores and parts are NaN."""
        none = self.degenerate
        parts = {name: np.where(none, np.nan, values) for name, values in self.parts.items()}
        segments = np.where(none, np.nan, self.segments)
        line = extended(self.signature, policy("null", self.unusual))
        return dataclasses.replace(self, segments=segments, parts=parts, signature=line)

    def unusual_names(self) -> list[str]:
        """Of each segment what is unusual, by the names of the counts of the report, joined by ``+``."""
        flags = zip(*(found.tolist() for found in self.unusual.values()), strict=True)
        return ["+".join(itertools.compress(self.unusual, of_segment)) for of_segment in flags]

    def without_parts(self) -> "MetricResult":
        return dataclasses.replace(self, parts={})

    def as_dict(self, *, scores: bool = True, parts: bool = False) -> dict[str, Any]:
        """Plain floats and lists: ``mean_score``, ``signature``, ``report``; where asked ``scores`` and ``parts``."""
        result: dict[str, Any] = {"mean_score": self.system}
        if scores:
            result["scores"] = self.segments.tolist()
        if parts:
            result["parts"] = {name: values.tolist() for name, values in self.parts.items()}
        return result | {"signature": self.signature, "report": self.report.as_dict()}


@dataclasses.dataclass(frozen=True)
class ChunkScores:
    """What a scorer computes of one system in one chunk of n segments.

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

    def put(self, rows: np.ndarray, floor: float, parts: Mapping[str, float]) -> None:
        """Gives some segments, a mask, the floor score and the lowest parts."""
        self.empty[rows], self.segments[rows] = True, floor
        for name, value in parts.items():
            self.parts[name][rows] = value

    def take(self, rows: np.ndarray) -> "ChunkScores":
        parts = {name: values[rows] for name, values in self.parts.items()}
        return ChunkScores(self.segments[rows], parts, self.truncated[rows], self.empty[rows])


# Of each system in a chunk, at once or when worker processes are done.
SystemScores = list[ChunkScores] | Pending[list[ChunkScores]]


def joined(results: Sequence[MetricResult]) -> MetricResult:
    """The result of several chunks of one system."""
    report = InputReport()
    for result in results:
        report.add(result.report)
    parts = {name: np.concatenate([result.parts[name] for result in results]) for name in results[0].parts}
    segments, empty = (np.concatenate([getattr(result, name) for result in results]) for name in ("segments", "empty"))
    unusual = {name: np.concatenate([result.unusual[name] for result in results]) for name in results[0].unusual}
    return MetricResult(segments, parts, empty, report, results[0].signature, unusual)


def total_report(results: Iterable[MetricResult]) -> InputReport:
    """Of several systems on the same segments."""
    report = InputReport()
    for result in results:
        report.add(result.report, same_segments=True)
    return report


def chunk_lines(lines: Sequence[int], columns: int) -> int:
    """How many lines of so many columns are a chunk, for scorers that are best given so many each. Several take turns
    after fewer: then the cache of an encoder still holds what the one before encoded; unless one needs more."""
    most = max(lines)
    return most if len(lines) == 1 or most > CHUNK_LINES else max(64, CHUNK_LINES // columns)


def chunked(rows: Iterable[Sequence[str]], lines: int = CHUNK_LINES) -> Iterator[list[list[str]]]:
    """Turns rows of columns into the chunks of columns that `Scorer.score_stream` takes."""
    rows = iter(rows)
    while block := list(itertools.islice(rows, lines)):
        yield [list(column) for column in zip(*block, strict=True)]


def unfolded(others: Sequence[Any]) -> tuple[list[Any], np.ndarray | None]:
    """Lists of references as one list of m texts, or pairs of source and text, and for each (m,) the number of its
    segment; None where every segment has a single one."""
    several = [_each(other) for other in others]
    if all(len(texts) == 1 for texts in several) and not any(isinstance(other, list) for other in others):
        return [text for [text] in several], None
    owners = np.repeat(np.arange(len(others)), [len(texts) for texts in several])
    return [text for texts in several for text in texts], owners


def _each(other: Any) -> list[Any]:
    """What a segment is compared with, one reference at a time."""
    if isinstance(other, SourceAndReference):
        return [other._replace(reference=text) for text in _each(other.reference)]
    return [other] if isinstance(other, str) else list(other)


def best_of_each(scores: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(n,) row of the highest of the (m,) scores of each segment, the first of equal ones; owners ascend."""
    order = np.lexsort((-scores, owners))
    return order[np.flatnonzero(np.diff(owners[order], prepend=-1))]
