"""The output of ``mtmetrics score``: rows of segments, one JSON document, or a table of systems.

The command scores the segments of its input in chunks. `open_writer` opens a `Writer`, which takes
the results chunk by chunk, and at the end a `Summary` for each system and metric."""

import contextlib
import dataclasses
import functools
import heapq
import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, NamedTuple

import numpy as np

from mtmetrics.cli import messages
from mtmetrics.cli.output import Document, open_output, rounded
from mtmetrics.io.row_writer import Columns, RowWriter
from mtmetrics.io.score_rows import score_columns, score_row
from mtmetrics.reports.styles import STYLES, decimals, one_line
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.results import MetricResult
from mtmetrics.scorers.side import Side
from mtmetrics.statistics.significance import NO_INTERVAL, Interval, bootstrap_interval

# (Metric, system) -> the result of the system according to the metric.
Results = Mapping[tuple[str, str], MetricResult]

# Formats that are a table of systems. Only below these, --segments lists segments.
SUMMARY_FORMATS = ("table", "markdown")
LOWEST_SEGMENT_COUNT = 10
# A report counts the unusual segments of a result, such as blank ones, and translations in another
# script than that of their language. Name of a count -> header of its column in a table.
_COUNT_HEADERS = {
    "blank": "blank",
    "truncated": "cut",
    "identical": "untranslated",
    "looping": "looping",
    "script": "other script",
    "language": "other language",
    "length": "odd length",
}


@dataclasses.dataclass(frozen=True)
class Summary:
    """The mean score of one system according to one metric, with report and signature.

    Attributes:
        metric: the metric, as the user wrote it.
        system: name of the system.
        result: the scores of all segments of the system. `result.system` is their mean.
        with_interval: whether the mean gets a bootstrap interval.
    """

    metric: str
    system: str
    result: MetricResult
    with_interval: bool

    @functools.cached_property
    def interval(self) -> Interval | None:
        """The 95 % bootstrap interval of the mean over the segments that have a score. None if no
        segment has one, or `bootstrap_interval` returns None, for too few segments."""
        scores = self.result.segments[~np.isnan(self.result.segments)]
        return bootstrap_interval(scores) if scores.size else None

    @property
    def part_means(self) -> dict[str, float]:
        """Name of a part of the score -> its mean over the segments."""
        return {name: float(np.nanmean(values)) for name, values in self.result.parts.items()}

    def as_dict(self) -> Document:
        """Returns ``mean_score``, ``signature``, ``report`` and, if `with_interval`, ``ci``."""
        document = self.result.as_dict(scores=False)
        if self.with_interval:
            document["ci"] = None if self.interval is None else self.interval._asdict()
        return document


def summary_table(style: str, summaries: Sequence[Summary], *, full_precision: bool) -> str:
    """Returns a table with a row per system and metric, and the signatures below.

    It shows the means of the parts that the results hold, and counts of unusual segments.

    Args:
        style: a key of `mtmetrics.reports.styles.STYLES`.
        summaries: the rows.
        full_precision: whether numbers have all digits.
    """
    has_several_metrics = len({summary.metric for summary in summaries}) > 1
    part_names = list(dict.fromkeys(name for summary in summaries for name in summary.part_means))
    reports = [summary.result.report.as_dict() for summary in summaries]
    # Only counts that are above 0 for some summary are shown.
    count_names = [name for name in _COUNT_HEADERS if any(report[name] for report in reports)]
    rows = []
    for summary, report in zip(summaries, reports, strict=True):
        row = {"metric": summary.metric} if has_several_metrics else {}
        row["system"] = summary.system
        row["mean"] = _number(summary.result.system, full_precision)
        if summary.with_interval:
            row["95 % interval"] = _interval(summary.interval, full_precision)
        part_means = summary.part_means
        for name in part_names:
            row[name] = _number(part_means[name], full_precision) if name in part_means else ""
        row["segments"] = f"{report['segments']:,}"
        for name in count_names:
            row[_COUNT_HEADERS[name]] = f"{report[name]:,}"
        rows.append(row)
    headers = list(rows[0])  # all rows have the same columns
    right_aligned = range(headers.index("mean"), len(headers))
    signatures = dict.fromkeys(summary.result.signature for summary in summaries)
    # Texts that are separated by a blank line.
    blocks = [
        STYLES[style]([headers, *(list(row.values()) for row in rows)], right_aligned),
        "\n".join(map(one_line, signatures)),
    ]
    if any(summary.with_interval and summary.interval is None for summary in summaries):
        blocks.append(f"none: {NO_INTERVAL}")  # explains the cells that hold "none"
    return "\n\n".join(blocks)


