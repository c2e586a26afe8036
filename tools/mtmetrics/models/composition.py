"""ESIM with a composition by transformer layers, which begin as the upper layers of the encoder."""

import dataclasses

import torch
from torch import nn

from mtmetrics.models.networks import Lengths, averages, linear, mask, maxima

_PADDING = -1e4
# What a text is to a pair; the first two are what a translation can be compared with.
SIDES = ("source", "reference", "translation")
_TRANSLATION = SIDES.index("translation")
# What a network can be trained to compare with -> the sides that it knows then.
KNOWN_SIDES = {
    "source": ("source",),
    "reference": ("reference",),
    "both": ("both",),
    "either": ("source", "reference"),
    "any": ("source", "reference", "both"),
}


@dataclasses.dataclass(frozen=True)
class Composition:
    """Sizes of a composition by transformer layers; those of the encoder whose layers it begins
    with.

    Attributes:
        layer: the encoder's layer that the network reads, 1 or higher.
        begun_from: the encoder's layer from which each of its layers begins.
        heads: attention heads of each layer.
        inner: width of the feed-forward parts.
    """

    layer: int
    begun_from: list[int]
    heads: int
    inner: int


class ComposedInference(nn.Module):
    """ESIM whose second BiLSTM, the composition, is a transformer that begins as the upper layers
    of the encoder.

    Local inference is that of ESIM (Chen et al., 2017): each vector attends to those of the other
    side, here by their cosine times a learned temperature, and what it finds is compared with it.
    The result is added to the vectors, as is a vector that says which side they are of (source,
    reference or translation), and both texts go through the layers as one sequence. The paper's
    ESIM is `EnhancedInference`."""

    def __init__(self, width: int, composition: Composition, dropout: float) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(10.0))
        self.enhancement = nn.Linear(3 * width + 1, width)
        nn.init.normal_(self.enhancement.weight, std=0.01)
        nn.init.zeros_(self.enhancement.bias)
        self.sides = nn.Parameter(torch.zeros(len(SIDES), width))
        self.norm = nn.LayerNorm(width)
        layers = [
            nn.TransformerEncoderLayer(
                width,
                composition.heads,
                composition.inner,
                dropout,
                "gelu",
                layer_norm_eps=1e-12,
                batch_first=True,
            )
            for _ in composition.begun_from
        ]
        for layer in (
            layers
        ):  # dropout of attention and of the widest states costs a third of a step on a CPU
            layer.self_attn.dropout = layer.dropout.p = 0.0
        self.layers = nn.ModuleList(layers)
        self.pooled = 6 * width

    def near(self, first: torch.Tensor, second: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """(B, n, m) cosines of the vectors of the sides, (B, n, d) and (B, m, d); far below any at
        padding of the second, but finite, which the gradient of the temperature needs."""
        units = nn.functional.normalize(first, dim=-1), nn.functional.normalize(second, dim=-1)
        return (
            (units[0] @ units[1].transpose(1, 2)).float().masked_fill(~real[:, None, :], _PADDING)
        )

    def attention(self, near: torch.Tensor) -> torch.Tensor:
        """(B, n, m) how much each position attends to each of the other side, from their
        cosines."""
        return (near * self.temperature).softmax(-1)

    def forward(
        self, other: torch.Tensor, prediction: torch.Tensor, lengths: Lengths, against: torch.Tensor
    ) -> torch.Tensor:
        """(B, `pooled`) representation of the pairs: ``[avg_o; avg_t; avg_o - avg_t; avg_o * avg_t;
        first_t; max_t]``.

        Args:
            other: (B, n, d) vectors of the references or sources, special tokens included.
            prediction: (B, m, d) vectors of the translations, likewise.
            lengths: (B,) lengths of each side.
            against: place in `SIDES` of what each translation is compared with, (B,), or (B, n) of
                each position, where that is a source and its reference, one after the other.
        """
        masks = [
            mask(sizes, side.shape[1])
            for side, sizes in zip((other, prediction), lengths, strict=True)
        ]
        enhanced = []
        against = against.reshape(len(against), -1)
        translation = torch.full_like(against[:, :1], _TRANSLATION)
        both = ((other, prediction, masks[1], against), (prediction, other, masks[0], translation))
        for own, found, real, name in both:
            near = self.near(own, found, real)
            attended = self.attention(near).to(own.dtype) @ found
            joined = torch.cat(
                [attended, (own - attended).abs(), own * attended, near.amax(-1, keepdim=True)], -1
            )
            enhanced.append(self.norm(own + self.enhancement(joined) + self.sides[name]))
        states, real = torch.cat(enhanced, 1), torch.cat(masks, 1)
        for layer in self.layers:
            states = layer(states, src_key_padding_mask=~real)
        first, second = states.split([other.shape[1], prediction.shape[1]], 1)
        o, t = averages(first, masks[0]), averages(second, masks[1])
        return torch.cat([o, t, o - t, o * t, second[:, 0], maxima(second, masks[1])], 1)


class ComposedMember(nn.Module):
    """One network with a composition by transformer layers: the encoding of the pair, and the
    regressor over it."""

    def __init__(self, width: int, composition: Composition, hidden: int, dropout: float) -> None:
        super().__init__()
        self.pairs = ComposedInference(width, composition, dropout)
        self.output_dropout = nn.Dropout(dropout)
        self.inner = linear(self.pairs.pooled, hidden)
        self.outer = linear(hidden, 1)

    def forward(
        self, other: torch.Tensor, prediction: torch.Tensor, lengths: Lengths, against: torch.Tensor
    ) -> torch.Tensor:
        """(B,) scores; arguments as `ComposedInference.forward`."""
        pooled = self.output_dropout(self.pairs(other, prediction, lengths, against))
        return self.outer(self.output_dropout(self.inner(pooled).tanh())).squeeze(1)
