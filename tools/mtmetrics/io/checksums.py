"""Checksums of files; and safetensors files of equal content that are equal byte for byte."""

import functools
import hashlib
import json
import os
from pathlib import Path


def sha256_file(path: str | Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal. Memory does not grow with the file."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def cached_sha256(path: str | Path) -> str:
    """Returns the SHA-256 of a file like `sha256_file`, but reads the file again only after its
    size or its modification time has changed."""
    file_stat = os.stat(path)
    return _sha256_by_stat(os.path.realpath(path), file_stat.st_size, file_stat.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _sha256_by_stat(path: str, size: int, mtime_ns: int) -> str:
    """Returns the SHA-256 of a file. Size and modification time only serve as keys of the cache."""
    return sha256_file(path)


def git_blob_sha1(data: bytes) -> str:
    """Returns git's hash of a file with this content, in hexadecimal: the SHA-1 of ``blob SIZE``, a
    zero byte, and the content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def git_blob_sha1_of_file(path: str | Path) -> str:
    """Returns git's hash of a file, see `git_blob_sha1`."""
    return git_blob_sha1(Path(path).read_bytes())


def with_sorted_metadata(data: bytes) -> bytes:
    """Returns a safetensors file with its metadata sorted.

    The library writes metadata in a different order each time. Sorted, equal content gives equal
    files and checksums.
    """
    # Layout: the size of the header in 8 bytes, the header as JSON, the tensors.
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    tensors = data[8 + size :]
    if "__metadata__" in header:
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    padding = b" " * (-len(text) % 8)  # tensors begin at a multiple of 8 bytes
    new_size = len(text) + len(padding)
    return new_size.to_bytes(8, "little") + text + padding + tensors
