"""The base of metrics whose numbers others compute: which way is better, and the score where a side
is blank."""

from typing import ClassVar

import numpy as np

from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.results import PartScores


class ForeignMetric(Scorer):
    """Numbers of others, on a scale of their own.

    Attributes:
        lower_is_better: whether lower numbers are better. If so, they are turned round (multiplied
            by -1), and the signature says so.
        floor: the number of a segment with a blank text, before it is turned round. The code that
            computes the other numbers does not get such segments.
    """

    keeps_invisible: ClassVar[bool] = True
    lower_is_better: bool = False

    @property
    def _signs(self) -> list[str]:
        """The field of the signature that says that the numbers are turned round; an empty list if
        they are not."""
        return ["sign:turned"] if self.lower_is_better else []

    def _turned(self, numbers: np.ndarray) -> PartScores:
        """Returns the (n,) numbers of a system as scores, turned round if lower ones are better."""
        # `-numbers` would make -0.0 of 0.
        return PartScores.plain(0.0 - numbers if self.lower_is_better else numbers)

    def floor_with_parts(self) -> tuple[float | None, dict[str, float]]:
        return float(self._turned(np.array([self.floor])).segments[0]), {}
