"""The encoder: it learns, from a good start, and what it refuses."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from toys import CONFIGS, record_of, word_pieces
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.training import vocabulary
from mtmetrics.training.corpus import ParallelText
from mtmetrics.training.encoder import train_encoder
from mtmetrics.training.run import Run

TINY = CONFIGS["encoder"]
SHORT = {"steps": 4, "warmup_steps": 1, "decay_steps": 1}


def test_training_brings_held_back_pairs_nearer_from_a_good_start(
    train: Callable[..., Path], trained: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = record_of(trained("encoder"))
    before, after = record["before_training"]["held_back_loss"], record["result"]["held_back_loss"]
    assert after < 0.8 * before
    assert -1 <= record["result"]["token_r"] <= 1
    assert record["result"]["token_r"] == record["result"][next(k for k in record["result"] if "token_r_" in k)]
    assert [*record["data"]["used"].values()] == [{"toy-news": 400}]
    assert record["pairs"]["train"] + record["pairs"]["held_back"] <= 400

    def random_vectors(pairs: object, tokenizer: list, *others: object) -> np.ndarray:
        return np.random.default_rng(0).standard_normal((len(tokenizer), 16)).astype(np.float32)

    monkeypatch.setattr(vocabulary, "counted_vectors", random_vectors)
    other = record_of(train("encoder", Run(tmp_path / "toy", seed=3), **SHORT))
    assert before < other["before_training"]["held_back_loss"] - 0.5


def test_the_folder_loads_offline(trained: Callable[[str], Path]) -> None:
    folder = trained("encoder")
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32).eval()
    ids = tokenizer("Das HAUS", return_tensors="pt")
    assert tokenizer.convert_ids_to_tokens(ids["input_ids"][0]) == ["[CLS]", *tokenizer.tokenize("das haus"), "[SEP]"]
    assert model(**ids).last_hidden_state.shape == (1, ids["input_ids"].shape[1], 16)
    english = AutoTokenizer.from_pretrained(folder / "languages" / "en", local_files_only=True)
    assert english.tokenize("the house") == ["the", "house"]
    assert english.get_vocab()["house"] == tokenizer.get_vocab()["~ house"]


def test_layers_above_the_taught_one_are_kept(toy_pairs: Path, tmp_path: Path) -> None:
    words = sorted({word for line in toy_pairs.read_text().splitlines() for word in json.loads(line)["target"].split()})
    made = word_pieces(*words)
    made.save_pretrained(tmp_path / "deep")
    torch.manual_seed(4)
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    deep = BertModel(BertConfig(vocab_size=len(made), max_position_embeddings=64, **sizes), add_pooling_layer=False)
    deep.save_pretrained(tmp_path / "deep")
    config = dataclasses.replace(TINY, layer=2, **SHORT)
    out = train_encoder(Run(tmp_path / "out", seed=1), ParallelText([toy_pairs]), tmp_path / "deep", config=config)
    weights = load_file(out / "model.safetensors")
    names = [name for name, tensor in deep.state_dict().items() if name.startswith("encoder.layer.")]
    changed = {n.split(".")[2] for n in names if not torch.equal(weights[n], deep.state_dict()[n].half())}
    assert changed == {"0", "1"}


def test_settings_and_places_that_do_not_fit_are_refused(
    train: Callable[..., Path],
    trained: Callable[[str], Path],
    toy_pairs: Path,
    models: Path,
    tiny_lm: Path,
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="exists already"):
        train("encoder", Run(trained("encoder"), seed=3))
    with pytest.raises(InputError, match="other settings"):
        train("encoder", Run(trained("encoder"), seed=4, overwrite=True))
    with pytest.raises(InputError, match="teacher has the layers 1 to 1"):
        train("encoder", Run(tmp_path / "a"), layer=2)
    with pytest.raises(InputError, match="BERT architecture is needed, this is gpt2"):
        train_encoder(Run(tmp_path / "b"), ParallelText([toy_pairs]), tiny_lm, config=TINY)
    foreign = shutil.copy(toy_pairs, tmp_path / "de-fr.jsonl")
    with pytest.raises(InputError, match="de-fr: the teacher reads English"):
        train_encoder(Run(tmp_path / "c"), ParallelText([foreign]), models / "teacher", config=TINY)
    with pytest.raises(MTMetricsError, match="the loss is no longer finite; begin again with --restart and lower"):
        train("encoder", Run(tmp_path / "d"), vector_lr=1e30, **SHORT)
    assert not any((tmp_path / name).exists() for name in "abcd")
