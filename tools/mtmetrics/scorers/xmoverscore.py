"""XMoverScore (Zhao et al., 2020): similarity of a source and its translation, and a language model.

The class `XMoverScore` is in this order: its settings, the formula (`compute` and `combine_parts`),
the steps of the formula in the order of their use, the detection of wrong words, and last how a scorer
is made from models or from a preset. `__init__` sets the attributes that the steps use.

The tokenizer of the encoder splits a text into tokens, also called pieces: a word, or a part of one.
Tokens and n-grams are packed: the vectors of all texts of a batch lie in one array, one text after
the other (`mtmetrics.models.packed.PackedTokens`)."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from mtmetrics.artifacts.presets import Preset
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
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.stored_vectors import SUFFIX as TEXT_VECTORS_SUFFIX
from mtmetrics.models.token_weights import TokenWeights
from mtmetrics.scorers.base import any_truncated, encode_columns
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import (
    ENCODER_KEYS,
    LANGUAGE_MODEL_KEYS,
    MAP_KEYS,
    encoder_table,
    load_language_model,
    load_remapping,
    required_pair,
)
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import (
    LANGUAGE_MODEL_HELP,
    LAYER_HELP,
    MAP_HELP,
    MAPS_HELP,
    WORKERS_HELP,
    loading_option,
    option,
    worker_count,
)
from mtmetrics.scorers.settings import Settings as BaseSettings
from mtmetrics.scorers.signature import map_name, model_name
from mtmetrics.scorers.words import WordScorer

# The text of a segment that tokens belong to: the source, or its translation ("target").
Role = Literal["source", "target"]
KeptPieces = Literal["words", "all"]
Similarity = Literal["mover", "cosine"]
SIMILARITIES: tuple[Similarity, ...] = ("mover", "cosine")
# The distance between two orthogonal unit vectors, and between two opposite ones. A word whose matches
# cost as much as orthogonal vectors counts as entirely wrong, see `match_evidence`.
_UNRELATED: dict[Distance, float] = {"sqeuclidean": 2.0, "euclidean": 2.0**0.5, "cosine": 1.0}
_FARTHEST: dict[Distance, float] = {"sqeuclidean": 4.0, "euclidean": 2.0, "cosine": 2.0}
# Options that change only the word-level similarity.
_WORD_OPTIONS = ("pieces", "ngram", "distance", "drop_rate", "weights")


@dataclasses.dataclass(frozen=True)
class Variant:
    """A published variant of the metric.

    The first two attributes are fixed. Each of the others is the default of the option with the same
    name in `XMoverScore.Settings`; only `from_preset` reads `layer`.

    Attributes:
        to_similarity: turns (n,) distances into (n,) similarities.
        normalise_lm: whether the part ``lm`` is normalised by `length_normalised`. If not, it is the
            log-likelihood as `LanguageModel.score` returns it, by default the mean per token.
        pieces: the tokens that n-grams are made of: ``"all"``; or ``"words"``, special tokens and the
            first token of each word that is not punctuation.
        distance: distance between two n-grams.
        ngram: tokens per n-gram.
        layer: layer of the encoder; None for the last.
        drop_rate: fraction of the flows between n-grams that partial transport drops; None for full
            transport.
    """

    to_similarity: Callable[[np.ndarray], np.ndarray]
    normalise_lm: bool
    pieces: KeptPieces
    distance: Distance
    ngram: int
    layer: int | None
    drop_rate: float | None


VARIANTS: dict[str, Variant] = {
    # score_utils.py of the authors: the code of the paper.
    "acl20": Variant(
        to_similarity=lambda distances: 1.0 - distances,
        normalise_lm=False,
        pieces="words",
        distance="sqeuclidean",
        ngram=2,
        layer=None,
        drop_rate=None,
    ),
    # score_utils_2.py of the authors, which their scorer.py uses.
    "release": Variant(
        to_similarity=lambda distances: 1.0 / (1.0 + distances),
        normalise_lm=True,
        pieces="all",
        distance="euclidean",
        ngram=2,
        layer=8,
        drop_rate=0.3,
    ),
    # The word-level part of UScore (Belouadi and Eger, 2023).
    "uscore": Variant(
        to_similarity=lambda distances: -distances,
        normalise_lm=False,
        pieces="words",
        distance="sqeuclidean",
        ngram=1,
        layer=None,
        drop_rate=None,
    ),
}


class XMoverScore(WordScorer):
    """Scores a translation against its source: ``similarity + lm_weight * lm``.

    The similarity is one of two parts: ``mover``, from the Word Mover's Distance between the
    (remapped) n-grams of source and translation (Sec. 3.1 of the paper); or ``cosine``, between their
    (remapped) sentence vectors (Sec. 3.2). The part ``lm`` is the mean log-likelihood per token of
    the translation. With ``release`` it is ``exp(mean) ** (1 / length)``, between 0 and 1, as in the
    published code (`length_normalised`).

    With ``acl20`` ``mover`` lies in [-3, 1] and ``lm`` is at most 0; a score is comparable only with
    scores of the same signature.

    A segment gets the lowest similarity if a text is blank or has no word that the encoder knows:
    -1 for ``cosine``; for ``mover`` the similarity at the greatest possible distance. Its ``lm`` is
    the log-likelihood of a uniform guess over the vocabulary; with ``release`` it is 0, the lowest
    value there. Without a language model ``lm`` is 0 in all segments.

    Args:
        encoder: the multilingual encoder, loaded with the layer to use; for ``cosine`` an encoder
            with one vector per text.
        target_encoder: the encoder of the translations if it is a different one, such as the word
            vectors of their language in a shared space.
        remapping: linear map between the vector spaces of the languages, or None. The option `sides`
            says whether it maps the source vectors only, or both.
        language_model: model of the target language, or None for no language-model part.
        weights: inverse document frequencies of tokens; ``"norm"``, the lengths of their vectors
            (Word Rotator's Distance: Yokoi et al., 2020, Sec. 4.2); or None for uniform weights.
        settings: all options as one object, which replaces `options`.
        **options: fields of `XMoverScore.Settings`, except for those that `from_preset` loads
            (`encoder`, `layer`, `map`, `maps`, `lm` and `weights`). If `pieces`, `ngram`, `distance`
            or `drop_rate` is None, the value of the variant is used. For full transport with
            ``release`` pass ``drop_rate=0``; masses and costs are still rounded as in the published
            code.

    Raises:
        InputError: an unknown or impossible setting, or one that has no effect with
            ``similarity="cosine"``.
    """

    metric = "xmoverscore"
    scale = "at most 1 without a language model"
    parts_help = (
        "`mover` or `cosine`, and `lm`, the mean log-likelihood per token (with the variant `release` "
        "a value from 0 to 1 that is computed from it)"
    )
    alignments_help = (
        "one dictionary per segment. `source` and `prediction`: their words; `values` and `mass`: "
        "matrices with a row per word of `source` and a column per word of `prediction`, the costs "
        "and the mass that moves; `total`: the sum of `mass` times `values`, which is the distance"
    )
    needs_pair = True
    preset_keys: ClassVar = {
        "encoder": ENCODER_KEYS,
        "maps": MAP_KEYS,
        "language_models.*": LANGUAGE_MODEL_KEYS | {"weight"},
    }

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(BaseSettings):
        """The options of XMoverScore.

        The layer and the maps of a preset suit the encoder of that preset only. With another
        `encoder`, name `maps` that suit it too, or pass ``map="none"``.
        """

        encoder: str | None = loading_option(
            "another encoder (for similarity cosine also a sentence-transformers model, or a Parquet "
            "file with the columns text and vector), or a table of aligned word vectors, in whose "
            "path {lang} is replaced by the language",
            usage="MODEL|TABLE",
        )
        layer: int | None = loading_option(LAYER_HELP)
        similarity: Similarity = option(
            "mover",
            "mover compares words by Word Mover's Distance, cosine compares one vector per text",
            choices=SIMILARITIES,
            preset="similarity",
        )
        pieces: KeptPieces | None = option(
            None,
            "words keeps special tokens and the first piece of each word that is not punctuation, all "
            "keeps every piece (default: that of the variant)",
            choices=("words", "all"),
            preset="pieces",
        )
        ngram: int | None = option(
            None, "pieces per n-gram (default: that of the variant)", preset="ngram"
        )
        map: str | None = loading_option(MAP_HELP)
        maps: str | None = loading_option(MAPS_HELP, usage="PATH|NAME")
        sides: Sides = option(
            "source",
            "sides whose vectors are mapped",
            choices=("source", "both"),
            preset="sides",
        )
        lm: str | None = loading_option(LANGUAGE_MODEL_HELP, usage="MODEL")
        # The preset sets it together with the language model, see `from_preset`.
        lm_weight: float = option(0.1, "weight of the language model", weighs=True)
        variant: str = option(
            "acl20",
            "formula of the paper's code (acl20), of its authors' later code (release), or of "
            "UScore (uscore)",
            choices=tuple(VARIANTS),
            preset="variant",
        )
        distance: Distance | None = option(
            None,
            "distance between two n-grams (default: that of the variant)",
            choices=tuple(DISTANCES),
            preset="distance",
        )
        drop_rate: float | None = option(
            None,
            "leave out this share of the matches of n-grams, those that move the least mass (0 to 1; "
            "default: that of the variant)",
            preset="drop_rate",
        )
        weights: str | None = loading_option(
            "weight of each piece: uniform (all alike), norm (the length of its vector), or a "
            "stored table of inverse document frequencies",
            usage="uniform|norm|FILE|NAME",
            preset="weights",
        )
        workers: int | None = option(None, WORKERS_HELP)

    settings: Settings

    def compute(self, batch: Batch) -> list[PartScores]:
        """Computes the scores of each system of a batch, and their parts.

        A similarity is undefined (NaN) if one of the texts has nothing to match; the segment gets
        the floor score afterwards.
        """
        encoded_sources, encoded_systems = self._encode(batch)
        sources = self._prepare(encoded_sources, "source")
        scores = []
        for texts, encoded_texts in zip(batch.predictions, encoded_systems, strict=True):
            translations = self._prepare(encoded_texts, "target")
            if self.similarity == "mover":
                similarities = self.mover_part(sources, translations)
            else:
                similarities = text_cosines(sources, translations)
            lm, is_truncated_by_lm = self.lm_part(texts)
            parts = {self.similarity: similarities, "lm": lm}
            is_truncated = any_truncated(sources, translations) | is_truncated_by_lm
            is_undefined = np.isnan(similarities)
            scores.append(PartScores(self.combine_parts(parts), parts, is_truncated, is_undefined))
        return scores

    def combine_parts(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Returns the weighted sum of the (n,) parts."""
        lm_weight = 0.0 if self.language_model is None else self.lm_weight
        return parts[self.similarity] + lm_weight * parts["lm"]

    def floor_with_parts(self) -> tuple[float, dict[str, float]]:
        """Returns score and parts of a segment with a blank text, see the docstring of the class."""
        lowest = np.array([-1.0])
        if self.similarity == "mover":
            lowest = self.variant.to_similarity(np.array([_FARTHEST[self.distance]]))
        lm = np.zeros(1)
        if self.language_model is not None and not self.variant.normalise_lm:
            # The log-likelihood of a uniform guess.
            lm = np.array([self.language_model.floor])
        parts = {self.similarity: lowest, "lm": lm}
        score = float(self.combine_parts(parts)[0])
        return score, {name: float(values[0]) for name, values in parts.items()}

    def _encode(self, batch: Batch) -> tuple[PackedTokens, list[PackedTokens]]:
        """Encodes the sources and each system: tokens, or a vector per text."""
        if self.target_encoder is self.encoder:
            sources, *systems = encode_columns(self.encoder, batch)
            return sources, systems
        sources = self.encoder.encode(list(batch.sources or ()), self.iso_languages.source)
        without_sources = dataclasses.replace(batch, sources=None)
        return sources, encode_columns(self.target_encoder, without_sources)

    def _prepare(self, tokens: PackedTokens, role: Role) -> PackedTokens:
        """Prepares vectors for the similarity: builds n-grams of tokens, or remaps text vectors."""
        if self.similarity == "mover":
            return self.build_ngrams(tokens, role)
        return self._remap(tokens, role)

    def build_ngrams(self, tokens: PackedTokens, role: Role) -> PackedTokens:
        """Builds packed n-grams from tokens: filters, weights, remaps, averages, L2-normalises."""
        return self._ngrams_from_kept_tokens(self._filter(tokens, role), role)

    def _ngrams_from_kept_tokens(self, kept_tokens: PackedTokens, role: Role) -> PackedTokens:
        """Builds packed n-grams from tokens that `_filter` has kept and weighted."""
        return self._remap(kept_tokens, role).ngrams(self.ngram).normalized()

    def _filter(self, tokens: PackedTokens, role: Role) -> PackedTokens:
        """Drops the tokens that do not count, and sets the weights of the others."""
        if self.pieces == "words":
            # For each token of the vocabulary, whether it is special, or begins a word and is not
            # punctuation.
            is_kept = self._word_encoder(role).word_table
            tokens = tokens.select(is_kept[tokens.token_ids])
        if self.weights == "norm":
            lengths = np.linalg.norm(tokens.vectors.astype(np.float64), axis=1)
            # A text whose weights are all 0 would have no mass to move.
            positive_lengths = np.maximum(lengths, np.finfo(np.float64).tiny)
            return dataclasses.replace(tokens, weights=positive_lengths)
        return tokens if self.weights is None else self.weights.apply(tokens)

    def _remap(self, tokens: PackedTokens, role: Role) -> PackedTokens:
        """Maps the vectors of sources or translations; returns them unchanged if the map is not for
        them, or there is no map."""
        remapping = self.remapping
        if remapping is None or (role == "target" and self.mapped_sides == "source"):
            return tokens
        return tokens.map_vectors(lambda vectors: remapping.apply(vectors, role))

    def mover_part(self, sources: PackedTokens, predictions: PackedTokens) -> np.ndarray:
        """Computes the part ``mover`` from the packed n-grams of n pairs of texts.

        Returns:
            (n,) similarities; NaN if either text has no n-grams.
        """
        distances = word_mover_distances(
            sources,
            predictions,
            self.distance,
            transport=self._transport,
            workers=self.workers,
        )
        return self.variant.to_similarity(distances)

    @property
    def _transport(
        self,
    ) -> Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, float]]:
        """The function that solves full or partial transport: it turns (k, l) costs, and the (k,)
        and (l,) masses of both texts, into the (k, l) flow and its cost."""
        return optimal_flow if self.drop_rate is None else RoundedPartialTransport(self.drop_rate)

    def lm_part(self, predictions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Computes the part ``lm`` of n translations.

        Returns:
            (n,) values, zeros without a language model; and an (n,) mask of the texts that were
            truncated at the model's limit.
        """
        if self.language_model is None:
            return np.zeros(len(predictions)), np.zeros(len(predictions), dtype=bool)
        means, lengths, truncated = self.language_model.score(predictions)
        if self.variant.normalise_lm:
            return length_normalised(means, lengths), truncated
        return means, truncated

    def _word_encoder(self, role: Role) -> WordEncoder:
        encoder = self.encoder if role == "source" else self.target_encoder
        # The types cannot express that with ``mover`` both encoders are word encoders.
        return cast(WordEncoder, encoder)

    @property
    def cells(self) -> Cells:
        """Meaning of the values in the cells of alignments: costs, that is, distances.

        Raises:
            InputError: with ``similarity="cosine"``, which aligns no words.
        """
        if self.similarity != "mover":
            raise InputError(
                "alignments: there is nothing to align with similarity='cosine'; use "
                "similarity='mover'",
                mentions=["similarity='cosine'", "similarity='mover'"],
            )
        return "cost"

    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        """Aligns the words of each source with those of its translation, for a batch of one system.

        Yields:
            One alignment per segment: the transport between n-grams, summed up to words.
        """
        [predictions] = batch.predictions
        sources = self._ngram_units(list(batch.sources or ()), "source")
        targets = self._ngram_units(predictions, "target")
        for (source_ngrams, source_units), (target_ngrams, target_units) in zip(
            sources, targets, strict=True
        ):
            if not (len(source_ngrams.vectors) and len(target_ngrams.vectors)):
                yield Alignment.nothing("cost")
                continue
            cost = cost_matrix(source_ngrams.vectors, target_ngrams.vectors, self.distance)
            source_masses = source_ngrams.weights / source_ngrams.weights.sum()
            target_masses = target_ngrams.weights / target_ngrams.weights.sum()
            flow, _ = self._transport(cost, source_masses, target_masses)
            yield word_plan(source_units, target_units, flow, cost, _UNRELATED[self.distance])

    def _ngram_units(
        self, texts: Sequence[str], role: Role
    ) -> Iterator[tuple[PackedTokens, Units]]:
        """Yields for each text its n-grams, and the words of the text with their share in each
        n-gram. A blank text has no n-grams."""
        encoder, languages = self._word_encoder(role), self.iso_languages
        language = languages.source if role == "source" else languages.target
        encoded = encoder.encode(texts, language)
        for index, text in enumerate(texts):
            text_words = encoder.text_words(text, language)
            tokens = encoded.take(slice(index, index + 1))
            # `word_positions` now holds the index of each token's word in `text_words`.
            tokens = dataclasses.replace(tokens, word_positions=text_words.positions)
            if not text.strip():
                tokens = tokens.select(np.zeros(len(tokens.word_positions), dtype=bool))
            kept_tokens = self._filter(tokens, role)
            units = ngram_units(
                text_words, kept_tokens.word_positions, kept_tokens.weights, self.ngram
            )
            yield self._ngrams_from_kept_tokens(kept_tokens, role), units

    def evidence(
        self, predictions: list[str], alignments: Sequence[Alignment]
    ) -> list[list[Evidence]]:
        """Returns the evidence that words are wrong, see `weighted_evidence`."""
        return self.weighted_evidence(predictions, alignments, 1.0, self.lm_weight)

    def weighted_evidence(
        self,
        predictions: list[str],
        alignments: Sequence[Alignment],
        mover_weight: float,
        lm_weight: float,
    ) -> list[list[Evidence]]:
        """Returns the evidence that words of translations are wrong, from each part of the score.

        The shortfall of a part is its distance from the best possible value. `match_evidence` and
        `loss_evidence` divide it among the words.

        Args:
            predictions: n translations.
            alignments: the alignment of each.
            mover_weight: weight of the part ``mover`` in the score.
            lm_weight: weight of the part ``lm``.

        Returns:
            For each translation the evidence of the alignment, then that of the language model if
            there is one and `lm_weight` is positive.
        """
        # A perfect translation has the distance 0.
        [best_similarity] = self.variant.to_similarity(np.zeros(1))
        distances = np.array([alignment.total for alignment in alignments])
        shortfalls = mover_weight * (best_similarity - self.variant.to_similarity(distances))
        evidence = [
            [match_evidence(alignment, shortfall)]
            for alignment, shortfall in zip(alignments, shortfalls, strict=True)
        ]
        if self.language_model is not None and lm_weight > 0:
            lm_evidence = self._lm_evidence(self.language_model, predictions, lm_weight)
            for text_evidence, text_lm_evidence in zip(evidence, lm_evidence, strict=True):
                text_evidence.append(text_lm_evidence)
        return evidence

    def _lm_evidence(
        self, language_model: LanguageModel, predictions: list[str], lm_weight: float
    ) -> Iterator[Evidence]:
        """Yields the evidence of the language model against the words of each translation."""
        # A normalised likelihood is at most 1, a mean log-likelihood at most 0.
        best = 1.0 if self.variant.normalise_lm else 0.0
        shortfalls = lm_weight * (best - self.lm_part(predictions)[0])
        uniform_loss = -language_model.floor
        token_losses = language_model.token_losses(predictions)
        for (spans, losses), shortfall in zip(token_losses, shortfalls, strict=True):
            yield loss_evidence(spans, losses, uniform_loss, shortfall)

    def __init__(
        self,
        encoder: Encoder,
        target_encoder: Encoder | None = None,
        remapping: Remapping | None = None,
        language_model: LanguageModel | None = None,
        weights: TokenWeights | Literal["norm"] | None = None,
        *,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(settings=settings, **options)
        settings = self.settings
        self.variant = VARIANTS[settings.variant]
        self.similarity = settings.similarity
        self.encoder = encoder
        self.encoder_depth = encoder.depth
        self.dtype = encoder.dtype
        self.target_encoder = encoder if target_encoder is None else target_encoder
        if self.target_encoder.dim != encoder.dim:
            raise InputError(
                f"vectors of sources have {encoder.dim} numbers, those of predictions "
                f"{self.target_encoder.dim}"
            )
        if self.similarity == "cosine":
            word_options = {name: getattr(settings, name) for name in _WORD_OPTIONS}
            # The argument `weights` counts, not the option `weights`, which names a table.
            _refuse_word_options(word_options | {"weights": weights})
        self.pieces: KeptPieces = settings.pieces or self.variant.pieces
        self.ngram = settings.ngram or self.variant.ngram
        self.distance: Distance = settings.distance or self.variant.distance
        self.remapping = remapping
        self.mapped_sides = settings.sides
        if remapping is not None:
            _check_map(remapping, encoder.dim, self.mapped_sides)
        self.language_model = language_model
        self.lm_weight = settings.lm_weight
        self.weights = weights
        if isinstance(weights, TokenWeights):
            for role in ("source", "target"):
                weights.require_vocabulary(self._word_encoder(role).vocabulary_size)
        self.drop_rate = (
            self.variant.drop_rate if settings.drop_rate is None else settings.drop_rate
        )
        if self.drop_rate is not None and not 0.0 <= self.drop_rate <= 1.0:
            raise InputError(
                f"drop_rate {self.drop_rate!r}: must lie between 0 and 1", option="drop_rate"
            )
        self.workers = worker_count(settings.workers)

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """Makes a scorer from a preset, with the map and the language model of the language pair.

        Raises:
            InputError: the language pair is missing, or options contradict each other or the models.
            ArtifactError: the preset names no model or map where one is needed.
        """
        is_cosine = settings.similarity == "cosine"
        if is_cosine:
            # Word-level options of the preset are ignored here; only those of the user are an error.
            settings = settings.without_preset_values(_WORD_OPTIONS)
        encoder, target_encoder = _load_encoders(preset, settings, models)
        remapping = load_remapping(
            preset,
            models,
            encoder,
            settings.lang_pair,
            map_kind=settings.map,
            map_location=settings.maps,
            level="sentence" if is_cosine else "word",
        )
        language_model, lm_weight = load_language_model(
            preset, models, settings.lang_pair, settings.lm
        )
        if "lm_weight" not in settings.set_by_user:
            settings = dataclasses.replace(settings, lm_weight=lm_weight)
        weights = _load_weights(preset, settings.weights)
        return cls(encoder, target_encoder, remapping, language_model, weights, settings=settings)

    def signature_fields(self) -> dict[str, object]:
        """Returns the fields of the signature: models first, then options. A field with the value None
        is left out.

        ``tenc`` is the encoder of the translations if it differs from ``enc``; ``form`` is the
        variant. ``/rounded`` means that transport rounds masses and costs, see
        `RoundedPartialTransport`.
        """
        variant = self.variant
        is_cosine = self.similarity == "cosine"
        has_target_encoder = self.target_encoder is not self.encoder
        fields: dict[str, object] = {
            "enc": model_name(self.encoder),
            "tenc": model_name(self.target_encoder) if has_target_encoder else None,
            "layer": self.encoder.layer,
            "sim": "cosine" if is_cosine else None,
        }
        if not is_cosine:
            fields["pieces"] = None if self.pieces == variant.pieces else self.pieces
            fields["ngram"] = self.ngram
        fields["map"] = map_name(self.remapping)
        if self.remapping is not None and self.mapped_sides != "source":
            fields["sides"] = self.mapped_sides
        fields |= self._language_model_fields()
        fields["form"] = self.settings.variant
        if not is_cosine:
            fields["dist"] = None if self.distance == variant.distance else self.distance
            if self.drop_rate is not None:
                fields["drop"] = f"{self.drop_rate:g}/rounded"
        if isinstance(self.weights, TokenWeights):
            fields["weights"] = f"idf#{self.weights.fingerprint}"
        else:
            fields["weights"] = self.weights
        return fields | self.settings.signature_fields()

    def _language_model_fields(self) -> dict[str, object]:
        model = self.language_model
        if model is None:
            return {"lm": "none"}
        return {"lm": f"{model_name(model)}*{self.lm_weight:g}", **model.signature_fields}


def _refuse_word_options(options: Mapping[str, object]) -> None:
    """Raises an `InputError` if a word-level option is set although whole texts are compared."""
    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"{name} has no effect with similarity='cosine', which compares whole texts; leave "
                "it out",
                option=name,
                mentions=["similarity='cosine'"],
            )


def _check_map(remapping: Remapping, dim: int, mapped_sides: Sides) -> None:
    """Raises an `InputError` if a map does not fit `dim`-dimensional vectors, or lacks a side that is
    to be mapped."""
    no_vectors = np.zeros((0, dim), dtype=np.float32)
    roles: tuple[Role, ...] = ("source", "target") if mapped_sides == "both" else ("source",)
    for role in roles:
        # `apply` checks the dimension even of an empty array.
        remapping.apply(no_vectors, role)


def _load_weights(preset: Preset, weights: str | None) -> TokenWeights | Literal["norm"] | None:
    """Loads the token weights that the option `weights` names."""
    if weights is None or weights == "uniform":
        return None
    if weights == "norm":
        return "norm"
    return TokenWeights.load(preset.path(weights))


def _load_encoders(
    preset: Preset, settings: XMoverScore.Settings, models: ModelPool
) -> tuple[Encoder, Encoder]:
    """Loads the encoders of sources and of translations. They are two tables of word vectors, or one
    encoder for both.

    Raises:
        InputError: the encoder does not give the vectors that the similarity compares; the user asks
            for a layer of an encoder that has no layers; one of two tables is missing; or vectors of
            texts are in two files.
    """
    table = encoder_table(preset, settings.encoder, settings.layer)
    layer = table["layer"]
    source_language, target_language = required_pair(settings.lang_pair)
    source_model = preset.path(table["model"].replace("{lang}", source_language))
    target_model = preset.path(table["model"].replace("{lang}", target_language))
    is_cosine = settings.similarity == "cosine"
    has_text_vectors = source_model.endswith(TEXT_VECTORS_SUFFIX)
    if has_text_vectors and not is_cosine:
        raise InputError(
            f"encoder {source_model}: holds a vector per text; use similarity='cosine'",
            option="encoder",
            mentions=["similarity='cosine'"],
        )
    if has_text_vectors and source_model != target_model:
        raise InputError(
            f"encoder {table['model']}: one file has to hold the vectors of sources and of "
            "translations; leave out {lang}",
            option="encoder",
        )
    are_word_tables = (
        Path(source_model).is_file() and Path(target_model).is_file() and not has_text_vectors
    )
    if are_word_tables:
        _check_word_table(source_model, layer, is_cosine)
        return models.static_vectors(source_model), models.static_vectors(target_model)
    if source_model != target_model:
        missing = target_model if Path(source_model).is_file() else source_model
        raise InputError(
            f"encoder {table['model']}: no such table of word vectors: {missing}", option="encoder"
        )
    encoder: Encoder
    if is_cosine:
        encoder = models.sentence_encoder(source_model, layer=layer, revision=table["revision"])
    else:
        word_layer = VARIANTS[settings.variant].layer if layer is None else layer
        encoder = models.encoder(source_model, layer=word_layer, revision=table["revision"])
    return encoder, encoder


def _check_word_table(path: str, layer: int | None, is_cosine: bool) -> None:
    """Raises an `InputError` if the user asks for a layer of a table of word vectors, or for vectors of
    texts."""
    if layer is not None:
        raise InputError(
            f"layer {layer}: {path} is a table of word vectors, which have no layers; leave it out",
            option="layer",
        )
    if is_cosine:
        raise InputError(
            f"similarity='cosine' needs a vector per text; {path} is a table of word vectors, use "
            "similarity='mover'",
            option="similarity",
            mentions=["similarity='cosine'", "similarity='mover'"],
        )
