"""Token vectors of many texts in one array, and the steps before they are matched.

`PackedTokens` holds the vectors; its methods filter, join and average them, and each returns new
tokens. `Encoder` is the protocol of classes that make them.
"""

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from mtmetrics.models.text_units import TextUnits


Item = TypeVar("Item", bound=Hashable)


def distinct(texts: Sequence[Item]) -> tuple[list[Item], np.ndarray]:
    """Returns the S distinct texts of N texts, in order of first appearance, and for each of the N
    its place among them, (N,) int64.

    Example:
        >>> distinct(["a", "b", "a"])
        (['a', 'b'], array([0, 1, 0]))
    """
    places: dict[Item, int] = {}
    index = np.fromiter(
        (places.setdefault(text, len(places)) for text in texts), dtype=np.int64, count=len(texts)
    )
    return list(places), index


@dataclasses.dataclass(frozen=True)
class PackedTokens:
    """Tokens of S distinct texts, one after the other, and where each of N inputs finds its text.

    Attributes:
        vectors: (T, d) float32, one row per token or n-gram.
        offsets: (S + 1,) int64; text ``s`` owns rows ``offsets[s]:offsets[s + 1]``.
        weights: (T,) float64, positive, or 0 for greedy matching alone; matching normalises them to
            sum 1 per text.
        token_ids: (T,) int64 vocabulary ids; of an n-gram, the id of its first token.
        words: (T,) int64 position of the word that a piece belongs to, -1 for special tokens.
        index: (N,) int64, for each input the text (0 <= index < S) that it equals.
        truncated: (S,) bool, texts that were cut at the model's limit.
    """

    vectors: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray
    token_ids: np.ndarray
    words: np.ndarray
    index: np.ndarray
    truncated: np.ndarray

    @classmethod
    def of_tokens(
        cls,
        vectors: np.ndarray,
        ids: list[np.ndarray],
        words: list[np.ndarray],
        index: np.ndarray,
        truncated: np.ndarray,
    ) -> "PackedTokens":
        """Packs S texts with their tokens, of weight 1 each.

        Args:
            vectors: (T, d) of all tokens, one text after the other.
            ids: of each text, its token ids.
            words: of each text, the position of the word of each token.
            index: (N,), see the attribute.
            truncated: (S,), see the attribute.
        """
        empty = np.zeros(0, dtype=np.int64)
        return cls(
            vectors=vectors,
            offsets=np.cumsum([0, *map(len, ids)], dtype=np.int64),
            weights=np.ones(len(vectors)),
            token_ids=np.concatenate([empty, *ids]),
            words=np.concatenate([empty, *words]),
            index=index,
            truncated=truncated,
        )

    @classmethod
    def of_texts(
        cls, vectors: np.ndarray, index: np.ndarray, truncated: np.ndarray
    ) -> "PackedTokens":
        """Packs (S, d) vectors of whole texts: one row each, with token id 0 and word -1."""
        count = len(vectors)
        return cls(
            vectors=vectors,
            offsets=np.arange(count + 1),
            weights=np.ones(count),
            token_ids=np.zeros(count, dtype=np.int64),
            words=np.full(count, -1, dtype=np.int64),
            index=index,
            truncated=truncated,
        )

    @property
    def lengths(self) -> np.ndarray:
        """Number of rows of each text, (S,)."""
        return np.diff(self.offsets)

    def rows(self, text: int) -> slice:
        """Returns the rows of one text."""
        return slice(int(self.offsets[text]), int(self.offsets[text + 1]))

    def with_vectors(self, change: Callable[[np.ndarray], np.ndarray]) -> "PackedTokens":
        """Returns tokens whose (T, d) vectors are changed by a function, such as a remapping."""
        return dataclasses.replace(self, vectors=change(self.vectors))

    def select(self, keep: np.ndarray) -> "PackedTokens":
        """Keeps the rows where a (T,) mask is true; a text may become empty."""
        kept_before = np.concatenate([[0], np.cumsum(keep)])
        return dataclasses.replace(
            self,
            vectors=self.vectors[keep],
            offsets=kept_before[self.offsets],
            weights=self.weights[keep],
            token_ids=self.token_ids[keep],
            words=self.words[keep],
        )

    def take(self, inputs: slice) -> "PackedTokens":
        """Keeps some of the inputs, and the texts that they equal."""
        texts, index = np.unique(self.index[inputs], return_inverse=True)
        is_kept = np.zeros(len(self.lengths), dtype=bool)
        is_kept[texts] = True
        kept = self.select(np.repeat(is_kept, self.lengths))
        offsets = np.concatenate([[0], np.cumsum(self.lengths[texts])])
        return dataclasses.replace(
            kept, offsets=offsets, index=index, truncated=self.truncated[texts]
        )

    def split(self, size: int) -> list["PackedTokens"]:
        """Splits the inputs into groups of `size`, such as columns that were encoded in one call."""
        return [self.take(slice(first, first + size)) for first in range(0, len(self.index), size)]

    def normalized(self) -> "PackedTokens":
        """Scales vectors to L2 length 1; a zero vector stays zero."""
        norms = np.sqrt(np.einsum("ij,ij->i", self.vectors, self.vectors))[:, None]
        norms = np.maximum(norms, np.finfo(np.float32).tiny)
        return self.with_vectors(
            lambda vectors: (vectors / norms).astype(vectors.dtype, copy=False)
        )

    def ngrams(self, n: int) -> "PackedTokens":
        """Joins n consecutive rows: the vector of an n-gram is their weighted mean, its weight the
        sum of their weights.

        A text of fewer than n rows becomes one n-gram of them all, as in the published code; an
        empty text has none. With uniform weights the vector is the plain mean (Sec. 3.1 of Zhao et
        al., 2020).
        """
        if n == 1:
            return self
        sizes = np.minimum(self.lengths, n)  # of the n-grams of each text
        counts = self.lengths - sizes + (sizes > 0)  # of n-grams in each text
        offsets = np.concatenate([[0], np.cumsum(counts)])
        # Of each n-gram, the first row and the size.
        first = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1] - offsets[:-1], counts)
        size = np.repeat(sizes, counts)
        weights = self.weights[first]
        sums = self.vectors[first]
        sums *= weights[:, None].astype(np.float32)
        for step in range(1, n):
            is_inside = step < size
            row = np.where(is_inside, first + step, first)
            row_weights = np.where(is_inside, self.weights[row], 0.0)
            addends = self.vectors[row]
            addends *= row_weights[:, None].astype(np.float32)
            sums += addends
            weights += row_weights
        sums /= weights[:, None].astype(np.float32)
        return dataclasses.replace(
            self,
            vectors=sums,
            offsets=offsets,
            weights=weights,
            token_ids=self.token_ids[first],
            words=self.words[first],
        )

    def means(self) -> np.ndarray:
        """Returns the (S, d) mean vectors of the texts, zeros for an empty text."""
        means = np.zeros((len(self.lengths), self.vectors.shape[1]), dtype=np.float32)
        # `np.add.reduceat` would take seven times as long: it adds along the rows without the
        # processor's vector instructions.
        for text in np.flatnonzero(self.lengths).tolist():
            means[text] = self.vectors[self.rows(text)].mean(0)
        return means


