"""Behaviour that all loaded models share."""

from pathlib import Path

import pytest

from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder


def test_means_are_an_encoder_of_sentences_and_leave_the_words_as_they_are(
    tiny_encoder: Path,
) -> None:
    words = TokenEncoder(tiny_encoder)
    sentences = words.means()
    assert (words.level, sentences.level, sentences.fingerprint) == (
        "word",
        "sentence",
        words.fingerprint,
    )
    assert ModelPool().sentence_encoder(str(tiny_encoder)).level == "sentence"


def test_what_nobody_knows_is_refused(tiny_encoder: Path) -> None:
    for load in (lambda: TokenEncoder(tiny_encoder, batch=64), lambda: ModelPool(batch=64)):
        with pytest.raises(TypeError, match="unexpected keyword argument 'batch'"):
            load()
