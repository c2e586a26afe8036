"""Inverse document frequencies by hand."""

from pathlib import Path

import numpy as np
import pytest

from mtmetrics.errors import ArtifactError
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.models.token_weights import TokenWeights


def test_weights_of_bertscore_are_zero_for_what_every_text_holds(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    encoder = TokenEncoder(tiny_encoder)
    weights = TokenWeights.fit(encoder, ["the house", "the dog the dog", "the dog"], offset=0.0)
    vocabulary = encoder.tokenizer.get_vocab()
    found = [weights.table[vocabulary[word]] for word in ("the", "dog", "house", "cat")]
    assert found == pytest.approx([0, np.log(4 / 3), np.log(4 / 2), np.log(4)])
    assert weights.table[vocabulary["[CLS]"]] == 0

    weights.save(tmp_path / "idf.safetensors")
    with pytest.raises(
        ArtifactError, match="transport needs positive ones; fit the table with offset=1"
    ):
        TokenWeights.load(tmp_path / "idf.safetensors")
    TokenWeights(np.array([1.0, -0.1], dtype=np.float32)).save(tmp_path / "idf.safetensors")
    with pytest.raises(ArtifactError, match="at least 0"):
        TokenWeights.load(tmp_path / "idf.safetensors")
