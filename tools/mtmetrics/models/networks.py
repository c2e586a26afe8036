"""The three networks of Mathur et al. (2019): BiLSTM, BiLSTM with attention, and ESIM.

They score the quality of a translation, which they compare with its reference or its source. A
`Member` is one network; a `mtmetrics.models.regressor.Regressor` is an ensemble of members. A member
reads weighted sums of an encoder's layers. It holds the weights, but the caller applies them when it
encodes the texts. `PooledBiLSTM` or `EnhancedInference` turns a pair of texts into one vector, and two
linear layers turn that vector into a score. Equation numbers refer to Mathur et al.

Shapes: B pairs, n positions of the compared side (the reference, the source, or the source followed by
the reference), m positions of the translation, d dimensions. Positions after the end of a text are
padding.

Stored weights have the names of the attributes here.
"""

from collections.abc import Callable, Sequence

import torch
from torch import nn

# (B,) lengths of the compared side, and of the translation.
Lengths = tuple[torch.Tensor, torch.Tensor]


class ScalarMix(nn.Module):
    """Weights of an encoder's layers: ``gamma * softmax(scores)``, all equal before training (Peters
    et al., 2018)."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(1))

    def weights(self) -> torch.Tensor:
        """Returns the (layers,) weights."""
        return self.gamma * self.scores.softmax(0)


class SequenceDropout(nn.Module):
    """Variational dropout: one mask of dimensions per sequence, shared by all its positions (Gal and
    Ghahramani, 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        """Sets dimensions of (B, T, d) sequences to 0 in training."""
        if not self.training or not self.rate:
            return sequences
        shape = len(sequences), 1, sequences.shape[2]
        keep_probability = 1 - self.rate
        probabilities = torch.full(shape, keep_probability, device=sequences.device)
        return sequences * torch.bernoulli(probabilities) / keep_probability


class PaddedBiLSTM(nn.Module):
    """A bidirectional LSTM for padded texts.

    One LSTM reads a text from the first position to the last, the other one from the last to the
    first. Each reads the padding after the text, so that no state of the text depends on it. PyTorch's
    packed sequences give the same states, but on a CPU their backward pass fills an array as large as
    the whole batch for each position.
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
        """Returns the (B, T, 2 hidden) states of (B, T, d) sequences with (B,) lengths.

        States at padding have no meaning.
        """
        positions = torch.arange(sequences.shape[1], device=sequences.device)
        reversed_positions = lengths[:, None] - 1 - positions
        is_padding = reversed_positions < 0
        reversed_positions = torch.where(is_padding, positions, reversed_positions)
        rows = torch.arange(len(sequences), device=sequences.device)[:, None]
        forward_states, _ = self.forwards(sequences)
        backward_states, _ = self.backwards(sequences[rows, reversed_positions])
        return torch.cat([forward_states, backward_states[rows, reversed_positions]], -1)


def encode_sides(
    lstm: PaddedBiLSTM, sides: Sequence[torch.Tensor], lengths: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Runs an LSTM over both sides of the pairs in one batch.

    The positions of a text are computed one after the other, so two runs would take twice as long.

    Args:
        lstm: the network.
        sides: (B, n, d) and (B, m, d).
        lengths: (B,) for each side.

    Returns:
        (B, n, 2 hidden) and (B, m, 2 hidden) states.
    """
    padded_lengths = [side.shape[1] for side in sides]
    longest = max(padded_lengths)
    padded = [nn.functional.pad(side, (0, 0, 0, longest - side.shape[1])) for side in sides]
    states = lstm(torch.cat(padded), torch.cat(list(lengths)))
    states_by_side = states.split([len(side) for side in sides])
    return [side[:, :length] for side, length in zip(states_by_side, padded_lengths, strict=True)]


def text_masks(
    sides: Sequence[torch.Tensor], lengths: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Returns a mask for each side: (B, n) bool, true at real tokens, false at padding.

    `sides` are (B, n, d) each, `lengths` (B,) each.
    """
    masks = []
    for side, counts in zip(sides, lengths, strict=True):
        positions = torch.arange(side.shape[1], device=counts.device)
        masks.append(positions < counts[:, None])
    return masks


def attention_weights(
    queries: torch.Tensor, states: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Computes how much each position of one side attends to each position of the other side: the
    softmax of the products of their vectors.

    Args:
        queries: (B, n, d) vectors of the side that attends.
        states: (B, m, d) vectors of the other side.
        mask: (B, m) bool, false at padding of the other side, which gets no attention.

    Returns:
        (B, n, m); the m weights of a position sum to 1.
    """
    products = queries @ states.transpose(1, 2)
    return products.masked_fill(~mask[:, None, :], -torch.inf).softmax(-1)


def attend(queries: torch.Tensor, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Returns (B, n, d) means of the states of the other side, weighted by `attention_weights`
    (Eq. 7 to 9). The arguments are those of `attention_weights`."""
    return attention_weights(queries, states, mask) @ states


def masked_mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Returns (B, d) means of (B, n, d) states over the positions where the (B, n) mask is true."""
    return (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)


def masked_max(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Returns (B, d) maxima of (B, n, d) states over the positions where the (B, n) mask is true."""
    return states.masked_fill(~mask[:, :, None], -torch.inf).amax(1)


def xavier_linear(inputs: int, outputs: int) -> nn.Linear:
    """Makes a linear layer, initialised as in the paper's code: Xavier-uniform weights, a bias of
    zeros."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class PooledBiLSTM(nn.Module):
    """The BiLSTM (Eq. 3 to 6) and, with `attention`, the BiLSTM with attention (Eq. 7 to 9).

    The states of each side are pooled to a mean and to a maximum. The vector of a pair is
    ``[avg_r; avg_t; avg_r - avg_t; avg_r * avg_t; max_r; max_t; max_r - max_t; max_r * max_t]``,
    with r for the compared side and t for the translation. This is the order of the published code;
    the paper has another one. With `attention`, each state is first replaced by the
    attention-weighted mean of the other side's states.

    Attributes:
        poolings: the two poolings; the published code can also use one alone.
        pair_size: dimensions of the vector of a pair.
    """

    poolings: Sequence[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = (
        masked_mean,
        masked_max,
    )

    def __init__(self, width: int, hidden: int, *, attention: bool) -> None:
        super().__init__()
        self.encoder = PaddedBiLSTM(width, hidden)
        self.attention = attention
        # Each pooling gives four vectors of 2 * hidden dimensions.
        self.pair_size = 4 * 2 * hidden * len(self.poolings)

    def forward(
        self, compared: torch.Tensor, translation: torch.Tensor, lengths: Lengths
    ) -> torch.Tensor:
        """Turns pairs of texts into vectors.

        Args:
            compared: (B, n, d) vectors of the compared side.
            translation: (B, m, d) vectors of the translations.
            lengths: (B,) lengths of each side, at least 1.

        Returns:
            (B, `pair_size`).
        """
        sides = compared, translation
        states_r, states_t = encode_sides(self.encoder, sides, lengths)
        mask_r, mask_t = text_masks(sides, lengths)
        if self.attention:
            states_r, states_t = (
                attend(states_r, states_t, mask_t),
                attend(states_t, states_r, mask_r),
            )
        parts = []
        for pool in self.poolings:
            r, t = pool(states_r, mask_r), pool(states_t, mask_t)
            parts += [r, t, r - t, r * t]
        return torch.cat(parts, 1)


class EnhancedInference(nn.Module):
    """The Enhanced Sequential Inference Model, ESIM (Eq. 7 to 13), first published by Chen et al.
    (2017) for natural language inference.

    The compared side is the premise, the translation is the hypothesis. Each state is combined with
    the attention-weighted mean of the other side's states; a second LSTM reads the result.

    Attributes:
        pair_size: dimensions of the vector of a pair.
    """

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.encoder = PaddedBiLSTM(width, hidden)
        self.projection = xavier_linear(8 * hidden, hidden)
        self.composer = PaddedBiLSTM(hidden, hidden)
        self.dropout = SequenceDropout(dropout)
        self.pair_size = 8 * hidden

    def forward(
        self, compared: torch.Tensor, translation: torch.Tensor, lengths: Lengths
    ) -> torch.Tensor:
        """Turns pairs of texts into (B, `pair_size`) vectors, see `PooledBiLSTM.forward`."""
        sides = compared, translation
        states_r, states_t = encode_sides(self.encoder, sides, lengths)
        mask_r, mask_t = text_masks(sides, lengths)
        enhanced = [
            self._enhance(states_r, attend(states_r, states_t, mask_t)),
            self._enhance(states_t, attend(states_t, states_r, mask_r)),
        ]
        composed_r, composed_t = encode_sides(self.composer, enhanced, lengths)
        return torch.cat(
            [
                masked_mean(composed_r, mask_r),
                masked_max(composed_r, mask_r),
                masked_mean(composed_t, mask_t),
                masked_max(composed_t, mask_t),
            ],
            1,
        )

    def _enhance(self, states: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """Combines (B, n, d) states with the (B, n, d) means that they attend to: concatenation,
        projection, ReLU and dropout."""
        combined = torch.cat([states, attended, states - attended, states * attended], -1)
        return self.dropout(self.projection(combined).relu())


# Features of a pair of texts that a network can read in addition to their vectors. The networks of the
# paper read none. Precision, recall and F1 of greedy matching, and the cosine of the mean vectors, are
# computed once per layer; the ratio of the lengths once per pair.
FEATURES = ("precision", "recall", "f1", "cosine", "length")


def feature_count(names: Sequence[str], layers: int) -> int:
    """Returns the number of feature values of a pair: one for ``length``, one per layer for each other
    feature.

    Args:
        names: the features, some of `FEATURES`.
        layers: number of layers that they are computed from.
    """
    return sum(1 if name == "length" else layers for name in names)


class Member(nn.Module):
    """One network of a `Regressor`: it computes a vector for each pair of texts, and two linear layers
    turn the vector into a score (Eq. 6 and 13).

    Args:
        architecture: ``"bilstm"``, ``"bilstm_attention"`` or ``"esim"``.
        depth: number of encoder layers in the mix.
        width: dimensions of the mixed vectors.
        hidden: width of the LSTM states, per direction.
        dropout: dropout rate in training.
        feature_dim: number of feature values of a pair, see `feature_count`; 0 for none.

    Attributes:
        mix: weights of the encoder's layers; the caller applies them when it encodes the texts.
        pairs: turns a pair of texts into a vector.
    """

    def __init__(
        self,
        architecture: str,
        depth: int,
        width: int,
        hidden: int,
        dropout: float,
        feature_dim: int = 0,
    ) -> None:
        super().__init__()
        self.mix = ScalarMix(depth)
        self.dropout = SequenceDropout(dropout)
        if architecture == "esim":
            self.pairs: EnhancedInference | PooledBiLSTM = EnhancedInference(width, hidden, dropout)
        else:
            self.pairs = PooledBiLSTM(width, hidden, attention=architecture == "bilstm_attention")
        self.output_dropout = nn.Dropout(dropout)
        self.inner = xavier_linear(self.pairs.pair_size + feature_dim, hidden)
        self.outer = xavier_linear(hidden, 1)
        # Features also reach the score directly, past the hidden layer and its dropout.
        self.direct = nn.Linear(feature_dim, 1, bias=False) if feature_dim else None

    def forward(
        self,
        compared: torch.Tensor,
        translation: torch.Tensor,
        lengths: Lengths,
        features: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Returns (B,) scores.

        The arguments are those of `PooledBiLSTM.forward`, and (B, f) `features` with mean 0 and
        standard deviation 1, if and only if `feature_dim` is not 0.
        """
        pairs = self.pairs(self.dropout(compared), self.dropout(translation), lengths)
        pairs = self.output_dropout(pairs)
        if self.direct is None or features is None:
            return self._score(pairs).squeeze(1)
        scores = self._score(torch.cat([pairs, features], 1)) + self.direct(features)
        return scores.squeeze(1)

    def attentions(
        self, compared: torch.Tensor, translation: torch.Tensor, lengths: Lengths
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Computes the attention of both sides, for networks that have attention.

        The arguments are those of `PooledBiLSTM.forward`.

        Returns:
            (B, n, m) attention weights of the compared side, and (B, m, n) of the translation.
        """
        sides = compared, translation
        states_r, states_t = encode_sides(self.pairs.encoder, sides, lengths)
        mask_r, mask_t = text_masks(sides, lengths)
        return (
            attention_weights(states_r, states_t, mask_t),
            attention_weights(states_t, states_r, mask_r),
        )

    def _score(self, vectors: torch.Tensor) -> torch.Tensor:
        """Returns (B, 1) scores from the vectors of pairs, with their features if there are any."""
        return self.outer(self.output_dropout(self.inner(vectors).relu()))
