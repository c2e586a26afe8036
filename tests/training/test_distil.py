"""Distillation: the student comes near the teacher, goes on after an interruption, and its folder is whole and
loadable."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import equal_weights, precisions, record_of, rows_file

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.training import distil
from mtmetrics.training.corpus import Pair
from mtmetrics.training.distil import english, evaluate_student, least_squares_map, train_distil
from mtmetrics.training.run import Run
from mtmetrics.training.settings import DistilConfig

_STEPS = {"steps": 60, "warmup_steps": 5, "decay_steps": 30, "checkpoint_every": 25, "evaluate_every": 30}
_SIZES = {"max_pieces": 32, "pairs_per_step": 32, "held_back_per_mille": 150, "held_back_per_pair": 40}
TINY = DistilConfig(learning_rate=1e-2, **_STEPS, **_SIZES)
SHORT = dataclasses.replace(TINY, steps=4, warmup_steps=1, decay_steps=1)


class FakeModel:
    """A sentence encoder whose vectors are given."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self.vectors = vectors

    def encode(self, texts: list[str], **_: Any) -> np.ndarray:
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)


@pytest.fixture(scope="session")
def teacher(sentence_folder: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers folder of width 12, whose vectors are means of random word vectors."""
    return sentence_folder(tmp_path_factory.mktemp("models") / "teacher", width=12, seed=1)


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [
        {"lp": "de-en", "source": "der hund", "translation": "the dog", "human": 1.0},
        {"lp": "de-en", "source": "die katze sieht", "translation": "old bridge", "human": -1.0},
        {"lp": "de-en", "source": "haus alt", "translation": "old house", "human": 0.5},
    ]
    return rows_file(tmp_path_factory.mktemp("judged") / "de-en.jsonl", rows)


@pytest.fixture(scope="module")
def trained(
    toy_pairs: Path, teacher: Path, student: Path, judged: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    run = Run(tmp_path_factory.mktemp("out") / "toy", seed=3)
    return train_distil(run, [toy_pairs], teacher, student, judged=[judged], config=TINY)


def test_the_student_comes_near_the_teacher_in_both_languages(trained: Path) -> None:
    record = record_of(trained)
    before, after = record["before_training"], record["result"]
    assert after["mse"] < before["mse"] / 2
    assert after["pooled_p1_de-en"] > before["pooled_p1_de-en"] + 0.3
    assert -1 <= after["pearson"] <= 1


def test_the_folder_loads_offline_and_gives_vectors_of_the_teacher_s_width(trained: Path, teacher: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(trained), device="cpu", local_files_only=True, model_kwargs={"dtype": "float32"})
    target = SentenceTransformer(str(teacher), device="cpu", local_files_only=True).encode(["old dog sees the house"])
    same, other = model.encode(["alt hund sieht das haus", "winter brot neu"])
    assert same.shape == (12,)
    assert np.square(same - target).mean() < np.square(other - target).mean()
    assert model.max_seq_length == 64
    assert precisions(trained) == {"torch.float16"}
    suffixes = [path.suffix for path in trained.rglob("*.*") if path.is_file()]
    assert sorted(suffix for suffix in suffixes if suffix not in {".json", ".csv"}) == [".safetensors"] * 2
    assert {path.name for path in trained.parent.iterdir()} == {"toy", "toy.work"}


def test_the_record_says_what_was_used_but_not_where_it_lay(trained: Path, toy_pairs: Path) -> None:
    record = record_of(trained)
    assert record["seed"] == 3
    assert record["teacher"].startswith("teacher#")
    assert record["student"].startswith("student#")
    assert record["pairs"]["train"] + record["pairs"]["held_back"] <= 400
    assert "sentence-transformers" in record["versions"]
    assert str(toy_pairs.parent.parent) not in json.dumps(record)
    log = (trained / "training_log.csv").read_text(encoding="utf-8").splitlines()
    assert {"step", "loss", "eval_mse", "eval_pooled_p1_de-en"} <= set(log[0].split(","))
    assert [row.split(",")[0] for row in log[1:]].count("30") == 1


def test_a_resumed_run_ends_with_the_same_weights(
    trained: Path,
    toy_pairs: Path,
    teacher: Path,
    student: Path,
    judged: Path,
    tmp_path: Path,
    interrupt_at: Callable[[int | None], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def train() -> Path:
        return train_distil(Run(tmp_path / "toy", seed=3), [toy_pairs], teacher, student, judged=[judged], config=TINY)

    # First while the teacher encodes, then in training.
    calls = []

    def encode(model: Any, texts: list[str]) -> np.ndarray:
        calls.append(list(texts))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(model, texts)

    original = distil._encode
    monkeypatch.setattr(distil, "_TEXTS_PER_SAVE", 100)
    monkeypatch.setattr(distil, "_encode", encode)
    with pytest.raises(KeyboardInterrupt):
        train()
    interrupt_at(40)
    with pytest.raises(KeyboardInterrupt):
        train()
    assert calls[3] == calls[2]
    assert [path.name for path in tmp_path.iterdir()] == ["toy.work"]
    assert [path.name for path in (tmp_path / "toy.work" / "checkpoints").iterdir()] == ["checkpoint-25"]
    interrupt_at(None)
    encoded = len(calls)
    resumed = train()
    assert not any(len(texts) == 100 for texts in calls[encoded:])
    assert equal_weights(trained, resumed)
    assert equal_weights(trained, resumed, "2_Dense/model.safetensors")
    assert record_of(resumed)["result"] == record_of(trained)["result"]


def test_equal_widths_need_no_projection(
    toy_pairs: Path, sentence_folder: Callable[..., Path], student: Path, tmp_path: Path
) -> None:
    teacher = sentence_folder(tmp_path / "teacher", width=16, seed=4)
    config = dataclasses.replace(SHORT, bf16=True)
    folder = train_distil(Run(tmp_path / "toy"), [toy_pairs], teacher, student, config=config)
    assert [path.name for path in sorted(folder.iterdir()) if path.is_dir()] == ["1_Pooling"]


def test_held_back_pairs_and_judgements_by_hand(judged: Path) -> None:
    from mtmetrics.evaluation.data import read_judged_segments

    pairs = [Pair("a", "x", "o", "de-en"), Pair("b", "y", "o", "de-en"), Pair("c", "z", "o", "fi-en")]
    # y lies nearest to a, so that one of two is found from the source side and both are from the other.
    vectors = {"a": [1, 0], "b": [0, 1], "x": [2, 0], "y": [1, 0.5], "c": [0, 3], "z": [0, 1]}
    vectors |= {"der hund": [1, 0], "the dog": [1, 0], "die katze sieht": [1, 0], "old bridge": [-1, 0]}
    vectors |= {"haus alt": [0, 1], "old house": [1, 1]}
    wanted = np.array([[1, 0], [1, 0], [0, 0]])
    found = evaluate_student(FakeModel(vectors), pairs, wanted, [read_judged_segments(judged)])
    assert found["pooled_p1_de-en"] == 0.75
    assert found["pooled_p1_fi-en"] == 1
    assert found["pooled_p1"] == 0.875
    assert found["mse"] == pytest.approx(((0 + 2 + 9) / 6 + (1 + 0.25 + 1) / 6) / 2, abs=1e-5)
    assert found["pearson"] == pytest.approx(np.corrcoef([1, -1, 0.5**0.5], [1, -1, 0.5])[0, 1], abs=1e-5)


def test_the_projection_begins_as_the_least_squares_map() -> None:
    generator = np.random.default_rng(0)
    found = generator.normal(size=(200, 5)) + 3
    weight, bias = generator.normal(size=(4, 5)), generator.normal(size=4)
    fitted = least_squares_map(found, found @ weight.T + bias)
    assert fitted[0] == pytest.approx(weight, abs=1e-3)
    assert fitted[1] == pytest.approx(bias, abs=1e-2)


def test_english_is_found_by_the_name_of_the_file() -> None:
    assert english(Pair("ein", "one", "o", "de-en")) == "one"
    assert english(Pair("one", "ein", "o", "en-de.words")) == "one"
    with pytest.raises(InputError, match="--parallel ru-de: the teacher reads English"):
        english(Pair("odin", "ein", "o", "ru-de"))


def test_judged_texts_are_left_out_of_training(toy_pairs: Path, tmp_path: Path, teacher: Path, student: Path) -> None:
    rows = [json.loads(line) for line in toy_pairs.read_text(encoding="utf-8").splitlines()]
    texts = enumerate(row["source"] for row in rows[:5])
    lines = [{"lp": "de-en", "source": text, "translation": "x", "human": number} for number, text in texts]
    path = rows_file(tmp_path / "judged.jsonl", lines)
    folder = train_distil(Run(tmp_path / "toy"), [toy_pairs], teacher, student, judged=[path], config=SHORT)
    assert record_of(folder)["data"]["left_out"]["judged"] == 5


def test_what_cannot_be_used_is_refused(toy_pairs: Path, teacher: Path, student: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="the folder holds no config.json"):
        train_distil(Run(tmp_path / "toy"), [toy_pairs], tmp_path, student, config=TINY)
    foreign = tmp_path / "ru-de.jsonl"
    foreign.write_bytes(toy_pairs.read_bytes())
    with pytest.raises(InputError, match="the teacher reads English"):
        train_distil(Run(tmp_path / "toy"), [foreign], teacher, student, config=TINY)
    flat = rows_file(tmp_path / "flat.jsonl", [{"lp": "de-en", "source": "a", "translation": "b", "human": 1}] * 2)
    reason = "no correlation is defined, the human judgements are constant"
    with pytest.raises(InputError, match=rf"--judged .*flat\.jsonl: {reason}"):
        train_distil(Run(tmp_path / "toy"), [toy_pairs], teacher, student, judged=[flat], config=TINY)
    hasty = dataclasses.replace(TINY, steps=30)
    with pytest.raises(InputError, match="30 steps are fewer than 5 of warm-up and 30 of decay"):
        train_distil(Run(tmp_path / "other"), [toy_pairs], teacher, student, config=hasty)
    assert not (tmp_path / "toy").exists()
    assert not (tmp_path / "other.work").exists()
