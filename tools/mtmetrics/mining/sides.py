"""The two sides of mining: distinct sentences and their vectors, block by block, in memory or in
files."""

import dataclasses
import functools
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from mtmetrics.errors import MTMetricsError
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.transport import centroids
from mtmetrics.mining.clean_text import distinct_sentences
from mtmetrics.models.packed import Encoder, PackedTokens, WordEncoder

Wrap = Callable[[Iterable[int]], Iterable[int]]
# Like `map`; where the tasks are done is its business, their results come in their order.
MapTasks = Callable[[Callable, Iterable], Iterable]
SENTENCES_PER_BLOCK = 4096
_MEMORY_BYTES = 4 * 2**30


def blocks(items: int, size: int, wrap: Wrap = iter) -> Iterator[slice]:
    """Slices of at most `size` items each; `wrap` wraps the iteration, for a progress bar."""
    for first in wrap(range(0, items, size)):
        yield slice(first, min(first + size, items))


class Rows:
    """(n, d) float32 rows that lie in arrays, or in another number format in ``.npy`` files.

    Indexed by a slice or by ascending numbers, which reads only these rows. `folder` is for more
    files that belong to the rows."""

    def __init__(self, parts: Sequence[np.ndarray | str], folder: Path | None = None) -> None:
        self._parts, self.folder = parts, folder
        shapes = [_opened(part).shape for part in parts]
        self._starts = np.cumsum([0, *(rows for rows, _ in shapes)])
        self.shape = int(self._starts[-1]), shapes[0][1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, numbers: slice | np.ndarray) -> np.ndarray:
        if isinstance(numbers, slice):
            numbers = np.arange(*numbers.indices(len(self)))
        rows = np.empty((len(numbers), self.shape[1]), dtype=np.float32)
        cuts = np.searchsorted(numbers, self._starts)
        for part in np.flatnonzero(np.diff(cuts)).tolist():
            within = slice(cuts[part], cuts[part + 1])
            rows[within] = _opened(self._parts[part])[numbers[within] - self._starts[part]]
        return rows


def _opened(part: np.ndarray | str) -> np.ndarray:
    return np.load(part, mmap_mode="r", allow_pickle=False) if isinstance(part, str) else part


@dataclasses.dataclass(frozen=True, eq=False)
class Side:
    """S distinct sentences of one language, encoded; files in which its vectors are vanish with it.

    Attributes:
        texts: the sentences.
        offsets: (S + 1,) int64; sentence ``s`` owns the rows ``offsets[s]:offsets[s + 1]`` of
            `words`.
        centroids: (S, d) means of the words, or sentence vectors.
        words: (T, d) words, L2-normalised, not remapped; none beside sentence vectors.
    """

    texts: Sequence[str]
    offsets: np.ndarray
    centroids: Rows
    words: Rows

    def take(
        self,
        sentences: slice | np.ndarray,
        remapping: Remapping | None = None,
    ) -> PackedTokens:
        """The words of some sentences, by a slice or ascending numbers; remapped, and normalised
        again, since a map may change lengths."""
        first = self.offsets[:-1][sentences]
        lengths = np.diff(self.offsets)[sentences]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        vectors = self.words[np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], lengths)]
        unknown = np.zeros(len(vectors), dtype=np.int64)
        tokens = PackedTokens(
            vectors=vectors,
            offsets=offsets,
            weights=np.ones(len(vectors)),
            token_ids=unknown,
            word_positions=unknown,
            index=np.arange(len(first)),
            truncated=np.zeros(len(first), dtype=bool),
        )
        return tokens if remapping is None else tokens.map_vectors(remapping.apply).normalized()

    def without_texts(self) -> "Side":
        """The vectors alone, for tasks that may run elsewhere; usable as long as the side itself
        lives."""
        return dataclasses.replace(self, texts=())


