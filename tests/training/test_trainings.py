"""Behaviour that all trainings share: interrupted ones go on, and their artifacts are whole,
loadable and say how they were made."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from toys import CONFIGS, acting_at, equal_weights, interrupted, record_of

from mtmetrics.errors import MTMetricsError
from mtmetrics.training import sentence
from mtmetrics.training.run import Run

Train, Trained = Callable[..., Path], Callable[[str], Path]


@pytest.mark.parametrize(
    ("kind", "columns", "recorded"),
    [
        ("encoder", {"eval_held_back_loss"}, {"command": "mtmetrics train encoder"}),
        ("lm", {"eval_loss"}, {"mono": ["en.txt"]}),
        ("distil", {"eval_mse", "eval_pooled_p1_de-en"}, {"started_from": None}),
        ("contrastive", set(), {"pairs": 400, "steps": 52}),
        ("translation", set(), {"pairs": 20, "steps": 25, "lp": "de-en"}),
        ("denoising", set(), {"kind": "translation model, not trained to translate yet"}),
    ],
)
def test_the_folder_and_its_record(
    kind: str,
    columns: set[str],
    recorded: dict[str, Any],
    trained: Trained,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = trained(kind)
    assert {path.name for path in folder.parent.iterdir()} == {"toy", "toy.work"}
    weights = load_file(folder / "model.safetensors")
    # Word vectors of an encoder are stored in half the space.
    word_vectors = {"torch.float8_e4m3fn"} if kind == "encoder" else set()
    assert {str(tensor.dtype) for tensor in weights.values()} == {"torch.float16"} | word_vectors
    assert not any(name.startswith("pooler") for name in weights)
    record = record_of(folder)
    # It says what was used, but not where it lay.
    assert str(tmp_path_factory.getbasetemp()) not in json.dumps(record)
    assert (record["seed"], record["config"]) == (3, vars(CONFIGS[kind]))
    assert {"python", "torch", "transformers"} <= set(record["versions"])
    assert record | recorded == record
    log = (folder / "training_log.csv").read_text(encoding="utf-8").partition("\n")[0].split(",")
    assert log[0] == "step"
    # The loss is logged every 50 steps, and its mean at the end.
    assert columns | {"train_loss"} | ({"loss"} if kind != "translation" else set()) <= set(log)


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("lm", 40),  # the trainer draws the rows of a step
        ("denoising", 40),  # the steps are planned
    ],
)
def test_an_interrupted_run_ends_with_the_same_weights(
    kind: str, step: int, train: Train, trained: Trained, tmp_path: Path
) -> None:
    whole, work = trained(kind), tmp_path / "toy.work"
    with interrupted(step):
        train(kind, Run(tmp_path / "toy", seed=3))
    assert list(tmp_path.iterdir()) == [work]
    (work / "checkpoints" / f"checkpoint-{step - 1}").mkdir()  # cut off while it was written
    resumed = train(kind, Run(tmp_path / "toy", seed=3))
    assert equal_weights(whole, resumed)
    assert record_of(resumed) == record_of(whole)


def test_the_last_evaluation_is_not_repeated(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[dict[str, float]] = []
    judge = sentence.evaluate_student
    monkeypatch.setattr(
        sentence, "evaluate_student", lambda *given: judged.append(judge(*given)) or judged[-1]
    )
    steps = {"steps": 40, "evaluate_every": 20, "checkpoint_every": 100}
    record = record_of(train("distil", Run(tmp_path / "whole", seed=3), **steps))
    assert [record["before_training"], record["result"]] == [judged[0], judged[-1]]
    assert len(judged) == 3
    # The last step is no evaluation's.
    record = record_of(train("distil", Run(tmp_path / "rest", seed=3), **steps | {"steps": 45}))
    assert record["result"] == judged[-1] != judged[-2]
    assert len(judged) == 3 + 4


def test_a_full_disk_is_an_error_and_the_run_goes_on(
    train: Train,
    trained: Trained,
    two_words: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    resource = pytest.importorskip("resource", reason="needs POSIX limits")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with (
            acting_at(9, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))),
            pytest.raises(
                MTMetricsError, match=r"cannot write .*checkpoint-14: .*; free disk space, and"
            ),
        ):
            train("translation", Run(tmp_path / "toy", seed=3))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in (tmp_path / "toy.work" / "checkpoints").iterdir()] == [
        "checkpoint-7"
    ]
    os.utime(two_words)  # data is known by its content, not by when it was written
    caplog.set_level("INFO")
    assert equal_weights(
        trained("translation"), train("translation", Run(tmp_path / "toy", seed=3))
    )
    assert caplog.text.count("going on from checkpoint-7") == 1


def test_progress_is_shown_where_notes_are(
    train: Train, tmp_path: Path, capfd: pytest.CaptureFixture, caplog: pytest.LogCaptureFixture
) -> None:
    train("translation", Run(tmp_path / "quiet"))
    assert capfd.readouterr().err == ""
    caplog.set_level("INFO")
    train("translation", Run(tmp_path / "told"))
    told = capfd.readouterr().err
    assert "train_loss" in told
    assert "25/25" not in told  # bars are for terminals
