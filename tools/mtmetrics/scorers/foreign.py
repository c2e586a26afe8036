"""The base of metrics whose numbers others compute: which way is better, and the score where a side
is blank."""

from typing import ClassVar

import numpy as np

from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.results import PartScores


class ForeignMetric(Scorer):
    """Numbers of others, on a scale of their own.

    Attributes:
        lower_is_better: the numbers are turned round (multiplied by -1), and the signature says so.
        floor: the number of a segment of which a side is blank; whoever computes the others does
            not see it.
    """

    keeps_invisible: ClassVar[bool] = True
    lower_is_better: bool = False

    @property
    def _signs(self) -> list[str]:
        """The field of the signature that says that the numbers are turned round."""
        return ["sign:turned"] if self.lower_is_better else []

    def _turned(self, numbers: np.ndarray) -> PartScores:
        """The scores of the (n,) numbers of a system in one chunk."""
        return PartScores.plain(0.0 - numbers if self.lower_is_better else numbers)

    def floor_with_parts(self) -> tuple[float | None, dict[str, float]]:
        return float(self._turned(np.array([self.floor])).segments[0]), {}
