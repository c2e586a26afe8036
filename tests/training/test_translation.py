"""Fine-tuning for translation, and the small MBart: they learn and go on after an interruption."""

import csv
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import transformers
from helpers import write
from safetensors.torch import load_file
from toys import precisions, record_of

from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.models.translator import Translator
from mtmetrics.training.run import Run
from mtmetrics.training.settings import DenoisingConfig, TranslationConfig
from mtmetrics.training.translation import small_mbart, span_masked, train_denoising, train_translation

WORDS = {"buch": "book", "brot": "bread", "katze": "cat", "kind": "child", "hund": "dog"}
TINY = TranslationConfig(epochs=250, pairs_per_step=32, learning_rate=5e-3, warmup=0.1, checkpoint_every=100)
_STEPS = {"steps": 60, "warmup_steps": 5, "decay_steps": 20, "checkpoint_every": 25}
SMALL = DenoisingConfig(layers=1, heads=2, inner=64, rows_per_step=16, matrix_lr=1e-2, other_lr=1e-2, **_STEPS)
MASK = 4


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sentences of two of five words and their translation word by word."""
    lines = [f"{a} {b}\t{WORDS[a]} {WORDS[b]}\n" for a, b in itertools.permutations(WORDS, 2)]
    return write(tmp_path_factory.mktemp("pairs") / "mined.tsv", "".join(lines))


@pytest.fixture(scope="module")
def start(toy_encoder: Callable[[Path, int, int], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small MBart that learnt nothing yet."""
    import torch

    folder = tmp_path_factory.mktemp("models") / "start"
    encoder = toy_encoder(folder.with_name("encoder"), 32, 1)
    torch.manual_seed(0)
    tokenizer, network = small_mbart(encoder, DenoisingConfig(layers=1, heads=2, inner=64, dropout=0.0))
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def trained(pairs: Path, start: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_translation(Run(tmp_path_factory.mktemp("out") / "toy", seed=3), [pairs], start, "de-en", config=TINY)


def test_it_learns_to_translate(trained: Path, start: Path) -> None:
    sources = ["hund buch", "buch hund", "kind katze", "katze brot"]
    wanted = ["dog book", "book dog", "child cat", "cat bread"]
    assert [translation.text for translation in Translator(trained, "de-en").translate(sources)] == wanted
    assert [translation.text for translation in Translator(start, "de-en").translate(sources)] != wanted


def test_the_folder_and_its_record(trained: Path, pairs: Path) -> None:
    record = record_of(trained)
    assert (record["pairs"], record["steps"], record["lp"], record["seed"]) == (20, 250, "de-en", 3)
    assert record["model"].startswith("start#")
    assert str(pairs.parent.parent) not in json.dumps(record)
    assert precisions(trained) == {"torch.float16"}
    # What other programs generate with: [SEP] starts the decoder, and [CLS] is its answer.
    generation = json.loads((trained / "generation_config.json").read_text(encoding="utf-8"))
    names = ("decoder_start_token_id", "forced_bos_token_id", "eos_token_id")
    assert [generation[name] for name in names] == [3, 2, 3]


def test_a_resumed_run_ends_with_the_same_weights(
    pairs: Path, start: Path, tmp_path: Path, interrupt_at: Callable[[int | None], None]
) -> None:
    def train(name: str) -> Path:
        config = TranslationConfig(epochs=5, pairs_per_step=4, checkpoint_every=7)
        return train_translation(Run(tmp_path / name, seed=3), [pairs], start, "de-en", config=config)

    interrupt_at(16)
    with pytest.raises(KeyboardInterrupt):
        train("cut")
    assert not (tmp_path / "cut").exists()
    interrupt_at(None)
    assert (train("cut") / "model.safetensors").read_bytes() == (train("whole") / "model.safetensors").read_bytes()


def test_a_full_disk_is_an_error_and_the_run_goes_on(
    pairs: Path, start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    resource = pytest.importorskip("resource", reason="needs POSIX limits")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def train(name: str) -> Path:
        config = TranslationConfig(epochs=3, pairs_per_step=4, checkpoint_every=5)
        return train_translation(Run(tmp_path / name, seed=3), [pairs], start, "de-en", config=config)

    class Fill(transformers.TrainerCallback):
        """Lets no file grow any more after the seventh step."""

        def on_step_end(self, args: object, state: transformers.TrainerState, *_: object, **__: object) -> None:
            if state.global_step == 7:
                resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))

    with monkeypatch.context() as patched:
        original = Run.train
        patched.setattr(Run, "train", lambda run, trainer: trainer.add_callback(Fill()) or original(run, trainer))
        try:
            with pytest.raises(MTMetricsError, match=r"cannot write .*checkpoint-10: .*; free disk space, and"):
                train("cut")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in (tmp_path / "cut.work" / "checkpoints").iterdir()] == ["checkpoint-5"]
    # Data is known by its content, not by when it was written.
    os.utime(pairs)
    caplog.set_level("INFO")
    assert (train("cut") / "model.safetensors").read_bytes() == (train("whole") / "model.safetensors").read_bytes()
    assert caplog.text.count("going on from checkpoint-5") == 1