def _number(value: float, full_precision: bool) -> str:
    return repr(value) if full_precision else decimals(value, 4)


def _interval(interval: Interval | None, full_precision: bool) -> str:
    if interval is None:
        return "none"
    return f"[{_number(interval.low, full_precision)}, {_number(interval.high, full_precision)}]"


class _ScoredSegment(NamedTuple):
    """A segment with its score; sorts by its score, and then by its number.

    Attributes:
        score: the score.
        number: number of the segment, from 1.
        compared_text: the source, the references or both, joined.
        translation: the translation.
    """

    score: float
    number: int
    compared_text: str
    translation: str


class LowestSegments:
    """The segments with the lowest scores of each system according to each metric.

    Args:
        sides: metric -> the side that it compares with.
    """

    def __init__(self, sides: Mapping[str, Side]) -> None:
        self._sides = sides
        self._segments_before = 0
        # (Metric, system) -> its lowest segments so far, the lowest first.
        self._lowest: dict[tuple[str, str], list[_ScoredSegment]] = {}

    def add(self, chunk: Batch, results: Results) -> None:
        """Adds the segments of a chunk. Leaves out segments whose score is NaN."""
        first = self._segments_before + 1
        numbers = range(first, first + len(chunk))
        texts_of_metric = {
            metric: _compared_texts(chunk, side) for metric, side in self._sides.items()
        }
        for (metric, system), result in results.items():
            candidates = list(self._lowest.get((metric, system), []))
            scores = result.segments.tolist()
            columns = (scores, numbers, texts_of_metric[metric], chunk.systems[system])
            for segment in map(_ScoredSegment, *columns):
                if not math.isnan(segment.score):
                    candidates.append(segment)
            self._lowest[metric, system] = heapq.nsmallest(LOWEST_SEGMENT_COUNT, candidates)
        self._segments_before += len(chunk)

    def tables(self, style: str, *, full_precision: bool) -> str:
        """Returns a table for each metric and system."""
        blocks = []
        for (metric, system), segments in self._lowest.items():
            table = [["segment", "score", "compared with", "translation"]]
            for segment in segments:
                score = _number(segment.score, full_precision)
                row = [str(segment.number), score, segment.compared_text, segment.translation]
                table.append(row)
            title = f"Lowest scores of {system} by {metric}:"
            blocks.append(f"{title}\n\n{STYLES[style](table, range(2))}")
        return "\n\n".join(blocks)


def _compared_texts(chunk: Batch, side: Side) -> list[str]:
    """Returns the texts of one side for each segment of a chunk, joined to one text."""
    rows = zip(*(getattr(chunk, column) for column in side.columns), strict=True)
    compared_texts = []
    for row in rows:
        texts: list[str] = []
        for cell in row:
            # A cell holds several references, or one text.
            texts += [cell] if isinstance(cell, str) else cell
        compared_texts.append(" / ".join(texts))
    return compared_texts


