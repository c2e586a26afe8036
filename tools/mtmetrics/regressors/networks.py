"""The three networks of Mathur et al. (2019): from the vectors of two texts to a score."""

import torch
from torch import nn

from mtmetrics.regressors import layers


class PooledBiLSTM(nn.Module):
    """BiLSTM, and BiLSTM with attention (Eq. 3 to 6, and 7 to 9).

    As in the published code, the halves are pooled and compared one after the other:
    ``[avg_r; avg_t; avg_r - avg_t; avg_r * avg_t; max_r; max_t; max_r - max_t; max_r * max_t]``.

    Args:
        width: of the input vectors.
        hidden: of the LSTM states, per direction.
        attention: compare what each side attends to on the other, instead of the states themselves.
        pooling: ``"both"``, ``"avg"`` or ``"max"``.
    """

    def __init__(self, width: int, hidden: int, *, attention: bool, pooling: str = "both") -> None:
        super().__init__()
        self.encoder = layers.BiLSTM(width, hidden)
        self.attention = attention
        self.poolings = {"both": (layers.averages, layers.maxima), "avg": (layers.averages,), "max": (layers.maxima,)}[
            pooling
        ]
        self.pooled = 8 * hidden * len(self.poolings)

    def forward(
        self, other: torch.Tensor, prediction: torch.Tensor, lengths: tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        """(B, `pooled`) representation of the pairs.

        Args:
            other: (B, n, d) vectors of the references or sources.
            prediction: (B, m, d) vectors of the translations.
            lengths: (B,) lengths of each side, at least 1.
        """
        first, second = layers.states_of_both(self.encoder, (other, prediction), lengths)
        masks = [layers.mask(sizes, side.shape[1]) for side, sizes in zip((other, prediction), lengths, strict=True)]
        if self.attention:
            first, second = layers.attended(first, second, masks[1]), layers.attended(second, first, masks[0])
        parts = []
        for pool in self.poolings:
            r, t = pool(first, masks[0]), pool(second, masks[1])
            parts += [r, t, r - t, r * t]
        return torch.cat(parts, 1)


class ESIM(nn.Module):
    """The Enhanced Sequential Inference Model (Chen et al., 2017), reference as premise, translation as hypothesis (Eq.
    7 to 13).

    Args:
        width: of the input vectors.
        hidden: of the LSTM states, per direction, and of the projection between the two BiLSTMs.
        dropout: of the inputs of the second BiLSTM.
    """

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.encoder = layers.BiLSTM(width, hidden)
        self.projection = layers.linear(8 * hidden, hidden)
        self.composer = layers.BiLSTM(hidden, hidden)
        self.dropout = layers.SequenceDropout(dropout)
        self.pooled = 8 * hidden

    def forward(
        self, other: torch.Tensor, prediction: torch.Tensor, lengths: tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        """(B, `pooled`) representation of the pairs; arguments as `PooledBiLSTM.forward`."""
        first, second = layers.states_of_both(self.encoder, (other, prediction), lengths)
        masks = [layers.mask(sizes, side.shape[1]) for side, sizes in zip((other, prediction), lengths, strict=True)]
        matched = layers.attended(first, second, masks[1]), layers.attended(second, first, masks[0])
        enhanced = []
        for states, other_states in zip((first, second), matched, strict=True):
            joined = torch.cat([states, other_states, states - other_states, states * other_states], -1)
            enhanced.append(self.dropout(self.projection(joined).relu()))
        parts = []
        for composed, real in zip(layers.states_of_both(self.composer, enhanced, lengths), masks, strict=True):
            parts += [layers.averages(composed, real), layers.maxima(composed, real)]
        return torch.cat(parts, 1)
