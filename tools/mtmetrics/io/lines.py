"""Reads lines of text and objects of JSON from files, compressed files and standard input. Also
writes objects as JSON Lines, and makes short texts of values and paths for messages.

Functions that yield open their files, and raise their errors, when the first item is requested.
"""

import bz2
import codecs
import contextlib
import gzip
import io
import itertools
import json
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from mtmetrics import checks
from mtmetrics.errors import InputError
from mtmetrics.io.file_kinds import HEAD_SIZE, LineContent, check_head

JsonObject = dict[str, Any]


def _gunzip(stream: BinaryIO) -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=stream)


# First bytes of a compressed file -> the class or function that unpacks it.
_UNPACKERS: dict[bytes, Callable[[BinaryIO], io.BufferedIOBase]] = {
    b"\x1f\x8b": _gunzip,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
_ZSTANDARD = b"\x28\xb5\x2f\xfd"  # the standard library unpacks it from Python 3.14 on
# Errors that reading a damaged or unreadable file may raise.
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)


@contextlib.contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """Yields the bytes of a file, or of standard input for ``-``, which stays open. Unpacks gzip,
    bzip2 and xz, which the first bytes show.

    Raises:
        InputError: the file is missing, unreadable, or compressed with Zstandard.
    """
    with _opened(path) as stream:
        try:
            head = _head(stream)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from error
        if head.startswith(_ZSTANDARD):
            raise InputError(f"{path}: is compressed with Zstandard; unpack it: zstd -d {path}")
        unpack = next((_UNPACKERS[start] for start in _UNPACKERS if head.startswith(start)), None)
        if unpack is None and head and str(path).lower().endswith(".gz"):
            unpack = _gunzip  # not gzip, but its name says so: the error tells the user
        if unpack is None:
            yield stream
        else:
            with unpack(stream) as unpacked:
                yield io.BufferedReader(cast(io.RawIOBase, unpacked), HEAD_SIZE)


def _opened(path: str | Path) -> contextlib.AbstractContextManager[BinaryIO]:
    if str(path) == "-":
        if sys.stdin is None:
            raise InputError("-: standard input is closed")
        return contextlib.nullcontext(sys.stdin.buffer)
    try:
        if Path(path).is_dir():
            raise InputError(f"{path} is a folder, a file is needed")
        return open(path, "rb", buffering=HEAD_SIZE)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _head(stream: BinaryIO) -> bytes:
    """Returns the next bytes of a stream, without consuming them: up to `HEAD_SIZE` from a file, and
    from a pipe as many as have arrived."""
    if isinstance(stream, io.BufferedReader):
        return stream.peek(HEAD_SIZE)
    # Standard input that a program has replaced by bytes in memory.
    position = stream.tell()
    head = stream.read(HEAD_SIZE)
    stream.seek(position)
    return head


def check_file(path: str | Path, content: LineContent) -> None:
    """Checks the beginning of a regular file before a command reads it. Any other path passes, also
    that of a missing file: `iter_lines` checks it.

    Args:
        path: the file.
        content: the content that its lines must have, see `check_head`.

    Raises:
        InputError: the file is unreadable or damaged, or has other content.
    """
    if Path(path).is_file():
        next(iter_lines(path, content), None)


def iter_lines(path: str | Path, content: LineContent = "any") -> Iterator[str]:
    """Yields the lines of a UTF-8 file without their line ends; only ``\\n`` and ``\\r\\n`` end a
    line.

    Args:
        path: a file, plain or compressed, or ``-`` for standard input.
        content: the content that the lines must have, see `check_head`.

    Raises:
        InputError: the file is missing, unreadable or damaged, has other content, is not UTF-8 or
            holds a NUL (with the line's number).
    """
    with open_bytes(path) as stream:
        try:
            check_head(path, _head(stream), content)
        except READ_ERRORS as error:
            raise InputError(f"{path}, after line 0: cannot be read ({error})") from error
        yield from decoded_lines(stream, path)


def decoded_lines(stream: BinaryIO, path: str | Path) -> Iterator[str]:
    """Yields the lines of an open stream of bytes like `iter_lines`.

    Args:
        stream: unpacked bytes.
        path: name of the stream for messages.
    """
    number = 0
    try:
        for number, raw in enumerate(stream, 1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            if b"\0" in raw:
                raise InputError(
                    f"{path}, line {number}: holds a NUL byte, so this is not UTF-8 text (perhaps "
                    "UTF-16); convert it to UTF-8"
                )
            yield raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} (0x{error.object[error.start]:02x})"
        raise InputError(
            f"{path}, line {number}: {byte} is not valid UTF-8; convert the file to UTF-8"
        ) from None
    except READ_ERRORS as error:
        raise InputError(f"{path}, after line {number}: cannot be read ({error})") from error


