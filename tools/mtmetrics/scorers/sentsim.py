"""SentSim: sentence similarity combined with a similarity of words (Song et al., 2021)."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import for_language
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.greedy import bertscore
from mtmetrics.matching.pairs import sentence_mover_distances, text_cosines
from mtmetrics.matching.plan import Alignment, Cells, greedy_plan, pieces
from mtmetrics.matching.transport import euclidean_distances, optimal_flow, word_mover_distances
from mtmetrics.models.packed import Encoder, PackedTokens
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.text_units import TextUnits
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.base import any_truncated, encode_columns
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import target_language
from mtmetrics.scorers.results import MetricResult, PartScores, join_results
from mtmetrics.scorers.settings import (
    LAYER_HELP,
    WORKERS_HELP,
    loading_option,
    option,
    worker_count,
)
from mtmetrics.scorers.settings import Settings as BaseSettings
from mtmetrics.scorers.side import SETTING_OF_SIDE, Side, Table, requested_side, resolve_side
from mtmetrics.scorers.signature import model_name
from mtmetrics.scorers.words import PIECES_HELP, WordScorer

PARTS = (
    "sss",  # sentence semantic similarity: cosine of sentence vectors (Sec. 3.3)
    "bertscore",  # F1 of BERTScore (Sec. 3.2)
    "wmd",  # Word Mover's Distance between contextual vectors (Sec. 3.1)
    "smd",  # Sentence Mover's Distance between mean token vectors (App. A.1)
)
# A better translation has a lower value of these parts.
_DISTANCES = ("wmd", "smd")
# Values of the other parts for a segment with a blank side. A distance has no worst value.
_FLOORS = {"sss": -1.0, "bertscore": 0.0}
_MODEL_TABLE_KEYS = {"words", "words_revision", "layer", "sentences", "sentences_revision"}
# Smaller differences are rounding noise, because vectors are float32.
_NOISE = 1e-6
# Weight of each of two parts, as in the paper.
_DEFAULT_WEIGHT = 0.5
# The two combinations that the paper recommends.
VARIANTS = {"bertscore": "sss+bertscore", "wmd": "sss+wmd"}


def min_max(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Scales (n,) values so that `low` becomes 0 and `high` becomes 1, and clips them to [0, 1].
    Returns 0.5 for all values if `low` and `high` are equal up to rounding noise."""
    noise = _NOISE * max(1.0, abs(low), abs(high))
    if high - low <= noise:
        return np.full(len(values), 0.5)
    return np.clip((values - low) / (high - low), 0.0, 1.0)


