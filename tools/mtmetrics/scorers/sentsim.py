"""SentSim: sentence similarity combined with a similarity of words (Song et al., 2021)."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import for_language, number
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.greedy import bertscore
from mtmetrics.matching.pairs import sentence_mover_distances, text_cosines
from mtmetrics.matching.plan import Alignment, Cells, Units, greedy_plan, pieces, word_plan
from mtmetrics.matching.transport import euclidean_distances, optimal_flow, word_mover_distances
from mtmetrics.models.packed import Encoder, PackedTokens
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.text_units import TextUnits
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import any_truncated, encode_columns
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import target_language
from mtmetrics.scorers.results import MetricResult, PartScores, join_results
from mtmetrics.scorers.settings import loading_option, option, worker_count
from mtmetrics.scorers.side import SETTING_OF_SIDE, Side, Table, requested_side, resolve_side
from mtmetrics.scorers.signature import model_name
from mtmetrics.scorers.words import WordScorer

# Cosine of sentence vectors (Sec. 3.3), F1 of BERTScore (Sec. 3.2), Word Mover's Distance between
# contextual vectors (Sec. 3.1), Sentence Mover's Distance between mean token vectors (App. A.1).
PARTS = ("sss", "bertscore", "wmd", "smd")
# Of these a better translation has a lower value.
_DISTANCES = ("wmd", "smd")
# Values of a segment with a blank side; a distance has no worst value.
_FLOORS = {"sss": -1.0, "bertscore": 0.0}
_MODELS = {"words", "words_revision", "layer", "sentences", "sentences_revision"}
# Vectors are float32: what differs by less is equal.
_NOISE = 1e-6
# Of the first and the second part, as in the paper.
_WEIGHT = 0.5
# The two combinations that the paper recommends.
VARIANTS = {"bertscore": "sss+bertscore", "wmd": "sss+wmd"}


def min_max(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """(n,) values scaled and cut so that `low` becomes 0 and `high` 1; all 0.5 where these differ
    by noise alone."""
    noise = _NOISE * max(1.0, abs(low), abs(high))
    return (
        np.full(len(values), 0.5)
        if high - low <= noise
        else np.clip((values - low) / (high - low), 0.0, 1.0)
    )


class SentSim(WordScorer):
    """``w1 e^A + w2 e^B`` of sentence similarity A and word similarity B, both normalised (Eq. 7 of
    the paper).

    Each part is scaled to [0, 1], and a distance turned round, before that, so a score lies between
    1 and e where the weights sum to 1, as by default. ``normalize="batch"`` scales by the lowest
    and highest value of the call, as the published code does: the score of a segment then depends
    on its neighbours, and scores of two calls cannot be compared. ``"fixed"`` scales by bounds that
    were stored with the preset. A segment with a blank side gets the lowest score, and takes no
    part in that.

    Args:
        words: the encoder of tokens, opened at the layer to use.
        sentences: the encoder of one vector per text.
        bounds: for ``normalize="fixed"``, part -> its lowest and highest value.
        **options: of `SentSim.Settings`; and `against`, compare with the ``"source"`` or with a
            ``"reference"``.

    Raises:
        InputError: an unknown or impossible setting, or ``"fixed"`` without bounds for a part.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of SentSim; the bounds of a preset belong to its encoder, layer and
        vectors."""

        setting: str | None = option(
            None, "src-mt or mt-ref, as the paper calls against source and reference"
        )
        variant: str = option(
            "bertscore",
            "bertscore or wmd, what the sentence similarity is combined with",
            choices=tuple(VARIANTS),
            preset="variant",
        )
        combine: str | None = option(
            None,
            "instead of the variant, any of sss, bertscore, wmd and smd",
            usage="PART+PART",
        )
        words: str | None = loading_option("another encoder of words", usage="MODEL")
        layer: int | None = loading_option(settings.LAYER_HELP)
        w1: float = option(
            _WEIGHT,
            (
                "weight of the sentence similarity, the first of two parts (default: as the preset "
                "says, else 0.5)"
            ),
            preset="w1",
            weighs=True,
        )
        w2: float = option(
            _WEIGHT,
            "weight of the word similarity, the second (likewise)",
            preset="w2",
            weighs=True,
        )
        normalize: str = option(
            "batch",
            "batch (by the extremes of the call, as published) or fixed (by bounds of the preset)",
            choices=("batch", "fixed"),
            preset="normalize",
        )
        normalize_vectors: bool = option(
            False,
            (
                "word vectors of length 1 for Word and Sentence Mover's Distance; the published "
                "code has none"
            ),
            preset="normalize_vectors",
        )
        workers: int | None = option(None, settings.WORKERS_HELP)

    settings: Settings

    metric = "sentsim"
    sides = (Side.SOURCE, Side.REFERENCE)
    scale = "from 1 to e (times `w1 + w2`)"
    parts_help = "`sss` and `bertscore`, or what else was combined, before they are scaled"
    alignments_help = (
        "per segment the pieces of `source` (or the reference) and `prediction`, the `mass` of "
        "each match, its cosine or cost (`values`, as `cells` says), and their `total`: of "
        "cosines the mean of precision and recall, of costs the distance"
    )
    preset_keys: ClassVar = {
        **dict.fromkeys(
            (*SETTING_OF_SIDE.values(), f"{SETTING_OF_SIDE[Side.REFERENCE]}s.*"), _MODELS
        ),
        "bounds.*": set(PARTS),
    }

    def compute(self, batch: Batch) -> list[PartScores]:
        compared, *systems = self._encoded(batch)
        results = []
        for predictions in systems:
            parts = {name: self._part(name, compared, predictions) for name in self.parts}
            empty = np.any([np.isnan(values) for values in parts.values()], axis=0)
            truncated = any_truncated(*compared.values(), *predictions.values())
            if self.normalize == "fixed":
                segments = self._combine(parts, self.bounds)
            else:
                # The bounds of a call are known at its end; until then the plain values choose
                # among references.
                higher_is_better = [
                    -values if name in _DISTANCES else values for name, values in parts.items()
                ]
                segments = np.array(self.weights) @ higher_is_better
            results.append(PartScores(segments, parts, truncated, empty))
        return results

    def _combine(
        self, parts: Mapping[str, np.ndarray], bounds: Mapping[str, tuple[float, float]]
    ) -> np.ndarray:
        """``w1 e^A + w2 e^B`` of (n,) parts, scaled by their lowest and highest values."""
        score = np.zeros(1)
        for weight, (name, values) in zip(self.weights, parts.items(), strict=True):
            scaled = min_max(values, *bounds[name])
            if name in _DISTANCES:
                scaled = 1.0 - scaled
            score = score + weight * np.exp(scaled)
        return score

    def _encoded(self, batch: Batch) -> list[dict[str, PackedTokens]]:
        """Of the texts that are compared with, then of each system: ``words``, packed tokens, and
        ``sentences``, packed text vectors, as far as the parts need them."""
        encoded: dict[str, list[PackedTokens]] = {}
        if self.parts != ("sss",):
            encoded["words"] = encode_columns(self.words, batch)
        if "sss" in self.parts:
            encoded["sentences"] = encode_columns(self.sentences, batch)
        columns = zip(*encoded.values(), strict=True)
        return [dict(zip(encoded, column, strict=True)) for column in columns]

    def _part(
        self,
        name: str,
        compared: Mapping[str, PackedTokens],
        predictions: Mapping[str, PackedTokens],
    ) -> np.ndarray:
        """(n,) values of a part; NaN where a side holds nothing that can be compared."""
        if name == "sss":
            return text_cosines(compared["sentences"], predictions["sentences"])
        x, y = compared["words"], predictions["words"]
        if name == "bertscore":
            return bertscore(y.normalized(), x.normalized(), threads=self.workers).f1
        # Without special tokens, as the published code takes its distances.
        x, y = x.select(x.words >= 0), y.select(y.words >= 0)
        if self.normalize_vectors:
            x, y = x.normalized(), y.normalized()
        if name == "wmd":
            return word_mover_distances(x, y, euclidean_distances, workers=self.workers)
        return sentence_mover_distances(x, y)

    def score_batches(self, batches: Iterable[Batch]) -> Iterator[list[MetricResult]]:
        """Scores batch by batch; with ``normalize="batch"`` gives everything at once, when the last
        batch has come."""
        results = super().score_batches(batches)
        if self.normalize == "fixed":
            yield from results
            return
        systems = list(zip(*results, strict=True))
        if systems:
            yield [self._scaled_by_itself(join_results(batches)) for batches in systems]

    def _scaled_by_itself(self, result: MetricResult) -> MetricResult:
        """Scales the parts of a system by their own extremes. Blank segments take no part in these,
        and get the lowest score."""
        parts = {name: values.copy() for name, values in result.parts.items()}
        bounds = {}
        for name, values in parts.items():
            filled_values = values[~result.empty]
            bounds[name] = (0.0, 0.0)
            if len(filled_values):
                bounds[name] = (float(filled_values.min()), float(filled_values.max()))
            if name in _DISTANCES:
                values[result.empty] = bounds[name][1]
        segments = np.where(result.empty, sum(self.weights), self._combine(parts, bounds))
        return dataclasses.replace(result, segments=segments, parts=parts)

    def combine_parts(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        if self.normalize == "fixed":
            return self._combine(parts, self.bounds)
        extremes = {
            name: (float(values.min()), float(values.max())) for name, values in parts.items()
        }
        return self._combine(parts, extremes)

    def floor_with_parts(self) -> tuple[float, dict[str, float]]:
        if self.normalize == "batch":  # `_scaled_by_itself` sets the final values
            return -np.inf, {name: _FLOORS.get(name, 0.0) for name in self.parts}
        worst = {
            name: self.bounds[name][1] if name in _DISTANCES else _FLOORS[name]
            for name in self.parts
        }
        return sum(self.weights), worst

    @property
    def cells(self) -> Cells:
        """Cosines with the part ``bertscore``, costs with ``wmd``; an `InputError` without both."""
        if "bertscore" in self.parts:
            return "cosine"
        if "wmd" in self.parts:
            return "cost"
        raise InputError(f"alignments: {self.no_alignments_reason}")

    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        cells = self.cells
        packed = encode_columns(self.words, batch)
        if cells == "cosine" or self.normalize_vectors:
            packed = [side.normalized() for side in packed]
        sides = (
            pieces(self.words, tokens, *column, special_tokens=cells == "cosine")
            for tokens, column in zip(packed, batch.texts_and_languages, strict=True)
        )
        for (x, x_pieces), (y, y_pieces) in zip(*sides, strict=True):
            # Special tokens may be partners, but look for none.
            masses = [(units.spans[:, 1] > 0).astype(np.float64) for units in (x_pieces, y_pieces)]
            if not all(mass.any() for mass in masses):
                yield Alignment.nothing(cells)
            elif cells == "cosine":
                yield greedy_plan(x_pieces, y_pieces, x @ y.T, *enumerate(masses))
            else:
                cost = euclidean_distances(x, y)
                flow, _ = optimal_flow(cost, *(mass / mass.sum() for mass in masses))
                # Two vectors at right angles are so far apart, of the mean lengths of both sides.
                squares = [(side.astype(np.float64) ** 2).sum(1).mean() for side in (x, y)]
                unrelated = float(np.sqrt(sum(squares)))
                yield word_plan(_each(x_pieces), _each(y_pieces), flow, cost, unrelated)

    def __init__(
        self,
        words: TokenEncoder,
        sentences: Encoder,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        *,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(settings=settings, **options)
        settings = self.settings
        self.words, self.sentences = words, sentences
        self.encoder_layers, self.dtype = words.depth, words.dtype
        self.parts = _part_names(settings)
        self.weights = self._checked_weights(settings.w1, settings.w2)
        self.side = resolve_side(self.side_choice(), _side_of_settings(settings), None, None)
        self.setting = SETTING_OF_SIDE[self.side]
        self.normalize, self.normalize_vectors = settings.normalize, settings.normalize_vectors
        self.has_independent_segments = self.normalize == "fixed"
        self.bounds = dict(bounds or {})
        missing = [name for name in self.parts if name not in self.bounds]
        if missing and self.normalize == "fixed":
            raise InputError(
                f"normalize='fixed': no bounds for {', '.join(missing)} against the {self.side}; "
                "use normalize='batch'",
                option="normalize",
                mentions=["normalize='fixed'", "normalize='batch'"],
            )
        self.workers = worker_count(settings.workers)

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """A language pair is needed where the preset chooses its models by the target language, and
        `against` where it has models for both sides."""
        tables = preset.settings
        if not any(name in tables or f"{name}s" in tables for name in SETTING_OF_SIDE.values()):
            raise ArtifactError(
                f"preset {preset.name}: has neither a [src-mt] nor an [mt-ref] table",
                option="preset",
            )
        side = cls.choose_allowed_side(preset, _side_of_settings(settings))
        target = target_language(settings.lang_pair)
        place, table = _models(preset, SETTING_OF_SIDE[side], target)
        score_table = tables.get("score", {})
        if settings.combine is not None and "variant" in settings.set_by_user:
            raise InputError(
                f"variant {settings.variant!r} and combine {settings.combine!r} both say what is "
                "combined; pass one of them",
                option="variant",
            )
        preset_variant = score_table.get("variant", cls.Settings.variant)
        if "combine" in settings.set_by_user or settings.variant != preset_variant:
            # The preset's weights are those of its own parts.
            settings = settings.without_preset_values(["w1", "w2"])
        if settings.normalize == "fixed":
            _refuse_other_bounds(preset, table, settings)
        layer = table.get("layer")
        if settings.words not in (None, table["words"]):
            # The user's encoder has layers and revisions of its own.
            layer = settings.layer
            table = {**table, "words": settings.words, "words_revision": None}
        elif settings.layer is not None:
            layer = settings.layer
        words = models.encoder(
            preset.path(table["words"]), layer=layer, revision=table.get("words_revision")
        )
        sentences = models.sentence_encoder(
            preset.path(table["sentences"]), revision=table.get("sentences_revision")
        )
        settings = dataclasses.replace(settings, setting=None, against=side)
        return cls(words, sentences, tables.get("bounds", {}).get(place), settings=settings)

    def _checked_weights(self, *weights: float) -> list[float]:
        """The weights of the parts: those of two parts as they are given, else equal ones."""
        for name, weight in zip(("w1", "w2"), weights, strict=True):
            if number(name, weight) < 0:
                raise InputError(f"{name} {weight!r}: must be at least 0", option=name)
        if len(self.parts) == len(weights):
            if not any(weights):
                raise InputError("w1 and w2 are both 0; one of them must be above", option="w1")
            return list(weights)
        if set(weights) != {_WEIGHT}:
            raise InputError(
                f"w1 and w2 weigh two parts, not {'+'.join(self.parts)}; leave them out",
                option="w1",
            )
        return [1 / len(self.parts)] * len(self.parts)

    def signature_fields(self) -> dict[str, object]:
        words = None if self.parts == ("sss",) else self.words
        has_usual_weights = len(self.parts) != 2 or set(self.weights) == {_WEIGHT}
        weights = ",".join(f"{weight:g}" for weight in self.weights)
        return {
            "set": self.setting,
            "parts": "+".join(self.parts),
            "enc": model_name(words),
            "layer": words and words.layer,
            "sent": model_name(self.sentences) if "sss" in self.parts else None,
            "weights": None if has_usual_weights else weights,
            "norm": self._normalization(),
            "vectors": "unit" if self.normalize_vectors else None,
            **self.settings.signature_fields(),
        }

    def _normalization(self) -> str:
        """How the parts are scaled, with the fixed bounds."""
        if self.normalize == "batch":
            return "batch"
        bounds = [self.bounds[name] for name in self.parts]
        return f"fixed({','.join(f'{low:g}:{high:g}' for low, high in bounds)})"


def _part_names(settings: SentSim.Settings) -> tuple[str, ...]:
    """The parts that are combined; an `InputError` where one is unknown or comes twice."""
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
    """The side that the user asks for, by `against` or by `setting`."""
    return requested_side({"against": settings.against, "setting": settings.setting})


def _refuse_other_bounds(preset: Preset, table: Table, settings: SentSim.Settings) -> None:
    """Raises an `InputError` where the bounds of a preset do not belong to the words, the layer or
    the vectors that the user asks for."""
    normalize_vectors = preset.settings.get("score", {}).get("normalize_vectors", False)
    of_bounds = {
        "words": table["words"],
        "layer": table.get("layer"),
        "normalize_vectors": normalize_vectors,
    }
    for name, value in of_bounds.items():
        wanted = getattr(settings, name)
        if name in settings.set_by_user and wanted != value:
            raise InputError(
                f"{name} {wanted!r}: the bounds of preset {preset.name} belong to {name} {value}; "
                "pass normalize='batch' too",
                option=name,
                mentions=["normalize='batch'"],
            )


def _each(pieces: TextUnits) -> Units:
    """Units of one piece each."""
    return Units(pieces.words, pieces.spans, np.eye(len(pieces.words)))


def _models(preset: Preset, setting: str, target: str | None) -> tuple[str, Table]:
    """Name and content of the table of the models: ``[mt-refs.LANGUAGE]`` of the target, where
    there is one, else that of the setting."""
    place, table = setting, preset.settings.get(setting, {})
    by_language = preset.settings.get(f"{setting}s", {})
    if by_language and target is None:
        raise InputError(
            f"lang_pair is missing; preset {preset.name} chooses its models by the target language",
            option="lang_pair",
        )
    of_target = for_language(by_language, target)
    if of_target is not None:
        place, table = f"{setting}s.{target}", of_target
    for key in ("words", "sentences"):
        if key not in table:
            raise ArtifactError(
                f"preset {preset.name}: names no model {key!r} in its [{place}] table",
                option="preset",
            )
    return place, table
