"""Transport against values worked out by hand, against POT's public function, and under its
symmetries."""

import numpy as np
import ot
import pytest
from helpers import packed
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.errors import MTMetricsError
from mtmetrics.matching.transport import (
    DISTANCES,
    RoundedPartialTransport,
    centroids,
    cost_matrix,
    drop_small_flows,
    euclidean_distances,
    optimal_flow,
    relaxed_distances,
    word_mover_distances,
)
from mtmetrics.models.packed import PackedTokens


def pack(texts: list[np.ndarray], weights: list[float] | None = None) -> PackedTokens:
    return packed(texts, weights=weights).normalized()


def random_problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    n, m = generator.integers(1, 12, 2)
    source, target = generator.random(n) + 0.01, generator.random(m) + 0.01
    return generator.random((n, m)), source / source.sum(), target / target.sum()


def random_texts(count: int, seed: int) -> list[list[np.ndarray]]:
    generator = np.random.default_rng(seed)
    return [
        [generator.normal(size=(generator.integers(0, 15), 8)) for _ in range(count)]
        for _ in range(2)
    ]


def test_moves_mass_by_hand() -> None:
    # Two units of 1/2 against three of 1/3: the cheap cells take what they can, the rest pays 1.
    cost = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    flow, value = optimal_flow(cost, np.full(2, 1 / 2), np.full(3, 1 / 3))
    assert value == pytest.approx(1 / 3)
    assert flow[:, 2] == pytest.approx([1 / 6, 1 / 6])


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_agrees_with_pot_and_is_symmetric(seed: int) -> None:
    cost, source, target = random_problem(seed)
    flow, value = optimal_flow(cost, source, target)
    assert value == pytest.approx(ot.emd2(source, target, cost), abs=1e-12)
    assert flow.sum(1) == pytest.approx(source)
    assert flow.sum(0) == pytest.approx(target)
    assert optimal_flow(np.ascontiguousarray(cost.T), target, source)[1] == pytest.approx(
        value, abs=1e-12
    )
    rows, columns = (
        np.random.default_rng(seed).permutation(len(side)) for side in (source, target)
    )
    shuffled = optimal_flow(
        np.ascontiguousarray(cost[rows][:, columns]), source[rows], target[columns]
    )[1]
    assert shuffled == pytest.approx(value, abs=1e-12)


def test_unequal_masses_are_an_error() -> None:
    with pytest.raises(MTMetricsError, match="2 x 2 problem failed"):
        optimal_flow(np.eye(2), np.full(2, 0.5), np.array([0.9, 0.3]))


def test_distances_of_equal_orthogonal_and_opposite_vectors() -> None:
    x, y = (
        np.array([[1.0, 0.0]], dtype=np.float32),
        np.array([[1, 0], [0, 1], [-1, 0]], dtype=np.float32),
    )
    assert cost_matrix(x, y, "sqeuclidean")[0] == pytest.approx([0, 2, 4])
    assert cost_matrix(x, y, "euclidean")[0] == pytest.approx([0, 2**0.5, 2])
    assert cost_matrix(x, y, "cosine")[0] == pytest.approx([0, 1, 2])


def test_equal_vectors_have_no_euclidean_distance() -> None:
    # float32 products would give about 3e-4 here.
    vectors = pack([np.random.default_rng(0).normal(size=(20, 768))]).vectors
    assert np.diag(cost_matrix(vectors, vectors, "euclidean")).max() < 1e-7


def test_euclidean_distances_of_vectors_of_any_length() -> None:
    x, y = (
        np.array([[0, 0], [3, 4]], dtype=np.float32),
        np.array([[3, 4], [3, 0], [6, 8]], dtype=np.float32),
    )
    assert euclidean_distances(x, y) == pytest.approx(np.array([[5, 3, 10], [0, 4, 5]]))
    generator = np.random.default_rng(0)
    long = 20 * generator.normal(size=(9, 300)).astype(np.float32)
    assert np.diag(euclidean_distances(long, long)).max() < 1e-4
    # The longest way is 10 for one half; the other half stays.
    texts = pack([np.eye(2)]), pack([np.eye(2)[:1]])
    stretched = [text.map_vectors(lambda vectors: 10 * vectors) for text in texts]
    assert word_mover_distances(*stretched, euclidean_distances) == pytest.approx([10 * 2**0.5 / 2])


@pytest.mark.parametrize("distance", DISTANCES)
def test_order_and_duplicates_change_nothing(distance: str) -> None:
    generator = np.random.default_rng(3)
    left, right = random_texts(150, 3)
    one = word_mover_distances(pack(left), pack(right), distance)
    order = generator.permutation(150)
    again = word_mover_distances(
        pack([left[i] for i in order]), pack([right[i] for i in order]), distance
    )
    assert np.array_equal(again, one[order], equal_nan=True)
    swapped = word_mover_distances(pack(right), pack(left), distance)
    assert swapped == pytest.approx(one, abs=1e-6, nan_ok=True)


