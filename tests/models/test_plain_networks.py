"""BERT and GPT-2 by torch alone are what `transformers` makes of the same files; other models are
left to it."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2Model

from mtmetrics.artifacts.models import transformers_network
from mtmetrics.errors import ArtifactError
from mtmetrics.models.plain_networks import GPT2, Bert, load_network

IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def states(model: torch.nn.Module) -> torch.Tensor:
    """The last states, zero at padding."""
    trunk = getattr(model, "base_model", model) if hasattr(model, "lm_head") else model
    with torch.inference_mode():
        found = trunk.eval()(input_ids=IDS, attention_mask=MASK).last_hidden_state
    return found.float() * MASK[:, :, None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("fixture", "auto_class", "kind"),
    [("tiny_encoder", "AutoModel", Bert), ("tiny_lm", "AutoModelForCausalLM", GPT2)],
)
def test_states_are_those_of_transformers(
    fixture: str, auto_class: str, kind: type, dtype: torch.dtype, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(fixture)
    ours, theirs = (
        load_network(auto_class, folder, dtype),
        transformers_network(auto_class, folder, dtype),
    )
    assert type(ours) is kind
    tolerance = 1e-6 if dtype == torch.float32 else 0.05
    assert states(ours) == pytest.approx(states(theirs), abs=tolerance)


def test_a_model_with_a_head_is_read_without_it(tmp_path: Path) -> None:
    sizes = {
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    whole = BertForMaskedLM(BertConfig(vocab_size=30, **sizes))
    whole.save_pretrained(tmp_path)
    found = load_network("AutoModel", tmp_path, torch.float32)
    assert type(found) is Bert
    assert states(found) == pytest.approx(states(whole.bert), abs=1e-6)


def test_gpt2_without_a_head_in_the_names(tmp_path: Path) -> None:
    whole = GPT2Model(GPT2Config(vocab_size=30, n_embd=8, n_layer=2, n_head=2, n_positions=16))
    whole.save_pretrained(tmp_path)
    found = load_network("AutoModelForCausalLM", tmp_path, torch.float32)
    assert type(found) is GPT2
    assert states(found) == pytest.approx(states(whole), abs=1e-6)


@pytest.mark.parametrize("change", ["activation", "decoder", "names", "file"])
def test_other_models_are_left_to_transformers(
    change: str, tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "model"))
    settings = {"activation": {"hidden_act": "relu"}, "decoder": {"is_decoder": True}}.get(
        change, {}
    )
    config = json.loads((folder / "config.json").read_text()) | settings
    (folder / "config.json").write_text(json.dumps(config))
    weights = folder / "model.safetensors"
    if change == "names":  # as checkpoints of 2018 have them
        old = {
            name.replace("LayerNorm.weight", "LayerNorm.gamma"): x
            for name, x in load_file(weights).items()
        }
        save_file(old, weights, {"format": "pt"})
    if change == "file":
        index = {
            "metadata": {},
            "weight_map": dict.fromkeys(load_file(weights), "model-00001-of-00001.safetensors"),
        }
        weights.rename(folder / "model-00001-of-00001.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    found = load_network("AutoModel", folder, torch.float32)
    assert type(found).__module__.startswith("transformers")
    assert states(found) == pytest.approx(
        states(transformers_network("AutoModel", folder, torch.float32))
    )


def test_weights_that_do_not_fit_their_configuration_are_refused(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 20}))
    with pytest.raises(
        ArtifactError, match="model: cannot be loaded as AutoModel, damaged or incomplete"
    ):
        load_network("AutoModel", folder, torch.float32)
