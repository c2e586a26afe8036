"""Weights of the tokens of a vocabulary, such as inverse document frequencies, kept in a file."""

import dataclasses
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.packed import PackedTokens

if TYPE_CHECKING:
    from mtmetrics.models.token_encoder import TokenEncoder


@dataclasses.dataclass(frozen=True)
class TokenWeights:
    """A table of weights over a vocabulary.

    It comes from a file, never from the texts that are scored, so that a segment's score does not
    depend on its neighbours.

    Attributes:
        table: (V,) float32, at least 0; transport needs weights above 0.
    """

    table: np.ndarray

    @property
    def fingerprint(self) -> str:
        """First 8 hexadecimal digits of the table's sha256."""
        content = np.ascontiguousarray(self.table, dtype=np.float32).tobytes()
        return hashlib.sha256(content).hexdigest()[:8]

    def apply(self, tokens: PackedTokens) -> PackedTokens:
        """Returns tokens with the weights of the table."""
        return dataclasses.replace(tokens, weights=self.table[tokens.token_ids].astype(np.float64))

    def require_vocabulary(self, size: int) -> None:
        """Refuses a table for a vocabulary of another size."""
        if len(self.table) != size:
            raise InputError(
                f"weights: the table covers {len(self.table)} tokens, the encoder's vocabulary "
                f"has {size}"
            )

    @classmethod
    def fit(
        cls,
        encoder: "TokenEncoder",
        texts: Iterable[str | tuple[str, str | None]],
        offset: float = 1.0,
    ) -> "TokenWeights":
        """Computes the smoothed inverse document frequency ``ln((M + 1) / (df + 1))`` over M texts,
        plus an offset.

        Args:
            encoder: its tokeniser splits the texts.
            texts: one document each, with its language where the encoder has tokenizers of single
                languages; a text that comes twice counts twice.
            offset: 1 makes all weights positive, as transport needs; 0 gives those of BERTScore
                (Zhang et al., 2020, Sec. 3), where a token that occurs in every text has none.

        Raises:
            InputError: there are no texts.
        """
        counts = np.zeros(len(encoder.tokenizer))
        total = 0
        for document in texts:
            text, language = (document, None) if isinstance(document, str) else document
            tokenizer = encoder.tokenizer_for(language)
            encoded = tokenizer(text, truncation=True, max_length=encoder.max_length)
            counts[np.unique(encoded["input_ids"])] += 1
            total += 1
        if not total:
            raise InputError("weights: no texts, so there is nothing to count")
        return cls((np.log((total + 1) / (counts + 1)) + offset).astype(np.float32))

    def save(self, path: str | Path) -> None:
        """Writes the table as safetensors."""
        from safetensors.numpy import save

        from mtmetrics.io.atomic import write_atomic

        write_atomic(path, save({"idf": self.table}))

    @classmethod
    def load(cls, path: str | Path) -> "TokenWeights":
        """Reads the file of `save`, for transport.

        Raises:
            ArtifactError: missing, damaged, not such a table, or one with weights of 0, which
                transport cannot use.
        """
        import safetensors.numpy

        try:
            table = safetensors.numpy.load_file(path)["idf"]
        except (OSError, KeyError, safetensors.SafetensorError) as error:
            reason = f"cannot be read, missing, damaged or no idf table ({error})"
            raise ArtifactError(f"weights {path}: {reason}", option="weights") from error
        if table.ndim != 1 or not (np.isfinite(table).all() and (table >= 0).all()):
            raise ArtifactError(
                f"weights {path}: a vector of finite numbers of at least 0 is needed",
                option="weights",
            )
        if not table.all():
            reason = (
                "holds weights of 0, but transport needs positive ones; fit the table with offset=1"
            )
            raise ArtifactError(f"weights {path}: {reason}", option="weights")
        return cls(table)
