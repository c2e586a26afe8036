"""XMoverScore: Word Mover's Distance between a source and its translation, and a language model (Zhao et al., 2020)."""

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from mtmetrics.encoders.packed import PackedTokens
from mtmetrics.encoders.token_encoder import TokenEncoder
from mtmetrics.errors import InputError
from mtmetrics.fluency import LanguageModel, length_normalised
from mtmetrics.inputs import choice, number, positive
from mtmetrics.matching.partial import PlainPartialTransport, RoundedPartialTransport
from mtmetrics.matching.transport import DISTANCES, Distance, optimal_flow, word_mover_distances
from mtmetrics.matching.weights import TokenWeights
from mtmetrics.remap import Remapping, Sides
from mtmetrics.scorers.base import ChunkScores, Scorer
from mtmetrics.signature import signature

Side = Literal["source", "target"]
_FARTHEST: dict[Distance, float] = {"sqeuclidean": 4.0, "euclidean": 2.0, "cosine": 2.0}


@dataclasses.dataclass(frozen=True)
class Variant:
    """A published form of the metric; every field but the first three can be chosen independently.

    Attributes:
        similarity: turns (n,) distances into scores, higher is better.
        word_filter: drop punctuation and continuation pieces before n-grams are made.
        normalise_lm: divide the log-likelihood by the length once more and exponentiate.
        distance: between L2-normalised n-gram vectors.
        ngram: tokens per n-gram.
        layer: hidden state of the encoder; None is the last.
        drop_rate: share of flows that partial transport drops; None for full transport.
    """

    similarity: Callable[[np.ndarray], np.ndarray]
    word_filter: bool
    normalise_lm: bool
    distance: Distance
    ngram: int
    layer: int | None
    drop_rate: float | None


VARIANTS: dict[str, Variant] = {
    # score_utils.py of the authors: the code of the paper.
    "acl20": Variant(lambda d: 1.0 - d, True, False, "sqeuclidean", 2, None, None),
    # score_utils_2.py of the authors, which their scorer.py uses.
    "release": Variant(lambda d: 1.0 / (1.0 + d), False, True, "euclidean", 2, 8, 0.3),
    # The word-level part of UScore (Belouadi and Eger, 2023).
    "uscore": Variant(lambda d: -d, True, False, "sqeuclidean", 1, None, None),
}


