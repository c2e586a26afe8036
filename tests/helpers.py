"""What tests of several rooms make their inputs with."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mtmetrics.models.packed import PackedTokens


def write(path: Path, content: str | bytes) -> Path:
    """Writes a file, and the folders above it; text is compressed if the file is called ``.gz``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        content = content.encode("utf-8")
        content = gzip.compress(content) if path.suffix == ".gz" else content
    path.write_bytes(content)
    return path


def packed(
    texts: Sequence[np.ndarray],
    *,
    weights: Sequence[float] | np.ndarray | None = None,
    words: Sequence[int] | np.ndarray | None = None,
    index: Sequence[int] | np.ndarray | None = None,
) -> PackedTokens:
    """Packs a matrix of vectors per text; ids count the rows, and so do words where none are given."""
    vectors = np.concatenate(texts).astype(np.float32)
    lengths = [len(text) for text in texts]
    rows = np.arange(len(vectors))
    return PackedTokens(
        vectors=vectors,
        offsets=np.cumsum([0, *lengths]),
        weights=np.ones(len(rows)) if weights is None else np.array(weights, dtype=np.float64),
        token_ids=rows,
        words=rows if words is None else np.array(words),
        index=np.arange(len(texts)) if index is None else np.array(index),
        truncated=np.zeros(len(texts), dtype=bool),
    )
