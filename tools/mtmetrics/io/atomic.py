"""Atomic writes: a file or folder appears under its name when all of its content is written. An
error leaves the old one as it was."""

import contextlib
import gzip
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


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path, at which the ``with`` block makes a file. The file replaces `path` if
    the block succeeds, and is deleted otherwise. The folder of `path` must exist.

    If `path` is a symbolic link, the link stays and its target is replaced. A new file gets the
    owner and the mode of the old one. A special file, such as a pipe, is not replaced: its own path
    is yielded.

    Raises:
        MTMetricsError: the file cannot be written. Any OSError in the ``with`` block, even one about
            another file, is reported as this error; `atomic_bytes` passes such errors on.
    """
    with _reporting_write_errors(path), _replacing(Path(path)) as temporary:
        yield temporary


def write_atomic(path: str | Path, data: str | bytes) -> None:
    """Writes a file with `atomic_path`, so that a reader never sees a partly written file."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)


def write_json(path: str | Path, document: object, *, sort_keys: bool = False) -> None:
    """Writes a document as JSON with `write_atomic`."""
    text = json.dumps(document, ensure_ascii=False, indent=1, sort_keys=sort_keys)
    write_atomic(path, text + "\n")


@contextlib.contextmanager
def atomic_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """Yields a stream of bytes. It replaces the file `path` as `atomic_path` does.

    Raises:
        MTMetricsError: the file cannot be written. Other errors in the ``with`` block are passed on
            unchanged.
    """
    with (
        _replacing(Path(path)) as temporary,
        _OutputFile(temporary, path) as raw,
        io.BufferedWriter(raw) as stream,
    ):
        yield stream


@contextlib.contextmanager
def atomic_text(path: str | Path) -> Iterator[IO[str]]:
    """Yields a UTF-8 text stream. It replaces the file `path` as `atomic_bytes` does.

    If the name ends in ``.gz``, the file is compressed. The gzip header holds no name and no time,
    so that equal texts give identical files.
    """
    with atomic_bytes(path) as stream:
        sink = stream
        if str(path).lower().endswith(".gz"):
            sink = cast(BinaryIO, gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0))
        with sink, io.TextIOWrapper(sink, encoding="utf-8", newline="\n") as text:
            yield text


@contextlib.contextmanager
def atomic_folder(path: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """Yields a temporary folder beside the folder `path`. It becomes `path` if the ``with`` block
    succeeds, and is deleted otherwise. Missing parents are made.

    If `path` is a symbolic link, the link stays and its target is replaced. The new folder has the
    usual mode 0o755, whatever the mode of the old one was.

    Args:
        path: the folder.
        overwrite: whether it may replace a folder, one that exists already or one that somebody
            makes at `path` during the ``with`` block.

    Raises:
        InputError: `path` exists and `overwrite` is not set, or `path` is a file.
        MTMetricsError: the folder cannot be written. Any OSError in the ``with`` block is reported
            as this error.
    """
    target = Path(os.path.realpath(path))
    _refuse_existing(target, path, overwrite)
    with _reporting_write_errors(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(
            tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        )
    try:
        with _reporting_write_errors(path):
            yield temporary
            temporary.chmod(0o755)  # `mkdtemp` hides its folder from other users
            _refuse_existing(target, path, overwrite)
            if target.exists():
                _swap_folders(target, temporary)
            else:
                os.replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _refuse_existing(target: Path, path: str | Path, overwrite: bool) -> None:
    """Refuses a target that `atomic_folder` must not replace. Messages name `path`."""
    if target.exists() and not target.is_dir():
        raise InputError(f"{path} is a file; choose another name for the folder")
    if target.exists() and not overwrite:
        raise InputError(f"{path} exists already; choose another folder or pass --overwrite")


def _swap_folders(target: Path, temporary: Path) -> None:
    """Replaces the folder `target` by `temporary`. No call of the system does this at once:
    `target` is absent for a moment. If the replacement fails, the old folder comes back."""
    old = temporary.with_name(temporary.name + ".old")
    os.replace(target, old)
    try:
        os.replace(temporary, target)
    except OSError:
        os.replace(old, target)
        raise
    shutil.rmtree(old)


def make_folder(path: str | Path) -> None:
    """Makes a folder and its missing parents.

    Raises:
        MTMetricsError: the folder cannot be made.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MTMetricsError(f"cannot make the folder {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def output_folder(path: str | Path) -> Iterator[None]:
    """Makes a folder and its missing parents for the ``with`` block. Folders that this call made are
    removed afterwards if they are empty."""
    new_folders = [folder for folder in (Path(path), *Path(path).parents) if not folder.exists()]
    make_folder(path)
    try:
        yield
    finally:
        # `rmdir` fails at the first folder that holds something; its parents hold that folder.
        with contextlib.suppress(OSError):
            for folder in new_folders:
                folder.rmdir()


def is_special_file(path: str | Path) -> bool:
    """Whether a path leads to a device, a pipe or a file descriptor of this process (such as
    ``/dev/stdout``), which must not be replaced."""
    if os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path whose file replaces `path`, see `atomic_path`. Errors in the ``with``
    block are passed on unchanged; errors of the replacement are reported."""
    if is_special_file(path):
        yield path
        return
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        yield temporary
        with _reporting_write_errors(path):
            _copy_owner_and_mode(target, temporary)
            os.replace(temporary, target)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _copy_owner_and_mode(target: Path, temporary: Path) -> None:
    """Gives a temporary file the owner and the mode of the file that it will replace, if that file
    exists."""
    if not target.exists():
        return
    file_stat = target.stat()
    with contextlib.suppress(OSError, AttributeError):  # not every user may change the owner
        os.chown(temporary, file_stat.st_uid, file_stat.st_gid)
    os.chmod(temporary, stat.S_IMODE(file_stat.st_mode))


class _OutputFile(io.FileIO):
    """A temporary file for writing. Its errors are those of `_reporting_write_errors`, with the
    path that it will replace."""

    def __init__(self, temporary: Path, path: str | Path) -> None:
        self._path = path
        with _reporting_write_errors(path):
            super().__init__(temporary, "wb")

    def write(self, data: Any) -> int:
        """Writes bytes."""
        with _reporting_write_errors(self._path):
            return super().write(data)

    def close(self) -> None:
        """Closes the file."""
        with _reporting_write_errors(self._path):
            super().close()


@contextlib.contextmanager
def _reporting_write_errors(path: str | Path) -> Iterator[None]:
    """Turns an OSError into an MTMetricsError that says that `path` cannot be written."""
    try:
        yield
    except OSError as error:
        raise MTMetricsError(f"cannot write {path}: {error.strerror or error}") from error
