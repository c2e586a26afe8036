"""Reads text line by line: plain or gzip files, standard input, JSON Lines, tab-separated rows, Parquet."""

import gzip
import itertools
import json
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from mtmetrics import checks
from mtmetrics.errors import InputError

# What the columns of a table are called: as we do, then as COMET, WMT and MLQE-PE do.
COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "source": ("source", "src", "original"),
    "translation": ("translation", "mt", "prediction", "hypothesis", "target"),
    "reference": ("reference", "ref"),
}


def _open(path: str | Path) -> BinaryIO:
    if str(path) == "-":
        return sys.stdin.buffer
    try:
        if Path(path).is_dir():
            raise InputError(f"{path} is a folder, a file is needed")
        return gzip.open(path, "rb") if str(path).endswith(".gz") else open(path, "rb")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def iter_lines(path: str | Path) -> Iterator[str]:
    """Yields the lines of a UTF-8 file without their line ends; only ``\\n`` and ``\\r\\n`` end a line.

    Args:
        path: a plain or ``.gz`` file, or ``-`` for standard input.

    Raises:
        InputError: the file is missing, unreadable, damaged, not UTF-8 or holds a NUL (with the line's number).
    """
    yield from decoded_lines(_open(path), path)


def decoded_lines(stream: BinaryIO, path: str | Path) -> Iterator[str]:
    """Yields the lines of an open stream, which messages call `path`, like `iter_lines`, and closes all but standard
    input."""
    number = 0
    try:
        for number, raw in enumerate(stream, 1):
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if b"\0" in raw:
                what = "holds a NUL byte, so this is no text, or not in UTF-8 (UTF-16?); convert it to UTF-8"
                raise InputError(f"{path}, line {number}: {what}")
            yield raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} (0x{error.object[error.start]:02x})"
        raise InputError(f"{path}, line {number}: {byte} is not valid UTF-8; convert the file to UTF-8") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}, after line {number}: cannot be read ({error})") from error
    finally:
        if stream is not sys.stdin.buffer:
            stream.close()


def count_rows(path: str | Path) -> int | None:
    """The number of lines of a regular file, or of rows of a Parquet file; None for pipes and where it cannot be
    read, which reading reports.
    """
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return None
        if str(path).endswith(".parquet"):
            from pyarrow import parquet

            return parquet.read_metadata(path).num_rows
        with _open(path) as stream:
            lines, last = 0, b"\n"
            while block := stream.read(2**20):
                lines, last = lines + block.count(b"\n"), block[-1:]
    except (OSError, EOFError, zlib.error, ValueError):
        return None
    return lines + (last != b"\n")


