"""Token vectors of many texts in one array, what is done to them before matching, and who makes
them."""

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

if TYPE_CHECKING:
    from mtmetrics.models.text_units import TextUnits


def distinct(texts: Sequence[Hashable]) -> tuple[list[Any], np.ndarray]:
    """The S distinct ones of N texts in order of first appearance, and (N,) int64 for each text its
    place in them."""
    places: dict[Hashable, int] = {}
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
        """Texts whose tokens are given one by one, uniformly weighted: the ids and words of each of
        S texts."""
        none = np.zeros(0, dtype=np.int64)
        offsets = np.cumsum([0, *map(len, ids)], dtype=np.int64)
        token_ids, positions = (np.concatenate([none, *rows]) for rows in (ids, words))
        return cls(
            vectors, offsets, np.ones(len(token_ids)), token_ids, positions, index, truncated
        )

    @classmethod
    def of_texts(
        cls, vectors: np.ndarray, index: np.ndarray, truncated: np.ndarray
    ) -> "PackedTokens":
        """One row per text, such as sentence vectors (S, d); token ids are 0 and words -1."""
        rows = len(vectors)
        ids = np.zeros(rows, dtype=np.int64)
        return cls(vectors, np.arange(rows + 1), np.ones(rows), ids, ids - 1, index, truncated)

    @property
    def lengths(self) -> np.ndarray:
        """(S,) number of rows of each text."""
        return np.diff(self.offsets)

    def rows(self, text: int) -> slice:
        """The rows of one text."""
        return slice(int(self.offsets[text]), int(self.offsets[text + 1]))

    def with_vectors(self, change: Callable[[np.ndarray], np.ndarray]) -> "PackedTokens":
        """The same tokens with their (T, d) vectors changed, e.g. remapped."""
        return dataclasses.replace(self, vectors=change(self.vectors))

    def select(self, keep: np.ndarray) -> "PackedTokens":
        """Only the rows where the (T,) mask is true; a text may become empty."""
        counts = np.concatenate([[0], np.cumsum(keep)])
        rows = {
            name: getattr(self, name)[keep] for name in ("vectors", "weights", "token_ids", "words")
        }
        return dataclasses.replace(self, offsets=counts[self.offsets], **rows)

    def take(self, inputs: slice) -> "PackedTokens":
        """Only some of the inputs, and the texts that they equal."""
        texts, index = np.unique(self.index[inputs], return_inverse=True)
        wanted = np.zeros(len(self.lengths), dtype=bool)
        wanted[texts] = True
        chosen = self.select(np.repeat(wanted, self.lengths))
        offsets = np.concatenate([[0], np.cumsum(self.lengths[texts])])
        return dataclasses.replace(
            chosen, offsets=offsets, index=index, truncated=self.truncated[texts]
        )

    def split(self, size: int) -> list["PackedTokens"]:
        """Every `size` inputs apart, such as columns of texts that were encoded in one call."""
        return [self.take(slice(first, first + size)) for first in range(0, len(self.index), size)]

    def normalized(self) -> "PackedTokens":
        """L2-normalised vectors; a zero vector stays zero."""
        norms = np.sqrt(np.einsum("ij,ij->i", self.vectors, self.vectors))[:, None]
        norms = np.maximum(norms, np.finfo(np.float32).tiny)
        return self.with_vectors(
            lambda vectors: (vectors / norms).astype(vectors.dtype, copy=False)
        )

    def ngrams(self, n: int) -> "PackedTokens":
        """Weighted means of n consecutive rows; weights are the sums of theirs.

        n shrinks on texts of fewer than n rows, so that every text that is not empty keeps one
        n-gram (as the published code does). With uniform weights the vector is the plain mean (Sec.
        3.1 of Zhao et al., 2020)."""
        if n == 1:
            return self
        sizes = np.minimum(self.lengths, n)
        counts = self.lengths - sizes + (sizes > 0)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        first = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1] - offsets[:-1], counts)
        size = np.repeat(sizes, counts)
        total = self.weights[first]
        summed = self.vectors[first]
        summed *= total[:, None].astype(np.float32)
        for step in range(1, n):
            inside = step < size
            row = np.where(inside, first + step, first)
            weight = np.where(inside, self.weights[row], 0.0)
            term = self.vectors[row]
            term *= weight[:, None].astype(np.float32)
            summed += term
            total += weight
        summed /= total[:, None].astype(np.float32)
        ids, words = self.token_ids[first], self.words[first]
        return dataclasses.replace(
            self, vectors=summed, offsets=offsets, weights=total, token_ids=ids, words=words
        )

    def means(self) -> np.ndarray:
        """(S, d) mean vector of each text (zeros for an empty one)."""
        means = np.zeros((len(self.lengths), self.vectors.shape[1]), dtype=np.float32)
        # `np.add.reduceat` would take seven times as long: it adds along the rows without the
        # processor's vector instructions.
        for text in np.flatnonzero(self.lengths).tolist():
            means[text] = self.vectors[self.rows(text)].mean(0)
        return means


Level = Literal["word", "sentence"]
"""What a vector belongs to: a word or a piece of one, or a whole text."""

Language = str | Sequence[str | None] | None
"""The language of all texts, or of each, as ISO 639 codes; it matters to encoders that read languages differently."""


class Encoder(Protocol):
    """Turns texts into vectors: one per token or word, or one per text.

    Attributes:
        name: as the user gave it.
        label: how signatures call it.
        fingerprint: 8 hexadecimal digits that pin its numbers.
        level: what a vector belongs to.
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
        """Packed vectors of the distinct texts."""
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
        """The words of a text in reading order, special tokens among them; a token for each row of
        its vectors."""
        ...