def encode_side(
    texts: Iterable[str],
    encoder: Encoder,
    *,
    language: str | None = None,
    memory_bytes: int | None = _MEMORY_BYTES,
    folder: str | Path | None = None,
    wrap: Wrap = iter,
    run: MapTasks = map,
) -> Side:
    """Encodes every distinct sentence once, block by block.

    Args:
        texts: sentences; blank ones are left out.
        encoder: of words, at the layer to use (punctuation and word continuations are left out), or
            of sentences.
        language: of the sentences; for encoders that read some languages differently.
        memory_bytes: vectors that take more are all kept in files, in float16, and in a folder that
            vanishes with the side; None has each task write its files into `folder` itself, where
            they stay.
        folder: where the files lie; None takes the system's folder for temporary files.
        wrap: wraps the iteration over blocks of sentences, for a progress bar.
        run: does the tasks, as `map` does.

    Raises:
        InputError: there are no sentences.
        MTMetricsError: the disk is full.
    """
    distinct = distinct_sentences(texts)
    place = Path(folder or tempfile.gettempdir())
    tasks = enumerate(distinct[block] for block in blocks(len(distinct), SENTENCES_PER_BLOCK, wrap))
    if memory_bytes is None:
        encoded = list(run(functools.partial(_encoded, encoder, language, place), tasks))
    else:
        place = place / f".vectors-{uuid.uuid4().hex}.tmp"
        in_memory = run(functools.partial(_encoded, encoder, language, None), tasks)
        encoded = _bounded(in_memory, memory_bytes, place)
    lengths, means, words = zip(*encoded, strict=True)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    side = Side(distinct, offsets, Rows(means, place), Rows(words, place))
    if memory_bytes is not None:
        weakref.finalize(side, shutil.rmtree, place, ignore_errors=True)
    return side


# Of up to 4,096 sentences the (S,) lengths, and (S, d) centroids and (T, d) words or the files that
# hold them.
_Block = tuple[np.ndarray, np.ndarray | str, np.ndarray | str]


def _encoded(
    encoder: Encoder,
    language: str | None,
    place: Path | None,
    task: tuple[int, list[str]],
) -> _Block:
    """Encodes a block of texts, which stands with its number in the task; files it unless `place`
    is None."""
    number, texts = task
    tokens = encoder.encode(texts, language)
    if encoder.level == "word":
        tokens = tokens.select(_is_kept(tokens, cast("WordEncoder", encoder))).normalized()
        block = tokens.lengths, centroids(tokens), tokens.vectors
    else:
        block = np.zeros_like(tokens.lengths), tokens.vectors, tokens.vectors[:0]
    return block if place is None else _filed(block, place, number)


def _is_kept(tokens: PackedTokens, encoder: WordEncoder) -> np.ndarray:
    """Returns a (T,) mask of the words and special tokens of texts.

    A text without a single word keeps nothing: its special tokens alone would lie at the distance 0
    from those of every other such text."""
    counts_as_word = encoder.word_table[tokens.token_ids]
    is_word = counts_as_word & (tokens.word_positions >= 0)
    text_of_token = np.repeat(np.arange(len(tokens.lengths)), tokens.lengths)
    words_of_text = np.bincount(text_of_token, weights=is_word, minlength=len(tokens.lengths))
    return counts_as_word & (words_of_text[text_of_token] > 0)


def _bounded(blocks: Iterable[_Block], memory_bytes: int, place: Path) -> list[_Block]:
    """Collects blocks; once they take more than `memory_bytes`, all of them are filed."""
    kept: list[_Block] = []
    filed = 0
    try:
        for block in blocks:
            kept.append(block)
            memory_bytes -= sum(rows.nbytes for rows in block[1:])
            while memory_bytes < 0 and filed < len(kept):
                kept[filed] = _filed(kept[filed], place, filed)
                filed += 1
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return kept


def _filed(block: _Block, place: Path, number: int) -> _Block:
    """Writes the vectors of a block into files, and returns it with their names."""
    lengths, *arrays = block
    files = [str(place / f"{name}-{number:06}.npy") for name in ("centroids", "words")]
    try:
        place.mkdir(exist_ok=True)
        for file, rows in zip(files, arrays, strict=True):
            np.save(file, rows.astype(np.float16))
    except OSError as error:
        reason = f"{error.strerror or error}; free disk space there"
        raise MTMetricsError(f"cannot keep vectors in {place.parent}: {reason}") from error
    return lengths, *files
