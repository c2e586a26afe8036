"""The words of a text, scripts without spaces between them, and weights of the tokens of a vocabulary."""

import dataclasses
import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.packed import PackedTokens

if TYPE_CHECKING:
    from mtmetrics.models.token_encoder import TokenEncoder

# Scripts that are written without spaces: there a SentencePiece entry without the space mark is no continuation.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "IDEOGRAPHIC")


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


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without spaces between words."""
    return unicodedata.name(character, "").startswith(_UNSPACED)


@dataclasses.dataclass(frozen=True)
class TokenWeights:
    """A (V,) float32 table of weights over a vocabulary, at least 0; transport needs them positive.

    It is stored, never taken from the texts being scored, so that a segment's score does not depend on its neighbours.
    """

    table: np.ndarray

    @property
    def fingerprint(self) -> str:
        """First 8 hexadecimal digits of the table's sha256."""
        return hashlib.sha256(np.ascontiguousarray(self.table, dtype=np.float32).tobytes()).hexdigest()[:8]

    def apply(self, tokens: PackedTokens) -> PackedTokens:
        """The same tokens, weighted."""
        return dataclasses.replace(tokens, weights=self.table[tokens.token_ids].astype(np.float64))

    def require_vocabulary(self, size: int) -> None:
        """Refuses a table for a vocabulary of another size."""
        if len(self.table) != size:
            raise InputError(f"weights: the table covers {len(self.table)} tokens, the encoder's vocabulary has {size}")

    @classmethod
    def fit(
        cls,
        encoder: "TokenEncoder",
        texts: Iterable[str | tuple[str, str | None]],
        offset: float = 1.0,
    ) -> "TokenWeights":
        """Smoothed inverse document frequency ``ln((M + 1) / (df + 1))`` over M texts, plus an offset.

        Args:
            encoder: its tokeniser splits the texts.
            texts: one document each, or it and its language, where the encoder reads some languages differently;
                repeated ones count as often as they come.
            offset: 1 makes all weights positive, as transport needs; 0 gives those of BERTScore (Zhang et al., 2020,
                Sec. 3), where a token that occurs in every text has none.

        Raises:
            InputError: there are no texts.
        """
        counts = np.zeros(len(encoder.tokenizer))
        total = 0
        for document in texts:
            text, language = (document, None) if isinstance(document, str) else document
            tokenizer = encoder.tokenizer_for(language)
            counts[np.unique(tokenizer(text, truncation=True, max_length=encoder.max_length)["input_ids"])] += 1
            total += 1
        if not total:
            raise InputError("weights: no texts, so there is nothing to count")
        return cls((np.log((total + 1) / (counts + 1)) + offset).astype(np.float32))

    def save(self, path: str | Path) -> None:
        """Writes the table as safetensors."""
        from safetensors.numpy import save

        from mtmetrics.artifacts.files import write_atomic

        write_atomic(path, save({"idf": self.table}))

    @classmethod
    def load(cls, path: str | Path, *, zeros: bool = False) -> "TokenWeights":
        """Reads what `save` wrote; weights of 0, which greedy matching can use and transport cannot, only with `zeros`.

        Raises:
            ArtifactError: missing, damaged, or not such a table.
        """
        import safetensors.numpy

        try:
            table = safetensors.numpy.load_file(path)["idf"]
        except (OSError, KeyError, safetensors.SafetensorError) as error:
            reason = f"cannot be read, missing, damaged or no idf table ({error})"
            raise ArtifactError(f"weights {path}: {reason}") from error
        if table.ndim != 1 or not (np.isfinite(table).all() and (table >= 0).all()):
            raise ArtifactError(f"weights {path}: a vector of finite numbers of at least 0 is needed")
        if not zeros and not table.all():
            reason = "holds weights of 0, but transport needs positive ones; fit the table with offset=1"
            raise ArtifactError(f"weights {path}: {reason}")
        return cls(table)
