"""Similarity and distance of whole sentences: the cosine of sentence vectors, and the Sentence Mover's Distance."""

import numpy as np

from mtmetrics.models.packed import PackedTokens


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(N,) float64 cosines of the rows of two (N, d) matrices: the sentence semantic similarity of SentSim (Song et
    al., 2021, Eq. 6).

    NaN where a row is zero, as the mean of no token vectors is.
    """
    first, second = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = np.einsum("ij,ij->i", first, second)
    return np.divide(products, lengths, out=np.full(len(products), np.nan), where=lengths > 0)


def sentence_mover_distances(sources: PackedTokens, targets: PackedTokens) -> np.ndarray:
    """Sentence Mover's Distance of N pairs of texts: the Euclidean distance of their mean token vectors (Song et al.,
    2021, Eq. 9).

    Args:
        sources: packed tokens as they were encoded, not normalised, special tokens left out as in the published code.
        targets: the other side; input position i is paired with position i of `sources`.

    Returns:
        (N,) float64 distances; NaN where a side has no tokens.
    """
    means = [side.means().astype(np.float64)[side.index] for side in (sources, targets)]
    filled = (sources.lengths > 0)[sources.index] & (targets.lengths > 0)[targets.index]
    return np.where(filled, np.linalg.norm(means[0] - means[1], axis=1), np.nan)
