"""Lower bounds of the Word Mover's Distance, which show without solving it that a text is not the closest (Kusner et
al., 2015, Sec. 4)."""

import numpy as np

from mtmetrics.matching.pairs import masses
from mtmetrics.models.packed import PackedTokens


def centroids(tokens: PackedTokens) -> np.ndarray:
    """(S, d) float32 mean vector of each text, weighted; zeros where a text has no tokens, or none with a weight.

    The distance of two centroids is the word centroid distance (WCD). By Jensen's inequality it is a lower bound:
    Euclidean of the transport with ``euclidean`` costs, squared of that with ``sqeuclidean`` costs, half of the square
    of that with ``cosine`` costs.
    """
    weighted = tokens.with_vectors(lambda vectors: vectors * np.nan_to_num(masses(tokens)).astype(np.float32)[:, None])
    return weighted.means() * weighted.lengths[:, None].astype(np.float32)


def relaxed_distances(cost: np.ndarray, source: np.ndarray, target: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Relaxed Word Mover's Distances (RWMD) of one text to k others, tightened; at most the exact distances, whatever
    the costs are.

    RWMD sends all mass of a token to its nearest partner, so that only one side's masses are respected; the larger
    value of the two directions counts. These nearest costs are half of a solution of the dual problem: the other side
    may still charge the smallest cost that is left when they are taken off, which is at least 0, so the bound only
    rises.

    Args:
        cost: (n, M) costs between the tokens of the text and those of all the others, one text after the other.
        source: (n,) masses of the text.
        target: (M,) masses of the others, of sum 1 each.
        starts: (k,) first column of each of the others, ascending; none of them is empty.

    Returns:
        (k,) float64 lower bounds.
    """
    sizes = np.diff(np.append(starts, cost.shape[1]))
    by_row = np.minimum.reduceat(cost, starts, axis=1)
    by_column = cost.min(axis=0)
    left_by_rows = (cost - np.repeat(by_row, sizes, axis=1)).min(axis=0)
    left_by_columns = np.minimum.reduceat(cost - by_column, starts, axis=1)
    rows_first = source @ by_row + np.add.reduceat(left_by_rows * target, starts)
    columns_first = np.add.reduceat(by_column * target, starts) + source @ left_by_columns
    return np.maximum(rows_first, columns_first)
