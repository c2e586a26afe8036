"""Sentence vectors from a file, of models that this package cannot run."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mtmetrics.artifacts.models import fingerprint, model_label
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.packed import Language, Level, PackedTokens, distinct

SUFFIX = ".parquet"


class StoredVectors:
    """One vector per text, from a Parquet file with the columns ``text`` and ``vector``, a list of
    numbers.

    Args:
        path: the file; of a text that stands there twice, the first vector counts.

    Raises:
        InputError: there is no such file.
        ArtifactError: it is no such table, or vectors differ in width or are not finite.
    """

    level: Level = "sentence"
    layer: int | None = None
    depth: int | None = None
    dtype = "float32"

    def __init__(self, path: str | Path) -> None:
        import pyarrow
        import pyarrow.parquet

        self.name, self.label = str(path), model_label(path)
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file")
        try:
            table = pyarrow.parquet.read_table(path, columns=["text", "vector"])
            texts = table["text"].to_pylist()
            self._vectors = np.array(table["vector"].to_pylist(), dtype=np.float32)
        except (pyarrow.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
            raise ArtifactError(
                f"{path}: no table of texts and vectors, all equally wide ({error})"
            ) from error
        if self._vectors.ndim != 2 or not np.isfinite(self._vectors).all():
            raise ArtifactError(
                f"{path}: the column vector must hold lists of finite numbers, all equally long"
            )
        self.fingerprint = fingerprint([Path(path)])
        self.dim: int = self._vectors.shape[1]
        self._rows: dict[str, int] = {}
        for row, text in enumerate(texts):
            self._rows.setdefault(text, row)

    def encode(self, texts: Sequence[str], language: Language = None) -> PackedTokens:
        """Returns the vectors of the distinct texts; zeros for a blank text that the file lacks.

        Raises:
            InputError: the file lacks a text that is not blank.
        """
        unique, index = distinct(texts)
        missing = [text for text in unique if text.strip() and text not in self._rows]
        if missing:
            raise InputError(
                f"{self.name}: holds no vector of {len(missing)} texts, such as {missing[0]!r:.60}"
            )
        vectors = np.zeros((len(unique), self.dim), dtype=np.float32)
        for vector, text in zip(vectors, unique, strict=True):
            if text in self._rows:
                vector[:] = self._vectors[self._rows[text]]
        return PackedTokens.from_text_vectors(vectors, index, np.zeros(len(unique), dtype=bool))
