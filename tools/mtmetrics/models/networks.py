"""The three networks of Mathur et al. (2019): BiLSTM, BiLSTM with attention, and ESIM.

A `Member` is one network. It reads vectors that are mixed from an encoder's layers already; it holds
the weights of the mix, but does not apply them. `PooledBiLSTM` or `EnhancedInference` turns a pair
of texts into one vector, and two linear layers turn that vector into a score. Equations are those of
the paper, where no other paper is named.

Shapes: B pairs, n positions of the compared side (the reference or the source), m positions of the
translation, d numbers in a vector. Positions behind the end of a text are padding.
"""

from collections.abc import Callable, Sequence

import torch
from torch import nn

# (B,) lengths of the compared side, and of the translation.
Lengths = tuple[torch.Tensor, torch.Tensor]
# Numbers about a pair of texts that a network can read beside their vectors; the paper's networks
# read none. All but the length are computed from the vectors of a layer.
FEATURES = ("precision", "recall", "f1", "cosine", "length")


def feature_count(names: Sequence[str], layers: int) -> int:
    """Counts the numbers that some of `FEATURES` make of a pair, from so many layers."""
    return sum(1 if name == "length" else layers for name in names)


class ScalarMix(nn.Module):
    """Weights of an encoder's layers: ``gamma * softmax(scores)``, all equal at first (Peters et
    al., 2018)."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(1))

    def weights(self) -> torch.Tensor:
        """Returns the (layers,) weights."""
        return self.gamma * self.scores.softmax(0)


class SequenceDropout(nn.Module):
    """Dropout that drops the same entries at all positions of a sequence (Gal and Ghahramani,
    2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        """Drops entries of (B, T, d) sequences, while training."""
        if not self.training or not self.rate:
            return sequences
        shape = len(sequences), 1, sequences.shape[2]
        kept_share = 1 - self.rate
        chances = torch.full(shape, kept_share, device=sequences.device)
        return sequences * torch.bernoulli(chances) / kept_share


class TwoWayLSTM(nn.Module):
    """A bidirectional LSTM that never sees padding before the end of a text.

    The second direction reads each text backwards, from its last position to its first, and padding
    last. Packed sequences would do the same, but their backward pass on a CPU fills an array as
    large as the whole batch for every position.
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
        """Returns (B, T, 2 hidden) states of (B, T, d) sequences; those of padding mean nothing.

        `lengths` is (B,).
        """
        positions = torch.arange(sequences.shape[1], device=sequences.device)
        backwards = lengths[:, None] - 1 - positions
        backwards = torch.where(backwards < 0, positions, backwards)  # padding stays in its place
        rows = torch.arange(len(sequences), device=sequences.device)[:, None]
        forward_states, _ = self.forwards(sequences)
        backward_states, _ = self.backwards(sequences[rows, backwards])
        return torch.cat([forward_states, backward_states[rows, backwards]], -1)


def states_of_both(
    lstm: TwoWayLSTM, sides: Sequence[torch.Tensor], lengths: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Runs an LSTM over both sides of the pairs at once.

    The steps of an LSTM wait for each other, so that two runs would take twice as long.

    Args:
        lstm: the network.
        sides: (B, n, d) and (B, m, d).
        lengths: (B,) of each side.

    Returns:
        (B, n, 2 hidden) and (B, m, 2 hidden) states.
    """
    positions = [side.shape[1] for side in sides]
    most = max(positions)
    padded = [nn.functional.pad(side, (0, 0, 0, most - side.shape[1])) for side in sides]
    states = lstm(torch.cat(padded), torch.cat(list(lengths)))
    states_by_side = states.split([len(side) for side in sides])
    return [side[:, :count] for side, count in zip(states_by_side, positions, strict=True)]


def real_positions(
    sides: Sequence[torch.Tensor], lengths: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Returns for each side a (B, n) mask that is true before the end of each text.

    `sides` are (B, n, d) each, `lengths` (B,) each.
    """
    masks = []
    for side, counts in zip(sides, lengths, strict=True):
        positions = torch.arange(side.shape[1], device=counts.device)
        masks.append(positions < counts[:, None])
    return masks


def attention(queries: torch.Tensor, states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Computes how much each position of one side attends to each position of the other side: the
    softmax of the products of their vectors.

    Args:
        queries: (B, n, d) vectors of the side that attends.
        states: (B, m, d) vectors of the other side.
        real: (B, m) bool, false at padding, which gets nothing.

    Returns:
        (B, n, m), of sum 1 for each position that attends.
    """
    products = queries @ states.transpose(1, 2)
    return products.masked_fill(~real[:, None, :], -torch.inf).softmax(-1)


def attended(queries: torch.Tensor, states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Returns (B, n, d) means of the states of the other side, weighted by `attention` (Eq. 7 to 9);
    takes its arguments."""
    return attention(queries, states, real) @ states


def averages(states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Returns (B, d) means of (B, n, d) states at the positions where the (B, n) mask is true."""
    return (states * real[:, :, None]).sum(1) / real.sum(1, keepdim=True)


def maxima(states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Returns (B, d) maxima of (B, n, d) states at the positions where the (B, n) mask is true."""
    return states.masked_fill(~real[:, :, None], -torch.inf).amax(1)


def linear(inputs: int, outputs: int) -> nn.Linear:
    """Makes a linear layer that begins like those of the paper's code: Xavier-uniform weights, a
    bias of zeros."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class PooledBiLSTM(nn.Module):
    """BiLSTM, and BiLSTM with attention (Eq. 3 to 6, and 7 to 9).

    The states of each side are pooled to an average and to a maximum. The vector of a pair is
    ``[avg_r; avg_t; avg_r - avg_t; avg_r * avg_t; max_r; max_t; max_r - max_t; max_r * max_t]``,
    with r for the compared side and t for the translation. The paper has another order; this is
    that of the published code. With `attention`, states are replaced by those of the other side
    that they attend to.

    Attributes:
        pooled: numbers in the vector of a pair.
    """

    poolings: Sequence[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = (averages, maxima)

    def __init__(self, width: int, hidden: int, *, attention: bool) -> None:
        super().__init__()
        self.encoder = TwoWayLSTM(width, hidden)
        self.attention = attention
        self.pooled = 8 * hidden * len(self.poolings)

    def forward(
        self, compared: torch.Tensor, prediction: torch.Tensor, lengths: Lengths
    ) -> torch.Tensor:
        """Turns pairs of texts into vectors.

        Args:
            compared: (B, n, d) vectors of the references, of the sources, or of each source and its
                reference behind it.
            prediction: (B, m, d) vectors of the translations.
            lengths: (B,) lengths of each side, at least 1.

        Returns:
            (B, `pooled`).
        """
        sides = compared, prediction
        states_r, states_t = states_of_both(self.encoder, sides, lengths)
        real_r, real_t = real_positions(sides, lengths)
        if self.attention:
            states_r, states_t = (
                attended(states_r, states_t, real_t),
                attended(states_t, states_r, real_r),
            )
        parts = []
        for pool in self.poolings:
            r, t = pool(states_r, real_r), pool(states_t, real_t)
            parts += [r, t, r - t, r * t]
        return torch.cat(parts, 1)


class EnhancedInference(nn.Module):
    """The Enhanced Sequential Inference Model (Chen et al., 2017; Eq. 7 to 13).

    The compared side is the premise, the translation the hypothesis. Each position is joined with
    what it attends to on the other side; a second LSTM reads the joined vectors.

    Attributes:
        pooled: numbers in the vector of a pair.
    """

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.encoder = TwoWayLSTM(width, hidden)
        self.projection = linear(8 * hidden, hidden)
        self.composer = TwoWayLSTM(hidden, hidden)
        self.dropout = SequenceDropout(dropout)
        self.pooled = 8 * hidden

    def forward(
        self, compared: torch.Tensor, prediction: torch.Tensor, lengths: Lengths
    ) -> torch.Tensor:
        """Turns pairs of texts into (B, `pooled`) vectors; see `PooledBiLSTM.forward`."""
        sides = compared, prediction
        states_r, states_t = states_of_both(self.encoder, sides, lengths)
        real_r, real_t = real_positions(sides, lengths)
        enhanced = [
            self._enhanced(states_r, attended(states_r, states_t, real_t)),
            self._enhanced(states_t, attended(states_t, states_r, real_r)),
        ]
        composed_r, composed_t = states_of_both(self.composer, enhanced, lengths)
        return torch.cat(
            [
                averages(composed_r, real_r),
                maxima(composed_r, real_r),
                averages(composed_t, real_t),
                maxima(composed_t, real_t),
            ],
            1,
        )

    def _enhanced(self, states: torch.Tensor, matched: torch.Tensor) -> torch.Tensor:
        """Joins (B, n, d) states with the states that they attend to, and projects them."""
        joined = torch.cat([states, matched, states - matched, states * matched], -1)
        return self.dropout(self.projection(joined).relu())


class Member(nn.Module):
    """One network: dropout, the vector of a pair, and two linear layers from it to a score (Eq. 6
    and 13).

    Args:
        architecture: ``"bilstm"``, ``"bilstm_attention"`` or ``"esim"``.
        depth: layers of the encoder that are mixed.
        width: numbers in a mixed vector.
        hidden: width of the LSTM states, per direction.
        dropout: rate, while training.
        features: numbers about a pair that are read beside the vectors.

    Attributes:
        mix: weights of the encoder's layers, which whoever encodes the texts has to apply.
    """

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
        # Features also reach the score directly, so that their weights need not be learnt through
        # the dropout.
        self.direct = nn.Linear(features, 1, bias=False) if features else None

    def forward(
        self,
        compared: torch.Tensor,
        prediction: torch.Tensor,
        lengths: Lengths,
        features: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Scores pairs of texts, (B,), from mixed vectors, see `PooledBiLSTM.forward`, and (B, f)
        features of mean 0 and deviation 1."""
        pairs = self.pairs(self.dropout(compared), self.dropout(prediction), lengths)
        pooled = self.output_dropout(pairs)
        if self.direct is None or features is None:
            return self.outer(self.output_dropout(self.inner(pooled).relu())).squeeze(1)
        inner = self.inner(torch.cat([pooled, features], 1)).relu()
        return (self.outer(self.output_dropout(inner)) + self.direct(features)).squeeze(1)
