"""What several commands score: parallel files, or one file of rows."""

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

from mtmetrics.errors import InputError
from mtmetrics.textio import iter_parallel, iter_table


def add_row_options(parser: argparse.ArgumentParser) -> None:
    """Adds the files to read and the language pair."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="TSV without a header, .jsonl or .parquet; - reads TSV from standard input")
    parser.add_argument("-s", "--sources", metavar="FILE", help="one source segment per line")
    parser.add_argument(
        "-t", "--predictions", metavar="FILE", nargs="+", help="one translation per line; several files are several systems"
    )
    parser.add_argument("--lp", required=True, metavar="XX-YY", help="language pair, such as de-en")


def read_rows(args: argparse.Namespace) -> tuple[list[str], Iterator[list[str]]]:
    """The names of the systems, and rows of a source and one prediction per system.

    The first row is read at once, so that a missing or empty file is reported before any model is loaded.

    Raises:
        InputError: the arguments name no or contradicting files; a file is missing, empty, or its first row cannot be used.
    """
    if args.file is not None:
        if args.sources or args.predictions:
            raise InputError("pass either one FILE or -s and -t, not both")
        return [args.file], _not_empty(iter_table(args.file, ("source", "translation")), args.file)
    if not args.sources or not args.predictions:
        raise InputError("nothing to score: pass -s SOURCES -t PREDICTIONS, or one FILE, or - for standard input")
    paths = [Path(path) for path in args.predictions]
    stems = [path.stem for path in paths]
    names = [stem if stems.count(stem) == 1 else str(path) for stem, path in zip(stems, paths, strict=True)]
    return names, _not_empty(iter_parallel([args.sources, *args.predictions]), args.sources)


def _not_empty(rows: Iterator[list[str]], name: str) -> Iterator[list[str]]:
    first = next(rows, None)
    if first is None:
        raise InputError(f"{name}: empty; there is nothing to score")
    return itertools.chain([first], rows)
