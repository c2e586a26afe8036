"""Partial transport: the published rule that drops small flows, on the integers of the solver behind it."""

import numpy as np

from mtmetrics.matching.transport import optimal_flow

_FACTOR = 1_000_000
_ADDED = 1e-9
_NOISE = 1e-12


def drop_small_flows(flow: np.ndarray, rate: float) -> np.ndarray:
    """Removes the flows that are smaller than the k-th smallest non-zero flow, ``k = max(int(count * rate), 1)``.

    The removed mass is not given back, so a distance can only fall; nothing is removed where all flows are equal.
    Published code of XMoverScore (``dropout_rate``): it sorts by mass, not by distance.

    Args:
        flow: (n, m) flows of at least 0.
        rate: share of flows to drop, 0 to 1.
    """
    present = np.sort(flow[flow > _NOISE])
    smallest = present[min(max(int(len(present) * rate), 1), len(present)) - 1]
    # Equal flows differ by float noise, which must not decide.
    return np.where(flow < smallest - _NOISE, 0.0, flow)


class RoundedPartialTransport:
    """Partial transport on integer weights and costs, as the solver behind the published numbers rounded them.

    Masses become ``floor(x * 1e6 + 0.5)``, costs likewise relative to the largest cost; a row or column of zero cost
    takes up the difference of the rounded totals. Rounding leaves crumbs of 1e-6 that count as flows, which is what
    makes this stable where the plain rule is not. Published values are reproducible only so far: where several integer
    plans are optimal (about 2.5 % of the pairs), the old solver may have chosen another one.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, cost: np.ndarray, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
        """The (n, m) flow that is left, and its cost at the unrounded distances."""
        # The published code adds 1e-9 to all masses, those of the other side's rows among them; that decides halves,
        # such as 1e6 / 128.
        total = 1.0 + _ADDED * (len(source) + len(target))
        supply, demand = (np.floor((mass + _ADDED) / total * _FACTOR + 0.5) for mass in (source, target))
        if supply.sum() < demand.sum():
            # The heavier side first, like the old solver, so that swapping the sides changes nothing.
            flow, value = self(np.ascontiguousarray(cost.T), target, source)
            return flow.T, value
        highest = cost.max()
        whole = np.floor(cost * (_FACTOR / highest) + 0.5) if highest > 0 else np.zeros_like(cost)
        demand = np.append(demand, supply.sum() - demand.sum())
        whole = np.hstack([whole, np.zeros((len(supply), 1))])
        flow = np.rint(optimal_flow(whole, supply, demand)[0])[:, :-1] / _FACTOR
        flow = drop_small_flows(flow, self.rate)
        return flow, float((flow * cost).sum())
