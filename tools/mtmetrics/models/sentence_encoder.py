"""Sentence vectors of sentence-transformers models: one vector for each text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.artifacts.models import sentence_model
from mtmetrics.models.devices import overflow_error
from mtmetrics.models.loaded import LoadedModel
from mtmetrics.models.packed import Language, Level, PackedTokens, distinct
from mtmetrics.models.text_cache import TextCache

_BATCH = 32
_CACHE_BYTES = 32 * 2**20


class SentenceTransformerEncoder(LoadedModel):
    """Any model of the library sentence-transformers, as its own pipeline of modules computes it.

    Args:
        model: folder, name of a bundled artifact, or Hub repository.
        revision: Hub revision.
        **run_options: keywords of `mtmetrics.models.running.Running`; only the first of several
            devices computes.

    Raises:
        InputError: an unknown device or dtype.
        ArtifactError: the model cannot be found or loaded.
    """

    level: Level = "sentence"
    layer: int | None = None
    depth: int | None = None

    def __init__(
        self, model: str | Path, *, revision: str | None = None, **run_options: Any
    ) -> None:
        super().__init__("encoder", model, revision, run_options)
        self._model = sentence_model(self.folder, str(self.devices[0]), self.dtype)
        self._model.eval()
        # The method has the second name in sentence-transformers 5.
        dimension = getattr(
            self._model, "get_embedding_dimension", self._model.get_sentence_embedding_dimension
        )
        self.dim: int = dimension()
        self._encoded: TextCache[str, _EncodedText]
        self._encoded = TextCache(_CACHE_BYTES, lambda encoded: encoded.vector.nbytes)

    def encode(self, texts: Sequence[str], language: Language = None) -> PackedTokens:
        """Returns one vector for each distinct text.

        Raises:
            MTMetricsError: the model computes values that are not finite.
        """
        unique, index = distinct(texts)
        encoded = self._encoded.values(unique, self._compute)
        vectors = np.array([text.vector for text in encoded], dtype=np.float32)
        vectors = vectors.reshape(len(encoded), self.dim)  # also where there are no texts
        truncated = np.array([text.is_truncated for text in encoded], dtype=bool)
        return PackedTokens.from_text_vectors(vectors, index, truncated)

    def _compute(self, texts: list[str]) -> list["_EncodedText"]:
        computed = self._model.encode(
            texts, batch_size=_BATCH, show_progress_bar=False, convert_to_tensor=True
        )
        vectors = computed.float().cpu().numpy()
        if not np.isfinite(vectors).all():
            raise overflow_error(f"{self.description}:", self.dtype)
        limit = self._model.max_seq_length
        tokenized = self._model.tokenizer(texts, truncation=limit is not None, max_length=limit)
        return [
            _EncodedText(vector.copy(), bool(encoding.overflowing))
            for vector, encoding in zip(vectors, tokenized.encodings, strict=True)
        ]


class _EncodedText(NamedTuple):
    """The (d,) vector of a text, and whether the text was cut."""

    vector: np.ndarray
    is_truncated: bool
