"""ESIM whose second part, the composition, is made of transformer layers instead of an LSTM.

`ComposedInference` turns a pair of texts into one vector, `ComposedMember` the vector into a score.
The layers begin with random weights. Before training, `mtmetrics.training.composed` replaces them by
the weights of the upper layers of an encoder.
"""

import dataclasses

import torch
from torch import nn

from mtmetrics.models.networks import Lengths, masked_max, masked_mean, text_masks, xavier_linear

_COSINE_AT_PADDING = -1e4
# Roles of a text in a pair; a translation is compared with one of the first two, or with both.
SIDES = ("source", "reference", "translation")
_TRANSLATION = SIDES.index("translation")
# Setting `against` of a `Regressor` -> the sides that the network can compare with. "both" is a single
# side: the source followed by the reference.
KNOWN_SIDES = {
    "source": ("source",),
    "reference": ("reference",),
    "both": ("both",),
    "either": ("source", "reference"),
    "any": ("source", "reference", "both"),
}


@dataclasses.dataclass(frozen=True)
class Composition:
    """Sizes of a composition by transformer layers. The layers have the form and the sizes of BERT's,
    so that they can begin with the weights of a BERT encoder.

    Attributes:
        layer: layer of the encoder whose vectors the network reads, 1 or higher.
        begun_from: for each layer of the composition, the layer of an encoder that its weights were
            copied from before training. `ComposedInference` uses only the number of layers.
        heads: attention heads of each layer.
        inner: width of the feed-forward parts.
    """

    layer: int
    begun_from: list[int]
    heads: int
    inner: int