class XMoverScore(Scorer):
    """Scores a translation against its source: ``mover_weight * mover + lm_weight * lm``.

    The part ``mover`` is a similarity from the Word Mover's Distance between the (remapped) n-grams of source and translation, the part
    ``lm`` the mean log-likelihood of the translation. With ``acl20`` the first lies in [-3, 1] and the second is at most 0; a score is
    comparable only with scores of the same signature. A segment with a blank side gets the lowest ``mover`` value of the variant (all
    mass moved the farthest) and the ``lm`` value of a uniform guess.

    Args:
        encoder: the multilingual encoder, opened at the layer to use.
        variant: ``"acl20"``, ``"release"`` or ``"uscore"``; the arguments below override its settings.
        ngram: tokens per n-gram.
        distance: ``"sqeuclidean"``, ``"euclidean"`` or ``"cosine"``.
        remapping: linear map of the source side, or None.
        sides: apply the map to the ``"source"`` alone or to ``"both"``.
        language_model: model of the target language, or None for no language-model part.
        lm_weight: weight of ``lm``.
        mover_weight: weight of ``mover``.
        weights: inverse document frequencies of tokens, or None for uniform weights.
        drop_rate: share of flows that partial transport drops (0 to 1); None takes the variant's.
        partial: ``"rounded"`` reproduces the published solver as far as possible, ``"plain"`` drops flows of the exact plan.
        lang_pair: recorded in the signature.
        threads: solver threads; None for all cores.

    Raises:
        InputError: an unknown or impossible setting.
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        *,
        variant: str = "acl20",
        ngram: int | None = None,
        distance: Distance | None = None,
        remapping: Remapping | None = None,
        sides: Sides = "source",
        language_model: LanguageModel | None = None,
        lm_weight: float = 0.1,
        mover_weight: float = 1.0,
        weights: TokenWeights | None = None,
        drop_rate: float | None = None,
        partial: Literal["rounded", "plain"] = "rounded",
        lang_pair: str | None = None,
        threads: int | None = None,
    ) -> None:
        self.variant = choice("variant", variant, list(VARIANTS))
        form = VARIANTS[variant]
        self.encoder = encoder
        self.ngram = positive("ngram", form.ngram if ngram is None else ngram)
        self.distance: Distance = choice("distance", form.distance if distance is None else distance, DISTANCES)
        self.remapping = remapping
        self.sides = choice("sides", sides, ("source", "both"))
        if remapping is not None:
            for side in ("source", "target") if sides == "both" else ("source",):
                remapping.apply(np.zeros((0, encoder.dim), dtype=np.float32), side)
        self.language_model = language_model
        self.lm_weight = number("lm_weight", lm_weight)
        self.mover_weight = number("mover_weight", mover_weight)
        self.weights = weights
        if weights is not None:
            weights.require_vocabulary(len(encoder.tokenizer))
        self.drop_rate = form.drop_rate if drop_rate is None else drop_rate
        if self.drop_rate is not None and not 0.0 <= number("drop_rate", self.drop_rate) <= 1.0:
            raise InputError(f"drop_rate {self.drop_rate!r}: must lie between 0 and 1")
        self.partial = choice("partial", partial, ("rounded", "plain"))
        self.lang_pair = lang_pair
        self.threads = positive("threads", (os.cpu_count() or 1) if threads is None else threads)
        self._form = form

    @property
    def signature(self) -> str:
        form, model = self._form, self.language_model
        lm = "none" if model is None else f"{model.label}#{model.fingerprint}*{self.lm_weight:g}"
        return signature(
            "xmoverscore",
            {
                "lp": self.lang_pair,
                "enc": f"{self.encoder.label}#{self.encoder.fingerprint}",
                "layer": self.encoder.layer,
                "ngram": self.ngram,
                "map": "none" if self.remapping is None else f"{self.remapping.kind}#{self.remapping.fingerprint}",
                "sides": self.sides if self.remapping is not None and self.sides != "source" else None,
                "lm": lm,
                "lmstart": model.start_token if model is not None and model.start_token != "short" else None,
                "form": self.variant,
                "mover": f"{self.mover_weight:g}" if self.mover_weight != 1 else None,
                "dist": self.distance if self.distance != form.distance else None,
                "drop": f"{self.drop_rate:g}/{self.partial}" if self.drop_rate is not None else None,
                "weights": f"idf#{self.weights.fingerprint}" if self.weights is not None else None,
                "dtype": {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}[self.encoder.dtype],
            },
        )

    def ngrams(self, texts: Sequence[str], side: Side) -> PackedTokens:
        """Packed n-grams of texts, ready to be matched: encoded, filtered, remapped, weighted, averaged, L2-normalised."""
        return self._ngrams(self.encoder.encode(texts), side)

    def _ngrams(self, tokens: PackedTokens, side: Side) -> PackedTokens:
        if self._form.word_filter:
            tokens = tokens.select(self.encoder.word_table[tokens.token_ids])
        if self.remapping is not None and (side == "source" or self.sides == "both"):
            remapping = self.remapping
            tokens = tokens.with_vectors(lambda vectors: remapping.apply(vectors, side))
        if self.weights is not None:
            tokens = self.weights.apply(tokens)
        return tokens.ngrams(self.ngram).normalized()

    def mover(self, sources: PackedTokens, predictions: PackedTokens) -> np.ndarray:
        """(N,) the part ``mover`` of N pairs of packed n-grams; NaN where a side has none."""
        transport: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, float]] = optimal_flow
        if self.drop_rate is not None:
            partial = RoundedPartialTransport if self.partial == "rounded" else PlainPartialTransport
            transport = partial(self.drop_rate)
        distances = word_mover_distances(sources, predictions, self.distance, transport=transport, threads=self.threads)
        return self._form.similarity(distances)

    def fluency(self, predictions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """(N,) the part ``lm`` and an (N,) mask of texts cut at the language model's limit; zeros without a language model."""
        if self.language_model is None:
            return np.zeros(len(predictions)), np.zeros(len(predictions), dtype=bool)
        means, lengths, cut = self.language_model.score(predictions)
        return (length_normalised(means, lengths) if self._form.normalise_lm else means), cut

    def _score_chunk(self, sources: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        # One call for all texts, so that none is encoded twice, whatever the cache holds.
        tokens = self.encoder.encode([text for column in (sources, *systems) for text in column])
        packed_sources = self._ngrams(tokens.take(slice(len(sources))), "source")
        results = []
        for system, predictions in enumerate(systems, 1):
            packed = self._ngrams(tokens.take(slice(system * len(sources), (system + 1) * len(sources))), "target")
            mover = self.mover(packed_sources, packed)
            lm, cut = self.fluency(predictions)
            truncated = packed_sources.truncated[packed_sources.index] | packed.truncated[packed.index] | cut
            results.append(ChunkScores(self._combine(mover, lm), {"mover": mover, "lm": lm}, truncated))
        return results

    def _combine(self, mover: np.ndarray, lm: np.ndarray) -> np.ndarray:
        return self.mover_weight * mover + (self.lm_weight if self.language_model is not None else 0.0) * lm

    def _floor(self) -> tuple[float, dict[str, float]]:
        mover = self._form.similarity(np.array([_FARTHEST[self.distance]]))
        lm = np.zeros(1)
        if self.language_model is not None and not self._form.normalise_lm:
            lm = np.array([self.language_model.floor])
        return float(self._combine(mover, lm)[0]), {"mover": float(mover[0]), "lm": float(lm[0])}
