"""What several commands read, rows to score and systems to compare, and how they print it."""

import argparse
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mtmetrics.cli.language import language_checked
from mtmetrics.errors import InputError
from mtmetrics.scorers.registry import Column, Metric, find_metric
from mtmetrics.textio import (
    COLUMN_NAMES,
    column_names,
    count_rows,
    header_places,
    iter_parallel,
    iter_table,
    iter_tsv,
    table_keys,
)

_KEYS: dict[Column, str] = {"sources": "source", "references": "reference"}
_READINGS = {
    "sources": "--against source (source TAB translation)",
    "references": "--against reference (reference TAB translation)",
}


class Rows(NamedTuple):
    """What is to be scored: the names of the systems, and rows of a source, a reference, or a list of several
    references, then one prediction per system; `options` tell the metric's loader which of them the rows hold."""

    names: list[str]
    rows: Iterator[list[Any]]
    options: dict[str, Any]


class MetricRows(NamedTuple):
    """What is to be scored by several metrics: rows of what each of `columns` holds, then one prediction per system.

    `chosen` says for each metric which column it compares with, and the options that tell its loader.
    """

    names: list[str]
    columns: list[Column]
    rows: Iterator[list[Any]]
    chosen: list[tuple[Column, dict[str, Any]]]


class Systems(NamedTuple):
    """The n translations of each of several systems, and n sources, n references or lists of several, or both."""

    others: dict[Column, list[Any]]
    predictions: dict[str, list[str]]


class _Counted:
    """An iterator that knows how many rows to expect (`operator.length_hint`), 0 for not known."""

    def __init__(self, rows: Iterator[list[Any]], count: int | None) -> None:
        self._rows, self._count = rows, count or 0

    def __iter__(self) -> Iterator[list[Any]]:
        return self

    def __next__(self) -> list[Any]:
        return next(self._rows)

    def __length_hint__(self) -> int:
        return self._count


class _Opened(NamedTuple):
    """Names of systems; the columns that are there, or None where a file of two does not say which the first is; what
    reads those that are wanted; and how many rows there are."""

    names: list[str]
    columns: list[Column] | None
    read: Callable[[Sequence[Column]], Iterator[list[Any]]]
    count: int | None


def input_rows(args: argparse.Namespace) -> Rows:
    """Opens what the options of `mtmetrics.cli.options.add_row_options` name, for one metric.

    The first row is read at once, so that a missing or empty file is reported before any model is loaded.

    Raises:
        InputError: the arguments name no or contradicting files, or not what the metric compares with; a file is
            missing, empty, of another length, or its first row cannot be used.
    """
    from mtmetrics.cli.options import metric_options

    options = metric_options(args)
    names, _, rows, [(_, chosen)] = metric_rows(args, [options])
    return Rows(names, rows, chosen)


def metric_rows(args: argparse.Namespace, metrics: Sequence[dict[str, Any]]) -> MetricRows:
    """As `input_rows`, for metrics that are given by the keywords of their loaders."""
    known = [find_metric(options["metric"]) for options in metrics]
    opened = _opened(args)
    chosen = [_choice(metric, options, opened.columns) for metric, options in zip(known, metrics, strict=True)]
    columns = list(dict.fromkeys(column for column, _ in chosen))
    if opened.columns is None and len(columns) > 1:
        both = "some metrics compare with the source and others with a reference; name the columns in a header row"
        raise InputError(f"{args.file}: the first of two columns cannot be both: {both}")
    rows = _not_empty(opened.read(columns), args.file or (args.sources or args.references[0]))
    checked = language_checked(args.lp, [*columns, *["predictions"] * len(opened.names)], rows)
    counted: Any = _Counted(checked, opened.count)
    return MetricRows(opened.names, columns, counted, chosen)


def _choice(metric: Metric, options: dict[str, Any], columns: Sequence[Column] | None) -> tuple[Column, dict[str, Any]]:
    """The column that a metric compares with, and the option that says so to its loader."""
    from mtmetrics.artifacts.presets import load_preset

    asked = options.get(metric.option or "")
    if columns is not None:
        return metric.choose(columns, asked)
    if asked is None and len(metric.values) > 1:
        only = metric.only(load_preset(metric.name, options["preset"]).settings)
        if only is None:
            readings = " or ".join(_READINGS[column] for column in metric.values)
            named = "or name the columns in a header row"
            raise InputError(f"two columns can be read in two ways for {metric.name}: pass {readings}, {named}")
        return metric.choose([only])
    return metric.choose(list(metric.values), asked)


