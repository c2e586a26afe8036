"""Files and folders that are either whole or absent, and their checksums."""

import contextlib
import functools
import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from mtmetrics.errors import InputError, MTMetricsError

JsonObject = dict[str, Any]


def sha256_file(path: str | Path) -> str:
    """Returns the hexadecimal sha256 of a file, read in blocks."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_unchanged(path: str | Path) -> str:
    """Returns `sha256_file`; reads the file once per process as long as its size and its time of
    change stay the same."""
    state = os.stat(path)
    return _sha256_of_state(os.path.realpath(path), state.st_size, state.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _sha256_of_state(path: str, size: int, changed_at: int) -> str:
    """Returns `sha256_file`; size and time of change are the key under which the cache holds it."""
    return sha256_file(path)


def git_blob_sha1(data: bytes) -> str:
    """Returns the hexadecimal hash by which git knows a file: the sha1 of ``blob SIZE``, a zero
    byte, and the content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def git_blob_file(path: str | Path) -> str:
    """Returns the hash by which git knows a file, see `git_blob_sha1`."""
    return git_blob_sha1(Path(path).read_bytes())


def in_one_order(data: bytes) -> bytes:
    """Returns the bytes of a safetensors file with its metadata sorted; the library writes them in
    another order each time."""
    # Such a file is the size of its header in 8 bytes, the header in JSON, and the tensors.
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    tensors = data[8 + size :]
    if "__metadata__" in header:
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    padding = b" " * (-len(text) % 8)
    new_size = len(text) + len(padding)
    return new_size.to_bytes(8, "little") + text + padding + tensors


def write_atomic(path: str | Path, data: str | bytes) -> None:
    """Writes `data` beside `path` and renames it into place, so that a reader never sees half of
    it."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)


def write_json(path: str | Path, document: object, *, sort_keys: bool = False) -> None:
    """Writes a document as JSON, whole or not at all."""
    text = json.dumps(document, ensure_ascii=False, indent=1, sort_keys=sort_keys)
    write_atomic(path, text + "\n")


@contextlib.contextmanager
def atomic_text(path: str | Path) -> Iterator[IO[str]]:
    """Yields a stream of UTF-8 to a file that appears only when everything went well.

    The file is compressed where its name ends in .gz, without name and time, so that equal texts
    give equal files.
    """
    with atomic_bytes(path) as stream:
        packed = stream
        if str(path).endswith(".gz"):
            packed = cast(BinaryIO, gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0))
        with packed, io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text:
            yield text


@contextlib.contextmanager
def atomic_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """Yields a stream of bytes to a file that appears only when everything went well.

    Raises:
        MTMetricsError: the file cannot be written. Other errors of the work that writes there pass
            as they are.
    """
    with (
        _replacing(Path(path)) as temporary,
        _OutputFile(temporary, path) as raw,
        io.BufferedWriter(raw) as stream,
    ):
        yield stream


class _OutputFile(io.FileIO):
    """A temporary file whose errors name the file that the user knows."""

    def __init__(self, temporary: Path, path: str | Path) -> None:
        self._path = path
        with _errors_about(path):
            super().__init__(temporary, "wb")

    def write(self, data: Any) -> int:
        """Writes bytes; an MTMetricsError says why it cannot."""
        with _errors_about(self._path):
            return super().write(data)

    def close(self) -> None:
        """Closes the file; an MTMetricsError says why its content is not safe."""
        with _errors_about(self._path):
            super().close()


@contextlib.contextmanager
def _errors_about(path: str | Path) -> Iterator[None]:
    """Turns errors of the file system into an MTMetricsError that names a file."""
    try:
        yield
    except OSError as error:
        raise MTMetricsError(f"cannot write {path}: {error.strerror or error}") from error


def make_folder(path: str | Path) -> None:
    """Makes a folder and its parents where they are missing; an MTMetricsError says why it
    cannot."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MTMetricsError(f"cannot make the folder {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def filled_folder(path: str | Path) -> Iterator[None]:
    """Makes a folder and its parents before the work that fills it; new folders that are still
    empty afterwards vanish again."""
    new_folders = [folder for folder in (Path(path), *Path(path).parents) if not folder.exists()]
    make_folder(path)
    try:
        yield
    finally:
        # A folder that is not empty raises an error: it stays, and so do its parents.
        with contextlib.suppress(OSError):
            for folder in new_folders:
                folder.rmdir()


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yields a temporary name beside `path` that becomes `path` on success and vanishes otherwise;
    see `_replacing`."""
    with _errors_about(path), _replacing(Path(path)) as temporary:
        yield temporary


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path to write to, which replaces a file when all is written.

    A link stays, and the file that it leads to is replaced and keeps its mode. A device or a pipe
    is not replaced but written to: its own path is yielded.
    """
    if is_stream(path):
        yield path
        return
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        yield temporary
        with _errors_about(path):
            _take_over_mode(target, temporary)
            os.replace(temporary, target)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def is_stream(path: str | Path) -> bool:
    """Whether a path leads to a device, a pipe or an open file of this process, which must not be
    replaced."""
    if os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _take_over_mode(target: Path, temporary: Path) -> None:
    """Gives a temporary file the owner and the mode of the file that it will replace, if there is
    one."""
    if not target.exists():
        return
    state = target.stat()
    with contextlib.suppress(OSError, AttributeError):  # not every user may change the owner
        os.chown(temporary, state.st_uid, state.st_gid)
    os.chmod(temporary, stat.S_IMODE(state.st_mode))


@contextlib.contextmanager
def new_folder(target: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """Yields a temporary folder beside `target` that becomes `target` on success and vanishes
    otherwise.

    Raises:
        InputError: `target` exists and `overwrite` is not set.
        MTMetricsError: the place cannot be written.
    """
    target = Path(target)
    if target.exists() and not overwrite:
        raise InputError(f"{target} exists already; choose another folder or pass --overwrite")
    with _errors_about(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(
            tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        )
    try:
        with _errors_about(target):
            yield temporary
            temporary.chmod(0o755)
            if target.exists():
                old = temporary.with_name(temporary.name + ".old")
                os.replace(target, old)
                os.replace(temporary, target)
                shutil.rmtree(old)
            else:
                os.replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
