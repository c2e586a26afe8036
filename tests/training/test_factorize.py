"""Counted subword vectors: columns shared by translations, the decomposition, and that translations come out
similar."""

import numpy as np
import pytest
from scipy import sparse

from mtmetrics.training import factorize
from mtmetrics.training.corpus import Pair


def test_pairs_that_share_a_side_share_the_column() -> None:
    pairs = [
        Pair("das Haus", "the house", "x", "de-en"),
        Pair("talo", "The house!", "x", "fi-en"),
        Pair("der Hund", "the dog", "x", "de-en"),
        Pair("das Haus", "дом", "x", "de-ru"),
        Pair("the house", "дом 2", "x", "fi-ru"),
    ]
    assert factorize.pivot_columns(pairs).tolist() == [0, 0, 1, 0, 2]


def test_count_table_marks_occurrence_once() -> None:
    sources = (np.array([3, 3, 1]), np.array([0, 2, 3]))
    targets = (np.array([2, 3]), np.array([0, 1, 2]))
    table = factorize.count_table([sources, targets], np.array([0, 1]), 4).toarray()
    assert table.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_truncated_svd_agrees_with_the_exact_one() -> None:
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 90)) + 0.001 * rng.standard_normal((60, 90))
    left, values = factorize.truncated_svd(sparse.csr_matrix(dense.astype(np.float32)), 5, seed=1)
    exact_left, exact_values, _ = np.linalg.svd(dense, full_matrices=False)
    assert values == pytest.approx(exact_values[:5], rel=1e-3)
    assert np.abs((left * exact_left[:, :5]).sum(0)) == pytest.approx(np.ones(5), abs=1e-3)


def test_ppmi_by_hand() -> None:
    table = sparse.csr_matrix(np.array([[1, 1], [1, 0]], dtype=np.float32))
    result = factorize.ppmi(table, smoothing=1.0).toarray()
    # p(w, s) / (p(w) p(s)) with total 3: row sums 2 and 1, column sums 2 and 1.
    assert result == pytest.approx(np.array([[0, np.log(1.5)], [np.log(1.5), 0]]), abs=1e-6)


def test_translations_get_similar_vectors() -> None:
    rng = np.random.default_rng(3)
    words = 30
    sources, targets = [], []
    for _ in range(600):
        chosen = rng.choice(words, size=5, replace=False)
        sources.append(chosen)
        targets.append(rng.permutation(chosen) + words)
    offsets = np.arange(601) * 5
    sides = [(np.concatenate(sources), offsets), (np.concatenate(targets), offsets)]
    vectors = factorize.subword_vectors(factorize.count_table(sides, np.arange(600), 2 * words + 1), 24, seed=0)
    similarity = vectors[:words] @ vectors[words : 2 * words].T
    assert (similarity.argmax(1) == np.arange(words)).mean() == 1
    assert np.linalg.norm(vectors, axis=1)[:-1] == pytest.approx(np.ones(2 * words), abs=1e-5)
    assert np.linalg.norm(vectors[-1]) == pytest.approx(0.5, abs=1e-5)
