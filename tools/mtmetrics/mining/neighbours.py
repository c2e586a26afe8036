"""Nearest neighbours among sentence vectors: the pairs of sentences that are worth a closer look.

An `Index` holds the rows of one side. Where they are few, all are compared; else an inverted file of
faiss proposes candidates, which are compared exactly.
"""

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
# Queries that are compared, and rows that are added to an inverted file, at once.
_BLOCK, _ADDED_AT_ONCE = 512, 2**16
# Up to so many rows all are compared.
_FLAT_LIMIT = 200_000
# Rows of a shard.
SHARD = 2**20
# So many rows more than k are proposed: the rounding of a proposal must not decide between the k
# nearest rows and the next ones.
_SPARE = 8


class Neighbours(NamedTuple):
    """The k nearest rows of each of N queries, nearest first.

    Attributes:
        rows: (N, k) int64 numbers of the rows.
        values: (N, k) float64 distances or cosines.
    """

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
        nearest = _nearest(rows, distances, k)
        if not self._unit:
            return nearest
        # The squared distance of two unit vectors is 2 - 2 cos.
        return Neighbours(nearest.rows, 1.0 - nearest.values**2 / 2.0)

    def _prepared(self, rows: np.ndarray) -> np.ndarray:
        """(n, d) float32 rows, of unit length where cosines are measured."""
        if self._unit:
            norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
            rows = rows / np.maximum(norms, np.finfo(np.float32).tiny)
        return np.ascontiguousarray(rows, dtype=np.float32)

    def _search(self, queries: np.ndarray, shard: slice, k: int) -> Neighbours:
        """The k nearest rows of a shard, by Euclidean distance, for each of (N, d) queries."""
        import faiss

        size = shard.stop - shard.start
        proposed = min(k + _SPARE if self._flat else 4 * k, size)
        if self._flat:
            base = self._prepared(self._base[shard])
            propose = functools.partial(faiss.knn, xb=base, k=proposed)
        else:
            index = faiss.read_index(str(self._file(shard)))
            propose = functools.partial(_propose, index, k=proposed)
        parts = []
        for block in blocks(len(queries), _BLOCK):
            _, proposed_rows = propose(queries[block])
            # Of equal values the lower number stands first, whatever the index prefers.
            rows = np.sort(proposed_rows, axis=1) + shard.start
            numbers, places = np.unique(rows, return_inverse=True)
            candidates = self._prepared(self._base[numbers])[places.reshape(rows.shape)]
            difference = (queries[block, None] - candidates).astype(np.float64)
            distances = np.sqrt(np.einsum("nkd,nkd->nk", difference, difference))
            parts.append(_nearest(rows, distances, k))
        return joined(parts)

    def _file(self, shard: slice) -> Path:
        """The inverted file of a shard."""
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
            rows = slice(shard.start + block.start, shard.start + block.stop)
            index.add(self._prepared(self._base[rows]))
        with atomic_path(self._file(shard)) as path:
            faiss.write_index(index, str(path))


def inverted_file_size(rows: int) -> tuple[int, int]:
    """The number of lists into which an inverted file sorts so many rows, and the number of lists
    that a query searches."""
    lists = round(4 * math.sqrt(rows))
    return lists, max(8, round(2 * math.sqrt(lists)))


def _nearest(rows: np.ndarray, distances: np.ndarray, k: int) -> Neighbours:
    """The k nearest of (N, m) rows at (N, m) distances; the first of equal ones."""
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    nearest_rows = np.take_along_axis(rows, order, axis=1)
    return Neighbours(nearest_rows, np.take_along_axis(distances, order, axis=1))


def _propose(
    index: "faiss.Index",
    queries: np.ndarray,
    k: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Values and numbers of the k rows that an inverted file proposes for each query, as `faiss.knn`
    returns them."""
    values, rows = index.search(queries, k)
    # The number -1 stands for a row that is missing: too few lists were searched.
    while (rows < 0).any():
        index.nprobe = min(2 * index.nprobe, index.nlist)
        values, rows = index.search(queries, k)
    return values, rows
