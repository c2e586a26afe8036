"""The input of ``score``, ``explain`` and ``compare``: parallel files, or one file of rows.

`open_rows` yields rows one by one, with the columns that the metrics compare with. `read_systems`
reads everything at once, with all columns. `sample_rows` samples rows for other commands.

A column ("sources", "references") holds the texts of all segments; `FIELD_OF_COLUMN` has the name of the field
("source", "reference") that holds the text of one segment in a file of rows. The side of a metric is
what it compares with: source, reference or both."""

import argparse
import dataclasses
import functools
import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mtmetrics.checks import warn
from mtmetrics.errors import InputError
from mtmetrics.io.columns import COLUMN_NAMES, column_names
from mtmetrics.io.languages import with_language_warning
from mtmetrics.io.lines import check_file, iter_parallel
from mtmetrics.io.tables import Table, column_of_text_field, is_json, max_row_count, open_table
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.side import FIELD_OF_COLUMN, Column, Side

if TYPE_CHECKING:
    from mtmetrics.scorers.spec import MetricSpec

T = TypeVar("T")
# The texts of a segment: one per column (a list if there are several references), then one
# translation per system.
TextRow = list[str | list[str]]
# For n segments: column -> n sources or references (lists where segments have several references),
# and name of a system -> its n translations.
SystemOutputs = tuple[dict[Column, list[str | list[str]]], dict[str, list[str]]]


@dataclasses.dataclass(frozen=True)
class InputRows:
    """Rows to score.

    Attributes:
        systems: names of the systems.
        columns: the columns that the metrics compare with.
        rows: one row of texts per segment.
        count: upper bound of the number of rows; 0 if unknown.
        sides: for each metric the side that it compares with.
    """

    systems: list[str]
    columns: list[Column]
    rows: Iterator[TextRow]
    count: int
    sides: list[Side]


@dataclasses.dataclass(frozen=True)
class _OpenedInput:
    """An opened input, of which only the header is read.

    Attributes:
        systems: names of the systems.
        columns: its columns of sources and references; None for a file of two unnamed columns,
            the first of which may be either.
        read_rows: function that yields the rows with the given columns.
        count: upper bound of the number of rows; None if unknown.
    """

    systems: list[str]
    columns: list[Column] | None
    read_rows: Callable[[Sequence[Column]], Iterator[TextRow]]
    count: int | None


def open_rows(args: argparse.Namespace, specs: "Sequence[MetricSpec]") -> InputRows:
    """Opens the input that the options of `mtmetrics.cli.options.add_row_options` name.

    Reads the first row at once, so that a missing or empty file is reported before any model is
    loaded.

    Args:
        args: parsed arguments.
        specs: the metrics.

    Raises:
        InputError: the input is missing or empty, or lacks what a metric compares with.
    """
    _require_files(args)
    opened = _open(args)
    sides = [_choose_side(spec, opened.columns) for spec in specs]
    columns = [
        column for column in FIELD_OF_COLUMN if any(column in side.columns for side in sides)
    ]
    if opened.columns is None and len(columns) > 1:
        raise InputError(
            f"{args.file}: the first of two columns cannot be both source and reference; pass "
            "three columns: source, translation and reference"
        )
    rows = _checked_rows(args, opened, columns)
    return InputRows(opened.systems, columns, rows, opened.count or 0, sides)


def read_systems(args: argparse.Namespace) -> SystemOutputs:
    """Reads the whole input that the options of `mtmetrics.cli.options.add_row_options` name.

    FILE must be JSON Lines with the keys ``source``, ``reference`` or both, and ``outputs``, an
    object with the translation of each system."""
    _require_files(args)
    if args.file is not None:
        return _read_systems_of_file(args.file)
    opened = _open(args)
    for system in opened.systems:
        if opened.systems.count(system) > 1:
            raise InputError(f"-t {system}: given twice")
    columns = opened.columns or []
    rows = _checked_rows(args, opened, columns)
    texts = [list(column_or_system) for column_or_system in zip(*rows, strict=True)]
    text_of_column = dict(zip(columns, texts[: len(columns)], strict=True))
    return text_of_column, dict(zip(opened.systems, texts[len(columns) :], strict=True))


def sample_rows(rows: list[T], sample_size: int, seed: int) -> list[T]:
    """Samples rows for the option --sentences, in random order. Returns all rows, in their order,
    if there are not more than `sample_size`."""
    if sample_size > len(rows):
        warn(
            f"--sentences {sample_size}: the text has only {len(rows)} sentence pairs; all of them "
            "are taken"
        )
    if sample_size >= len(rows):
        return rows
    return random.Random(seed).sample(rows, sample_size)


def _require_files(args: argparse.Namespace) -> None:
    """Raises InputError for options that name too few files, or files of two kinds."""
    if args.file is not None and (args.sources or args.predictions or args.references):
        raise InputError("pass either one FILE or -s and -t (or -r and -t), not both")
    if args.file is None and (not args.predictions or not (args.sources or args.references)):
        raise InputError(
            "nothing to score: pass -s SOURCES or -r REFERENCES and -t PREDICTIONS, or one FILE, "
            "or - for standard input"
        )


def _checked_rows(
    args: argparse.Namespace, opened: _OpenedInput, columns: Sequence[Column]
) -> Iterator[TextRow]:
    """Returns the rows, after a warning if texts seem to be in another language than --lp says.

    Raises:
        InputError: there are no rows; raised at once.
    """
    rows = opened.read_rows(columns)
    first_row = next(rows, None)
    if first_row is None:
        raise _empty_error(args.file or args.sources or args.references[0])
    columns_of_row = [*columns, *["predictions"] * len(opened.systems)]
    return with_language_warning(args.lp, columns_of_row, itertools.chain([first_row], rows))


