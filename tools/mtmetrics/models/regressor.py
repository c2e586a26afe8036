"""A trained regressor: one or several networks, what they were trained for, and their files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub import PyTorchModelHubMixin
from safetensors.torch import load_file, save_file
from torch import nn

from mtmetrics.models.composition import ComposedMember, Composition
from mtmetrics.models.networks import Lengths, Member, attention, feature_count, mask, states_of_both


class Regressor(nn.Module, PyTorchModelHubMixin, library_name="mtmetrics", tags=["machine-translation-evaluation"]):
    """One or several networks of one kind, whose scores are averaged, and what they were trained for.

    Args:
        architecture: ``"bilstm"``, ``"bilstm_attention"`` or ``"esim"``.
        against: what translations are compared with, ``"reference"`` or ``"source"``, ``"either"``, or ``"any"``, which
            is either or both together.
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
        self.members: Any = nn.ModuleList(
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
            first, second = states_of_both(member.pairs.encoder, sides, lengths)
            found.append((attention(first, second, masks[1]), attention(second, first, masks[0])))
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
