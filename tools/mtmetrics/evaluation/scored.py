"""Scores judged segments, or whole systems, by several metrics that share their encodings."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.evaluation.judged import JudgedSegments, JudgedSystems
from mtmetrics.evaluation.specs import MetricSpec
from mtmetrics.inputs import check
from mtmetrics.scorers.base import MetricResult, Scorer, joined
from mtmetrics.scorers.pool import ModelPool

# The metrics take turns after so many lines, few enough that an encoder's cache still holds what the metric before it
# encoded.
_LINES = 256
SCORE = "score"

Judged = JudgedSegments | JudgedSystems


@dataclasses.dataclass(frozen=True)
class Entry:
    """A row of a table of metrics: where its scores come from.

    Attributes:
        title: how the row is called.
        metric: the metric, or None.
        column: a column of numbers in the files, where there is no metric.
        part: the score of the metric, or a part of it.
        falls: whether lower is better; the sign of the values is turned then.
        why_not: why the row has no scores, where neither metric nor column is given.
    """

    title: str
    metric: MetricSpec | None = None
    column: str | None = None
    part: str = SCORE
    falls: bool = False
    why_not: str | None = None

    @classmethod
    def of_column(cls, name: str) -> "Entry":
        """The row of a column, with a title that no metric has."""
        return cls(f"{name} (column)", column=name)


@dataclasses.dataclass(frozen=True)
class Scored:
    """The scores of a row.

    Attributes:
        entry: where they come from.
        scores: for each file one value per segment or per system, None where there is none; empty where the row has no
            scores.
        signatures: for each file the signature of the metric; empty for columns.
        problem: why the row has no scores; None where it has.
    """

    entry: Entry
    scores: list[list[float | None]]
    signatures: list[str] = dataclasses.field(default_factory=list)
    problem: str | None = None


@dataclasses.dataclass(frozen=True)
class Run:
    """What several metrics gave on several files.

    Attributes:
        files: judged segments, or judged systems.
        results: metric -> for each file its result on each system; judged segments count as one system.
        problems: metric -> why it could not be run.
        lenient: whether a row without scores has a problem, instead of ending everything.
    """

    files: Sequence[Judged]
    results: Mapping[MetricSpec, list[list[MetricResult]]]
    problems: Mapping[MetricSpec, str]
    lenient: bool = False

    def with_parts(self, entry: Entry) -> list[Entry]:
        """The row, and one more for each part of its score."""
        parts = self.results[entry.metric][0][0].parts if entry.metric in self.results else ()
        return [entry, *(dataclasses.replace(entry, title=f"{entry.title} {part}", part=part) for part in parts)]

    def scored(self, entry: Entry) -> Scored:
        """The scores of a row.

        Raises:
            InputError: there is no such column, or the metric has no such part.
        """
        try:
            return self._scored(entry)
        except InputError as error:
            if not self.lenient:
                raise
            return Scored(entry, [], problem=str(error))

    def _scored(self, entry: Entry) -> Scored:
        if entry.column is not None:
            return Scored(entry, [_turned(_column(file, entry.column), entry.falls) for file in self.files])
        if entry.metric is None or entry.metric in self.problems:
            return Scored(entry, [], problem=entry.why_not if entry.metric is None else self.problems[entry.metric])
        scores = []
        for file, systems in zip(self.files, self.results[entry.metric], strict=True):
            values = [_part(result, entry) for result in systems]
            # The score of a system is the mean over its segments.
            column = [float(part.mean()) for part in values] if isinstance(file, JudgedSystems) else values[0].tolist()
            scores.append(_turned(column, entry.falls))
        return Scored(entry, scores, [systems[0].signature for systems in self.results[entry.metric]])

    def notes(self) -> list[str]:
        """One line for each file, system and metric whose segments are unusual."""
        return [
            f"{file.file}{f', {name}' if name else ''}: {metric}: {result.report.note}"
            for metric, by_file in self.results.items()
            for file, systems in zip(self.files, by_file, strict=True)
            for name, result in zip(_outputs(file), systems, strict=True)
            if result.report.note
        ]


def run_metrics(
    metrics: Iterable[MetricSpec],
    files: Sequence[Judged],
    pool: ModelPool,
    *,
    lenient: bool = False,
    wrap: Callable[..., Iterable[Any]] = lambda files, **_: files,
) -> Run:
    """Runs each metric once on each file; a text that several of them encode alike is encoded once.

    Args:
        metrics: what to run; one that is named twice runs once.
        files: judged segments, or judged systems.
        pool: loaded models to share.
        lenient: a metric that cannot be run becomes a problem of the result, instead of ending everything.
        wrap: shows the progress over the files.

    Raises:
        InputError: there is no such metric or option, or a file lacks the references that a metric compares with.
        ArtifactError: a model cannot be loaded.
    """
    scorers: dict[MetricSpec, dict[str, Scorer]] = {}
    problems: dict[MetricSpec, str] = {}
    # All are loaded before the first is run, so that a model that is missing does not cost an hour.
    for spec in dict.fromkeys(metrics):
        try:
            by_pair = {pair: spec.load(pool, pair) for pair in dict.fromkeys(file.lang_pair for file in files)}
            for file in files:
                compared_with(by_pair[file.lang_pair], file, str(spec))
            scorers[spec] = by_pair
        except (ArtifactError, InputError) as error:
            if not lenient:
                raise
            problems[spec] = str(error)
    results: dict[MetricSpec, list[list[MetricResult]]] = {spec: [] for spec in scorers}
    for file in wrap(files, desc="evaluate", unit="file"):
        together = score_together([by_pair[file.lang_pair] for by_pair in scorers.values()], file)
        for spec, systems in zip(scorers, together, strict=True):
            results[spec].append(systems)
    return Run(files, results, problems, lenient)


def score_together(scorers: Sequence[Scorer], file: Judged) -> list[list[MetricResult]]:
    """Several metrics on one file, stretch by stretch, so that what one has encoded is still there for the next.

    Returns:
        For each metric its result on each system of the file; judged segments count as one system.

    Raises:
        InputError: the file lacks the references that a metric compares with, or holds no row.
    """
    predictions = {f"predictions of {name}" if name else "predictions": texts for name, texts in _outputs(file).items()}
    streams = []
    for scorer in scorers:
        columns = check(**{scorer.compares: compared_with(scorer, file, scorer.signature)}, **predictions)
        streams.append(scorer.score_chunks(_stretches(columns)))
    collected: list[list[list[MetricResult]]] = [[] for _ in scorers]
    # A metric that needs its whole input first gives everything at once.
    for turn in itertools.zip_longest(*streams):
        for chunks, results in zip(collected, turn, strict=True):
            if results is not None:
                chunks.append(results)
    return [[joined(system) for system in zip(*chunks, strict=True)] for chunks in collected]


def compared_with(scorer: Scorer, file: Judged, metric: str) -> list[str]:
    """The sources or references that a metric compares the translations of a file with.

    Raises:
        InputError: a segment has no reference.
    """
    if scorer.compares == "sources":
        return file.sources
    if None in file.references:
        number = file.references.index(None) + 1
        raise InputError(f"{file.file}: segment {number} has no reference, which the metric compares with ({metric})")
    return [reference for reference in file.references if reference is not None]


def _outputs(file: Judged) -> dict[str, list[str]]:
    """The translations of each system; those of judged segments have no name."""
    return file.outputs if isinstance(file, JudgedSystems) else {"": file.predictions}


def _stretches(columns: list[list[Any]]) -> Iterator[list[list[Any]]]:
    for first in range(0, len(columns[0]), _LINES):
        yield [column[first : first + _LINES] for column in columns]


def _part(result: MetricResult, entry: Entry) -> np.ndarray:
    parts = {SCORE: result.segments, **result.parts}
    if entry.part not in parts:
        raise InputError(f"{entry.metric}: no part {entry.part!r}; there are: {', '.join(parts)}")
    return parts[entry.part]


def _column(file: Judged, name: str) -> list[float | None]:
    if isinstance(file, JudgedSystems):
        raise InputError(f"{file.file}: column {name!r}: judgements of whole systems have no columns of scores")
    return file.column(name)


def _turned(values: list[float | None], falls: bool) -> list[float | None]:
    return [None if value is None else -value for value in values] if falls else values
