"""Word Mover's Distance of pairs of texts, exact or partial as published, and its lower bounds
(Kusner et al., 2015)."""

import functools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from mtmetrics.errors import MTMetricsError
from mtmetrics.matching.pairs import both_filled, masses, pair_values
from mtmetrics.models.packed import PackedTokens

Distance = Literal["sqeuclidean", "euclidean", "cosine"]
DISTANCES: tuple[Distance, ...] = ("sqeuclidean", "euclidean", "cosine")
_MAX_ITERATIONS = 1_000_000
# Of partial transport: what a mass of 1 is in the old solver's integers, what the published code
# adds to each mass, and what is less than any flow.
_FACTOR = 1_000_000
_ADDED = 1e-9
_NOISE = 1e-12


def optimal_flow(
    cost: np.ndarray, source: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, float]:
    """Exact earth mover's distance by POT's compiled network simplex: the (n, m) flow and its cost.

    ``min_F sum_ij C_ij F_ij`` subject to ``F 1 = source``, ``F' 1 = target`` (Sec. 3.1 of Zhao et
    al., 2020). Calls the compiled function itself: the checks and conversions of ``ot.emd`` take
    longer than a sentence pair does.

    Args:
        cost: (n, m) float64, C-contiguous.
        source: (n,) float64 masses.
        target: (m,) float64 masses of the same sum.

    Raises:
        MTMetricsError: the solver found no optimum (masses of unequal sums, for example).
    """
    flow, value, _, _, code = _solver()(source, target, cost, _MAX_ITERATIONS, 1)
    if code != 1:
        raise MTMetricsError(
            f"optimal transport of a {cost.shape[0]} x {cost.shape[1]} problem failed (code {code})"
        )
    return flow, value


@functools.cache
def _solver() -> Any:
    from mtmetrics.matching.pot import emd_c

    return emd_c


def cost_matrix(x: np.ndarray, y: np.ndarray, distance: Distance) -> np.ndarray:
    """(n, m) float64 distances between the L2-normalised rows of (n, d) `x` and (m, d) `y`.

    ``sqeuclidean`` is ``2 - 2 cos`` (0 to 4), ``cosine`` half of it, ``euclidean`` its root (0 to
    2), taken of float64 products: in float32 the distance of equal vectors would come out near
    3e-4, as it does in the published code."""
    if distance == "euclidean":
        x, y = _unit64(x), _unit64(y)
    scale = 1.0 if distance == "cosine" else 2.0
    cost = (x @ y.T).astype(np.float64, copy=False)
    np.multiply(cost, -scale, out=cost)
    cost += scale
    np.maximum(cost, 0.0, out=cost)
    return np.sqrt(cost, out=cost) if distance == "euclidean" else cost


def _unit64(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)


def euclidean_distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n, m) float64 Euclidean distances, of float64 products, between the rows of (n, d) `x` and
    (m, d) `y` of any length."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    squared = x @ y.T
    np.multiply(squared, -2.0, out=squared)
    squared += np.einsum("ij,ij->i", x, x)[:, None]
    squared += np.einsum("ij,ij->i", y, y)
    return np.sqrt(np.maximum(squared, 0.0, out=squared), out=squared)


def word_mover_distances(
    sources: PackedTokens,
    targets: PackedTokens,
    distance: Distance | Callable[[np.ndarray, np.ndarray], np.ndarray] = "sqeuclidean",
    *,
    transport: Callable[
        [np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, float]
    ] = optimal_flow,
    workers: int = 1,
) -> np.ndarray:
    """(N,) Word Mover's Distances of pairs of texts; NaN where a side has no tokens, or none with a
    weight.

    Args:
        sources: packed tokens or n-grams; input i is paired with input i of `targets`. Named
            distances need them L2-normalised.
        targets: the other side.
        distance: a name, see `cost_matrix`, or a function of two matrices of vectors, such as
            `euclidean_distances`.
        transport: what turns cost and masses into flow and value; `optimal_flow` or a partial one.
        workers: threads that share the pairs; the solver of POT leaves the interpreter to others
            while it computes.

    Raises:
        MTMetricsError: as `optimal_flow`.
    """
    costs = distance if callable(distance) else functools.partial(cost_matrix, distance=distance)

    def distance_of(
        x: np.ndarray, x_masses: np.ndarray, y: np.ndarray, y_masses: np.ndarray
    ) -> float:
        _, total = transport(costs(x, y), x_masses, y_masses)
        return total

    weighted = both_filled(sources, targets, lambda side: side.weights)
    return pair_values(distance_of, sources, targets, weighted, workers)[0]


