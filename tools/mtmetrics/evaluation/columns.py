"""Columns of numbers side by side, where some values are missing."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.errors import InputError

Numbers = np.ndarray | Sequence[float | None]


class Columns(NamedTuple):
    """The positions at which no column has a missing value.

    Attributes:
        values: name -> (k,) float64 values at those positions.
        kept: (n,) where they are.
    """

    values: dict[str, np.ndarray]
    kept: np.ndarray

    @property
    def left_out(self) -> int:
        """Number of positions at which a value is missing."""
        return int(len(self.kept) - self.kept.sum())

    @property
    def not_finite(self) -> str | None:
        """Says which column holds values that are not finite, and where; None where all are finite."""
        for name, column in self.values.items():
            bad = np.flatnonzero(~np.isfinite(column))
            if bad.size:
                return f"the {name} hold {bad.size} values that are not finite, the first at index {np.flatnonzero(self.kept)[bad[0]]}"
        return None


def complete(columns: Mapping[str, Numbers]) -> Columns:
    """Leaves out the positions at which a column has None; NaN is a value like others.

    Args:
        columns: name, for messages -> (n,) numbers or None.

    Raises:
        InputError: the columns are not vectors of numbers of one length.
    """
    values = {name: _floats(name, column) for name, column in columns.items()}
    shapes = [column.shape for column in values.values()]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise InputError(
            f"{' and '.join(values)} must be vectors of one length, got the shapes {' and '.join(map(str, shapes))}"
        )
    kept = np.ones(shapes[0], dtype=bool)
    for column in columns.values():
        if not (isinstance(column, np.ndarray) and column.dtype.kind in "fiub"):
            kept &= np.array([value is not None for value in column], dtype=bool)
    return Columns({name: column[kept] for name, column in values.items()}, kept)


def codes(name: str, labels: Sequence[Any] | np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Numbers 0, 1, ... that are equal where the labels are, in the order of first appearance.

    Args:
        name: of the labels, for messages.
        labels: (n,) hashable labels.
        kept: (n,) positions whose labels are wanted, k of them.

    Returns:
        (k,) integers.

    Raises:
        InputError: the labels are not as many as the positions, or one that is wanted is None.
    """
    if len(labels) != len(kept):
        raise InputError(f"{name}: one for each segment is needed, got {len(labels)} for {len(kept)} segments")
    numbers: dict[Any, int] = {}
    found = []
    for index in np.flatnonzero(kept):
        if labels[index] is None:
            raise InputError(f"{name}[{index}] is None: each segment needs one to be grouped")
        found.append(numbers.setdefault(labels[index], len(numbers)))
    return np.array(found, dtype=np.intp)


def _floats(name: str, column: Numbers) -> np.ndarray:
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: numbers or None are needed ({error})") from None
