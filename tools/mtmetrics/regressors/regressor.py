"""A trained regressor: one or several networks of one kind, and what they were trained for; saved and loaded as the Hub
expects it."""

import json
from pathlib import Path

import numpy as np
import torch
from huggingface_hub import PyTorchModelHubMixin
from safetensors.torch import load_file, save_file
from torch import nn

from mtmetrics.regressors import layers
from mtmetrics.regressors.features import feature_count
from mtmetrics.regressors.networks import ESIM, PooledBiLSTM


class Member(nn.Module):
    """One network: layer mix, dropout, the encoding of the pair, and the feed-forward regressor over it (Eq. 6 and 13).

    Args:
        architecture: one of ``bilstm``, ``bilstm_attention``, ``esim``.
        depth: number of layers of the encoder.
        width: of the encoder's vectors.
        hidden: of the LSTM states, per direction, and of the regressor.
        dropout: of LSTM inputs, and of the regressor.
        pooling: see `PooledBiLSTM`.
        features: number of features beside the pooled vectors.
    """

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
        self.mix = layers.ScalarMix(depth)
        self.dropout = layers.SequenceDropout(dropout)
        if architecture == "esim":
            self.pairs: ESIM | PooledBiLSTM = ESIM(width, hidden, dropout)
        else:
            self.pairs = PooledBiLSTM(width, hidden, attention=architecture == "bilstm_attention", pooling=pooling)
        self.output_dropout = nn.Dropout(dropout)
        self.inner = layers.linear(self.pairs.pooled + features, hidden)
        self.outer = layers.linear(hidden, 1)
        # Features have a way of their own to the score, so that it need not be learnt through the dropout.
        self.direct = nn.Linear(features, 1, bias=False) if features else None

    def forward(
        self,
        other: torch.Tensor,
        prediction: torch.Tensor,
        lengths: tuple[torch.Tensor, torch.Tensor],
        features: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """(B,) scores of pairs whose layers are mixed already.

        Args:
            other: (B, n, d) vectors of the references or sources.
            prediction: (B, m, d) vectors of the translations.
            lengths: (B,) lengths of each side, at least 1.
            features: (B, f) standardised features.
        """
        pooled = self.output_dropout(self.pairs(self.dropout(other), self.dropout(prediction), lengths))
        if self.direct is None or features is None:
            return self.outer(self.output_dropout(self.inner(pooled).relu())).squeeze(1)
        inner = self.inner(torch.cat([pooled, features], 1)).relu()
        return (self.outer(self.output_dropout(inner)) + self.direct(features)).squeeze(1)


class Regressor(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="mtmetrics",
    tags=["machine-translation-evaluation"],
):
    """One or several networks of one kind, whose scores are averaged, and what they were trained for.

    Args:
        architecture: ``"bilstm"``, ``"bilstm_attention"`` or ``"esim"``.
        against: what translations are compared with, ``"reference"`` or ``"source"``.
        encoder: name of the encoder whose vectors it reads.
        encoder_fingerprint: of that encoder.
        depth: number of its layers.
        width: of its vectors.
        hidden: width of the LSTM states, per direction.
        members: number of networks.
        dropout: while training.
        max_pieces: texts are cut at that many word pieces.
        features: names of `mtmetrics.regressors.features` that are read beside the vectors.
        feature_layers: layers of the encoder that features are computed from, 1 to `depth`; the last by default.
        pooling: of the two BiLSTM models, ``"both"``, ``"avg"`` or ``"max"``.
        floor: score of a segment with a blank side.
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
    ) -> None:
        super().__init__()
        self.architecture, self.against = architecture, against
        self.encoder, self.encoder_fingerprint = encoder, encoder_fingerprint
        self.depth, self.width, self.max_pieces, self.floor = depth, width, max_pieces, floor
        self.features = list(features or [])
        self.feature_layers = list(feature_layers or [depth]) if self.features else []
        count = feature_count(self.features, len(self.feature_layers))
        self.members = nn.ModuleList(
            Member(architecture, depth, width, hidden, dropout, pooling, count) for _ in range(members)
        )
        self.feature_mean = nn.Buffer(torch.zeros(count))
        self.feature_scale = nn.Buffer(torch.ones(count))

    def mixes(self) -> np.ndarray:
        """(C, depth) weights of the encoder's layers: a row per network, and one for each layer that features are
        computed from."""
        with torch.no_grad():
            rows = [member.mix.weights().cpu().numpy().astype(np.float64) for member in self.members]
        return np.stack([*rows, *(np.eye(self.depth)[layer - 1] for layer in self.feature_layers)])

    def forward(
        self,
        other: torch.Tensor,
        prediction: torch.Tensor,
        lengths: tuple[torch.Tensor, torch.Tensor],
        features: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """(B,) mean scores over the networks.

        Args:
            other: (B, n, members * width) vectors of the references or sources, mixed for each network.
            prediction: (B, m, members * width) vectors of the translations.
            lengths: (B,) lengths of each side, at least 1.
            features: (B, f) features as they were computed.
        """
        standard = None if features is None else (features - self.feature_mean) / self.feature_scale
        scores = []
        for number, member in enumerate(self.members):
            own = slice(number * self.width, (number + 1) * self.width)
            scores.append(member(other[:, :, own], prediction[:, :, own], lengths, standard))
        return torch.stack(scores).mean(0)

    @classmethod
    def read(cls, folder: Path) -> "Regressor":
        """Reads what `save_pretrained` wrote, into float32; `from_pretrained` would say so on standard output, which is
        for results.

        Raises:
            OSError, ValueError, TypeError, KeyError, RuntimeError, SafetensorError: a file is missing, damaged, or not
            of the kind.
        """
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
