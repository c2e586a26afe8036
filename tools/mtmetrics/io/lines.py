"""Lines of text and of JSON, in and out: plain or compressed files, standard input, parallel
files."""

import bz2
import gzip
import io
import itertools
import json
import lzma
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from mtmetrics import checks
from mtmetrics.errors import InputError
from mtmetrics.io.file_kinds import HEAD_SIZE, Layout, check_head

JsonObject = dict[str, Any]


def _gunzip(stream: BinaryIO) -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=stream)


# First bytes of a compressed file -> the class or function that unpacks it.
_UNPACKERS: dict[bytes, Callable[[BinaryIO], io.BufferedIOBase]] = {
    b"\x1f\x8b": _gunzip,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
# Errors of reading a file that cannot be read, or is damaged.
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)


class _Unpacked(io.BufferedReader):
    """Reads an unpacked stream. Closing it closes the compressed stream, too, but not standard
    input."""

    def __init__(self, unpacked: io.BufferedIOBase, packed: BinaryIO) -> None:
        super().__init__(cast(io.RawIOBase, unpacked), HEAD_SIZE)
        self._packed = packed

    def close(self) -> None:
        """Closes both streams."""
        super().close()
        _close(self._packed)


def open_bytes(path: str | Path) -> BinaryIO:
    """Opens a file, or for ``-`` standard input, and unpacks gzip, bzip2 and xz, whatever its name
    is.

    Raises:
        InputError: the file is missing or unreadable, or compressed in another way.
    """
    stream = _opened(path)
    try:
        head = _head(stream)
        if head.startswith(_ZSTANDARD):
            _close(stream)
            raise InputError(f"{path}: is compressed with Zstandard; unpack it: zstd -d {path}")
    except OSError as error:
        _close(stream)
        raise InputError(f"{path}: {error.strerror or error}") from error
    for start, unpack in _UNPACKERS.items():
        if head.startswith(start):
            return _Unpacked(unpack(stream), stream)
    if head and str(path).lower().endswith(".gz"):
        return _Unpacked(_gunzip(stream), stream)  # reading raises an error that says what is wrong
    return stream


def _opened(path: str | Path) -> BinaryIO:
    if str(path) == "-":
        if sys.stdin is None:
            raise InputError("-: standard input is closed")
        return sys.stdin.buffer
    try:
        if Path(path).is_dir():
            raise InputError(f"{path} is a folder, a file is needed")
        return open(path, "rb", buffering=HEAD_SIZE)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _close(stream: BinaryIO) -> None:
    """Closes a stream that is not standard input."""
    if stream is not getattr(sys.stdin, "buffer", None):
        stream.close()


def _head(stream: BinaryIO) -> bytes:
    """Returns the next bytes of a stream, without taking them off."""
    if isinstance(stream, io.BufferedReader):
        return stream.peek(HEAD_SIZE)
    place = stream.tell()
    head = stream.read(HEAD_SIZE)
    stream.seek(place)
    return head


def check_file(path: str | Path, layout: Layout) -> None:
    """Checks the first bytes of a regular file, before anything is read of it; see `check_head`.
    Pipes are checked when they are read."""
    if Path(path).is_file() and stat.S_ISREG(Path(path).stat().st_mode):
        with open_bytes(path) as stream:
            _check_stream(stream, path, layout)


def iter_lines(path: str | Path, layout: Layout = "any") -> Iterator[str]:
    """Yields the lines of a UTF-8 file without their line ends; only ``\\n`` and ``\\r\\n`` end a
    line.

    Args:
        path: a file, plain or compressed, or ``-`` for standard input.
        layout: what its lines should hold.

    Raises:
        InputError: the file is missing, unreadable, damaged, of another layout, not UTF-8 or holds
            a NUL (with the line's number).
    """
    stream = open_bytes(path)
    try:
        _check_stream(stream, path, layout)
    except InputError:
        _close(stream)
        raise
    yield from decoded_lines(stream, path)


def _check_stream(stream: BinaryIO, path: str | Path, layout: Layout) -> None:
    try:
        check_head(path, _head(stream), layout)
    except UNREADABLE as error:
        raise InputError(f"{path}, after line 0: cannot be read ({error})") from error


