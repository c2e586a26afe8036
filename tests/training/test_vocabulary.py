"""The pieces that an encoder begins with."""

from typing import Any

import numpy as np
import pytest
from toys import unigram_pieces, word_pieces

from mtmetrics.errors import InputError
from mtmetrics.training import vocabulary

TEXTS = {
    "en": ["the house sleeps", "the house, the dog"] * 9,
    "de": ["das haus schläft", "das haus, der hund"] * 9,
}


@pytest.fixture
def original() -> Any:
    return unigram_pieces("the", "house", "dog", "das", "haus", "hund", "maison")


def test_texts_are_counted_whole(original: Any) -> None:
    original.backend_tokenizer.enable_truncation(3)
    original.backend_tokenizer.enable_padding(length=3)
    house, dog = original.convert_tokens_to_ids(["▁house", "▁dog"])
    counts = vocabulary.piece_counts(["house house house house", "dog"], original)
    assert (counts[house], counts[dog], counts.sum()) == (4, 1, 5)


def test_pieces_that_the_texts_need_are_kept_with_their_scores(original: Any) -> None:
    made = vocabulary.cut_tokenizers(TEXTS, original, 60, 10_000, 1)
    english, others = made["english"], made["others"]
    assert len(english) == len(others)
    assert "▁maison" not in others.get_vocab()
    assert others.tokenize("das haus") == ["▁das", "▁haus"]
    assert others.tokenize("schläft") == original.tokenize("schläft")
    ids = others("das haus")["input_ids"]
    assert others.convert_ids_to_tokens(ids) == ["<s>", "▁das", "▁haus", "</s>"]
    numbers = vocabulary.original_numbers(others, original)
    assert original.convert_ids_to_tokens(numbers[ids].tolist()) == ["<s>", "▁das", "▁haus", "</s>"]
    assert np.unique(numbers).size == len(others)


def test_a_smaller_size_keeps_the_most_frequent_pieces_and_all_usual_letters(original: Any) -> None:
    made = vocabulary.cut_tokenizers(TEXTS, original, 26, 10_000, 1)["others"]
    assert len(made) <= 26
    assert "<unk>" not in made.tokenize("schläft , the house")
    assert made.tokenize("the") == ["▁the"]


def test_tokens_of_english_texts_have_a_type_of_their_own(original: Any) -> None:
    made = vocabulary.cut_tokenizers(TEXTS, original, 60, 10_000, 1)
    english = made["english"]("the house")
    assert english.tokens() == ["<s>", "▁the", "▁house", "</s>"]
    assert english["token_type_ids"] == [vocabulary.ENGLISH_TYPE] * 4
    others = made["others"]("das haus", return_token_type_ids=True)
    assert others["token_type_ids"] == [0] * 4


def test_marks_are_words_of_their_own(original: Any) -> None:
    others = vocabulary.cut_tokenizers(TEXTS, original, 60, 10_000, 1)["others"]
    encoded = others("das haus, hund (hund)")
    assert encoded.tokens() == [
        "<s>",
        "▁das",
        "▁haus",
        ",",
        "▁hund",
        "▁",
        "(",
        *"hund",
        ")",
        "</s>",
    ]
    assert encoded.word_ids() == [None, 0, 1, 2, 3, 4, 4, 5, 5, 5, 5, 6, None]


def test_joiners_do_not_split_words(original: Any) -> None:
    others = vocabulary.cut_tokenizers(TEXTS, original, 60, 10_000, 1)["others"]
    assert others.tokenize("ha\u200dus") == others.tokenize("haus")


def test_other_kinds_of_vocabulary_are_refused() -> None:
    with pytest.raises(
        InputError, match="a Unigram vocabulary is needed to begin with, this one is WordPiece"
    ):
        vocabulary.cut_tokenizers(TEXTS, word_pieces("the"), 60, 10_000, 1)
