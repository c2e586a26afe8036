"""Fine-tuning for translation, and the small MBart that learns to restore text first."""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from toys import CONFIGS, record_of

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.translator import Translator
from mtmetrics.training import translation
from mtmetrics.training.configs import DenoisingConfig, TranslationConfig
from mtmetrics.training.corpus import ParallelText
from mtmetrics.training.run import Run
from mtmetrics.training.translation import piece_vectors, span_masked, train_translation
from mtmetrics.training.vocabulary import as_pretrained, train_wordpiece

Train, Trained = Callable[..., Path], Callable[[str], Path]
MASK = 4


def test_it_learns_to_translate(train: Train, models: Path, tmp_path: Path) -> None:
    sources = ["hund buch", "buch hund", "kind katze", "katze brot"]
    wanted = ["dog book", "book dog", "child cat", "cat bread"]
    changes = {
        "epochs": 300,
        "pairs_per_step": 32,
        "learning_rate": 2e-3,
        "warmup": 0.1,
        "checkpoint_every": 1000,
    }
    trained = train("translation", Run(tmp_path / "toy", seed=3), **changes)
    assert [
        translation.text for translation in Translator(trained, "de-en").translate(sources)
    ] == wanted
    assert [
        translation.text for translation in Translator(models / "mbart", "de-en").translate(sources)
    ] != wanted


def test_beams_are_those_of_the_model_and_other_programs_can_generate(
    two_words: Path, models: Path, tmp_path: Path
) -> None:
    own = shutil.copytree(models / "mbart", tmp_path / "own")
    settings = json.loads((own / "generation_config.json").read_text(encoding="utf-8")) | {
        "num_beams": 3
    }
    (own / "generation_config.json").write_text(json.dumps(settings), encoding="utf-8")
    config = TranslationConfig(epochs=1, pairs_per_step=10)
    made = train_translation(
        Run(tmp_path / "toy", device="cpu"), ParallelText([two_words]), own, "de-en", config=config
    )
    assert Translator(made, "de-en").beams == 3
    # [SEP] starts the decoder, and [CLS] is its answer.
    generation = json.loads((made / "generation_config.json").read_text(encoding="utf-8"))
    names = ("decoder_start_token_id", "forced_bos_token_id", "eos_token_id")
    assert [generation[name] for name in names] == [3, 2, 3]