class SentSim(WordScorer):
    """``w1 e^A + w2 e^B`` of sentence similarity A and word similarity B, both normalised (Eq. 7 of
    the paper).

    Normalised means: each part is scaled to [0, 1], and a distance is turned into a similarity,
    ``1 - x``. So a score lies between 1 and e if the weights sum to 1, as they do by default.

    Scaling needs bounds: the values of a part that become 0 and 1. With ``normalize="batch"`` they
    are the lowest and highest values among all segments of a system that are scored together (in one
    call, or from one file), as in the published code. The score of a segment then depends on the
    other segments, and scores of two systems or of two calls cannot be compared. With ``"fixed"`` the
    bounds are stored with the preset. A segment with a blank side gets the lowest score, and does not
    influence the bounds.

    Args:
        word_encoder: the encoder of tokens, loaded with the layer to use.
        sentence_encoder: the encoder that gives one vector per text.
        bounds: for ``normalize="fixed"``, part -> its lowest and highest value.
        settings: all options as one object, which replaces `options`.
        **options: fields of `SentSim.Settings`, except for `words` and `layer`, which `from_preset`
            loads; and `against`, the side to compare with, ``"source"`` or ``"reference"``.

    Raises:
        InputError: a setting is unknown or impossible, or ``"fixed"`` has no bounds for a part.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(BaseSettings):
        """The options of SentSim. The bounds of a preset are valid only for its `words` (the encoder
        of tokens), `layer` and `normalize_vectors`."""

        setting: str | None = option(
            None, "the paper's name for against: src-mt (source) or mt-ref (reference)"
        )
        variant: str = option(
            "bertscore",
            "similarity of words: bertscore, or wmd (Word Mover's Distance)",
            choices=tuple(VARIANTS),
            preset="variant",
        )
        combine: str | None = option(
            None,
            "the parts to combine, instead of those of variant: any of sss, bertscore, wmd and smd, "
            "joined by +",
            usage="PART+PART",
        )
        words: str | None = loading_option(
            "another encoder of words: a folder, the name of a bundled model, or a Hub repository",
            usage="MODEL",
        )
        layer: int | None = loading_option(LAYER_HELP)
        w1: float = option(
            _DEFAULT_WEIGHT,
            "weight of the first of two parts (without combine: the similarity of sentences)",
            preset="w1",
            weighs=True,
        )
        w2: float = option(
            _DEFAULT_WEIGHT,
            "weight of the second of two parts (without combine: the similarity of words)",
            preset="w2",
            weighs=True,
        )
        normalize: str = option(
            "batch",
            "batch scales each part by its lowest and highest value among the segments of a system, "
            "as published; fixed scales it by bounds that the preset stores",
            choices=("batch", "fixed"),
            preset="normalize",
        )
        normalize_vectors: bool = option(
            False,
            "scale word vectors to length 1 for Word and Sentence Mover's Distance (the published "
            "code does not)",
            preset="normalize_vectors",
        )
        workers: int | None = option(None, WORKERS_HELP)

    settings: Settings

    metric = "sentsim"
    sides = (Side.SOURCE, Side.REFERENCE)
    scale = "from `w1 + w2` to `e (w1 + w2)`, e = 2.718"
    parts_help = "`sss` and `bertscore`, or the parts that you chose, before they are scaled"
    alignments_help = (
        f"{PIECES_HELP}. `values`: cosines or costs (`cells` says which); `mass`: how much "
        "of the text each match stands for; `total`: the sum of `mass` times `values`, which is "
        "for cosines the mean of precision and recall, for costs the distance"
    )
    preset_keys: ClassVar = {
        "src-mt": _MODEL_TABLE_KEYS,
        "mt-ref": _MODEL_TABLE_KEYS,
        "mt-refs.*": _MODEL_TABLE_KEYS,
        # [bounds.src-mt] holds the bounds of [src-mt], [bounds."mt-refs.en"] those of [mt-refs.en].
        "bounds.*": set(PARTS),
    }

    def __init__(
        self,
        word_encoder: TokenEncoder,
        sentence_encoder: Encoder,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        *,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(settings=settings, **options)
        settings = self.settings
        self.word_encoder, self.sentence_encoder = word_encoder, sentence_encoder
        self.encoder_depth = word_encoder.depth
        self.dtype = word_encoder.dtype
        self.parts = _part_names(settings)
        self.weights = self._checked_weights(settings.w1, settings.w2)
        self.side = resolve_side(
            self.side_choice(), _side_of_settings(settings), preset_side=None, given_columns=None
        )
        self.normalize = settings.normalize
        self.normalize_vectors = settings.normalize_vectors
        self.has_independent_segments = self.normalize == "fixed"
        self.bounds = dict(bounds or {})
        unbounded_parts = [name for name in self.parts if name not in self.bounds]
        if unbounded_parts and self.normalize == "fixed":
            raise InputError(
                f"normalize='fixed': no bounds for {', '.join(unbounded_parts)} against the {self.side}; "
                "use normalize='batch'",
                option="normalize",
                mentions=["normalize='fixed'", "normalize='batch'"],
            )
        self.workers = worker_count(settings.workers)

    def _checked_weights(self, *weights: float) -> list[float]:
        """Returns the weights of the parts: `weights` if there are two parts, else equal ones."""
        for name, weight in zip(("w1", "w2"), weights, strict=True):
            if weight < 0:
                raise InputError(f"{name} {weight!r}: must be at least 0", option=name)
        if len(self.parts) == len(weights):
            if not any(weights):
                raise InputError("w1 and w2 are both 0; one of them must be above 0", option="w1")
            return list(weights)
        if set(weights) != {_DEFAULT_WEIGHT}:
            raise InputError(
                f"w1 and w2 weigh two parts, not {'+'.join(self.parts)}; leave them out",
                option="w1",
            )
        return [1 / len(self.parts)] * len(self.parts)

    def compute(self, batch: Batch) -> list[PartScores]:
        """Computes the parts of each system, and combines them. With ``normalize="batch"`` the scores
        are preliminary: they serve only to choose the best of several references."""
        compared, *systems = self._encode(batch)
        results = []
        for predictions in systems:
            parts = {name: self._compute_part(name, compared, predictions) for name in self.parts}
            is_empty = np.any([np.isnan(values) for values in parts.values()], axis=0)
            is_truncated = any_truncated(*compared.values(), *predictions.values())
            if self.normalize == "fixed":
                segments = self._scale_and_combine(parts, self.bounds)
            else:
                # The bounds depend on all batches, so `score_batches` computes the scores at the end.
                # Until then weighted sums of the unscaled parts stand in for them.
                oriented_parts = [
                    -values if name in _DISTANCES else values for name, values in parts.items()
                ]
                segments = np.array(self.weights) @ oriented_parts
            results.append(PartScores(segments, parts, is_truncated, is_empty))
        return results

    def _scale_and_combine(
        self, parts: Mapping[str, np.ndarray], bounds: Mapping[str, tuple[float, float]]
    ) -> np.ndarray:
        """Returns the (n,) scores ``w1 e^A + w2 e^B``.

        Args:
            parts: the (n,) unscaled values of each part.
            bounds: the lowest and highest value of each part.
        """
        terms = []
        for weight, name in zip(self.weights, self.parts, strict=True):
            scaled = min_max(parts[name], *bounds[name])
            if name in _DISTANCES:
                scaled = 1.0 - scaled
            terms.append(weight * np.exp(scaled))
        return np.sum(terms, axis=0)

    def _encode(self, batch: Batch) -> list[dict[str, PackedTokens]]:
        """Encodes the sources or references, then the translations of each system.

        Returns:
            One dictionary per column: ``words`` -> tokens, ``sentences`` -> vectors of texts. A key
            that no part needs is left out.
        """
        encoded: dict[str, list[PackedTokens]] = {}
        if self.parts != ("sss",):
            encoded["words"] = encode_columns(self.word_encoder, batch)
        if "sss" in self.parts:
            encoded["sentences"] = encode_columns(self.sentence_encoder, batch)
        columns = zip(*encoded.values(), strict=True)
        return [dict(zip(encoded, column, strict=True)) for column in columns]

    def _compute_part(
        self,
        name: str,
        compared: Mapping[str, PackedTokens],
        predictions: Mapping[str, PackedTokens],
    ) -> np.ndarray:
        """Returns the (n,) values of a part; NaN where a side has nothing to compare."""
        if name == "sss":
            return text_cosines(compared["sentences"], predictions["sentences"])
        x, y = compared["words"], predictions["words"]
        if name == "bertscore":
            scores = bertscore(
                predictions=y.normalized(), references=x.normalized(), threads=self.workers
            )
            return scores.f1
        # The published code computes its distances without special tokens.
        x, y = x.select(x.word_positions >= 0), y.select(y.word_positions >= 0)
        if self.normalize_vectors:
            x, y = x.normalized(), y.normalized()
        if name == "smd":
            return sentence_mover_distances(x, y)
        return word_mover_distances(x, y, euclidean_distances, workers=self.workers)

    def score_batches(self, batches: Iterable[Batch]) -> Iterator[list[MetricResult]]:
        """Scores batch by batch. With ``normalize="batch"``, yields the results of all segments at
        once, after the last batch."""
        results = super().score_batches(batches)
        if self.normalize == "fixed":
            yield from results
            return
        results_of_systems = list(zip(*results, strict=True))
        if results_of_systems:
            yield [
                self._rescale(join_results(results_of_batches))
                for results_of_batches in results_of_systems
            ]

    def _rescale(self, result: MetricResult) -> MetricResult:
        """Recomputes the scores of a system. The extremes of its parts are the bounds."""
        parts = {name: values.copy() for name, values in result.parts.items()}
        bounds = {name: _extremes(values[~result.empty]) for name, values in parts.items()}
        for name in parts:
            if name in _DISTANCES:
                # `floor_with_parts` could not set the worst distance. The other parts have their floor.
                parts[name][result.empty] = bounds[name][1]
        scores = self._scale_and_combine(parts, bounds)
        segments = np.where(result.empty, sum(self.weights), scores)
        return dataclasses.replace(result, segments=segments, parts=parts)

    def combine_parts(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Combines precomputed parts, see `Scorer.combine_parts`. With ``normalize="batch"`` their
        extremes are the bounds. Unlike in `score_batches`, blank segments influence the bounds,
        because `parts` does not say which segments are blank."""
        bounds: Mapping[str, tuple[float, float]] = self.bounds
        if self.normalize == "batch":
            bounds = {name: _extremes(values) for name, values in parts.items()}
        return self._scale_and_combine(parts, bounds)

    def floor_with_parts(self) -> tuple[float, dict[str, float]]:
        """Returns the score and the parts of a segment with a blank side. All of its scaled parts
        are 0, so its score is the sum of the weights. With ``normalize="batch"`` the score is minus
        infinity until `score_batches` knows the bounds."""
        if self.normalize == "batch":
            return -np.inf, {name: _FLOORS.get(name, 0.0) for name in self.parts}
        worst = {
            name: self.bounds[name][1] if name in _DISTANCES else _FLOORS[name]
            for name in self.parts
        }
        return sum(self.weights), worst

    @property
    def cells(self) -> Cells:
        """Meaning of the values in the cells of alignments: cosines if the part ``bertscore`` is in
        use, else costs if ``wmd`` is.

        Raises:
            InputError: neither part is in use.
        """
        if "bertscore" in self.parts:
            return "cosine"
        if "wmd" in self.parts:
            return "cost"
        raise InputError(f"alignments: {self.no_alignments_reason}")

    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        """Aligns the word pieces of each pair of texts: each with the most similar one if `cells` are
        cosines, by optimal transport if they are costs."""
        cells = self.cells
        packed = encode_columns(self.word_encoder, batch)
        if cells == "cosine" or self.normalize_vectors:
            packed = [side.normalized() for side in packed]
        sides = (
            pieces(self.word_encoder, tokens, *column, special_tokens=cells == "cosine")
            for tokens, column in zip(packed, batch.texts_and_languages, strict=True)
        )
        for (x, x_pieces), (y, y_pieces) in zip(*sides, strict=True):
            # A special token, whose span is (0, 0), may be matched, but carries no mass.
            x_mass, y_mass = (
                (units.spans[:, 1] > 0).astype(np.float64) for units in (x_pieces, y_pieces)
            )
            if not x_mass.any() or not y_mass.any():
                yield Alignment.nothing(cells)
            elif cells == "cosine":
                # Recall averages over the pieces of x, precision over the pieces of y.
                recall, precision = (0, x_mass), (1, y_mass)
                yield greedy_plan(x_pieces, y_pieces, x @ y.T, recall, precision)
            else:
                yield _transport_plan(x, x_pieces, x_mass, y, y_pieces, y_mass)

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """Loads the encoders of the preset for the side to compare with.

        Raises:
            InputError: `lang_pair` is missing, and the preset chooses its models by the target
                language; `against` is missing, and the preset has models for both sides; or options
                contradict each other or the preset.
            ArtifactError: the preset names no models.
        """
        tables = preset.settings
        if tables.keys().isdisjoint({"src-mt", "mt-ref", "mt-refs"}):
            raise ArtifactError(
                f"preset {preset.name}: has neither a [src-mt] nor an [mt-ref] table",
                option="preset",
            )
        side = cls.choose_allowed_side(preset, _side_of_settings(settings))
        target = target_language(settings.lang_pair)
        table_name, table = _model_table(preset, SETTING_OF_SIDE[side], target)
        if settings.combine is not None and "variant" in settings.set_by_user:
            raise InputError(
                f"variant {settings.variant!r} and combine {settings.combine!r} both say what is "
                "combined; pass one of them",
                option="variant",
            )
        preset_variant = tables.get("score", {}).get("variant", cls.Settings.variant)
        if "combine" in settings.set_by_user or settings.variant != preset_variant:
            # The weights of the preset belong to the parts of the preset.
            settings = settings.without_preset_values(["w1", "w2"])
        if settings.normalize == "fixed":
            _check_bounds_apply(preset, table, settings)
        word_encoder = models.encoder(**_word_encoder_table(preset, table, settings))
        sentence_encoder = models.sentence_encoder(
            preset.path(table["sentences"]), revision=table.get("sentences_revision")
        )
        settings = dataclasses.replace(settings, setting=None, against=side)
        bounds = tables.get("bounds", {}).get(table_name)
        return cls(word_encoder, sentence_encoder, bounds, settings=settings)

    def signature_fields(self) -> dict[str, object]:
        """Returns the fields of the signature: setting, parts, encoders, then options."""
        word_encoder = None if self.parts == ("sss",) else self.word_encoder
        sentence_encoder = self.sentence_encoder if "sss" in self.parts else None
        has_default_weights = len(self.parts) != 2 or set(self.weights) == {_DEFAULT_WEIGHT}
        weights = ",".join(f"{weight:g}" for weight in self.weights)
        return {
            "set": SETTING_OF_SIDE[self.side],
            "parts": "+".join(self.parts),
            "enc": model_name(word_encoder),
            "layer": word_encoder and word_encoder.layer,
            "sent": model_name(sentence_encoder),
            "weights": None if has_default_weights else weights,
            "norm": self._normalization(),
            "vectors": "unit" if self.normalize_vectors else None,
            **self.settings.signature_fields(),
        }

    def _normalization(self) -> str:
        """Returns ``batch``, or ``fixed`` with the bounds of the parts."""
        if self.normalize == "batch":
            return "batch"
        bounds = [self.bounds[name] for name in self.parts]
        return f"fixed({','.join(f'{low:g}:{high:g}' for low, high in bounds)})"


