"""Several layers of an encoder from one pass, each looking like an encoder of its own."""

from collections.abc import Sequence

import numpy as np

from mtmetrics.models.packed import PackedTokens
from mtmetrics.models.token_encoder import TokenEncoder


def one_hot_mix(layers: Sequence[int], depth: int) -> np.ndarray:
    """(C, depth) weights that pick layers, for `TokenEncoder`.

    Args:
        layers: C layers from 1 up; embeddings cannot be picked.
        depth: number of layers of the encoder.
    """
    mix = np.zeros((len(layers), depth))
    mix[np.arange(len(layers)), np.array(layers) - 1] = 1.0
    return mix


class LayerView:
    """One of the layers of an encoder that was opened with `one_hot_mix`.

    Args:
        tokens: the encoder.
        layers: what it was opened with.
        position: which of them this is.
    """

    def __init__(self, tokens: TokenEncoder, layers: Sequence[int], position: int) -> None:
        self.tokens = tokens
        self.name, self.label, self.fingerprint = tokens.name, tokens.label, tokens.fingerprint
        self.layer: int | None = layers[position]
        self.depth, self.dtype = tokens.depth, tokens.dtype
        self.dim = tokens.dim // len(layers)
        self._columns = slice(position * self.dim, (position + 1) * self.dim)

    def encode(self, texts: Sequence[str]) -> PackedTokens:
        """Packed vectors of the distinct texts."""
        return self.view(self.tokens.encode(texts))

    def view(self, tokens: PackedTokens) -> PackedTokens:
        """The same from tokens that the encoder gave already."""
        return tokens.with_vectors(lambda vectors: vectors[:, self._columns])
