"""Metrics x judged data -> scores; metrics that are run together share their encodings."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.judgements.judged import Judged
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.baselines import corpus_bleu
from mtmetrics.scorers.results import MetricResult, join_turns, segments_per_batch
from mtmetrics.scorers.side import FIELD_OF_COLUMN
from mtmetrics.scorers.signature import with_fields
from mtmetrics.scorers.spec import MetricSpec

SCORE = "score"


@dataclasses.dataclass(frozen=True)
class Entry:
    """A row of a table of metrics: where its scores come from. Exactly one of `metric`, `column`,
    `corpus` and `why_not` is set.

    Attributes:
        title: name of the row.
        metric: the metric.
        column: a column of numbers in the files; for judged segments only.
        part: the score of the metric, or a part of it.
        falls: whether lower is better; the sign of the values is turned then.
        corpus: whether the scores are corpus BLEU; for judged systems only.
        why_not: reason why the row has no scores.
    """

    title: str
    metric: MetricSpec | None = None
    column: str | None = None
    part: str = SCORE
    falls: bool = False
    corpus: bool = False
    why_not: str | None = None

    @classmethod
    def of_column(cls, name: str) -> "Entry":
        """The row of a column, with a title that no metric has."""
        return cls(f"{name} (column)", column=name)


@dataclasses.dataclass(frozen=True)
class RowScores:
    """The scores of a row.

    Attributes:
        scores: for each file a value per segment or system (in `mtmetrics.probes.word_by_word` one
            share), None where there is none; an empty list for a file that could not be scored.
            Empty where the row has a problem.
        signatures: of the metric, for each file; empty text for a file that could not be scored.
            Empty for columns, and where the row has a problem.
        problem: reason why no file could be scored.
        missing: number of a file -> reason why it could not be scored, where others could.
    """

    entry: Entry
    scores: list[list[float | None]]
    signatures: list[str] = dataclasses.field(default_factory=list)
    problem: str | None = None
    missing: Mapping[int, str] = dataclasses.field(default_factory=dict)

    @property
    def known_signatures(self) -> list[str]:
        """Signatures of the files that were scored."""
        return [signature for signature in self.signatures if signature]


@dataclasses.dataclass(frozen=True)
class MetricRuns:
    """The results of several metrics on files of judged segments, or judged systems.

    Attributes:
        results: metric -> for each file its result on each system; judged segments count as one
            system. None for a file that it could not be run on.
        missing: metric -> number of a file -> reason why it could not be run on that one.
        lenient: whether an error becomes the problem of its row or file; otherwise it is raised.
    """

    files: Sequence[Judged]
    results: Mapping[MetricSpec, list[list[MetricResult] | None]]
    missing: Mapping[MetricSpec, Mapping[int, str]]
    lenient: bool

    def with_parts(self, entry: Entry) -> list[Entry]:
        """The row, and one more for each part that its score has on the first file that it could be
        run on."""
        if entry.metric is None:
            return [entry]
        results = [systems for systems in self.results[entry.metric] if systems]
        parts = results[0][0].parts if results else {}
        rows = [
            dataclasses.replace(entry, title=f"{entry.title} {part}", part=part) for part in parts
        ]
        return [entry, *rows]

    def scored(self, entry: Entry) -> RowScores:
        """The scores of a row, or its problem.

        Raises:
            MTMetricsError: unless the runs are lenient; there is no such column or part, systems
                have no columns, BLEU lacks a reference, or sacrebleu is not installed.
        """
        if entry.why_not is not None:
            return RowScores(entry, [], problem=entry.why_not)
        missing = {} if entry.metric is None else dict(self.missing[entry.metric])
        scores: list[list[float | None]] = []
        signatures: list[str] = []
        for number in range(len(self.files)):
            values, signature = [], ""
            if number not in missing:
                try:
                    values, signature = self._scored_file(entry, number)
                except MTMetricsError as error:
                    if not self.lenient:
                        raise
                    missing[number] = str(error)
            if entry.falls:
                values = [None if value is None else -value for value in values]
            scores.append(values)
            signatures.append(signature)
        if len(missing) == len(self.files):
            return RowScores(entry, [], problem=missing[0])
        return RowScores(entry, scores, signatures if any(signatures) else [], missing=missing)

    def _scored_file(self, entry: Entry, number: int) -> tuple[list[float | None], str]:
        """The scores of a row on a file, and the signature of its metric, empty for a column."""
        file = self.files[number]
        if entry.column is not None:
            return file.column(entry.column), ""
        if entry.corpus:
            scores, signature = _corpus_bleu(file)
            return scores, _with_preparation(signature, file)
        systems = self.results[entry.metric][number]
        return _values(file, systems, entry), systems[0].signature

    def notes(self) -> list[str]:
        """One line for each file, system and metric whose segments are unusual."""
        lines = []
        for metric, results in self.results.items():
            for file, systems in zip(self.files, results, strict=True):
                if systems is None:
                    continue
                for name, result in zip(file.outputs(), systems, strict=True):
                    if result.report.note:
                        place = f"{file.file}, {name}" if name else file.file
                        lines.append(f"{place}: {metric}: {result.report.note}")
        return lines


def run_metrics(
    metrics: Iterable[MetricSpec],
    files: Sequence[Judged],
    pool: ModelPool,
    *,
    lenient: bool = False,
    instead: Mapping[MetricSpec, MetricSpec] | None = None,
) -> MetricRuns:
    """Runs each metric once on each file; a text that several of them encode alike is encoded once.

    Args:
        metrics: the metrics.
        files: judged segments, or judged systems.
        pool: loads the models.
        lenient: whether a metric that cannot be run on a file becomes a problem of the result;
            otherwise the error is raised.
        instead: metric -> another one, which is run on the files for which the metric cannot be
            loaded, for whatever reason.

    Raises:
        InputError: there is no such metric or option, or a file lacks the references that a metric
            compares with.
        MTMetricsError: a model cannot be loaded, or a package is not installed.
    """
    scorers: list[dict[MetricSpec, Scorer]] = [{} for _ in files]
    missing: dict[MetricSpec, dict[int, str]] = {}
    # All are loaded before the first is run, so that a model that is missing does not cost an hour.
    for spec in dict.fromkeys(metrics):
        missing[spec] = {}
        for number, file in enumerate(files):
            try:
                scorers[number][spec] = _scorer(spec, (instead or {}).get(spec), file, pool)
            except MTMetricsError as error:
                if not lenient:
                    raise
                missing[spec][number] = str(error)
    results: dict[MetricSpec, list[list[MetricResult] | None]] = {spec: [] for spec in missing}
    for file, file_scorers in zip(files, scorers, strict=True):
        file_results = score_together([*file_scorers.values()], file)
        result_of_metric = dict(zip(file_scorers, file_results, strict=True))
        for spec, spec_results in results.items():
            spec_results.append(result_of_metric.get(spec))
    return MetricRuns(files, results, missing, lenient)


def _scorer(spec: MetricSpec, instead: MetricSpec | None, file: Judged, pool: ModelPool) -> Scorer:
    """The scorer of a metric for a file, or of the metric `instead` where the first cannot be
    loaded; where neither can, the error is that of the first."""
    try:
        scorer = spec.load(pool, file.lang_pair)
    except MTMetricsError as error:
        if instead is None:
            raise
        try:
            scorer = instead.load(pool, file.lang_pair)
        except MTMetricsError:
            raise error from None
    _checked_columns(scorer, file, str(spec))  # refuses missing references before anything is run
    return scorer


def score_together(scorers: Sequence[Scorer], file: Judged) -> list[list[MetricResult]]:
    """For each metric its result on each system of a file; judged segments count as one system."""
    outputs = {name: rows["translation"].tolist() for name, rows in file.outputs().items()}
    batch_sizes = [scorer.batch_segments for scorer in scorers]
    # One compared text and the outputs: a rough size, since a metric may compare with two.
    batch_size = segments_per_batch(batch_sizes, 1 + len(outputs))
    streams = []
    for scorer in scorers:
        columns = _checked_columns(scorer, file, scorer.signature)
        batch = scorer.checked_batch(outputs, **columns)
        streams.append(scorer.score_batches(batch.slices(batch_size)))
    return [
        [
            dataclasses.replace(result, signature=_with_preparation(result.signature, file))
            for result in systems
        ]
        for systems in join_turns(streams)
    ]


def _with_preparation(signature: str, file: Judged) -> str:
    """A signature that says what was done to the texts of the file."""
    return signature if file.prepared is None else with_fields(signature, file.prepared)


def _checked_columns(scorer: Scorer, file: Judged, metric: str) -> dict[str, list[str]]:
    """The columns that a metric compares a file with; refused where a segment has no reference."""
    rows = next(iter(file.outputs().values()))
    columns = {name: rows[FIELD_OF_COLUMN[name]].tolist() for name in scorer.side.columns}
    references = columns.get("references", [])
    if None in references:
        number = references.index(None) + 1
        raise InputError(
            f"{file.file}: segment {number} has no reference, which the metric compares with "
            f"({metric})"
        )
    return columns


def _corpus_bleu(file: Judged) -> tuple[list[float], str]:
    """Corpus BLEU of each system of a file, and its signature."""
    scores, signature = [], ""
    for rows in file.outputs().values():
        references = rows["reference"].tolist()
        if None in references:
            raise InputError(
                f"{file.file}: segment {references.index(None) + 1} has no reference, which BLEU "
                "needs"
            )
        translations = rows["translation"].tolist()
        score, signature = corpus_bleu(translations, references, file.lang_pair)
        scores.append(score)
    return scores, signature


def _values(file: Judged, systems: Sequence[MetricResult], entry: Entry) -> list[float]:
    """The score or part of each segment, or of each system: the mean over its segments."""
    parts = measures(systems[0])
    if entry.part not in parts:
        raise InputError(f"{entry.metric}: no part {entry.part!r}; there are: {', '.join(parts)}")
    if file.level == "segment":
        return parts[entry.part].tolist()
    return [float(measures(result)[entry.part].mean()) for result in systems]


def measures(result: MetricResult) -> dict[str, np.ndarray]:
    """The score of each segment, and the parts of it."""
    return {SCORE: result.segments, **result.parts}