def _empty_error(path: str) -> InputError:
    return InputError(f"{path}: empty; there is nothing to score")


def _choose_side(spec: "MetricSpec", available_columns: Sequence[Column] | None) -> Side:
    """Returns the side that a metric compares with.

    If the columns have no names (`available_columns` is None), the options, a single possible side
    or the preset decide."""
    metric, metric_options = find_metric(spec.metric), dict(spec.options)
    is_requested = bool(metric.requested_side(metric_options))
    if available_columns is not None or is_requested or len(metric.sides) == 1:
        return metric.resolve_side(spec.preset, metric_options, available_columns)
    chosen_side = metric.explicit_side(spec.preset, metric_options)
    if chosen_side is None or chosen_side is Side.BOTH:
        single_sides = [side for side in metric.sides if side is not Side.BOTH]
        ways = " or ".join(f"--against {side} ({side} TAB translation)" for side in single_sides)
        raise InputError(
            f"two columns can be read in two ways for {metric.name}: pass {ways}, or name the "
            "columns in a header row"
        )
    return chosen_side


def _open(args: argparse.Namespace) -> _OpenedInput:
    if args.file is not None:
        return _open_file(args.file)
    paths: dict[Column, list[str]] = {}
    if args.sources:
        paths["sources"] = [args.sources]
    if args.references:
        paths["references"] = args.references
    systems = _system_names(args.predictions)
    all_paths = [*itertools.chain.from_iterable(paths.values()), *args.predictions]
    read_rows = functools.partial(_read_parallel, paths, args.predictions)
    return _OpenedInput(systems, list(paths), read_rows, _common_count(all_paths))


def _open_file(path: str) -> _OpenedInput:
    """Opens a file of rows with the translations of one system."""
    table = open_table(path, list(COLUMN_NAMES))
    if table is None:
        raise _empty_error(path)
    column_of_field = column_of_text_field(table)
    columns = None
    is_unambiguous = len(set(column_of_field.values())) == len(column_of_field)
    if is_unambiguous:
        columns = [column for column, field in FIELD_OF_COLUMN.items() if field in column_of_field]
    read_rows = functools.partial(_read_texts, table, column_of_field)
    return _OpenedInput([path], columns, read_rows, max_row_count(path))


def _read_texts(
    table: Table, column_of_field: Mapping[str, str], columns: Sequence[Column]
) -> Iterator[TextRow]:
    fields = [*(FIELD_OF_COLUMN[column] for column in columns), "translation"]
    return table.texts([column_of_field[field] for field in fields])


def _read_parallel(
    paths: Mapping[Column, list[str]], translation_paths: Sequence[str], columns: Sequence[Column]
) -> Iterator[TextRow]:
    """Yields the rows of parallel files. A column of several files has lists of texts."""
    paths_to_read = [path for column in columns for path in paths[column]]
    for lines in iter_parallel([*paths_to_read, *translation_paths]):
        remaining_lines = iter(lines)
        row: TextRow = []
        for column in columns:
            texts = list(itertools.islice(remaining_lines, len(paths[column])))
            row.append(texts[0] if len(texts) == 1 else texts)
        row.extend(remaining_lines)
        yield row


def _system_names(paths: Sequence[str]) -> list[str]:
    """Returns the names of files without folder and suffix, or their full paths if two of these names
    are equal."""
    stems = [Path(path).stem for path in paths]
    return [
        stem if stems.count(stem) == 1 else path for stem, path in zip(stems, paths, strict=True)
    ]


def _common_count(paths: Sequence[str]) -> int | None:
    """Checks parallel files, and returns their number of lines; None if it is unknown before they are
    read.

    Raises:
        InputError: a file cannot be read, or two have different numbers of lines.
    """
    for path in paths:
        check_file(path, "segments")
    counts = {path: count for path in paths if (count := max_row_count(path)) is not None}
    if not counts:
        return None
    first_path, first_count = next(iter(counts.items()))
    for path, count in counts.items():
        if count != first_count:
            raise InputError(
                f"{path} has {count} line(s), {first_path} has {first_count}; parallel files need "
                "equal lengths"
            )
    return first_count


def _read_systems_of_file(path: str) -> SystemOutputs:
    # `open_table` reports a missing file. Other files than JSON Lines are not read.
    table = open_table(path) if is_json(path) or not Path(path).exists() else None
    keys = [] if table is None else table.names
    fields = column_names(path, keys)
    columns = [column for column, field in FIELD_OF_COLUMN.items() if field in fields]
    if table is None or "outputs" not in keys or not columns:
        raise InputError(
            f"{path}: several systems in one FILE are JSON Lines with the key outputs, an object "
            "with the translation of each system, and source or reference; the first row has: "
            f"{', '.join(keys) or 'none of them'}; parallel files are passed with -s or -r, and -t"
        )
    texts: dict[Column, list[str | list[str]]] = {column: [] for column in columns}
    translations: dict[str, list[str]] = {}
    for row in table.rows():
        outputs = row.outputs(translations)  # checks that the systems are those of the rows before
        for column in columns:
            texts[column].append(row.text(row.required_column(FIELD_OF_COLUMN[column])))
        for system in outputs.values:
            translations.setdefault(system, []).append(outputs.text(system))
    return texts, translations
