"""BiLSTM, BiLSTM with attention, and ESIM: networks trained on human judgements (Mathur et al., 2019, Sec. 3.2)."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.errors import ArtifactError
from mtmetrics.inputs import positive
from mtmetrics.models.packed import PackedTokens
from mtmetrics.models.runner import length_batches
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.base import ChunkScores, Scorer
from mtmetrics.scorers.naming import AGAINST, dtype_name, encoder_name
from mtmetrics.signature import signature

if TYPE_CHECKING:
    import torch

    from mtmetrics.regressors.regressor import Regressor

# The vectors of several layers are wide, so that fewer lines than a chunk has are encoded at a time.
_LINES = 256
_BATCH_PIECES = 4096


class RegressorScore(Scorer):
    """The score that a trained network predicts for a translation, on the scale of the judgements that it was trained
    on.

    The network reads the word pieces of both sides, without special tokens, as a learnt mix of the encoder's layers. A
    segment with a blank side gets the lowest judgement of the training data, which the checkpoint records.

    Args:
        encoder: opened with the mixes of the network (`Regressor.mixes`) and its `max_pieces`.
        network: a trained regressor; it says whether translations are compared with references or with sources.
        fingerprint: 8 hexadecimal digits that pin the network in the signature.
        label: how the signature calls it.
        lang_pair: recorded in the signature.
        device: where the network runs.
        threads: threads that share the computation of features; None for all cores.

    Raises:
        ArtifactError: the network was trained on another encoder.
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        network: "Regressor",
        *,
        fingerprint: str | None = None,
        label: str = "unnamed",
        lang_pair: str | None = None,
        device: Any = "cpu",
        threads: int | None = None,
    ) -> None:
        if network.encoder_fingerprint != encoder.fingerprint:
            raise ArtifactError(
                f"regressor {label}: it was trained on the encoder {network.encoder}#{network.encoder_fingerprint}, not on "
                f"{encoder_name(encoder)}; pass that encoder"
            )
        self.encoder = encoder
        self.network = network.to(device).eval()
        self.against = network.against
        self.compares = AGAINST[network.against]
        self.fingerprint, self.label = fingerprint, label
        self.lang_pair = lang_pair
        self.device = device
        self.threads = positive("threads", (os.cpu_count() or 1) if threads is None else threads)

    @property
    def signature(self) -> str:
        return signature(
            self.network.architecture,
            {
                "lp": self.lang_pair,
                "against": self.against,
                "reg": f"{self.label}#{self.fingerprint}" if self.fingerprint else self.label,
                "enc": encoder_name(self.encoder),
                "dtype": dtype_name(self.encoder.dtype),
            },
        )

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        parts = []
        for first in range(0, len(others), _LINES):
            lines = slice(first, first + _LINES)
            parts.append(self._score_lines(others[lines], [texts[lines] for texts in systems]))
        joined = (map(np.concatenate, zip(*system, strict=True)) for system in zip(*parts, strict=True))
        return [ChunkScores(segments, {}, truncated, empty) for segments, truncated, empty in joined]

    def _score_lines(
        self, others: list[str], systems: list[list[str]]
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Scores, truncated and empty segments of each system."""
        tokens = self.encoder.encode([text for column in (others, *systems) for text in column])
        index = tokens.index.reshape(-1, len(others))
        pairs = np.stack([np.tile(index[0], len(systems)), index[1:].ravel()])
        pieces = Pieces(tokens)
        empty = (pieces.lengths[pairs] == 0).any(0)
        truncated = tokens.truncated[pairs].any(0)
        scores = np.full(pairs.shape[1], np.nan)
        scores[~empty] = self._predict(pieces, pairs[:, ~empty])
        shape = (len(systems), len(others))
        return list(zip(scores.reshape(shape), truncated.reshape(shape), empty.reshape(shape), strict=True))

    def _predict(self, pieces: "Pieces", pairs: np.ndarray) -> np.ndarray:
        """(n,) scores of (2, n) pairs of texts, in batches of like length."""
        import torch

        scores = np.empty(pairs.shape[1])
        features = self._features(pieces.tokens, pairs)
        lengths = pieces.lengths[pairs]
        with torch.inference_mode():
            for batch in length_batches(lengths.max(0).tolist(), lambda: _BATCH_PIECES):
                sides = (pieces.padded(side[batch], self.network.width * len(self.network.members)) for side in pairs)
                given = torch.from_numpy(features[batch]).to(self.device) if self.network.features else None
                sizes = tuple(torch.from_numpy(side[batch]).to(self.device) for side in lengths)
                scores[batch] = self.network(*(side.to(self.device) for side in sides), sizes, given).cpu().numpy()
        return scores

    def _features(self, tokens: PackedTokens, pairs: np.ndarray) -> np.ndarray:
        """(n, f) features of (2, n) pairs of texts."""
        from mtmetrics.regressors.features import pair_features

        network = self.network
        if not network.features:
            return np.zeros((pairs.shape[1], 0), dtype=np.float32)
        # Behind the mixes of the networks stand the layers that features are computed from.
        firsts = [(len(network.members) + number) * network.width for number in range(len(network.feature_layers))]
        layers = [
            tokens.with_vectors(lambda vectors, first=first: vectors[:, first : first + network.width])
            for first in firsts
        ]
        return pair_features(network.features, layers, *pairs, threads=self.threads)

    def _floor(self) -> tuple[float, dict[str, float]]:
        return self.network.floor, {}


class Pieces:
    """The word pieces of packed texts, without special tokens; nothing is copied until a batch is made.

    Args:
        tokens: packed texts.
    """

    def __init__(self, tokens: PackedTokens) -> None:
        self.tokens = tokens
        self._rows = np.flatnonzero(tokens.words >= 0)
        self._bounds = np.searchsorted(self._rows, tokens.offsets)
        self.lengths = np.diff(self._bounds)

    def padded(self, texts: np.ndarray, width: int) -> "torch.Tensor":
        """(B, longest, width) first entries of the vectors of some texts, zeros behind their ends."""
        import torch

        batch = np.zeros((len(texts), int(self.lengths[texts].max()), width), dtype=np.float32)
        for row, text in enumerate(texts):
            rows = self._rows[self._bounds[text] : self._bounds[text + 1]]
            batch[row, : len(rows)] = self.tokens.vectors[rows, :width]
        return torch.from_numpy(batch)