def test_threads_change_nothing() -> None:
    sides = [pack(texts) for texts in random_texts(120, 4)]
    ways = [(distance, optimal_flow) for distance in (*DISTANCES, euclidean_distances)]
    ways.append(("euclidean", RoundedPartialTransport(0.3)))
    for distance, transport in ways:
        alone, shared = (
            word_mover_distances(*sides, distance, transport=transport, workers=workers)
            for workers in (1, 3)
        )
        assert np.array_equal(shared, alone, equal_nan=True)
        assert np.isnan(alone).any()


def test_weights_shift_mass_and_empty_sides_are_nan() -> None:
    x, y = np.eye(2), np.eye(2)[:1]
    plain = word_mover_distances(pack([x]), pack([y]))
    weighted = word_mover_distances(pack([x], [3.0, 1.0]), pack([y]))
    assert plain == pytest.approx([1.0])
    assert weighted == pytest.approx([0.5])
    assert np.isnan(word_mover_distances(pack([np.zeros((0, 2)), x]), pack([y, y]))).tolist() == [
        True,
        False,
    ]
    assert np.isnan(word_mover_distances(pack([x, np.zeros((0, 2))]), pack([y, y]))).tolist() == [
        False,
        True,
    ]
    assert np.isnan(word_mover_distances(pack([x], [0.0, 0.0]), pack([y]))).tolist() == [True]
    assert word_mover_distances(pack([x], [1.0, 0.0]), pack([y])) == pytest.approx([0.0])


def test_small_flows_are_dropped_strictly_below_the_kth() -> None:
    flow = np.array([[0.5, 0.1, 0.0], [0.0, 0.2, 0.2]])
    assert drop_small_flows(flow, 0.0).tolist() == flow.tolist()
    assert drop_small_flows(flow, 0.5).tolist() == [[0.5, 0.0, 0.0], [0.0, 0.2, 0.2]]
    assert drop_small_flows(flow, 1.0).tolist() == [[0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]
    equal = np.full((2, 2), 0.25)
    assert drop_small_flows(equal, 0.9).tolist() == equal.tolist()


@given(st.integers(0, 10**6), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_partial_transport_never_costs_more_and_rounding_is_small(seed: int, rate: float) -> None:
    cost, source, target = random_problem(seed)
    exact = optimal_flow(cost, source, target)[1]
    rounded = RoundedPartialTransport(0.0)(cost, source, target)[1]
    assert rounded == pytest.approx(exact, abs=2e-5)
    assert RoundedPartialTransport(rate)(cost, source, target)[1] <= rounded + 1e-12


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_rounded_partial_transport_does_not_depend_on_the_order_of_the_sides(seed: int) -> None:
    cost, source, target = random_problem(seed)
    source, target = np.full(len(source), 1 / len(source)), np.full(len(target), 1 / len(target))
    if (
        len(
            {
                float(np.floor(len(side) * np.floor(1e6 / len(side) + 0.5)))
                for side in (source, target)
            }
        )
        == 1
    ):
        return  # equal totals: the old solver itself depends on the order then
    transport = RoundedPartialTransport(0.3)
    value = transport(cost, source, target)[1]
    assert transport(np.ascontiguousarray(cost.T), target, source)[1] == pytest.approx(
        value, abs=1e-12
    )


def test_halves_are_rounded_as_in_the_published_code() -> None:
    # 1e6 / 128 = 7812.5; the 1e-9 that is added to all masses, and to their total more often, makes
    # it a little less.
    flow, _ = RoundedPartialTransport(0.0)(np.ones((1, 128)), np.ones(1), np.full(128, 1 / 128))
    assert np.unique(flow) == pytest.approx([0.007812], abs=1e-9)


def test_relaxed_distance_by_hand() -> None:
    half = np.full(2, 0.5)
    # Rows go to column 0 for nothing, and column 1 costs at least 1: both directions together find
    # the exact 1/2.
    cost = np.array([[0.0, 1.0], [0.0, 2.0]])
    # By rows 0.5 (row 1); what is left for column 1 is 1, of which half its mass: plain relaxation
    # would stop at 0.5.
    both = np.array([[0.0, 1.0], [1.0, 2.0]])
    for matrix, exact in ((cost, 0.5), (both, 1.0)):
        assert relaxed_distances(matrix, half, half, np.array([0])) == pytest.approx([exact])
        assert optimal_flow(matrix, half, half)[1] == pytest.approx(exact)
    # Two texts of one token each: all mass goes there.
    assert relaxed_distances(cost, half, np.ones(2), np.array([0, 1])) == pytest.approx([0.0, 1.5])


@given(st.integers(0, 10**6), st.sampled_from(DISTANCES), st.floats(0.01, 5.0))
@settings(max_examples=80, deadline=None)
def test_bounds_lie_between_the_plain_relaxation_and_the_distance(
    seed: int, distance: str, spread: float
) -> None:
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
        assert {"euclidean": apart, "sqeuclidean": apart**2, "cosine": apart**2 / 2}[
            distance
        ] <= exact + 1e-5


def test_centroids_are_weighted_and_zero_for_nothing() -> None:
    texts = np.array([[1, 0], [0, 1]]), np.zeros((0, 2)), np.array([[0, -1]])
    assert centroids(packed(texts, weights=[3, 1, 7])) == pytest.approx(
        np.array([[0.75, 0.25], [0, 0], [0, -1]])
    )
