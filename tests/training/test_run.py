"""The skeleton of trainings: its work folder, the schedule of whole passes, and what an artifact says of its making."""

import json
from pathlib import Path
from typing import Any

import pytest

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.training.configs import ContrastiveConfig, EncoderConfig, LMConfig, TranslationConfig
from mtmetrics.training.run import Run, save_model
from mtmetrics.training.trainers import trainer_settings


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "text" / "de-en.jsonl"
    path.parent.mkdir()
    path.write_text("{}\n", encoding="utf-8")
    return path


def opened(data: Path, **options: Any) -> Run:
    run = Run(data.parents[1] / "toy", **options)
    run.open(LMConfig(), {"parallel": [data]}, side="target")
    return run


def test_a_work_folder_belongs_to_its_settings_and_files(data: Path) -> None:
    run = opened(data)
    (run.work / "before.json").touch()
    opened(data)
    with pytest.raises(
        InputError, match=r"toy\.work holds a run with other settings \(seed 1, not 2\); pass --restart"
    ):
        opened(data, seed=2)
    data.write_text("{}\n{}\n", encoding="utf-8")
    with pytest.raises(InputError, match="other settings"):
        opened(data)
    opened(data, restart=True)
    assert [path.name for path in run.work.iterdir()] == ["settings.json"]
    # Nothing was computed yet, so other settings may begin.
    opened(data, seed=2)
    assert opened(data, work=data.parent / "elsewhere", seed=3).work == data.parent / "elsewhere"


def test_what_cannot_begin_leaves_nothing(data: Path) -> None:
    run = Run(data.parents[1] / "toy")
    with pytest.raises(InputError, match=r"none\.jsonl: no such file"):
        run.open(LMConfig(), {"parallel": [data, data.with_name("none.jsonl")]})
    run.output.mkdir()
    with pytest.raises(InputError, match="toy exists already; choose another folder or pass --overwrite"):
        opened(data)
    assert not run.work.exists()
    assert opened(data, overwrite=True).work.exists()


def test_the_record_says_what_was_used_but_not_where_it_lay(data: Path) -> None:
    run = opened(data, seed=4)
    run.history = [{"loss": 0.123456789, "step": 1}, {"eval": 2, "step": 3}]
    with run.artifact("toy", "mtmetrics train toy", pairs=7) as folder:
        (folder / "weights").write_text("w", encoding="utf-8")
        assert not run.output.exists()
    assert sorted(path.name for path in run.output.iterdir()) == ["training.json", "training_log.csv", "weights"]
    record = json.loads((run.output / "training.json").read_text(encoding="utf-8"))
    assert {"python", "mtmetrics", "torch", "transformers", "sentence-transformers"} <= set(record.pop("versions"))
    assert record.pop("config") == vars(LMConfig())
    assert record == {
        "kind": "toy",
        "command": "mtmetrics train toy",
        "seed": 4,
        "parallel": ["text/de-en.jsonl"],
        "side": "target",
        "pairs": 7,
    }
    log = (run.output / "training_log.csv").read_text(encoding="utf-8")
    assert log == "step,eval,loss\n1,,0.123457\n3,2,\n"


@pytest.mark.parametrize(
    ("config", "steps", "expected"),
    [
        (TranslationConfig(epochs=3), 9, (9, 0, 9)),
        (ContrastiveConfig(epochs=2, warmup=0.13), 20, (20, 2, 18)),
        (LMConfig(steps=900), 0, (900, 80, 700)),
    ],
)
def test_the_schedule(config: Any, steps: int, expected: tuple, tmp_path: Path) -> None:
    found = trainer_settings(Run(tmp_path / "toy", seed=5), config, 0.1, steps=steps)
    assert (found.max_steps, found.warmup_steps, found.lr_scheduler_kwargs["num_decay_steps"]) == expected
    assert (found.seed, found.data_seed, found.save_steps) == (5, 5, config.checkpoint_every)


def test_a_training_runs_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    assert Run(tmp_path / "toy").device == ("cuda" if torch.cuda.is_available() else "cpu")
    assert Run(tmp_path / "toy", device="cpu,cpu").device == "cpu"
    with pytest.raises(InputError, match="device 'cuda:77' cannot be used here"):
        trainer_settings(Run(tmp_path / "toy", device="cuda:77"), LMConfig(), 0.1)
    assert trainer_settings(Run(tmp_path / "toy", device="cpu"), LMConfig(), 0.1).device.type == "cpu"
    # No test has two cards; a step has its size on any number of them.
    chosen: list[str] = []
    monkeypatch.setattr("torch.cuda.set_device", chosen.append)
    second = Run(tmp_path / "toy")
    second.device = "cuda:1"
    found = trainer_settings(second, EncoderConfig(), 0.1, arguments=Cards)
    assert (found.device, found.n_gpu, chosen) == (torch.device("cuda:1"), 1, ["cuda:1"])


class Cards:
    """The settings of a trainer on a machine with two cards."""

    n_gpu = property(lambda self: self._n_gpu)
    device = property(lambda self: self.__dict__["_setup_devices"])

    def __init__(self, **_: Any) -> None:
        self._n_gpu = 2


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ContrastiveConfig(temperature=0.0), "temperature 0.0: must be above 0"),
        (ContrastiveConfig(epochs=0), "epochs 0: must be a whole number of at least 1"),
        (ContrastiveConfig(pairs_per_step=0), "pairs_per_step 0: must be a whole number of at least 1"),
        (ContrastiveConfig(warmup=1.0), "warmup 1.0: a share of the steps is needed"),
        (EncoderConfig(candidates=0), "candidates 0: must be a whole number of at least 1"),
        (LMConfig(steps=90), "90 steps are fewer than 80 of warm-up and 700 of decay"),
    ],
)
def test_settings_that_cannot_be_used(config: Any, message: str, data: Path) -> None:
    run = Run(data.parents[1] / "toy")
    with pytest.raises(InputError, match=message):
        run.open(config, {"parallel": [data]})
    assert not run.work.exists()


def test_weights_that_half_precision_cannot_hold_are_refused(tmp_path: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 4}
    model = BertModel(BertConfig(vocab_size=5, **sizes), add_pooling_layer=False)
    with torch.no_grad():
        model.embeddings.word_embeddings.weight[2, 1] = 70000.0
    with pytest.raises(MTMetricsError, match="1 weights are not finite in half precision, the first is embeddings"):
        save_model(model, None, tmp_path)
    assert not list(tmp_path.iterdir())
