"""XMoverScore: similarity of a source and its translation, and a language model (Zhao et al., 2020)."""

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.inputs import choice, number, positive
from mtmetrics.maps.remapping import Remapping, Sides
from mtmetrics.matching.pairs import cosines
from mtmetrics.matching.plan import Alignment, Units, ngram_units, word_plan
from mtmetrics.matching.transport import (
    DISTANCES,
    Distance,
    RoundedPartialTransport,
    cost_matrix,
    optimal_flow,
    word_mover_distances,
)
from mtmetrics.models.language_model import LanguageModel, length_normalised
from mtmetrics.models.packed import Encoder, PackedTokens, WordEncoder
from mtmetrics.models.words import TokenWeights
from mtmetrics.scorers.base import ChunkScores, Scorer
from mtmetrics.scorers.naming import dtype_name, encoder_name, map_name
from mtmetrics.signature import signature

Side = Literal["source", "target"]
Similarity = Literal["mover", "cosine"]
SIMILARITIES: tuple[Similarity, ...] = ("mover", "cosine")
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
    """Scores a translation against its source: ``weight * similarity + lm_weight * lm``.

    The similarity is the part ``mover``, from the Word Mover's Distance between the (remapped) n-grams of source and
    translation (Sec. 3.1 of the paper), or the part ``cosine``, of their (remapped) sentence vectors (Sec. 3.2). The
    part ``lm`` is the mean log-likelihood of the translation. With ``acl20`` ``mover`` lies in [-3, 1] and ``lm`` is at
    most 0; a score is comparable only with scores of the same signature. A segment with a blank side, or one without
    any word that the encoder knows, gets the lowest similarity (all mass moved the farthest) and the ``lm`` value of a
    uniform guess.

    Args:
        encoder: the multilingual encoder, opened at the layer to use; for ``cosine`` one that gives a vector per text.
        target_encoder: encoder of the translations where it is another one, such as the word vectors of their language
            in a shared space.
        similarity: ``"mover"`` or ``"cosine"``.
        variant: ``"acl20"``, ``"release"`` or ``"uscore"``; the arguments below override its settings.
        ngram: tokens per n-gram.
        distance: ``"sqeuclidean"``, ``"euclidean"`` or ``"cosine"``.
        remapping: linear map of the source side, or None.
        sides: apply the map to the ``"source"`` alone or to ``"both"``.
        language_model: model of the target language, or None for no language-model part.
        lm_weight: weight of ``lm``.
        similarity_weight: weight of ``mover`` or ``cosine``.
        weights: inverse document frequencies of tokens, or None for uniform weights.
        drop_rate: share of flows that partial transport drops (0 to 1); None takes the variant's.
        lang_pair: recorded in the signature.
        threads: solver threads; None for all cores.

    Raises:
        InputError: an unknown or impossible setting, or one that has no effect with ``similarity="cosine"``.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        target_encoder: Encoder | None = None,
        similarity: Similarity = "mover",
        variant: str = "acl20",
        ngram: int | None = None,
        distance: Distance | None = None,
        remapping: Remapping | None = None,
        sides: Sides = "source",
        language_model: LanguageModel | None = None,
        lm_weight: float = 0.1,
        similarity_weight: float = 1.0,
        weights: TokenWeights | None = None,
        drop_rate: float | None = None,
        lang_pair: str | None = None,
        threads: int | None = None,
    ) -> None:
        self.variant = choice("variant", variant, list(VARIANTS))
        form = VARIANTS[variant]
        self.encoder = encoder
        self.target_encoder = encoder if target_encoder is None else target_encoder
        if self.target_encoder.dim != encoder.dim:
            raise InputError(
                f"vectors of sources have {encoder.dim} numbers, those of predictions {self.target_encoder.dim}"
            )
        self.similarity: Similarity = choice("similarity", similarity, SIMILARITIES)
        if similarity == "cosine":
            for name, value in {
                "ngram": ngram,
                "distance": distance,
                "weights": weights,
                "drop_rate": drop_rate,
            }.items():
                if value is not None:
                    raise InputError(
                        f"{name} has no effect with similarity='cosine', which compares whole texts; leave it out"
                    )
        self.ngram = positive("ngram", form.ngram if ngram is None else ngram)
        self.distance: Distance = choice("distance", form.distance if distance is None else distance, DISTANCES)
        self.remapping = remapping
        self.sides = choice("sides", sides, ("source", "both"))
        if remapping is not None:
            for side in ("source", "target") if sides == "both" else ("source",):
                remapping.apply(np.zeros((0, encoder.dim), dtype=np.float32), side)
        self.language_model = language_model
        self.lm_weight = number("lm_weight", lm_weight)
        self.similarity_weight = number("similarity_weight", similarity_weight)
        self.weights = weights
        if weights is not None:
            for vocabulary in {self._words(side).vocabulary_size for side in ("source", "target")}:
                weights.require_vocabulary(vocabulary)
        self.drop_rate = form.drop_rate if drop_rate is None else drop_rate
        if self.drop_rate is not None and not 0.0 <= number("drop_rate", self.drop_rate) <= 1.0:
            raise InputError(f"drop_rate {self.drop_rate!r}: must lie between 0 and 1")
        self.lang_pair = lang_pair
        self.threads = positive("threads", (os.cpu_count() or 1) if threads is None else threads)
        self._form = form

    @property
    def depth(self) -> int | None:
        return self.encoder.depth

    @property
    def signature(self) -> str:
        form, model = self._form, self.language_model
        lm = "none" if model is None else f"{model.label}#{model.fingerprint}*{self.lm_weight:g}"
        words = self.similarity == "mover"
        target = self.target_encoder if self.target_encoder is not self.encoder else None
        return signature(
            "xmoverscore",
            {
                "lp": self.lang_pair,
                "enc": encoder_name(self.encoder),
                "tenc": target and encoder_name(target),
                "layer": self.encoder.layer,
                "sim": None if words else self.similarity,
                "ngram": self.ngram if words else None,
                "map": map_name(self.remapping),
                "sides": self.sides if self.remapping is not None and self.sides != "source" else None,
                "lm": lm,
                **(model.signature_fields if model is not None else {}),
                "form": self.variant,
                "weight": f"{self.similarity_weight:g}" if self.similarity_weight != 1 else None,
                "dist": self.distance if self.distance != form.distance else None,
                "drop": f"{self.drop_rate:g}/rounded" if words and self.drop_rate is not None else None,
                "weights": f"idf#{self.weights.fingerprint}" if self.weights is not None else None,
                "dtype": dtype_name(self.encoder.dtype),
            },
        )

    def ngrams(self, texts: Sequence[str], side: Side) -> PackedTokens:
        """Packed n-grams of texts, ready to be matched."""
        return self.ngrams_of(self._words(side).encode(texts), side)

    def ngrams_of(self, tokens: PackedTokens, side: Side) -> PackedTokens:
        """The same from tokens that are encoded already: filtered, weighted, remapped, averaged, L2-normalised."""
        return self._remapped(self._filtered(tokens, side), side).ngrams(self.ngram).normalized()

    def _words(self, side: Side) -> WordEncoder:
        encoder: Any = self.encoder if side == "source" else self.target_encoder
        return encoder

    def _filtered(self, tokens: PackedTokens, side: Side) -> PackedTokens:
        if self._form.word_filter:
            tokens = tokens.select(self._words(side).word_table[tokens.token_ids])
        return tokens if self.weights is None else self.weights.apply(tokens)

    def _remapped(self, tokens: PackedTokens, side: Side) -> PackedTokens:
        remapping = self.remapping
        if remapping is None or (side == "target" and self.sides == "source"):
            return tokens
        return tokens.with_vectors(lambda vectors: remapping.apply(vectors, side))

    def mover(self, sources: PackedTokens, predictions: PackedTokens) -> np.ndarray:
        """(N,) the part ``mover`` of N pairs of packed n-grams; NaN where a side has none."""
        transport = self._transport()
        distances = word_mover_distances(sources, predictions, self.distance, transport=transport, threads=self.threads)
        return self._form.similarity(distances)

    def _transport(self) -> Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, float]]:
        return optimal_flow if self.drop_rate is None else RoundedPartialTransport(self.drop_rate)

    def fluency(self, predictions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """(N,) the part ``lm`` and an (N,) mask of texts cut at the language model's limit; zeros without a language
        model."""
        if self.language_model is None:
            return np.zeros(len(predictions)), np.zeros(len(predictions), dtype=bool)
        means, lengths, cut = self.language_model.score(predictions)
        return (length_normalised(means, lengths) if self._form.normalise_lm else means), cut

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        encoded, *columns = self._encoded(others, systems)
        prepare = self.ngrams_of if self.similarity == "mover" else self._remapped
        compare = self.mover if self.similarity == "mover" else _cosines
        packed_sources = prepare(encoded, "source")
        results = []
        for predictions, tokens in zip(systems, columns, strict=True):
            packed = prepare(tokens, "target")
            similarity = compare(packed_sources, packed)
            lm, cut = self.fluency(predictions)
            truncated = packed_sources.truncated[packed_sources.index] | packed.truncated[packed.index] | cut
            parts = {self.similarity: similarity, "lm": lm}
            results.append(ChunkScores(self._combine(similarity, lm), parts, truncated, np.isnan(similarity)))
        return results

    def _encoded(self, sources: list[str], systems: list[list[str]]) -> Iterator[PackedTokens]:
        """Tokens of the sources, then of each system; one call per encoder, so that no text is encoded twice, whatever
        a cache holds."""
        if self.target_encoder is not self.encoder:
            yield self.encoder.encode(sources)
            columns = systems
        else:
            columns = [sources, *systems]
        tokens = self.target_encoder.encode([text for column in columns for text in column])
        yield from tokens.split(len(sources))

    def _align(self, others: list[str], predictions: list[str]) -> Iterator[Alignment]:
        if self.similarity != "mover":
            raise InputError(
                "alignments: similarity='cosine' compares whole texts, so there is nothing to align; use similarity='mover'"
            )
        transport = self._transport()
        for source, prediction in zip(others, predictions, strict=True):
            x, x_units = self._units(source, "source")
            y, y_units = self._units(prediction, "target")
            if not (source.strip() and prediction.strip() and len(x.vectors) and len(y.vectors)):
                yield Alignment([], [], np.zeros((0, 0)), np.zeros((0, 0)))
                continue
            cost = cost_matrix(x.vectors, y.vectors, self.distance)
            flow, _ = transport(cost, x.weights / x.weights.sum(), y.weights / y.weights.sum())
            yield word_plan(x_units, y_units, flow, cost)

    def _units(self, text: str, side: Side) -> tuple[PackedTokens, Units]:
        """The n-grams of one text, and the words that they are made of."""
        encoder = self._words(side)
        words, positions = encoder.text_words(text)
        tokens = dataclasses.replace(encoder.encode([text]), words=positions)
        kept = self._filtered(tokens, side)
        return self.ngrams_of(tokens, side), ngram_units(words, kept.words, kept.weights, self.ngram)

    def _combine(self, similarity: np.ndarray, lm: np.ndarray) -> np.ndarray:
        return self.similarity_weight * similarity + (self.lm_weight if self.language_model is not None else 0.0) * lm

    def _floor(self) -> tuple[float, dict[str, float]]:
        farthest = (
            self._form.similarity(np.array([_FARTHEST[self.distance]]))
            if self.similarity == "mover"
            else np.array([-1.0])
        )
        lm = np.zeros(1)
        if self.language_model is not None and not self._form.normalise_lm:
            lm = np.array([self.language_model.floor])
        return float(self._combine(farthest, lm)[0]), {self.similarity: float(farthest[0]), "lm": float(lm[0])}


def _cosines(sources: PackedTokens, predictions: PackedTokens) -> np.ndarray:
    """(N,) the part ``cosine`` of N pairs of sentence vectors."""
    return cosines(sources.vectors[sources.index], predictions.vectors[predictions.index])
