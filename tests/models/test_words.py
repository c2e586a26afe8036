"""The word filter over WordPiece and SentencePiece vocabularies."""

from typing import Any

import pytest

from mtmetrics.errors import InputError
from mtmetrics.models.words import word_table


class Vocabulary:
    """The part of a tokenizer that the filter reads."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces
        self.all_special_ids = [0]

    def get_vocab(self) -> dict[str, int]:
        return {piece: number for number, piece in enumerate(self.pieces)}


def kept(pieces: list[str]) -> list[str]:
    tokenizer: Any = Vocabulary(pieces)
    return [piece for piece, keep in zip(pieces, word_table(tokenizer), strict=True) if keep]


def test_wordpiece_drops_ascii_punctuation_and_continuations_only() -> None:
    assert kept(["[CLS]", "dog", "##s", ".", "...", "«", "字", "'"]) == ["[CLS]", "dog", "...", "«", "字"]


def test_sentencepiece_keeps_characters_of_scripts_without_spaces() -> None:
    pieces = ["<s>", "▁dog", "s", "▁", "▁.", ".", "▁...", "字典", "の", "ก", "ка", "▁ка"]
    assert kept(pieces) == ["<s>", "▁dog", "字典", "の", "ก", "▁ка"]


def test_other_vocabularies_are_refused() -> None:
    with pytest.raises(InputError, match="variant='release'"):
        kept(["<s>", "Ġdog", "s"])
