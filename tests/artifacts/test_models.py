"""How models are loaded and stored."""

import pytest
import torch
from transformers import AutoModel

from mtmetrics.artifacts.models import pretrained, sentence_model
from mtmetrics.errors import ArtifactError
from mtmetrics.layout import bundled_artifacts


def test_a_plain_encoder_becomes_a_mean_pooled_sentence_encoder(tiny_encoder, tmp_path):
    from mtmetrics.models.token_encoder import TokenEncoder

    texts = ["the dog sees the house", "a cat"]
    found = sentence_model(tiny_encoder, "cpu").encode(texts)
    assert found == pytest.approx(TokenEncoder(tiny_encoder).encode(texts).means(), abs=1e-5)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ArtifactError, match="cannot be loaded as SentenceTransformer"):
        sentence_model(tmp_path, "cpu")


def test_the_bundled_encoder_is_what_transformers_itself_reads() -> None:
    folder = bundled_artifacts() / "mini-encoder"
    _, own = pretrained("AutoModel", folder, torch.float32)
    plain = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    assert [path.name for path in folder.glob("*.safetensors")] == ["model.safetensors"]
    trained = {name: weights for name, weights in plain.state_dict().items() if not name.startswith("pooler")}
    assert all(torch.equal(weights, own.state_dict()[name]) for name, weights in trained.items())
    assert trained["embeddings.word_embeddings.weight"].shape == (42_000, 384)
