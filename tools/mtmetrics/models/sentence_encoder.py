"""One vector per text, of a sentence-transformers model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.models import sentence_model
from mtmetrics.errors import MTMetricsError
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
        **running: keywords of `mtmetrics.models.running.Running`; of several devices the first
            computes.

    Raises:
        InputError: an unknown device or dtype.
        ArtifactError: the model cannot be found or loaded.
    """

    level: Level = "sentence"
    layer: int | None = None
    depth: int | None = None

    def __init__(self, model: str | Path, *, revision: str | None = None, **running: Any) -> None:
        super().__init__("encoder", model, revision, running)
        self._model = sentence_model(self.folder, str(self.devices[0]), self.dtype)
        self._model.eval()
        # The second name is that of sentence-transformers 5.
        known = getattr(
            self._model, "get_embedding_dimension", self._model.get_sentence_embedding_dimension
        )
        self.dim: int = known()
        # The vector of a text, and whether the text was cut.
        self._recent: TextCache[str, tuple[np.ndarray, bool]]
        self._recent = TextCache(_CACHE_BYTES, lambda encoded: encoded[0].nbytes)

    def encode(self, texts: Sequence[str], language: Language = None) -> PackedTokens:
        """One vector per distinct text; `MTMetricsError` where the model computes values that are
        not finite."""
        unique, index = distinct(texts)
        encoded = self._recent.values(unique, self._compute)
        vectors = (
            np.stack([vector for vector, _ in encoded])
            if encoded
            else np.zeros((0, self.dim), dtype=np.float32)
        )
        return PackedTokens.of_texts(
            vectors, index, np.array([cut for _, cut in encoded], dtype=bool)
        )

    def _compute(self, texts: list[str]) -> list[tuple[np.ndarray, bool]]:
        """(d,) vector of each text, and whether it was cut."""
        computed = self._model.encode(
            texts, batch_size=_BATCH, show_progress_bar=False, convert_to_tensor=True
        )
        vectors = computed.float().cpu().numpy()
        if not np.isfinite(vectors).all():
            raise MTMetricsError(
                f"{self.described}: overflows in {self.dtype}; use dtype='float32'",
                mentions=["dtype='float32'"],
            )
        limit = self._model.max_seq_length
        encodings = self._model.tokenizer(
            texts, truncation=limit is not None, max_length=limit
        ).encodings
        cut = (bool(encoding.overflowing) for encoding in encodings)
        return [(vector.copy(), was_cut) for vector, was_cut in zip(vectors, cut, strict=True)]
