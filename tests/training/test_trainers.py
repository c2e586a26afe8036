"""Settings that a transformers trainer gets."""

from pathlib import Path
from typing import Any

import pytest

from mtmetrics.errors import InputError
from mtmetrics.training.configs import ContrastiveConfig, EncoderConfig, LMConfig, TranslationConfig
from mtmetrics.training.run import Run
from mtmetrics.training.trainers import trainer_settings


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
    assert (
        found.max_steps,
        found.warmup_steps,
        found.lr_scheduler_kwargs["num_decay_steps"],
    ) == expected
    assert (found.seed, found.data_seed, found.save_steps) == (5, 5, config.checkpoint_every)


def test_a_training_runs_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    assert Run(tmp_path / "toy").device == ("cuda" if torch.cuda.is_available() else "cpu")
    assert Run(tmp_path / "toy", device="cpu,cpu").device == "cpu"
    with pytest.raises(InputError, match="device 'cuda:77' cannot be used here"):
        trainer_settings(Run(tmp_path / "toy", device="cuda:77"), LMConfig(), 0.1)
    assert (
        trainer_settings(Run(tmp_path / "toy", device="cpu"), LMConfig(), 0.1).device.type == "cpu"
    )
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