class ComposedInference(nn.Module):
    """Turns a pair of texts into one vector: local inference, then composition.

    Local inference is that of ESIM (Chen et al., 2017): each position attends to the positions of
    the other side, and is compared with the mean that it attends to. Here attention is the cosine
    times a learned temperature. The result is added to the vector of the position, and so is a
    vector that tells whether the side is a source, a reference or a translation. Then both texts go
    through the layers as one sequence. The paper's own ESIM is `EnhancedInference`.

    Args:
        width: dimensions d of the vectors of the texts.
        composition: number and sizes of the layers.
        dropout: dropout rate of the outputs of attention and feed-forward part, in each layer.

    Attributes:
        pair_size: dimensions of the vector of a pair.
    """

    def __init__(self, width: int, composition: Composition, dropout: float) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(10.0))
        self.enhancement = nn.Linear(3 * width + 1, width)
        nn.init.normal_(self.enhancement.weight, std=0.01)
        nn.init.zeros_(self.enhancement.bias)
        self.sides = nn.Parameter(torch.zeros(len(SIDES), width))
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList()
        for _ in composition.begun_from:
            layer = nn.TransformerEncoderLayer(
                width,
                composition.heads,
                composition.inner,
                dropout,
                "gelu",
                layer_norm_eps=1e-12,
                batch_first=True,
            )
            # Dropout of attention and of the widest states costs a third of a step on a CPU.
            layer.self_attn.dropout = layer.dropout.p = 0.0
            self.layers.append(layer)
        self.pair_size = 6 * width

    def cosines(
        self, first: torch.Tensor, second: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Computes the cosines between the positions of two sides.

        Args:
            first: (B, n, d) vectors of one side.
            second: (B, m, d) vectors of the other side.
            mask: (B, m) bool, false at padding of the second side.

        Returns:
            (B, n, m) float32. At padding they are far below any cosine, but finite, which the
            gradient of the temperature needs.
        """
        first = nn.functional.normalize(first, dim=-1)
        second = nn.functional.normalize(second, dim=-1)
        cosines = (first @ second.transpose(1, 2)).float()
        return cosines.masked_fill(~mask[:, None, :], _COSINE_AT_PADDING)

    def attention(self, cosines: torch.Tensor) -> torch.Tensor:
        """Returns (B, n, m) shares that each position attends to each position of the other side,
        from their cosines."""
        return (cosines * self.temperature).softmax(-1)

    def forward(
        self,
        compared: torch.Tensor,
        translation: torch.Tensor,
        lengths: Lengths,
        roles: torch.Tensor,
    ) -> torch.Tensor:
        """Turns pairs of texts into vectors.

        Args:
            compared: (B, n, d) vectors of the compared side, special tokens included.
            translation: (B, m, d) vectors of the translations, special tokens included.
            lengths: (B,) lengths of the compared side, and (B,) of the translations.
            roles: roles of the compared side, as positions in `SIDES`: (B,), one per text; or (B, n),
                one per position, for a source followed by a reference.

        Returns:
            (B, `pair_size`), ``[avg_r; avg_t; avg_r - avg_t; avg_r * avg_t; first_t; max_t]``, with r
            for the compared side and t for the translation: means over the positions, the vector of
            the first position, and the maxima over the positions.
        """
        mask_r, mask_t = text_masks((compared, translation), lengths)
        roles_r = roles.reshape(len(roles), -1)
        roles_t = torch.full_like(roles_r[:, :1], _TRANSLATION)
        enhanced_r = self._enhance(compared, translation, mask_t, roles_r)
        enhanced_t = self._enhance(translation, compared, mask_r, roles_t)
        states = torch.cat([enhanced_r, enhanced_t], 1)
        is_padding = ~torch.cat([mask_r, mask_t], 1)
        for layer in self.layers:
            states = layer(states, src_key_padding_mask=is_padding)
        states_r, states_t = states.split([compared.shape[1], translation.shape[1]], 1)
        r, t = masked_mean(states_r, mask_r), masked_mean(states_t, mask_t)
        return torch.cat([r, t, r - t, r * t, states_t[:, 0], masked_max(states_t, mask_t)], 1)

    def _enhance(
        self,
        vectors: torch.Tensor,
        other_side: torch.Tensor,
        mask: torch.Tensor,
        roles: torch.Tensor,
    ) -> torch.Tensor:
        """Adds to the (B, n, d) vectors of a side how they compare with the other side, (B, m, d),
        and their roles, (B, 1) or (B, n); `mask` as in `cosines`."""
        cosines = self.cosines(vectors, other_side, mask)
        matched = self.attention(cosines).to(vectors.dtype) @ other_side
        nearest = cosines.amax(-1, keepdim=True)
        comparison = [matched, (vectors - matched).abs(), vectors * matched, nearest]
        enhancement = self.enhancement(torch.cat(comparison, -1))
        return self.norm(vectors + enhancement + self.sides[roles])


class ComposedMember(nn.Module):
    """One network with a composition by transformer layers: the vector of a pair, and two linear
    layers from it to a score.

    Args:
        width: see `ComposedInference`.
        composition: see `ComposedInference`.
        hidden: width of the layer between the vector and the score.
        dropout: dropout rate in `ComposedInference`, and before both linear layers.
    """

    def __init__(self, width: int, composition: Composition, hidden: int, dropout: float) -> None:
        super().__init__()
        self.pairs = ComposedInference(width, composition, dropout)
        self.output_dropout = nn.Dropout(dropout)
        self.inner = xavier_linear(self.pairs.pair_size, hidden)
        self.outer = xavier_linear(hidden, 1)

    def forward(
        self,
        compared: torch.Tensor,
        translation: torch.Tensor,
        lengths: Lengths,
        roles: torch.Tensor,
    ) -> torch.Tensor:
        """Returns (B,) scores. The arguments are those of `ComposedInference.forward`."""
        pairs = self.output_dropout(self.pairs(compared, translation, lengths, roles))
        return self.outer(self.output_dropout(self.inner(pairs).tanh())).squeeze(1)

    def attentions(
        self, compared: torch.Tensor, translation: torch.Tensor, lengths: Lengths
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns (B, n, m) attention weights of the compared side, and (B, m, n) of the
        translation. Rows at padding have no meaning; columns at padding are 0."""
        mask_r, mask_t = text_masks((compared, translation), lengths)
        pairs = self.pairs
        return (
            pairs.attention(pairs.cosines(compared, translation, mask_t)),
            pairs.attention(pairs.cosines(translation, compared, mask_r)),
        )
