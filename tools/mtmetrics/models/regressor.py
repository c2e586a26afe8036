"""A trained regressor: one or several networks, what they were trained for, and their files."""

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
    mask,
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
    """One or several networks of one kind, whose scores are averaged, and what they were trained
    for."""

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
        self.members: Any = nn.ModuleList(
            ComposedMember(shape.width, shape.composition, shape.hidden, shape.dropout)
            if shape.composition
            else Member(
                shape.architecture, shape.depth, shape.width, shape.hidden, shape.dropout, count
            )
            for _ in range(shape.members)
        )
        self.feature_mean = nn.Buffer(torch.zeros(count))
        self.feature_scale = nn.Buffer(torch.ones(count))

    def mixes(self) -> np.ndarray:
        """(C, depth) weights of the encoder's layers: a row per network, and one for each layer
        that features are computed from."""
        with torch.no_grad():
            rows = [
                member.mix.weights().cpu().numpy().astype(np.float64) for member in self.members
            ]
        return np.stack([*rows, *(np.eye(self.depth)[layer - 1] for layer in self.feature_layers)])

    def reads(self) -> dict[str, Any]:
        """How a `TokenEncoder` is opened for it: cut where it was in training, at the layer or with
        the mixes."""
        vectors = {"layer": self.composition.layer} if self.composition else {"mix": self.mixes()}
        return {"max_pieces": self.shape.max_pieces, **vectors}

    def forward(
        self,
        other: torch.Tensor,
        prediction: torch.Tensor,
        lengths: Lengths,
        features: torch.Tensor | None = None,
        against: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """(B,) mean scores over the networks, of sides with members * width numbers per piece,
        mixed for each network, and (B, f) features as they were computed; else as
        `PooledBiLSTM.forward`. Networks with a `composition` read `against` instead of features,
        see `ComposedInference.forward`."""
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
        """(B, n, m) and (B, m, n) attention between the sides, as `attention`, the mean over the
        networks; of networks that have one, else as `forward`."""
        directions = []
        for number, member in enumerate(self.members):
            own = slice(number * self.width, (number + 1) * self.width)
            sides = [other[:, :, own], prediction[:, :, own]]
            masks = [mask(sizes, side.shape[1]) for side, sizes in zip(sides, lengths, strict=True)]
            if self.composition:
                pairs = ((sides, masks[1]), (sides[::-1], masks[0]))
                directions.append(
                    tuple(
                        member.pairs.attention(member.pairs.near(*both, real))
                        for both, real in pairs
                    )
                )
                continue
            first, second = states_of_both(member.pairs.encoder, sides, lengths)
            directions.append(
                (attention(first, second, masks[1]), attention(second, first, masks[0]))
            )
        forth, back = zip(*directions, strict=True)
        return torch.stack(forth).mean(0), torch.stack(back).mean(0)

    @classmethod
    def read(cls, folder: Path) -> "Regressor":
        """Reads what `save` wrote, into float32."""
        about = {**json.loads((folder / "config.json").read_text(encoding="utf-8"))}
        about.pop("pooling", None)
        if about.get("composition") is not None:
            about["composition"] = Composition(**about["composition"])
        network = cls(RegressorShape(**about))
        network.load_state_dict(load_file(folder / "model.safetensors"))
        return network.eval()

    def save(self, folder: Path) -> None:
        """Writes config.json, and the weights in float16."""
        make_folder(folder)
        # There was a choice of poolings once; without the key, a network trained again would have
        # another fingerprint.
        about = dataclasses.asdict(self.shape) | {"pooling": "both"}
        write_atomic(folder / "config.json", json.dumps(about, indent=2, sort_keys=True))
        half = {
            name: values.detach().to("cpu", torch.float16)
            for name, values in self.state_dict().items()
        }
        save_tensors(half, folder / "model.safetensors")
