"""XMoverScore: similarity of a source and its translation, and a language model (Zhao et al.,
2020)."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mtmetrics.checks import number
from mtmetrics.errors import InputError
from mtmetrics.matching.pairs import text_cosines
from mtmetrics.matching.plan import Alignment, Cells, Units, ngram_units, word_plan
from mtmetrics.matching.remapping import Remapping, Sides
from mtmetrics.matching.transport import (
    DISTANCES,
    Distance,
    RoundedPartialTransport,
    cost_matrix,
    optimal_flow,
    word_mover_distances,
)
from mtmetrics.matching.word_errors import Evidence, loss_evidence, match_evidence
from mtmetrics.models.language_model import LanguageModel, length_normalised
from mtmetrics.models.packed import Encoder, PackedTokens, WordEncoder
from mtmetrics.models.stored_vectors import SUFFIX
from mtmetrics.models.token_weights import TokenWeights
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import any_truncated, encoded_columns
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import Opened, map_name, model_name
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import option
from mtmetrics.scorers.words import WordScorer

Role = Literal["source", "target"]
KeptPieces = Literal["words", "all"]
Similarity = Literal["mover", "cosine"]
SIMILARITIES: tuple[Similarity, ...] = ("mover", "cosine")
_UNRELATED: dict[Distance, float] = {
    "sqeuclidean": 2.0,
    "euclidean": 2.0**0.5,
    "cosine": 1.0,
}  # at right angles
_FARTHEST: dict[Distance, float] = {"sqeuclidean": 4.0, "euclidean": 2.0, "cosine": 2.0}
# What has no effect on the comparison of sentence vectors.
_OF_WORDS = ("pieces", "ngram", "distance", "drop_rate")


@dataclasses.dataclass(frozen=True)
class Variant:
    """A published form of the metric; every field but the first three can be chosen
    independently."""

    similarity: Callable[[np.ndarray], np.ndarray]  # of distances
    pieces: KeptPieces  # that n-grams are made of
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


class XMoverScore(WordScorer):
    """Scores a translation against its source: ``similarity + lm_weight * lm``.

    The similarity is the part ``mover``, from the Word Mover's Distance between the (remapped)
    n-grams of source and translation (Sec. 3.1 of the paper), or the part ``cosine``, of their
    (remapped) sentence vectors (Sec. 3.2). The part ``lm`` is the mean log-likelihood of the
    translation. With ``acl20`` ``mover`` lies in [-3, 1] and ``lm`` is at most 0; a score is
    comparable only with scores of the same signature. A segment with a blank side, or one without
    any word that the encoder knows, gets the lowest similarity (all mass moved the farthest) and
    the ``lm`` value of a uniform guess.

    Args:
        encoder: the multilingual encoder, opened at the layer to use; for ``cosine`` one that gives
            a vector per text.
        target_encoder: encoder of the translations where it is another one, such as the word
            vectors of their language in a shared space.
        remapping: linear map of the source side, or None.
        language_model: model of the target language, or None for no language-model part.
        weights: inverse document frequencies of tokens; ``"norm"``, the lengths of their vectors
            (Word Rotator's Distance: Yokoi et al., 2020, Sec. 4.2); or None for uniform weights.
        **options: of `XMoverScore.Settings`; what is None is as the variant has it.

    Raises:
        InputError: an unknown or impossible setting, or one that has no effect with
            ``similarity="cosine"``.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of XMoverScore; layer and maps of a preset belong to its own encoder, so that
        another one needs `maps`, or ``map="none"``."""

        encoder: str | None = option(
            None,
            "another encoder (or, for similarity cosine, a sentence-transformers model), or a "
            "table of word vectors in a shared space; {lang} in its path: one table per language",
            usage="MODEL|TABLE",
            opens=True,
        )
        layer: int | None = option(None, settings.LAYER, opens=True)
        similarity: Similarity = option(
            "mover",
            "mover (of words) or cosine (of sentence vectors)",
            choices=SIMILARITIES,
            preset="similarity",
        )
        pieces: KeptPieces | None = option(
            None,
            "words (no punctuation, no continuation pieces) or all",
            choices=("words", "all"),
            preset="pieces",
        )
        ngram: int | None = option(None, "tokens per n-gram", preset="ngram")
        map: str | None = option(None, settings.MAP, opens=True)
        maps: str | None = option(None, settings.MAPS, usage="PATH|NAME", opens=True)
        sides: Sides = option(
            "source",
            "map the source side or both",
            choices=("source", "both"),
            preset="sides",
        )
        lm: str | None = option(None, settings.LANGUAGE_MODEL, usage="MODEL", opens=True)
        lm_weight: float = option(0.1, "weight of the language model", weighs=True)
        variant: str = option(
            "acl20",
            "published form: acl20, release or uscore",
            choices=tuple(VARIANTS),
            preset="variant",
        )
        distance: Distance | None = option(
            None,
            "sqeuclidean, euclidean or cosine",
            choices=tuple(DISTANCES),
            preset="distance",
        )
        drop_rate: float | None = option(
            None,
            "share of flows that partial transport drops, 0 to 1",
            preset="drop_rate",
        )
        weights: str | None = option(
            None,
            "uniform, norm (lengths of vectors), or a stored table of inverse document frequencies",
            usage="uniform|norm|FILE|NAME",
            preset="weights",
            opens=True,
        )
        workers: int | None = option(None, settings.WORKERS)

    metric = "xmoverscore"
    scale = "at most 1 with the variant `acl20` and no language model"
    told_parts = "`mover` or `cosine`, and `lm`, the mean log-likelihood per token"
    told_alignments = (
        "per segment the words of `source` and `prediction`, the `mass` that moves between "
        "them, its costs (`values`), and their `total`, the distance"
    )
    needs_pair = True
    tables: ClassVar = {
        "encoder": {"model", "revision", "layer"},
        "maps": {"artifact", "kind", "revision", "fingerprint"},
        "language_models.*": {
            "model",
            "revision",
            "weight",
            "start_token",
            "end_token",
            "length_power",
        },
    }

    def compute(self, batch: Batch) -> list[PartScores]:
        if self.target_encoder is self.encoder:
            sources, *systems = encoded_columns(self.encoder, batch)
        else:
            sources = self.encoder.encode(batch.compared, self.languages.source)
            without_sources = dataclasses.replace(batch, sources=None)
            systems = encoded_columns(self.target_encoder, without_sources)
        prepare = self.ngrams_of if self.similarity == "mover" else self._remapped
        compare = self.mover if self.similarity == "mover" else text_cosines
        sources = prepare(sources, "source")
        scores = []
        for predictions, encoded in zip(batch.predictions, systems, strict=True):
            translations = prepare(encoded, "target")
            similarity = compare(sources, translations)
            lm, is_cut = self.fluency(predictions)
            parts = {self.similarity: similarity, "lm": lm}
            truncated = any_truncated(sources, translations) | is_cut
            scores.append(PartScores(self.combined(parts), parts, truncated, np.isnan(similarity)))
        return scores

    def mover(self, sources: PackedTokens, predictions: PackedTokens) -> np.ndarray:
        """(N,) the part ``mover`` of N pairs of packed n-grams; NaN where a side has none."""
        distances = word_mover_distances(
            sources,
            predictions,
            self.distance,
            transport=self._transport,
            workers=self.workers,
        )
        return self._form.similarity(distances)

    @property
    def _transport(
        self,
    ) -> Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, float]]:
        return optimal_flow if self.drop_rate is None else RoundedPartialTransport(self.drop_rate)

    def fluency(self, predictions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """(N,) the part ``lm`` and an (N,) mask of texts cut at the language model's limit; zeros
        without a language model."""
        if self.language_model is None:
            return np.zeros(len(predictions)), np.zeros(len(predictions), dtype=bool)
        means, lengths, cut = self.language_model.score(predictions)
        return (length_normalised(means, lengths) if self._form.normalise_lm else means), cut

    def combined(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        return (
            parts[self.similarity]
            + (self.lm_weight if self.language_model is not None else 0.0) * parts["lm"]
        )

    def _floor(self) -> tuple[float, dict[str, float]]:
        farthest = np.array([-1.0])
        if self.similarity == "mover":
            farthest = self._form.similarity(np.array([_FARTHEST[self.distance]]))
        lm = np.zeros(1)
        if self.language_model is not None and not self._form.normalise_lm:
            lm = np.array([self.language_model.floor])
        parts = {self.similarity: farthest, "lm": lm}
        return float(self.combined(parts)[0]), {
            name: float(values[0]) for name, values in parts.items()
        }

    def __init__(
        self,
        encoder: Encoder,
        target_encoder: Encoder | None = None,
        remapping: Remapping | None = None,
        language_model: LanguageModel | None = None,
        weights: TokenWeights | Literal["norm"] | None = None,
        *,
        lang_pair: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(lang_pair, **options)
        chosen = self.settings
        self.variant, self.similarity = chosen.variant, chosen.similarity
        form = VARIANTS[self.variant]
        self.encoder, self.depth, self.dtype = encoder, encoder.depth, encoder.dtype
        self.target_encoder = encoder if target_encoder is None else target_encoder
        if self.target_encoder.dim != encoder.dim:
            widths = (
                f"vectors of sources have {encoder.dim} numbers, those of predictions "
                f"{self.target_encoder.dim}"
            )
            raise InputError(widths)
        if self.similarity == "cosine":
            given = {name: getattr(chosen, name) for name in _OF_WORDS} | {"weights": weights}
            for name, value in given.items():
                if value is not None:
                    why = "which compares whole texts; leave it out"
                    raise InputError(
                        f"{name} has no effect with similarity='cosine', {why}",
                        option=name,
                        mentions=["similarity='cosine'"],
                    )
        self.pieces: KeptPieces = form.pieces if chosen.pieces is None else chosen.pieces
        self.ngram = form.ngram if chosen.ngram is None else chosen.ngram
        self.distance: Distance = form.distance if chosen.distance is None else chosen.distance
        self.remapping, self.sides = remapping, chosen.sides
        if remapping is not None:
            for side in ("source", "target") if self.sides == "both" else ("source",):
                remapping.apply(np.zeros((0, encoder.dim), dtype=np.float32), side)
        self.language_model, self.lm_weight = language_model, chosen.lm_weight
        self.weights = weights
        if isinstance(weights, TokenWeights):
            for vocabulary in {self._words(side).vocabulary_size for side in ("source", "target")}:
                weights.require_vocabulary(vocabulary)
        self.drop_rate = form.drop_rate if chosen.drop_rate is None else chosen.drop_rate
        if self.drop_rate is not None and not 0.0 <= number("drop_rate", self.drop_rate) <= 1.0:
            raise InputError(
                f"drop_rate {self.drop_rate!r}: must lie between 0 and 1", option="drop_rate"
            )
        self.workers = settings.worker_count(chosen.workers)
        self._form = form

    @classmethod
    def from_opened(cls, opened: Opened) -> Self:
        """The language pair chooses map and language model."""
        given, chosen = opened.given, opened.chosen
        cosine = chosen.similarity == "cosine"
        if cosine:  # where what a preset says of words has no effect
            chosen = dataclasses.replace(
                chosen, **{name: given.get(name) for name in (*_OF_WORDS, "weights")}
            )
        sources, targets = _source_and_target_encoders(opened, VARIANTS[chosen.variant].layer)
        remapping = opened.remapping(sources, "sentence" if cosine else "word")
        model, lm_weight = opened.language_model()
        weights: Any = None if chosen.weights in (None, "uniform") else chosen.weights
        if weights not in (None, "norm"):
            weights = TokenWeights.load(opened.bundle.path(str(weights)))
        of_class = opened.keywords() | chosen.of_class()
        if given.get("lm_weight") is None:
            of_class["lm_weight"] = lm_weight
        return cls(sources, targets, remapping, model, weights, **of_class)

    def signature_fields(self) -> dict[str, object]:
        form, matches_words = self._form, self.similarity == "mover"
        has_target_encoder = self.target_encoder is not self.encoder
        fields: dict[str, object] = {
            "enc": model_name(self.encoder),
            "tenc": model_name(self.target_encoder) if has_target_encoder else None,
            "layer": self.encoder.layer,
            "sim": None if matches_words else self.similarity,
        }
        if matches_words:
            fields["pieces"] = None if self.pieces == form.pieces else self.pieces
            fields["ngram"] = self.ngram
        fields["map"] = map_name(self.remapping)
        if self.remapping is not None and self.sides != "source":
            fields["sides"] = self.sides
        fields |= self._language_model_fields()
        fields["form"] = self.variant
        if matches_words:
            fields["dist"] = None if self.distance == form.distance else self.distance
            if self.drop_rate is not None:
                fields["drop"] = f"{self.drop_rate:g}/rounded"
        fields["weights"] = self.weights
        if isinstance(self.weights, TokenWeights):
            fields["weights"] = f"idf#{self.weights.fingerprint}"
        return fields | self.settings.signature_fields()

    def _language_model_fields(self) -> dict[str, object]:
        model = self.language_model
        if model is None:
            return {"lm": "none"}
        return {"lm": f"{model_name(model)}*{self.lm_weight:g}", **model.signature_fields}

    def ngrams(self, texts: Sequence[str], side: Role) -> PackedTokens:
        """Packed n-grams of texts, ready to be matched."""
        return self.ngrams_of(self._words(side).encode(texts, self._language(side)), side)

    def ngrams_of(self, tokens: PackedTokens, side: Role) -> PackedTokens:
        """Packed n-grams of tokens: filtered, weighted, remapped, averaged, L2-normalised."""
        remapped = self._remapped(self._filtered(tokens, side), side)
        return remapped.ngrams(self.ngram).normalized()

    def _words(self, side: Role) -> WordEncoder:
        encoder: Any = self.encoder if side == "source" else self.target_encoder
        return encoder

    def _language(self, side: Role) -> str | None:
        return self.languages.source if side == "source" else self.languages.target

    def _filtered(self, tokens: PackedTokens, side: Role) -> PackedTokens:
        if self.pieces == "words":
            tokens = tokens.select(self._words(side).word_table[tokens.token_ids])
        if self.weights == "norm":
            lengths = np.linalg.norm(tokens.vectors.astype(np.float64), axis=1)
            return dataclasses.replace(
                tokens, weights=np.maximum(lengths, np.finfo(np.float64).tiny)
            )
        return tokens if self.weights is None else self.weights.apply(tokens)

    def _remapped(self, tokens: PackedTokens, side: Role) -> PackedTokens:
        remapping = self.remapping
        if remapping is None or (side == "target" and self.sides == "source"):
            return tokens
        return tokens.with_vectors(lambda vectors: remapping.apply(vectors, side))

    @property
    def cells(self) -> Cells:
        """Costs; an `InputError` with ``similarity="cosine"``."""
        if self.similarity != "mover":
            raise InputError(
                "alignments: there is nothing to align with similarity='cosine'; use "
                "similarity='mover'",
                mentions=["similarity='cosine'", "similarity='mover'"],
            )
        return "cost"

    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        [predictions] = batch.predictions
        sources, targets = batch.compared, predictions
        sides = zip(self._units(sources, "source"), self._units(targets, "target"), strict=True)
        for (x, x_units), (y, y_units) in sides:
            if not (len(x.vectors) and len(y.vectors)):
                yield Alignment.nothing("cost")
                continue
            cost = cost_matrix(x.vectors, y.vectors, self.distance)
            flow, _ = self._transport(
                cost, x.weights / x.weights.sum(), y.weights / y.weights.sum()
            )
            yield word_plan(x_units, y_units, flow, cost, _UNRELATED[self.distance])

    def _units(self, texts: list[str], side: Role) -> Iterator[tuple[PackedTokens, Units]]:
        """The n-grams of each text, none of a blank one, and the words that they are made of."""
        encoder, language = self._words(side), self._language(side)
        encoded = encoder.encode(texts, language)
        for place, text in enumerate(texts):
            words = encoder.text_words(text, language)
            tokens = dataclasses.replace(
                encoded.take(slice(place, place + 1)), words=words.positions
            )
            if not text.strip():
                tokens = tokens.select(np.zeros(len(tokens.words), dtype=bool))
            kept = self._filtered(tokens, side)
            yield (
                self.ngrams_of(tokens, side),
                ngram_units(words, kept.words, kept.weights, self.ngram),
            )

    def evidence(
        self, predictions: list[str], alignments: Sequence[Alignment]
    ) -> list[list[Evidence]]:
        return self.weighted_evidence(predictions, alignments, 1.0, self.lm_weight)

    def weighted_evidence(
        self,
        predictions: list[str],
        alignments: Sequence[Alignment],
        weight: float,
        lm_weight: float,
    ) -> list[list[Evidence]]:
        """The evidence against the words of translations, with these weights of the parts ``mover``
        and ``lm``."""
        best, *similarities = self._form.similarity(
            np.array([0.0, *(alignment.total for alignment in alignments)])
        )
        evidence = [
            [match_evidence(alignment, weight * (best - similarity))]
            for alignment, similarity in zip(alignments, similarities, strict=True)
        ]
        if self.language_model is not None and lm_weight > 0:
            lacks = lm_weight * (float(self._form.normalise_lm) - self.fluency(predictions)[0])
            texts = zip(evidence, self.language_model.token_losses(predictions), lacks, strict=True)
            for of_text, losses, lack in texts:
                of_text.append(loss_evidence(*losses, -self.language_model.floor, lack))
        return evidence


def _source_and_target_encoders(opened: Opened, usual_layer: int | None) -> tuple[Any, Any]:
    """The encoders of sources and of predictions of XMoverScore: two tables of word vectors, or one
    encoder, twice; `usual_layer` is read where nothing says another one."""
    pool, table, cosine = opened.pool, opened.encoder_table(), opened.chosen.similarity == "cosine"
    paths = (table["model"].replace("{lang}", language) for language in opened.needed_pair())
    (sources, targets), layer = map(opened.bundle.path, paths), table["layer"]
    if sources.endswith(SUFFIX) and not cosine:
        raise InputError(
            f"encoder {sources}: holds a vector per text; use similarity='cosine'",
            option="encoder",
            mentions=["similarity='cosine'"],
        )
    if Path(sources).is_file() and Path(targets).is_file() and not sources.endswith(SUFFIX):
        if layer is not None:
            raise InputError(
                f"layer {layer}: {sources} is a table of word vectors, which have no layers; "
                "leave it out",
                option="layer",
            )
        if cosine:
            why = f"{sources} is a table of word vectors, use similarity='mover'"
            raise InputError(
                f"similarity='cosine' needs a vector per text; {why}",
                option="similarity",
                mentions=["similarity='cosine'", "similarity='mover'"],
            )
        return pool.static_vectors(sources), pool.static_vectors(targets)
    if sources != targets:
        missing = targets if Path(sources).is_file() else sources
        raise InputError(
            f"encoder {table['model']}: no such table of word vectors: {missing}", option="encoder"
        )
    load, usual = (pool.sentence_encoder, None) if cosine else (pool.encoder, usual_layer)
    encoder = load(sources, layer=usual if layer is None else layer, revision=table["revision"])
    return encoder, encoder
