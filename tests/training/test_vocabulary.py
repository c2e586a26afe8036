"""The pieces that an encoder begins with, and their vectors."""

from typing import Any

import numpy as np
import pytest
from toys import word_pieces

from mtmetrics.training import vocabulary
from mtmetrics.training.corpus import Pair


def test_texts_are_counted_whole(original: Any) -> None:
    original.backend_tokenizer.enable_truncation(3)
    original.backend_tokenizer.enable_padding(length=3)
    house, dog = original.convert_tokens_to_ids(["house", "dog"])
    counts = vocabulary.piece_counts(["house house house house", "dog"], original)
    assert (counts[house], counts[dog], counts.sum()) == (4, 1, 5)


def test_a_new_piece_begins_as_the_mean_of_what_it_is_translated_with(original: Any) -> None:
    vectors = np.random.default_rng(0).standard_normal((len(original), 4)).astype(np.float32)
    tokenizer = word_pieces("~ house", "haus", "river", "unseen")
    english = word_pieces("house", "~ haus", "~ river", "~ unseen")
    pairs = [Pair("haus", "house", "x", "de-en"), Pair("river", "dog", "x", "de-en")] * 2
    found = vocabulary.counted_vectors(pairs, tokenizer, english, original, vectors)
    found = {piece: found[number] for piece, number in tokenizer.get_vocab().items()}
    old = {piece: vectors[number] for piece, number in original.get_vocab().items()}
    assert found["haus"] == pytest.approx(old["house"])
    assert found["~ house"] == pytest.approx(old["house"])  # English alone: its own vector
    assert found["river"] == pytest.approx(old["dog"])  # of another language, though English has such a piece
    assert found["[CLS]"] == pytest.approx(old["[CLS]"])
    assert found["unseen"] == pytest.approx(vectors.mean(0))


def test_english_and_the_other_languages_share_no_piece_with_letters(original: Any) -> None:
    pairs = [Pair("das house , 1", "the house , 1", "x", "de-en")] * 5 + [Pair("der fluss", "river", "x", "de-en")]
    made = vocabulary.two_tokenizers(pairs, original, 80, 2, 1000, 1)
    english, others = made["english"], made["others"]
    assert len(english) == len(others) <= 80
    assert english.tokenize("the house") == ["the", "house"]  # the usual ones
    assert "river" not in english.tokenize("river")
    assert others.tokenize("das house")[-1] == "house"
    ids = [set(tokenizer("das house the fluss").input_ids) for tokenizer in (english, others)]
    assert ids[0] & ids[1] == set(english.all_special_ids) & ids[0]
    assert english(", 1").input_ids == others(", 1").input_ids
