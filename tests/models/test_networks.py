"""The networks and the artifact: values that can be checked by hand, padding that changes nothing, what is saved comes
back."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from mtmetrics.models import networks
from mtmetrics.models.networks import FEATURES, feature_count
from mtmetrics.models.regressor import Regressor, RegressorShape
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.learned import pair_features


def test_mix_is_a_scaled_softmax() -> None:
    mix = networks.ScalarMix(2)
    assert mix.weights().tolist() == [0.5, 0.5]
    with torch.no_grad():
        mix.scores.copy_(torch.tensor([0.0, 3.0]).log().nan_to_num(neginf=-50.0))
        mix.gamma.fill_(2.0)
    assert mix.weights().tolist() == pytest.approx([0.0, 2.0])


def test_sequence_dropout_drops_an_entry_everywhere() -> None:
    torch.manual_seed(0)
    dropped = networks.SequenceDropout(0.5)(torch.ones(3, 5, 40))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert (dropped == dropped[:, :1]).all()
    assert not (dropped[0] == dropped[1]).all()
    assert (networks.SequenceDropout(0.5).eval()(torch.ones(1, 2, 3)) == 1).all()


def test_first_weights_of_the_lstm() -> None:
    lstm = networks.TwoWayLSTM(6, 4)
    assert lstm.forwards.bias_hh_l0.tolist() == [0.0] * 4 + [1.0] * 4 + [0.0] * 8
    assert not lstm.backwards.bias_ih_l0.any()
    recurrent = lstm.backwards.weight_hh_l0
    assert torch.allclose(recurrent.T @ recurrent, torch.eye(4), atol=1e-5)


@pytest.mark.parametrize("kind", ["bilstm", "attention", "esim"])
def test_padding_changes_nothing(kind: str) -> None:
    torch.manual_seed(0)
    made = {
        "bilstm": lambda: networks.PooledBiLSTM(6, 4, attention=False),
        "attention": lambda: networks.PooledBiLSTM(6, 4, attention=True),
        "esim": lambda: networks.EnhancedInference(6, 4, 0.0),
    }
    network = made[kind]()
    first, second = torch.randn(2, 3, 6), torch.randn(2, 5, 6)
    lengths = torch.tensor([3, 2]), torch.tensor([1, 5])
    padded = torch.cat([first, torch.full((2, 4, 6), 5.0)], 1)
    whole = network(first, second, lengths)
    assert torch.allclose(network(padded, second, lengths), whole, atol=1e-6)
    alone = network(first[1:, :2], second[1:], (torch.tensor([2]), torch.tensor([5])))
    assert torch.allclose(alone, whole[1:], atol=1e-6)
    assert whole.shape == (2, network.pooled)


def test_without_attention_each_side_is_pooled_by_itself() -> None:
    torch.manual_seed(0)
    network = networks.PooledBiLSTM(6, 4, attention=False)
    first, second = torch.randn(1, 3, 6), torch.randn(1, 5, 6)
    lengths = torch.tensor([3]), torch.tensor([5])
    r, t, difference, product, *largest = network(first, second, lengths).split(8, 1)
    assert torch.allclose(r, network.encoder(first, lengths[0]).mean(1), atol=1e-6)
    assert torch.allclose(t, network.encoder(second, lengths[1]).mean(1), atol=1e-6)
    assert torch.allclose(difference, r - t)
    assert torch.allclose(product, r * t)
    assert torch.allclose(largest[0], network.encoder(first, lengths[0]).amax(1), atol=1e-6)


def build(**options: object) -> Regressor:
    torch.manual_seed(0)
    settings = {"architecture": "esim", "against": "reference", "encoder": "e", "encoder_fingerprint": "12345678"}
    return Regressor(RegressorShape(**{**settings, "depth": 3, "width": 6, "hidden": 4, **options})).eval()


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
    assert (read.floor, read.encoder_fingerprint, read.features) == (-1.5, "12345678", ["f1", "length"])
    assert {values.dtype for values in read.state_dict().values()} == {torch.float32}
    features = torch.tensor([[0.4, 0.1], [0.9, -0.3]])
    assert torch.allclose(read(*pairs(2), features), network(*pairs(2), features), atol=2e-3)


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
