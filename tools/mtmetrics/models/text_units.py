"""A text as an encoder reads it: its words or pieces, where they stand, and which of a vocabulary
are words."""

import string
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import regex

from mtmetrics.errors import InputError
from mtmetrics.io.languages import is_unspaced

_MARKS = regex.compile(r"[\p{M}\u200c\u200d]+")


class TextUnits(NamedTuple):
    """A text as an encoder reads it.

    Attributes:
        words: k words or pieces as they are written there, special tokens by their names.
        spans: (k, 2) first character of each, and the one behind its last; both 0 for special
            tokens.
        positions: (t,) for each token the number of its word or piece.
    """

    words: list[str]
    spans: np.ndarray
    positions: np.ndarray

    def take(self, numbers: np.ndarray) -> "TextUnits":
        """Some of the pieces, where every token is one."""
        return TextUnits(
            [self.words[number] for number in numbers], self.spans[numbers], np.arange(len(numbers))
        )


def spans_of(spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """(k, 2) int64, also of no spans."""
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def text_words(tokenizer: Any, text: str, max_length: int, *, pieces: bool = False) -> TextUnits:
    """The words of a text, or its pieces."""
    encoded = tokenizer(text, truncation=True, max_length=max_length, return_offsets_mapping=True)
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    positions = np.zeros(len(encoded["input_ids"]), dtype=np.int64)
    last = None
    names = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    for token, (word, (begin, end)) in enumerate(
        zip(encoded.word_ids(), encoded["offset_mapping"], strict=True)
    ):
        if pieces or word is None or word != last:
            words.append(names[token])
            spans.append((begin, end))
        spans[-1] = (spans[-1][0], end)
        if word is not None:
            words[-1] = names[token]
        positions[token] = len(words) - 1
        last = word
    spans = _with_marks(text, spans)
    written = (text[begin:end].strip() for begin, end in spans)
    return TextUnits(
        [here or name for here, name in zip(written, words, strict=True)],
        spans_of(spans),
        positions,
    )


def _with_marks(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans with the marks that follow them and belong to none: of a letter that a tokenizer
    composes with its marks it says that it ends before them."""
    longer = []
    limit = len(text)
    for begin, end in reversed(spans):
        if begin < end:
            marks = _MARKS.match(text, end, max(limit, end))
            end, limit = (marks.end() if marks else end), begin
        longer.append((begin, end))
    return longer[::-1]


def word_table(tokenizer: Any) -> np.ndarray:
    """(V,) bool table over the vocabulary: true for special tokens and for first pieces of words
    that are no punctuation.

    WordPiece vocabularies: false for single ASCII punctuation characters and for pieces that
    contain ``##``, as in the first published code of XMoverScore. SentencePiece vocabularies, for
    which the authors wrote no filter, get the equivalent: false for pieces of ASCII punctuation
    alone, and for pieces without the space mark, unless they begin with a character of a script
    that is written without spaces (multilingual BERT splits Chinese text into characters, none of
    which carries ``##``).

    Raises:
        InputError: the vocabulary marks words in neither way (byte-level BPE, for example).
    """
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    special = set(tokenizer.all_special_ids)
    table = np.ones(max(vocabulary.values()) + 1, dtype=bool)
    if any(piece.startswith("##") for piece in vocabulary):
        rule = _wordpiece
    elif any(piece.startswith("▁") for piece in vocabulary):
        rule = _sentencepiece
    else:
        known = "the word filter knows WordPiece ('##') and SentencePiece ('▁') vocabularies"
        raise InputError(
            f"{known}; this encoder has another one: use variant='release', which keeps all tokens",
            mentions=["variant='release'"],
        )
    for piece, number in vocabulary.items():
        table[number] = number in special or rule(piece)
    return table


def _wordpiece(piece: str) -> bool:
    return "##" not in piece and not (len(piece) == 1 and piece in string.punctuation)


def _sentencepiece(piece: str) -> bool:
    text = piece.removeprefix("▁")
    if not text or all(character in string.punctuation for character in text):
        return False
    return piece.startswith("▁") or is_unspaced(text[0])
