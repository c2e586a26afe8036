"""Several references per segment: each is compared by itself, and the best one counts."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def unfolded(others: Sequence[Any]) -> tuple[list[str], np.ndarray | None]:
    """Lists of references as one list of texts.

    Args:
        others: n strings, or n lists of at least one string.

    Returns:
        m texts, and for each (m,) the number of its segment; None where every segment has a string.
    """
    if all(isinstance(text, str) for text in others):
        return list(others), None
    owners = np.repeat(np.arange(len(others)), [len(texts) for texts in others])
    return [text for texts in others for text in texts], owners


def best_of_each(scores: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(n,) row of the highest score of each segment, the first of equal ones.

    Args:
        scores: (m,) scores without NaN.
        owners: (m,) number of the segment, 0 to n - 1, ascending.
    """
    order = np.lexsort((-scores, owners))
    return order[np.flatnonzero(np.diff(owners[order], prepend=-1))]
