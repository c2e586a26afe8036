"""A trained regressor: one or several networks, the purpose that they were trained for, and files.

A folder holds ``config.json``, a `RegressorShape`, and ``model.safetensors``. `Regressor.read` makes
the networks of it.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from mtmetrics.artifacts.pickles import save_tensors
from mtmetrics.io.atomic import make_folder, write_atomic
from mtmetrics.models.composition import ComposedMember, Composition
from mtmetrics.models.networks import (
    Lengths,
    Member,
    attention,
    feature_count,
    real_positions,
    states_of_both,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegressorShape:
    """The parts of a regressor and the purpose that it was trained for, as in its config.json.

    Attributes:
        architecture: ``"bilstm"``, ``"bilstm_attention"`` or ``"esim"``.
        against: what translations are compared with, ``"reference"`` or ``"source"``, ``"both"``
            together, ``"either"``, or ``"any"``, which is either or both together.
        encoder: name of the encoder whose vectors it reads.
        encoder_fingerprint: of that encoder.
        depth: number of its layers.
        width: of its vectors.
        hidden: width of the LSTM states, per direction.
        members: number of networks.
        dropout: while training.
        max_pieces: texts are cut at that many word pieces.
        features: some of `mtmetrics.models.networks.FEATURES` that are read beside the vectors.
        feature_layers: layers of the encoder that features are computed from, 1 to `depth`; the
            last by default.
        floor: score of a segment with a blank side.
        composition: sizes of an ESIM that is composed by transformer layers.
    """

    architecture: str
    against: str
    encoder: str
    encoder_fingerprint: str
    depth: int
    width: int
    hidden: int = 300
    members: int = 1
    dropout: float = 0.5
    max_pieces: int = 100
    features: list[str] | None = None
    feature_layers: list[int] | None = None
    floor: float = 0.0
    composition: Composition | None = None


class Regressor(nn.Module):
    """One or several networks of one kind, whose scores are averaged.

    It reads the vectors of an encoder, special tokens included, and features, numbers about a pair
    of texts. The attributes are those of `RegressorShape`.
    """

    def __init__(self, shape: RegressorShape) -> None:
        super().__init__()
        self.shape = shape
        self.architecture, self.against = shape.architecture, shape.against
        self.encoder, self.encoder_fingerprint = shape.encoder, shape.encoder_fingerprint
        self.depth, self.width, self.floor = shape.depth, shape.width, shape.floor
        self.features = list(shape.features or [])
        self.feature_layers = list(shape.feature_layers or [shape.depth]) if self.features else []
        self.composition = shape.composition
        count = feature_count(self.features, len(self.feature_layers))
        members = [_member(shape, count) for _ in range(shape.members)]
        # Any: the type of a ModuleList does not say which modules it holds.
        self.members: Any = nn.ModuleList(members)
        self.feature_mean = nn.Buffer(torch.zeros(count))
        self.feature_scale = nn.Buffer(torch.ones(count))

    def mixes(self) -> np.ndarray:
        """Returns (C, depth) weights of the encoder's layers: a row for each network, then a row for
        each layer that features are computed from."""
        rows = [
            member.mix.weights().detach().cpu().numpy().astype(np.float64)
            for member in self.members
        ]
        layers = np.eye(self.depth)
        return np.stack([*rows, *(layers[layer - 1] for layer in self.feature_layers)])

    def reads(self) -> dict[str, Any]:
        """Returns the keywords of the `TokenEncoder` that encodes texts for it, at the layer or with
        the mixes of the training, and cut where they were cut there."""
        options: dict[str, Any] = {"max_pieces": self.shape.max_pieces}
        if self.composition:
            return options | {"layer": self.composition.layer}
        return options | {"mix": self.mixes()}

    def forward(
        self,
        compared: torch.Tensor,
        prediction: torch.Tensor,
        lengths: Lengths,
        features: torch.Tensor | None = None,
        against: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Scores pairs of texts, (B,): the mean over the networks.

        Args:
            compared: (B, n, members * width) vectors of the side that translations are compared
                with; each network has columns of its own, for its own mix of layers.
            prediction: (B, m, members * width) vectors of the translations.
            lengths: (B,) lengths of each side.
            features: (B, f) as they were computed; None for networks that read none.
            against: of networks with a `composition`, see `ComposedInference.forward`.
        """
        standardised = None
        if features is not None:
            standardised = (features - self.feature_mean) / self.feature_scale
        extra = against if self.composition else standardised
        scores = []
        for place, member in enumerate(self.members):
            columns = self._columns(place)
            member_sides = compared[:, :, columns], prediction[:, :, columns]
            scores.append(member(*member_sides, lengths, extra))
        return torch.stack(scores).mean(0)

    def attentions(
        self, compared: torch.Tensor, prediction: torch.Tensor, lengths: Lengths
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Computes how much each position attends to each position of the other side, the mean over
        the networks.

        Takes the arguments of `forward`; needs networks that compute attention.

        Returns:
            (B, n, m) of the compared side, and (B, m, n) of the translation.
        """
        from_compared, from_prediction = [], []
        for place, member in enumerate(self.members):
            columns = self._columns(place)
            sides = compared[:, :, columns], prediction[:, :, columns]
            real_r, real_t = real_positions(sides, lengths)
            if isinstance(member, ComposedMember):
                first, second = sides
                pairs = member.pairs
                from_compared.append(pairs.attention(pairs.cosines(first, second, real_t)))
                from_prediction.append(pairs.attention(pairs.cosines(second, first, real_r)))
            else:
                first, second = states_of_both(member.pairs.encoder, sides, lengths)
                from_compared.append(attention(first, second, real_t))
                from_prediction.append(attention(second, first, real_r))
        return torch.stack(from_compared).mean(0), torch.stack(from_prediction).mean(0)

    def _columns(self, place: int) -> slice:
        """Returns the columns of the vectors that one of the networks reads."""
        return slice(place * self.width, (place + 1) * self.width)

    @classmethod
    def read(cls, folder: Path) -> "Regressor":
        """Reads the files of `save`, into float32."""
        # Unpacked, since that raises a TypeError where the file holds no object.
        config = {**json.loads((folder / "config.json").read_text(encoding="utf-8"))}
        config.pop("pooling", None)
        if config.get("composition") is not None:
            config["composition"] = Composition(**config["composition"])
        regressor = cls(RegressorShape(**config))
        regressor.load_state_dict(load_file(folder / "model.safetensors"))
        return regressor.eval()

    def save(self, folder: Path) -> None:
        """Writes config.json, and the weights in float16."""
        make_folder(folder)
        # There was a choice of poolings once; without the key, a network trained again would have
        # another fingerprint.
        config = dataclasses.asdict(self.shape) | {"pooling": "both"}
        write_atomic(folder / "config.json", json.dumps(config, indent=2, sort_keys=True))
        weights = {
            name: values.detach().to("cpu", torch.float16)
            for name, values in self.state_dict().items()
        }
        save_tensors(weights, folder / "model.safetensors")


def _member(shape: RegressorShape, features: int) -> Member | ComposedMember:
    if shape.composition:
        return ComposedMember(shape.width, shape.composition, shape.hidden, shape.dropout)
    return Member(
        shape.architecture, shape.depth, shape.width, shape.hidden, shape.dropout, features
    )
