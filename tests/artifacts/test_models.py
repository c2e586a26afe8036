"""Where models are looked for, and how they are opened."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from helpers import write
from transformers import AutoModel

from mtmetrics.artifacts.adapters import bind
from mtmetrics.artifacts.models import (
    base_folder,
    model_folder,
    pretrained,
    pretrained_tokenizer,
    sentence_model,
)
from mtmetrics.artifacts.places import local_folder
from mtmetrics.artifacts.presets import load_preset
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
    trained = {
        name: weights
        for name, weights in plain.state_dict().items()
        if not name.startswith("pooler")
    }
    assert all(torch.equal(weights, own.state_dict()[name]) for name, weights in trained.items())
    assert trained["embeddings.word_embeddings.weight"].shape == (84_000, 384)


def test_the_order_of_places(places):
    bundled = write(places["bundled"] / "model" / "config.json", "").parent
    write(places["bundled"] / "model" / "model.safetensors", "")
    assert model_folder("model") == bundled
    own = write(places["own"] / "model" / "config.json", "").parent
    write(places["own"] / "model" / "model.safetensors", "")
    assert model_folder("model") == own
    # A folder that holds something else is no obstacle where another place has the artifact.
    here = write(places["here"] / "model" / "notes.txt", "").parent
    assert model_folder("model") == own
    (here / "config.json").write_text("")
    (here / "model.safetensors").write_text("")
    assert model_folder("model") == Path("model")
    assert local_folder("model", "preset.toml") is None
    write(places["own"] / "mine" / "preset.toml", 'metric = "bertr"\n')
    assert load_preset("bertr", "mine").folder == places["own"] / "mine"


def test_the_message_names_every_place(places):
    with pytest.raises(ArtifactError) as caught:
        model_folder("someone/model", revision="v3", local_files_only=True)
    own = f"in {places['own']} (MTMETRICS_ARTIFACTS)"
    for part in ("as a folder", own, "as a bundled artifact", "someone/model (revision v3)"):
        assert part in str(caught.value)


def test_the_message_says_how_to_fetch_the_revision_that_is_needed(places):
    with pytest.raises(ArtifactError, match="'hf download org/model --revision v3' fetches it"):
        model_folder("org/model", revision="v3", local_files_only=True)
    with pytest.raises(
        ArtifactError, match=r"'hf download org/thing --revision v1.2.0' fetches it"
    ):
        model_folder("thing", local_files_only=True)
    with pytest.raises(ArtifactError, match="'hf download org/model' fetches it"):
        model_folder("org/model", local_files_only=True)


def test_a_path_is_not_to_be_fetched(places):
    with pytest.raises(ArtifactError, match="no valid name of a repository") as caught:
        model_folder("./runs/mine", local_files_only=True)
    assert "hf download" not in str(caught.value)


@pytest.mark.parametrize("as_stored", [True, False])
def test_a_damaged_configuration_of_a_tokenizer_is_named(tiny_encoder, tmp_path, as_stored):
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "model"))
    (folder / "tokenizer_config.json").write_text("[]")
    with pytest.raises(ArtifactError, match="tokenizer_config.json: a JSON object is needed"):
        pretrained_tokenizer(folder, as_stored=as_stored)


def test_an_adapter_is_to_be_trained_on_the_encoder_beside_it(tiny_encoder, tmp_path):
    encoder = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
    adapter = tmp_path / "adapter"
    settings = {"peft_type": "LORA", "r": 2, "lora_alpha": 4}
    write(adapter / "adapter_config.json", json.dumps(settings))
    write(adapter / "config.json", json.dumps({"encoder_fingerprint": "00000000"}))
    bind(adapter, "../encoder")
    with pytest.raises(ArtifactError, match="train the adapter again") as caught:
        base_folder(adapter)
    [option] = re.findall(r"--model (\S+) --adapter-rank 2", str(caught.value))
    assert model_folder(option).samefile(encoder)
