"""What `score` prints: results while they arrive, in the formats of machines, and a table for people."""

import abc
import argparse
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.cli import options
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.scorers.base import MetricResult

FORMATS = ("table", "json", "jsonl", "tsv", "csv", "markdown", "parquet")
SUMMARIES = ("table", "markdown")
TABLE_FORMATS = ("table", "json", "markdown", "latex", "csv", "tsv")
_UNUSUAL = {"blank": "blank", "truncated": "cut", "identical": "untranslated"}


def rounded(value: Any, *, full: bool) -> Any:
    """The numbers in plain data with 6 significant digits, or all digits."""
    if isinstance(value, float) and not full:
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: rounded(inner, full=full) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner, full=full) for inner in value]
    return value


def pick_format(name: str | None, out: str | None = None) -> str:
    """The output format: as named, else by the end of the output file's name, else a table on a terminal and JSON where
    the output is piped.

    Raises:
        InputError: the file's name says nothing, or Parquet without a file.
    """
    usual = "table" if sys.stdout.isatty() else "json"
    suffix = Path(out).suffix.removeprefix(".") if out else usual
    suffix = {"md": "markdown"}.get(suffix, suffix)
    if name is None and suffix not in FORMATS:
        raise InputError(f"--out {out}: ends in none of {', '.join('.' + known for known in FORMATS)}; pass --format")
    if (name or suffix) == "parquet" and not out:
        raise InputError("--format parquet needs --out FILE")
    if name == "table" and out:
        raise InputError("--format table is for the screen; --out takes the other formats")
    return name or suffix


def print_text(text: str, args: argparse.Namespace) -> None:
    """Prints what `mtmetrics.evaluation` rendered; numbers of JSON as the user wants them."""
    if args.format == "json" and not args.full_precision:
        text = json.dumps(rounded(json.loads(text), full=False), indent=2, ensure_ascii=False)
    print(text)