@dataclasses.dataclass
class Writer:
    """Writes the whole output after the last chunk: a table or one JSON document. `_RowsWriter` writes
    rows.

    The JSON document of one system and one metric is flat: scores, mean, signature and report.
    Several systems are a list ``systems`` of such documents, each with a ``name``. Several metrics
    are a list ``metrics`` of such documents, flat or with ``systems``, each with a ``metric``.

    Attributes:
        stream: the open target, of bytes for Parquet, else of text.
        output_format: the format, one of `mtmetrics.cli.output.FORMATS`.
        systems: names of the systems. A name may appear twice: then the same translations were
            passed twice.
        metrics: the metrics, as the user wrote them.
        with_parts: whether rows and JSON have the parts of the scores. A table shows the parts that
            its results hold.
        with_unusual: whether rows and JSON have the field ``unusual``: the names of unusual traits
            of the segment, such as a translation that copies the source.
        full_precision: whether numbers have all digits.
    """

    stream: IO
    output_format: str
    systems: Sequence[str]
    metrics: Sequence[str]
    with_parts: bool
    with_unusual: bool
    full_precision: bool

    def add(self, results: Results) -> None:
        """Receives the results of one chunk. Nothing is done here, since the summaries hold the
        results of all chunks."""

    def finish(self, summaries: Sequence[Summary]) -> None:
        """Writes the summaries, in the order of metrics and then of systems."""
        if self.output_format == "json":
            document = rounded(self._document(summaries), full_precision=self.full_precision)
            text = json.dumps(document, ensure_ascii=False, indent=1)
        else:
            text = summary_table(self.output_format, summaries, full_precision=self.full_precision)
        self.stream.write(text + "\n")

    def close(self) -> None:
        """Completes the file; a table and JSON are complete already."""

    def _document(self, summaries: Sequence[Summary]) -> Document:
        """Returns the scores of all systems according to all metrics, for JSON."""
        metric_documents = []
        for metric in self.metrics:
            system_documents = []
            for summary in summaries:
                if summary.metric == metric:
                    system_documents.append(self._system_document(summary))
            metric_document: Document = {"metric": metric} if self._has_several_metrics else {}
            if len(self.systems) == 1:
                metric_document |= system_documents[0]
            else:
                metric_document["systems"] = system_documents
            metric_documents.append(metric_document)
        return {"metrics": metric_documents} if self._has_several_metrics else metric_documents[0]

    def _system_document(self, summary: Summary) -> Document:
        document: Document = {"name": summary.system} if len(self.systems) > 1 else {}
        document |= summary.result.as_dict(parts=self.with_parts)
        if self.with_unusual:
            document["unusual"] = summary.result.unusual_names()
        return document | summary.as_dict()  # adds only "ci": the other entries are the same

    @property
    def _has_several_metrics(self) -> bool:
        return len(self.metrics) > 1


