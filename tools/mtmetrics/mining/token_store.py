"""Word vectors of all sentences of one side, encoded once and kept for every later step."""

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mtmetrics.errors import MTMetricsError
from mtmetrics.mining.selection import distinct_sentences
from mtmetrics.models.packed import PackedTokens, WordEncoder

_SENTENCES_PER_BLOCK = 4096
_MEMORY_BYTES = 4 * 2**30


@dataclass(frozen=True)
class EncodedSide:
    """The distinct sentences of one language and their words.

    Attributes:
        texts: S distinct sentences in order of first appearance.
        tokens: their words, L2-normalised, not remapped; input s is sentence s.
    """

    texts: list[str]
    tokens: PackedTokens


def encode_side(
    texts: Iterable[str],
    encoder: WordEncoder,
    *,
    memory_bytes: int = _MEMORY_BYTES,
    folder: str | Path | None = None,
    wrap: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> EncodedSide:
    """Encodes every distinct sentence once; punctuation and word continuations are left out (see
    `mtmetrics.models.words.word_table`).

    Args:
        texts: sentences; blank ones are left out.
        encoder: encoder at the layer to use.
        memory_bytes: vectors beyond that are kept in an unnamed file, which vanishes with the process.
        folder: where that file lies; None takes the system's folder for temporary files.
        wrap: wraps the iteration over blocks of sentences, for a progress bar.

    Raises:
        InputError: there are no sentences.
        MTMetricsError: the disk is full.
    """
    distinct = distinct_sentences(texts)
    rows = _Rows(encoder.dim, memory_bytes, folder)
    blocks = []
    for first in wrap(range(0, len(distinct), _SENTENCES_PER_BLOCK)):
        tokens = encoder.encode(distinct[first : first + _SENTENCES_PER_BLOCK])
        tokens = tokens.select(encoder.word_table[tokens.token_ids]).normalized()
        rows.append(tokens.vectors)
        blocks.append((tokens.lengths, tokens.weights, tokens.token_ids, tokens.words, tokens.truncated))
    lengths, weights, token_ids, words, truncated = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return EncodedSide(
        distinct, PackedTokens(rows.array(), offsets, weights, token_ids, words, np.arange(len(distinct)), truncated)
    )


class _Rows:
    """Rows of vectors, gathered in memory up to a bound and in a file beyond it."""

    def __init__(self, dim: int, memory_bytes: int, folder: str | Path | None) -> None:
        self._dim = dim
        self._room = memory_bytes
        self._folder = folder
        self._blocks: list[np.ndarray] = []
        self._file = None

    def append(self, rows: np.ndarray) -> None:
        self._blocks.append(rows)
        self._room -= rows.nbytes
        if self._room < 0:
            self._spill()

    def array(self) -> np.ndarray:
        """All (T, d) float32 rows."""
        if self._file is None:
            return np.concatenate(self._blocks)
        return np.memmap(self._file, dtype=np.float32, mode="r").reshape(-1, self._dim)

    def _spill(self) -> None:
        place = self._folder or tempfile.gettempdir()
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=place)  # noqa: SIM115 (the memory map keeps it open)
            for block in self._blocks:
                block.tofile(self._file)
            self._file.flush()
        except OSError as error:
            raise MTMetricsError(
                f"cannot keep word vectors in {place}: {error.strerror or error}; free disk space there"
            ) from error
        self._blocks.clear()