def iter_jsonl(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields ``(line number, object)`` for every line that is not blank of a JSON Lines file.

    Raises:
        InputError: a line is not a JSON object (with its number), or as `iter_lines`.
    """
    for number, line in enumerate(iter_lines(path), 1):
        if not line.strip():
            continue
        yield number, json_object(line, f"{path}, line {number}")


def json_object(line: str, place: str) -> dict[str, Any]:
    """The object in a line of JSON Lines; `InputError`, which names the place, where there is none."""
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{place}: not valid JSON ({error.msg} at column {error.colno})") from None
    except ValueError:
        raise InputError(f"{place}: holds a number that is too long to be read") from None
    if not isinstance(row, dict):
        raise InputError(f"{place}: a JSON object is needed, got {type(row).__name__}")
    return row


def iter_tsv(path: str | Path) -> Iterator[list[str]]:
    """The columns of all tab-separated lines; errors as `iter_lines`."""
    return (line.split("\t") for line in iter_lines(path))


def iter_table(path: str | Path, keys: Sequence[str], *, jsonl: bool | None = None) -> Iterator[list[str]]:
    """Yields rows of text columns from tab-separated lines without a header, from JSON Lines, or from Parquet.

    Args:
        path: ``.jsonl`` and ``.jsonl.gz`` files hold objects, ``.parquet`` files a table, all others tab-separated
            columns.
        keys: the columns wanted: the first ones of a tab-separated row in this order, else by name.
        jsonl: overrides what the name says.

    Raises:
        InputError: the file is missing or damaged, or a row lacks a column or holds no string there (with file and
            line).
    """
    return ([row[key] for key in keys] for row in iter_rows(path, keys, jsonl=jsonl, whole=False))


def iter_rows(
    path: str | Path, keys: Sequence[str], *, jsonl: bool | None = None, whole: bool = True
) -> Iterator[dict[str, Any]]:
    """Yields rows as `iter_table`, but by name, and `whole`: with all their columns, of which the further ones of
    tab-separated lines are called ``column3`` and so on."""
    if jsonl is None and str(path).endswith(".parquet"):
        names = table_keys(path) or [] if whole else []
        rows = _parquet_rows(path, list(dict.fromkeys([*keys, *names])))
    elif _is_jsonl(path) if jsonl is None else jsonl:
        rows = ((f"line {number}", row) for number, row in iter_jsonl(path))
    else:
        for number, columns in enumerate(iter_tsv(path), 1):
            if len(columns) < len(keys):
                wanted = " TAB ".join(keys)
                raise InputError(f"{path}, line {number}: {len(columns)} column(s), but {wanted} are needed")
            more = range(len(keys) + 1, len(columns) + 1) if whole else ()
            yield dict(zip([*keys, *(f"column{place}" for place in more)], columns, strict=False))
        return
    for place, row in rows:
        for key in keys:
            if not isinstance(row.get(key), str):
                raise InputError(f"{path}, {place}: {key!r} must be a string, got {shown(row.get(key))}")
            if "\0" in row[key]:
                raise InputError(f"{path}, {place}: {key!r} holds a NUL character, which no text does")
        yield row


def table_keys(path: str | Path) -> list[str] | None:
    """The keys of the first object of a JSON Lines file that are not null, or the columns of a Parquet file; else
    None."""
    if str(path).endswith(".parquet"):
        return [name for _, names in _parquet_rows(path, None) for name in names]
    if not _is_jsonl(path):
        return None
    _, first = next(iter_jsonl(path), (0, {}))
    return [key for key, value in first.items() if value is not None]


def column_names(path: str | Path, keys: Sequence[str]) -> dict[str, str]:
    """Which of the `keys` of a table is the source, the translation and the reference (`COLUMN_NAMES`).

    Raises:
        InputError: there are two names of one column.
    """
    found = {}
    for column, names in COLUMN_NAMES.items():
        there = [key for key in keys if key.strip().lower() in names]
        if len(there) > 1:
            raise InputError(f"{path}: {', '.join(map(repr, there))} both name the {column}; leave one out")
        if there:
            found[column] = there[0]
    return found


def header_places(path: str | Path, first: Sequence[str]) -> dict[str, int] | None:
    """Column -> its place, where the first row of a table is a header; None where it holds no name of a column.

    Raises:
        InputError: it could be a header or texts, since it does not name all that is needed.
    """
    cells = [cell.strip().lower() for cell in first]
    named = [cell for cell in cells if any(cell in names for names in COLUMN_NAMES.values())]
    if not named:
        return None
    found = {column: cells.index(name) for column, name in column_names(path, cells).items()}
    if "translation" in found and len(found) > 1:
        return found
    needed = "a header names translation (or mt), and source (src) or reference (ref)"
    text = "where it is a segment, pass parallel files or JSON Lines"
    raise InputError(f"{path}, line 1: {' TAB '.join(first)!r:.80} looks like half a header; {needed}; {text}")


def shown(value: Any) -> str:
    """A value of JSON for messages, cut where it is long."""
    return "null" if value is None else checks.shown(value)


def _is_jsonl(path: str | Path) -> bool:
    return str(path).removesuffix(".gz").endswith(".jsonl")


def _parquet_rows(path: str | Path, keys: Sequence[str] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields places and rows, a thousand of which are read at a time; without keys, the names of the columns alone."""
    import pyarrow
    import pyarrow.parquet

    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            names = table.schema_arrow.names
            if keys is None:
                yield "schema", dict.fromkeys(names)
                return
            missing = [key for key in keys if key not in names]
            if missing:
                raise InputError(f"{path}: no column {missing[0]!r}; the file has: {', '.join(names)}")
            for batch in table.iter_batches(batch_size=1000, columns=list(keys)):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", row
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}, after row {number}: cannot be read as Parquet ({reason})") from error


def iter_parallel(paths: Sequence[str | Path]) -> Iterator[list[str]]:
    """Yields the lines of parallel files side by side.

    Raises:
        InputError: one file ends before another (names both and the line), or as `iter_lines`.
    """
    streams = [iter_lines(path) for path in paths]
    for number in itertools.count(1):
        row = [next(stream, None) for stream in streams]
        ended = [str(path) for path, line in zip(paths, row, strict=True) if line is None]
        if len(ended) == len(row):
            return
        if ended:
            longer = next(str(path) for path, line in zip(paths, row, strict=True) if line is not None)
            after = f"{ended[0]} ends after {number - 1} lines, but {longer} goes on"
            raise InputError(f"{after}; parallel files need equal lengths")
        yield [line for line in row if line is not None]


def read_word_pairs(path: str | Path) -> list[tuple[str, str]]:
    """Reads tab-separated lines, plain or ``.gz``: a word, its translation, and columns that are not read."""
    pairs = []
    for number, (word, translation) in enumerate(iter_table(path, ("word", "translation"), jsonl=False), 1):
        if not word.strip() or not translation.strip():
            raise InputError(f"{path}, line {number}: a word and its translation are needed, one of them is blank")
        pairs.append((word.strip(), translation.strip()))
    if not pairs:
        raise InputError(f"{path}: empty; there are no word pairs")
    return pairs


def short_name(path: str | Path) -> str:
    """Folder and name of a file: enough to tell files of one name apart, without saying where they lie."""
    return "/".join(Path(path).parts[-2:]) if len(Path(path).parts) > 1 else str(path)
