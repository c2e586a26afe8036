"""The output of ``mtmetrics score``: rows of segments, one JSON document, or a table of systems.

A writer takes the results of one chunk of segments after another, and at the end a `Summary` for
each system and metric."""

import contextlib
import dataclasses
import functools
import heapq
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING

from mtmetrics.cli import messages
from mtmetrics.cli.output import Document, open_output, rounded
from mtmetrics.io.row_writer import Columns, RowWriter
from mtmetrics.io.score_rows import ScoreRow
from mtmetrics.scorers.side import Side

if TYPE_CHECKING:
    from mtmetrics.scorers.batch import Batch
    from mtmetrics.scorers.results import MetricResult
    from mtmetrics.statistics.significance import Interval

    # For each metric one result per system.
    Results = Sequence[Sequence[MetricResult]]

# Formats that show no segments.
SUMMARY_FORMATS = ("table", "markdown")
LOWEST_SHOWN = 10
# Name of a count in a report -> header of its column in a table.
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
    """The mean score of one system by one metric, with report and signature.

    Attributes:
        metric: the metric, as the user wrote it.
        system: name of the system.
        result: the scores of all segments of the system.
        with_interval: whether the mean gets a bootstrap interval.
    """

    metric: str
    system: str
    result: "MetricResult"
    with_interval: bool

    @functools.cached_property
    def interval(self) -> "Interval | None":
        """The 95 % interval of the mean over the segments that have a score; None if these are
        too few."""
        import numpy as np

        from mtmetrics.statistics.significance import bootstrap_interval

        scores = self.result.segments[~np.isnan(self.result.segments)]
        return bootstrap_interval(scores) if scores.size else None

    @property
    def part_means(self) -> dict[str, float]:
        """Name of a part of the score -> its mean over the segments."""
        import numpy as np

        return {name: float(np.nanmean(values)) for name, values in self.result.parts.items()}

    def as_dict(self) -> Document:
        """Returns mean, signature, report and, if `with_interval`, the interval."""
        document = self.result.as_dict(scores=False)
        if self.with_interval:
            document["ci"] = None if self.interval is None else self.interval._asdict()
        return document


def summary_table(style: str, summaries: Sequence[Summary], *, full_precision: bool) -> str:
    """Returns a table with a row per system and metric, and the signatures below.

    Args:
        style: a key of `mtmetrics.reports.styles.STYLES`.
        summaries: the rows.
        full_precision: whether numbers have all digits.
    """
    from mtmetrics.reports.styles import STYLES, one_line
    from mtmetrics.statistics.significance import NO_INTERVAL

    has_several_metrics = len({summary.metric for summary in summaries}) > 1
    parts = list(dict.fromkeys(part for summary in summaries for part in summary.part_means))
    reports = [summary.result.report.as_dict() for summary in summaries]
    counts = [name for name in _COUNT_HEADERS if any(report[name] for report in reports)]
    rows = []
    for summary, report in zip(summaries, reports, strict=True):
        row = {"metric": summary.metric} if has_several_metrics else {}
        row["system"] = summary.system
        row["mean"] = _number(summary.result.system, full_precision)
        if summary.with_interval:
            row["95 % interval"] = _interval(summary.interval, full_precision)
        part_means = summary.part_means
        for part in parts:
            row[part] = _number(part_means[part], full_precision) if part in part_means else ""
        row["segments"] = f"{report['segments']:,}"
        for name in counts:
            row[_COUNT_HEADERS[name]] = f"{report[name]:,}"
        rows.append(row)
    headers = list(rows[0])  # all rows have the same columns
    number_columns = range(headers.index("mean"), len(headers))
    signatures = dict.fromkeys(summary.result.signature for summary in summaries)
    blocks = [
        STYLES[style]([headers, *(list(row.values()) for row in rows)], number_columns),
        "\n".join(map(one_line, signatures)),
    ]
    if any(summary.with_interval and summary.interval is None for summary in summaries):
        blocks.append(f"none: {NO_INTERVAL}")  # explains the cells that say none
    return "\n\n".join(blocks)


def _number(value: float, full_precision: bool) -> str:
    from mtmetrics.reports.styles import decimals

    return repr(value) if full_precision else decimals(value, 4)


def _interval(interval: "Interval | None", full_precision: bool) -> str:
    if interval is None:
        return "none"
    return f"[{_number(interval.low, full_precision)}, {_number(interval.high, full_precision)}]"


