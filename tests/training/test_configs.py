"""Settings of trainings that cannot be used."""

import pytest

from mtmetrics.errors import InputError
from mtmetrics.training.configs import (
    CompositionConfig,
    ContrastiveConfig,
    EncoderConfig,
    LMConfig,
    RegressorConfig,
    TrainingConfig,
)


@pytest.mark.parametrize(
    ("config", "settings", "message"),
    [
        (ContrastiveConfig, {"temperature": 0.0}, "temperature 0.0: must be above 0"),
        (EncoderConfig, {"temperature": -1.0}, "temperature -1.0: must be above 0"),
        (ContrastiveConfig, {"epochs": 0}, "epochs 0: must be a whole number of at least 1"),
        (
            ContrastiveConfig,
            {"pairs_per_step": 0},
            "pairs_per_step 0: must be a whole number of at least 1",
        ),
        (ContrastiveConfig, {"warmup": 1.0}, "warmup 1.0: a share of the steps is needed"),
        (CompositionConfig, {"warmup": -0.1}, "warmup -0.1: a share of the steps is needed"),
        (EncoderConfig, {"negatives": 0}, "negatives 0: must be a whole number of at least 1"),
        (LMConfig, {"steps": 90}, "90 steps are fewer than 80 of warm-up and 700 of decay"),
        (RegressorConfig, {"patience": 0}, "patience 0: must be a whole number of at least 1"),
        (RegressorConfig, {"dropout": 1.0}, "dropout 1.0: must be at least 0 and below 1"),
    ],
)
def test_settings_that_cannot_be_used(
    config: type[TrainingConfig], settings: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        config(**settings)


def test_some_numbers_may_be_zero() -> None:
    EncoderConfig(warmup_steps=0, decay_steps=0, held_back_per_mille=0)
