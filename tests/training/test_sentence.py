"""Contrastive learning: the loss by hand, translations come together, and an interrupted run ends with the same
weights."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from mtmetrics.artifacts.models import sentence_model
from mtmetrics.errors import InputError
from mtmetrics.models.sentence_encoder import MeanPooledEncoder
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.training.corpus import Pair
from mtmetrics.training.run import Run
from mtmetrics.training.sentence import contrastive_loss, distinct_pairs, sentence_vectors, train_contrastive
from mtmetrics.training.settings import ContrastiveConfig

TINY = ContrastiveConfig(epochs=4, pairs_per_step=32, learning_rate=1e-2, max_pieces=32, checkpoint_every=15)


@pytest.fixture(scope="module")
def trained(toy_pairs: Path, student: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_contrastive(Run(tmp_path_factory.mktemp("out") / "toy", seed=3), [toy_pairs], student, config=TINY)


def precision(folder: Path, toy_pairs: Path) -> float:
    """Share of the first 100 sources whose nearest target is their translation."""
    rows = [json.loads(line) for line in toy_pairs.read_text(encoding="utf-8").splitlines()[:100]]
    sides = [
        MeanPooledEncoder(TokenEncoder(folder)).encode([row[side] for row in rows]).vectors
        for side in ("source", "target")
    ]
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    return float(((x @ y.T).argmax(1) == np.arange(100)).mean())


def record_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "training.json").read_text(encoding="utf-8"))


def test_the_loss_by_hand() -> None:
    x, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [3.0, 0.0]])
    # Cosines: the first pair 1, the second 0; x1 with y2 1, x2 with y1 0. Lengths do not matter.
    forward = (math.log(2) + math.log(2)) / 2
    backward = (math.log(1 + math.exp(-2)) + math.log(1 + math.exp(2))) / 2
    assert contrastive_loss(x, y, temperature=0.5, symmetric=False).item() == pytest.approx(forward)
    assert contrastive_loss(x, y, temperature=0.5).item() == pytest.approx(forward + backward)
    margin = contrastive_loss(x, y, temperature=0.5, margin=0.25, symmetric=False).item()
    assert margin == pytest.approx(math.log(1 + math.exp(0.5)))


def test_vectors_do_not_depend_on_what_is_encoded_together(student: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = sentence_model(student, "cpu").eval()
    texts = ["the house sees the dog", "dog", "the small tree", "old", "bread needs water"]
    monkeypatch.setattr("mtmetrics.training.sentence._ROWS_TOGETHER", 2)
    with torch.no_grad():
        found = sentence_vectors(model, dict(model.tokenizer(texts, padding=True, return_tensors="pt")))
    assert found.numpy() == pytest.approx(model.encode(texts), abs=1e-6)


def test_translations_come_together(trained: Path, student: Path, toy_pairs: Path) -> None:
    assert precision(trained, toy_pairs) > precision(student, toy_pairs) + 0.5


def test_the_folder_and_its_record(trained: Path, toy_pairs: Path) -> None:
    assert [path.name for path in sorted(trained.iterdir()) if path.is_dir()] == ["1_Pooling"]
    weights = load_file(trained / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    assert not any(name.startswith("pooler") for name in weights)
    record = record_of(trained)
    assert (record["pairs"], record["steps"], record["seed"]) == (400, 52, 3)
    assert record["model"].startswith("student#")
    assert str(toy_pairs.parent.parent) not in json.dumps(record)


def test_a_resumed_run_ends_with_the_same_weights(
    trained: Path, toy_pairs: Path, student: Path, tmp_path: Path, interrupt_at: Callable[[int | None], None]
) -> None:
    def train() -> Path:
        return train_contrastive(Run(tmp_path / "toy", seed=3), [toy_pairs], student, config=TINY)

    for step in (20, 33):
        interrupt_at(step)
        with pytest.raises(KeyboardInterrupt):
            train()
    assert not (tmp_path / "toy").exists()
    interrupt_at(None)
    resumed = train()
    assert (resumed / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()
    assert record_of(resumed) == record_of(trained)


def test_a_sentence_occurs_once_per_side() -> None:
    pairs = [Pair(source, target, "o", "de-en") for source, target in ("ax", "bx", "ay", "by", "cz")]
    assert [pair.source + pair.target for pair in distinct_pairs(pairs)] == ["ax", "by", "cz"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0.0}, "temperature 0.0: must be above 0"),
        ({"epochs": 0}, "epochs 0: must be a whole number of at least 1"),
        ({"warmup": 1.0}, "warmup 1.0: a share of the steps is needed"),
    ],
)
def test_settings_that_cannot_be_used(
    toy_pairs: Path, student: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        train_contrastive(Run(tmp_path / "toy"), [toy_pairs], student, config=ContrastiveConfig(**change))
    assert not (tmp_path / "toy").exists()


def test_a_single_pair_is_too_few(student: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("das haus\tthe house\ndas haus\tthe home\n", encoding="utf-8")
    with pytest.raises(InputError, match="at least two without a common sentence"):
        train_contrastive(Run(tmp_path / "toy"), [tmp_path / "pairs.tsv"], student)