def drop_small_flows(flow: np.ndarray, rate: float) -> np.ndarray:
    """Removes the flows of a plan that are smaller than the k-th smallest, ``k = max(int(count *
    rate), 1)``.

    The removed mass is not given back, so a distance can only fall; nothing is removed where all
    flows are equal. Published code of XMoverScore (``dropout_rate``): it sorts by mass, not by
    distance."""
    present = np.sort(flow[flow > _NOISE])
    smallest = present[min(max(int(len(present) * rate), 1), len(present)) - 1]
    # Equal flows differ by float noise, which must not decide.
    return np.where(flow < smallest - _NOISE, 0.0, flow)


class RoundedPartialTransport:
    """Partial transport on integer weights and costs, as the solver behind the published numbers
    rounded them.

    Masses become ``floor(x * 1e6 + 0.5)``, costs likewise relative to the largest cost; a row or
    column of zero cost takes up the difference of the rounded totals. Rounding leaves crumbs of
    1e-6 that count as flows, which is what makes this stable where the same rule on an exact plan
    is not. Published values are reproducible only so far: where several integer plans are optimal
    (about 2.5 % of the pairs), the old solver may have chosen another one."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(
        self, cost: np.ndarray, source: np.ndarray, target: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """The (n, m) flow that is left, and its cost at the unrounded distances."""
        # The published code adds 1e-9 to all masses, those of the other side's rows among them;
        # that decides halves, such as 1e6 / 128.
        total = 1.0 + _ADDED * (len(source) + len(target))
        supply, demand = (
            np.floor((mass + _ADDED) / total * _FACTOR + 0.5) for mass in (source, target)
        )
        if supply.sum() < demand.sum():
            # The heavier side first, like the old solver, so that swapping the sides changes
            # nothing.
            flow, value = self(np.ascontiguousarray(cost.T), target, source)
            return flow.T, value
        highest = cost.max()
        rounded = np.zeros_like(cost)
        if highest > 0:
            rounded = np.floor(cost * (_FACTOR / highest) + 0.5)
        demand = np.append(demand, supply.sum() - demand.sum())
        rounded = np.hstack([rounded, np.zeros((len(supply), 1))])
        flow = np.rint(optimal_flow(rounded, supply, demand)[0])[:, :-1] / _FACTOR
        flow = drop_small_flows(flow, self.rate)
        return flow, float((flow * cost).sum())


def centroids(tokens: PackedTokens) -> np.ndarray:
    """(S, d) float32 mean vector of each text, weighted; zeros where a text has no tokens, or none
    with a weight.

    The distance of two centroids is the word centroid distance (WCD). By Jensen's inequality it is
    a lower bound: Euclidean of the transport with ``euclidean`` costs, squared of that with
    ``sqeuclidean`` costs, half of the square of that with ``cosine`` costs."""
    weighted = tokens.map_vectors(
        lambda vectors: vectors * np.nan_to_num(masses(tokens)).astype(np.float32)[:, None]
    )
    return weighted.means() * weighted.lengths[:, None].astype(np.float32)


def relaxed_distances(
    cost: np.ndarray, source: np.ndarray, target: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """(k,) relaxed Word Mover's Distances (RWMD, Sec. 4) of one text to k others, tightened; at
    most the exact distances.

    RWMD sends all mass of a token to its nearest partner, so that only one side's masses are
    respected; the larger value of the two directions counts. These nearest costs are half of a
    solution of the dual problem: the other side may still charge the smallest cost that is left
    when they are taken off, so the bound only rises.

    Args:
        cost: (n, M) costs between the tokens of the text and those of all the others, one text
            after the other.
        source: (n,) masses of the text.
        target: (M,) masses of the others, of sum 1 each.
        starts: (k,) first column of each of the others, ascending; none of them is empty.
    """
    sizes = np.diff(np.append(starts, cost.shape[1]))
    by_row = np.minimum.reduceat(cost, starts, axis=1)
    by_column = cost.min(axis=0)
    left_by_rows = (cost - np.repeat(by_row, sizes, axis=1)).min(axis=0)
    left_by_columns = np.minimum.reduceat(cost - by_column, starts, axis=1)
    rows_first = source @ by_row + np.add.reduceat(left_by_rows * target, starts)
    columns_first = np.add.reduceat(by_column * target, starts) + source @ left_by_columns
    return np.maximum(rows_first, columns_first)
