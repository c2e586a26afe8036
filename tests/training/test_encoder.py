"""The encoder: it is cut, it learns, it loads offline, and what it refuses."""

import dataclasses
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import write_jsonl
from safetensors.torch import load_file
from toys import CONFIGS, WORDS, record_of
from transformers import AutoModel, AutoTokenizer

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.models.packed import PackedTokens
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.training.corpus import ParallelText
from mtmetrics.training.encoder import train_encoder
from mtmetrics.training.run import Run

TINY = CONFIGS["encoder"]
SHORT = {"steps": 4, "warmup_steps": 1, "decay_steps": 1}


def test_training_brings_held_back_pairs_nearer(trained: Callable[[str], Path]) -> None:
    record = record_of(trained("encoder"))
    before, after = record["before_training"]["held_back_loss"], record["result"]["held_back_loss"]
    assert after < 0.8 * before
    assert -1 <= record["result"]["token_r"] <= 1
    assert (
        record["result"]["token_r"]
        == record["result"][next(k for k in record["result"] if "token_r_" in k)]
    )
    assert [*record["data"]["used"].values()] == [{"toy-news": 400}]
    assert record["pairs"]["train"] + record["pairs"]["held_back"] <= 400


def test_the_folder_loads_offline(trained: Callable[[str], Path], multilingual: Path) -> None:
    folder = trained("encoder")
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32).eval()
    ids = tokenizer("das haus", return_tensors="pt")
    assert tokenizer.convert_ids_to_tokens(ids["input_ids"][0]) == ["<s>", "▁das", "▁haus", "</s>"]
    assert model(**ids).last_hidden_state.shape == (1, 4, 16)
    assert model.config.num_hidden_layers == 1
    original = AutoTokenizer.from_pretrained(multilingual, local_files_only=True)
    assert len(tokenizer) == model.config.vocab_size < len(original)
    english = AutoTokenizer.from_pretrained(folder / "languages" / "en", local_files_only=True)
    assert english.tokenize("the house") == ["▁the", "▁house"]
    assert english.get_vocab()["▁house"] == tokenizer.get_vocab()["▁house"]


def test_word_vectors_stay_where_their_rate_is_zero(
    train: Callable[..., Path], multilingual: Path, tmp_path: Path
) -> None:
    made = train("encoder", Run(tmp_path / "out", seed=3), vector_lr=0.0, **SHORT)
    name = "embeddings.word_embeddings.weight"
    vectors, original = (
        load_file(folder / "model.safetensors")[name] for folder in (made, multilingual)
    )
    tokenizers = (
        AutoTokenizer.from_pretrained(folder, local_files_only=True)
        for folder in (made, multilingual)
    )
    numbers, original_numbers = (tokenizer.get_vocab() for tokenizer in tokenizers)
    for piece in ("▁house", "▁haus", "<s>"):
        in_float8 = original[original_numbers[piece]].to(torch.float8_e4m3fn)
        assert torch.equal(vectors[numbers[piece]].float(), in_float8.float())


def test_pairs_from_english_are_turned_round(
    multilingual: Path, toy_pairs: Path, judged: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in toy_pairs.read_text(encoding="utf-8").splitlines()]
    turned = [
        {"source": r["target"], "reference": r["source"], "set": "toy-news", "outputs": {}}
        for r in rows
    ]
    turned.append({"source": "the dog", "reference": None, "set": "toy-news", "outputs": {}})
    text = ParallelText([write_jsonl(tmp_path / "en-de.jsonl", turned)])
    config = dataclasses.replace(TINY, **SHORT)
    made = train_encoder(
        Run(tmp_path / "out", seed=3), text, multilingual, judged=[judged], config=config
    )
    english = AutoTokenizer.from_pretrained(made / "languages" / "en", local_files_only=True)
    assert english.tokenize("the house") == ["▁the", "▁house"]
    record = record_of(made)
    assert record["data"]["left_out"]["no reference"] == 1
    assert [*record["data"]["used"].values()] == [{"toy-news": 400}]


def test_similarities_with_sources_learn_to_follow_those_with_references(
    train: Callable[..., Path],
    trained: Callable[[str], Path],
    multilingual: Path,
    toy_pairs: Path,
    tmp_path: Path,
) -> None:
    rng = random.Random(5)
    outputs, qualities = [], []
    for line in toy_pairs.read_text(encoding="utf-8").splitlines():
        pair = json.loads(line)
        words = pair["target"].split()
        wrong = rng.randrange(6)
        changed = [rng.choice(sorted(WORDS)) for _ in range(wrong)] + words[wrong:]
        outputs.append(
            {
                "lp": "de-en",
                "source": pair["source"],
                "reference": pair["target"],
                "translation": " ".join(changed),
            }
        )
        qualities.append(-wrong)
    path = write_jsonl(tmp_path / "outputs.jsonl", outputs)
    config = dataclasses.replace(
        TINY, steps=60, warmup_steps=5, decay_steps=30, outputs_share=1.0, layers=1
    )
    student = trained("encoder")
    further = train_encoder(
        Run(tmp_path / "further", seed=3),
        ParallelText([toy_pairs]),
        multilingual,
        outputs=[path],
        student=student,
        config=config,
    )
    agreements = []
    for folder in (student, further):
        encoder = TokenEncoder(folder).means()
        source, output = (
            normalised(encoder.encode([row[field] for row in outputs], language))
            for field, language in (("source", "de"), ("translation", "en"))
        )
        agreements.append(np.corrcoef((source * output).sum(1), qualities)[0, 1])
    before, after = agreements
    assert after > before + 0.03
    assert record_of(further)["student"].startswith(f"{student.name}#")


def normalised(texts: PackedTokens) -> np.ndarray:
    """(n, d) vectors of n texts, of unit length."""
    vectors = texts.vectors[texts.index]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_settings_and_places_that_do_not_fit_are_refused(
    train: Callable[..., Path],
    trained: Callable[[str], Path],
    toy_pairs: Path,
    multilingual: Path,
    models: Path,
    tiny_lm: Path,
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="exists already"):
        train("encoder", Run(trained("encoder"), seed=3))
    with pytest.raises(InputError, match="other settings"):
        train("encoder", Run(trained("encoder"), seed=4, overwrite=True))
    with pytest.raises(InputError, match=r"layers 4: .*multilingual has the layers 1 to 3"):
        train("encoder", Run(tmp_path / "a"), layers=4)
    with pytest.raises(InputError, match="BERT architecture is needed, this is gpt2"):
        train_encoder(Run(tmp_path / "b"), ParallelText([toy_pairs]), tiny_lm, config=TINY)
    config = dataclasses.replace(TINY, target_layer=1)
    with pytest.raises(
        InputError, match="Unigram vocabulary is needed to begin with, this one is WordLevel"
    ):
        train_encoder(
            Run(tmp_path / "c"), ParallelText([toy_pairs]), models / "teacher", config=config
        )
    foreign = shutil.copy(toy_pairs, tmp_path / "de-fr.jsonl")
    with pytest.raises(InputError, match="de-fr: one side must be English"):
        train_encoder(Run(tmp_path / "d"), ParallelText([foreign]), multilingual, config=TINY)
    with pytest.raises(
        MTMetricsError, match="the loss is no longer finite; begin again with --restart and a lower"
    ):
        train("encoder", Run(tmp_path / "e"), learning_rate=1e30, **SHORT)
    assert not any((tmp_path / name).exists() for name in "abcde")