def test_two_processes_train_as_one_does_with_the_doubled_batch(pairs: Path, start: Path, tmp_path: Path) -> None:
    """By gloo on this machine: one artifact, which the main process writes, with the loss of one process.

    The loss of a log is that of all processes, that of the whole training (train_loss) the main one's own.
    """
    settings = ["--lp", "de-en", "--model", str(start), "--epochs", "50", "--learning-rate", "1e-3", "--device", "cpu"]
    settings += ["--parallel", str(pairs)]
    launched = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-endpoint=127.0.0.1:0"]
    launched += ["--rdzv-backend=c10d", "-m", "mtmetrics", "train", "translation", "--out", str(tmp_path / "two")]
    done = subprocess.run([*launched, *settings, "--pairs-per-step", "10"], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == f"{tmp_path / 'two'}\n"
    config = TranslationConfig(epochs=50, pairs_per_step=20, learning_rate=1e-3)
    train_translation(Run(tmp_path / "one", device="cpu"), [pairs], start, "de-en", config=config)
    assert {path.name for path in tmp_path.iterdir()} == {"one", "one.work", "two", "two.work"}
    records = {name: record_of(tmp_path / name) for name in ("one", "two")}
    assert records["one"]["steps"] == records["two"]["steps"] == 50
    losses = []
    for name in records:
        with open(tmp_path / name / "training_log.csv", encoding="utf-8") as stream:
            losses += [float(row["loss"]) for row in csv.DictReader(stream) if row["loss"]]
    assert len(losses) == 2
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_beams_of_the_model_are_those_of_the_fine_tuned_one(pairs: Path, start: Path, tmp_path: Path) -> None:
    own = shutil.copytree(start, tmp_path / "own")
    settings = json.loads((own / "generation_config.json").read_text(encoding="utf-8")) | {"num_beams": 3}
    (own / "generation_config.json").write_text(json.dumps(settings), encoding="utf-8")
    config = TranslationConfig(epochs=1, pairs_per_step=10)
    made = train_translation(Run(tmp_path / "toy", device="cpu"), [pairs], own, "de-en", config=config)
    assert Translator(made, "de-en").beams == 3


def test_what_cannot_be_used_is_refused(pairs: Path, start: Path, student: Path, tiny_lm: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot be loaded as AutoModelForSeq2SeqLM"):
        train_translation(Run(tmp_path / "a"), [pairs], student, "de-en", config=TINY)
    with pytest.raises(InputError, match="language pair 'deen'"):
        train_translation(Run(tmp_path / "b"), [pairs], start, "deen", config=TINY)
    with pytest.raises(InputError, match=r"none\.tsv: no such file"):
        train_translation(Run(tmp_path / "c"), [tmp_path / "none.tsv"], start, "de-en", config=TINY)
    with pytest.raises(ArtifactError, match="its tokenizer has no"):
        small_mbart(tiny_lm, DenoisingConfig())
    assert not any((tmp_path / name).exists() for name in "abc")


@pytest.fixture(scope="module")
def denoised(toy_lines: Path, student: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = Run(tmp_path_factory.mktemp("out") / "small", seed=3)
    return train_denoising(run, [str(toy_lines)], student, config=SMALL)


def test_a_small_model_begins_with_the_vectors_of_the_encoder(student: Path) -> None:
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
    denoised: Path, toy_lines: Path, student: Path, tmp_path: Path, interrupt_at: Callable[[int | None], None]
) -> None:
    states = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in denoised.parent.glob("small.work/checkpoints/*/trainer_state.json")
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
    assert (resumed / "model.safetensors").read_bytes() == (denoised / "model.safetensors").read_bytes()


def test_a_translator_opens_the_small_model(denoised: Path) -> None:
    [translation] = Translator(denoised, "de-en", max_length=8).translate(["the old dog"])
    assert translation.text
    assert not translation.cut
    record = record_of(denoised)
    assert record["encoder"].startswith("student#")
    assert record["sentences"] > 100
