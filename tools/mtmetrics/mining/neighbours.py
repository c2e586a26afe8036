"""Nearest neighbours among sentence vectors: which pairs of sentences are worth a closer look."""

import functools
import math
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from mtmetrics.checks import choice, positive
from mtmetrics.io.atomic import atomic_path, make_folder
from mtmetrics.mining.sides import MapTasks, Rows, blocks

if TYPE_CHECKING:
    import faiss

VectorDistance = Literal["euclidean", "cosine"]
_BLOCK, _ADDED_AT_ONCE = 512, 2**16
_FLAT_LIMIT = 200_000
SHARD = 2**20
# More than k rows are proposed, so that the rounding of the proposal does not decide which k they
# are.
_SPARE = 8


class Neighbours(NamedTuple):
    """For each query its k nearest rows, nearest first: (N, k) int64 numbers, (N, k) float64
    distances or cosines."""

    rows: np.ndarray
    values: np.ndarray


def joined(parts: Iterable[Neighbours]) -> Neighbours:
    """The neighbours of several blocks of queries, one after the other."""
    rows, values = zip(*parts, strict=True)
    return Neighbours(np.concatenate(rows), np.concatenate(values))


class Index:
    """The rows among which neighbours are looked for, shard by shard: one of them at a time is in
    memory.

    Up to `flat_limit` rows all are compared. Beyond it an inverted file of 8-bit codes for each
    shard proposes four times as many rows as are wanted, and their exact values decide (a neighbour
    may be missed, but no value is approximate).

    Args:
        base: (M, d) rows, at least one; inverted files lie in their folder, else in one that
            vanishes with the index.
        measure: Euclidean distance, or cosine (larger is nearer).
        flat_limit: rows up to which all are compared.
        shard: rows per shard.
        run: makes the inverted files, as `map` does.

    Raises:
        InputError: an unknown measure.
        MTMetricsError: an inverted file cannot be written.
    """

    def __init__(
        self,
        base: np.ndarray | Rows,
        *,
        measure: VectorDistance = "euclidean",
        flat_limit: int = _FLAT_LIMIT,
        shard: int = SHARD,
        run: MapTasks = map,
    ) -> None:
        self._base = base if isinstance(base, Rows) else Rows([base])
        self._unit = choice("measure", measure, ("euclidean", "cosine")) == "cosine"
        shards = math.ceil(len(base) / shard)
        self._shards = list(blocks(len(base), math.ceil(len(base) / shards)))
        self._flat = len(base) <= flat_limit
        if not self._flat:
            self._folder = self._base.folder
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp())
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            make_folder(self._folder)
            list(run(self._make, self._shards))

    def nearest(self, queries: np.ndarray, k: int) -> Neighbours:
        """The k nearest rows, or all where there are fewer, for each of (N, d) float32 queries; of
        equal ones the lower number first. An InputError says that `k` is below 1."""
        k = min(positive("k", k), len(self._base))
        queries = self._prepared(queries)
        parts = [self._search(queries, shard, k) for shard in self._shards]
        rows = np.concatenate([part.rows for part in parts], axis=1)
        distances = np.concatenate([part.values for part in parts], axis=1)
        nearest = _best(rows, distances, k)
        if not self._unit:
            return nearest
        # The squared distance of two unit vectors is 2 - 2 cos.
        return Neighbours(nearest.rows, 1.0 - nearest.values**2 / 2.0)

    def _prepared(self, rows: np.ndarray) -> np.ndarray:
        if self._unit:
            norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
            rows = rows / np.maximum(norms, np.finfo(np.float32).tiny)
        return np.ascontiguousarray(rows, dtype=np.float32)

    def _search(self, queries: np.ndarray, shard: slice, k: int) -> Neighbours:
        import faiss

        size = shard.stop - shard.start
        wanted = min(k + _SPARE if self._flat else 4 * k, size)
        if self._flat:
            base = self._prepared(self._base[shard])
            propose = functools.partial(faiss.knn, xb=base, k=wanted)
        else:
            propose = functools.partial(
                _propose,
                faiss.read_index(str(self._file(shard))),
                wanted=wanted,
            )
        parts = []
        for block in blocks(len(queries), _BLOCK):
            # Of equal values the lower number stands first, whatever the index prefers.
            rows = np.sort(propose(queries[block])[1], axis=1) + shard.start
            numbers, places = np.unique(rows, return_inverse=True)
            candidates = self._prepared(self._base[numbers])[places.reshape(rows.shape)]
            difference = (queries[block, None] - candidates).astype(np.float64)
            distances = np.sqrt(np.einsum("nkd,nkd->nk", difference, difference))
            parts.append(_best(rows, distances, k))
        return joined(parts)

    def _file(self, shard: slice) -> Path:
        return self._folder / f"inverted-{shard.start}-{shard.stop}.faiss"

    def _make(self, shard: slice) -> None:
        """Makes the inverted file of a shard."""
        import faiss

        if self._file(shard).exists():
            return
        size = shard.stop - shard.start
        lists, probes = inverted_file_size(size)
        index = faiss.index_factory(self._base.shape[1], f"IVF{lists},SQ8")
        step = max(1, size // (64 * lists))
        index.train(self._prepared(self._base[shard.start : shard.stop : step]))
        index.nprobe = probes
        for block in blocks(size, _ADDED_AT_ONCE):
            index.add(
                self._prepared(self._base[shard.start + block.start : shard.start + block.stop])
            )
        with atomic_path(self._file(shard)) as path:
            faiss.write_index(index, str(path))


def inverted_file_size(rows: int) -> tuple[int, int]:
    """The number of lists into which an inverted file sorts so many rows, and the number of lists
    that a query searches."""
    lists = round(4 * math.sqrt(rows))
    return lists, max(8, round(2 * math.sqrt(lists)))


def _best(rows: np.ndarray, distances: np.ndarray, k: int) -> Neighbours:
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return Neighbours(
        np.take_along_axis(rows, order, axis=1), np.take_along_axis(distances, order, axis=1)
    )


def _propose(
    index: "faiss.Index",
    queries: np.ndarray,
    wanted: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Values and numbers of the rows that an inverted file proposes, as `faiss.knn` returns them."""
    values, rows = index.search(queries, wanted)
    while (rows < 0).any():
        index.nprobe = min(2 * index.nprobe, index.nlist)
        values, rows = index.search(queries, wanted)
    return values, rows