def decoded_lines(stream: BinaryIO, path: str | Path) -> Iterator[str]:
    """Yields the lines of an open stream like `iter_lines`, and closes all but standard input.

    Args:
        stream: the stream.
        path: its name for messages.
    """
    number = 0
    try:
        for number, raw in enumerate(stream, 1):
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if b"\0" in raw:
                raise InputError(
                    f"{path}, line {number}: holds a NUL byte, so this is no text, or not in UTF-8 "
                    "(UTF-16?); convert it to UTF-8"
                )
            yield raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} (0x{error.object[error.start]:02x})"
        raise InputError(
            f"{path}, line {number}: {byte} is not valid UTF-8; convert the file to UTF-8"
        ) from None
    except UNREADABLE as error:
        raise InputError(f"{path}, after line {number}: cannot be read ({error})") from error
    finally:
        _close(stream)


def json_object(line: str, place: str) -> dict[str, Any]:
    """Reads the object in a line of JSON Lines.

    Raises:
        InputError: the line holds no object; names the place.
    """
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{place}: not valid JSON ({error.msg} at column {error.colno})") from None
    except ValueError:
        raise InputError(f"{place}: holds a number that is too long to be read") from None
    return _checked_object(row, place, may_hold_surrogates="\\ud" in line.lower())


def json_array(text: str, path: str) -> Iterator[dict[str, Any]]:
    """Yields the objects of an array of JSON.

    Args:
        text: the array.
        path: its name for messages.

    Raises:
        InputError: the text is no JSON, or an item is no object.
    """
    try:
        items = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}, line {error.lineno}: not valid JSON ({error.msg} at column {error.colno})"
        ) from None
    except ValueError:
        raise InputError(f"{path}: holds a number that is too long to be read") from None
    may_hold_surrogates = "\\ud" in text.lower()
    for number, item in enumerate(items, 1):
        yield _checked_object(item, f"{path}, item {number}", may_hold_surrogates)


def _checked_object(row: object, place: str, may_hold_surrogates: bool) -> dict[str, Any]:
    """Returns a value that is an object whose texts can be written again. Half a character, which
    an escape of JSON can name, cannot."""
    if not isinstance(row, dict):
        raise InputError(f"{place}: a JSON object is needed, got {type(row).__name__}")
    if may_hold_surrogates:
        try:
            json_line(row).encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(
                f"{place}: holds a lone surrogate (\\ud800 to \\udfff), not valid Unicode text"
            ) from None
    return row


def json_line(row: Mapping[str, object]) -> str:
    """Writes a row as a line of JSON Lines."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def shown(value: object) -> str:
    """Shows a value of JSON in a message, cut where it is long."""
    return "null" if value is None else checks.shown(value)


def first_difference(before: object, now: object, name: str = "") -> str | None:
    """Returns the first entry that two objects of JSON do not have in common; None where they are
    equal. Entries of objects inside them are named alone.

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
    return None if before == now else f"{name} {shown(before)}, not {shown(now)}"


def refuse_twice(paths: Sequence[str | Path]) -> None:
    """Refuses files that are read side by side, two of which are standard input."""
    if [*map(str, paths)].count("-") > 1:
        raise InputError("-: standard input can be read only once; name a file for the others")


def iter_parallel(paths: Sequence[str | Path]) -> Iterator[list[str]]:
    """Yields the lines of parallel files side by side.

    Raises:
        InputError: two of them are standard input; one file ends before another (names both and the
            line); or as `iter_lines`.
    """
    refuse_twice(paths)
    streams = [iter_lines(path, "segments") for path in paths]
    for number in itertools.count(1):
        row = [next(stream, None) for stream in streams]
        lines = [line for line in row if line is not None]
        if not lines:
            return
        if len(lines) < len(row):
            ended = paths[row.index(None)]
            longer = paths[row.index(lines[0])]
            raise InputError(
                f"{ended} ends after {number - 1} lines, but {longer} goes on; parallel files need "
                "equal lengths"
            )
        yield lines


def short_name(path: str | Path) -> str:
    """Returns folder and name of a file: enough to tell files of one name apart, without saying
    where they lie."""
    parts = Path(path).parts
    return "/".join(parts[-2:]) if len(parts) > 1 else str(path)