@dataclasses.dataclass
class _RowsWriter(Writer):
    """Writes a row per segment and system.

    The summaries follow: in JSON Lines as rows of another ``kind``, in Parquet as metadata under
    the key ``mtmetrics``. TSV and CSV have no place for them: if the rows go to standard output, the
    summaries go to standard error. If the rows go to a file, `mtmetrics.cli.score.run` prints the
    summaries as a table. Numbers in Parquet have all digits."""

    # Opened by the first chunk, which shows the names of the parts.
    _row_writer: RowWriter | None = dataclasses.field(default=None, init=False)
    _segments_before: int = dataclasses.field(default=0, init=False)

    def __post_init__(self) -> None:
        # Only for its InputError, before anything is scored, if the format cannot hold a name, such as
        # one with a tab. The names of the parts are not known yet.
        self._file_columns([self._score_name(metric) for metric in self.metrics])

    def _score_name(self, metric: str) -> str:
        """Returns the column of the scores of a metric."""
        return metric if self._has_several_metrics else "score"

    def _file_columns(self, score_names: Iterable[str]) -> Columns:
        return score_columns(
            self.output_format, self.systems, score_names, with_unusual=self.with_unusual
        )

    def add(self, results: Results) -> None:
        if self._row_writer is None:
            score_names = self._numbers_of_column(self.systems[0], results).keys()
            self._row_writer = RowWriter(self.stream, self._file_columns(score_names))
        rows_per_system = [self._rows(system, results) for system in self.systems]
        # All systems of the first segment, of the second, and so on.
        rows = itertools.chain.from_iterable(zip(*rows_per_system, strict=True))
        self._row_writer.write(rows)
        self._segments_before += len(next(iter(results.values())).segments)

    def _rows(self, system: str, results: Results) -> Iterator[Document]:
        """Yields the rows of one system for a chunk."""
        numbers_of_column = self._numbers_of_column(system, results)
        metric_results = [results[metric, system] for metric in self.metrics]
        unusual: Sequence[str | None] = [None] * len(metric_results[0].segments)
        if self.with_unusual:
            unusual = _unusual_names(metric_results)
        rows_of_numbers = zip(*numbers_of_column.values(), unusual, strict=True)
        rows = enumerate(rows_of_numbers, self._segments_before + 1)
        for segment, (*numbers, unusual_names) in rows:
            scores = dict(zip(numbers_of_column, numbers, strict=True))
            row = score_row(self.output_format, system, segment, scores, unusual_names)
            yield rounded(row, full_precision=self.full_precision)

    def _numbers_of_column(self, system: str, results: Results) -> dict[str, list[float]]:
        """Returns the numbers of one system for a chunk: name of a column -> its numbers.

        With one metric the columns are "score" and the parts. With several metrics each has a
        column of its name, and its parts have columns whose names begin with this name."""
        numbers_of_column = {}
        for metric in self.metrics:
            result = results[metric, system]
            numbers_of_column[self._score_name(metric)] = result.segments.tolist()
            parts = result.parts if self.with_parts else {}
            for part, values in parts.items():
                part_column = f"{metric} {part}" if self._has_several_metrics else part
                numbers_of_column[part_column] = values.tolist()
        return numbers_of_column

    def finish(self, summaries: Sequence[Summary]) -> None:
        if self.output_format == "parquet":
            documents = [self._summary_document(summary, "name") for summary in summaries]
            # A mean may be NaN, which JSON does not have.
            plain_documents = rounded(documents, full_precision=self.full_precision)
            metadata = json.dumps(plain_documents, ensure_ascii=False)
            self._row_writer.add_metadata("mtmetrics", metadata)
        elif self.output_format == "jsonl":
            for summary in summaries:
                document = {"kind": "system", **self._summary_document(summary, "system")}
                self._row_writer.write([rounded(document, full_precision=self.full_precision)])
        # `open_output` yields `sys.stdout` itself.
        elif self.stream is sys.stdout and not messages.quiet:
            for summary in summaries:
                print(self._message(summary), file=sys.stderr)

    def _summary_document(self, summary: Summary, name_key: str) -> Document:
        """Returns a summary with the name of its system and, if there are several metrics, the name
        of its metric.

        The documented formats differ in the key of the system: it is "system" in rows, and "name" in
        the metadata of Parquet."""
        metric = {"metric": summary.metric} if self._has_several_metrics else {}
        return {name_key: summary.system, **metric, **summary.as_dict()}

    def _message(self, summary: Summary) -> str:
        """Returns a summary as a line for standard error."""
        metric = f" {summary.metric}:" if self._has_several_metrics else ""
        mean = rounded(summary.result.system, full_precision=self.full_precision)
        interval = ""
        if summary.with_interval and summary.interval is None:
            interval = f" ({NO_INTERVAL})"
        elif summary.with_interval:
            low, high = rounded(summary.interval[:2], full_precision=self.full_precision)
            interval = f" [{low!r}, {high!r}]"
        signature = summary.result.signature
        return f"{summary.system}:{metric} mean {mean!r}{interval} {signature}"

    def close(self) -> None:
        if self._row_writer is not None:
            self._row_writer.close()


def _unusual_names(results: Sequence[MetricResult]) -> list[str]:
    """Returns the unusual traits of each segment of a system, as names joined by +.

    Args:
        results: the results of the system, one per metric. Several metrics may name the same trait,
            which is shown once.
    """
    unusual = {}
    for result in results:
        for name, mask in result.unusual.items():
            unusual[name] = mask | unusual.get(name, False)
    # The first result only lends its method, which joins the names.
    return dataclasses.replace(results[0], unusual=unusual).unusual_names()


@contextlib.contextmanager
def open_writer(
    out: str | None,
    output_format: str,
    systems: Sequence[str],
    metrics: Sequence[str],
    *,
    with_parts: bool,
    with_unusual: bool,
    full_precision: bool,
) -> Iterator[Writer]:
    """Opens a file, or standard output, and yields a writer for it; see `Writer`."""
    writer_class = Writer if output_format in (*SUMMARY_FORMATS, "json") else _RowsWriter
    is_binary = output_format == "parquet"
    # Standard output of other formats, Markdown too, is in UTF-8. A table in a file is refused
    # before, by `pick_format`.
    is_table = output_format == "table"
    with open_output(out, binary=is_binary, table=is_table) as stream:
        writer = writer_class(
            stream,
            output_format,
            systems,
            metrics,
            with_parts=with_parts,
            with_unusual=with_unusual,
            full_precision=full_precision or is_binary,
        )
        with contextlib.closing(writer):
            yield writer
