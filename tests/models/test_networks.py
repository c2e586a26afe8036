"""The networks: values that can be checked by hand, padding that changes nothing."""

import pytest
import torch

from mtmetrics.models import networks


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
    lstm = networks.PaddedBiLSTM(6, 4)
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
    assert whole.shape == (2, network.pair_size)


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
