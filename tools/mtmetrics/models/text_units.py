"""A text as an encoder reads it: its words or pieces, and where they stand."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    pass


class TextUnits(NamedTuple):
    """A text as an encoder reads it.

    Attributes:
        words: k words or pieces as they are written there, special tokens by their names.
        spans: (k, 2) first character of each, and the one behind its last; both 0 for special tokens.
        positions: (t,) for each token the number of its word or piece.
    """

    words: list[str]
    spans: np.ndarray
    positions: np.ndarray

    def take(self, numbers: np.ndarray) -> "TextUnits":
        """Some of the pieces, where every token is one."""
        return TextUnits([self.words[number] for number in numbers], self.spans[numbers], np.arange(len(numbers)))


def spans_of(spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """(k, 2) int64, also of no spans."""
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def text_words(tokenizer: Any, text: str, max_length: int, *, pieces: bool = False) -> TextUnits:
    """The words of a text, or its pieces."""
    encoded = tokenizer(text, truncation=True, max_length=max_length, return_offsets_mapping=True)
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    positions = np.zeros(len(encoded["input_ids"]), dtype=np.int64)
    last = None
    names = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    for token, (word, (begin, end)) in enumerate(zip(encoded.word_ids(), encoded["offset_mapping"], strict=True)):
        if pieces or word is None or word != last:
            words.append(names[token])
            spans.append((begin, end))
        spans[-1] = (spans[-1][0], end)
        if word is not None:
            words[-1] = text[slice(*spans[-1])].strip() or names[token]
        positions[token] = len(words) - 1
        last = word
    return TextUnits(words, spans_of(spans), positions)
