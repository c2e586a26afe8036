"""The parts that the networks are built from: mix of layers, dropout of whole sequences, BiLSTM, attention, pooling."""

from collections.abc import Sequence

import torch
from torch import nn


class ScalarMix(nn.Module):
    """Weights of an encoder's layers: ``gamma * softmax(scores)``, all equal at first (Peters et al., 2018).

    Args:
        layers: number of layers that are mixed.
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(1))

    def weights(self) -> torch.Tensor:
        """(layers,) weight of each layer."""
        return self.gamma * self.scores.softmax(0)


class SequenceDropout(nn.Module):
    """Dropout that drops the same entries at all positions of a sequence (Gal and Ghahramani, 2016).

    Args:
        rate: share of entries that are dropped.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        """(B, T, d) sequences with entries dropped, while training."""
        if not self.training or not self.rate:
            return sequences
        kept = torch.full((len(sequences), 1, sequences.shape[2]), 1 - self.rate, device=sequences.device)
        return sequences * torch.bernoulli(kept) / (1 - self.rate)


class BiLSTM(nn.Module):
    """A bidirectional LSTM that never sees padding before the end of a text.

    The second direction reads each text turned round within its own length, so that padding comes last for both. Packed
    sequences would do the same, but their backward pass on a CPU fills an array as large as the whole batch for every
    position.

    Args:
        inputs: width of the vectors.
        hidden: width of the states of each direction.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(inputs, hidden, batch_first=True)
        self.backwards = nn.LSTM(inputs, hidden, batch_first=True)
        for name, values in [*self.forwards.named_parameters(), *self.backwards.named_parameters()]:
            if "weight_ih" in name:
                nn.init.xavier_uniform_(values)
            elif "weight_hh" in name:
                nn.init.orthogonal_(values)
            else:
                nn.init.zeros_(values)
                if "bias_hh" in name:
                    nn.init.ones_(values.data[hidden : 2 * hidden])  # the forget gate

    def forward(self, sequences: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """(B, T, 2 hidden) states of (B, T, d) sequences of the given (B,) lengths; what stands behind their ends means
        nothing."""
        positions = torch.arange(sequences.shape[1], device=sequences.device)
        turned = lengths[:, None] - 1 - positions
        turned = torch.where(turned < 0, positions, turned)
        rows = torch.arange(len(sequences), device=sequences.device)[:, None]
        states = self.backwards(sequences[rows, turned])[0][rows, turned]
        return torch.cat([self.forwards(sequences)[0], states], -1)


def states_of_both(lstm: BiLSTM, sides: Sequence[torch.Tensor], lengths: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The states of an LSTM over both sides of the pairs, in one go: its steps take turns, so that two runs would take
    twice as long.

    Args:
        lstm: shared by the sides.
        sides: (B, n, d) and (B, m, d).
        lengths: (B,) lengths of each.

    Returns:
        (B, n, 2 hidden) and (B, m, 2 hidden).
    """
    widths = [side.shape[1] for side in sides]
    padded = [nn.functional.pad(side, (0, 0, 0, max(widths) - side.shape[1])) for side in sides]
    states = lstm(torch.cat(padded), torch.cat(list(lengths))).split([len(side) for side in sides])
    return [side[:, :width] for side, width in zip(states, widths, strict=True)]


def mask(lengths: torch.Tensor, width: int) -> torch.Tensor:
    """(B, width) bool, true before the end of each sequence."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


def attended(queries: torch.Tensor, states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """What each position attends to on the other side (Mathur et al., 2019, Eq. 7 to 9).

    Args:
        queries: (B, n, d).
        states: (B, m, d) of the other side.
        real: (B, m) bool, their positions that are no padding.

    Returns:
        (B, n, d) means of the states, weighted by the softmax of their products with the queries.
    """
    products = queries @ states.transpose(1, 2)
    return products.masked_fill(~real[:, None, :], -torch.inf).softmax(-1) @ states


def averages(states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """(B, d) means of the (B, n, d) states at real positions."""
    return (states * real[:, :, None]).sum(1) / real.sum(1, keepdim=True)


def maxima(states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """(B, d) maxima of the (B, n, d) states at real positions."""
    return states.masked_fill(~real[:, :, None], -torch.inf).amax(1)


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer as the paper's code begins with it: Xavier-uniform weights, no bias."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
