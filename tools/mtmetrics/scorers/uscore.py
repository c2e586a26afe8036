"""UScore: an unsupervised metric that combines a word-level and a sentence-level score (Belouadi and
Eger, 2023).

The class `UScore` is in this order: its settings, `__init__`, the formula, the steps of the formula,
word-level errors, and how a preset is loaded."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import choice, for_language
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.pairs import text_cosines
from mtmetrics.matching.plan import Alignment, Cells
from mtmetrics.matching.word_errors import Evidence
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.packed import Encoder, PackedTokens
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.translator import Translator
from mtmetrics.scorers.base import any_truncated, encode_columns
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import (
    ENCODER_KEYS,
    LANGUAGE_MODEL_KEYS,
    MAP_KEYS,
    encoder_table,
    load_remapping,
    model_table,
    required_pair,
    target_language,
    user_language_model_table,
)
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import (
    LANGUAGE_MODEL_HELP,
    MAP_HELP,
    MAPS_HELP,
    WORKERS_HELP,
    loading_option,
    option,
)
from mtmetrics.scorers.settings import Settings as BaseSettings
from mtmetrics.scorers.side import Options
from mtmetrics.scorers.signature import map_name, model_name
from mtmetrics.scorers.words import WordScorer
from mtmetrics.scorers.xmoverscore import VARIANTS, XMoverScore

# Parts of the word level, and the levels (words and sentences). `UScore` explains them.
WORD_PARTS = ("wmd", "pseudo", "back", "lm")
LEVELS = ("wrd", "snt")
# Weights of the word level's parts (Eq. 3) and of both levels (Eq. 6), from Sec. 4.2 and 4.3.
WEIGHTS: dict[str, dict[str, float]] = {
    # Tuned on WMT16 de-en.
    "tuned": {"wmd": 0.5, "pseudo": 0.4, "lm": 0.1, "wrd": 0.6, "snt": 0.4},
    # Set without tuning data.
    "+": {"wmd": 0.45, "pseudo": 0.45, "lm": 0.1, "wrd": 0.5, "snt": 0.5},
    # Uniform.
    "++": {"wmd": 1 / 3, "pseudo": 1 / 3, "lm": 1 / 3, "wrd": 0.5, "snt": 0.5},
}
# Models that the option `without` may name -> the part, or level, that needs the model.
PART_OF_MODEL = {
    "translation": "pseudo",
    "language_model": "lm",
    "sentences": "snt",
    "back_translation": "back",
}

# Name of a part -> its (n,) values.
_Parts = dict[str, np.ndarray]
# Part -> the keys of the signature for its translation model, beam size, and maximal length.
_TRANSLATOR_KEYS = {
    "pseudo": ("mt", "beams", "mtlen"),
    "back": ("bt", "btbeams", "btlen"),
}


def part_weights(
    weights: str, combine: str, without: Collection[str] = ()
) -> tuple[dict[str, float], dict[str, float]]:
    """Returns the weights of the word level's parts, and of the levels. Parts and levels with the
    weight 0 are left out; the weights of the others sum to 1.

    Args:
        weights: a name in `WEIGHTS`, or weights by the names of parts and levels, such as
            ``wmd=0.6+lm=0.1+wrd=0.7+snt=0.3``; one that is not named has the weight 0.
        combine: one or both of `LEVELS`, joined by ``+``.
        without: names in `PART_OF_MODEL`; the weights of the other parts are scaled up.

    Returns:
        Weights of the parts, none if the level ``wrd`` does not count; and weights of the levels.

    Raises:
        InputError: a name is unknown, or no part is left.
    """
    all_weights = _named_weights(str(weights))
    model_names = tuple(PART_OF_MODEL)
    excluded_parts = {PART_OF_MODEL[choice("without", name, model_names)] for name in without}
    wanted_levels = str(combine).split("+")
    if not set(wanted_levels) <= set(LEVELS) or len(set(wanted_levels)) != len(wanted_levels):
        raise InputError(f"combine {combine!r}: must be one of wrd, snt, wrd+snt", option="combine")
    levels = [name for name in LEVELS if name in wanted_levels and name not in excluded_parts]
    if not levels:
        raise InputError(
            f"combine {combine!r}: nothing is left without {' and '.join(without)}",
            option="combine",
        )
    # A level that stands alone is the score, whatever its weight.
    level_weights = _scaled(all_weights, levels) if len(levels) > 1 else {levels[0]: 1.0}
    parts: list[str] = []
    if "wrd" in level_weights:
        parts = [name for name in WORD_PARTS if name not in excluded_parts]
    return _scaled(all_weights, parts), level_weights


def _named_weights(text: str) -> dict[str, float]:
    """Reads the option `weights`: a name in `WEIGHTS`, or ``PART=NUMBER+...``."""
    if "=" not in text:
        return WEIGHTS[choice("weights", text, tuple(WEIGHTS))]
    weights = dict.fromkeys((*WORD_PARTS, *LEVELS), 0.0)
    for item in text.split("+"):
        name, _, value = item.partition("=")
        choice("weights", name, tuple(weights))
        try:
            weights[name] = float(value)
        except ValueError:
            weights[name] = np.nan  # refused below
        if not 0 <= weights[name] < np.inf:
            raise InputError(
                f"weights {text!r}: {item!r} cannot be used; PART=NUMBER is needed, at least 0",
                option="weights",
            )
    return weights


def _scaled(weights: Mapping[str, float], names: Collection[str]) -> dict[str, float]:
    """Returns the weights of some parts or levels, scaled to sum to 1. Leaves out weights of 0.

    Raises:
        InputError: all of them are 0.
    """
    total = sum(weights.get(name, 0.0) for name in names)
    if names and not total:
        raise InputError(
            f"weights: none for {' or '.join(names)}; one of them needs a weight above 0"
        )
    return {name: weights[name] / total for name in names if weights.get(name)}


def weighted_sum(
    values: Mapping[str, np.ndarray | float], weights: Mapping[str, float]
) -> np.ndarray:
    """Returns the weighted sum of parts (Eq. 3), or of levels (Eq. 6).

    Args:
        values: (n,) values, or a single value, by name.
        weights: the weight of each name in the sum.

    Returns:
        (n,) sums, or a single sum.
    """
    terms = [weight * np.asarray(values[name]) for name, weight in weights.items()]
    return np.sum(terms, axis=0)


class _MachineTranslations(NamedTuple):
    """Machine translations of n texts.

    Attributes:
        ngrams: their packed n-grams, in the role "target", which is not remapped. The variant
            ``uscore`` has n-grams of one word.
        is_blank: (n,) mask of the blank ones.
        is_truncated: (n,) mask of those that the translator truncated.
    """

    ngrams: PackedTokens
    is_blank: np.ndarray
    is_truncated: np.ndarray


class UScore(WordScorer):
    """``w_wrd wrd + w_snt snt`` (Eq. 6), where ``wrd = w_wmd wmd + w_pseudo pseudo + w_lm lm``
    (Eq. 3, in which the first weight is called ``w_xlng``).

    - ``wmd``: the negative Word Mover's Distance between the remapped source and the translation. As
      in the published code, it lies between -4 and 0.
    - ``pseudo``: the negative distance between the pseudo-reference (a machine translation of the
      source) and the translation. Nothing is remapped.
    - ``lm``: the mean log-likelihood of the translation, at most 0.
    - ``snt``: the cosine of the sentence vectors of source and translation.
    - ``back``, only if the option `weights` gives it a weight: the negative distance between the
      source and the pseudo source (the translation, translated back). Sec. 7 leaves it to later work.

    Those with a weight, and ``wrd``, are parts of the result; with the word level ``wmd`` always is.
    A segment with a blank side gets the lowest value of every part that has a weight. If only the
    pseudo-reference is blank, only ``pseudo`` gets its lowest value; so does ``back`` if only the
    pseudo source is blank.

    Args:
        word_scorer: the variant ``uscore`` of XMoverScore, with the map and the language model; None
            without the word level.
        translator: makes the pseudo-references.
        sentence_encoder: the encoder that gives one vector per text.
        back_translator: makes the pseudo sources.
        settings: all options as one object, which replaces `options`.
        **options: `lang_pair`, `combine`, `weights` and `without`.

    Raises:
        InputError: a setting is unknown, `word_scorer` has another variant, or the model of a part
            with a weight is missing.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(BaseSettings):
        """The options of UScore."""

        # In presets and in the signature the key is "parts", although these are levels.
        combine: str = option(
            "wrd+snt",
            "levels: wrd (words), snt (sentences), or wrd+snt",
            usage="LEVEL+LEVEL",
            preset="parts",
        )
        weights: str = option(
            "tuned",
            "set of weights (tuned, + or ++), or a weight for each part, such as "
            "wmd=0.6+lm=0.1+wrd=0.7+snt=0.3",
            usage="NAME|PART=N+...",
            preset="weights",
            weighs=True,
        )
        without: str | Collection[str] | None = option(
            None,
            (
                "models to score without, besides those that the preset leaves out: translation, "
                "language_model or sentences, joined by +"
            ),
            usage="NAME+NAME",
        )
        map: str | None = loading_option(MAP_HELP)
        maps: str | None = loading_option(MAPS_HELP, usage="PATH|NAME")
        lm: str | None = loading_option(LANGUAGE_MODEL_HELP, usage="MODEL")
        back: str | None = loading_option(
            "translation model into the source language, for the part back; used only if the option "
            "weights gives that part a weight, such as back=0.2",
            usage="MODEL",
        )
        # The scorer of the word level takes it, so it is an option of loading.
        workers: int | None = loading_option(WORKERS_HELP)

    settings: Settings

    metric = "uscore"
    scale = "at most 0.4 with the weights `tuned` (all distances 0, the cosine 1)"
    parts_help = "those of `wmd`, `pseudo`, `back`, `lm`, `wrd` and `snt` that were computed"
    alignments_help = XMoverScore.alignments_help
    usual_preset = "mini"
    preset_keys: ClassVar = {
        "encoder": ENCODER_KEYS,
        "maps": MAP_KEYS,
        "sentences": {"model", "revision"},
        "translation": {"model", "revision", "beams", "max_length"},
        "back_translation": {"model", "revision", "beams", "max_length"},
        "language_models.*": LANGUAGE_MODEL_KEYS,
        "score": {"without", "pieces", "masses"},
        # Read by `mtmetrics.uscore`, which makes presets from this one.
        "start": {"sentences", "translation", "aligner_layer"},
    }

    def __init__(
        self,
        word_scorer: XMoverScore | None = None,
        translator: Translator | None = None,
        sentence_encoder: Encoder | None = None,
        *,
        back_translator: Translator | None = None,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(settings=settings, **options)
        settings = self.settings
        without = _name_set(settings.without)
        self.word_weights, self.level_weights = part_weights(
            settings.weights, settings.combine, without
        )
        # For the signature. Without the word level, leaving out its models changes nothing.
        self.left_out = sorted(
            name for name in without if self.word_weights or PART_OF_MODEL[name] == "snt"
        )
        self.word_scorer = word_scorer
        self.translator = translator
        self.sentence_encoder = sentence_encoder
        self.back_translator = back_translator
        self.encoder_depth = None if word_scorer is None else word_scorer.encoder_depth
        # The number format of the word level's encoder counts as that of the scorer; without the word
        # level, that of the sentence encoder.
        encoder = self._used_sentence_encoder
        if word_scorer is not None and self.word_weights:
            encoder = word_scorer.encoder
        self.dtype = None if encoder is None else encoder.dtype
        model_of_part = {
            "wmd": word_scorer,
            "pseudo": translator,
            "back": back_translator,
            "lm": None if word_scorer is None else word_scorer.language_model,
            "snt": sentence_encoder,
        }
        # The level "wrd" needs no model of its own: its parts do.
        for name in (*self.word_weights, *self.level_weights):
            if name in model_of_part and model_of_part[name] is None:
                advice = "leave out the model by name (without=)"
                if name == "wmd":
                    advice = "leave out the word level (combine='snt')"
                raise InputError(
                    f"the model of the part {name!r} is missing; pass it, or {advice}",
                    mentions=["without=", "combine='snt'"],
                )
        if word_scorer is not None and word_scorer.settings.variant != "uscore":
            raise InputError(
                "word_scorer: XMoverScore's variant 'uscore' is needed, not "
                f"{word_scorer.settings.variant!r}"
            )

    def compute(self, batch: Batch) -> list[PartScores]:
        """Computes the parts of each system, and their weighted sum."""
        levels = []
        if self.word_scorer is not None and self.word_weights:
            levels.append(self._word_level(self.word_scorer, batch))
        if self._used_sentence_encoder is not None:
            levels.append(_sentence_level(self._used_sentence_encoder, batch))
        results = []
        for levels_of_system in zip(*levels, strict=True):
            parts: _Parts = {}
            is_truncated = np.zeros(len(batch), dtype=bool)
            for level_parts, is_truncated_by_level in levels_of_system:
                parts |= level_parts
                is_truncated |= is_truncated_by_level
            segments = weighted_sum(parts, self.level_weights)
            results.append(PartScores(segments, parts, is_truncated, np.isnan(segments)))
        return results

    def _word_level(self, scorer: XMoverScore, batch: Batch) -> Iterator[tuple[_Parts, np.ndarray]]:
        """Computes the parts of the word level.

        Yields:
            The parts of a system by name, with ``wmd`` even if it has no weight; and an (n,) mask of
            the segments with a truncated text.
        """
        translators = self._used_translators
        languages = self.iso_languages
        floors = _word_floors(scorer)
        encoded_sources, *encoded_systems = encode_columns(scorer.encoder, batch)
        sources = scorer.build_ngrams(encoded_sources, "source")
        pseudo_references = None
        if "pseudo" in translators:
            # All systems share them.
            pseudo_references = _machine_translations(
                scorer, translators["pseudo"], batch.sources_or_references, languages.target
            )
        unmapped_sources = None
        if "back" in translators:
            # Only the role "source" is remapped. Sources with the role "target" stay as they are.
            unmapped_sources = scorer.build_ngrams(encoded_sources, "target")
        for texts, encoded_texts in zip(batch.predictions, encoded_systems, strict=True):
            predictions = scorer.build_ngrams(encoded_texts, "target")
            # Part -> machine translations, and the n-grams that they are compared with.
            compared: dict[str, tuple[_MachineTranslations, PackedTokens]] = {}
            if pseudo_references is not None:
                compared["pseudo"] = pseudo_references, predictions
            if unmapped_sources is not None:
                pseudo_sources = _machine_translations(
                    scorer, translators["back"], texts, languages.source
                )
                compared["back"] = pseudo_sources, unmapped_sources
            parts = {"wmd": scorer.mover_part(sources, predictions)}
            is_truncated = any_truncated(sources, predictions)
            for part, (translations, ngrams) in compared.items():
                values = scorer.mover_part(translations.ngrams, ngrams)
                # Even blank text gets special tokens from the encoder, which are close to any text.
                parts[part] = np.where(translations.is_blank, floors[part], values)
                is_truncated |= translations.is_truncated
            if "lm" in self.word_weights:
                parts["lm"], is_truncated_by_lm = scorer.lm_part(texts)
                is_truncated |= is_truncated_by_lm
            parts["wrd"] = weighted_sum(parts, self.word_weights)
            yield parts, is_truncated

    def combine_parts(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Combines precomputed parts, see `Scorer.combine_parts`. Recomputes ``wrd``, because the
        parts may come from other weights."""
        if not self.word_weights:
            return weighted_sum(parts, self.level_weights)
        wrd = weighted_sum(parts, self.word_weights)
        return weighted_sum({**parts, "wrd": wrd}, self.level_weights)

    def floor_with_parts(self) -> tuple[float, dict[str, float]]:
        """Returns the score of a segment with a blank side, and its parts and levels that have a
        weight."""
        floors = {"snt": -1.0}
        if self.word_scorer is not None:
            floors |= _word_floors(self.word_scorer)
        if self.word_weights:
            floors["wrd"] = float(weighted_sum(floors, self.word_weights))
        floor = float(weighted_sum(floors, self.level_weights))
        return floor, {name: floors[name] for name in (*self.word_weights, *self.level_weights)}

    @property
    def _used_translators(self) -> dict[str, Translator]:
        """Part with a weight -> the translator that it needs."""
        translators = {"pseudo": self.translator, "back": self.back_translator}
        return {
            part: translator
            for part, translator in translators.items()
            if translator is not None and part in self.word_weights
        }

    @property
    def _used_sentence_encoder(self) -> Encoder | None:
        """The sentence encoder; None without the sentence level."""
        return self.sentence_encoder if "snt" in self.level_weights else None

    @property
    def cells(self) -> Cells:
        """Meaning of the values in the cells of alignments: costs.

        Raises:
            InputError: there is no scorer of the word level.
        """
        return self._required_word_scorer().cells

    def _required_word_scorer(self) -> XMoverScore:
        """Returns the scorer of the word level, which aligns words. Raises an `InputError` without
        it."""
        if self.word_scorer is None:
            raise InputError(f"alignments: {self.no_alignments_reason}")
        return self.word_scorer

    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        """Aligns with the sources, not with the pseudo-references."""
        return self._required_word_scorer().align_batch(batch)

    def evidence(
        self, predictions: list[str], alignments: Sequence[Alignment]
    ) -> list[list[Evidence]]:
        """Returns the evidence that words are wrong, from ``wmd`` and ``lm``."""
        return self._required_word_scorer().weighted_evidence(
            predictions,
            alignments,
            mover_weight=self.word_weights.get("wmd", 0.0),
            lm_weight=self.word_weights.get("lm", 0.0),
        )

    @classmethod
    def options_without_pair(cls, options: Options) -> dict[str, Any]:
        """Returns options that leave out the map and the translation model, see
        `Scorer.options_without_pair`. The word level still needs some language pair."""
        without = _name_set(options.get("without")) | {"translation"}
        return {"map": "none", "without": "+".join(sorted(without))}

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """Loads the models of the parts that have a weight.

        ``mtmetrics train uscore`` makes presets for one language pair. With such a preset the user
        need not name the pair.

        Raises:
            InputError: the language pair is missing.
            ArtifactError: a part with a weight has no model.
        """
        settings = _settings_with_preset(preset, settings)
        word_weights, level_weights = part_weights(
            settings.weights, settings.combine, _name_set(settings.without)
        )
        if word_weights:
            required_pair(settings.lang_pair)
        weighted_parts = {*word_weights, *level_weights}
        needed = [name for name, part in PART_OF_MODEL.items() if part in weighted_parts]
        tables = _model_tables(preset, settings)
        missing = [name for name in needed if name not in tables]
        _refuse_missing_models(missing, preset, target_language(settings.lang_pair))
        loaded = {name: _load_model(name, tables[name], settings, models) for name in needed}
        word_scorer = None
        if word_weights:
            word_scorer = _load_word_scorer(preset, settings, models, loaded.get("language_model"))
        return cls(
            word_scorer,
            loaded.get("translation"),
            loaded.get("sentences"),
            back_translator=loaded.get("back_translation"),
            settings=settings,
        )

    def signature_fields(self) -> dict[str, object]:
        """Returns the fields of the signature: levels, weights, models that are left out, then the
        models of the word level and of the sentence level."""
        fields: dict[str, object] = {
            "parts": "+".join(self.level_weights),
            "weights": self.settings.weights,
            "without": "+".join(self.left_out) or None,
        }
        if self.word_scorer is not None and self.word_weights:
            fields |= self._word_fields(self.word_scorer)
        fields["sent"] = model_name(self._used_sentence_encoder)
        return fields | self.settings.signature_fields()

    def _word_fields(self, scorer: XMoverScore) -> dict[str, object]:
        """Returns the fields of the signature for the word level."""
        has_default_pieces = scorer.pieces == VARIANTS["uscore"].pieces
        fields: dict[str, object] = {
            "enc": model_name(scorer.encoder),
            "layer": scorer.encoder.layer,
            "pieces": None if has_default_pieces else scorer.pieces,
            "mass": scorer.weights,
            "map": map_name(scorer.remapping),
        }
        for part, translator in self._used_translators.items():
            model, beams, length = _TRANSLATOR_KEYS[part]
            fields[model] = model_name(translator)
            fields[beams], fields[length] = translator.beams, translator.max_length
        language_model = scorer.language_model
        if language_model is not None and "lm" in self.word_weights:
            fields["lm"] = model_name(language_model)
            fields |= language_model.signature_fields
        return fields


def _name_set(names: str | Collection[str] | None) -> set[str]:
    """Returns the names in the option `without`, which may be joined by ``+``."""
    return set(names.split("+") if isinstance(names, str) else names or ())


def _word_floors(scorer: XMoverScore) -> dict[str, float]:
    """Returns the value of each part of the word level for a segment with a blank side."""
    _, floors = scorer.floor_with_parts()
    mover = floors["mover"]
    return {"wmd": mover, "pseudo": mover, "back": mover, "lm": floors["lm"]}


def _machine_translations(
    scorer: XMoverScore, translator: Translator, texts: list[str], language: str | None
) -> _MachineTranslations:
    """Translates texts into a language, and builds the n-grams of the translations."""
    translations = translator.translate(texts)
    tokens = scorer.encoder.encode([item.text for item in translations], language)
    return _MachineTranslations(
        scorer.build_ngrams(tokens, "target"),
        is_blank=np.array([not item.text.strip() for item in translations]),
        is_truncated=np.array([item.is_truncated for item in translations]),
    )


def _sentence_level(encoder: Encoder, batch: Batch) -> Iterator[tuple[_Parts, np.ndarray]]:
    """Yields for each system the part ``snt``, and an (n,) mask of the truncated segments."""
    sources, *systems = encode_columns(encoder, batch)
    for predictions in systems:
        yield {"snt": text_cosines(sources, predictions)}, any_truncated(sources, predictions)


def _settings_with_preset(preset: Preset, settings: UScore.Settings) -> UScore.Settings:
    """Returns the settings with the language pair of the preset, unless the user names one, and with
    the models that the user or the preset leaves out."""
    without = _name_set(settings.without) | {*preset.settings.get("score", {}).get("without", [])}
    if settings.lm == "none":
        without.add("language_model")
    return dataclasses.replace(
        settings,
        lang_pair=settings.lang_pair or preset.settings.get("lang_pair"),
        without="+".join(sorted(without)) or None,
    )


def _model_tables(preset: Preset, settings: UScore.Settings) -> dict[str, dict[str, Any]]:
    """Returns the tables of the models that the user or the preset names, by the names in
    `PART_OF_MODEL`."""
    language_models = preset.settings.get("language_models", {})
    tables = {
        name: preset.settings.get(name, {})
        for name in ("translation", "sentences", "back_translation")
    }
    tables["language_model"] = (
        for_language(language_models, target_language(settings.lang_pair)) or {}
    )
    if settings.back:
        tables["back_translation"] = {"model": settings.back}
    if settings.lm:
        tables["language_model"] = user_language_model_table(settings.lm, tables["language_model"])
    return {
        name: model_table(preset, name, table) for name, table in tables.items() if "model" in table
    }


def _refuse_missing_models(missing: Sequence[str], preset: Preset, target: str | None) -> None:
    """Raises an `ArtifactError` if the preset lacks models of parts that have a weight."""
    if not missing:
        return
    labels = [f"{name} ({target})" if name == "language_model" else name for name in missing]
    without = f"without={'+'.join(missing)!r}"
    if missing == ["back_translation"]:
        advice = "pass one (back=MODEL)"
    else:
        advice = (
            "'mtmetrics train uscore' makes a preset that does, from text of both languages; or pass "
            f"{without}"
        )
    raise ArtifactError(
        f"preset {preset.name}: names no model for {' and '.join(labels)}; {advice}",
        option="preset",
        mentions=[without, "back=MODEL"],
    )


def _load_model(
    name: str, table: Mapping[str, Any], settings: UScore.Settings, models: ModelPool
) -> Any:
    """Loads a model by its name in `PART_OF_MODEL` and its table."""
    if name == "language_model":
        return models.language_model(**table)
    if name == "sentences":
        return models.sentence_encoder(**table)
    source, target = required_pair(settings.lang_pair)
    pair = f"{target}-{source}" if name == "back_translation" else f"{source}-{target}"
    return models.translator(**table, lang_pair=pair)


def _load_word_scorer(
    preset: Preset,
    settings: UScore.Settings,
    models: ModelPool,
    language_model: LanguageModel | None,
) -> XMoverScore:
    """Loads the scorer of the word level."""
    score_table = preset.settings.get("score", {})
    encoder = models.encoder(**encoder_table(preset, encoder=None, layer=None))
    # XMoverScore calls the masses of n-grams weights; here weights are those of the parts.
    masses = choice("masses", score_table.get("masses", "uniform"), ("uniform", "norm"))
    remapping = load_remapping(
        preset,
        models,
        encoder,
        settings.lang_pair,
        map_kind=settings.map,
        map_location=settings.maps,
    )
    return XMoverScore(
        encoder,
        remapping=remapping,
        language_model=language_model,
        weights="norm" if masses == "norm" else None,
        lang_pair=settings.lang_pair,
        variant="uscore",
        pieces=score_table.get("pieces"),
        workers=settings.workers,
    )
