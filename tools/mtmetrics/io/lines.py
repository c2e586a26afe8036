"""Lines of text and of JSON, in and out: plain or gzip files, standard input, parallel files."""

import gzip
import itertools
import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from mtmetrics import checks
from mtmetrics.errors import InputError


def open_bytes(path: str | Path) -> BinaryIO:
    """What a plain or ``.gz`` file holds, or, for ``-``, standard input; errors as `iter_lines`."""
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
    yield from decoded_lines(open_bytes(path), path)


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
    if "\\ud" in line.lower():  # an escape of JSON can name half a character, which cannot be written again
        try:
            json_line(row).encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(f"{place}: holds a lone surrogate (\\ud800 to \\udfff), not valid Unicode text") from None
    return row


def json_line(row: Mapping[str, Any]) -> str:
    """A row as a line of JSON Lines."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def shown(value: Any) -> str:
    """A value of JSON for messages, cut where it is long."""
    return "null" if value is None else checks.shown(value)


def first_difference(before: Any, now: Any, name: str = "") -> str | None:
    """The first entry that two objects of JSON do not have in common, such as ``steps 60, not 70``; None where they are
    equal. Entries of objects inside them are named alone."""
    if isinstance(before, dict) and isinstance(now, dict):
        found = (first_difference(before.get(key), now.get(key), key) for key in before | now)
        return next(filter(None, found), None)
    return None if before == now else f"{name} {shown(before)}, not {shown(now)}"


def refuse_twice(paths: Sequence[str | Path]) -> None:
    """Refuses files that are read side by side, two of which are standard input."""
    if [*map(str, paths)].count("-") > 1:
        raise InputError("-: standard input can be read only once; name a file for the others")


def iter_parallel(paths: Sequence[str | Path]) -> Iterator[list[str]]:
    """Yields the lines of parallel files side by side.

    Raises:
        InputError: two of them are standard input; one file ends before another (names both and the line); or as
            `iter_lines`.
    """
    refuse_twice(paths)
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


def short_name(path: str | Path) -> str:
    """Folder and name of a file: enough to tell files of one name apart, without saying where they lie."""
    return "/".join(Path(path).parts[-2:]) if len(Path(path).parts) > 1 else str(path)
