"""A text as an encoder reads it: its words or pieces, and their places in the text.

`text_words` splits a text, `word_table` tells the words of a vocabulary from pieces and punctuation.
"""

import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import regex

from mtmetrics.artifacts.models import Tokenizer
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.languages import is_unspaced

# Limit of a text in tokens where the tokenizer has none.
_MOST_TOKENS = 2**31 - 1
# Combining marks, and the two joiners of Indic scripts.
_MARKS = regex.compile(r"[\p{M}\u200c\u200d]+")


class TextUnits(NamedTuple):
    """The k words or pieces of a text of t tokens.

    Attributes:
        words: each as it is written in the text; a special token by its name.
        spans: (k, 2) first character of each, and the one behind its last; both 0 for special
            tokens.
        positions: (t,) for each token the place of its word or piece in `words`.
    """

    words: list[str]
    spans: np.ndarray
    positions: np.ndarray

    def take(self, places: np.ndarray) -> "TextUnits":
        """Returns some of the pieces, where every token is a piece."""
        words = [self.words[place] for place in places]
        return TextUnits(words, self.spans[places], np.arange(len(places)))


def tokenizer_limit(tokenizer: Tokenizer) -> int:
    """Returns the highest number of tokens, special tokens included, that a tokenizer allows."""
    # `transformers` says 1e30 for "no limit", which its tokenizers cannot take as a number of tokens.
    return int(min(tokenizer.model_max_length, _MOST_TOKENS))


def require_fast_tokenizer(tokenizer: Tokenizer, description: str) -> None:
    """Refuses a tokenizer that does not tell where its tokens stand in a text.

    Args:
        tokenizer: the tokenizer.
        description: kind and name of its model, for the message.

    Raises:
        ArtifactError: it is not a fast tokenizer of `transformers`.
    """
    if not tokenizer.is_fast:
        raise ArtifactError(
            f"{description}: {type(tokenizer).__name__} does not tell where its tokens stand in a "
            "text; choose a model with a fast tokenizer"
        )


def spans_of(spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """Returns k spans as a (k, 2) int64 array, also where k is 0."""
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def text_words(
    tokenizer: Tokenizer, text: str, max_length: int, *, pieces: bool = False
) -> TextUnits:
    """Splits a text into words, or into pieces; it is cut after `max_length` tokens, special tokens
    included."""
    encoded = tokenizer(text, truncation=True, max_length=max_length, return_offsets_mapping=True)
    token_names = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    unit_names: list[str] = []
    spans: list[tuple[int, int]] = []
    positions = np.zeros(len(token_names), dtype=np.int64)
    last_word = None
    tokens = zip(token_names, encoded.word_ids(), encoded["offset_mapping"], strict=True)
    for token, (name, word, (begin, end)) in enumerate(tokens):
        if pieces or word is None or word != last_word:
            unit_names.append(name)
            spans.append((begin, end))
        else:
            unit_names[-1] = name
            spans[-1] = (spans[-1][0], end)
        positions[token] = len(spans) - 1
        last_word = word
    spans = _with_marks(text, spans)
    # A unit that is nowhere in the text, such as a special token, has its name.
    words = [
        text[begin:end].strip() or name
        for name, (begin, end) in zip(unit_names, spans, strict=True)
    ]
    return TextUnits(words, spans_of(spans), positions)


def _with_marks(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Extends spans by the combining marks that follow them and belong to no span.

    A tokenizer that composes a letter with its marks says that the letter ends before them.
    """
    extended = []
    next_begin = len(text)
    for begin, end in reversed(spans):
        if begin < end:
            marks = _MARKS.match(text, end, max(next_begin, end))
            end = marks.end() if marks else end
            next_begin = begin
        extended.append((begin, end))
    return extended[::-1]


def word_table(tokenizer: Tokenizer) -> np.ndarray:
    """Returns a (V,) bool table over a vocabulary: true for special tokens, and for pieces that
    begin a word and are no punctuation.

    In a WordPiece vocabulary, single ASCII punctuation characters and pieces with ``##`` are false,
    as in the first published code of XMoverScore. For a SentencePiece vocabulary the authors wrote
    no filter. Here pieces of ASCII punctuation alone are false, and so are pieces without the space
    mark, unless they begin with a character of a script that is written without spaces:
    multilingual BERT splits Chinese text into characters, none of which has ``##``.

    Raises:
        InputError: the vocabulary marks words in neither way (byte-level BPE, for example).
    """
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    special = set(tokenizer.all_special_ids)
    table = np.ones(max(vocabulary.values()) + 1, dtype=bool)
    wordpiece_marks = sum(piece.startswith("##") for piece in vocabulary)
    sentencepiece_marks = sum(piece.startswith("▁") for piece in vocabulary)
    # A vocabulary of one kind may have a few pieces that begin with the other mark: "##" in Markdown.
    if wordpiece_marks > sentencepiece_marks:
        begins_word = _begins_word_in_wordpiece
    elif sentencepiece_marks:
        begins_word = _begins_word_in_sentencepiece
    else:
        raise InputError(
            "the word filter knows WordPiece ('##') and SentencePiece ('▁') vocabularies; this "
            "encoder has another one: choose another encoder, or in a metric pieces='all', which "
            "keeps all tokens",
            mentions=["pieces='all'"],
        )
    for piece, number in vocabulary.items():
        table[number] = number in special or begins_word(piece)
    return table


def _begins_word_in_wordpiece(piece: str) -> bool:
    return "##" not in piece and not (len(piece) == 1 and piece in string.punctuation)


def _begins_word_in_sentencepiece(piece: str) -> bool:
    text = piece.removeprefix("▁")
    if not text or all(character in string.punctuation for character in text):
        return False
    return piece.startswith("▁") or is_unspaced(text[0])
