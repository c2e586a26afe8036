"""Cross-lingual subword vectors by counting: which subwords occur in translations of the same sentence.

All parallel text is one table of subwords against sentences, where a sentence and its translations are one column
(the inverted index of Levy, Søgaard and Goldberg, 2017). Its positive pointwise mutual information, reduced by a
truncated singular value decomposition, gives translations similar vectors without any training.
"""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from mtmetrics.training.corpus import Pair, text_key


def pivot_columns(pairs: Sequence[Pair]) -> np.ndarray:
    """The column of every pair, `(n,)`: pairs that share a side, such as the English one, share the column."""
    columns: dict[tuple[str, str], int] = {}
    result = np.empty(len(pairs), dtype=np.int64)
    free = 0
    for number, pair in enumerate(pairs):
        source_language, _, target_language = pair.group.partition("-")
        source = (source_language, text_key(pair.source))
        target = (target_language.removesuffix(".words"), text_key(pair.target))
        column = columns.get(target)
        if column is None:
            column = columns.get(source)
        if column is None:
            column, free = free, free + 1
        columns.setdefault(target, column)
        columns.setdefault(source, column)
        result[number] = column
    return result


def count_table(sides: Sequence[tuple[np.ndarray, np.ndarray]], columns: np.ndarray, size: int) -> sparse.csr_matrix:
    """Subwords against columns, `(size, number of columns)`: 1 where the subword occurs in the sentence.

    Args:
        sides: `(token ids (T,), offsets (n + 1,))` of the sources and of the targets.
        columns: of every pair, `(n,)`, see `pivot_columns`.
        size: of the vocabulary.
    """
    width = int(columns.max()) + 1
    table = sparse.csr_matrix((size, width), dtype=np.float32)
    for ids, offsets in sides:
        owner = np.repeat(columns, np.diff(offsets))
        table += sparse.csr_matrix((np.ones(len(ids), dtype=np.float32), (ids, owner)), shape=(size, width))
    table.data[:] = 1.0
    return table


def ppmi(table: sparse.csr_matrix, smoothing: float = 0.75) -> sparse.csr_matrix:
    """Positive pointwise mutual information; column frequencies enter with the power `smoothing`."""
    rows = np.asarray(table.sum(axis=1)).ravel()
    columns = np.asarray(table.sum(axis=0)).ravel() ** smoothing
    total = columns.sum()
    result = table.tocoo()
    with np.errstate(divide="ignore"):
        data = np.log(result.data * total / (rows[result.row] * columns[result.col]))
    result = sparse.csr_matrix((np.maximum(data, 0).astype(np.float32), (result.row, result.col)), shape=table.shape)
    result.eliminate_zeros()
    return result


def truncated_svd(matrix: sparse.csr_matrix, rank: int, seed: int, rounds: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Left singular vectors `(rows, rank)` and singular values `(rank,)` by randomised subspace iteration (Halko et
    al., 2011)."""
    rng = np.random.default_rng(seed)
    transposed = matrix.T.tocsr()
    extra = min(rank + 16, min(matrix.shape))
    basis = np.linalg.qr(matrix @ rng.standard_normal((matrix.shape[1], extra), dtype=np.float32))[0]
    for _ in range(rounds):
        basis = np.linalg.qr(matrix @ (transposed @ basis))[0]
    projected = transposed @ basis
    values, vectors = np.linalg.eigh(projected.T @ projected)
    order = np.argsort(values)[::-1][:rank]
    return basis @ vectors[:, order], np.sqrt(np.maximum(values[order], 0))


def subword_vectors(table: sparse.csr_matrix, width: int, seed: int, power: float = 0.5) -> np.ndarray:
    """Vectors of unit length for all subwords, `(size, width)`; unseen subwords get small random ones.

    Args:
        table: occurrence counts, see `count_table`.
        width: of the vectors.
        seed: of the decomposition.
        power: the singular values enter with this power.
    """
    left, values = truncated_svd(ppmi(table), min(width, min(table.shape) - 1), seed)
    vectors = (left * values**power).astype(np.float32)
    seen = np.asarray(table.sum(axis=1)).ravel() > 0
    vectors[seen] -= vectors[seen].mean(axis=0)
    vectors = np.pad(vectors, ((0, 0), (0, width - vectors.shape[1])))
    noise = np.random.default_rng(seed).standard_normal(vectors.shape).astype(np.float32)
    empty = np.linalg.norm(vectors, axis=1) < 1e-6
    vectors[empty] = noise[empty]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[empty] *= 0.5
    return vectors