class Lowest:
    """The segments with the lowest scores of each metric and system, with their texts."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._before = 0
        self._kept: dict[tuple[str, str], list[tuple[float, int, str, str]]] = {}

    def add(
        self,
        metrics: Iterable[str],
        names: Sequence[str],
        others: Sequence[list[Any]],
        systems: Sequence[list[str]],
        results: "list[list[MetricResult]]",
    ) -> None:
        """Takes a chunk: what each metric compared with, the translations of each system, and the results."""
        for metric, compared, of_metric in zip(metrics, others, results, strict=True):
            for name, texts, result in zip(names, systems, of_metric, strict=True):
                kept = self._kept.setdefault((metric, name), [])
                for place in result.segments.argsort(kind="stable")[: self._count].tolist():
                    other = compared[place] if isinstance(compared[place], str) else " / ".join(compared[place])
                    kept.append((float(result.segments[place]), self._before + place + 1, other, texts[place]))
                kept.sort()
                del kept[self._count :]
        self._before += len(systems[0])

    def tables(self, style: str, *, full: bool) -> str:
        """A table for each metric and system."""
        from mtmetrics.evaluation.table_styles import STYLES

        blocks = []
        for (metric, name), rows in self._kept.items():
            table = [["segment", "score", "compared with", "translation"]]
            table += [[str(number), _number(score, full), other, text] for score, number, other, text in rows]
            blocks.append(f"Lowest scores of {name} by {metric}:\n\n{STYLES[style](table, range(2))}")
        return "\n\n".join(blocks)


def summary(style: str, names: Sequence[str], summaries: Mapping[str, list[dict[str, Any]]], *, full: bool) -> str:
    """A row per system and metric, with the signatures below.

    Args:
        style: of tables.
        names: of the systems.
        summaries: metric -> for each system ``mean_score``, ``signature``, ``report`` and perhaps ``ci`` and ``parts``,
            the means of the parts.
        full: all digits.
    """
    from mtmetrics.evaluation.table_styles import STYLES, one_line

    every = [found for systems in summaries.values() for found in systems]
    unusual = [name for name in _UNUSUAL if any(found["report"][name] for found in every)]
    with_interval = "ci" in every[0]
    parts = list(dict.fromkeys(part for found in every for part in found.get("parts", ())))
    several = len(summaries) > 1
    head = [
        *(["metric"] if several else []),
        "system",
        "mean",
        *(["95 % interval"] if with_interval else []),
        *parts,
        "segments",
    ]
    table = [[*head, *(_UNUSUAL[name] for name in unusual)]]
    for metric, systems in summaries.items():
        for name, found in zip(names, systems, strict=True):
            row = [*([metric] if several else []), name, _number(found["mean_score"], full)]
            if with_interval:
                row.append(f"[{_number(found['ci']['low'], full)}, {_number(found['ci']['high'], full)}]")
            known = found.get("parts", {})
            row += [_number(known[part], full) if part in known else "" for part in parts]
            counts = (found["report"][count] for count in ("segments", *unusual))
            table.append([*row, *(f"{count:,}" for count in counts)])
    signatures = dict.fromkeys(found["signature"] for found in every)
    text = STYLES[style](table, range(1 + several, len(table[0])))
    return "\n\n".join([text, "\n".join(map(one_line, signatures))])


def _number(value: float, full: bool) -> str:
    # Adding 0.0 turns -0.0000 into 0.0000.
    return repr(value) if full else f"{round(value, 4) + 0.0:.4f}"


class Writer(abc.ABC):
    """Takes the results of chunk after chunk, then what sums up each system.

    The target is an open text stream, or the path of a Parquet file; numbers have all digits where `full` says so.
    """

    def __init__(self, names: Sequence[str], metrics: Sequence[str], target: Any, *, parts: bool, full: bool) -> None:
        self.names, self.metrics, self.target, self.parts, self.full = names, metrics, target, parts, full
        self.segment = 0

    @abc.abstractmethod
    def add(self, results: list[list["MetricResult"]]) -> None:
        """Writes a chunk: for each metric a result per system."""

    @abc.abstractmethod
    def finish(self, summaries: Mapping[str, list[dict[str, Any]]]) -> None:
        """Writes the summaries: metric -> for each system ``mean_score``, ``signature``, ``report`` and what else was
        asked for."""

    def _print_summary(self, summaries: Mapping[str, list[dict[str, Any]]]) -> None:
        """A line for each on standard error, where the format has no place for it."""
        for metric, systems in self._rounded(summaries).items():
            for name, found in zip(self.names, systems, strict=True):
                interval = found.get("ci")
                between = f" [{interval['low']!r}, {interval['high']!r}]" if interval else ""
                by = f" {metric}:" if len(self.metrics) > 1 else ""
                print(f"{name}:{by} mean {found['mean_score']!r}{between} {found['signature']}", file=sys.stderr)

    def _rounded(self, value: Any) -> Any:
        return rounded(value, full=self.full)

    def _named(self, metric: str, system: str) -> dict[str, str]:
        return {"system": system} | ({"metric": metric} if len(self.metrics) > 1 else {})

    def _columns(self, results: list[list["MetricResult"]]) -> dict[str, list[Any]]:
        """The rows of a chunk as columns: the systems of the first segment, of the second, and so on; of one metric its
        score and parts, of several those of each."""
        import numpy as np

        systems = len(self.names)
        count = len(results[0][0].segments)
        numbers = np.arange(self.segment + 1, self.segment + count + 1)
        self.segment += count
        values = {}
        for metric, of_metric in zip(self.metrics, results, strict=True):
            several = len(self.metrics) > 1
            values[metric if several else "score"] = [result.segments for result in of_metric]
            for part in of_metric[0].parts if self.parts else ():
                values[f"{metric} {part}" if several else part] = [result.parts[part] for result in of_metric]
        floats = {name: np.stack(columns, axis=1).ravel().tolist() for name, columns in values.items()}
        return {"system": list(self.names) * count, "segment": np.repeat(numbers, systems).tolist(), **floats}


class _SummaryWriter(Writer):
    """The summary alone, for people."""

    style = "table"

    def add(self, results: list[list["MetricResult"]]) -> None:
        pass

    def finish(self, summaries: Mapping[str, list[dict[str, Any]]]) -> None:
        self.target.write(summary(self.style, self.names, summaries, full=self.full) + "\n")


class _MarkdownWriter(_SummaryWriter):
    style = "markdown"


class _JsonWriter(Writer):
    """One JSON document, which has to wait for the last chunk."""

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self._chunks: list[list[list[MetricResult]]] = []

    def add(self, results: list[list["MetricResult"]]) -> None:
        self._chunks.append(results)

    def finish(self, summaries: Mapping[str, list[dict[str, Any]]]) -> None:
        documents = [
            {"metric": metric} | self._document(number, summaries[metric]) for number, metric in enumerate(self.metrics)
        ]
        if len(documents) == 1:
            del documents[0]["metric"]
        whole = documents[0] if len(documents) == 1 else {"metrics": documents}
        json.dump(self._rounded(whole), self.target, ensure_ascii=False, indent=1)
        self.target.write("\n")

    def _document(self, metric: int, summaries: list[dict[str, Any]]) -> dict[str, Any]:
        from mtmetrics.scorers.base import joined

        systems = zip(*(chunk[metric] for chunk in self._chunks), strict=True)
        whole = [
            joined(kept).as_dict(parts=self.parts) | summary for kept, summary in zip(systems, summaries, strict=True)
        ]
        if len(whole) == 1:
            return whole[0]
        return {"systems": [{"name": name} | document for name, document in zip(self.names, whole, strict=True)]}


class _JsonLinesWriter(Writer):
    """A JSON object per segment and system, then one per system and metric."""

    def add(self, results: list[list["MetricResult"]]) -> None:
        columns = self._columns(results)
        for row in zip(*columns.values(), strict=True):
            self._write(dict(zip(columns, row, strict=True)))

    def finish(self, summaries: Mapping[str, list[dict[str, Any]]]) -> None:
        for metric, systems in summaries.items():
            for name, found in zip(self.names, systems, strict=True):
                self._write(self._named(metric, name) | found)

    def _write(self, row: dict[str, Any]) -> None:
        self.target.write(json.dumps(self._rounded(row), ensure_ascii=False) + "\n")


class _TsvWriter(Writer):
    """Tab-separated rows under a header, without the summaries."""

    def add(self, results: list[list["MetricResult"]]) -> None:
        first = self.segment == 0
        columns = self._columns(results)
        rows = ([str(self._rounded(value)) for value in row] for row in zip(*columns.values(), strict=True))
        self._write(([[*columns]] if first else []), rows)

    def _write(self, head: list[list[str]], rows: Iterator[list[str]]) -> None:
        self.target.writelines("\t".join(row) + "\n" for row in (*head, *rows))

    def finish(self, summaries: Mapping[str, list[dict[str, Any]]]) -> None:
        if self.target is sys.stdout and not options.quiet:
            self._print_summary(summaries)


class _CsvWriter(_TsvWriter):
    """The same, comma-separated."""

    def _write(self, head: list[list[str]], rows: Iterator[list[str]]) -> None:
        import csv

        csv.writer(self.target, lineterminator="\n").writerows([*head, *rows])


class _ParquetWriter(Writer):
    """A Parquet file with all digits; the summaries are its metadata under the key ``mtmetrics``."""

    _writer: Any = None

    def add(self, results: list[list["MetricResult"]]) -> None:
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table(self._columns(results))
        self._writer = self._writer or pyarrow.parquet.ParquetWriter(self.target, table.schema)
        self._writer.write_table(table)

    def finish(self, summaries: Mapping[str, list[dict[str, Any]]]) -> None:
        several = len(self.metrics) > 1
        systems = [
            {"name": name} | ({"metric": metric} if several else {}) | found
            for metric, of_metric in summaries.items()
            for name, found in zip(self.names, of_metric, strict=True)
        ]
        self._writer.add_key_value_metadata({"mtmetrics": json.dumps(systems, ensure_ascii=False)})

    def close(self) -> None:
        """Ends the file."""
        if self._writer is not None:
            self._writer.close()


_WRITERS: dict[str, type[Writer]] = {
    "table": _SummaryWriter,
    "markdown": _MarkdownWriter,
    "json": _JsonWriter,
    "jsonl": _JsonLinesWriter,
    "tsv": _TsvWriter,
    "csv": _CsvWriter,
    "parquet": _ParquetWriter,
}


@contextlib.contextmanager
def open_writer(
    form: str, out: str | None, names: Sequence[str], metrics: Sequence[str], **kind: Any
) -> Iterator[Writer]:
    """A writer to a file, which appears only when everything went well, or to standard output.

    `kind` is passed on to the `Writer`; an `InputError` where the file's folder does not exist.
    """
    from mtmetrics.artifacts.files import atomic_path

    if out is None:
        yield _WRITERS[form](names, metrics, sys.stdout, **kind)
        return
    if not Path(out).parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {Path(out).parent}")
    with atomic_path(out) as temporary:
        if form == "parquet":
            with contextlib.closing(_ParquetWriter(names, metrics, temporary, **kind)) as writer:
                yield writer
        else:
            with open(temporary, "w", encoding="utf-8", newline="\n") as stream:
                yield _WRITERS[form](names, metrics, stream, **kind)
