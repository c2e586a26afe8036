"""The three networks of Mathur et al. (2019), and a trained regressor, which is one or several of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from huggingface_hub import PyTorchModelHubMixin
from safetensors.torch import load_file, save_file
from torch import nn

Lengths = tuple[torch.Tensor, torch.Tensor]
_PADDING = -1e4
# Numbers about a pair of texts that a network can read beside their vectors; the paper's networks read none.
FEATURES = ("precision", "recall", "f1", "cosine", "length")
_WITHOUT_LAYERS = ("length",)
# What a text is to a pair; the first two are what a translation can be compared with.
SIDES = ("source", "reference", "translation")


def feature_count(names: Sequence[str], layers: int) -> int:
    """Number of columns of `pair_features` where `layers` layers are read."""
    once = sum(name in _WITHOUT_LAYERS for name in names)
    return (len(names) - once) * layers + once


class ScalarMix(nn.Module):
    """Weights of an encoder's layers: ``gamma * softmax(scores)``, all equal at first (Peters et al., 2018)."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(1))

    def weights(self) -> torch.Tensor:
        """(layers,) weight of each layer."""
        return self.gamma * self.scores.softmax(0)


class SequenceDropout(nn.Module):
    """Dropout that drops the same entries at all positions of a sequence (Gal and Ghahramani, 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        if not self.training or not self.rate:
            return sequences
        kept = torch.full((len(sequences), 1, sequences.shape[2]), 1 - self.rate, device=sequences.device)
        return sequences * torch.bernoulli(kept) / (1 - self.rate)


class TwoWayLSTM(nn.Module):
    """A bidirectional LSTM that never sees padding before the end of a text.

    The second direction reads each text turned round within its own length, so that padding comes last for both. Packed
    sequences would do the same, but their backward pass on a CPU fills an array as large as the whole batch for every
    position.
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
        """(B, T, 2 hidden) states of (B, T, d) sequences; what stands behind their ends means nothing."""
        positions = torch.arange(sequences.shape[1], device=sequences.device)
        turned = lengths[:, None] - 1 - positions
        turned = torch.where(turned < 0, positions, turned)
        rows = torch.arange(len(sequences), device=sequences.device)[:, None]
        states = self.backwards(sequences[rows, turned])[0][rows, turned]
        return torch.cat([self.forwards(sequences)[0], states], -1)


