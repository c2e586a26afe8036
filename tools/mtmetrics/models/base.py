"""What a scorer asks of the encoders that it compares texts with."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from mtmetrics.models.packed import PackedTokens


class Encoder(Protocol):
    """Turns texts into vectors: one per token or word, or one per text.

    Attributes:
        name: as the user gave it.
        label: how signatures call it.
        fingerprint: 8 hexadecimal digits that pin its numbers.
        layer: hidden state that the vectors are taken from; None where there is no choice.
        depth: number of layers to choose from; None where there is no choice.
        dim: width of the vectors.
        dtype: number format of the computation.
    """

    name: str
    label: str
    fingerprint: str
    layer: int | None
    depth: int | None
    dim: int
    dtype: str

    def encode(self, texts: Sequence[str]) -> PackedTokens:
        """Packed vectors of the distinct texts."""
        ...


class WordEncoder(Encoder, Protocol):
    """An encoder whose vectors belong to tokens of a vocabulary."""

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids."""
        ...

    @property
    def word_table(self) -> np.ndarray:
        """(V,) bool, true for the tokens that the published word filter keeps."""
        ...

    def text_words(self, text: str) -> tuple[list[str], np.ndarray]:
        """The words of a text in reading order, special tokens among them, and for each row of its vectors the number
        of its word."""
        ...
