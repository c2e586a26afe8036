"""XMoverScore: similarity of a source and its translation, and a language model (Zhao et al., 2020)."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import choice, number, positive
from mtmetrics.errors import InputError
from mtmetrics.matching.pairs import Pending
from mtmetrics.matching.plan import Alignment, Cells, Units, ngram_units, word_plan
from mtmetrics.matching.remapping import Remapping, Sides
from mtmetrics.matching.transport import (
    DISTANCES,
    Distance,
    RoundedPartialTransport,
    begun_distances,
    cost_matrix,
    optimal_flow,
)
from mtmetrics.matching.word_errors import Evidence, loss_evidence, match_evidence
from mtmetrics.matching.workers import shared_empty
from mtmetrics.models.language_model import LanguageModel, length_normalised
from mtmetrics.models.packed import Encoder, PackedTokens, WordEncoder
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_weights import TokenWeights
from mtmetrics.scorers.base import ChunkScores, Scorer, SystemScores, cut, encoded_together, text_cosines, worker_count
from mtmetrics.scorers.preset_tables import (
    dtype_name,
    encoder_table,
    languages,
    map_name,
    model_name,
    preset_language_model,
    preset_map,
    signature,
)

Side = Literal["source", "target"]
Pieces = Literal["words", "all"]
Similarity = Literal["mover", "cosine"]
SIMILARITIES: tuple[Similarity, ...] = ("mover", "cosine")
_UNRELATED: dict[Distance, float] = {"sqeuclidean": 2.0, "euclidean": 2.0**0.5, "cosine": 1.0}  # at right angles
_FARTHEST: dict[Distance, float] = {"sqeuclidean": 4.0, "euclidean": 2.0, "cosine": 2.0}
# What has no effect on the comparison of sentence vectors.
_OF_WORDS = ("pieces", "ngram", "distance", "weights", "drop_rate")


@dataclasses.dataclass(frozen=True)
class Variant:
    """A published form of the metric; every field but the first three can be chosen independently."""

    similarity: Callable[[np.ndarray], np.ndarray]  # of distances
    pieces: Pieces  # that n-grams are made of
    normalise_lm: bool  # divide the log-likelihood by the length once more and exponentiate
    distance: Distance
    ngram: int
    layer: int | None  # None is the last
    drop_rate: float | None  # None for full transport


VARIANTS: dict[str, Variant] = {
    # score_utils.py of the authors: the code of the paper.
    "acl20": Variant(lambda d: 1.0 - d, "words", False, "sqeuclidean", 2, None, None),
    # score_utils_2.py of the authors, which their scorer.py uses.
    "release": Variant(lambda d: 1.0 / (1.0 + d), "all", True, "euclidean", 2, 8, 0.3),
    # The word-level part of UScore (Belouadi and Eger, 2023).
    "uscore": Variant(lambda d: -d, "words", False, "sqeuclidean", 1, None, None),
}


class XMoverScore(Scorer):
    """Scores a translation against its source: ``similarity + lm_weight * lm``.

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
        remapping: linear map of the source side, or None.
        language_model: model of the target language, or None for no language-model part.
        weights: inverse document frequencies of tokens; ``"norm"``, the lengths of their vectors (Word Rotator's
            Distance: Yokoi et al., 2020, Sec. 4.2); or None for uniform weights.
        similarity: ``"mover"`` or ``"cosine"``.
        variant: ``"acl20"``, ``"release"`` or ``"uscore"``; the arguments below override its settings.
        pieces: ``"words"`` drops punctuation and continuation pieces, as the published code does; or ``"all"``.
        ngram: tokens per n-gram.
        distance: ``"sqeuclidean"``, ``"euclidean"`` or ``"cosine"``.
        sides: apply the map to the ``"source"`` alone or to ``"both"``.
        lm_weight: weight of ``lm``.
        drop_rate: share of flows that partial transport drops (0 to 1); None takes the variant's.
        lang_pair: recorded in the signature.
        workers: processes that solve transport, once there is enough for it to pay, while the next texts are encoded;
            None for one per core, at most 4.

    Raises:
        InputError: an unknown or impossible setting, or one that has no effect with ``similarity="cosine"``.
    """

    metric = "xmoverscore"
    tables: ClassVar = {
        "encoder": {"model", "revision", "layer"},
        "score": {"similarity", "variant", "pieces", "ngram", "distance", "sides", "drop_rate", "weights"},
        "maps": {"artifact", "kind"},
        "language_models.*": {"model", "revision", "weight", "start_token", "end_token", "length_power"},
    }

    def __init__(
        self,
        encoder: Encoder,
        target_encoder: Encoder | None = None,
        remapping: Remapping | None = None,
        language_model: LanguageModel | None = None,
        weights: TokenWeights | Literal["norm"] | None = None,
        *,
        similarity: Similarity = "mover",
        variant: str = "acl20",
        pieces: Pieces | None = None,
        ngram: int | None = None,
        distance: Distance | None = None,
        sides: Sides = "source",
        lm_weight: float = 0.1,
        drop_rate: float | None = None,
        lang_pair: str | None = None,
        workers: int | None = None,
    ) -> None:
        self.variant = choice("variant", variant, list(VARIANTS))
        form = VARIANTS[variant]
        self.encoder = encoder
        self.target_encoder = encoder if target_encoder is None else target_encoder
        if self.target_encoder.dim != encoder.dim:
            widths = f"vectors of sources have {encoder.dim} numbers, those of predictions {self.target_encoder.dim}"
            raise InputError(widths)
        self.similarity: Similarity = choice("similarity", similarity, SIMILARITIES)
        if similarity == "cosine":
            for name, value in zip(_OF_WORDS, (pieces, ngram, distance, weights, drop_rate), strict=True):
                if value is not None:
                    why = "which compares whole texts; leave it out"
                    raise InputError(f"{name} has no effect with similarity='cosine', {why}")
        self.pieces: Pieces = choice("pieces", form.pieces if pieces is None else pieces, ("words", "all"))
        self.ngram = positive("ngram", form.ngram if ngram is None else ngram)
        self.distance: Distance = choice("distance", form.distance if distance is None else distance, DISTANCES)
        self.remapping = remapping
        self.sides = choice("sides", sides, ("source", "both"))
        if remapping is not None:
            for side in ("source", "target") if sides == "both" else ("source",):
                remapping.apply(np.zeros((0, encoder.dim), dtype=np.float32), side)
        self.language_model = language_model
        self.lm_weight = number("lm_weight", lm_weight)
        self.weights = weights
        if isinstance(weights, TokenWeights):
            for vocabulary in {self._words(side).vocabulary_size for side in ("source", "target")}:
                weights.require_vocabulary(vocabulary)
        self.drop_rate = form.drop_rate if drop_rate is None else drop_rate
        if self.drop_rate is not None and not 0.0 <= number("drop_rate", self.drop_rate) <= 1.0:
            raise InputError(f"drop_rate {self.drop_rate!r}: must lie between 0 and 1")
        self.lang_pair = lang_pair
        self.depth = encoder.depth
        self.workers = worker_count(workers)
        self._form = form

    @classmethod
    def from_preset(
        cls,
        preset: str = "paper",
        *,
        lang_pair: str | None,
        pool: ModelPool | None = None,
        encoder: str | None = None,
        layer: int | None = None,
        map: str | None = None,
        maps: str | None = None,
        lm: str | None = None,
        weights: str | None = None,
        **settings: Any,
    ) -> "XMoverScore":
        """XMoverScore as a preset describes it; each option that is not None overrides the preset.

        Args:
            preset, pool: see `Scorer`.
            lang_pair: chooses map and language model.
            encoder: an encoder, for ``similarity="cosine"`` also a sentence-transformers model; or a table of static
                word vectors, whose path may hold ``{lang}`` for one table per language (in a shared space). The layer
                and the maps of the preset belong to its own encoder: with another one pass `maps`, or ``map="none"``.
            layer: hidden state of the encoder.
            map: ``"none"``, ``"clp"``, ``"umd"``, ``"clp+umd"`` or ``"umd+clp"``.
            maps: a map file, a folder of maps, or the name of a map artifact.
            lm: a language model, or ``"none"``, as where a preset has none for the target language.
            weights: ``"uniform"``, ``"norm"``, or a stored table of inverse document frequencies.
            **settings: of the class.
        """
        bundle, pool = cls.open_preset(preset, pool)
        pair = languages(bundle, lang_pair, needed=True)
        score = bundle.settings.get("score", {})
        asked = {name: value for name, value in settings.items() if value is not None}
        variant = choice("variant", (score | asked).get("variant", "acl20"), list(VARIANTS))
        similarity = choice("similarity", (score | asked).get("similarity", "mover"), SIMILARITIES)
        if similarity == "cosine":
            score = {name: value for name, value in score.items() if name not in _OF_WORDS}
        usual_layer = VARIANTS[variant].layer
        sources, targets = _preset_encoders(bundle, pool, pair, similarity, encoder, layer, usual_layer)
        level: Any = "sentence" if similarity == "cosine" else "word"
        remapping = preset_map(bundle, pool, sources, lang_pair, kind=map, maps=maps, level=level)
        model, lm_weight = preset_language_model(bundle, pool, pair[1], lm)
        chosen: Any = score.get("weights", "uniform") if weights is None else weights
        if chosen not in ("uniform", "norm"):
            chosen = TokenWeights.load(bundle.path(str(chosen)))
        merged = {"lm_weight": lm_weight, **score, **asked, "weights": None if chosen == "uniform" else chosen}
        return cls(sources, targets, remapping, model, lang_pair=lang_pair, **merged)

    @property
    def signature(self) -> str:
        model, words = self.language_model, self.similarity == "mover"
        target = self.target_encoder if self.target_encoder is not self.encoder else None
        fields: dict[str, Any] = {"lp": self.lang_pair, "enc": model_name(self.encoder), "tenc": model_name(target)}
        fields |= {"layer": self.encoder.layer, "sim": None if words else self.similarity}
        fields |= {"pieces": self.pieces if words and self.pieces != self._form.pieces else None}
        fields |= {"ngram": self.ngram if words else None, "map": map_name(self.remapping)}
        fields["sides"] = self.sides if self.remapping is not None and self.sides != "source" else None
        fields["lm"] = "none" if model is None else f"{model_name(model)}*{self.lm_weight:g}"
        fields |= model.signature_fields if model is not None else {}
        fields |= {"form": self.variant, "dist": self.distance if self.distance != self._form.distance else None}
        fields["drop"] = None if self.drop_rate is None or not words else f"{self.drop_rate:g}/rounded"
        fields["weights"] = (
            f"idf#{self.weights.fingerprint}" if isinstance(self.weights, TokenWeights) else self.weights
        )
        return signature(self.metric, fields | {"dtype": dtype_name(self.encoder.dtype)})

    def ngrams(self, texts: Sequence[str], side: Side) -> PackedTokens:
        """Packed n-grams of texts, ready to be matched."""
        return self.ngrams_of(self._words(side).encode(texts, self._language(side)), side)

    def ngrams_of(self, tokens: PackedTokens, side: Side) -> PackedTokens:
        """The same from tokens that are encoded already: filtered, weighted, remapped, averaged, L2-normalised."""
        return self._remapped(self._filtered(tokens, side), side).ngrams(self.ngram).normalized(shared_empty)

    def _words(self, side: Side) -> WordEncoder:
        encoder: Any = self.encoder if side == "source" else self.target_encoder
        return encoder

    def _language(self, side: Side) -> str | None:
        return self.column_languages[side == "target"]

    def _filtered(self, tokens: PackedTokens, side: Side) -> PackedTokens:
        if self.pieces == "words":
            tokens = tokens.select(self._words(side).word_table[tokens.token_ids])
        if self.weights == "norm":
            lengths = np.linalg.norm(tokens.vectors.astype(np.float64), axis=1)
            return dataclasses.replace(tokens, weights=np.maximum(lengths, np.finfo(np.float64).tiny))
        return tokens if self.weights is None else self.weights.apply(tokens)

    def _remapped(self, tokens: PackedTokens, side: Side) -> PackedTokens:
        remapping = self.remapping
        if remapping is None or (side == "target" and self.sides == "source"):
            return tokens
        return tokens.with_vectors(lambda vectors: remapping.apply(vectors, side))

    def mover(self, sources: PackedTokens, predictions: PackedTokens) -> np.ndarray:
        """(N,) the part ``mover`` of N pairs of packed n-grams; NaN where a side has none."""
        return self._begun_mover(sources, predictions)()

    def _begun_mover(self, sources: PackedTokens, predictions: PackedTokens) -> Pending[np.ndarray]:
        distances = begun_distances(sources, predictions, self.distance, self._transport, self.workers)
        return Pending(lambda: self._form.similarity(distances()), ready=distances.ready)

    @property
    def _transport(self) -> Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, float]]:
        return optimal_flow if self.drop_rate is None else RoundedPartialTransport(self.drop_rate)

    def fluency(self, predictions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """(N,) the part ``lm`` and an (N,) mask of texts cut at the language model's limit; zeros without a language
        model."""
        if self.language_model is None:
            return np.zeros(len(predictions)), np.zeros(len(predictions), dtype=bool)
        means, lengths, cut = self.language_model.score(predictions)
        return (length_normalised(means, lengths) if self._form.normalise_lm else means), cut

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> SystemScores:
        if self.target_encoder is self.encoder:
            encoded, *columns = encoded_together(self.encoder, [others, *systems], self.column_languages)
        else:
            source, target = self.column_languages
            encoded = self.encoder.encode(others, source)
            columns = encoded_together(self.target_encoder, systems, (target, target))
        prepare = self.ngrams_of if self.similarity == "mover" else self._remapped
        packed_sources = prepare(encoded, "source")
        compared = []
        for predictions, tokens in zip(systems, columns, strict=True):
            packed = prepare(tokens, "target")
            if self.similarity == "mover":
                similarity = self._begun_mover(packed_sources, packed)
            else:
                similarity = Pending(functools.partial(text_cosines, packed_sources, packed), ready=True)
            lm, long = self.fluency(predictions)
            compared.append((similarity, lm, cut(packed_sources, packed) | long))
        scores = Pending(lambda: [self._chunk_scores(*parts) for parts in compared], ready=False)
        return scores() if all(similarity.ready for similarity, _, _ in compared) else scores

    def _chunk_scores(self, similarity: Pending[np.ndarray], lm: np.ndarray, truncated: np.ndarray) -> ChunkScores:
        values = similarity()
        parts = {self.similarity: values, "lm": lm}
        return ChunkScores(self._combine(values, lm), parts, truncated, np.isnan(values))

    @property
    def cells(self) -> Cells:
        """Costs; an `InputError` with ``similarity="cosine"``."""
        if self.similarity != "mover":
            raise InputError("alignments: there is nothing to align with similarity='cosine'; use similarity='mover'")
        return "cost"

    def _align(self, others: list[str], predictions: list[str]) -> Iterator[Alignment]:
        sides = zip(self._units(others, "source"), self._units(predictions, "target"), strict=True)
        for (x, x_units), (y, y_units) in sides:
            if not (len(x.vectors) and len(y.vectors)):
                yield Alignment.nothing("cost")
                continue
            cost = cost_matrix(x.vectors, y.vectors, self.distance)
            flow, _ = self._transport(cost, x.weights / x.weights.sum(), y.weights / y.weights.sum())
            yield word_plan(x_units, y_units, flow, cost, _UNRELATED[self.distance])

    def _units(self, texts: list[str], side: Side) -> Iterator[tuple[PackedTokens, Units]]:
        """The n-grams of each text, none of a blank one, and the words that they are made of."""
        encoder, language = self._words(side), self._language(side)
        encoded = encoder.encode(texts, language)
        for place, text in enumerate(texts):
            words = encoder.text_words(text, language)
            tokens = dataclasses.replace(encoded.take(slice(place, place + 1)), words=words.positions)
            if not text.strip():
                tokens = tokens.select(np.zeros(len(tokens.words), dtype=bool))
            kept = self._filtered(tokens, side)
            yield self.ngrams_of(tokens, side), ngram_units(words, kept.words, kept.weights, self.ngram)

    def evidence(self, predictions: list[str], alignments: Sequence[Alignment]) -> list[list[Evidence]]:
        return self.weighted_evidence(predictions, alignments, 1.0, self.lm_weight)

    def weighted_evidence(
        self, predictions: list[str], alignments: Sequence[Alignment], weight: float, lm_weight: float
    ) -> list[list[Evidence]]:
        """What speaks against the words of translations, of which the parts ``mover`` and ``lm`` have these weights."""
        best, *similarities = self._form.similarity(np.array([0.0, *(alignment.total for alignment in alignments)]))
        evidence = [
            [match_evidence(alignment, weight * (best - similarity))]
            for alignment, similarity in zip(alignments, similarities, strict=True)
        ]
        if self.language_model is not None and lm_weight > 0:
            lacks = lm_weight * (float(self._form.normalise_lm) - self.fluency(predictions)[0])
            texts = zip(evidence, self.language_model.token_losses(predictions), lacks, strict=True)
            for found, losses, lack in texts:
                found.append(loss_evidence(*losses, -self.language_model.floor, lack))
        return evidence

    def _combine(self, similarity: np.ndarray, lm: np.ndarray) -> np.ndarray:
        return similarity + (self.lm_weight if self.language_model is not None else 0.0) * lm

    def _floor(self) -> tuple[float, dict[str, float]]:
        farthest = np.array([-1.0])
        if self.similarity == "mover":
            farthest = self._form.similarity(np.array([_FARTHEST[self.distance]]))
        lm = np.zeros(1)
        if self.language_model is not None and not self._form.normalise_lm:
            lm = np.array([self.language_model.floor])
        return float(self._combine(farthest, lm)[0]), {self.similarity: float(farthest[0]), "lm": float(lm[0])}


def _preset_encoders(
    bundle: Preset,
    pool: ModelPool,
    pair: tuple[str, str],
    similarity: Similarity,
    override: str | None,
    layer: int | None,
    usual_layer: int | None,
) -> tuple[Any, Any]:
    """The encoders of sources and of predictions."""
    table = encoder_table(bundle, override)
    sources, targets = (bundle.path(table["model"].replace("{lang}", language)) for language in pair)
    layer = table.get("layer") if layer is None else layer
    if Path(sources).is_file() and Path(targets).is_file():
        if layer is not None:
            raise InputError(f"layer {layer}: {sources} is a table of word vectors, which have no layers; leave it out")
        if similarity == "cosine":
            why = f"{sources} is a table of word vectors, use similarity='mover'"
            raise InputError(f"similarity='cosine' needs a vector per text; {why}")
        return pool.static_vectors(sources), pool.static_vectors(targets)
    if sources != targets:
        missing = targets if Path(sources).is_file() else sources
        raise InputError(f"encoder {table['model']}: no such table of word vectors: {missing}")
    load, usual = (pool.sentence_encoder, None) if similarity == "cosine" else (pool.encoder, usual_layer)
    encoder = load(sources, layer=usual if layer is None else layer, revision=table.get("revision"))
    return encoder, encoder
