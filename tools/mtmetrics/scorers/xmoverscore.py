"""XMoverScore (Zhao et al., 2020): similarity of a source and its translation, and a language model.

The class `XMoverScore` reads from the top down: its settings, the formula (`compute` and
`combined`), the steps of the formula in the order of their use, the words at fault, and last how a
scorer is made from models or from a preset.

Tokens and n-grams are packed: the vectors of all texts of a batch lie in one array, one text after
the other (`mtmetrics.models.packed.PackedTokens`)."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
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
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.stored_vectors import SUFFIX
from mtmetrics.models.token_weights import TokenWeights
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import any_truncated, encoded_columns
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import (
    encoder_table,
    load_language_model,
    load_remapping,
    required_pair,
)
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import loading_option, option, worker_count
from mtmetrics.scorers.signature import map_name, model_name
from mtmetrics.scorers.words import WordScorer

# A side of a segment: the source, or its translation.
Role = Literal["source", "target"]
KeptPieces = Literal["words", "all"]
Similarity = Literal["mover", "cosine"]
SIMILARITIES: tuple[Similarity, ...] = ("mover", "cosine")
# The distance of two vectors of length 1 that are at right angles, and of two that are opposite.
_UNRELATED: dict[Distance, float] = {"sqeuclidean": 2.0, "euclidean": 2.0**0.5, "cosine": 1.0}
_FARTHEST: dict[Distance, float] = {"sqeuclidean": 4.0, "euclidean": 2.0, "cosine": 2.0}
# Options that change only the word-level similarity.
_WORD_OPTIONS = ("pieces", "ngram", "distance", "drop_rate")


@dataclasses.dataclass(frozen=True)
class Variant:
    """A published form of the metric.

    The first two attributes belong to the form. An option of `XMoverScore.Settings` replaces each
    of the others.

    Attributes:
        to_similarity: turns (n,) distances into (n,) similarities.
        normalise_lm: whether the part ``lm`` is normalised by `length_normalised`. If not, it is the
            mean log-likelihood per token.
        pieces: the pieces that n-grams are made of.
        distance: distance of two n-grams.
        ngram: pieces per n-gram.
        layer: layer of the encoder; None for the last.
        drop_rate: share of flows that partial transport drops; None for full transport.
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

    The similarity is the part ``mover``, from the Word Mover's Distance between the (remapped)
    n-grams of source and translation (Sec. 3.1 of the paper), or the part ``cosine``, of their
    (remapped) sentence vectors (Sec. 3.2). The part ``lm`` is the mean log-likelihood per token of
    the translation; ``release`` normalises it by the length once more (`length_normalised`).

    With ``acl20`` ``mover`` lies in [-3, 1] and ``lm`` is at most 0; a score is comparable only with
    scores of the same signature.

    A segment with a blank side, or one without any word that the encoder knows, gets the lowest
    similarity: -1 for ``cosine``; for ``mover`` that of all mass moved the farthest. Its ``lm`` is
    that of a guess at random among all tokens; with ``release`` it is 0, the lowest value there.
    Without a language model ``lm`` is 0 in all segments.

    Args:
        encoder: the multilingual encoder, opened at the layer to use; for ``cosine`` one that gives
            a vector per text.
        target_encoder: encoder of the translations where it is another one, such as the word
            vectors of their language in a shared space.
        remapping: linear map between the vector spaces of the languages, or None. It maps the source
            side, or both, as the option `sides` says.
        language_model: model of the target language, or None for no language-model part.
        weights: inverse document frequencies of tokens; ``"norm"``, the lengths of their vectors
            (Word Rotator's Distance: Yokoi et al., 2020, Sec. 4.2); or None for uniform weights.
        **options: of `XMoverScore.Settings`. If `pieces`, `ngram`, `distance` or `drop_rate` is None,
            the value of the variant holds. ``drop_rate=None`` is full transport with ``acl20`` and
            ``uscore``. With ``release`` pass ``drop_rate=0``: no flow is dropped then, but masses
            and costs are rounded as the published code does.

    Raises:
        InputError: an unknown or impossible setting, or one that has no effect with
            ``similarity="cosine"``.
    """

    metric = "xmoverscore"
    scale = "at most 1 with the variant `acl20` and no language model"
    parts_help = "`mover` or `cosine`, and `lm`, the mean log-likelihood per token"
    alignments_help = (
        "per segment the words of `source` and `prediction`, the `mass` that moves between "
        "them, its costs (`values`), and their `total`, the distance"
    )
    needs_pair = True
    preset_keys: ClassVar = {
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

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of XMoverScore.

        The layer and the maps of a preset suit the encoder of that preset only. With another
        `encoder`, name `maps` that suit it too, or pass ``map="none"``.
        """

        encoder: str | None = loading_option(
            "another encoder (for similarity cosine, a sentence-transformers model), or a table of "
            "word vectors in a shared space; {lang} in the path of the table stands for the "
            "language, with one table for each",
            usage="MODEL|TABLE",
        )
        layer: int | None = loading_option(settings.LAYER)
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
        map: str | None = loading_option(settings.MAP)
        maps: str | None = loading_option(settings.MAPS, usage="PATH|NAME")
        sides: Sides = option(
            "source",
            "side whose vectors are mapped: source or both",
            choices=("source", "both"),
            preset="sides",
        )
        lm: str | None = loading_option(settings.LANGUAGE_MODEL, usage="MODEL")
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
        weights: str | None = loading_option(
            "uniform, norm (lengths of vectors), or a stored table of inverse document frequencies",
            usage="uniform|norm|FILE|NAME",
            preset="weights",
        )
        workers: int | None = option(None, settings.WORKERS)

    settings: Settings

    def compute(self, batch: Batch) -> list[PartScores]:
        """Computes the scores of each system of a batch, and their parts.

        A segment is undefined if a side has nothing to match; it gets the floor score afterwards.
        """
        source_tokens, system_tokens = self._encoded(batch)
        sources = self._comparable(source_tokens, "source")
        scores = []
        for predictions, tokens in zip(batch.predictions, system_tokens, strict=True):
            translations = self._comparable(tokens, "target")
            if self.similarity == "mover":
                similarities = self.mover(sources, translations)
            else:
                similarities = text_cosines(sources, translations)
            lm, is_cut = self.lm_part(predictions)
            parts = {self.similarity: similarities, "lm": lm}
            truncated = any_truncated(sources, translations) | is_cut
            undefined = np.isnan(similarities)
            scores.append(PartScores(self.combined(parts), parts, truncated, undefined))
        return scores

    def combined(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Adds up (n,) parts to (n,) scores."""
        lm_weight = 0.0 if self.language_model is None else self.lm_weight
        return parts[self.similarity] + lm_weight * parts["lm"]

    def _floor(self) -> tuple[float, dict[str, float]]:
        """Returns score and parts of a segment with a blank side, see the docstring of the class."""
        lowest = np.array([-1.0])
        if self.similarity == "mover":
            lowest = self._variant_record.to_similarity(np.array([_FARTHEST[self.distance]]))
        lm = np.zeros(1)
        if self.language_model is not None and not self._variant_record.normalise_lm:
            lm = np.array([self.language_model.floor])
        parts = {self.similarity: lowest, "lm": lm}
        score = float(self.combined(parts)[0])
        return score, {name: float(values[0]) for name, values in parts.items()}

    def _encoded(self, batch: Batch) -> tuple[PackedTokens, list[PackedTokens]]:
        """Encodes the sources and each system: tokens, or a vector per text."""
        if self.target_encoder is self.encoder:
            sources, *systems = encoded_columns(self.encoder, batch)
            return sources, systems
        sources = self.encoder.encode(batch.compared, self.iso_languages.source)
        without_sources = dataclasses.replace(batch, sources=None)
        return sources, encoded_columns(self.target_encoder, without_sources)

    def _comparable(self, tokens: PackedTokens, role: Role) -> PackedTokens:
        """Turns tokens into what the similarity compares: n-grams, or remapped text vectors."""
        if self.similarity == "mover":
            return self.ngrams_of(tokens, role)
        return self._remapped(tokens, role)

    def ngrams_of(self, tokens: PackedTokens, role: Role) -> PackedTokens:
        """Builds packed n-grams from tokens: filters, weights, remaps, averages, L2-normalises."""
        remapped = self._remapped(self._filtered(tokens, role), role)
        return remapped.ngrams(self.ngram).normalized()

    def _filtered(self, tokens: PackedTokens, role: Role) -> PackedTokens:
        """Drops the tokens that do not count, and sets the weights of the others."""
        if self.pieces == "words":
            tokens = tokens.select(self._word_encoder(role).word_table[tokens.token_ids])
        if self.weights == "norm":
            lengths = np.linalg.norm(tokens.vectors.astype(np.float64), axis=1)
            positive_lengths = np.maximum(lengths, np.finfo(np.float64).tiny)
            return dataclasses.replace(tokens, weights=positive_lengths)
        return tokens if self.weights is None else self.weights.apply(tokens)

    def _remapped(self, tokens: PackedTokens, role: Role) -> PackedTokens:
        """Maps the vectors of a side; returns them as they are if there is no map for that side."""
        remapping = self.remapping
        if remapping is None or (role == "target" and self.mapped_sides == "source"):
            return tokens
        return tokens.map_vectors(lambda vectors: remapping.apply(vectors, role))

    def mover(self, sources: PackedTokens, predictions: PackedTokens) -> np.ndarray:
        """Computes the part ``mover`` of N pairs of packed n-grams: (N,), NaN where a side has no
        n-grams."""
        distances = word_mover_distances(
            sources,
            predictions,
            self.distance,
            transport=self._transport,
            workers=self.workers,
        )
        return self._variant_record.to_similarity(distances)

    @property
    def _transport(
        self,
    ) -> Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, float]]:
        """The function that solves full or partial transport: it turns (n, m) costs, and the (n,)
        and (m,) masses of both sides, into the (n, m) flow and its cost."""
        return optimal_flow if self.drop_rate is None else RoundedPartialTransport(self.drop_rate)

    def lm_part(self, predictions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Computes the part ``lm`` of N translations.

        Returns:
            (N,) values, zeros without a language model; and an (N,) mask of texts that were cut at
            the model's limit.
        """
        if self.language_model is None:
            return np.zeros(len(predictions)), np.zeros(len(predictions), dtype=bool)
        means, lengths, is_cut = self.language_model.score(predictions)
        if self._variant_record.normalise_lm:
            return length_normalised(means, lengths), is_cut
        return means, is_cut

    def encode_ngrams(self, texts: Sequence[str], role: Role) -> PackedTokens:
        """Encodes texts, and builds their packed n-grams, ready to be matched."""
        encoder, language = self._word_encoder(role), self._language(role)
        return self.ngrams_of(encoder.encode(texts, language), role)

    def _word_encoder(self, role: Role) -> WordEncoder:
        # The similarity of words is computed only if both encoders are word encoders.
        encoder: Any = self.encoder if role == "source" else self.target_encoder
        return encoder

    def _language(self, role: Role) -> str | None:
        return self.iso_languages.source if role == "source" else self.iso_languages.target

    @property
    def cells(self) -> Cells:
        """The meaning of the values of alignments: costs.

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
        sources = self._ngram_units(batch.compared, "source")
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
        """Yields for each text its n-grams, and the words that they are made of; no n-grams for a
        blank text."""
        encoder, language = self._word_encoder(role), self._language(role)
        encoded = encoder.encode(texts, language)
        for place, text in enumerate(texts):
            words = encoder.text_words(text, language)
            tokens = dataclasses.replace(
                encoded.take(slice(place, place + 1)), words=words.positions
            )
            if not text.strip():
                tokens = tokens.select(np.zeros(len(tokens.words), dtype=bool))
            kept_tokens = self._filtered(tokens, role)
            units = ngram_units(words, kept_tokens.words, kept_tokens.weights, self.ngram)
            yield self.ngrams_of(tokens, role), units

    def evidence(
        self, predictions: list[str], alignments: Sequence[Alignment]
    ) -> list[list[Evidence]]:
        """Collects the evidence against the words of each translation, see `weighted_evidence`."""
        return self.weighted_evidence(predictions, alignments, 1.0, self.lm_weight)

    def weighted_evidence(
        self,
        predictions: list[str],
        alignments: Sequence[Alignment],
        mover_weight: float,
        lm_weight: float,
    ) -> list[list[Evidence]]:
        """Collects the evidence against the words of translations.

        A part is evidence by its shortfall: how much it lacks to its best value.

        Args:
            predictions: n translations.
            alignments: the alignment of each.
            mover_weight: weight of the part ``mover`` in the score.
            lm_weight: weight of the part ``lm``.

        Returns:
            For each translation the evidence of the alignment, and that of the language model if
            there is one.
        """
        # The first is the distance of a perfect translation.
        distances = np.array([0.0, *(alignment.total for alignment in alignments)])
        best, *similarities = self._variant_record.to_similarity(distances)
        evidence = [
            [match_evidence(alignment, mover_weight * (best - similarity))]
            for alignment, similarity in zip(alignments, similarities, strict=True)
        ]
        if self.language_model is not None and lm_weight > 0:
            # A normalised likelihood is at most 1, a logarithm at most 0.
            highest_lm = float(self._variant_record.normalise_lm)
            lm_shortfalls = lm_weight * (highest_lm - self.lm_part(predictions)[0])
            token_losses = self.language_model.token_losses(predictions)
            for text_evidence, (spans, losses), shortfall in zip(
                evidence, token_losses, lm_shortfalls, strict=True
            ):
                uniform_loss = -self.language_model.floor
                text_evidence.append(loss_evidence(spans, losses, uniform_loss, shortfall))
        return evidence

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
        variant = self._variant_record = VARIANTS[settings.variant]
        self.variant, self.similarity = settings.variant, settings.similarity
        self.encoder, self.encoder_layers, self.dtype = encoder, encoder.depth, encoder.dtype
        self.target_encoder = encoder if target_encoder is None else target_encoder
        if self.target_encoder.dim != encoder.dim:
            raise InputError(
                f"vectors of sources have {encoder.dim} numbers, those of predictions "
                f"{self.target_encoder.dim}"
            )
        if self.similarity == "cosine":
            word_options = {name: getattr(settings, name) for name in _WORD_OPTIONS}
            _refuse_word_options(word_options | {"weights": weights})
        self.pieces: KeptPieces = settings.pieces or variant.pieces
        self.ngram = settings.ngram or variant.ngram
        self.distance: Distance = settings.distance or variant.distance
        self.remapping, self.mapped_sides = remapping, settings.sides
        if remapping is not None:
            _check_width(remapping, encoder.dim, self.mapped_sides)
        self.language_model, self.lm_weight = language_model, settings.lm_weight
        self.weights = weights
        if isinstance(weights, TokenWeights):
            for role in ("source", "target"):
                weights.require_vocabulary(self._word_encoder(role).vocabulary_size)
        self.drop_rate = variant.drop_rate if settings.drop_rate is None else settings.drop_rate
        if self.drop_rate is not None and not 0.0 <= number("drop_rate", self.drop_rate) <= 1.0:
            raise InputError(
                f"drop_rate {self.drop_rate!r}: must lie between 0 and 1", option="drop_rate"
            )
        self.workers = worker_count(settings.workers)

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """Makes a scorer of a preset, with the map and the language model of the language pair."""
        is_cosine = settings.similarity == "cosine"
        if is_cosine:
            # The preset's options of words have no effect on vectors of texts, so they are no error.
            settings = settings.without_preset_values([*_WORD_OPTIONS, "weights"])
        encoder, target_encoder = _load_encoders(preset, settings, models)
        remapping = load_remapping(
            preset,
            models,
            encoder,
            settings.lang_pair,
            kind=settings.map,
            artifact=settings.maps,
            level="sentence" if is_cosine else "word",
        )
        language_model, lm_weight = load_language_model(
            preset, models, settings.lang_pair, settings.lm
        )
        if "lm_weight" not in settings.requested:
            settings = dataclasses.replace(settings, lm_weight=lm_weight)
        weights: Any = settings.weights
        if weights == "uniform":
            weights = None
        elif weights not in (None, "norm"):
            weights = TokenWeights.load(preset.path(weights))
        return cls(encoder, target_encoder, remapping, language_model, weights, settings=settings)

    def signature_fields(self) -> dict[str, object]:
        """Returns the fields of the signature: models first, then options; None for a field that is
        left out."""
        variant, matches_words = self._variant_record, self.similarity == "mover"
        has_target_encoder = self.target_encoder is not self.encoder
        fields: dict[str, object] = {
            "enc": model_name(self.encoder),
            "tenc": model_name(self.target_encoder) if has_target_encoder else None,
            "layer": self.encoder.layer,
            "sim": None if matches_words else self.similarity,
        }
        if matches_words:
            fields["pieces"] = None if self.pieces == variant.pieces else self.pieces
            fields["ngram"] = self.ngram
        fields["map"] = map_name(self.remapping)
        if self.remapping is not None and self.mapped_sides != "source":
            fields["sides"] = self.mapped_sides
        fields |= self._language_model_fields()
        fields["form"] = self.variant
        if matches_words:
            fields["dist"] = None if self.distance == variant.distance else self.distance
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


def _refuse_word_options(options: Mapping[str, object]) -> None:
    """Raises an `InputError` where an option of words is set though whole texts are compared."""
    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"{name} has no effect with similarity='cosine', which compares whole texts; leave "
                "it out",
                option=name,
                mentions=["similarity='cosine'"],
            )


def _check_width(remapping: Remapping, dim: int, mapped_sides: Sides) -> None:
    """Raises an `InputError` if a map does not fit vectors of `dim` numbers, or has nothing for a
    side that is to be mapped."""
    no_vectors = np.zeros((0, dim), dtype=np.float32)
    roles: tuple[Role, ...] = ("source", "target") if mapped_sides == "both" else ("source",)
    for role in roles:
        # Mapping checks the width, also that of no vectors.
        remapping.apply(no_vectors, role)


def _load_encoders(
    preset: Preset, settings: XMoverScore.Settings, models: ModelPool
) -> tuple[Encoder, Encoder]:
    """Loads the encoders of sources and of translations: one encoder twice, or two tables of word
    vectors.

    Raises:
        InputError: the encoder does not give what the similarity compares, has no layers, or one
            of two tables is missing.
    """
    table = encoder_table(preset, settings.encoder, settings.layer)
    layer = table["layer"]
    source_model, target_model = (
        preset.path(table["model"].replace("{lang}", language))
        for language in required_pair(settings.lang_pair)
    )
    is_cosine = settings.similarity == "cosine"
    has_text_vectors = source_model.endswith(SUFFIX)
    if has_text_vectors and not is_cosine:
        raise InputError(
            f"encoder {source_model}: holds a vector per text; use similarity='cosine'",
            option="encoder",
            mentions=["similarity='cosine'"],
        )
    are_files = Path(source_model).is_file() and Path(target_model).is_file()
    if are_files and not has_text_vectors:
        _check_static_vectors(source_model, layer, is_cosine)
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
        layer = VARIANTS[settings.variant].layer if layer is None else layer
        encoder = models.encoder(source_model, layer=layer, revision=table["revision"])
    return encoder, encoder


def _check_static_vectors(path: str, layer: int | None, is_cosine: bool) -> None:
    """Raises an `InputError` where a table of word vectors cannot do what is asked for."""
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
