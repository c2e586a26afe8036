"""Cosines of sentence vectors and Sentence Mover's Distance, by hand."""

import numpy as np
import pytest

from mtmetrics.matching.sentences import cosines, sentence_mover_distances
from mtmetrics.models.packed import PackedTokens


def pack(texts: list[list[list[float]]], index: list[int]) -> PackedTokens:
    vectors = np.array([token for text in texts for token in text], dtype=np.float32)
    count = len(vectors)
    return PackedTokens(
        vectors=vectors,
        offsets=np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64),
        weights=np.ones(count),
        token_ids=np.zeros(count, dtype=np.int64),
        words=np.zeros(count, dtype=np.int64),
        index=np.array(index),
        truncated=np.zeros(len(texts), dtype=bool),
    )


def test_cosines_of_rows_of_any_length() -> None:
    first = np.array([[3, 4], [1, 0], [2, 0], [0, 0]], dtype=np.float32)
    second = np.array([[30, 40], [0, 5], [-1, 0], [1, 1]], dtype=np.float32)
    assert cosines(first, second) == pytest.approx([1, 0, -1, np.nan], nan_ok=True)


def test_sentence_mover_distance_is_the_distance_of_the_means() -> None:
    sources = pack([[[0, 0], [2, 0]], []], [0, 0, 1])
    targets = pack([[[1, 7]], [[4, 4]]], [0, 1, 1])
    assert sentence_mover_distances(sources, targets) == pytest.approx([7, 5, np.nan], nan_ok=True)