def refuse_repeated_stdin(paths: Sequence[str | Path]) -> None:
    """Refuses files to read side by side if standard input is named more than once."""
    if sum(str(path) == "-" for path in paths) > 1:
        raise InputError("-: standard input can be read only once; name a file for the others")


def iter_parallel(paths: Sequence[str | Path]) -> Iterator[list[str]]:
    """Yields the lines of parallel files side by side.

    Raises:
        InputError: standard input is named more than once; one file ends before another (names both
            and the line); or `iter_lines` raises it.
    """
    refuse_repeated_stdin(paths)
    streams = [iter_lines(path, "segments") for path in paths]
    for lines_before, row in enumerate(itertools.zip_longest(*streams)):
        if None in row:
            shorter = paths[row.index(None)]
            longer = paths[next(place for place, line in enumerate(row) if line is not None)]
            raise InputError(
                f"{shorter} ends after {lines_before} lines, but {longer} goes on; parallel files "
                "need equal lengths"
            )
        yield list(row)


def parse_json_object(line: str, where: str) -> JsonObject:
    """Reads the object in a line of JSON Lines.

    Raises:
        InputError: the line holds no object; the message names `where`.
    """
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not valid JSON ({error.msg} at column {error.colno})") from None
    except ValueError:
        raise _long_number_error(where) from None
    return _checked_object(row, where, may_hold_surrogates="\\ud" in line.lower())


def parse_json_array(text: str, path: str) -> Iterator[JsonObject]:
    """Yields the objects of a JSON array.

    Args:
        text: the array. It begins with ``[``.
        path: its name for messages.

    Raises:
        InputError: the text is not JSON, or an item is not an object.
    """
    try:
        items = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}, line {error.lineno}: not valid JSON ({error.msg} at column {error.colno})"
        ) from None
    except ValueError:
        raise _long_number_error(path) from None
    may_hold_surrogates = "\\ud" in text.lower()
    for number, item in enumerate(items, 1):
        yield _checked_object(item, f"{path}, item {number}", may_hold_surrogates)


def _long_number_error(where: str) -> InputError:
    """Makes the error for a whole number with more digits than Python reads."""
    return InputError(f"{where}: holds a number that is too long to be read")


def _checked_object(row: object, where: str, may_hold_surrogates: bool) -> JsonObject:
    """Returns `row` if it is an object whose strings can be encoded as UTF-8. A lone surrogate,
    which an escape in JSON can stand for, cannot."""
    if not isinstance(row, dict):
        raise InputError(f"{where}: a JSON object is needed, got {type(row).__name__}")
    if may_hold_surrogates:
        try:
            json_line(row).encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(
                f"{where}: holds a lone surrogate (\\ud800 to \\udfff), not valid Unicode text"
            ) from None
    return row


def json_line(row: Mapping[str, object]) -> str:
    """Returns a row as a line of JSON Lines."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def shown_json(value: object) -> str:
    """Returns a JSON value for messages in Python's notation, but ``null`` for None. A long text is
    cut."""
    return "null" if value is None else checks.shown(value)


def first_difference(before: object, now: object, name: str = "") -> str | None:
    """Describes the first entry in which two JSON objects differ; None if they are equal. The value
    in `before` comes first: a message puts the description after words such as "made with".

    A missing entry counts as null. An entry of a nested object is named by its last key alone.

    Args:
        before: an object, such as the settings of an interrupted run; or a value in it.
        now: the other object, or the value in its place.
        name: key of the values, if they are not objects.

    Example:
        >>> first_difference({"steps": 60}, {"steps": 70})
        'steps 60, not 70'
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in before | now:
            difference = first_difference(before.get(key), now.get(key), key)
            if difference:
                return difference
        return None
    return None if before == now else f"{name} {shown_json(before)}, not {shown_json(now)}"


def short_name(path: str | Path) -> str:
    """Returns a file's name and its folder's name: enough to distinguish files of the same name
    without the full path."""
    return str(Path(*Path(path).parts[-2:]))
