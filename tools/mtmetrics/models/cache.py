"""A bounded memory of encoded texts."""

from collections import OrderedDict
from typing import NamedTuple

import numpy as np


class EncodedText(NamedTuple):
    """What an encoder knows of one text: (n, d) vectors, (n,) token ids, (n,) word numbers, and whether it was cut."""

    vectors: np.ndarray
    token_ids: np.ndarray
    words: np.ndarray
    truncated: bool


class TextCache:
    """Keeps the most recently used texts up to a number of bytes; the key is the exact text.

    One encoder owns one cache, so that model, layer and dtype are part of the key by construction.

    Args:
        max_bytes: bytes of vectors to keep; 0 keeps nothing.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._texts: OrderedDict[object, EncodedText] = OrderedDict()

    def get(self, key: object) -> EncodedText | None:
        """The encoded text, now the most recently used one, or None."""
        if key in self._texts:
            self._texts.move_to_end(key)
        return self._texts.get(key)

    def put(self, key: object, encoded: EncodedText) -> None:
        """Stores a text with a copy of its vectors, and drops the least recently used ones beyond the bound."""
        if key in self._texts or encoded.vectors.nbytes > self.max_bytes:
            return
        self._texts[key] = encoded._replace(vectors=encoded.vectors.copy())
        self.bytes += encoded.vectors.nbytes
        while self.bytes > self.max_bytes:
            self.bytes -= self._texts.popitem(last=False)[1].vectors.nbytes
