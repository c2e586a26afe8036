"""Static word vectors: one vector per word, whatever stands around it."""

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mtmetrics.artifacts.models import fingerprint, model_label
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.languages import is_unspaced
from mtmetrics.io.lines import iter_lines
from mtmetrics.models.packed import Language, Level, PackedTokens, distinct
from mtmetrics.models.text_units import TextUnits, spans_of


class StaticVectors:
    """Looks words up in a table; words that it does not hold are left out.

    A text is split at white space. A chunk that is no word of the table, as written or lower-cased,
    is split at its punctuation, and where a script is written without spaces into the longest words
    of the table, from left to right.

    Args:
        table: word2vec text (``word 0.1 0.2 ...`` per line, with or without a first line of counts;
            also ``.gz``), or a ``.safetensors`` file of ``vectors`` (V, d) and ``words``, the UTF-8
            bytes of the words joined by line ends.

    Raises:
        InputError: there is no such file.
        ArtifactError: the file is no such table, or damaged.
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
        # Of a word that stands twice, the first one.
        self._numbers = {word: number for number, word in reversed([*enumerate(words)])}
        self._longest = max(map(len, words))
        self.word_table = np.array([not all(map(_is_punctuation, word)) for word in words])
        self.vocabulary_size = len(words)

    def encode(self, texts: Sequence[str], language: Language = None) -> PackedTokens:
        """Packed vectors of the distinct texts, one row per known word."""
        unique, index = distinct(texts)
        ids = [
            np.array([number for *_, number in self._lookup(text)], dtype=np.int64)
            for text in unique
        ]
        vectors = self._vectors[np.concatenate([np.zeros(0, dtype=np.int64), *ids])].astype(
            np.float32
        )
        words = [np.arange(len(row)) for row in ids]
        return PackedTokens.of_tokens(vectors, ids, words, index, np.zeros(len(ids), dtype=bool))

    def text_words(self, text: str, language: str | None = None) -> TextUnits:
        """The known words of a text as they are written there, each with a row of its own."""
        spans = [(begin, begin + len(word)) for begin, word, _ in self._lookup(text)]
        return TextUnits(
            [text[slice(*span)] for span in spans], spans_of(spans), np.arange(len(spans))
        )

    def _lookup(self, text: str) -> Iterator[tuple[int, str, int]]:
        """Known words: first character, word, number."""
        for chunk in re.finditer(r"\S+", text):
            begin = chunk.start()
            if (number := self._number(chunk[0])) is not None:
                yield begin, chunk[0], number
                continue
            groups = itertools.groupby(
                chunk[0], lambda letter: (_is_punctuation(letter), is_unspaced(letter))
            )
            for _, letters in groups:
                run = "".join(letters)
                yield from self._longest_words(run, begin)
                begin += len(run)

    def _longest_words(self, run: str, start: int) -> Iterator[tuple[int, str, int]]:
        if (number := self._number(run)) is not None:
            yield start, run, number
            return
        begin = 0
        while begin < len(run) and is_unspaced(run[begin]):
            for end in range(min(len(run), begin + self._longest), begin, -1):
                if (number := self._number(run[begin:end])) is not None:
                    yield start + begin, run[begin:end], number
                    break
            begin = end

    def _number(self, word: str) -> int | None:
        number = self._numbers.get(word)
        return self._numbers.get(word.lower()) if number is None else number


def read_table(path: str | Path) -> tuple[list[str], np.ndarray]:
    """Words and their (V, d) vectors; errors as of `StaticVectors`."""
    if not Path(path).is_file():
        raise InputError(f"vectors {path}: no such file")
    words, vectors = (
        _read_safetensors(path) if str(path).endswith(".safetensors") else _read_text(path)
    )
    if not len(vectors):
        raise ArtifactError(f"vectors {path}: holds no word")
    if not np.isfinite(vectors).all():
        raise ArtifactError(f"vectors {path}: holds values that are not finite")
    return words, vectors


def _read_safetensors(path: str | Path) -> tuple[list[str], np.ndarray]:
    import safetensors.numpy

    try:
        table = safetensors.numpy.load_file(path)
        words, vectors = table["words"].tobytes().decode("utf-8").split("\n"), table["vectors"]
    except (OSError, KeyError, UnicodeDecodeError, safetensors.SafetensorError) as error:
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
    number, first = next(lines, (1, ""))
    head = first.split()
    counted = len(head) == 2 and all(field.isdecimal() for field in head)
    if not counted:
        lines = itertools.chain([(number, first)], lines)
    dim = int(head[1]) if counted else len(head) - 1
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
    if counted and len(words) != int(head[0]):
        reason = f"the first line promises {head[0]} words, there are {len(words)}; was it cut?"
        raise ArtifactError(f"vectors {path}: {reason}")
    return words, np.stack(rows) if rows else np.zeros((0, dim), dtype=np.float32)


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"
