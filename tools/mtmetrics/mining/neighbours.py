"""Nearest neighbours among sentence vectors: which pairs of sentences are worth a closer look."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from mtmetrics.inputs import choice, positive

VectorDistance = Literal["euclidean", "cosine"]
Wrap = Callable[[Iterable[int]], Iterable[int]]
_BLOCK = 512
_FLAT_LIMIT = 200_000
_SHARD = 4_000_000


class Neighbours(NamedTuple):
    """For each query its k nearest rows, nearest first: (N, k) int64 numbers, (N, k) float64 distances or cosines."""

    rows: np.ndarray
    values: np.ndarray


def blocks(items: int, size: int, wrap: Wrap = iter) -> Iterator[slice]:
    """Slices of at most `size` items each; `wrap` wraps the iteration, for a progress bar."""
    for first in wrap(range(0, items, size)):
        yield slice(first, first + size)


def nearest(
    queries: np.ndarray,
    base: np.ndarray,
    k: int,
    *,
    measure: VectorDistance = "euclidean",
    flat_limit: int = _FLAT_LIMIT,
    shard: int = _SHARD,
    wrap: Wrap = iter,
) -> Neighbours:
    """The k nearest rows of `base` for each query.

    Up to `flat_limit` rows all are compared. Beyond it an inverted file of 8-bit codes proposes four times as many rows
    as are wanted, and their exact values decide (a neighbour may be missed, but no value is approximate). A base larger
    than a shard is searched in shards of like size, one after the other, so that one index at a time is in memory.

    Args:
        queries: (N, d) float32.
        base: (M, d) float32, at least one row.
        k: neighbours per query; M where there are fewer rows.
        measure: Euclidean distance, or cosine (larger is nearer).
        flat_limit: rows up to which all are compared.
        shard: rows per shard.
        wrap: wraps the iteration over blocks of queries of each shard, for a progress bar.

    Raises:
        InputError: `k` is below 1, or an unknown measure.
    """
    k = min(positive("k", k), len(base))
    unit = choice("measure", measure, ("euclidean", "cosine")) == "cosine"
    queries, base = (_unit(rows) if unit else np.ascontiguousarray(rows, dtype=np.float32) for rows in (queries, base))
    found: list[Neighbours] = []
    for rows in np.array_split(np.arange(len(base)), math.ceil(len(base) / shard)):
        neighbours = _search(queries, base[rows[0] : rows[-1] + 1], k, flat_limit, wrap)
        found.append(Neighbours(neighbours.rows + rows[0], neighbours.values))
    rows, values = _best(*(np.concatenate(parts, axis=1) for parts in zip(*found, strict=True)), k)
    return Neighbours(rows, 1.0 - values**2 / 2.0 if unit else values)


def _unit(rows: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return np.ascontiguousarray(rows / np.maximum(norms, np.finfo(np.float32).tiny), dtype=np.float32)


def _best(rows: np.ndarray, distances: np.ndarray, k: int) -> Neighbours:
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return Neighbours(np.take_along_axis(rows, order, axis=1), np.take_along_axis(distances, order, axis=1))


def _search(queries: np.ndarray, base: np.ndarray, k: int, flat_limit: int, wrap: Wrap) -> Neighbours:
    k = min(k, len(base))
    flat = len(base) <= flat_limit
    index = _index(base, flat)
    wanted = k if flat else min(4 * k, len(base))
    rows, values = np.zeros((len(queries), k), dtype=np.int64), np.zeros((len(queries), k))
    for block in blocks(len(queries), _BLOCK, wrap):
        # Of equal values the lower number stands first, whatever the index prefers.
        proposed = np.sort(_propose(index, queries[block], wanted), axis=1)
        apart = queries[block, None] - base[proposed]
        exact = np.sqrt(np.einsum("nkd,nkd->nk", apart, apart, dtype=np.float64))
        rows[block], values[block] = _best(proposed, exact, k)
    return Neighbours(rows, values)


def inverted_file_size(rows: int) -> tuple[int, int]:
    """Into how many lists an inverted file sorts so many rows, and how many of them a query looks into."""
    lists = round(4 * math.sqrt(rows))
    return lists, max(8, round(math.sqrt(lists)))


def _index(base: np.ndarray, flat: bool) -> Any:
    import faiss

    lists, probes = inverted_file_size(len(base))
    index = faiss.index_factory(base.shape[1], "Flat" if flat else f"IVF{lists},SQ8")
    if not flat:
        index.train(base[:: max(1, len(base) // (64 * lists))])
        index.nprobe = probes
    index.add(base)
    return index


def _propose(index: Any, queries: np.ndarray, wanted: int) -> np.ndarray:
    rows = index.search(queries, wanted)[1]
    while (rows < 0).any():
        index.nprobe = min(2 * index.nprobe, index.nlist)
        rows = index.search(queries, wanted)[1]
    return rows
