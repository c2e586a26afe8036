"""Word Mover's Distance: exact optimal transport between the tokens of pairs of texts."""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
from threadpoolctl import ThreadpoolController

from mtmetrics.encoders.packed import PackedTokens
from mtmetrics.errors import MTMetricsError

Distance = Literal["sqeuclidean", "euclidean", "cosine"]
DISTANCES: tuple[Distance, ...] = ("sqeuclidean", "euclidean", "cosine")
_MAX_ITERATIONS = 1_000_000
_PAIRS_PER_TASK = 64


def optimal_flow(cost: np.ndarray, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
    """Exact earth mover's distance by POT's compiled network simplex.

    ``min_F sum_ij C_ij F_ij`` subject to ``F 1 = source``, ``F' 1 = target`` (Sec. 3.1 of Zhao et al., 2020). Calls the compiled
    function itself: the checks and conversions of ``ot.emd`` take longer than a sentence pair does.

    Args:
        cost: (n, m) float64, C-contiguous.
        source: (n,) float64 masses.
        target: (m,) float64 masses of the same sum.

    Returns:
        The (n, m) flow and its cost.

    Raises:
        MTMetricsError: the solver found no optimum (masses of unequal sums, for example).
    """
    from ot.lp.emd_wrap import emd_c

    flow, value, _, _, code = emd_c(source, target, cost, _MAX_ITERATIONS, 1)
    if code != 1:
        raise MTMetricsError(f"optimal transport of a {cost.shape[0]} x {cost.shape[1]} problem failed (code {code})")
    return flow, value


def cost_matrix(x: np.ndarray, y: np.ndarray, distance: Distance) -> np.ndarray:
    """(n, m) float64 distances between the L2-normalised rows of (n, d) `x` and (m, d) `y`.

    ``sqeuclidean`` is ``2 - 2 cos`` (0 to 4), ``cosine`` half of it, ``euclidean`` its root (0 to 2). The root is taken of
    float64 products: in float32 the distance of equal vectors would come out near 3e-4, as it does in the published code.
    """
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


def word_mover_distances(
    sources: PackedTokens,
    targets: PackedTokens,
    distance: Distance = "sqeuclidean",
    *,
    transport: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, float]] = optimal_flow,
    threads: int = 1,
) -> np.ndarray:
    """Word Mover's Distance of N pairs of texts.

    Args:
        sources: packed, L2-normalised tokens or n-grams; input position i is paired with position i of `targets`.
        targets: the other side.
        distance: see `cost_matrix`.
        transport: what turns cost and masses into flow and value; `optimal_flow` or one of `mtmetrics.matching.partial`.
        threads: solver threads (the solver releases the GIL).

    Returns:
        (N,) float64 distances; NaN where a side has no tokens.

    Raises:
        MTMetricsError: as `optimal_flow`.
    """
    x_mass, y_mass = _masses(sources), _masses(targets)
    result = np.full(len(sources.index), np.nan)

    def solve(first: int) -> None:
        for pair in range(first, min(first + _PAIRS_PER_TASK, len(result))):
            x_rows, y_rows = sources.rows(sources.index[pair]), targets.rows(targets.index[pair])
            if x_rows.start == x_rows.stop or y_rows.start == y_rows.stop:
                continue
            cost = cost_matrix(sources.vectors[x_rows], targets.vectors[y_rows], distance)
            result[pair] = transport(cost, x_mass[x_rows], y_mass[y_rows])[1]

    tasks = range(0, len(result), _PAIRS_PER_TASK)
    # The products are too small to share out: threads of the linear algebra library would only compete with the solver's.
    with _linear_algebra().limit(limits=1, user_api="blas"):
        if threads == 1:
            for first in tasks:
                solve(first)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(solve, tasks))
    return result


@functools.cache
def _linear_algebra() -> ThreadpoolController:
    return ThreadpoolController()


def _masses(tokens: PackedTokens) -> np.ndarray:
    totals = np.add.reduceat(np.append(tokens.weights, 0.0), tokens.offsets[:-1]) if len(tokens.lengths) else np.zeros(0)
    return tokens.weights / np.repeat(totals, tokens.lengths)
