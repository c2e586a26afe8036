"""Aligned words of parallel sentences."""

from pathlib import Path

import numpy as np

from mtmetrics.matching.align import align_words
from mtmetrics.mining.word_pairs import words_from_sentences
from mtmetrics.models.token_encoder import TokenEncoder


def test_words_of_equal_sentences_are_aligned_with_themselves(tiny_encoder: Path) -> None:
    """The vectors are sharpened so that each piece has one partner: itself."""
    aligner = TokenEncoder(tiny_encoder)
    encode = aligner.encode_words
    aligner.encode_words = lambda sentences: encode(sentences).with_vectors(
        lambda vectors: (100 * vectors).astype(np.float32)
    )
    sentences = [["the", "house", "xyz"], ["ich", "sehe"], [], ["the", "dog"]]
    words = words_from_sentences([(sentence, sentence) for sentence in sentences], aligner)
    assert words == [
        ("the", "the"),
        ("house", "house"),
        ("xyz", "xyz"),
        ("ich", "ich"),
        ("sehe", "sehe"),
        ("the", "the"),
        ("dog", "dog"),
    ]


def test_words_are_those_of_the_alignment(tiny_encoder: Path) -> None:
    aligner = TokenEncoder(tiny_encoder)
    source, target = ["das", "haus", "schläft"], ["the", "house", "stands"]
    [aligned] = align_words(aligner.encode_words([source]), aligner.encode_words([target]))
    assert aligned
    assert words_from_sentences([(source, target)] * 2, aligner) == [(source[a], target[b]) for a, b in aligned] * 2
