"""Input of several commands: rows to score and systems to compare, in the languages that the user
says they are in."""

import argparse
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mtmetrics.cli.options import metric_options
from mtmetrics.errors import InputError
from mtmetrics.io.columns import column_names
from mtmetrics.io.languages import language_checked
from mtmetrics.io.lines import check_file, iter_parallel
from mtmetrics.io.tables import Texts, count_rows, is_json, open_table, open_texts
from mtmetrics.scorers.metric import Metric
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.side import FIELDS, Column, Side


class MetricRows(NamedTuple):
    """What is to be scored: rows of what each of `columns` holds, of references a list where there
    are several, then one prediction per system; how many rows (0: not known); and for each metric
    the side that it compares with."""

    names: list[str]
    columns: list[Column]
    rows: Iterator[list[Any]]
    count: int
    sides: list[Side]


# What n translations are compared with, sources, references or lists of several, or both; and those
# of each system.
Systems = tuple[dict[Column, list[Any]], dict[str, list[str]]]


class _Opened(NamedTuple):
    """Names of systems; the columns that are there, or None where a file of two does not say which
    the first is; what reads those that are wanted; and how many rows there are."""

    names: list[str]
    columns: list[Column] | None
    read: Callable[[Sequence[Column]], Iterator[list[Any]]]
    count: int | None


def input_rows(args: argparse.Namespace) -> tuple[list[str], Iterator[list[Any]], dict[str, Any]]:
    """As `metric_rows`, for one metric: the names of the systems, the rows, and its options."""
    asked = metric_options(args)
    names, _, rows, _, [side] = metric_rows(args, [asked])
    return names, rows, asked | {"against": side}


def metric_rows(args: argparse.Namespace, metrics: Sequence[dict[str, Any]]) -> MetricRows:
    """Opens what the options of `mtmetrics.cli.options.add_row_options` name, for metrics given by
    their loaders' keywords.

    The first row is read at once, so that a missing or empty file is reported before any model is
    loaded."""
    known = [find_metric(options["metric"]) for options in metrics]
    _require_files(args)
    opened = _opened(args)
    sides = [
        _side(metric, options, opened.columns)
        for metric, options in zip(known, metrics, strict=True)
    ]
    columns = [column for column in FIELDS if any(column in side.columns for side in sides)]
    if opened.columns is None and len(columns) > 1:
        three = "pass three columns: source, translation and reference"
        raise InputError(
            f"{args.file}: the first of two columns cannot be both source and reference; {three}"
        )
    return MetricRows(opened.names, columns, _read(args, opened, columns), opened.count or 0, sides)


def read_systems(args: argparse.Namespace) -> Systems:
    """Reads all that the same options name, for metrics that compare with different columns of it.

    One FILE is JSON Lines here, with the keys ``source``, ``reference`` or both, and ``outputs``,
    an object with the translation of each system."""
    _require_files(args)
    if args.file is not None:
        return _systems_of_file(args.file)
    opened = _opened(args)
    twice = [name for name in opened.names if opened.names.count(name) > 1]
    if twice:
        raise InputError(f"-t {twice[0]}: given twice")
    given = opened.columns or []
    columns = [list(column) for column in zip(*_read(args, opened, given), strict=True)]
    others, predictions = columns[: len(given)], columns[len(given) :]
    return dict(zip(given, others, strict=True)), dict(zip(opened.names, predictions, strict=True))


def _require_files(args: argparse.Namespace) -> None:
    if args.file is not None and (args.sources or args.predictions or args.references):
        raise InputError("pass either one FILE or -s and -t (or -r and -t), not both")
    if args.file is None and (not args.predictions or not (args.sources or args.references)):
        ways = (
            "-s SOURCES or -r REFERENCES and -t PREDICTIONS, or one FILE, or - for standard input"
        )
        raise InputError(f"nothing to score: pass {ways}")


