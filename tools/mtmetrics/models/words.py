"""Which vocabulary entries count as words: the published filter of punctuation and word continuations as a table."""

import string
import unicodedata
from typing import Any

import numpy as np

from mtmetrics.errors import InputError

# Scripts that are written without spaces: there a SentencePiece entry without the space mark is no continuation.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "IDEOGRAPHIC")


def word_table(tokenizer: Any) -> np.ndarray:
    """(V,) bool table over the vocabulary: true for special tokens and for the first piece of a word that is no
    punctuation.

    WordPiece vocabularies: false for single ASCII punctuation characters and for pieces that contain ``##``, as in the
    first published code of XMoverScore. SentencePiece vocabularies, for which the authors wrote no filter, get the
    equivalent: false for pieces of ASCII punctuation alone, and for pieces without the space mark, unless they begin
        with a character of a script that is written without spaces
    (multilingual BERT splits Chinese text into characters, none of which carries ``##``).

    Args:
        tokenizer: a tokenizer of `transformers`.

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
        raise InputError(
            "the word filter knows WordPiece ('##') and SentencePiece ('▁') vocabularies; this encoder has another one: "
            "use variant='release', which keeps all tokens"
        )
    for piece, number in vocabulary.items():
        table[number] = number in special or rule(piece)
    return table


def text_words(tokenizer: Any, text: str, max_length: int) -> tuple[list[str], np.ndarray]:
    """The words of a text as they are written there, and special tokens by their names.

    Args:
        tokenizer: a fast tokenizer of `transformers`.
        text: the text.
        max_length: tokens that are kept.

    Returns:
        k words in reading order, and for each token (t,) int64 the number of its word.
    """
    encoded = tokenizer(text, truncation=True, max_length=max_length, return_offsets_mapping=True)
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    positions = np.zeros(len(encoded["input_ids"]), dtype=np.int64)
    last = None
    names = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    for token, (word, (begin, end)) in enumerate(zip(encoded.word_ids(), encoded["offset_mapping"], strict=True)):
        if word is None or word != last:
            words.append(names[token])
            spans.append((begin, end))
        spans[-1] = (spans[-1][0], end)
        if word is not None:
            words[-1] = text[slice(*spans[-1])].strip() or names[token]
        positions[token] = len(words) - 1
        last = word
    return words, positions


def _wordpiece(piece: str) -> bool:
    return "##" not in piece and not (len(piece) == 1 and piece in string.punctuation)


def _sentencepiece(piece: str) -> bool:
    text = piece.removeprefix("▁")
    if not text or all(character in string.punctuation for character in text):
        return False
    return piece.startswith("▁") or is_unspaced(text[0])


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without spaces between words."""
    return unicodedata.name(character, "").startswith(_UNSPACED)
