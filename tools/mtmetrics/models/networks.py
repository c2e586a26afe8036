"""The three networks of Mathur et al. (2019), and what they are made of."""

from collections.abc import Callable, Sequence

import torch
from torch import nn

Lengths = tuple[torch.Tensor, torch.Tensor]
# Numbers about a pair of texts that a network can read beside their vectors; the paper's networks
# read none.
FEATURES = ("precision", "recall", "f1", "cosine", "length")
_WITHOUT_LAYERS = ("length",)


def feature_count(names: Sequence[str], layers: int) -> int:
    """Number of columns of `pair_features` where `layers` layers are read."""
    once = sum(name in _WITHOUT_LAYERS for name in names)
    return (len(names) - once) * layers + once


class ScalarMix(nn.Module):
    """Weights of an encoder's layers: ``gamma * softmax(scores)``, all equal at first (Peters et
    al., 2018)."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(1))

    def weights(self) -> torch.Tensor:
        """(layers,) weight of each layer."""
        return self.gamma * self.scores.softmax(0)


class SequenceDropout(nn.Module):
    """Dropout that drops the same entries at all positions of a sequence (Gal and Ghahramani,
    2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        if not self.training or not self.rate:
            return sequences
        kept = torch.full(
            (len(sequences), 1, sequences.shape[2]), 1 - self.rate, device=sequences.device
        )
        return sequences * torch.bernoulli(kept) / (1 - self.rate)


class TwoWayLSTM(nn.Module):
    """A bidirectional LSTM that never sees padding before the end of a text.

    The second direction reads each text turned round within its own length, so that padding comes
    last for both. Packed sequences would do the same, but their backward pass on a CPU fills an
    array as large as the whole batch for every position."""

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
        """(B, T, 2 hidden) states of (B, T, d) sequences; what stands behind their ends means
        nothing."""
        positions = torch.arange(sequences.shape[1], device=sequences.device)
        turned = lengths[:, None] - 1 - positions
        turned = torch.where(turned < 0, positions, turned)
        rows = torch.arange(len(sequences), device=sequences.device)[:, None]
        states = self.backwards(sequences[rows, turned])[0][rows, turned]
        return torch.cat([self.forwards(sequences)[0], states], -1)


def states_of_both(
    lstm: TwoWayLSTM, sides: Sequence[torch.Tensor], lengths: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """(B, n, 2 hidden) and (B, m, 2 hidden) states over both sides of the pairs, (B, n, d) and (B,
    m, d), in one go: the steps of an LSTM take turns, so that two runs would take twice as long."""
    widths = [side.shape[1] for side in sides]
    padded = [nn.functional.pad(side, (0, 0, 0, max(widths) - side.shape[1])) for side in sides]
    states = lstm(torch.cat(padded), torch.cat(list(lengths))).split([len(side) for side in sides])
    return [side[:, :width] for side, width in zip(states, widths, strict=True)]


def mask(lengths: torch.Tensor, width: int) -> torch.Tensor:
    """(B, width) bool, true before the end of each sequence."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


def attention(queries: torch.Tensor, states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """(B, n, m) how much each position attends to each of the other side: the softmax of the
    products of queries and states, at `real` positions."""
    return (queries @ states.transpose(1, 2)).masked_fill(~real[:, None, :], -torch.inf).softmax(-1)


def attended(queries: torch.Tensor, states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """(B, n, d) what each position attends to on the other side (Mathur et al., 2019, Eq. 7 to 9):
    the mean of its (B, m, d) states, weighted by `attention`."""
    return attention(queries, states, real) @ states


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


class PooledBiLSTM(nn.Module):
    """BiLSTM, and BiLSTM with attention (Eq. 3 to 6, and 7 to 9).

    As in the published code, the halves are pooled and compared one after the other:
    ``[avg_r; avg_t; avg_r - avg_t; avg_r * avg_t; max_r; max_t; max_r - max_t; max_r * max_t]``.
    With `attention` what each side attends to on the other is compared, instead of the states
    themselves."""

    poolings: Sequence[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = (averages, maxima)

    def __init__(self, width: int, hidden: int, *, attention: bool) -> None:
        super().__init__()
        self.encoder = TwoWayLSTM(width, hidden)
        self.attention = attention
        self.pooled = 8 * hidden * len(self.poolings)

    def forward(
        self, other: torch.Tensor, prediction: torch.Tensor, lengths: Lengths
    ) -> torch.Tensor:
        """(B, `pooled`) representation of the pairs.

        Args:
            other: (B, n, d) vectors of the references, of the sources, or of each source and its
                reference behind it.
            prediction: (B, m, d) vectors of the translations.
            lengths: (B,) lengths of each side, at least 1.
        """
        first, second = states_of_both(self.encoder, (other, prediction), lengths)
        masks = [
            mask(sizes, side.shape[1])
            for side, sizes in zip((other, prediction), lengths, strict=True)
        ]
        if self.attention:
            first, second = attended(first, second, masks[1]), attended(second, first, masks[0])
        parts = []
        for pool in self.poolings:
            r, t = pool(first, masks[0]), pool(second, masks[1])
            parts += [r, t, r - t, r * t]
        return torch.cat(parts, 1)


class EnhancedInference(nn.Module):
    """The Enhanced Sequential Inference Model (Chen et al., 2017), reference as premise,
    translation as hypothesis (Eq. 7 to 13)."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.encoder = TwoWayLSTM(width, hidden)
        self.projection = linear(8 * hidden, hidden)
        self.composer = TwoWayLSTM(hidden, hidden)
        self.dropout = SequenceDropout(dropout)
        self.pooled = 8 * hidden

    def forward(
        self, other: torch.Tensor, prediction: torch.Tensor, lengths: Lengths
    ) -> torch.Tensor:
        """(B, `pooled`) representation of the pairs; arguments as `PooledBiLSTM.forward`."""
        first, second = states_of_both(self.encoder, (other, prediction), lengths)
        masks = [
            mask(sizes, side.shape[1])
            for side, sizes in zip((other, prediction), lengths, strict=True)
        ]
        matched = attended(first, second, masks[1]), attended(second, first, masks[0])
        enhanced = []
        for states, other_states in zip((first, second), matched, strict=True):
            joined = torch.cat(
                [states, other_states, states - other_states, states * other_states], -1
            )
            enhanced.append(self.dropout(self.projection(joined).relu()))
        parts = []
        for composed, real in zip(
            states_of_both(self.composer, enhanced, lengths), masks, strict=True
        ):
            parts += [averages(composed, real), maxima(composed, real)]
        return torch.cat(parts, 1)


class Member(nn.Module):
    """One network: layer mix, dropout, the encoding of the pair, and the feed-forward regressor
    over it (Eq. 6 and 13); arguments as of `RegressorShape`, but `features` is their number."""

    def __init__(
        self,
        architecture: str,
        depth: int,
        width: int,
        hidden: int,
        dropout: float,
        features: int = 0,
    ) -> None:
        super().__init__()
        self.mix = ScalarMix(depth)
        self.dropout = SequenceDropout(dropout)
        if architecture == "esim":
            self.pairs: EnhancedInference | PooledBiLSTM = EnhancedInference(width, hidden, dropout)
        else:
            self.pairs = PooledBiLSTM(width, hidden, attention=architecture == "bilstm_attention")
        self.output_dropout = nn.Dropout(dropout)
        self.inner = linear(self.pairs.pooled + features, hidden)
        self.outer = linear(hidden, 1)
        # Features have a way of their own to the score, so that it need not be learnt through the
        # dropout.
        self.direct = nn.Linear(features, 1, bias=False) if features else None

    def forward(
        self,
        other: torch.Tensor,
        prediction: torch.Tensor,
        lengths: Lengths,
        features: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """(B,) scores of pairs whose layers are mixed and whose (B, f) features are standardised
        already; else as `PooledBiLSTM.forward`."""
        pooled = self.output_dropout(
            self.pairs(self.dropout(other), self.dropout(prediction), lengths)
        )
        if self.direct is None or features is None:
            return self.outer(self.output_dropout(self.inner(pooled).relu())).squeeze(1)
        inner = self.inner(torch.cat([pooled, features], 1)).relu()
        return (self.outer(self.output_dropout(inner)) + self.direct(features)).squeeze(1)
