"""What scoring returns: the scores of a chunk, and those of a system with their report and signature."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mtmetrics.checks import InputReport
from mtmetrics.matching.pairs import Pending


@dataclasses.dataclass(frozen=True)
class MetricResult:
    """Scores of one system.

    Attributes:
        segments: (n,) float64, one score per segment; higher is better.
        parts: named (n,) float64 arrays that the score is combined from.
        empty: (n,) bool, segments that got the floor score.
        report: counts of unusual segments.
        signature: one line that pins the score.
    """

    segments: np.ndarray
    parts: dict[str, np.ndarray]
    empty: np.ndarray
    report: InputReport
    signature: str

    @property
    def system(self) -> float:
        """The system score: the mean over the segments."""
        return float(self.segments.mean())

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
    return MetricResult(segments, parts, empty, report, results[0].signature)


def total_report(results: Iterable[MetricResult]) -> InputReport:
    """Of several systems on the same segments."""
    report = InputReport()
    for result in results:
        report.add(result.report, same_segments=True)
    return report
