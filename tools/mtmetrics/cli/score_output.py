"""The output of ``mtmetrics score``: rows of segments, one JSON document, or a table of systems.

A writer takes the results of chunk after chunk, and at the end a `Summary` of each system."""

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
from mtmetrics.cli.output import Document, opened, rounded
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
LOWEST = 10
# Count of a report -> the head of its column in a table.
_UNUSUAL_HEADS = {
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
    """The scores of one system by one metric, without those of its segments.

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
        """The 95 % interval of the mean over the segments that have a score; None for too few."""
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
        """Returns mean, signature, report and, where it is wanted, the interval."""
        document = self.result.as_dict(scores=False)
        if self.with_interval:
            document["ci"] = self.interval and self.interval._asdict()
        return document


def summary_table(style: str, summaries: Sequence[Summary], *, full: bool) -> str:
    """Returns a table with a row per system and metric, and the signatures below.

    Args:
        style: a key of `mtmetrics.reports.styles.STYLES`.
        summaries: the rows.
        full: whether numbers have all digits.
    """
    from mtmetrics.reports.styles import STYLES, one_line
    from mtmetrics.statistics.significance import NO_INTERVAL

    is_about_several_metrics = len({summary.metric for summary in summaries}) > 1
    parts = list(dict.fromkeys(part for summary in summaries for part in summary.part_means))
    reports = [summary.result.report.as_dict() for summary in summaries]
    unusual = [count for count in _UNUSUAL_HEADS if any(report[count] for report in reports)]
    rows = []
    for summary, report in zip(summaries, reports, strict=True):
        row = {"metric": summary.metric} if is_about_several_metrics else {}
        row["system"] = summary.system
        row["mean"] = _number(summary.result.system, full)
        if summary.with_interval:
            row["95 % interval"] = _interval(summary.interval, full)
        part_means = summary.part_means
        for part in parts:
            row[part] = _number(part_means[part], full) if part in part_means else ""
        row["segments"] = f"{report['segments']:,}"
        for count in unusual:
            row[_UNUSUAL_HEADS[count]] = f"{report[count]:,}"
        rows.append(list(row.values()))
        heads = list(row)
    columns_of_numbers = range(heads.index("mean"), len(heads))
    signatures = dict.fromkeys(summary.result.signature for summary in summaries)
    blocks = [
        STYLES[style]([heads, *rows], columns_of_numbers),
        "\n".join(map(one_line, signatures)),
    ]
    if any(summary.with_interval and summary.interval is None for summary in summaries):
        blocks.append(f"none: {NO_INTERVAL}")
    return "\n\n".join(blocks)


def _number(value: float, full: bool) -> str:
    from mtmetrics.reports.styles import decimals

    return repr(value) if full else decimals(value, 4)


def _interval(interval: "Interval | None", full: bool) -> str:
    if interval is None:
        return "none"
    return f"[{_number(interval.low, full)}, {_number(interval.high, full)}]"


class LowestSegments:
    """The segments with the lowest scores of each system by each metric, with their texts."""

    def __init__(self) -> None:
        self._segments_before = 0
        # Metric and system -> score, number, compared texts and translation of its segments.
        self._rows: dict[tuple[str, str], list[tuple[float, int, str, str]]] = {}

    def add(self, batch: "Batch", sides: Mapping[str, Side], results: "Results") -> None:
        """Takes a chunk.

        Args:
            batch: the texts of the chunk.
            sides: metric -> the side that it compares with.
            results: for each of these metrics the result of each system of the batch.
        """
        numbers = range(self._segments_before + 1, self._segments_before + len(batch) + 1)
        columns = {"sources": batch.sources, "references": batch.references}
        for (metric, side), metric_results in zip(sides.items(), results, strict=True):
            rows_of_texts = zip(*(columns[name] or () for name in side.columns), strict=True)
            compared = [" / ".join(map(_in_one_line, texts)) for texts in rows_of_texts]
            systems = zip(batch.systems.items(), metric_results, strict=True)
            for (system, translations), result in systems:
                scores = result.segments.tolist()
                rows = zip(scores, numbers, compared, translations, strict=True)
                lowest_before = self._rows.get((metric, system), [])
                self._rows[metric, system] = heapq.nsmallest(
                    LOWEST, itertools.chain(lowest_before, rows)
                )
        self._segments_before += len(batch)

    def tables(self, style: str, *, full: bool) -> str:
        """Returns a table for each metric and system."""
        from mtmetrics.reports.styles import STYLES

        blocks = []
        for (metric, system), rows in self._rows.items():
            table = [["segment", "score", "compared with", "translation"]]
            for score, number, compared, translation in rows:
                table.append([str(number), _number(score, full), compared, translation])
            title = f"Lowest scores of {system} by {metric}:"
            blocks.append(f"{title}\n\n{STYLES[style](table, range(2))}")
        return "\n\n".join(blocks)


def _in_one_line(texts: str | Sequence[str]) -> str:
    """Returns a source, a reference or several references as one text."""
    return texts if isinstance(texts, str) else " / ".join(texts)


@dataclasses.dataclass
class Writer:
    """Writes the summaries as a table; subclasses write more, in other formats.

    Attributes:
        stream: the open target, of bytes for Parquet, else of text.
        form: the format, one of `mtmetrics.cli.output.FORMATS`.
        systems: names of the systems, in the order of their results.
        metrics: the metrics, as the user wrote them, in the order of their results.
        with_parts: whether segments show the parts of their scores.
        with_unusual: whether segments show what is unusual.
        full: whether numbers have all digits.
    """

    stream: IO
    form: str
    systems: Sequence[str]
    metrics: Sequence[str]
    with_parts: bool
    with_unusual: bool
    full: bool

    def add(self, results: "Results") -> None:
        """Writes a chunk: for each metric the result of each system."""

    def finish(self, summaries: Sequence[Summary]) -> None:
        """Writes the summaries, in the order of metrics and then of systems."""
        self.stream.write(summary_table(self.form, summaries, full=self.full) + "\n")

    def close(self) -> None:
        """Ends the file."""

    def _described(self, summary: Summary, name_key: str = "system") -> Document:
        """Returns a summary with the name of the system and, where there are several metrics, of
        the metric."""
        metric = {"metric": summary.metric} if len(self.metrics) > 1 else {}
        return {name_key: summary.system, **metric, **summary.as_dict()}


@dataclasses.dataclass
class _JsonWriter(Writer):
    """Writes one JSON document, which has to wait for the last chunk."""

    _chunks: "list[Results]" = dataclasses.field(default_factory=list, init=False)

    def add(self, results: "Results") -> None:
        self._chunks.append(results)

    def finish(self, summaries: Sequence[Summary]) -> None:
        documents = []
        for place, metric in enumerate(self.metrics):
            metric_summaries = [summary for summary in summaries if summary.metric == metric]
            documents.append({"metric": metric, **self._document(place, metric_summaries)})
        if len(documents) > 1:
            document = {"metrics": documents}
        else:
            document = documents[0]
            del document["metric"]
        json.dump(rounded(document, full=self.full), self.stream, ensure_ascii=False, indent=1)
        self.stream.write("\n")

    def _document(self, place: int, summaries: Sequence[Summary]) -> Document:
        """Describes the systems by one metric.

        Args:
            place: of the metric in `metrics`.
            summaries: of the systems by this metric.
        """
        from mtmetrics.scorers.results import join_systems

        results = join_systems([chunk[place] for chunk in self._chunks])
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
        # Refuses before the scoring what the format cannot hold, such as a tab in the name of a
        # system.
        self._columns(self.metrics)

    def _columns(self, numbers: Iterable[str]) -> Columns:
        return ScoreRow.columns(self.form, self.systems, numbers, unusual=self.with_unusual)

    def add(self, results: "Results") -> None:
        columns = self._columns_of_numbers(results)
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
        places = itertools.product(segments, self.systems)
        rows_of_numbers = zip(*columns.values(), strict=True)
        unusual = self._unusual(results)
        for (segment, system), numbers, names in zip(places, rows_of_numbers, unusual, strict=True):
            values = dict(zip(columns, numbers, strict=True))
            row = ScoreRow(system, segment, values, names).fields(self.form)
            yield row if self.form == "parquet" else rounded(row, full=self.full)

    def _columns_of_numbers(self, results: "Results") -> dict[str, list[float | None]]:
        """Returns the numbers of a chunk by column, in the order of its rows: of one metric score
        and parts, of several metrics those of each."""
        import numpy as np

        has_several_metrics = len(self.metrics) > 1
        columns = {}
        for metric, system_results in zip(self.metrics, results, strict=True):
            name = metric if has_several_metrics else "score"
            columns[name] = [result.segments for result in system_results]
            for part in system_results[0].parts if self.with_parts else ():
                name = f"{metric} {part}" if has_several_metrics else part
                columns[name] = [result.parts[part] for result in system_results]
        floats = {name: np.stack(arrays, axis=1).ravel() for name, arrays in columns.items()}
        return {
            name: np.where(np.isnan(array), None, array).tolist() for name, array in floats.items()
        }

    def _unusual(self, results: "Results") -> Iterable[str | None]:
        """Returns what is unusual in each row of a chunk; None for each row without
        `with_unusual`."""
        if not self.with_unusual:
            return itertools.repeat(None, len(results[0][0].segments) * len(self.systems))
        names_per_system = [_unusual_names(of_system) for of_system in zip(*results, strict=True)]
        return itertools.chain.from_iterable(zip(*names_per_system, strict=True))

    def finish(self, summaries: Sequence[Summary]) -> None:
        if self.form == "parquet" and self._rows is not None:
            documents = [self._described(summary, "name") for summary in summaries]
            self._rows.describe("mtmetrics", json.dumps(documents, ensure_ascii=False))
        elif self.form == "jsonl" and self._rows is not None:
            for summary in summaries:
                document = {"kind": "system", **self._described(summary)}
                self._rows.write([rounded(document, full=self.full)])
        elif self.stream is sys.stdout and not messages.quiet:
            for summary in summaries:
                print(self._message(summary), file=sys.stderr)

    def _message(self, summary: Summary) -> str:
        """Returns a summary as a line for the screen."""
        from mtmetrics.statistics.significance import NO_INTERVAL

        metric = f" {summary.metric}:" if len(self.metrics) > 1 else ""
        mean = rounded(summary.result.system, full=self.full)
        interval = ""
        if summary.with_interval and summary.interval is None:
            interval = f" ({NO_INTERVAL})"
        elif summary.with_interval:
            low, high = rounded(summary.interval[:2], full=self.full)
            interval = f" [{low!r}, {high!r}]"
        signature = summary.result.signature
        return f"{summary.system}:{metric} mean {mean!r}{interval} {signature}"

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()


def _unusual_names(results: "Sequence[MetricResult]") -> list[str]:
    """Returns what is unusual in each segment of a system, as names joined by +.

    Args:
        results: of the system, one by each metric.
    """
    names_per_segment = zip(*(result.unusual_names() for result in results), strict=True)
    unusual = []
    for texts in names_per_segment:
        names = [name for text in texts for name in text.split("+") if name]
        unusual.append("+".join(dict.fromkeys(names)))
    return unusual


@contextlib.contextmanager
def opened_writer(
    out: str | None,
    form: str,
    systems: Sequence[str],
    metrics: Sequence[str],
    *,
    with_parts: bool,
    with_unusual: bool,
    full: bool,
) -> Iterator[Writer]:
    """Opens a file, or standard output, and what writes to it; see `Writer`."""
    if form == "json":
        kind = _JsonWriter
    elif form in SUMMARY_FORMATS:
        kind = Writer
    else:
        kind = _RowsWriter
    with opened(out, binary=form == "parquet", table=form == "table") as stream:
        writer = kind(stream, form, systems, metrics, with_parts, with_unusual, full)
        with contextlib.closing(writer):
            yield writer
