"""What several commands read and write: rows to score, systems to compare, results while they arrive."""

import abc
import argparse
import contextlib
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mtmetrics.errors import InputError
from mtmetrics.scorers.registry import METRICS, Column
from mtmetrics.textio import iter_parallel, iter_table, iter_tsv, table_keys

if TYPE_CHECKING:
    from mtmetrics.scorers.base import MetricResult

FORMATS = ("json", "jsonl", "tsv", "parquet")
_KEYS: dict[Column, str] = {"sources": "source", "references": "reference"}


class Rows(NamedTuple):
    """What is to be scored: the names of the systems, and rows of a source, a reference, or a list of several
    references, then one prediction per system; `options` tell the metric's loader which of them the rows hold."""

    names: list[str]
    rows: Iterator[list[Any]]
    options: dict[str, Any]


class Systems(NamedTuple):
    """The n translations of each of several systems, and n sources, n references or lists of several, or both."""

    others: dict[Column, list[Any]]
    predictions: dict[str, list[str]]


def input_rows(args: argparse.Namespace) -> Rows:
    """Opens what the options of `mtmetrics.cli.options.add_row_options` name, for one metric.

    The first row is read at once, so that a missing or empty file is reported before any model is loaded.

    Raises:
        InputError: the arguments name no or contradicting files, or not what the metric compares with; a file is
            missing, empty, or its first row cannot be used.
    """
    comparison = METRICS.get(args.metric)
    if comparison is None:
        raise InputError(f"metric {args.metric!r}: must be one of {', '.join(METRICS)}")
    asked = getattr(args, comparison.option) if comparison.option else None
    _require_files(args)
    if args.file is not None:
        column, options, rows = _file_rows(args.file, args.metric, asked)
        return Rows([args.file], _not_empty(rows, args.file), options)
    given = [column for column in _KEYS if getattr(args, column)]
    column, options = comparison.choose(given, asked)
    others = [args.sources] if column == "sources" else args.references
    lines = iter_parallel([*others, *args.predictions])
    several = len(others)
    rows = lines if several == 1 else ([line[:several], *line[several:]] for line in lines)
    return Rows(_system_names(args.predictions), _not_empty(rows, others[0]), options)


def read_systems(args: argparse.Namespace) -> Systems:
    """Reads all that the same options name, for metrics that compare with different columns of it.

    One FILE is JSON Lines here, with the keys ``source``, ``reference`` or both, and ``outputs``, an object with the
    translation of each system.

    Raises:
        InputError: the arguments name no or contradicting files; a file is missing, empty, damaged, or of another
            length; a system is named twice.
    """
    _require_files(args)
    if args.file is not None:
        return _systems_of_file(args.file)
    sources, references = [args.sources] if args.sources else [], args.references or []
    names = _system_names(args.predictions)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"-t {twice[0]}: given twice")
    paths = [*sources, *references, *args.predictions]
    columns = [list(column) for column in zip(*_not_empty(iter_parallel(paths), paths[0]), strict=True)]
    others: dict[Column, list[Any]] = {"sources": columns.pop(0)} if sources else {}
    if references:
        several = [list(texts) for texts in zip(*columns[: len(references)], strict=True)]
        others["references"] = columns[0] if len(references) == 1 else several
    return Systems(others, dict(zip(names, columns[len(references) :], strict=True)))


def _require_files(args: argparse.Namespace) -> None:
    if args.file is not None and (args.sources or args.predictions or args.references):
        raise InputError("pass either one FILE or -s and -t (or -r and -t), not both")
    if args.file is None and (not args.predictions or not (args.sources or args.references)):
        ways = "-s SOURCES or -r REFERENCES and -t PREDICTIONS, or one FILE, or - for standard input"
        raise InputError(f"nothing to score: pass {ways}")


def _system_names(paths: Sequence[str]) -> list[str]:
    """The names of the files without folder and suffix; the whole path where that is not enough to tell them apart."""
    stems = [Path(path).stem for path in paths]
    return [stem if stems.count(stem) == 1 else path for stem, path in zip(stems, paths, strict=True)]


def _not_empty(rows: Iterator[list[Any]], name: str) -> Iterator[list[Any]]:
    first = next(rows, None)
    if first is None:
        raise InputError(f"{name}: empty; there is nothing to score")
    return itertools.chain([first], rows)


def _file_rows(path: str, metric: str, asked: Any) -> tuple[Column, dict[str, Any], Iterator[list[str]]]:
    comparison = METRICS[metric]
    keys = table_keys(path)
    if keys is not None:
        column, options = comparison.choose([column for column, key in _KEYS.items() if key in keys], asked)
        return column, options, iter_table(path, (_KEYS[column], "translation"))
    lines = iter_tsv(path)
    first = next(lines, None)
    whole = first is not None and len(first) > 2
    # Two columns hold what the metric compares with and the prediction; three hold source, prediction and reference.
    usual = [comparison.usual or next(iter(comparison.values))]
    column, options = comparison.choose(list(_KEYS) if whole or asked is not None else usual, asked)
    places = (2, 1) if whole and column == "references" else (0, 1)
    rows = lines if first is None else itertools.chain([first], lines)
    return column, options, _picked(rows, places, path)


