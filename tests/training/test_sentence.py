"""Sentence encoders: what contrastive training and distillation teach them, and their losses and
measures by hand."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import write, write_jsonl
from toys import CONFIGS, WORDS, interrupted, precision, record_of

from mtmetrics.artifacts.models import sentence_model
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.training import corpus, sentence
from mtmetrics.training.corpus import Pair, ParallelText
from mtmetrics.training.run import Run
from mtmetrics.training.sentence import train_contrastive, train_distil

Train, Trained = Callable[..., Path], Callable[[str], Path]
SHORT = {"steps": 4, "warmup_steps": 1, "decay_steps": 1}


class FakeModel:
    """A sentence encoder whose vectors are given."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self.vectors = vectors

    def encode(self, texts: list[str], **_: Any) -> np.ndarray:
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)


def test_the_contrastive_loss_by_hand() -> None:
    x, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [3.0, 0.0]])
    # Cosines: the first pair 1, the second 0; x1 with y2 1, x2 with y1 0. Lengths do not matter.
    forward = (math.log(2) + math.log(2)) / 2
    backward = (math.log(1 + math.exp(-2)) + math.log(1 + math.exp(2))) / 2
    assert sentence.contrastive_loss(
        x, y, temperature=0.5, symmetric=False
    ).item() == pytest.approx(forward)
    assert sentence.contrastive_loss(x, y, temperature=0.5).item() == pytest.approx(
        forward + backward
    )
    margin = sentence.contrastive_loss(x, y, temperature=0.5, margin=0.25, symmetric=False).item()
    assert margin == pytest.approx(math.log(1 + math.exp(0.5)))


def test_vectors_do_not_depend_on_what_is_encoded_together(models: Path) -> None:
    model = sentence_model(models / "student", "cpu").eval()
    # More than go through the network at a time.
    texts = [" ".join([*WORDS, *WORDS.values()][:number]) for number in range(1, 41)]
    with torch.no_grad():
        found = sentence.sentence_vectors(
            model, dict(model.tokenizer(texts, padding=True, return_tensors="pt"))
        )
    assert found.numpy() == pytest.approx(model.encode(texts), abs=1e-6)


def test_translations_come_together(trained: Trained, models: Path, toy_pairs: Path) -> None:
    folder = trained("contrastive")
    assert precision(folder, toy_pairs) > precision(models / "student", toy_pairs) + 0.5
    assert [path.name for path in sorted(folder.iterdir()) if path.is_dir()] == ["1_Pooling"]


def test_a_sentence_occurs_once_per_side(models: Path, tmp_path: Path) -> None:
    one = write(tmp_path / "pairs.tsv", "das haus\tthe house\ndas haus\tthe home\n")
    with pytest.raises(
        InputError, match="at least 2 with different sources and targets are needed, got 1"
    ):
        train_contrastive(
            Run(tmp_path / "toy"), [one], models / "student", config=CONFIGS["contrastive"]
        )


def test_the_student_comes_near_the_teacher_in_both_languages(
    trained: Trained, models: Path
) -> None:
    record = record_of(trained("distil"))
    before, after = record["before_training"], record["result"]
    assert after["mse"] < before["mse"] / 2
    assert after["pooled_p1_de-en"] > before["pooled_p1_de-en"] + 0.3
    assert -1 <= after["pearson"] <= 1
    assert record["teacher"].startswith("sentences#")
    assert record["student"].startswith("student#")
    # It loads offline and gives vectors of the teacher's width.
    model, teacher = (
        sentence_model(folder, "cpu") for folder in (trained("distil"), models / "sentences")
    )
    target = teacher.encode(["old dog sees the house"])
    same, other = model.encode(["alt hund sieht das haus", "winter brot neu"])
    assert same.shape == (12,)
    assert np.square(same - target).mean() < np.square(other - target).mean()
    assert model.max_seq_length == 64
    suffixes = [path.suffix for path in trained("distil").rglob("*.*") if path.is_file()]
    assert (
        sorted(suffix for suffix in suffixes if suffix not in {".json", ".csv"})
        == [".safetensors"] * 2
    )


