"""What several commands score: parallel files, or one file of rows."""

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mtmetrics.errors import InputError
from mtmetrics.scorers.registry import METRICS, Column
from mtmetrics.textio import iter_parallel, iter_table, iter_tsv, table_keys

KEYS: dict[Column, str] = {"sources": "source", "references": "reference"}


class Rows(NamedTuple):
    """What is to be scored.

    Attributes:
        names: the systems.
        rows: a source, a reference, or a list of several references, then one prediction per system.
        options: what tells the metric's loader which of them the rows hold.
    """

    names: list[str]
    rows: Iterator[list[Any]]
    options: dict[str, Any]


_ONE_FILE = "TSV without a header, .jsonl or .parquet; - reads TSV from standard input"


def add_row_options(parser: argparse.ArgumentParser, *, one_file: str = _ONE_FILE) -> None:
    """Adds the files to read and the language pair.

    Args:
        parser: of the command.
        one_file: what a single FILE holds.
    """
    parser.add_argument("file", nargs="?", metavar="FILE", help=one_file)
    parser.add_argument("-s", "--sources", metavar="FILE", help="one source segment per line")
    parser.add_argument(
        "-t",
        "--predictions",
        metavar="FILE",
        nargs="+",
        help="one translation per line; several files are several systems",
    )
    parser.add_argument(
        "-r",
        "--references",
        metavar="FILE",
        nargs="+",
        help="one reference per line; of several files the best one counts",
    )
    parser.add_argument("--lp", metavar="XX-YY", help="language pair, such as de-en")


def read_rows(args: argparse.Namespace) -> Rows:
    """Opens what the arguments name.

    The first row is read at once, so that a missing or empty file is reported before any model is loaded.

    Raises:
        InputError: the arguments name no or contradicting files, or not what the metric compares with; a file is
            missing, empty, or its first row cannot be used.
    """
    comparison = METRICS.get(args.metric)
    if comparison is None:
        raise InputError(f"metric {args.metric!r}: must be one of {', '.join(METRICS)}")
    asked = getattr(args, comparison.option) if comparison.option else None
    require_files(args)
    if args.file is not None:
        column, options, rows = _file_rows(args.file, args.metric, asked)
        return Rows([args.file], not_empty(rows, args.file), options)
    given = [column for column in KEYS if getattr(args, column)]
    column, options = comparison.choose(given, asked)
    others = [args.sources] if column == "sources" else args.references
    lines = iter_parallel([*others, *args.predictions])
    several = len(others)
    rows = lines if several == 1 else ([line[:several], *line[several:]] for line in lines)
    return Rows(system_names(args.predictions), not_empty(rows, others[0]), options)


def require_files(args: argparse.Namespace) -> None:
    """Refuses arguments that name no files, or contradicting ones.

    Raises:
        InputError: they do.
    """
    if args.file is not None and (args.sources or args.predictions or args.references):
        raise InputError("pass either one FILE or -s and -t (or -r and -t), not both")
    if args.file is None and (not args.predictions or not (args.sources or args.references)):
        raise InputError(
            "nothing to score: pass -s SOURCES or -r REFERENCES and -t PREDICTIONS, or one FILE, or - for standard input"
        )


def system_names(paths: Sequence[str]) -> list[str]:
    """The names of the files without folder and suffix; the whole path where that is not enough to tell them apart."""
    stems = [Path(path).stem for path in paths]
    return [stem if stems.count(stem) == 1 else path for stem, path in zip(stems, paths, strict=True)]


def _file_rows(path: str, metric: str, asked: Any) -> tuple[Column, dict[str, Any], Iterator[list[str]]]:
    comparison = METRICS[metric]
    keys = table_keys(path)
    if keys is not None:
        given = [column for column, key in KEYS.items() if key in keys]
        column, options = comparison.choose(given, asked)
        return column, options, iter_table(path, (KEYS[column], "translation"))
    lines = iter_tsv(path)
    first = next(lines, None)
    whole = len(first) > 2 if first is not None else False
    # Two columns hold what the metric compares with and the prediction; three hold source, prediction and reference.
    given = list(KEYS) if whole else [_column_of_two(metric, asked)]
    column, options = comparison.choose(given, asked)
    places = (2, 1) if whole and column == "references" else (0, 1)
    rows = lines if first is None else itertools.chain([first], lines)
    return column, options, _picked(rows, places, path)


def _column_of_two(metric: str, asked: Any) -> Column:
    comparison = METRICS[metric]
    if asked is not None:
        return comparison.choose(list(KEYS), asked)[0]
    return comparison.usual or next(iter(comparison.values))


def _picked(rows: Iterator[list[str]], places: Sequence[int], path: str) -> Iterator[list[str]]:
    for number, columns in enumerate(rows, 1):
        if len(columns) <= max(places):
            wanted = (
                "source TAB prediction TAB reference" if max(places) == 2 else "source (or reference) TAB prediction"
            )
            raise InputError(f"{path}, line {number}: {len(columns)} column(s), but {wanted} are needed")
        yield [columns[place] for place in places]


def not_empty(rows: Iterator[list[Any]], name: str) -> Iterator[list[Any]]:
    """The rows of a file.

    Raises:
        InputError: there are none.
    """
    first = next(rows, None)
    if first is None:
        raise InputError(f"{name}: empty; there is nothing to score")
    return itertools.chain([first], rows)
