"""The artifact: what is saved comes back, members are averaged, and features are standardised."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.regressors.features import FEATURES, feature_count, pair_features
from mtmetrics.regressors.regressor import Regressor


def build(**options: object) -> Regressor:
    torch.manual_seed(0)
    settings = {
        "architecture": "esim",
        "against": "reference",
        "encoder": "e",
        "encoder_fingerprint": "12345678",
        "depth": 3,
        "width": 6,
    }
    return Regressor(**{**settings, "hidden": 4, **options}).eval()


def pairs(members: int = 1) -> tuple:
    generator = torch.Generator().manual_seed(1)
    sides = [torch.randn(2, length, 6 * members, generator=generator) for length in (3, 4)]
    return (*sides, (torch.tensor([3, 1]), torch.tensor([2, 4])))


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    network = build(members=2, features=["f1", "length"], floor=-1.5)
    with torch.no_grad():
        network.feature_mean.copy_(torch.tensor([0.5, 0.0]))
    network.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as stored:
        assert {stored.get_slice(name).get_dtype() for name in stored.keys()} == {"F16"}  # noqa: SIM118 (no dictionary)
    read = Regressor.read(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["features"] == ["f1", "length"]
    assert (read.floor, read.encoder_fingerprint, read.features) == (-1.5, "12345678", ["f1", "length"])
    assert {values.dtype for values in read.state_dict().values()} == {torch.float32}
    features = torch.tensor([[0.4, 0.1], [0.9, -0.3]])
    assert torch.allclose(read(*pairs(2), features), network(*pairs(2), features), atol=2e-3)


def test_members_are_averaged() -> None:
    network = build(members=2)
    first, second, lengths = pairs(2)
    scores = [
        member(first[:, :, own], second[:, :, own], lengths)
        for member, own in zip(network.members, (slice(6), slice(6, 12)), strict=True)
    ]
    assert torch.allclose(network(first, second, lengths), (scores[0] + scores[1]) / 2)
    assert not torch.allclose(scores[0], scores[1])


def test_mixes_have_a_row_per_member_and_one_for_features() -> None:
    assert build(members=2).mixes() == pytest.approx(np.full((2, 3), 1 / 3))
    assert build(features=["f1"]).mixes().tolist() == [pytest.approx([1 / 3] * 3), [0.0, 0.0, 1.0]]
    assert build(features=["f1"], feature_layers=[1, 3]).mixes().tolist()[1:] == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


def test_features_by_hand(tiny_encoder: Path) -> None:
    encoder = TokenEncoder(tiny_encoder)
    tokens = encoder.encode(["the house", "a dog sleeps there"])
    others, predictions = np.array([0, 0]), np.array([0, 1])
    found = pair_features(FEATURES, [tokens], others, predictions)
    assert found[0] == pytest.approx([1, 1, 1, 1, 0], abs=1e-5)
    # With [CLS] and [SEP], four tokens and six.
    assert found[1, 4] == pytest.approx(np.log(6 / 4), abs=1e-5)
    assert (found[1, :4] < 0.99).all()
    assert pair_features(["length", "f1"], [tokens], others, predictions) == pytest.approx(found[:, [2, 4]])
    negative = tokens.with_vectors(lambda vectors: vectors - 1)
    twice = pair_features(FEATURES, [tokens, negative], others, predictions)
    assert twice.shape == (2, feature_count(FEATURES, 2))
    assert twice[:, :4] == pytest.approx(found[:, :4])
    assert twice[1, 4:8] != pytest.approx(found[1, :4], abs=1e-3)
    assert pair_features([], [], others, predictions).shape == (2, 0)