def _part_names(settings: SentSim.Settings) -> tuple[str, ...]:
    """Returns the parts that are combined. Raises an `InputError` if one is unknown or repeated."""
    combine = settings.combine
    if combine is None:
        combine = VARIANTS[settings.variant]
    names = tuple(combine.split("+"))
    if not set(names) <= set(PARTS) or len(set(names)) != len(names):
        raise InputError(
            f"combine {combine!r}: must be some of {', '.join(PARTS)}, joined by '+'",
            option="combine",
        )
    return names


def _side_of_settings(settings: SentSim.Settings) -> str | None:
    """Returns the side that the user asks for, by `against` or by `setting`."""
    return requested_side({"against": settings.against, "setting": settings.setting})


def _check_bounds_apply(preset: Preset, table: Table, settings: SentSim.Settings) -> None:
    """Checks that the bounds of a preset are valid for the options that the user sets.

    Raises:
        InputError: the user changes an option that the bounds depend on.
    """
    normalize_vectors = preset.settings.get("score", {}).get("normalize_vectors", False)
    preset_values = {
        "words": table["words"],
        "layer": table.get("layer"),
        "normalize_vectors": normalize_vectors,
    }
    for name, preset_value in preset_values.items():
        user_value = getattr(settings, name)
        if name in settings.set_by_user and user_value != preset_value:
            raise InputError(
                f"{name} {user_value!r}: the bounds of preset {preset.name} belong to {name} "
                f"{preset_value}; pass normalize='batch' too",
                option=name,
                mentions=["normalize='batch'"],
            )


