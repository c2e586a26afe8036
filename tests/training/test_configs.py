"""Settings of trainings that cannot be used."""

from pathlib import Path
from typing import Any

import pytest

from mtmetrics.errors import InputError
from mtmetrics.training.configs import ContrastiveConfig, EncoderConfig, LMConfig
from mtmetrics.training.run import Run


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ContrastiveConfig(temperature=0.0), "temperature 0.0: must be above 0"),
        (ContrastiveConfig(epochs=0), "epochs 0: must be a whole number of at least 1"),
        (
            ContrastiveConfig(pairs_per_step=0),
            "pairs_per_step 0: must be a whole number of at least 1",
        ),
        (ContrastiveConfig(warmup=1.0), "warmup 1.0: a share of the steps is needed"),
        (EncoderConfig(negatives=0), "negatives 0: must be a whole number of at least 1"),
        (LMConfig(steps=90), "90 steps are fewer than 80 of warm-up and 700 of decay"),
    ],
)
def test_settings_that_cannot_be_used(config: Any, message: str, data: Path) -> None:
    run = Run(data.parents[1] / "toy")
    with pytest.raises(InputError, match=message):
        run.open(config, {"parallel": [data]})
    assert not run.work.exists()
