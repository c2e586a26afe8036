"""Correlation coefficients in many samples at once, all drawn from one pool of points."""

from collections.abc import Callable

import numpy as np

from mtmetrics.evaluation.correlation import unit

# Below this share of its size, a variance is rounding noise.
_NOISE = 1e-13
_SIGNS_AT_ONCE = 4_000_000


def sample_correlations(name: str, x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """A coefficient in each sample.

    A sample is given by how often it holds each point of the pool, so that no sample is ever written out: bootstrap
    resamples hold a point several times, permutations of two metrics hold one of the two points of each segment.

    Args:
        name: a key of `mtmetrics.evaluation.correlation.COEFFICIENTS`.
        x: (p,) first coordinates of the points, finite.
        y: (p,) second coordinates, finite.
        counts: (k, p) float64 whole numbers.

    Returns:
        (k,) coefficients in [-1, 1], NaN for samples of fewer than two points or with a constant side.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(_FORMULAS[name](x, y, counts), -1.0, 1.0)


def _pearson(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    centred = [unit(column) for column in (x, y)]
    if any(column is None for column in centred):
        return np.full(len(counts), np.nan)
    x, y = centred
    sums = counts @ np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    mean_x, mean_y, xx, yy, xy = sums[:, 1:].T / sums[:, 0]
    variances = [_signal(square - mean**2, square) for mean, square in ((mean_x, xx), (mean_y, yy))]
    return (xy - mean_x * mean_y) / np.sqrt(variances[0] * variances[1])


def _spearman(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    middle = (counts.sum(1, keepdims=True) + 1) / 2
    x, y = (_ranks(column, counts) - middle for column in (x, y))
    products = [np.einsum("kp,kp,kp->k", counts, *pair) for pair in ((x, y), (x, x), (y, y))]
    return products[0] / np.sqrt(products[1] * products[2])


def _kendall_b(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    size = counts.sum(1)
    pairs = size * (size - 1) / 2
    untied = [pairs - (held * (held - 1)).sum(1) / 2 for held in (_held(column, counts)[0] for column in (x, y))]
    return _concordance(x, y, counts) / np.sqrt(untied[0] * untied[1])


def _kendall_c(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    distinct = np.minimum(*((_held(column, counts)[0] > 0).sum(1) for column in (x, y)))
    return 2 * _concordance(x, y, counts) * distinct / (counts.sum(1) ** 2 * (distinct - 1))


_FORMULAS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall-b": _kendall_b,
    "kendall-c": _kendall_c,
}


def _signal(variance: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The variances, NaN where they are rounding noise."""
    return np.where(variance > _NOISE * size, variance, np.nan)


def _held(column: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How often each sample holds each of the u distinct values, in ascending order (k, u); and which of them each
    point has (p,)."""
    _, which, repeats = np.unique(column, return_inverse=True, return_counts=True)
    order = np.argsort(which, kind="stable")
    return np.add.reduceat(counts[:, order], np.cumsum(repeats) - repeats, axis=1), which


def _ranks(column: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(k, p) rank of each point within each sample, the mean rank where values are tied."""
    held, which = _held(column, counts)
    return (held.cumsum(1) - (held - 1) / 2)[:, which]


def _concordance(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Concordant less discordant pairs in each sample, from the signs of all pairs of the pool: quadratic in its
    size."""
    x, y = (np.unique(column, return_inverse=True)[1].astype(np.float32) for column in (x, y))
    single = counts.astype(np.float32)  # exact: the products are whole numbers far below 2^24
    total = np.zeros(len(counts))
    height = max(1, _SIGNS_AT_ONCE // len(x))
    for begin in range(0, len(x), height):
        rows = slice(begin, begin + height)
        signs = np.sign(x[rows, None] - x) * np.sign(y[rows, None] - y)
        total += np.einsum("kr,kr->k", counts[:, rows], single @ signs.T)
    return total / 2