def states_of_both(
    lstm: TwoWayLSTM, sides: Sequence[torch.Tensor], lengths: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """(B, n, 2 hidden) and (B, m, 2 hidden) states over both sides of the pairs, (B, n, d) and (B, m, d), in one go:
    the steps of an LSTM take turns, so that two runs would take twice as long."""
    widths = [side.shape[1] for side in sides]
    padded = [nn.functional.pad(side, (0, 0, 0, max(widths) - side.shape[1])) for side in sides]
    states = lstm(torch.cat(padded), torch.cat(list(lengths))).split([len(side) for side in sides])
    return [side[:, :width] for side, width in zip(states, widths, strict=True)]


def mask(lengths: torch.Tensor, width: int) -> torch.Tensor:
    """(B, width) bool, true before the end of each sequence."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


def attention(queries: torch.Tensor, states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """(B, n, m) how much each position attends to each of the other side: the softmax of the products of queries and
    states, at `real` positions."""
    return (queries @ states.transpose(1, 2)).masked_fill(~real[:, None, :], -torch.inf).softmax(-1)


def attended(queries: torch.Tensor, states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """(B, n, d) what each position attends to on the other side (Mathur et al., 2019, Eq. 7 to 9): the mean of its
    (B, m, d) states, weighted by `attention`."""
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
    ``[avg_r; avg_t; avg_r - avg_t; avg_r * avg_t; max_r; max_t; max_r - max_t; max_r * max_t]``. With `attention` what
    each side attends to on the other is compared, instead of the states themselves.
    """

    def __init__(self, width: int, hidden: int, *, attention: bool, pooling: str = "both") -> None:
        super().__init__()
        self.encoder = TwoWayLSTM(width, hidden)
        self.attention = attention
        self.poolings = {"both": (averages, maxima), "avg": (averages,), "max": (maxima,)}[pooling]
        self.pooled = 8 * hidden * len(self.poolings)

    def forward(self, other: torch.Tensor, prediction: torch.Tensor, lengths: Lengths) -> torch.Tensor:
        """(B, `pooled`) representation of the pairs.

        Args:
            other: (B, n, d) vectors of the references or sources.
            prediction: (B, m, d) vectors of the translations.
            lengths: (B,) lengths of each side, at least 1.
        """
        first, second = states_of_both(self.encoder, (other, prediction), lengths)
        masks = [mask(sizes, side.shape[1]) for side, sizes in zip((other, prediction), lengths, strict=True)]
        if self.attention:
            first, second = attended(first, second, masks[1]), attended(second, first, masks[0])
        parts = []
        for pool in self.poolings:
            r, t = pool(first, masks[0]), pool(second, masks[1])
            parts += [r, t, r - t, r * t]
        return torch.cat(parts, 1)


class EnhancedInference(nn.Module):
    """The Enhanced Sequential Inference Model (Chen et al., 2017), reference as premise, translation as hypothesis (Eq.
    7 to 13)."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.encoder = TwoWayLSTM(width, hidden)
        self.projection = linear(8 * hidden, hidden)
        self.composer = TwoWayLSTM(hidden, hidden)
        self.dropout = SequenceDropout(dropout)
        self.pooled = 8 * hidden

    def forward(self, other: torch.Tensor, prediction: torch.Tensor, lengths: Lengths) -> torch.Tensor:
        """(B, `pooled`) representation of the pairs; arguments as `PooledBiLSTM.forward`."""
        first, second = states_of_both(self.encoder, (other, prediction), lengths)
        masks = [mask(sizes, side.shape[1]) for side, sizes in zip((other, prediction), lengths, strict=True)]
        matched = attended(first, second, masks[1]), attended(second, first, masks[0])
        enhanced = []
        for states, other_states in zip((first, second), matched, strict=True):
            joined = torch.cat([states, other_states, states - other_states, states * other_states], -1)
            enhanced.append(self.dropout(self.projection(joined).relu()))
        parts = []
        for composed, real in zip(states_of_both(self.composer, enhanced, lengths), masks, strict=True):
            parts += [averages(composed, real), maxima(composed, real)]
        return torch.cat(parts, 1)


class Member(nn.Module):
    """One network: layer mix, dropout, the encoding of the pair, and the feed-forward regressor over it (Eq. 6 and 13);
    arguments as `Regressor`, but `features` is their number."""

    def __init__(
        self,
        architecture: str,
        depth: int,
        width: int,
        hidden: int,
        dropout: float,
        pooling: str = "both",
        features: int = 0,
    ) -> None:
        super().__init__()
        self.mix = ScalarMix(depth)
        self.dropout = SequenceDropout(dropout)
        if architecture == "esim":
            self.pairs: EnhancedInference | PooledBiLSTM = EnhancedInference(width, hidden, dropout)
        else:
            self.pairs = PooledBiLSTM(width, hidden, attention=architecture == "bilstm_attention", pooling=pooling)
        self.output_dropout = nn.Dropout(dropout)
        self.inner = linear(self.pairs.pooled + features, hidden)
        self.outer = linear(hidden, 1)
        # Features have a way of their own to the score, so that it need not be learnt through the dropout.
        self.direct = nn.Linear(features, 1, bias=False) if features else None

    def forward(
        self, other: torch.Tensor, prediction: torch.Tensor, lengths: Lengths, features: torch.Tensor | None = None
    ) -> torch.Tensor:
        """(B,) scores of pairs whose layers are mixed and whose (B, f) features are standardised already; else as
        `PooledBiLSTM.forward`."""
        pooled = self.output_dropout(self.pairs(self.dropout(other), self.dropout(prediction), lengths))
        if self.direct is None or features is None:
            return self.outer(self.output_dropout(self.inner(pooled).relu())).squeeze(1)
        inner = self.inner(torch.cat([pooled, features], 1)).relu()
        return (self.outer(self.output_dropout(inner)) + self.direct(features)).squeeze(1)


class Composition(NamedTuple):
    """Sizes of a composition by transformer layers; those of the encoder whose layers it begins with.

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
    """ESIM whose second BiLSTM, the composition, is a transformer that begins as the upper layers of the encoder.

    Local inference is that of ESIM (Chen et al., 2017): each vector attends to those of the other side, here by their
    cosine times a learned temperature, and what it finds is compared with it. The result is added to the vectors, as is
    a vector that says which side they are of (source, reference or translation), and both texts go through the layers
    as one sequence. The paper's ESIM is `EnhancedInference`.
    """

    def __init__(self, width: int, composition: Composition, dropout: float) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(10.0))
        self.enhancement = nn.Linear(3 * width + 1, width)
        nn.init.normal_(self.enhancement.weight, std=0.01)
        nn.init.zeros_(self.enhancement.bias)
        self.sides = nn.Parameter(torch.zeros(len(SIDES), width))
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, composition.heads, composition.inner, dropout, "gelu", layer_norm_eps=1e-12, batch_first=True
            )
            for _ in composition.begun_from
        )
        for layer in self.layers:  # dropout of attention and of the widest states costs a third of a step on a CPU
            layer.self_attn.dropout = layer.dropout.p = 0.0
        self.pooled = 6 * width

    def near(self, first: torch.Tensor, second: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """(B, n, m) cosines of the vectors of the sides, (B, n, d) and (B, m, d); far below any at padding of the
        second, but finite, which the gradient of the temperature needs."""
        units = nn.functional.normalize(first, dim=-1), nn.functional.normalize(second, dim=-1)
        return (units[0] @ units[1].transpose(1, 2)).float().masked_fill(~real[:, None, :], _PADDING)

    def attention(self, near: torch.Tensor) -> torch.Tensor:
        """(B, n, m) how much each position attends to each of the other side, from their cosines."""
        return (near * self.temperature).softmax(-1)

    def forward(
        self, other: torch.Tensor, prediction: torch.Tensor, lengths: Lengths, against: torch.Tensor
    ) -> torch.Tensor:
        """(B, `pooled`) representation of the pairs: ``[avg_o; avg_t; avg_o - avg_t; avg_o * avg_t; first_t; max_t]``.

        Args:
            other: (B, n, d) vectors of the references or sources, special tokens included.
            prediction: (B, m, d) vectors of the translations, likewise.
            lengths: (B,) lengths of each side.
            against: (B,) place in `SIDES` of what each translation is compared with.
        """
        masks = [mask(sizes, side.shape[1]) for side, sizes in zip((other, prediction), lengths, strict=True)]
        enhanced = []
        names = against, torch.full_like(against, SIDES.index("translation"))
        both = ((other, prediction, masks[1], names[0]), (prediction, other, masks[0], names[1]))
        for own, found, real, name in both:
            near = self.near(own, found, real)
            attended = self.attention(near).to(own.dtype) @ found
            joined = torch.cat([attended, (own - attended).abs(), own * attended, near.amax(-1, keepdim=True)], -1)
            enhanced.append(self.norm(own + self.enhancement(joined) + self.sides[name][:, None]))
        states, real = torch.cat(enhanced, 1), torch.cat(masks, 1)
        for layer in self.layers:
            states = layer(states, src_key_padding_mask=~real)
        first, second = states.split([other.shape[1], prediction.shape[1]], 1)
        o, t = averages(first, masks[0]), averages(second, masks[1])
        return torch.cat([o, t, o - t, o * t, second[:, 0], maxima(second, masks[1])], 1)


class ComposedMember(nn.Module):
    """One network with a composition by transformer layers: the encoding of the pair, and the regressor over it."""

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


class Regressor(nn.Module, PyTorchModelHubMixin, library_name="mtmetrics", tags=["machine-translation-evaluation"]):
    """One or several networks of one kind, whose scores are averaged, and what they were trained for.

    Args:
        architecture: ``"bilstm"``, ``"bilstm_attention"`` or ``"esim"``.
        against: what translations are compared with, ``"reference"`` or ``"source"``, or ``"either"``.
        encoder: name of the encoder whose vectors it reads.
        encoder_fingerprint: of that encoder.
        depth: number of its layers.
        width: of its vectors.
        hidden: width of the LSTM states, per direction.
        members: number of networks.
        dropout: while training.
        max_pieces: texts are cut at that many word pieces.
        features: some of `mtmetrics.models.networks.FEATURES` that are read beside the vectors.
        feature_layers: layers of the encoder that features are computed from, 1 to `depth`; the last by default.
        pooling: of the two BiLSTM models, ``"both"``, ``"avg"`` or ``"max"``.
        floor: score of a segment with a blank side.
        composition: the fields of a `Composition`, of an ESIM that is composed by transformer layers.
    """

    def __init__(
        self,
        architecture: str,
        against: str,
        encoder: str,
        encoder_fingerprint: str,
        depth: int,
        width: int,
        hidden: int = 300,
        members: int = 1,
        dropout: float = 0.5,
        max_pieces: int = 100,
        features: list[str] | None = None,
        feature_layers: list[int] | None = None,
        pooling: str = "both",
        floor: float = 0.0,
        composition: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.architecture, self.against = architecture, against
        self.encoder, self.encoder_fingerprint = encoder, encoder_fingerprint
        self.depth, self.width, self.max_pieces, self.floor = depth, width, max_pieces, floor
        self.features = list(features or [])
        self.feature_layers = list(feature_layers or [depth]) if self.features else []
        count = feature_count(self.features, len(self.feature_layers))
        self.composition = None if composition is None else Composition(**composition)
        self.members = nn.ModuleList(
            ComposedMember(width, self.composition, hidden, dropout)
            if self.composition
            else Member(architecture, depth, width, hidden, dropout, pooling, count)
            for _ in range(members)
        )
        self.feature_mean = nn.Buffer(torch.zeros(count))
        self.feature_scale = nn.Buffer(torch.ones(count))

    def mixes(self) -> np.ndarray:
        """(C, depth) weights of the encoder's layers: a row per network, and one for each layer that features are
        computed from."""
        with torch.no_grad():
            rows = [member.mix.weights().cpu().numpy().astype(np.float64) for member in self.members]
        return np.stack([*rows, *(np.eye(self.depth)[layer - 1] for layer in self.feature_layers)])

    def reads(self) -> dict[str, Any]:
        """How a `TokenEncoder` is opened for it: cut where it was in training, at the layer or with the mixes."""
        vectors = {"layer": self.composition.layer} if self.composition else {"mix": self.mixes()}
        return {"max_pieces": self.max_pieces, **vectors}

    def forward(
        self,
        other: torch.Tensor,
        prediction: torch.Tensor,
        lengths: Lengths,
        features: torch.Tensor | None = None,
        against: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """(B,) mean scores over the networks, of sides with members * width numbers per piece, mixed for each network,
        and (B, f) features as they were computed; else as `PooledBiLSTM.forward`. Networks with a `composition` read
        `against` instead of features, see `ComposedInference.forward`."""
        standard = None if features is None else (features - self.feature_mean) / self.feature_scale
        scores = []
        for number, member in enumerate(self.members):
            own = slice(number * self.width, (number + 1) * self.width)
            given = against if self.composition else standard
            scores.append(member(other[:, :, own], prediction[:, :, own], lengths, given))
        return torch.stack(scores).mean(0)

    def attentions(
        self, other: torch.Tensor, prediction: torch.Tensor, lengths: Lengths
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, n, m) and (B, m, n) attention between the sides, as `attention`, the mean over the networks; of networks
        that have one, else as `forward`."""
        found = []
        for number, member in enumerate(self.members):
            own = slice(number * self.width, (number + 1) * self.width)
            sides = [other[:, :, own], prediction[:, :, own]]
            masks = [mask(sizes, side.shape[1]) for side, sizes in zip(sides, lengths, strict=True)]
            if self.composition:
                pairs = ((sides, masks[1]), (sides[::-1], masks[0]))
                found.append(tuple(member.pairs.attention(member.pairs.near(*both, real)) for both, real in pairs))
                continue
            sides = states_of_both(member.pairs.encoder, sides, lengths)
            found.append((attention(*sides, masks[1]), attention(*sides[::-1], masks[0])))
        forth, back = zip(*found, strict=True)
        return torch.stack(forth).mean(0), torch.stack(back).mean(0)

    @classmethod
    def read(cls, folder: Path) -> "Regressor":
        """Reads what `save_pretrained` wrote, into float32; `from_pretrained` would say so on standard output, which is
        for results."""
        network = cls(**json.loads((folder / "config.json").read_text(encoding="utf-8")))
        network.load_state_dict(load_file(folder / "model.safetensors"))
        return network.eval()

    def _save_pretrained(self, save_directory: Path) -> None:
        """Stores the weights in float16: `PyTorchModelHubMixin` would store what they are computed in."""
        half = {
            name: values.detach().to("cpu", torch.float16).contiguous() for name, values in self.state_dict().items()
        }
        path = save_directory / "model.safetensors"
        save_file(half, path, metadata={"format": "pt"})
        path.chmod(0o644)  # whoever can read the folder, whatever the library thinks