def _word_encoder_table(preset: Preset, table: Table, settings: SentSim.Settings) -> dict[str, Any]:
    """Returns model, layer and revision of the encoder of tokens: keywords of `ModelPool.encoder`."""
    user_model = settings.words
    if user_model is not None and user_model != table["words"]:
        # Layer and revision of the preset belong to the encoder of the preset.
        return {"model": preset.path(user_model), "layer": settings.layer, "revision": None}
    return {
        "model": preset.path(table["words"]),
        "layer": table.get("layer") if settings.layer is None else settings.layer,
        "revision": table.get("words_revision"),
    }


def _extremes(values: np.ndarray) -> tuple[float, float]:
    """Returns the lowest and the highest value; zeros if there are no values."""
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)


def _transport_plan(
    x: np.ndarray,
    x_pieces: TextUnits,
    x_mass: np.ndarray,
    y: np.ndarray,
    y_pieces: TextUnits,
    y_mass: np.ndarray,
) -> Alignment:
    """Aligns the word pieces of two texts, x and y, by the optimal transport that gives the Word
    Mover's Distance.

    Args:
        x, y: (n, d) and (m, d) vectors.
        x_pieces, y_pieces: the pieces that the vectors belong to.
        x_mass, y_mass: (n,) and (m,) mass of the pieces.
    """
    cost = euclidean_distances(x, y)
    flow, _ = optimal_flow(cost, x_mass / x_mass.sum(), y_mass / y_mass.sum())
    # The distance between two orthogonal vectors, each as long as the root mean square of its side.
    # A piece with this mean cost counts as entirely wrong, see `match_evidence`.
    squared_lengths = [(side.astype(np.float64) ** 2).sum(1).mean() for side in (x, y)]
    unrelated = float(np.sqrt(sum(squared_lengths)))
    return Alignment(
        x_pieces.words,
        y_pieces.words,
        flow,
        cost,
        "cost",
        x_pieces.spans,
        y_pieces.spans,
        unrelated,
    )


