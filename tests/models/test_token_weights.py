"""The word filter over WordPiece and SentencePiece vocabularies, and inverse document frequencies by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.text_units import word_table
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.models.token_weights import TokenWeights


class Vocabulary:
    """The part of a tokenizer that the filter reads."""

    all_special_ids = (0,)

    def __init__(self, pieces: list[str]) -> None:
        self.get_vocab = lambda: {piece: number for number, piece in enumerate(pieces)}


def kept(pieces: list[str]) -> list[str]:
    tokenizer: Any = Vocabulary(pieces)
    return [piece for piece, keep in zip(pieces, word_table(tokenizer), strict=True) if keep]


def test_punctuation_and_continuations_are_dropped_but_no_scripts_without_spaces() -> None:
    assert kept(["[CLS]", "dog", "##s", ".", "...", "«", "字", "'"]) == ["[CLS]", "dog", "...", "«", "字"]
    pieces = ["<s>", "▁dog", "s", "▁", "▁.", ".", "▁...", "字典", "の", "ก", "ка", "▁ка"]
    assert kept(pieces) == ["<s>", "▁dog", "字典", "の", "ก", "▁ка"]
    with pytest.raises(InputError, match="variant='release'"):
        kept(["<s>", "Ġdog", "s"])


def test_weights_of_bertscore_are_zero_for_what_every_text_holds(tiny_encoder: Path, tmp_path: Path) -> None:
    encoder = TokenEncoder(tiny_encoder)
    weights = TokenWeights.fit(encoder, ["the house", "the dog the dog", "the dog"], offset=0.0)
    vocabulary = encoder.tokenizer.get_vocab()
    found = [weights.table[vocabulary[word]] for word in ("the", "dog", "house", "cat")]
    assert found == pytest.approx([0, np.log(4 / 3), np.log(4 / 2), np.log(4)])
    assert weights.table[vocabulary["[CLS]"]] == 0

    weights.save(tmp_path / "idf.safetensors")
    with pytest.raises(ArtifactError, match="transport needs positive ones; fit the table with offset=1"):
        TokenWeights.load(tmp_path / "idf.safetensors")
    TokenWeights(np.array([1.0, -0.1], dtype=np.float32)).save(tmp_path / "idf.safetensors")
    with pytest.raises(ArtifactError, match="at least 0"):
        TokenWeights.load(tmp_path / "idf.safetensors")
