"""Static word vectors: a word has the same vector in every text.

`StaticVectors` looks the words of texts up; `read_table` reads the table from a file.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mtmetrics.artifacts.models import fingerprint, model_label
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.languages import is_unspaced
from mtmetrics.io.lines import iter_lines
from mtmetrics.models.packed import Language, Level, PackedTokens, distinct
from mtmetrics.models.text_units import TextUnits, spans_of


class _TableWord(NamedTuple):
    """A word of a text that the table holds: its first character in the text, the word as it is
    written there, and its row in the table."""

    start: int
    text: str
    row: int


class StaticVectors:
    """Looks words up in a table; words that it does not hold are left out.

    A text is split at white space. A chunk that is no word of the table, neither as written nor
    lower-cased, is split at its punctuation and symbols; a run of these, such as ``?!``, is looked up
    as one word. Runs of a script that is written without spaces are split into the longest words of
    the table, from left to right.

    The argument `language` of the methods has no effect; encoders of other kinds need it.

    Args:
        table: word2vec text (``word 0.1 0.2 ...`` per line, with or without a first line of counts;
            also ``.gz``), or a ``.safetensors`` file of ``vectors`` (V, d) and ``words``, the UTF-8
            bytes of the words joined by line ends.

    Raises:
        InputError: there is no such file, or it cannot be decompressed or decoded.
        ArtifactError: the file is no such table, or damaged.

    Attributes:
        dim: dimensions d of the vectors.
        word_table: (V,) bool, false at words of the table that are only punctuation and symbols.
    """

    level: Level = "word"
    layer: int | None = None
    depth: int | None = None
    dtype = "float32"

    def __init__(self, table: str | Path) -> None:
        self.name, self.label = str(table), model_label(table)
        words, self._vectors = read_table(table)
        self.fingerprint = fingerprint([Path(table)])
        self.dim: int = self._vectors.shape[1]
        self._rows: dict[str, int] = {}
        for row, word in enumerate(words):
            self._rows.setdefault(word, row)  # of a word that stands twice, the first vector
        self._longest = max(map(len, words))
        self.word_table = np.array([not all(map(_is_punctuation, word)) for word in words])
        self.vocabulary_size = len(words)

    def encode(self, texts: Sequence[str], language: Language = None) -> PackedTokens:
        """Returns packed vectors of the distinct texts, one row for each word of the table."""
        unique, index = distinct(texts)
        ids = [
            np.array([word.row for word in self._lookup(text)], dtype=np.int64) for text in unique
        ]
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *ids])
        vectors = self._vectors[rows].astype(np.float32)
        positions = [np.arange(len(row)) for row in ids]
        return PackedTokens.from_tokens(
            vectors, ids, positions, index, np.zeros(len(ids), dtype=bool)
        )

    def text_words(self, text: str, language: str | None = None) -> TextUnits:
        """Returns the words of a text that the table holds, as they are written in the text."""
        words = list(self._lookup(text))
        spans = [(word.start, word.start + len(word.text)) for word in words]
        return TextUnits([word.text for word in words], spans_of(spans), np.arange(len(words)))

    def _lookup(self, text: str) -> Iterator[_TableWord]:
        """Yields the words of a text that the table holds, in order."""
        for chunk in re.finditer(r"\S+", text):
            start = chunk.start()
            row = self._row(chunk[0])
            if row is not None:
                yield _TableWord(start, chunk[0], row)
                continue
            runs = itertools.groupby(
                chunk[0], lambda letter: (_is_punctuation(letter), is_unspaced(letter))
            )
            for _, letters in runs:
                run = "".join(letters)
                yield from self._longest_words(run, start)
                start += len(run)

    def _longest_words(self, run: str, start: int) -> Iterator[_TableWord]:
        """Yields the words of a run of letters of one kind, which begins at `start` of its text."""
        row = self._row(run)
        if row is not None:
            yield _TableWord(start, run, row)
            return
        begin = 0
        while begin < len(run) and is_unspaced(run[begin]):
            for end in range(min(len(run), begin + self._longest), begin, -1):
                row = self._row(run[begin:end])
                if row is not None:
                    yield _TableWord(start + begin, run[begin:end], row)
                    break
            begin = end  # behind the word, or one letter on where there was none

    def _row(self, word: str) -> int | None:
        """Returns the row of a word, as written or else lower-cased; None where there is none."""
        return self._rows.get(word, self._rows.get(word.lower()))


def read_table(path: str | Path) -> tuple[list[str], np.ndarray]:
    """Reads V words and their (V, d) vectors; raises the errors of `StaticVectors`."""
    if not Path(path).is_file():
        raise InputError(f"vectors {path}: no such file")
    is_safetensors = str(path).endswith(".safetensors")
    words, vectors = _read_safetensors(path) if is_safetensors else _read_text(path)
    if not len(vectors):
        raise ArtifactError(f"vectors {path}: holds no word")
    if not np.isfinite(vectors).all():
        raise ArtifactError(f"vectors {path}: holds values that are not finite")
    return words, vectors


def _read_safetensors(path: str | Path) -> tuple[list[str], np.ndarray]:
    import safetensors.numpy

    try:
        table = safetensors.numpy.load_file(path)
        words = table["words"].tobytes().decode("utf-8").split("\n")
        vectors = table["vectors"]
    except (
        OSError,
        KeyError,
        UnicodeDecodeError,
        TypeError,  # vectors in a format that NumPy lacks, such as bfloat16
        safetensors.SafetensorError,
    ) as error:
        raise ArtifactError(
            f"vectors {path}: damaged, or not a table with 'words' and 'vectors' ({error})"
        ) from error
    if vectors.ndim != 2 or len(words) != len(vectors):
        raise ArtifactError(
            f"vectors {path}: {len(words)} words, but vectors of shape {vectors.shape}"
        )
    return words, vectors.astype(np.float32, copy=False)


def _read_text(path: str | Path) -> tuple[list[str], np.ndarray]:
    lines: Iterator[tuple[int, str]] = enumerate(iter_lines(path), 1)
    number, first_line = next(lines, (1, ""))
    fields = first_line.split()
    has_counts = len(fields) == 2 and all(field.isdecimal() for field in fields)
    if has_counts:
        dim = int(fields[1])
    else:
        dim = len(fields) - 1
        lines = itertools.chain([(number, first_line)], lines)
    if dim < 1:
        needed = "'word 0.1 0.2 ...' is needed on each line, or a .safetensors table"
        raise ArtifactError(f"vectors {path}: no word2vec text; {needed}")
    words: list[str] = []
    rows: list[np.ndarray] = []
    for number, line in lines:
        if not line.strip():
            continue
        word, *values = line.rstrip().rsplit(" ", dim)
        try:
            row = np.array(values, dtype=np.float32)
        except ValueError:
            row = np.zeros(0, dtype=np.float32)
        if len(row) != dim:
            needed = f"a word and {dim} numbers are needed, separated by single spaces"
            raise ArtifactError(f"vectors {path}, line {number}: {needed}")
        words.append(word)
        rows.append(row)
    if has_counts and len(words) != int(fields[0]):
        reason = f"the first line promises {fields[0]} words, there are {len(words)}; was it cut?"
        raise ArtifactError(f"vectors {path}: {reason}")
    return words, np.stack(rows) if rows else np.zeros((0, dim), dtype=np.float32)


def _is_punctuation(character: str) -> bool:
    """Whether a character is punctuation or a symbol."""
    return unicodedata.category(character)[0] in "PS"