def _opened(args: argparse.Namespace) -> _Opened:
    _require_files(args)
    if args.file is not None:
        return _opened_file(args.file)
    given = [column for column in _KEYS if getattr(args, column)]
    paths: dict[Column, list[str]] = {"sources": [args.sources], "references": args.references}

    def read(columns: Sequence[Column]) -> Iterator[list[Any]]:
        others = [paths[column] for column in columns]
        for line in iter_parallel([*itertools.chain(*others), *args.predictions]):
            texts = iter(line)
            yield [_one_or_all(list(itertools.islice(texts, len(files)))) for files in others] + list(texts)

    everything = [*itertools.chain(*(paths[column] for column in given)), *args.predictions]
    return _Opened(_system_names(args.predictions), given, read, _common_count(everything))


def _one_or_all(texts: list[str]) -> Any:
    return texts[0] if len(texts) == 1 else texts


def _common_count(paths: Sequence[str]) -> int | None:
    """The number of lines of parallel files, which must be the same wherever it can be known before they are read."""
    counts = {path: count for path in paths if (count := count_rows(path)) is not None}
    if len(set(counts.values())) > 1:
        first, *others = counts
        other = next(path for path in others if counts[path] != counts[first])
        unequal = f"{other} has {counts[other]} line(s), {first} has {counts[first]}"
        raise InputError(f"{unequal}; parallel files need equal lengths")
    return next(iter(counts.values()), None)


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
    _common_count(paths)
    columns = [list(column) for column in zip(*_not_empty(iter_parallel(paths), paths[0]), strict=True)]
    others: dict[Column, list[Any]] = {"sources": columns.pop(0)} if sources else {}
    if references:
        several = [list(texts) for texts in zip(*columns[: len(references)], strict=True)]
        others["references"] = columns[0] if len(references) == 1 else several
    found = Systems(others, dict(zip(names, columns[len(references) :], strict=True)))
    texts = zip(*others.values(), *found.predictions.values(), strict=True)
    for _ in language_checked(args.lp, [*others, *["predictions"] * len(names)], texts):
        pass
    return found


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


def _opened_file(path: str) -> _Opened:
    keys = table_keys(path)
    return _opened_tsv(path) if keys is None else _opened_keys(path, keys)


def _opened_keys(path: str, keys: Sequence[str]) -> _Opened:
    """JSON Lines or Parquet."""
    found = column_names(path, keys)
    columns: list[Column] = [column for column, key in _KEYS.items() if key in found]
    if keys and ("translation" not in found or not columns):
        lacks = "translation" if columns else "source or reference"
        known = "; ".join(f"{column} ({', '.join(names)})" for column, names in COLUMN_NAMES.items())
        raise InputError(f"{path}: no {lacks}; the first row has {', '.join(keys)}; what is read is {known}")

    def read(wanted: Sequence[Column]) -> Iterator[list[Any]]:
        return iter_table(path, [*(found[_KEYS[column]] for column in wanted), found["translation"]])

    return _Opened([path], columns, read, count_rows(path)) if keys else _nothing(path)


def _opened_tsv(path: str) -> _Opened:
    lines = iter_tsv(path)
    first = next(lines, None)
    if first is None:
        return _nothing(path)
    wanted = "source TAB translation TAB reference, or source (or reference) TAB translation"
    places = header_places(path, first)
    headed = places is not None
    if places is None:
        if len(first) not in (2, 3):
            what = f"{len(first)} column(s), but {wanted} are needed, or a header row that names the columns"
            raise InputError(f"{path}, line 1: {what}")
        # Two columns hold what the metric compares with and the translation.
        places = {"source": 0, "translation": 1, "reference": 2 if len(first) == 3 else 0}
        lines = itertools.chain([first], lines)
    columns: list[Column] = [column for column, key in _KEYS.items() if key in places]

    def read(asked: Sequence[Column]) -> Iterator[list[Any]]:
        picked = [places[key] for key in (*(_KEYS[column] for column in asked), "translation")]
        for number, cells in enumerate(lines, 2 if headed else 1):
            if len(cells) != len(first):
                raise InputError(f"{path}, line {number}: {len(cells)} column(s), but line 1 has {len(first)}")
            yield [cells[place] for place in picked]

    count = count_rows(path)
    return _Opened([path], columns if headed or len(first) == 3 else None, read, count and count - headed)


def _nothing(path: str) -> _Opened:
    raise InputError(f"{path}: empty; there is nothing to score")


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
