"""Token vectors of many texts in one array, and the operations that prepare them for matching.

A batch has N inputs. Some of them may be equal, so there are S distinct texts. `PackedTokens` holds
the vectors of the distinct texts, and for each input the position of its text among them. Its methods
filter, combine and average the vectors. `Encoder` is the protocol of classes that make
`PackedTokens`.
"""

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from mtmetrics.models.text_units import TextUnits


Item = TypeVar("Item", bound=Hashable)


def distinct(texts: Sequence[Item]) -> tuple[list[Item], np.ndarray]:
    """Removes repeated texts.

    Returns:
        The S distinct texts of N texts, in order of first appearance; and (N,) int64, the position
        of each text among them.

    Example:
        >>> distinct(["a", "b", "a"])
        (['a', 'b'], array([0, 1, 0]))
    """
    positions: dict[Item, int] = {}
    index = np.fromiter(
        (positions.setdefault(text, len(positions)) for text in texts),
        dtype=np.int64,
        count=len(texts),
    )
    return list(positions), index


@dataclasses.dataclass(frozen=True)
class PackedTokens:
    """T rows of vectors, those of the S distinct texts one after the other, for N inputs.

    Attributes:
        vectors: (T, d) float32, one row per token, n-gram or text.
        offsets: (S + 1,) int64; text ``s`` has the rows ``offsets[s]:offsets[s + 1]``.
        weights: (T,) float64, positive. Matching normalises them to sum 1 per text. Only greedy
            matching (as in BERTScore) accepts zeros too.
        token_ids: (T,) int64 vocabulary ids; an n-gram has the id of its first token, a whole text
            has 0.
        word_positions: (T,) int64 position, in its text, of the word that a token belongs to; -1
            for special tokens and whole texts. Special tokens are not counted. An n-gram has the
            position of its first token.
        index: (N,) int64 position of each input's text among the distinct texts, 0 <= index < S.
        truncated: (S,) bool, true for texts that were cut at the model's limit.
    """

    vectors: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray
    token_ids: np.ndarray
    word_positions: np.ndarray
    index: np.ndarray
    truncated: np.ndarray

    @classmethod
    def from_tokens(
        cls,
        vectors: np.ndarray,
        ids_by_text: list[np.ndarray],
        word_positions_by_text: list[np.ndarray],
        index: np.ndarray,
        truncated: np.ndarray,
    ) -> "PackedTokens":
        """Packs the tokens of S texts; each token has weight 1.

        Args:
            vectors: (T, d) vectors of all tokens, one text after the other.
            ids_by_text: for each text the (n,) ids of its tokens.
            word_positions_by_text: for each text the (n,) positions of the words of its tokens.
            index: (N,), see the attribute.
            truncated: (S,), see the attribute.
        """
        empty = np.zeros(0, dtype=np.int64)
        return cls(
            vectors=vectors,
            offsets=np.cumsum([0, *map(len, ids_by_text)], dtype=np.int64),
            weights=np.ones(len(vectors)),
            token_ids=np.concatenate([empty, *ids_by_text]),
            word_positions=np.concatenate([empty, *word_positions_by_text]),
            index=index,
            truncated=truncated,
        )

    @classmethod
    def from_text_vectors(
        cls, vectors: np.ndarray, index: np.ndarray, truncated: np.ndarray
    ) -> "PackedTokens":
        """Packs (S, d) vectors of whole texts: one row per text, with weight 1."""
        count = len(vectors)
        return cls(
            vectors=vectors,
            offsets=np.arange(count + 1),
            weights=np.ones(count),
            token_ids=np.zeros(count, dtype=np.int64),
            word_positions=np.full(count, -1, dtype=np.int64),
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

    def map_vectors(self, function: Callable[[np.ndarray], np.ndarray]) -> "PackedTokens":
        """Applies a function, such as a remapping, to the (T, d) vectors."""
        return dataclasses.replace(self, vectors=function(self.vectors))

    def select(self, keep: np.ndarray) -> "PackedTokens":
        """Keeps the rows where a (T,) mask is true. All S texts stay; some may become empty."""
        kept_before = np.concatenate([[0], np.cumsum(keep)])
        return dataclasses.replace(
            self,
            vectors=self.vectors[keep],
            offsets=kept_before[self.offsets],
            weights=self.weights[keep],
            token_ids=self.token_ids[keep],
            word_positions=self.word_positions[keep],
        )

    def take(self, inputs: slice) -> "PackedTokens":
        """Keeps some of the N inputs, and drops the texts of which no input is left."""
        kept_texts, index = np.unique(self.index[inputs], return_inverse=True)
        is_kept = np.zeros(len(self.lengths), dtype=bool)
        is_kept[kept_texts] = True
        kept_rows = self.select(np.repeat(is_kept, self.lengths))
        # `select` has made the dropped texts empty. Their offsets go too.
        offsets = np.append(kept_rows.offsets[kept_texts], kept_rows.offsets[-1])
        return dataclasses.replace(
            kept_rows, offsets=offsets, index=index, truncated=self.truncated[kept_texts]
        )

    def split(self, size: int) -> list["PackedTokens"]:
        """Splits the inputs into consecutive groups of `size`.

        This separates, for example, sources and references that one call encoded together.
        """
        return [self.take(slice(first, first + size)) for first in range(0, len(self.index), size)]

    def normalized(self) -> "PackedTokens":
        """Scales vectors to L2 length 1; a zero vector stays zero."""
        norms = np.sqrt(np.einsum("ij,ij->i", self.vectors, self.vectors))[:, None]
        norms = np.maximum(norms, np.finfo(np.float32).tiny)
        return self.map_vectors(lambda vectors: (vectors / norms).astype(vectors.dtype, copy=False))

    def ngrams(self, n: int) -> "PackedTokens":
        """Replaces tokens by n-grams of n consecutive rows.

        The vector of an n-gram is the weighted mean of the vectors of its rows; its weight is the
        sum of their weights, which must be positive. With uniform weights the vector is the plain
        mean (Sec. 3.1 of Zhao et al., 2020). A text of fewer than n rows becomes one n-gram of all
        its rows, as in the code of that paper; an empty text has none.
        """
        if n == 1:
            return self
        size_per_text = np.minimum(self.lengths, n)
        ngrams_per_text = self.lengths - size_per_text + (size_per_text > 0)
        offsets = np.concatenate([[0], np.cumsum(ngrams_per_text)])
        # For each text, the difference between the row of a token and the row of the n-gram that
        # begins with it.
        shifts = self.offsets[:-1] - offsets[:-1]
        first_rows = np.arange(offsets[-1]) + np.repeat(shifts, ngrams_per_text)
        ngram_sizes = np.repeat(size_per_text, ngrams_per_text)
        weights = self.weights[first_rows]
        sums = self.vectors[first_rows]
        sums *= weights[:, None].astype(np.float32)
        for step in range(1, n):
            is_inside = step < ngram_sizes
            # Past the end of an n-gram, any row will do: its weight is 0.
            rows = np.where(is_inside, first_rows + step, first_rows)
            row_weights = np.where(is_inside, self.weights[rows], 0.0)
            weighted_vectors = self.vectors[rows]
            weighted_vectors *= row_weights[:, None].astype(np.float32)
            sums += weighted_vectors
            weights += row_weights
        sums /= weights[:, None].astype(np.float32)
        return dataclasses.replace(
            self,
            vectors=sums,
            offsets=offsets,
            weights=weights,
            token_ids=self.token_ids[first_rows],
            word_positions=self.word_positions[first_rows],
        )

    def means(self) -> np.ndarray:
        """Returns the (S, d) unweighted mean vectors of the texts, zeros for an empty text."""
        means = np.zeros((len(self.lengths), self.vectors.shape[1]), dtype=np.float32)
        # `np.add.reduceat` would take seven times as long: it adds along the rows without the
        # processor's vector instructions.
        for text in np.flatnonzero(self.lengths).tolist():
            means[text] = self.vectors[self.rows(text)].mean(0)
        return means


Level = Literal["word", "sentence"]
"""Kind of unit that has a vector: ``word`` for words and pieces of words, ``sentence`` for whole
texts."""

Language = str | Sequence[str | None] | None
"""ISO 639 code of all texts, or one per text. Only encoders with tokenizers for single languages
read it; they refuse None, also for one of the texts."""


class Encoder(Protocol):
    """Turns texts into vectors: one per token or word, or one per text.

    Attributes:
        name: the model as the user named it.
        label: name of the model in the signature of a metric, the line that says how a score was
            made.
        fingerprint: 8 hexadecimal digits that identify the files of the model.
        level: kind of unit that has a vector.
        layer: hidden state that the vectors are taken from; None for models without a choice.
        depth: number of layers, the highest `layer` that can be chosen; None for models without a
            choice.
        dim: dimensions of a vector.
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
        """Returns the packed vectors of N texts; equal texts share their rows."""
        ...


class WordEncoder(Encoder, Protocol):
    """An encoder of the level ``word``. It returns one vector per token; a word is one or several
    tokens, which `text_words` joins.

    Attributes:
        vocabulary_size: number V of tokens in the vocabulary of its tokenizer.
        word_table: (V,) bool mask of the vocabulary, true for the tokens that the word filter of
            XMoverScore keeps, see `mtmetrics.models.text_units.word_table`.
    """

    vocabulary_size: int
    word_table: np.ndarray

    def text_words(self, text: str, language: str | None = None) -> "TextUnits":
        """Returns the words of a text in reading order, and for each vector of the text the position
        of its word.

        A special token counts as a word here, so these are not the positions of
        `PackedTokens.word_positions`.
        """
        ...
