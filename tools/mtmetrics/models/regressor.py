"""A trained regressor, which scores translations: its networks, its settings and its files.

A folder holds ``config.json``, a `RegressorSettings`, and the weights in ``model.safetensors``.
`Regressor.read` loads it.
"""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from mtmetrics.artifacts.pickles import save_tensors
from mtmetrics.io.atomic import make_folder, write_atomic
from mtmetrics.models.composition import ComposedMember, Composition
from mtmetrics.models.networks import Lengths, Member, feature_count


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegressorSettings:
    """Settings of a regressor; the fields are the keys of config.json.

    Attributes:
        architecture: ``"bilstm"``, ``"bilstm_attention"`` or ``"esim"``.
        against: side that translations are compared with: ``"reference"``, ``"source"`` or ``"both"``
            (source and reference as one text). A network with a composition may know several sides,
            of which the caller chooses one per call: ``"either"`` (the source or the reference) or
            ``"any"`` (the source, the reference, or both).
        encoder: name of the encoder whose vectors the regressor reads.
        encoder_fingerprint: fingerprint of the encoder.
        depth: number of layers of the encoder.
        width: dimensions of the encoder's vectors.
        hidden: width of the LSTM states, per direction.
        members: number of networks.
        dropout: dropout rate in training.
        max_pieces: highest number of word pieces of a text, special tokens not counted; longer texts
            are truncated.
        features: names of the features that the networks read in addition to the vectors, some of
            `mtmetrics.models.networks.FEATURES`.
        feature_layers: layers of the encoder that features are computed from, 1 to `depth`; by
            default the last layer.
        floor: score of a segment with a blank side.
        composition: sizes of an ESIM with transformer layers in place of its second LSTM, see
            `mtmetrics.models.composition`. Such a regressor has one member, reads no features, and
            its architecture is ``"esim"``.
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
    """One or several networks of one kind; the score of a pair of texts is the mean of theirs.

    The networks read the vectors of the word pieces of an encoder, with a composition also those of
    special tokens, and the features of the pair if the settings name any.

    Attributes:
        settings: the settings. `architecture`, `against`, `encoder`, `encoder_fingerprint`,
            `depth`, `width`, `floor` and `composition` are copied from it.
        features: names of the features, empty for none.
        feature_layers: layers that features are computed from, empty without features.
        members: the networks.
        feature_mean: (f,) means of the feature values in the training data.
        feature_scale: (f,) standard deviations of the feature values in the training data.
    """

    def __init__(self, settings: RegressorSettings) -> None:
        super().__init__()
        self.settings = settings
        self.architecture, self.against = settings.architecture, settings.against
        self.encoder, self.encoder_fingerprint = settings.encoder, settings.encoder_fingerprint
        self.depth, self.width, self.floor = settings.depth, settings.width, settings.floor
        self.composition = settings.composition
        self.features = list(settings.features or [])
        self.feature_layers: list[int] = []
        if self.features:
            self.feature_layers = list(settings.feature_layers or [settings.depth])
        feature_dim = feature_count(self.features, len(self.feature_layers))
        members = [_new_member(settings, feature_dim) for _ in range(settings.members)]
        # Any: the type of a ModuleList does not say which modules it holds.
        self.members: Any = nn.ModuleList(members)
        self.feature_mean = nn.Buffer(torch.zeros(feature_dim))
        self.feature_scale = nn.Buffer(torch.ones(feature_dim))

    def mixes(self) -> np.ndarray:
        """Returns the weights of the encoder's layers: (members + feature layers, depth), a row for
        each network, then a row for each layer that features are computed from. Not for networks
        with a `composition`, which read one layer."""
        rows = [
            member.mix.weights().detach().cpu().numpy().astype(np.float64)
            for member in self.members
        ]
        one_layer = np.eye(self.depth)
        rows += [one_layer[layer - 1] for layer in self.feature_layers]
        return np.stack(rows)

    def encoder_options(self) -> dict[str, Any]:
        """Returns the keywords for a `TokenEncoder` that encodes texts as in the training: the
        layer or the mixes of layers, and the limit of word pieces."""
        options: dict[str, Any] = {"max_pieces": self.settings.max_pieces}
        if self.composition:
            return options | {"layer": self.composition.layer}
        return options | {"mix": self.mixes()}

    def forward(
        self,
        compared: torch.Tensor,
        translation: torch.Tensor,
        lengths: Lengths,
        features: torch.Tensor | None = None,
        roles: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Returns the (B,) scores of pairs of texts, averaged over the networks.

        Args:
            compared: (B, n, members * width) vectors of the side that translations are compared
                with. Each network reads `width` columns, made with its mix of layers. The columns of
                layers for features, which follow in the vectors of `mixes`, are cut off before.
            translation: (B, m, members * width) vectors of the translations.
            lengths: (B,) lengths of each side.
            features: (B, f) feature values, not yet standardised; None for networks without
                features, and only for them.
            roles: places of the compared side, or of each of its tokens, in
                `mtmetrics.models.composition.SIDES`: (B,) or (B, n); ignored without a `composition`.
        """
        options: dict[str, torch.Tensor | None] = {}
        if self.composition:
            options["roles"] = roles
        elif features is not None:
            options["features"] = (features - self.feature_mean) / self.feature_scale
        scores = [
            member(*sides, lengths, **options)
            for member, sides in self._member_inputs(compared, translation)
        ]
        return torch.stack(scores).mean(0)

    def attentions(
        self, compared: torch.Tensor, translation: torch.Tensor, lengths: Lengths
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Computes how much each position attends to each position of the other side, averaged over
        the networks.

        Only for ``bilstm_attention`` and ``esim``, also with a composition. The arguments are those
        of `forward`.

        Returns:
            (B, n, m) attention weights of the compared side, and (B, m, n) of the translation.
        """
        from_compared, from_translation = [], []
        for member, sides in self._member_inputs(compared, translation):
            weights_r, weights_t = member.attentions(*sides, lengths)
            from_compared.append(weights_r)
            from_translation.append(weights_t)
        return torch.stack(from_compared).mean(0), torch.stack(from_translation).mean(0)

    def _member_inputs(
        self, compared: torch.Tensor, translation: torch.Tensor
    ) -> Iterator[tuple[Any, tuple[torch.Tensor, torch.Tensor]]]:
        """Yields each network with the columns of both sides that it reads."""
        for number, member in enumerate(self.members):
            columns = slice(number * self.width, (number + 1) * self.width)
            yield member, (compared[:, :, columns], translation[:, :, columns])

    @classmethod
    def read(cls, folder: Path) -> "Regressor":
        """Loads what `save` wrote, in float32.

        Raises:
            TypeError: config.json is not that of a regressor.
        """
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise TypeError(f"an object is needed, got {type(config).__name__}")
        config.pop("pooling", None)  # see `save`
        if config.get("composition") is not None:
            config["composition"] = Composition(**config["composition"])
        regressor = cls(RegressorSettings(**config))
        regressor.load_state_dict(load_file(folder / "model.safetensors"))
        return regressor.eval()

    def save(self, folder: Path) -> None:
        """Writes config.json, and the weights in float16, which halves the file."""
        make_folder(folder)
        # The key is left from an option of earlier versions. Without it, the fingerprint of a network
        # that is trained again would change.
        config = dataclasses.asdict(self.settings) | {"pooling": "both"}
        write_atomic(folder / "config.json", json.dumps(config, indent=2, sort_keys=True))
        weights = {
            name: values.detach().to("cpu", torch.float16)
            for name, values in self.state_dict().items()
        }
        save_tensors(weights, folder / "model.safetensors")


def _new_member(settings: RegressorSettings, feature_dim: int) -> Member | ComposedMember:
    if settings.composition:
        return ComposedMember(
            settings.width, settings.composition, settings.hidden, settings.dropout
        )
    return Member(
        settings.architecture,
        settings.depth,
        settings.width,
        settings.hidden,
        settings.dropout,
        feature_dim,
    )
