"""Cosines of sentence vectors and Sentence Mover's Distance, by hand."""

import numpy as np
import pytest
from helpers import packed

from mtmetrics.matching.pairs import cosines, sentence_mover_distances


def test_cosines_of_rows_of_any_length() -> None:
    first = np.array([[3, 4], [1, 0], [2, 0], [0, 0]], dtype=np.float32)
    second = np.array([[30, 40], [0, 5], [-1, 0], [1, 1]], dtype=np.float32)
    assert cosines(first, second) == pytest.approx([1, 0, -1, np.nan], nan_ok=True)


def test_sentence_mover_distance_is_the_distance_of_the_means() -> None:
    sources = packed([np.array([[0, 0], [2, 0]]), np.zeros((0, 2))], index=[0, 0, 1])
    targets = packed([np.array([[1, 7]]), np.array([[4, 4]])], index=[0, 1, 1])
    assert sentence_mover_distances(sources, targets) == pytest.approx([7, 5, np.nan], nan_ok=True)
