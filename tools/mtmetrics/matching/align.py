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
    source_words, target_words = _word_means(sources), _word_means(targets)
    source_vectors: list[np.ndarray] = []
    target_vectors: list[np.ndarray] = []
    for source, target, pairs in zip(sources.index, targets.index, alignments, strict=True):
        for source_word, target_word in pairs:
            source_vectors.append(source_words[source, source_word])
            target_vectors.append(target_words[target, target_word])
    dim = sources.vectors.shape[1]
    return (
        np.array(source_vectors, dtype=np.float32).reshape(-1, dim),
        np.array(target_vectors, dtype=np.float32).reshape(-1, dim),
    )


def _word_means(tokens: PackedTokens) -> dict[tuple[int, int], np.ndarray]:
    """Returns (text, word) -> the (d,) mean vector of its pieces."""
    tokens = tokens.select(tokens.word_positions >= 0)
    if not len(tokens.vectors):
        return {}
    text = np.repeat(np.arange(len(tokens.lengths)), tokens.lengths)
    # Pieces of a word stand together.
    begins_word = (np.diff(text) != 0) | (np.diff(tokens.word_positions) != 0)
    begins = np.flatnonzero(np.append(True, begins_word))
    piece_counts = np.diff(np.append(begins, len(text)))
    means = np.add.reduceat(tokens.vectors, begins, axis=0) / piece_counts[:, None]
    words = zip(text[begins].tolist(), tokens.word_positions[begins].tolist(), strict=True)
    return dict(zip(words, means, strict=True))
