"""Agreement with people as a function of the weights of a score's parts (Fig. 4 of Belouadi and Eger, 2023)."""

import dataclasses
import itertools
from collections.abc import Mapping

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import COEFFICIENTS, Correlation, Numbers, mean
from mtmetrics.inputs import choice, positive


@dataclasses.dataclass(frozen=True)
class WeightGrid:
    """The agreement of weighted sums of parts, for all weights of a grid.

    Attributes:
        parts: names of the k parts.
        steps: into how many steps the way from 0 to 1 is cut.
        points: (m, k) weights, none below 0, which sum up to 1; later parts vary fastest.
        correlations: m correlations with human judgements.
    """

    parts: tuple[str, ...]
    steps: int
    points: np.ndarray
    correlations: list[Correlation]

    @property
    def best(self) -> int | None:
        """Index of the highest correlation, the first of equal ones; None where none is defined."""
        values = np.array([correlation.value for correlation in self.correlations])
        return None if np.isnan(values).all() else int(np.nanargmax(values))


def weight_grid(
    parts: Mapping[str, np.ndarray], human: Numbers, steps: int = 10, *, coefficient: str = "pearson"
) -> WeightGrid:
    """Correlates every weighted sum of parts with human judgements; nothing is scored again.

    The parts are summed up as they are, without scaling, as in Eq. 3 and 6 of Belouadi and Eger (2023). Since a
    correlation does not change with the scale of a score, weights that sum up to 1 stand for all proportions.

    Args:
        parts: two parts or more, k (n,) vectors, higher is better.
        human: (n,) human judgements; None leaves the segment out.
        steps: into how many steps the way from 0 to 1 is cut: with 10 a weight is 0.0, 0.1, ..., 1.0.
        coefficient: a key of `mtmetrics.evaluation.correlation.COEFFICIENTS`.

    Raises:
        InputError: fewer than two parts, or as the coefficient.
    """
    if len(parts) < 2:
        raise InputError(f"parts: {', '.join(parts) or 'none'} given; weights need at least two")
    correlate = COEFFICIENTS[choice("coefficient", coefficient, tuple(COEFFICIENTS))]
    points = simplex(len(parts), positive("steps", steps))
    columns = np.array([np.asarray(values, dtype=np.float64) for values in parts.values()])
    return WeightGrid(tuple(parts), steps, points, [correlate(point @ columns, human) for point in points])


def simplex(k: int, steps: int) -> np.ndarray:
    """(m, k) all ways to share 1 among k weights in whole steps, m = C(steps + k - 1, k - 1).

    Example:
        >>> simplex(2, 2).tolist()
        [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """
    others = (counts for counts in itertools.product(range(steps + 1), repeat=k - 1) if sum(counts) <= steps)
    return np.array([(steps - sum(counts), *counts) for counts in others]) / steps


def mean_grid(grids: Mapping[str, WeightGrid]) -> WeightGrid:
    """The mean over files of the correlation at each point; undefined where it is undefined for a file.

    Args:
        grids: name of the file -> its grid, of the same parts and steps.

    Raises:
        InputError: there is no file, or the grids are not of the same parts and steps.
    """
    if len({(grid.parts, grid.steps) for grid in grids.values()}) != 1:
        raise InputError("grids: one or several of the same parts and steps are needed for a mean")
    first = next(iter(grids.values()))
    means = [
        mean({name: grid.correlations[point] for name, grid in grids.items()}) for point in range(len(first.points))
    ]
    return dataclasses.replace(first, correlations=means)
