"""Writes results while they arrive: JSON Lines, TSV and Parquet a chunk at a time, JSON at the end."""

import abc
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.scorers.base import MetricResult

FORMATS = ("json", "jsonl", "tsv", "parquet")


def pick_format(name: str | None, out: str | None) -> str:
    """The output format: as named, else by the end of the output file's name, else JSON.

    Raises:
        InputError: the file's name says nothing, or Parquet without a file.
    """
    suffix = Path(out).suffix.removeprefix(".") if out else "json"
    if name is None and suffix not in FORMATS:
        raise InputError(f"--out {out}: ends in none of {', '.join('.' + known for known in FORMATS)}; pass --format")
    if (name or suffix) == "parquet" and not out:
        raise InputError("--format parquet needs --out FILE")
    return name or suffix


def print_warnings(lines: Iterable[str]) -> None:
    """Prints what is unusual to standard error, a line each."""
    for line in lines:
        print(f"mtmetrics: warning: {line}", file=sys.stderr)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Prints rows of equal length in aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


class Writer(abc.ABC):
    """Takes the results of chunk after chunk, one result per system, then what sums up each system.

    Args:
        names: the systems.
        parts: also write the parts of the scores.
    """

    def __init__(self, names: Sequence[str], *, parts: bool) -> None:
        self.names = names
        self.parts = parts
        self.segment = 0

    @abc.abstractmethod
    def add(self, results: list["MetricResult"]) -> None:
        """Writes a chunk."""

    def finish(self, summaries: list[dict[str, Any]]) -> None:
        """Writes the summaries: ``mean_score``, ``signature``, ``report`` and what else was asked for."""
        for name, summary in zip(self.names, summaries, strict=True):
            interval = summary.get("ci")
            between = f" [{interval['low']!r}, {interval['high']!r}]" if interval else ""
            print(f"{name}: mean {summary['mean_score']!r}{between} {summary['signature']}", file=sys.stderr)

    def _columns(self, results: list["MetricResult"]) -> dict[str, list[Any]]:
        """The rows of a chunk as columns: the systems of the first segment, of the second, and so on."""
        import numpy as np

        count, systems = len(results[0].segments), len(results)
        numbers = np.arange(self.segment + 1, self.segment + count + 1)
        self.segment += count
        values = {"score": [result.segments for result in results]}
        if self.parts:
            values |= {part: [result.parts[part] for result in results] for part in results[0].parts}
        floats = {name: np.stack(columns, axis=1).ravel().tolist() for name, columns in values.items()}
        return {"system": list(self.names) * count, "segment": np.repeat(numbers, systems).tolist(), **floats}


class JsonWriter(Writer):
    """One JSON document, which has to wait for the last chunk."""

    def __init__(self, names: Sequence[str], *, parts: bool, stream: TextIO) -> None:
        super().__init__(names, parts=parts)
        self._stream = stream
        self._results: list[list[MetricResult]] = [[] for _ in names]

    def add(self, results: list["MetricResult"]) -> None:
        for kept, result in zip(self._results, results, strict=True):
            kept.append(result)

    def finish(self, summaries: list[dict[str, Any]]) -> None:
        from mtmetrics.scorers.base import joined

        documents = [
            joined(kept).as_dict(parts=self.parts) | summary
            for kept, summary in zip(self._results, summaries, strict=True)
        ]
        whole = {"systems": [{"name": name} | document for name, document in zip(self.names, documents, strict=True)]}
        json.dump(documents[0] if len(documents) == 1 else whole, self._stream, ensure_ascii=False, indent=1)
        self._stream.write("\n")


class JsonLinesWriter(Writer):
    """A JSON object per segment and system, then one per system."""

    def __init__(self, names: Sequence[str], *, parts: bool, stream: TextIO) -> None:
        super().__init__(names, parts=parts)
        self._stream = stream

    def add(self, results: list["MetricResult"]) -> None:
        columns = self._columns(results)
        for row in zip(*columns.values(), strict=True):
            self._stream.write(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n")

    def finish(self, summaries: list[dict[str, Any]]) -> None:
        for name, summary in zip(self.names, summaries, strict=True):
            self._stream.write(json.dumps({"system": name} | summary, ensure_ascii=False) + "\n")


class TsvWriter(Writer):
    """Tab-separated rows under a header; the summaries go to standard error."""

    def __init__(self, names: Sequence[str], *, parts: bool, stream: TextIO) -> None:
        super().__init__(names, parts=parts)
        self._stream = stream

    def add(self, results: list["MetricResult"]) -> None:
        first = self.segment == 0
        columns = self._columns(results)
        if first:
            self._stream.write("\t".join(columns) + "\n")
        for system, segment, *values in zip(*columns.values(), strict=True):
            self._stream.write("\t".join([system, str(segment), *map(repr, values)]) + "\n")


class ParquetWriter(Writer):
    """A Parquet file; the summaries are its metadata under the key ``mtmetrics``, and go to standard error."""

    def __init__(self, names: Sequence[str], *, parts: bool, path: Path) -> None:
        super().__init__(names, parts=parts)
        self._path = path
        self._writer: Any = None

    def add(self, results: list["MetricResult"]) -> None:
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table(self._columns(results))
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)

    def finish(self, summaries: list[dict[str, Any]]) -> None:
        systems = [{"name": name} | summary for name, summary in zip(self.names, summaries, strict=True)]
        self._writer.add_key_value_metadata({"mtmetrics": json.dumps(systems, ensure_ascii=False)})
        super().finish(summaries)

    def close(self) -> None:
        """Ends the file."""
        if self._writer is not None:
            self._writer.close()


@contextlib.contextmanager
def open_writer(form: str, out: str | None, names: Sequence[str], *, parts: bool) -> Iterator[Writer]:
    """A writer to a file, which appears only when everything went well, or to standard output.

    Raises:
        InputError: the file's folder does not exist.
        MTMetricsError: the file cannot be written.
    """
    from mtmetrics.artifacts.files import atomic_path

    kinds = {"json": JsonWriter, "jsonl": JsonLinesWriter, "tsv": TsvWriter}
    if out is None:
        yield kinds[form](names, parts=parts, stream=sys.stdout)
        return
    if not Path(out).parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {Path(out).parent}")
    with atomic_path(out) as temporary:
        if form == "parquet":
            with contextlib.closing(ParquetWriter(names, parts=parts, path=temporary)) as writer:
                yield writer
        else:
            with open(temporary, "w", encoding="utf-8", newline="\n") as stream:
                yield kinds[form](names, parts=parts, stream=stream)