def test_two_processes_train_as_one_does_with_the_doubled_batch(
    two_words: Path, models: Path, tmp_path: Path
) -> None:
    """By gloo on this machine: one artifact, which the main process writes, with the loss of one
    process.

    The loss of a log is that of all processes, that of the whole training (train_loss) the main
    one's own."""
    settings = [
        "--lp",
        "de-en",
        "--model",
        str(models / "mbart"),
        "--epochs",
        "50",
        "--learning-rate",
        "1e-3",
    ]
    settings += ["--device", "cpu", "--parallel", str(two_words)]
    launched = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node=2",
        "--rdzv-endpoint=127.0.0.1:0",
    ]
    launched += ["--log-dir", str(tmp_path / "log")]
    launched += [
        "--rdzv-backend=c10d",
        "-m",
        "mtmetrics",
        "train",
        "translation",
        "--out",
        str(tmp_path / "two"),
    ]
    done = subprocess.run(
        [*launched, *settings, "--pairs-per-step", "10"],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == f"{tmp_path / 'two'}\n"
    config = TranslationConfig(epochs=50, pairs_per_step=20, learning_rate=1e-3)
    train_translation(
        Run(tmp_path / "one", device="cpu"),
        ParallelText([two_words]),
        models / "mbart",
        "de-en",
        config=config,
    )
    assert {path.name for path in tmp_path.iterdir()} == {
        "log",
        "one",
        "one.work",
        "two",
        "two.work",
    }
    assert [record_of(tmp_path / name)["steps"] for name in ("one", "two")] == [50, 50]
    losses = []
    for name in ("one", "two"):
        with open(tmp_path / name / "training_log.csv", encoding="utf-8") as stream:
            losses += [float(row["loss"]) for row in csv.DictReader(stream) if row["loss"]]
    assert len(losses) == 2
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_what_cannot_be_used_is_refused(two_words: Path, models: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="language pair 'deen'"):
        train_translation(
            Run(tmp_path / "b"),
            ParallelText([two_words]),
            models / "mbart",
            "deen",
            config=CONFIGS["translation"],
        )
    with pytest.raises(ArtifactError, match="config.json"):
        train_translation(
            Run(tmp_path / "a"),
            ParallelText([two_words]),
            two_words.parent,
            "de-en",
            config=CONFIGS["translation"],
        )
    assert not list(tmp_path.iterdir())


def test_a_new_small_model_begins_with_the_vectors_of_an_encoder_and_learns_from_pairs(
    two_words: Path, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        translation,
        "_NEW",
        DenoisingConfig(encoder_layers=1, decoder_layers=1, heads=2, inner=64, dropout=0.0),
    )
    config = TranslationConfig(epochs=300, pairs_per_step=32, learning_rate=1e-2, warmup=0.1)
    made = train_translation(
        Run(tmp_path / "new"), ParallelText([two_words]), models / "teacher", "de-en", config=config
    )
    found = Translator(made, "de-en").translate(["hund buch", "kind katze"])
    assert [one.text for one in found] == ["dog book", "child cat"]
    assert record_of(made)["model"].startswith("teacher#")


def test_vectors_of_pieces_are_means_by_language() -> None:
    own = as_pretrained(train_wordpiece(["rot rot rot rotes rotes", "red red"], 40), 8)
    readers = {"de": own, "en": as_pretrained(train_wordpiece(["rot red", "rot red"], 30), 8)}
    vectors = np.arange(40.0)[:, None] ** [[1.0, 2.0]]
    texts = {"de": ["rot rot rot", "unbekannt"], "en": ["rot"]}
    found = piece_vectors(own, texts, readers, vectors)
    numbers = [reader.get_vocab()["rot"] for reader in readers.values()]
    assert found[own.get_vocab()["rot"]] == pytest.approx(vectors[numbers].T @ [0.75, 0.25])
    assert found[own.get_vocab()["red"]] == pytest.approx(vectors.mean(0))


def test_a_span_becomes_one_mask() -> None:
    ids = np.array([2, *range(10, 30), 3])
    for seed in range(20):
        noisy = span_masked(ids, MASK, 0.35, 3.5, np.random.default_rng(seed))
        kept = noisy[noisy != MASK]
        assert (noisy[0], noisy[-1]) == (2, 3)
        assert len(kept) == len(ids) - 7
        assert list(kept) == [number for number in ids if number in kept]
        assert not ((noisy[1:] == MASK) & (noisy[:-1] == MASK)).any()
    assert list(span_masked(np.array([2, 10, 3]), MASK, 0.35, 1.0, np.random.default_rng(0))) == [
        2,
        MASK,
        3,
    ]
    assert list(span_masked(np.array([2, 3]), MASK, 0.35, 3.5, np.random.default_rng(0))) == [2, 3]
    # Longer spans leave fewer masks.
    ids = np.array([2, *range(10, 110), 3])
    masks = {
        span: sum(
            (span_masked(ids, MASK, 0.3, span, np.random.default_rng(seed)) == MASK).sum()
            for seed in range(20)
        )
        for span in (1.0, 4.0)
    }
    assert masks[4.0] < masks[1.0] / 2


def test_a_small_model_learns_to_restore_and_a_translator_opens_it(trained: Trained) -> None:
    folder = trained("denoising")
    with open(folder / "training_log.csv", encoding="utf-8") as stream:
        [logged] = [float(row["loss"]) for row in csv.DictReader(stream) if row["loss"]]
    assert logged < np.log(50) - 1
    [translation] = Translator(folder, "de-en", max_length=8).translate(["the old dog"])
    assert translation.text
    assert not translation.is_truncated
    assert record_of(folder)["encoder"].startswith("student#")
    assert record_of(folder)["sentences"] > 100