def _model_table(preset: Preset, setting: str, target: str | None) -> tuple[str, Table]:
    """Returns name and content of the table of the encoders: ``[src-mt]``; or ``[mt-refs.LANGUAGE]``
    if the preset has one for the target language, else ``[mt-ref]``.

    Args:
        preset: the preset.
        setting: ``src-mt`` or ``mt-ref``.
        target: language of the translations; None if it is unknown.

    Raises:
        InputError: the preset has tables of languages, and `target` is None.
        ArtifactError: the table lacks an encoder.
    """
    table_name, table = setting, preset.settings.get(setting, {})
    tables_by_language = preset.settings.get("mt-refs", {}) if setting == "mt-ref" else {}
    if tables_by_language and target is None:
        raise InputError(
            f"lang_pair is missing; preset {preset.name} chooses its models by the target language",
            option="lang_pair",
        )
    # The table may be named by another code of the language, such as "eng". Its bounds have that name.
    code = for_language({code: code for code in tables_by_language}, target)
    if code is not None:
        table_name, table = f"mt-refs.{code}", tables_by_language[code]
    for key in ("words", "sentences"):
        if key not in table:
            raise ArtifactError(
                f"preset {preset.name}: names no model {key!r} in its [{table_name}] table",
                option="preset",
            )
    return table_name, table
