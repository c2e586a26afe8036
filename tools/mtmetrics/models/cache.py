"""Keeps encoded texts on disk for later runs."""

import contextlib
import hashlib
import json
import re
import sqlite3
import time
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.errors import MTMetricsError

_LAYOUT = 1
_PATIENCE_SECONDS = 60.0
# SQLite waits in C, deaf to Ctrl-C, so it waits in short naps.
_NAP_SECONDS = 0.5
_UNUSABLE = ("SQLITE_CANTOPEN", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_PERM", "SQLITE_READONLY")


class EncodedText(NamedTuple):
    """What an encoder knows of one text: (n, d) vectors, (n,) token ids, (n,) word numbers, and
    whether it was cut."""

    vectors: np.ndarray
    token_ids: np.ndarray
    words: np.ndarray
    truncated: bool


class ReadText(NamedTuple):
    """A text, or the words of one, for a model with several tokenizers; `reader` is the language of
    the one to use, None for the usual one."""

    text: str | tuple[str, ...]
    reader: str | None


class EmbeddingCache:
    """One SQLite file of encoded texts, shared by all runs, also simultaneous ones, that would
    compute the same vectors.

    A text is found by the sha256 of its exact characters. Its token ids are stored, so who can read
    the file can read the texts. The file grows without bound; it can be deleted whenever no run
    uses it. Where it cannot be made, read or written, or is damaged, an `MTMetricsError` is raised.

    Args:
        folder: made if it is not there.
        label: beginning of the file's name.
        identity: everything that the vectors depend on; the rest of the file's name is made from
            it.
        dim: width of the vectors.
    """

    def __init__(
        self, folder: str | Path, label: str, identity: Mapping[str, object], dim: int
    ) -> None:
        described = json.dumps({"layout": _LAYOUT, "dim": dim, **identity}, sort_keys=True)
        name = re.sub(r"[^\w.-]+", "_", label)[:60]
        self.path = (
            Path(folder).expanduser()
            / f"{name}-{hashlib.sha256(described.encode()).hexdigest()[:16]}.sqlite"
        )
        self._dim = dim
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise MTMetricsError(
                f"embedding cache {folder}: the folder cannot be made ({reason})"
            ) from None
        with self._transaction("BEGIN EXCLUSIVE") as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS identity (described TEXT NOT NULL)")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS texts (key BLOB NOT NULL UNIQUE, truncated INTEGER "
                "NOT NULL, tokens BLOB NOT NULL, checksum INTEGER NOT NULL, vectors BLOB NOT "
                "NULL)"
            )
            found = [row[0] for row in connection.execute("SELECT described FROM identity")]
            if not found:
                connection.execute("INSERT INTO identity VALUES (?)", (described,))
            elif found != [described]:
                raise self._damaged("it was made for other vectors")

    def find(self, keys: Iterable[Hashable]) -> dict[Hashable, EncodedText]:
        """Those of the texts (strings, or tuples of words) that are stored, without their vectors,
        which `vectors` reads."""
        found = {}
        with self._transaction("BEGIN") as connection:
            for key in keys:
                wanted = "SELECT truncated, tokens FROM texts WHERE key = ?"
                row = connection.execute(wanted, (_digest(key),)).fetchone()
                if row is not None:
                    if not isinstance(row[1], bytes) or len(row[1]) % 8:
                        raise self._damaged("the tokens of a text are cut")
                    ids, words = np.frombuffer(row[1], dtype="<i4").astype(np.int64).reshape(2, -1)
                    found[key] = EncodedText(
                        np.zeros((0, self._dim), dtype=np.float32), ids, words, bool(row[0])
                    )
        return found

    def vectors(self, keys: Iterable[Hashable]) -> Iterator[tuple[Hashable, np.ndarray]]:
        """Yields each text that `find` found with its (n, d) float32 vectors."""
        with self._transaction("BEGIN") as connection:
            for key in keys:
                digest = _digest(key)
                wanted = "SELECT truncated, tokens, vectors, checksum FROM texts WHERE key = ?"
                row = connection.execute(wanted, (digest,)).fetchone()
                if row is None or not self._intact(digest, *row):
                    raise self._damaged("a text is not what was stored")
                yield (
                    key,
                    np.frombuffer(row[2], dtype="<f4")
                    .reshape(-1, self._dim)
                    .astype(np.float32, copy=False),
                )

    def write(self, texts: Iterable[tuple[Hashable, EncodedText]]) -> None:
        """Stores texts, all of them or, if this fails or is interrupted, none; those that are
        stored already stay."""
        with self._transaction("BEGIN EXCLUSIVE") as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO texts VALUES (?, ?, ?, ?, ?)", map(_row, texts)
            )

    def _intact(
        self, digest: bytes, truncated: object, tokens: object, vectors: object, checksum: object
    ) -> bool:
        if not isinstance(tokens, bytes) or not isinstance(vectors, bytes):
            return False
        whole = len(vectors) * 2 == len(tokens) * self._dim
        return whole and _checksum(digest, truncated, tokens, vectors) == checksum

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction; none is kept, since threads and forked processes must
        not share one."""
        try:
            connection = sqlite3.connect(self.path, timeout=_NAP_SECONDS, isolation_level=None)
            with contextlib.closing(connection):
                _begin(connection, begin)
                yield connection
                connection.execute("COMMIT")  # without it, closing the connection undoes everything
        except UnicodeDecodeError:  # SQLite quotes what it finds in a damaged file, see below too
            raise self._damaged("unreadable names") from None
        except sqlite3.Error as error:
            name = _kind(error)
            if name.startswith("SQLITE_BUSY"):
                reason = (
                    f"another process has had it locked for {_PATIENCE_SECONDS:.0f} seconds; try "
                    "again"
                )
            elif name.startswith(_UNUSABLE):
                reason = f"cannot be read or written ({error}); make room or give permission there"
            else:
                raise self._damaged(str(error).encode("unicode_escape").decode()) from error
            raise MTMetricsError(
                f"embedding cache {self.path}: {reason}, or use another folder"
            ) from error

    def _damaged(self, reason: str) -> MTMetricsError:
        return MTMetricsError(
            f"embedding cache {self.path}: damaged ({reason}); delete this file and run again"
        )


def _begin(connection: sqlite3.Connection, begin: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            connection.execute(
                "PRAGMA page_size = 16384"
            )  # of a new file; a text fills many of the usual 4096
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(begin)
            # A reading transaction gets its lock with the first read.
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            return
        except sqlite3.OperationalError as error:
            if not _kind(error).startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _kind(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")  # errors of the Python module itself have none


def _row(text: tuple[Hashable, EncodedText]) -> tuple[bytes, int, bytes, int, np.ndarray]:
    digest, encoded = _digest(text[0]), text[1]
    tokens = np.stack([encoded.token_ids, encoded.words]).astype("<i4").tobytes()
    vectors = np.ascontiguousarray(encoded.vectors, dtype="<f4").reshape(-1)
    truncated = int(encoded.truncated)
    return digest, truncated, tokens, _checksum(digest, truncated, tokens, vectors), vectors


def _digest(key: Hashable) -> bytes:
    kind = {str: b"text", ReadText: b"read"}.get(type(key), b"words")
    exact = key if isinstance(key, str) else json.dumps(key)
    return hashlib.sha256(kind + b"\0" + exact.encode("utf-8", "surrogatepass")).digest()


def _checksum(digest: bytes, truncated: object, tokens: bytes, vectors: Any) -> int:
    checksum = 0
    for part in (digest, b"\1" if truncated else b"\0", tokens, vectors):
        checksum = zlib.crc32(part, checksum)
    return checksum