def test_the_teacher_reads_no_text_twice(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def encode(model: Any, texts: list[str]) -> np.ndarray:
        calls.append(list(texts))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(model, texts)

    original = sentence._encode
    monkeypatch.setattr(sentence, "_TEXTS_PER_SAVE", 100)
    monkeypatch.setattr(sentence, "_encode", encode)
    with pytest.raises(KeyboardInterrupt):
        train("distil", Run(tmp_path / "toy", seed=3))
    for _ in range(2):
        with interrupted(1):
            train("distil", Run(tmp_path / "toy", seed=3))
    assert calls[2] == calls[1]
    read = [text for texts in [calls[0], *calls[2:]] if len(texts) == 100 for text in texts]
    assert len(read) == len(set(read)) >= 200


def test_equal_widths_need_no_projection(toy_pairs: Path, models: Path, tmp_path: Path) -> None:
    config = CONFIGS["distil"].__class__(**vars(CONFIGS["distil"]) | SHORT | {"bf16": True})
    run, encoders = Run(tmp_path / "toy"), (models / "teacher", models / "student")
    folder = train_distil(run, ParallelText([toy_pairs]), *encoders, config=config)
    assert [path.name for path in sorted(folder.iterdir()) if path.is_dir()] == ["1_Pooling"]


def test_held_back_pairs_and_judgements_by_hand(judged: Path) -> None:
    pairs = [
        Pair("a", "x", "o", "de-en"),
        Pair("b", "y", "o", "de-en"),
        Pair("c", "z", "o", "fi-en"),
    ]
    # y lies nearest to a, so that one of two is found from the source side and both are from the
    # other.
    vectors = {"a": [1, 0], "b": [0, 1], "x": [2, 0], "y": [1, 0.5], "c": [0, 3], "z": [0, 1]}
    vectors |= {
        "das haus": [1, 0],
        "the house": [1, 0],
        "hund mag brot": [1, 0],
        "dog likes bread": [-1, 0],
    }
    vectors |= {"alt": [0, 1], "old": [1, 1], "neu buch": [0, 1], "the river": [1, 0]}
    wanted = np.array([[1, 0], [1, 0], [0, 0]])
    found = sentence.evaluate_student(
        FakeModel(vectors), pairs, wanted, [corpus.judged_segments(judged)]
    )
    assert found["pooled_p1_de-en"] == 0.75
    assert found["pooled_p1_fi-en"] == 1
    assert found["pooled_p1"] == 0.875
    assert found["mse"] == pytest.approx(((0 + 2 + 9) / 6 + (1 + 0.25 + 1) / 6) / 2, abs=1e-5)
    assert found["pearson"] == pytest.approx(
        np.corrcoef([1, -1, 0.5**0.5, 0], [1, 0, -1, -2])[0, 1], abs=1e-5
    )


def test_the_projection_begins_as_the_least_squares_map() -> None:
    generator = np.random.default_rng(0)
    found = generator.normal(size=(200, 5)) + 3
    weight, bias = generator.normal(size=(4, 5)), generator.normal(size=4)
    fitted = sentence.least_squares_map(found, found @ weight.T + bias)
    assert fitted[0] == pytest.approx(weight, abs=1e-3)
    assert fitted[1] == pytest.approx(bias, abs=1e-2)


def test_english_is_found_by_the_name_of_the_file() -> None:
    assert sentence.english(Pair("ein", "one", "o", "de-en")) == "one"
    assert sentence.english(Pair("one", "ein", "o", "en-de.words")) == "one"
    with pytest.raises(InputError, match="--parallel ru-de: the teacher reads English"):
        sentence.english(Pair("odin", "ein", "o", "ru-de"))


def test_what_cannot_be_used_is_refused(
    train: Train, toy_pairs: Path, models: Path, tmp_path: Path
) -> None:
    given = {"student": models / "student", "config": CONFIGS["distil"]}
    with pytest.raises(ArtifactError, match="the folder holds no config.json"):
        train_distil(Run(tmp_path / "toy"), ParallelText([toy_pairs]), tmp_path, **given)
    flat = write_jsonl(
        tmp_path / "flat.jsonl",
        [{"lp": "de-en", "source": "a", "translation": "b", "human": 1}] * 2,
    )
    reason = "no correlation is defined, the human judgements are constant"
    with pytest.raises(InputError, match=rf"--judged .*flat\.jsonl: {reason}"):
        train_distil(
            Run(tmp_path / "toy"),
            ParallelText([toy_pairs]),
            models / "sentences",
            judged=[flat],
            **given,
        )
    with pytest.raises(InputError, match="30 steps are fewer than 3 of warm-up and 30 of decay"):
        train("distil", Run(tmp_path / "other"), steps=30, decay_steps=30)
    assert not (tmp_path / "toy").exists()
    assert not (tmp_path / "other.work").exists()
