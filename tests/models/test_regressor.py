"""The artifact of a learned metric: what is saved comes back."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from mtmetrics.models.regressor import Regressor, RegressorSettings


def build(**options: object) -> Regressor:
    torch.manual_seed(0)
    settings = {
        "architecture": "esim",
        "against": "reference",
        "encoder": "e",
        "encoder_fingerprint": "12345678",
    }
    return Regressor(
        RegressorSettings(**{**settings, "depth": 3, "width": 6, "hidden": 4, **options})
    ).eval()


def pairs(members: int = 1) -> tuple:
    generator = torch.Generator().manual_seed(1)
    sides = [torch.randn(2, length, 6 * members, generator=generator) for length in (3, 4)]
    return (*sides, (torch.tensor([3, 1]), torch.tensor([2, 4])))


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    network = build(members=2, features=["f1", "length"], floor=-1.5)
    with torch.no_grad():
        network.feature_mean.copy_(torch.tensor([0.5, 0.0]))
    network.save(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as stored:
        assert {stored.get_slice(name).get_dtype() for name in stored.keys()} == {"F16"}  # noqa: SIM118 (no dictionary)
    read = Regressor.read(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["features"] == ["f1", "length"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    assert (read.floor, read.encoder_fingerprint, read.features) == (
        -1.5,
        "12345678",
        ["f1", "length"],
    )
    assert {values.dtype for values in read.state_dict().values()} == {torch.float32}
    features = torch.tensor([[0.4, 0.1], [0.9, -0.3]])
    assert torch.allclose(read(*pairs(2), features), network(*pairs(2), features), atol=2e-3)


def test_mixes_have_a_row_per_member_and_one_for_features() -> None:
    assert build(members=2).mixes() == pytest.approx(np.full((2, 3), 1 / 3))
    assert build(features=["f1"]).mixes().tolist() == [pytest.approx([1 / 3] * 3), [0.0, 0.0, 1.0]]
    assert build(features=["f1"], feature_layers=[1, 3]).mixes().tolist()[1:] == [
        [1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0],
    ]
