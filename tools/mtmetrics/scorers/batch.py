"""Batches: the texts of segments that are scored together."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar, cast

import numpy as np

from mtmetrics.io.visible_text import visible

T = TypeVar("T")


class Languages(NamedTuple):
    """Codes of the languages of sources and of translations; None for an unknown language."""

    source: str | None = None
    target: str | None = None


_UNKNOWN_LANGUAGES = Languages()
# For each segment one reference, or a list of several.
References = Sequence[str | Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Batch:
    """Segments that are scored together. Several systems translate the same segments, so that
    sources and references are encoded once.

    A metric gets batches with at most one reference per segment. `single_references`,
    `sources_or_references`, `texts_and_languages`, `without_invisible` and `blank_mask` need such a
    batch; `with_single_references` makes it.

    Attributes:
        systems: name of a system -> its n translations.
        sources: n texts, or None.
        references: n texts, n lists of one or more texts, or None.
        languages: ISO 639 codes, used to choose models.
    """

    systems: Mapping[str, Sequence[str]]
    sources: Sequence[str] | None = None
    references: References | None = None
    languages: Languages = _UNKNOWN_LANGUAGES

    def __len__(self) -> int:
        """Number of segments."""
        return len(next(iter(self.systems.values())))

    @property
    def predictions(self) -> list[list[str]]:
        """The translations of each system."""
        return [list(texts) for texts in self.systems.values()]

    @property
    def single_references(self) -> list[str]:
        """The references as plain strings; empty without references."""
        return cast("list[str]", list(self.references or ()))

    @property
    def sources_or_references(self) -> list[str]:
        """The sources if the batch has any, otherwise the references."""
        return self.single_references if self.sources is None else list(self.sources)

    @property
    def texts_and_languages(self) -> list[tuple[list[str], str | None]]:
        """The texts of each column and their language: sources and references if the batch has them,
        then each system."""
        source, target = self.languages
        columns: list[tuple[list[str], str | None]] = []
        if self.sources is not None:
            columns.append((list(self.sources), source))
        if self.references is not None:
            columns.append((self.single_references, target))
        return columns + [(texts, target) for texts in self.predictions]

    def slices(self, size: int) -> Iterator["Batch"]:
        """Splits the batch into batches of at most `size` segments, in order."""
        for first in range(0, len(self), size):
            yield self.take(range(first, min(first + size, len(self))))

    def take(self, indices: Sequence[int]) -> "Batch":
        """Returns the segments with these indices; an index may be repeated."""
        return dataclasses.replace(
            self,
            systems={name: _select(texts, indices) for name, texts in self.systems.items()},
            sources=None if self.sources is None else _select(self.sources, indices),
            references=None if self.references is None else _select(self.references, indices),
        )

    def without_invisible(self) -> "Batch":
        """Returns the batch without invisible characters that carry no meaning, see
        `mtmetrics.io.visible_text`."""
        return dataclasses.replace(
            self,
            systems={name: list(map(visible, texts)) for name, texts in self.systems.items()},
            sources=None if self.sources is None else list(map(visible, self.sources)),
            references=(
                None if self.references is None else list(map(visible, self.single_references))
            ),
        )

    def with_single_references(self) -> tuple["Batch", np.ndarray | None]:
        """Repeats each segment once per reference.

        Returns:
            A batch of m rows with one reference each, and the (m,) segment index of each row,
            ascending. If there are no references, or all are plain strings: the batch itself, and
            None.
        """
        references = self.references
        if references is None or all(isinstance(texts, str) for texts in references):
            return self, None
        reference_lists = [
            [texts] if isinstance(texts, str) else list(texts) for texts in references
        ]
        counts = [len(texts) for texts in reference_lists]
        segment_of_row = np.repeat(np.arange(len(counts)), counts)
        all_references = [text for texts in reference_lists for text in texts]
        without_references = dataclasses.replace(self, references=None)
        rows = without_references.take(segment_of_row.tolist())
        return dataclasses.replace(rows, references=all_references), segment_of_row

    def blank_mask(self, predictions: Sequence[str]) -> np.ndarray:
        """Returns an (n,) mask of the segments in which the translation, or a text that it is
        compared with, is blank. The texts must have no invisible characters."""
        columns = [texts for texts in (self.sources, self.references) if texts is not None]
        rows = zip(*columns, predictions, strict=True)
        return np.array([not all(text.strip() for text in row) for row in rows], dtype=bool)


def _select(texts: Sequence[T], indices: Sequence[int]) -> list[T]:
    return [texts[index] for index in indices]
