"""Word alignment from contextual vectors, in the manner of awesome-align (Dou and Neubig, 2021)."""

import numpy as np
from scipy.special import softmax

from mtmetrics.models.packed import PackedTokens


def align_pieces(source: np.ndarray, target: np.ndarray, threshold: float = 1e-3) -> np.ndarray:
    """(k, 2) pairs of rows of (n, d) and (m, d) vectors whose softmax probability exceeds a
    threshold in both directions."""
    similarity = (source @ target.T).astype(np.float64)
    return np.argwhere(
        (softmax(similarity, axis=1) > threshold) & (softmax(similarity, axis=0) > threshold)
    )


def align_words(
    sources: PackedTokens, targets: PackedTokens, threshold: float = 1e-3
) -> list[list[tuple[int, int]]]:
    """Aligned words of N pairs of sentences: two words are aligned where any of their pieces are.

    Args:
        sources: packed tokens with word numbers; input i is paired with input i of `targets`.
        targets: the other side.
        threshold: see `align_pieces`.

    Returns:
        For each pair its sorted (source word, target word) positions; empty where a side has no
        words.
    """
    sources = sources.select(sources.word_positions >= 0)
    targets = targets.select(targets.word_positions >= 0)
    aligned: list[list[tuple[int, int]]] = []
    for source, target in zip(sources.index, targets.index, strict=True):
        x, y = sources.rows(source), targets.rows(target)
        if x.start == x.stop or y.start == y.stop:
            aligned.append([])
            continue
        pieces = align_pieces(sources.vectors[x], targets.vectors[y], threshold)
        words = zip(
            sources.word_positions[x][pieces[:, 0]].tolist(),
            targets.word_positions[y][pieces[:, 1]].tolist(),
            strict=True,
        )
        aligned.append(sorted(set(words)))
    return aligned


def word_pair_vectors(
    sources: PackedTokens, targets: PackedTokens, alignments: list[list[tuple[int, int]]]
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of aligned words, each the mean of its pieces: two (k, d) float32 matrices with a row
    per word pair.

    Args:
        sources: packed tokens with word numbers, of the layer to remap.
        targets: the other side.
        alignments: see `align_words`.
    """
    source_vectors: list[np.ndarray] = []
    target_vectors: list[np.ndarray] = []
    for source, target, pairs in zip(sources.index, targets.index, alignments, strict=True):
        for source_word, target_word in pairs:
            source_vectors.append(_word_mean(sources, source, source_word))
            target_vectors.append(_word_mean(targets, target, target_word))
    dim = sources.vectors.shape[1]
    return (
        np.array(source_vectors, dtype=np.float32).reshape(-1, dim),
        np.array(target_vectors, dtype=np.float32).reshape(-1, dim),
    )


def _word_mean(tokens: PackedTokens, text: int, word: int) -> np.ndarray:
    """Returns the (d,) mean vector of the pieces of a word."""
    rows = tokens.rows(text)
    vectors = tokens.vectors[rows][tokens.word_positions[rows] == word]
    # Not `mean`, which adds in another order: the maps that were fitted so far would differ by
    # rounding.
    return np.add.reduceat(vectors, [0])[0] / len(vectors)
