"""Translations that people have judged: segments of a language pair, and whole systems."""

import dataclasses

import numpy as np

from mtmetrics.errors import InputError


@dataclasses.dataclass(frozen=True)
class JudgedSegments:
    """Segments of one language pair and what people thought of them.

    Attributes:
        file: where they were read from, as the user wrote it.
        lang_pair: such as ``"de-en"``.
        sources: n source segments.
        predictions: their n translations.
        references: n reference translations; None where a row has none.
        systems: n names of the systems that translated; None where a row has none.
        human: (n,) float64 human judgements, higher is better; NaN exactly where there is no judgement.
        items: n names of the source segments; rows of one name translate the same source. Where not every row has one,
            they are running numbers of the different sources.
        raw_human: (n,) float64 judgements on their original scale, such as 0-100, before standardisation; NaN where
            there is none, and None where the file has none at all.
        columns: the other fields of the rows that hold numbers only: name -> n values, None where a row has none.
    """

    file: str
    lang_pair: str
    sources: list[str]
    predictions: list[str]
    references: list[str | None]
    systems: list[str | None]
    human: np.ndarray
    items: list[str] = dataclasses.field(default_factory=list)
    raw_human: np.ndarray | None = None
    columns: dict[str, list[float | None]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.items:
            numbers = {text: str(number) for number, text in enumerate(dict.fromkeys(self.sources), 1)}
            object.__setattr__(self, "items", [numbers[text] for text in self.sources])

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def judged(self) -> np.ndarray:
        """(n,) bool: whether the row has a judgement."""
        return ~np.isnan(self.human)

    def column(self, name: str) -> list[float | None]:
        """The n values of a field of the rows, None where a row has none.

        Raises:
            InputError: no field of that name holds numbers.
        """
        if name not in self.columns:
            raise InputError(
                f"{self.file}: no column of numbers {name!r}; there are: {', '.join(self.columns) or 'none'}"
            )
        return self.columns[name]


@dataclasses.dataclass(frozen=True)
class JudgedSystems:
    """Whole outputs of systems for one language pair and what people thought of each system.

    Attributes:
        file: where they were read from, as the user wrote it.
        lang_pair: such as ``"de-en"``.
        sources: n source segments.
        references: n reference translations; None where a row has none.
        outputs: system -> its n translations.
        human: system -> human judgement, higher is better; the systems are those of `outputs`.
    """

    file: str
    lang_pair: str
    sources: list[str]
    references: list[str | None]
    outputs: dict[str, list[str]]
    human: dict[str, float]

    def __len__(self) -> int:
        return len(self.sources)
