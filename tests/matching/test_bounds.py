"""Lower bounds of transport: values worked out by hand, and never above the exact distance."""

import numpy as np
import pytest
from helpers import packed
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.matching.bounds import centroids, relaxed_distances
from mtmetrics.matching.transport import DISTANCES, cost_matrix, optimal_flow


def test_relaxed_distance_by_hand() -> None:
    half = np.full(2, 0.5)
    # Rows go to column 0 for nothing, and column 1 costs at least 1: both directions together find the exact 1/2.
    cost = np.array([[0.0, 1.0], [0.0, 2.0]])
    # By rows 0.5 (row 1); what is left for column 1 is 1, of which half its mass: plain relaxation would stop at 0.5.
    both = np.array([[0.0, 1.0], [1.0, 2.0]])
    for matrix, exact in ((cost, 0.5), (both, 1.0)):
        assert relaxed_distances(matrix, half, half, np.array([0])) == pytest.approx([exact])
        assert optimal_flow(matrix, half, half)[1] == pytest.approx(exact)
    # Two texts of one token each: all mass goes there.
    assert relaxed_distances(cost, half, np.ones(2), np.array([0, 1])) == pytest.approx([0.0, 1.5])


@given(st.integers(0, 10**6), st.sampled_from(DISTANCES), st.floats(0.01, 5.0))
@settings(max_examples=80, deadline=None)
def test_bounds_lie_between_the_plain_relaxation_and_the_distance(seed: int, distance: str, spread: float) -> None:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 9, 6).tolist()
    # Texts of random unit vectors around a common one, randomly weighted.
    vectors = [np.eye(4)[0] + spread * generator.normal(size=(length, 4)) for length in lengths]
    tokens = packed(vectors, weights=generator.random(sum(lengths)) + 0.05).normalized()
    x = tokens.rows(0)
    source = tokens.weights[x] / tokens.weights[x].sum()
    rows = [tokens.rows(text) for text in range(1, 6)]
    target = np.concatenate([tokens.weights[row] / tokens.weights[row].sum() for row in rows])
    cost = cost_matrix(tokens.vectors[x], tokens.vectors[x.stop :], distance)
    starts = np.concatenate([[0], np.cumsum(lengths[1:-1])])
    bounds = relaxed_distances(cost, source, target, starts)
    means = centroids(tokens).astype(np.float64)
    for text, (start, length) in enumerate(zip(starts, lengths[1:], strict=True)):
        columns = slice(start, start + length)
        exact = optimal_flow(np.ascontiguousarray(cost[:, columns]), source, target[columns])[1]
        plain = max(source @ cost[:, columns].min(1), cost[:, columns].min(0) @ target[columns])
        assert plain - 1e-12 <= bounds[text] <= exact + 1e-9
        apart = np.linalg.norm(means[0] - means[text + 1])
        assert {"euclidean": apart, "sqeuclidean": apart**2, "cosine": apart**2 / 2}[distance] <= exact + 1e-5


def test_centroids_are_weighted_and_zero_for_nothing() -> None:
    texts = np.array([[1, 0], [0, 1]]), np.zeros((0, 2)), np.array([[0, -1]])
    assert centroids(packed(texts, weights=[3, 1, 7])) == pytest.approx(np.array([[0.75, 0.25], [0, 0], [0, -1]]))