class LowestSegments:
    """The segments with the lowest scores of each system by each metric, with their texts."""

    def __init__(self) -> None:
        self._segments_before = 0
        # (Metric, system) -> score, segment number, compared texts and translation of its segments.
        self._rows: dict[tuple[str, str], list[tuple[float, int, str, str]]] = {}

    def add(self, batch: "Batch", sides: Mapping[str, Side], results: "Results") -> None:
        """Adds the segments of a chunk.

        Args:
            batch: the texts of the chunk.
            sides: metric -> the side that it compares with.
            results: for each of these metrics the result of each system of the batch.
        """
        first = self._segments_before + 1
        segment_numbers = range(first, first + len(batch))
        columns = {"sources": batch.sources, "references": batch.references}
        for (metric, side), metric_results in zip(sides.items(), results, strict=True):
            rows_of_texts = zip(*(columns[name] or () for name in side.columns), strict=True)
            compared = [" / ".join(map(_joined, texts)) for texts in rows_of_texts]
            systems = zip(batch.systems.items(), metric_results, strict=True)
            for (system, translations), result in systems:
                scores = result.segments.tolist()
                rows = zip(scores, segment_numbers, compared, translations, strict=True)
                lowest_rows = self._rows.get((metric, system), [])
                self._rows[metric, system] = heapq.nsmallest(
                    LOWEST_SHOWN, itertools.chain(lowest_rows, rows)
                )
        self._segments_before += len(batch)

    def tables(self, style: str, *, full_precision: bool) -> str:
        """Returns a table for each metric and system."""
        from mtmetrics.reports.styles import STYLES

        blocks = []
        for (metric, system), rows in self._rows.items():
            table = [["segment", "score", "compared with", "translation"]]
            for score, number, compared, translation in rows:
                table.append([str(number), _number(score, full_precision), compared, translation])
            title = f"Lowest scores of {system} by {metric}:"
            blocks.append(f"{title}\n\n{STYLES[style](table, range(2))}")
        return "\n\n".join(blocks)


def _joined(texts: str | Sequence[str]) -> str:
    """Returns a source, a reference or several references as one text."""
    return texts if isinstance(texts, str) else " / ".join(texts)


@dataclasses.dataclass
class Writer:
    """Writes the summaries as a table. Subclasses write segments too, in other formats.

    Attributes:
        stream: the open target, of bytes for Parquet, else of text.
        output_format: the format, one of `mtmetrics.cli.output.FORMATS`.
        systems: names of the systems, in the order of their results.
        metrics: the metrics, as the user wrote them, in the order of their results.
        with_parts: whether rows have the parts of the scores.
        with_unusual: whether rows say what is unusual about a segment.
        full_precision: whether numbers have all digits.
    """

    stream: IO
    output_format: str
    systems: Sequence[str]
    metrics: Sequence[str]
    with_parts: bool
    with_unusual: bool
    full_precision: bool

    def add(self, results: "Results") -> None:
        """Takes a chunk: `results` has for each metric the result of each system. A table shows no
        segments, so there is nothing to do here."""

    def finish(self, summaries: Sequence[Summary]) -> None:
        """Writes the summaries, in the order of metrics and then of systems."""
        self.stream.write(
            summary_table(self.output_format, summaries, full_precision=self.full_precision) + "\n"
        )

    def close(self) -> None:
        """Finishes the file; a table needs nothing."""

    def _as_document(self, summary: Summary, name_key: str = "system") -> Document:
        """Returns a summary with the name of its system and, if there are several metrics, the name
        of its metric."""
        metric = {"metric": summary.metric} if len(self.metrics) > 1 else {}
        return {name_key: summary.system, **metric, **summary.as_dict()}


@dataclasses.dataclass
class _JsonWriter(Writer):
    """Writes one JSON document after the last chunk."""

    _chunks: "list[Results]" = dataclasses.field(default_factory=list, init=False)

    def add(self, results: "Results") -> None:
        self._chunks.append(results)

    def finish(self, summaries: Sequence[Summary]) -> None:
        documents = []
        for index, metric in enumerate(self.metrics):
            metric_summaries = [summary for summary in summaries if summary.metric == metric]
            documents.append(self._document(index, metric_summaries))
        if len(documents) > 1:
            named = zip(self.metrics, documents, strict=True)
            document = {"metrics": [{"metric": metric} | document for metric, document in named]}
        else:
            document = documents[0]
        json.dump(
            rounded(document, full_precision=self.full_precision),
            self.stream,
            ensure_ascii=False,
            indent=1,
        )
        self.stream.write("\n")

    def _document(self, metric_index: int, summaries: Sequence[Summary]) -> Document:
        """Returns the scores of all systems by one metric.

        Args:
            metric_index: index of the metric in `metrics`.
            summaries: the summaries of the systems by this metric.
        """
        from mtmetrics.scorers.results import join_systems

        results = join_systems([chunk[metric_index] for chunk in self._chunks])
        documents = []
        for result, summary in zip(results, summaries, strict=True):
            document = result.as_dict(parts=self.with_parts)
            if self.with_unusual:
                document["unusual"] = result.unusual_names()
            documents.append(document | summary.as_dict())
        if len(documents) == 1:
            return documents[0]
        named = zip(self.systems, documents, strict=True)
        return {"systems": [{"name": system} | document for system, document in named]}