def _read(
    args: argparse.Namespace, opened: _Opened, columns: Sequence[Column]
) -> Iterator[list[Any]]:
    rows = opened.read(columns)
    first = next(rows, None)
    if first is None:
        raise _empty(args.file or args.sources or args.references[0])
    names = [*columns, *["predictions"] * len(opened.names)]
    return language_checked(args.lp, names, itertools.chain([first], rows))


def _empty(path: str) -> InputError:
    return InputError(f"{path}: empty; there is nothing to score")


def _side(metric: Metric, options: dict[str, Any], columns: Sequence[Column] | None) -> Side:
    """What a metric compares with; of two columns without names it has to be told."""
    if columns is not None or metric.requested_side(options) or len(metric.sides) == 1:
        return metric.side_of_preset(options["preset"], options, columns)
    only = metric.choices.preset_side(metric.made_by().preset_settings(options["preset"], options))
    if only is None or only is Side.BOTH:
        ways = " or ".join(
            f"--against {side} ({side} TAB translation)" for side in metric.sides if side != "both"
        )
        named = "or name the columns in a header row"
        raise InputError(
            f"two columns can be read in two ways for {metric.name}: pass {ways}, {named}"
        )
    return only


def _opened(args: argparse.Namespace) -> _Opened:
    if args.file is not None:
        texts = open_texts(args.file)
        if texts is None:
            raise _empty(args.file)
        there = [column for column, key in FIELDS.items() if key in texts.columns]
        reader = functools.partial(_read_texts, texts)
        return _Opened([args.file], there if texts.is_decided else None, reader, texts.count)
    given = [column for column in FIELDS if getattr(args, column)]
    paths: dict[Column, list[str]] = {"sources": [args.sources], "references": args.references}

    def read(columns: Sequence[Column]) -> Iterator[list[Any]]:
        others = [paths[column] for column in columns]
        for line in iter_parallel([*itertools.chain(*others), *args.predictions]):
            texts = iter(line)
            compared = [list(itertools.islice(texts, len(files))) for files in others]
            yield [found[0] if len(found) == 1 else found for found in compared] + list(texts)

    # The names of the files without folder and suffix; the whole path where that is not enough to
    # tell them apart.
    stems = [Path(path).stem for path in args.predictions]
    names = [
        stem if stems.count(stem) == 1 else path
        for stem, path in zip(stems, args.predictions, strict=True)
    ]
    everything = [*itertools.chain(*(paths[column] for column in given)), *args.predictions]
    return _Opened(names, given, read, _common_count(everything))


def _read_texts(texts: Texts, columns: Sequence[Column]) -> Iterator[list[Any]]:
    return texts.read([*(FIELDS[column] for column in columns), "translation"])


def _common_count(paths: Sequence[str]) -> int | None:
    """The number of lines of parallel files, which must be the same wherever it can be known before
    they are read."""
    for path in paths:
        check_file(path, "segments")
    counts = {path: count for path in paths if (count := count_rows(path)) is not None}
    first = next(iter(counts), None)
    for path, count in counts.items():
        if count != counts[first]:
            unequal = f"{path} has {count} line(s), {first} has {counts[first]}"
            raise InputError(f"{unequal}; parallel files need equal lengths")
    return counts.get(first)


def _systems_of_file(path: str) -> Systems:
    table = open_table(path) if is_json(path) or not Path(path).exists() else None
    keys = [] if table is None else table.names
    names = column_names(path, keys)
    given = [column for column, key in FIELDS.items() if key in names]
    if table is None or "outputs" not in keys or not given:
        what = (
            "several systems in one FILE are JSON Lines with the key outputs, an object with "
            "the translation of each"
        )
        what += (
            " system, and source or reference; the first row has: "
            f"{', '.join(keys) or 'none of them'}"
        )
        raise InputError(f"{path}: {what}; parallel files are passed with -s or -r, and -t")
    others: dict[Column, list[Any]] = {column: [] for column in given}
    predictions: dict[str, list[str]] = {}
    for row in table.rows():
        outputs = row.outputs(predictions)
        for column in given:
            others[column].append(row.text(row.required(FIELDS[column])))
        for name in outputs.fields:
            predictions.setdefault(name, []).append(outputs.text(name))
    return others, predictions