def _picked(rows: Iterator[list[str]], places: Sequence[int], path: str) -> Iterator[list[str]]:
    wanted = "source TAB prediction TAB reference" if max(places) == 2 else "source (or reference) TAB prediction"
    for number, columns in enumerate(rows, 1):
        if len(columns) <= max(places):
            raise InputError(f"{path}, line {number}: {len(columns)} column(s), but {wanted} are needed")
        yield [columns[place] for place in places]


def _systems_of_file(path: str) -> Systems:
    keys = table_keys(path) or []
    given = [column for column, key in _KEYS.items() if key in keys]
    if "outputs" not in keys or not given:
        what = "several systems in one FILE are JSON Lines with the key outputs, an object with the translation of each"
        what += f" system, and source or reference; the first row has: {', '.join(keys) or 'none of them'}"
        raise InputError(f"{path}: {what}; parallel files are passed with -s or -r, and -t")
    from mtmetrics.evaluation.readers import jsonl_rows

    others: dict[Column, list[Any]] = {column: [] for column in given}
    predictions: dict[str, list[str]] = {}
    for row in jsonl_rows(path):
        outputs = row.outputs(predictions)
        for column in given:
            others[column].append(row.text(row.required(_KEYS[column])))
        for name in outputs.fields:
            predictions.setdefault(name, []).append(outputs.text(name))
    return Systems(others, predictions)


def print_warnings(lines: Iterable[str]) -> None:
    """Prints what is unusual to standard error, a line each."""
    for line in lines:
        print(f"mtmetrics: warning: {line}", file=sys.stderr)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Prints rows of equal length in aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


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


class Writer(abc.ABC):
    """Takes the results of chunk after chunk, one result per system, then what sums up each system.

    The target is an open text stream, or the path of a Parquet file.
    """

    def __init__(self, names: Sequence[str], parts: bool, target: Any) -> None:
        self.names, self.parts, self.target = names, parts, target
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


class _JsonWriter(Writer):
    """One JSON document, which has to wait for the last chunk."""

    def __init__(self, names: Sequence[str], parts: bool, target: Any) -> None:
        super().__init__(names, parts, target)
        self._chunks: list[list[MetricResult]] = []

    def add(self, results: list["MetricResult"]) -> None:
        self._chunks.append(results)

    def finish(self, summaries: list[dict[str, Any]]) -> None:
        from mtmetrics.scorers.base import joined

        scored = zip(zip(*self._chunks, strict=True), summaries, strict=True)
        documents = [joined(kept).as_dict(parts=self.parts) | summary for kept, summary in scored]
        whole = {"systems": [{"name": name} | document for name, document in zip(self.names, documents, strict=True)]}
        json.dump(documents[0] if len(documents) == 1 else whole, self.target, ensure_ascii=False, indent=1)
        self.target.write("\n")


class _JsonLinesWriter(Writer):
    """A JSON object per segment and system, then one per system."""

    def add(self, results: list["MetricResult"]) -> None:
        columns = self._columns(results)
        for row in zip(*columns.values(), strict=True):
            self.target.write(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n")

    def finish(self, summaries: list[dict[str, Any]]) -> None:
        for name, summary in zip(self.names, summaries, strict=True):
            self.target.write(json.dumps({"system": name} | summary, ensure_ascii=False) + "\n")


class _TsvWriter(Writer):
    """Tab-separated rows under a header; the summaries go to standard error."""

    def add(self, results: list["MetricResult"]) -> None:
        first = self.segment == 0
        columns = self._columns(results)
        if first:
            self.target.write("\t".join(columns) + "\n")
        for system, segment, *values in zip(*columns.values(), strict=True):
            self.target.write("\t".join([system, str(segment), *map(repr, values)]) + "\n")


class _ParquetWriter(Writer):
    """A Parquet file; the summaries are its metadata under the key ``mtmetrics``, and go to standard error."""

    _writer: Any = None

    def add(self, results: list["MetricResult"]) -> None:
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table(self._columns(results))
        self._writer = self._writer or pyarrow.parquet.ParquetWriter(self.target, table.schema)
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
    """A writer to a file, which appears only when everything went well, or to standard output; `InputError` where the
    file's folder does not exist."""
    from mtmetrics.artifacts.files import atomic_path

    kinds = {"json": _JsonWriter, "jsonl": _JsonLinesWriter, "tsv": _TsvWriter}
    if out is None:
        yield kinds[form](names, parts, sys.stdout)
        return
    if not Path(out).parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {Path(out).parent}")
    with atomic_path(out) as temporary:
        if form == "parquet":
            with contextlib.closing(_ParquetWriter(names, parts, temporary)) as writer:
                yield writer
        else:
            with open(temporary, "w", encoding="utf-8", newline="\n") as stream:
                yield kinds[form](names, parts, stream)
