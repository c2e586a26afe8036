"""Texts on their way from the user to the formula of a metric."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar, cast

import numpy as np

from mtmetrics.io.visible_text import visible

T = TypeVar("T")


class Languages(NamedTuple):
    """Codes of the languages of sources and of translations; None where one is not known."""

    source: str | None = None
    target: str | None = None


_UNKNOWN = Languages()
# A reference of each segment, or several.
References = Sequence[str | Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Batch:
    """Segments whose translations are scored together.

    Attributes:
        systems: name of a system -> its n translations.
        sources: n texts; None where there are none.
        references: n texts, or n lists of texts where segments have several; None where there are
            none. Metrics are only given batches with one reference per segment.
        languages: ISO 639 codes, which choose models.
    """

    systems: Mapping[str, Sequence[str]]
    sources: Sequence[str] | None = None
    references: References | None = None
    languages: Languages = _UNKNOWN

    def __len__(self) -> int:
        """Number of segments."""
        return len(next(iter(self.systems.values())))

    @property
    def sources_or_references(self) -> list[str]:
        """The sources where there are any, else the references."""
        return self.single_references if self.sources is None else list(self.sources)

    @property
    def single_references(self) -> list[str]:
        """The references of a batch that has one for each segment; none where there are none."""
        return cast("list[str]", list(self.references or ()))

    @property
    def texts_and_languages(self) -> list[tuple[list[str], str | None]]:
        """Texts and their language: sources and references, where they are there, then each
        system."""
        source, target = self.languages
        columns: list[tuple[list[str], str | None]] = []
        if self.sources is not None:
            columns.append((list(self.sources), source))
        if self.references is not None:
            columns.append((self.single_references, target))
        return columns + [(texts, target) for texts in self.predictions]

    @property
    def predictions(self) -> list[list[str]]:
        """The translations of each system."""
        return [list(texts) for texts in self.systems.values()]

    def slices(self, size: int) -> Iterator["Batch"]:
        """Batches of at most so many segments each, in order."""
        for first in range(0, len(self), size):
            yield self.take(range(first, min(first + size, len(self))))

    def take(self, segments: Sequence[int]) -> "Batch":
        """The batch of some segments, by their places; one may be taken several times."""
        return dataclasses.replace(
            self,
            systems={name: _taken(texts, segments) for name, texts in self.systems.items()},
            sources=None if self.sources is None else _taken(self.sources, segments),
            references=None if self.references is None else _taken(self.references, segments),
        )

    def without_invisible(self) -> "Batch":
        """The batch without the characters that nobody sees and that mean nothing; of one with
        single references."""
        return dataclasses.replace(
            self,
            systems={name: list(map(visible, texts)) for name, texts in self.systems.items()},
            sources=None if self.sources is None else list(map(visible, self.sources)),
            references=(
                None if self.references is None else list(map(visible, self.single_references))
            ),
        )

    def with_single_references(self) -> tuple["Batch", np.ndarray | None]:
        """Repeats each segment for every reference that it has.

        Returns:
            A batch of m rows with one reference each; and the (m,) numbers of their segments,
            ascending, or None where references are no lists.
        """
        references = self.references
        if references is None or all(isinstance(texts, str) for texts in references):
            return self, None
        listed = [[texts] if isinstance(texts, str) else list(texts) for texts in references]
        segment_of_row = np.repeat(np.arange(len(listed)), [len(texts) for texts in listed])
        repeated = self.take(segment_of_row.tolist())
        single = [text for texts in listed for text in texts]
        return dataclasses.replace(repeated, references=single), segment_of_row

    def blank_mask(self, predictions: Sequence[str]) -> np.ndarray:
        """(n,) bool, rows of which the translation, or a text that it is compared with, is blank;
        of a batch without invisible characters and with single references."""
        columns = [texts for texts in (self.sources, self.references) if texts is not None]
        rows = zip(*columns, predictions, strict=True)
        return np.array([not all(text.strip() for text in row) for row in rows], dtype=bool)


def _taken(texts: Sequence[T], places: Sequence[int]) -> list[T]:
    return [texts[place] for place in places]