@dataclasses.dataclass
class _RowsWriter(Writer):
    """Writes a row per segment and system.

    The summaries follow: in JSON Lines as rows of another ``kind``, in Parquet as metadata under
    the key ``mtmetrics``, and as messages where TSV or CSV goes to standard output. Numbers in
    Parquet have all digits."""

    _rows: RowWriter | None = dataclasses.field(default=None, init=False)
    _segments_before: int = dataclasses.field(default=0, init=False)

    def __post_init__(self) -> None:
        # Raises, before the scoring, if the format cannot hold a name, such as one with a tab.
        self._columns(self.metrics)

    def _columns(self, number_columns: Iterable[str]) -> Columns:
        return ScoreRow.columns(
            self.output_format, self.systems, number_columns, with_unusual=self.with_unusual
        )

    def add(self, results: "Results") -> None:
        columns = self._numbers_by_column(results)
        if self._rows is None:
            self._rows = RowWriter(self.stream, self._columns(columns))
        self._rows.write(self._segment_rows(columns, results))
        self._segments_before += len(results[0][0].segments)

    def _segment_rows(
        self, columns: Mapping[str, Sequence[float | None]], results: "Results"
    ) -> Iterator[Document]:
        """Yields the rows of a chunk: all systems of the first segment, of the second, and so on."""
        first = self._segments_before + 1
        segments = range(first, first + len(results[0][0].segments))
        row_keys = itertools.product(segments, self.systems)
        rows_of_numbers = zip(*columns.values(), strict=True)
        unusual = self._unusual(results)
        rows = zip(row_keys, rows_of_numbers, unusual, strict=True)
        for (segment, system), numbers, unusual_names in rows:
            values = dict(zip(columns, numbers, strict=True))
            row = ScoreRow(system, segment, values, unusual_names).to_dict(self.output_format)
            if self.output_format != "parquet":
                row = rounded(row, full_precision=self.full_precision)
            yield row

    def _numbers_by_column(self, results: "Results") -> dict[str, list[float | None]]:
        """Returns the numbers of a chunk: name of a column -> its numbers, in the order of the rows.

        With one metric the columns are "score" and the parts. With several metrics each has a
        column of its name, and its parts have columns whose names begin with this name."""
        import numpy as np

        has_several_metrics = len(self.metrics) > 1
        columns = {}
        for metric, metric_results in zip(self.metrics, results, strict=True):
            name = metric if has_several_metrics else "score"
            columns[name] = [result.segments for result in metric_results]
            parts = metric_results[0].parts if self.with_parts else ()
            for part in parts:
                name = f"{metric} {part}" if has_several_metrics else part
                columns[name] = [result.parts[part] for result in metric_results]
        floats = {name: np.stack(arrays, axis=1).ravel() for name, arrays in columns.items()}
        return {
            name: np.where(np.isnan(array), None, array).tolist() for name, array in floats.items()
        }

    def _unusual(self, results: "Results") -> Iterable[str | None]:
        """Returns what is unusual for each row of a chunk; without `with_unusual`, None for each."""
        if not self.with_unusual:
            return itertools.repeat(None, len(results[0][0].segments) * len(self.systems))
        results_per_system = zip(*results, strict=True)
        names_per_system = [_unusual_names(system_results) for system_results in results_per_system]
        return itertools.chain.from_iterable(zip(*names_per_system, strict=True))

    def finish(self, summaries: Sequence[Summary]) -> None:
        if self.output_format == "parquet" and self._rows is not None:
            documents = [self._as_document(summary, "name") for summary in summaries]
            self._rows.add_metadata("mtmetrics", json.dumps(documents, ensure_ascii=False))
        elif self.output_format == "jsonl" and self._rows is not None:
            for summary in summaries:
                document = {"kind": "system", **self._as_document(summary)}
                self._rows.write([rounded(document, full_precision=self.full_precision)])
        elif self.stream is sys.stdout and not messages.quiet:
            for summary in summaries:
                print(self._message(summary), file=sys.stderr)

    def _message(self, summary: Summary) -> str:
        """Returns a summary as a line for the screen."""
        from mtmetrics.statistics.significance import NO_INTERVAL

        metric = f" {summary.metric}:" if len(self.metrics) > 1 else ""
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
        if self._rows is not None:
            self._rows.close()


def _unusual_names(results: "Sequence[MetricResult]") -> list[str]:
    """Returns what is unusual about each segment of a system, as names joined by +.

    Args:
        results: the results of the system, one per metric.
    """
    names_per_segment = zip(*(result.unusual_names() for result in results), strict=True)
    unusual = []
    for texts in names_per_segment:
        # Several metrics may name the same thing, which is then named once.
        names = [name for text in texts for name in text.split("+") if name]
        unusual.append("+".join(dict.fromkeys(names)))
    return unusual


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
    if output_format == "json":
        writer_class = _JsonWriter
    elif output_format in SUMMARY_FORMATS:
        writer_class = Writer
    else:
        writer_class = _RowsWriter
    is_binary, is_table = output_format == "parquet", output_format == "table"
    with open_output(out, binary=is_binary, table=is_table) as stream:
        writer = writer_class(
            stream,
            output_format,
            systems,
            metrics,
            with_parts=with_parts,
            with_unusual=with_unusual,
            full_precision=full_precision,
        )
        with contextlib.closing(writer):
            yield writer
