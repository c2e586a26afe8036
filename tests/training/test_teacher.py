"""An encoder that also learns from an English sentence encoder."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_settings import TINY
from torch import nn
from torch.nn import functional

from mtmetrics.errors import InputError
from mtmetrics.models.sentence_encoder import MeanPooledEncoder
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.training.encoder import train_encoder
from mtmetrics.training.pair_model import PairModel
from mtmetrics.training.run import Run
from mtmetrics.training.teacher import SentenceTeacher

CONFIG = dataclasses.replace(TINY, teacher_weight=5.0, corrupted=0.3, evaluate_every=60)


@pytest.fixture(scope="session")
def teacher(sentence_folder: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sentence_folder(tmp_path_factory.mktemp("models") / "wide", width=24, seed=1)


@pytest.fixture(scope="session")
def english(toy_pairs: Path) -> list[str]:
    return [json.loads(line)["target"] for line in toy_pairs.read_text(encoding="utf-8").splitlines()]


def test_vectors_are_short_and_keep_what_the_teacher_tells_apart(
    teacher: Path, english: list[str], tmp_path: Path
) -> None:
    school = SentenceTeacher(teacher, english, 16, tmp_path / "rotation.npz")
    vectors = school.vectors(english[:50])
    assert vectors.shape == (50, 16)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)
    whole = TokenEncoder(teacher).encode(english)
    wide = whole.means()[whole.index]
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    wide = (wide - wide.mean(0))[:50]
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    upper = np.triu_indices(50, 1)
    assert np.corrcoef((vectors @ vectors.T)[upper], (wide @ wide.T)[upper])[0, 1] > 0.95


def test_a_resumed_run_has_the_same_rotation(teacher: Path, english: list[str], tmp_path: Path) -> None:
    first = SentenceTeacher(teacher, english, 8, tmp_path / "rotation.npz")
    again = SentenceTeacher(teacher, english[:100], 8, tmp_path / "rotation.npz", seed=9)
    assert np.array_equal(first.vectors(english[:5]), again.vectors(english[:5]))


def test_unfit_teachers_are_refused(teacher: Path, student: Path, english: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"dimensions are too few for width 32"):
        SentenceTeacher(teacher, english, 32, tmp_path / "none.npz")
    with pytest.raises(InputError, match="averages token vectors"):
        SentenceTeacher(student, english, 8, tmp_path / "none.npz")
    assert not (tmp_path / "none.npz").exists()


class Lookup(nn.Module):
    """An encoder whose token vectors are rows of a table."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.table = nn.Embedding.from_pretrained(table)

    def forward(self, input_ids: torch.Tensor, **_: torch.Tensor) -> "Lookup":
        self.last_hidden_state = self.table(input_ids)
        return self


def test_what_the_teacher_adds_to_the_loss() -> None:
    generator = torch.Generator().manual_seed(1)
    table = functional.normalize(torch.randn(12, 4, generator=generator), dim=-1)
    taught, worse_taught = (functional.normalize(torch.randn(3, 4, generator=generator), dim=-1) for _ in range(2))
    source, target, worse = torch.arange(3)[:, None], torch.arange(3, 6)[:, None], torch.arange(6, 9)[:, None]
    mask = torch.ones(3, 1, dtype=torch.bool)
    keys = torch.arange(3)
    sides = (source, mask, mask, 0, keys, target, mask, mask, 0, keys, worse, mask, mask)
    model = PairModel(Lookup(table), 0.05, 0.03, teacher_weight=2.0, teacher_margin=10.0)
    alone = model(*sides)
    assert alone["taught"] == 0
    found = model(*sides, taught, worse_taught)
    by_hand = 0.0
    for row in range(3):
        s, t, w = table[row], table[3 + row], table[6 + row]
        by_hand += 2.0 / 3 * float((1 - s @ taught[row]) + (1 - t @ taught[row]))
        by_hand += 10.0 / 3 * float((s @ t - s @ w) - (1 - taught[row] @ worse_taught[row])) ** 2
    assert float(found["taught"]) == pytest.approx(by_hand, rel=1e-5)
    assert float(found["loss"] - alone["loss"]) == pytest.approx(by_hand, rel=1e-4)


def test_the_encoder_comes_near_its_teacher_and_grows(
    teacher: Path, toy_pairs: Path, english: list[str], tmp_path: Path
) -> None:
    plain = train_encoder(Run(tmp_path / "plain", seed=3), [toy_pairs], config=CONFIG)
    deeper = dataclasses.replace(CONFIG, layers=2)
    taught = train_encoder(Run(tmp_path / "taught", seed=3), [toy_pairs], start=plain, teacher=teacher, config=deeper)
    school = SentenceTeacher(teacher, english, 16, tmp_path / "taught.work" / "teacher.npz")
    wanted = school.vectors(english[:80])

    def nearness(folder: Path) -> float:
        encoded = MeanPooledEncoder(TokenEncoder(folder)).encode(english[:80])
        vectors = encoded.vectors[encoded.index]
        return float(np.mean(np.sum(vectors / np.linalg.norm(vectors, axis=1, keepdims=True) * wanted, axis=1)))

    assert nearness(taught) > nearness(plain) + 0.3
    record = json.loads((taught / "training.json").read_text(encoding="utf-8"))
    assert record["teacher"].startswith("wide#")
    assert record["config"]["layers"] == 2
    assert record["before_training"]["token_p1"] > 0.5  # the added layer changes little at first
    assert TokenEncoder(taught).depth == 2