Level = Literal["word", "sentence"]
"""Kind of unit that a vector belongs to: a word or a piece of one, or a whole text."""

Language = str | Sequence[str | None] | None
"""Language of all texts, or of each, as ISO 639 codes, for encoders with tokenizers of single languages."""


class Encoder(Protocol):
    """Turns texts into vectors: one per token or word, or one per text.

    Attributes:
        name: as the user gave it.
        label: how signatures call it.
        fingerprint: 8 hexadecimal digits that pin its numbers.
        level: kind of unit that a vector belongs to.
        layer: hidden state that the vectors are taken from; None where there is no choice.
        depth: number of layers to choose from; None where there is no choice.
        dim: width of the vectors.
        dtype: number format of the computation.
    """

    name: str
    label: str
    fingerprint: str
    level: Level
    layer: int | None
    depth: int | None
    dim: int
    dtype: str

    def encode(self, texts: Sequence[str], language: Language = None) -> PackedTokens:
        """Returns packed vectors of N texts; equal texts share theirs."""
        ...


class WordEncoder(Encoder, Protocol):
    """An encoder whose vectors belong to tokens of a vocabulary.

    Attributes:
        vocabulary_size: number of token ids.
        word_table: (V,) bool, true for the tokens that the published word filter keeps.
    """

    vocabulary_size: int
    word_table: np.ndarray

    def text_words(self, text: str, language: str | None = None) -> "TextUnits":
        """Returns the words of a text in reading order, special tokens among them, and for each row
        of the text's vectors the number of its word."""
        ...
