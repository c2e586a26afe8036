"""The small MBart: where its vectors come from, what its noise does, and that denoising can be interrupted."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from mtmetrics.models.translator import Translator
from mtmetrics.training.run import Run
from mtmetrics.training.settings import DenoisingConfig
from mtmetrics.training.translation import small_mbart, span_masked, train_denoising

SMALL = DenoisingConfig(
    layers=1,
    heads=2,
    inner=64,
    rows_per_step=16,
    steps=60,
    warmup_steps=5,
    decay_steps=20,
    matrix_lr=1e-2,
    other_lr=1e-2,
    checkpoint_every=25,
)
MASK = 4


@pytest.fixture(scope="module")
def trained(toy_lines: Path, student: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_denoising(
        Run(tmp_path_factory.mktemp("out") / "small", seed=3), [str(toy_lines)], student, config=SMALL
    )


def test_it_begins_with_the_vectors_of_the_encoder(student: Path) -> None:
    _, network = small_mbart(student, SMALL)
    own = load_file(student / "model.safetensors")["embeddings.word_embeddings.weight"]
    assert bool((network.get_input_embeddings().weight == own).all())
    assert network.lm_head.weight is network.get_input_embeddings().weight


def test_a_span_becomes_one_mask() -> None:
    ids = np.array([2, *range(10, 30), 3])
    for seed in range(20):
        noisy = span_masked(ids, MASK, 0.35, 3.5, np.random.default_rng(seed))
        kept = noisy[noisy != MASK]
        assert (noisy[0], noisy[-1]) == (2, 3)
        assert len(kept) == len(ids) - 7
        assert list(kept) == [number for number in ids if number in kept]
        assert not ((noisy[1:] == MASK) & (noisy[:-1] == MASK)).any()
    assert list(span_masked(np.array([2, 10, 3]), MASK, 0.35, 1.0, np.random.default_rng(0))) == [2, MASK, 3]
    assert list(span_masked(np.array([2, 3]), MASK, 0.35, 3.5, np.random.default_rng(0))) == [2, 3]


def test_longer_spans_leave_fewer_masks() -> None:
    ids = np.array([2, *range(10, 110), 3])
    masks = {
        span: sum((span_masked(ids, MASK, 0.3, span, np.random.default_rng(seed)) == MASK).sum() for seed in range(20))
        for span in (1.0, 4.0)
    }
    assert masks[4.0] < masks[1.0] / 2


def test_the_loss_falls_and_a_resumed_run_ends_with_the_same_weights(
    trained: Path, toy_lines: Path, student: Path, tmp_path: Path, interrupt_at: Callable[[int | None], None]
) -> None:
    states = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in trained.parent.glob("small.work/checkpoints/*/trainer_state.json")
    ]
    [logged] = [
        row["loss"] for state in states if state["global_step"] == 60 for row in state["log_history"] if "loss" in row
    ]
    assert logged < np.log(50) - 1

    interrupt_at(40)
    with pytest.raises(KeyboardInterrupt):
        train_denoising(Run(tmp_path / "small", seed=3), [str(toy_lines)], student, config=SMALL)
    interrupt_at(None)
    resumed = train_denoising(Run(tmp_path / "small", seed=3), [str(toy_lines)], student, config=SMALL)
    assert (resumed / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()


def test_a_translator_opens_the_folder(trained: Path) -> None:
    [translation] = Translator(trained, "de-en", max_length=8).translate(["the old dog"])
    assert translation.text
    assert not translation.cut
    record = json.loads((trained / "training.json").read_text(encoding="utf-8"))
    assert record["encoder"].startswith("student#")
    assert record["sentences"] > 100
