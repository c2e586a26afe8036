"""The word filter over WordPiece and SentencePiece vocabularies."""

from typing import Any

import pytest

from mtmetrics.errors import InputError
from mtmetrics.models.text_units import word_table


class Vocabulary:
    """The part of a tokenizer that the filter reads."""

    all_special_ids = (0,)

    def __init__(self, pieces: list[str]) -> None:
        self.get_vocab = lambda: {piece: number for number, piece in enumerate(pieces)}


def kept(pieces: list[str]) -> list[str]:
    tokenizer: Any = Vocabulary(pieces)
    return [piece for piece, keep in zip(pieces, word_table(tokenizer), strict=True) if keep]


def test_punctuation_and_continuations_are_dropped_but_no_scripts_without_spaces() -> None:
    assert kept(["[CLS]", "dog", "##s", ".", "...", "«", "字", "'"]) == [
        "[CLS]",
        "dog",
        "...",
        "«",
        "字",
    ]
    pieces = ["<s>", "▁dog", "s", "▁", "▁.", ".", "▁...", "字典", "の", "ก", "ка", "▁ка"]
    assert kept(pieces) == ["<s>", "▁dog", "字典", "の", "ก", "▁ка"]
    with pytest.raises(InputError, match="in a metric pieces='all'"):
        kept(["<s>", "Ġdog", "s"])


def test_the_more_frequent_mark_decides_the_kind_of_vocabulary() -> None:
    assert kept(["<s>", "▁dog", "▁cat", "s", "##"]) == ["<s>", "▁dog", "▁cat"]
    assert kept(["[CLS]", "▁", "dog", "##s", "##t"]) == ["[CLS]", "▁", "dog"]
