"""How models are loaded and stored."""

import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModel

from mtmetrics.artifacts import models
from mtmetrics.artifacts.models import pretrained, save_cut, sentence_model
from mtmetrics.errors import ArtifactError


def test_a_plain_encoder_becomes_a_mean_pooled_sentence_encoder(tiny_encoder, tmp_path):
    from mtmetrics.models.token_encoder import TokenEncoder

    texts = ["the dog sees the house", "a cat"]
    found = sentence_model(tiny_encoder, "cpu").encode(texts)
    assert found == pytest.approx(TokenEncoder(tiny_encoder).encode(texts).means(), abs=1e-5)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ArtifactError, match="cannot be loaded as SentenceTransformer"):
        sentence_model(tmp_path, "cpu")


def test_weights_too_large_for_one_file_are_cut_and_joined_again(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, model = pretrained("AutoModel", tiny_encoder, torch.float16)
    monkeypatch.setattr(models, "_HEADER_BYTES", 0)
    table = model.embeddings.word_embeddings.weight
    save_cut(model.state_dict(), tmp_path, table.nbytes // 2)
    sizes = [path.stat().st_size for path in tmp_path.glob("*.safetensors")]
    assert len(sizes) > 3
    assert max(sizes) < table.nbytes
    for path in [*tiny_encoder.glob("tokenizer*"), tiny_encoder / "config.json"]:
        shutil.copy(path, tmp_path)
    _, joined = pretrained("AutoModel", tmp_path, torch.float16)
    assert all(torch.equal(weights, joined.state_dict()[name]) for name, weights in model.state_dict().items())
    with pytest.raises(OSError, match="no file named"):  # and it fails where the parts are not joined
        AutoModel.from_pretrained(tmp_path, local_files_only=True)
