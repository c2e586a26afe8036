"""What agreement between scores and human judgements is measured by, and the judgements in the form that it needs."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import COEFFICIENTS, Correlation
from mtmetrics.evaluation.darr import darr_kendall
from mtmetrics.evaluation.grouping import correlate
from mtmetrics.evaluation.judged import JudgedSegments, JudgedSystems
from mtmetrics.evaluation.pairwise import soft_pairwise_accuracy, tie_calibrated_accuracy
from mtmetrics.inputs import choice


@dataclasses.dataclass(frozen=True)
class Judgements:
    """The human judgements of a file, without the rows that have none.

    Attributes:
        file: where they come from, as the user wrote it.
        lang_pair: such as ``"de-en"``.
        rows: (n,) int, where the judged rows stand among all rows of the file.
        human: (n,) float64.
        items: n names of source segments; None for judgements of whole systems.
        systems: n names of systems, None where a row has none.
        raw_human: n judgements on their original scale, None where a row has none; None where the file has none at all.
    """

    file: str
    lang_pair: str
    rows: np.ndarray
    human: np.ndarray
    items: list[str] | None
    systems: list[str | None]
    raw_human: list[float | None] | None = None

    def __len__(self) -> int:
        return len(self.human)

    @classmethod
    def of(cls, file: JudgedSegments | JudgedSystems) -> "Judgements":
        """The judgements of segments, or of whole systems in the order of their outputs."""
        return cls._of_systems(file) if isinstance(file, JudgedSystems) else cls._of_segments(file)

    @classmethod
    def _of_segments(cls, segments: JudgedSegments) -> "Judgements":
        rows = np.flatnonzero(segments.judged)
        raw = None
        if segments.raw_human is not None:
            raw = [None if np.isnan(value) else float(value) for value in segments.raw_human[rows]]
        items, systems = ([column[row] for row in rows] for column in (segments.items, segments.systems))
        return cls(segments.file, segments.lang_pair, rows, segments.human[rows], items, systems, raw)

    @classmethod
    def _of_systems(cls, systems: JudgedSystems) -> "Judgements":
        names: list[str | None] = list(systems.outputs)
        human = np.array([systems.human[name] for name in systems.outputs], dtype=np.float64)
        return cls(systems.file, systems.lang_pair, np.arange(len(names)), human, None, names)

    def take(self, values: Sequence[Any] | np.ndarray) -> list[Any]:
        """The values of the judged rows, of one value per row of the file."""
        return [values[row] for row in self.rows]


def _darr(scores: Sequence[float | None], judgements: Judgements) -> Correlation:
    if judgements.raw_human is None or judgements.items is None:
        return Correlation(np.nan, "darr needs judgements of segments on the scale from 0 to 100 (field da_mean)")
    return darr_kendall(scores, judgements.raw_human, judgements.items)


def _acc23(scores: Sequence[float | None], judgements: Judgements) -> Correlation:
    if judgements.items is None:
        return Correlation(np.nan, "acc23 needs judgements of segments; systems have no ties to calibrate")
    return tie_calibrated_accuracy(scores, judgements.human, judgements.items).accuracy


def _spa(scores: Sequence[float | None], judgements: Judgements) -> Correlation:
    if judgements.items is None or None in judgements.systems:
        return Correlation(np.nan, "spa needs judgements of segments, each with the name of its system")
    return soft_pairwise_accuracy(scores, judgements.human, judgements.items, judgements.systems)


_SPECIAL: dict[str, Callable[[Sequence[float | None], Judgements], Correlation]] = {
    "darr": _darr,
    "acc23": _acc23,
    "spa": _spa,
}
_GROUPS: dict[str, Callable[[Judgements], Sequence[Any] | None]] = {
    "none": lambda judgements: None,
    "item": lambda judgements: judgements.items,
    "system": lambda judgements: judgements.systems,
}
NAMES = (*COEFFICIENTS, *_SPECIAL)
GROUPS = tuple(_GROUPS)


@dataclasses.dataclass(frozen=True)
class Measure:
    """A coefficient, over all segments or as the mean over groups of them.

    Attributes:
        name: one of `NAMES`.
        group: one of `GROUPS`: ``"item"`` correlates the translations of each source by themselves, ``"system"`` each
            system's. ``darr``, ``acc23`` and ``spa`` compare translations of one source by definition and take no
            group.
    """

    name: str = "pearson"
    group: str = "none"

    def __post_init__(self) -> None:
        choice("coefficient", self.name, NAMES)
        choice("group", self.group, GROUPS if self.name in COEFFICIENTS else ("none",))

    @property
    def label(self) -> str:
        """Name and group, for people."""
        return self.name if self.group == "none" else f"{self.name} by {self.group}"

    def groups(self, judgements: Judgements) -> Sequence[Any] | None:
        """The label of each judged row's group; None where all belong together.

        Raises:
            InputError: there are groups of segments, but whole systems were judged, or a segment names no system.
        """
        if self.group != "none" and judgements.items is None:
            raise InputError(f"group {self.group!r}: whole systems were judged; groups are of segments")
        labels = _GROUPS[self.group](judgements)
        if labels is not None and None in labels:
            raise InputError(f"group {self.group!r}: {judgements.file}: a segment has no {self.group}")
        return labels

    def of(self, scores: Sequence[float | None] | np.ndarray, judgements: Judgements) -> Correlation:
        """The agreement of n scores with n judgements; None for a row without score, which is left out."""
        if self.name in _SPECIAL:
            return _SPECIAL[self.name](scores, judgements)
        return correlate(self.name, scores, judgements.human, groups=self.groups(judgements))


PEARSON = Measure()
