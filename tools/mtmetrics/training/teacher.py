"""An English sentence encoder as a teacher: what its vectors say of two English texts, the student is to say of source
and translation."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mtmetrics.artifacts.files import atomic_path
from mtmetrics.artifacts.models import model_folder
from mtmetrics.errors import InputError
from mtmetrics.models.sentence_encoder import MeanPooledEncoder, is_mean_pooled
from mtmetrics.models.token_encoder import TokenEncoder

LANGUAGE = "en"
_SAMPLE = 4000


class SentenceTeacher:
    """Sentence vectors of a teacher, rotated and cut to the width of a student.

    The rotation is a principal component analysis of a sample: centred vectors of `width` dimensions that keep most of
    what tells the sentences apart.

    Args:
        model: a mean-pooled sentence-transformers model; see `mtmetrics.artifacts.models.model_folder` for its name.
        texts: English sentences, of which the sample is drawn.
        width: of the student's vectors.
        path: file in which the rotation is kept, so that a resumed run has the same one.
        seed: of the sample.
        bf16: compute in bfloat16.

    Raises:
        InputError: the model is none that is mean-pooled, or it or the sample is too small for that width.
        ArtifactError: it cannot be found or loaded.
    """

    def __init__(
        self, model: str | Path, texts: Sequence[str], width: int, path: Path, *, seed: int = 1, bf16: bool = False
    ) -> None:
        if not is_mean_pooled(model_folder(model)):
            raise InputError(
                f"--teacher {model}: a sentence-transformers model is needed that averages token vectors, and does no more"
            )
        tokens = TokenEncoder(model, dtype="bfloat16" if bf16 else "float32", cache_bytes=0)
        self._encoder = MeanPooledEncoder(tokens)
        if not path.exists():
            chosen = np.random.default_rng(seed).permutation(len(texts))[:_SAMPLE]
            if min(len(chosen), tokens.dim) < width:
                raise InputError(
                    f"--teacher {model}: {len(chosen)} English texts of {tokens.dim} dimensions are too few for width {width}"
                )
            sample = self._unit_vectors([texts[row] for row in chosen])
            centre = sample.mean(0)
            axes = np.linalg.svd(sample - centre, full_matrices=False)[2][:width]
            with atomic_path(path) as temporary, open(temporary, "wb") as stream:
                np.savez(stream, centre=centre, axes=axes)
        with np.load(path, allow_pickle=False) as saved:
            self._centre, self._axes = saved["centre"], saved["axes"]

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """(N, width) float32 vectors of unit length."""
        return _unit((self._unit_vectors(texts) - self._centre) @ self._axes.T)

    def _unit_vectors(self, texts: Sequence[str]) -> np.ndarray:
        encoded = self._encoder.encode(texts)
        return _unit(encoded.vectors[encoded.index])


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
