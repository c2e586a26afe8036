"""UScore: word level and sentence level, both without supervision (Belouadi and Eger, 2023).

The class `UScore` reads from the top down: its settings, the formula, the steps of the formula, words
at fault, and how a scorer is made."""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

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
from mtmetrics.models.translator import Translation, Translator
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import any_truncated, encoded_columns
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import (
    encoder_table,
    load_remapping,
    model_table,
    required_pair,
    target_language,
    user_language_model_table,
)
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import loading_option, option
from mtmetrics.scorers.side import Options
from mtmetrics.scorers.signature import map_name, model_name
from mtmetrics.scorers.words import WordScorer
from mtmetrics.scorers.xmoverscore import VARIANTS, XMoverScore

WORD_PARTS = ("wmd", "pseudo", "back", "lm")
LEVELS = ("wrd", "snt")
# Weights of the word level's parts (Eq. 3) and of both levels (Eq. 6), from Sec. 4.2 and 4.3:
# chosen on WMT16 de-en, chosen without looking at it, and uniform.
WEIGHTS: dict[str, dict[str, float]] = {
    "tuned": {"wmd": 0.5, "pseudo": 0.4, "lm": 0.1, "wrd": 0.6, "snt": 0.4},
    "+": {"wmd": 0.45, "pseudo": 0.45, "lm": 0.1, "wrd": 0.5, "snt": 0.5},
    "++": {"wmd": 1 / 3, "pseudo": 1 / 3, "lm": 1 / 3, "wrd": 0.5, "snt": 0.5},
}
# What can be left out by name -> the part that it makes.
OPTIONAL = {
    "translation": "pseudo",
    "language_model": "lm",
    "sentences": "snt",
    "back_translation": "back",
}

# Part -> the keys of the signature for its translation model, beams, and longest translation.
_TRANSLATOR_KEYS = {
    "pseudo": ("mt", "beams", "mtlen"),
    "back": ("bt", "btbeams", "btlen"),
}


def part_weights(
    weights: str, combine: str, without: Collection[str] = ()
) -> tuple[dict[str, float], dict[str, float]]:
    """Weights of what is computed, which sum to 1 on either level.

    Args:
        weights: name of a set of `WEIGHTS`, or weights by the names of the parts, such as
            ``wmd=0.6+lm=0.1``; a part that is not named there has none.
        combine: `LEVELS` joined by ``+``.
        without: names of `OPTIONAL`; the weights of what remains are scaled up.

    Returns:
        Weights of the parts of the word level, none where `combine` has no ``wrd``, and weights of
        the levels.

    Raises:
        InputError: an unknown name, or nothing is left.
    """
    chosen = _named_weights(str(weights))
    gone = {OPTIONAL[choice("without", name, tuple(OPTIONAL))] for name in without}
    wanted_levels = str(combine).split("+")
    if not set(wanted_levels) <= set(LEVELS) or len(set(wanted_levels)) != len(wanted_levels):
        raise InputError(f"combine {combine!r}: must be one of wrd, snt, wrd+snt", option="combine")
    names = [name for name in LEVELS if name in wanted_levels and name not in gone]
    if not names:
        raise InputError(
            f"combine {combine!r}: nothing is left without {' and '.join(without)}",
            option="combine",
        )
    # A level that stands alone is the score, whatever its weight.
    levels = _scaled(chosen, names) if len(names) > 1 else {names[0]: 1.0}
    return _scaled(
        chosen, [name for name in WORD_PARTS if name not in gone and "wrd" in levels]
    ), levels


def _named_weights(text: str) -> dict[str, float]:
    if "=" not in text:
        return WEIGHTS[choice("weights", text, tuple(WEIGHTS))]
    weights = dict.fromkeys((*WORD_PARTS, *LEVELS), 0.0)
    for item in text.split("+"):
        name, _, value = item.partition("=")
        choice("weights", name, tuple(weights))
        try:
            weights[name] = float(value)
        except ValueError:
            weights[name] = np.nan
        if not 0 <= weights[name] < np.inf:
            raise InputError(
                f"weights {text!r}: {item!r} cannot be used; PART=NUMBER is needed, at least 0",
                option="weights",
            )
    return weights


def _scaled(weights: Mapping[str, float], names: Collection[str]) -> dict[str, float]:
    total = sum(weights.get(name, 0.0) for name in names)
    if names and not total:
        raise InputError(
            f"weights: none for {' or '.join(names)}; one of them needs a weight above 0"
        )
    return {name: weights[name] / total for name in names if weights.get(name)}


def weighted_sum(parts: Mapping[str, np.ndarray], weights: Mapping[str, float]) -> np.ndarray:
    """(n,) sum of the parts that have a weight: Eq. 3 with those of the word level, Eq. 6 with
    those of the levels."""
    return np.sum([weight * parts[name] for name, weight in weights.items()], axis=0)


@dataclasses.dataclass
class _Encoded:
    """Packed texts of a batch.

    Attributes:
        words: n-grams of the remapped sources, then of each system; empty without the word level.
        unmapped_sources: n-grams of the sources as the encoder gives them, for ``back``.
        translations: part -> n-grams of the pseudo-references, or of the pseudo sources of each
            system.
        sentences: vectors of the sources, then of each system; empty without the sentence level.
    """

    words: list[PackedTokens] = dataclasses.field(default_factory=list)
    unmapped_sources: PackedTokens | None = None
    translations: dict[str, list[PackedTokens]] = dataclasses.field(default_factory=dict)
    sentences: list[PackedTokens] = dataclasses.field(default_factory=list)

    @property
    def levels(self) -> list[list[PackedTokens]]:
        """The levels that there are, each with the sources first."""
        return [level for level in (self.words, self.sentences) if level]


class UScore(WordScorer):
    """``w_wrd wrd + w_snt snt`` (Eq. 6), where ``wrd = w_xlng wmd + w_pseudo pseudo + w_lm lm``
    (Eq. 3).

    ``wmd`` is the negative Word Mover's Distance between the remapped source and the translation,
    from -4 to 0, as the published code has it; ``pseudo`` the same between a machine translation of
    the source (the pseudo-reference) and the translation, where nothing is remapped; ``lm`` the
    mean log-likelihood of the translation, at most 0; ``snt`` the cosine of the sentence vectors of
    source and translation. All of them, and ``wrd``, are parts of the result. A segment with a
    blank side gets the lowest value of every part, one whose pseudo-reference comes out blank that
    of ``pseudo`` alone. Weights by name may ask for ``back``, too: as ``pseudo``, between the
    source and the translation translated back (the pseudo source of Sec. 7, which the paper leaves
    to later work).

    Args:
        words: the variant ``uscore`` of XMoverScore, with the map and the language model; None
            where the word level is not asked for.
        translator: makes the pseudo-references.
        sentences: the encoder of one vector per text.
        back_translator: makes the pseudo sources of ``back``.
        **options: of `UScore.Settings`.

    Raises:
        InputError: an unknown setting, another variant, or a model is missing whose part was not
            left out by name.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of UScore."""

        combine: str = option(
            "wrd+snt",
            "wrd (word level), snt (sentence level) or wrd+snt",
            usage="PART+PART",
            preset="parts",
        )
        weights: str = option(
            "tuned",
            "tuned, + or ++, or weights of parts, wmd=0.6+lm=0.1+wrd=0.7+snt=0.3",
            usage="NAME|PART=N+...",
            preset="weights",
            weighs=True,
        )
        without: str | Collection[str] | None = option(
            None,
            (
                "leave out translation, language_model or sentences, besides what the preset leaves "
                "out"
            ),
            usage="NAME+NAME",
        )
        map: str | None = loading_option(settings.MAP)
        maps: str | None = loading_option(settings.MAPS, usage="PATH|NAME")
        lm: str | None = loading_option(settings.LANGUAGE_MODEL, usage="MODEL")
        back: str | None = loading_option(
            "translation model into the source language, for weights of back",
            usage="MODEL",
        )
        workers: int | None = loading_option(settings.WORKERS)

    settings: Settings

    metric = "uscore"
    scale = "at most 0.4 with the weights `tuned`"
    parts_help = "`wmd`, `pseudo`, `back`, `lm`, `wrd` and `snt`, as far as they were computed"
    alignments_help = XMoverScore.alignments_help
    usual_preset = "mini"
    preset_keys: ClassVar = {
        "encoder": {"model", "revision", "layer"},
        "maps": {"artifact", "kind", "revision", "fingerprint"},
        "sentences": {"model", "revision"},
        **{
            f"{back}translation": {"model", "revision", "beams", "max_length"}
            for back in ("", "back_")
        },
        "language_models.*": {"model", "revision", "start_token", "end_token", "length_power"},
        "score": {"without", "pieces", "masses"},
        # Read by `mtmetrics.uscore`, which makes presets from this one.
        "start": {"sentences", "translation", "aligner_layer"},
    }

    def compute(self, batch: Batch) -> list[PartScores]:
        translations = self._translated(batch)
        encoded = self._encoded(batch, translations)
        results = []
        for system, predictions in enumerate(batch.predictions):
            parts: dict[str, np.ndarray] = {}
            sides = [side for level in encoded.levels for side in (level[0], level[1 + system])]
            truncated = any_truncated(*sides)
            if encoded.words:
                words, cut = self._word_parts(encoded, translations, system, predictions)
                parts |= words
                truncated |= cut
            if encoded.sentences:
                source, target = encoded.sentences[0], encoded.sentences[1 + system]
                parts["snt"] = text_cosines(source, target)
            segments = self.combined(parts)
            results.append(PartScores(segments, parts, truncated, np.isnan(segments)))
        return results

    def _word_parts(
        self,
        encoded: _Encoded,
        translations: Mapping[str, list[list[Translation]]],
        system: int,
        predictions: list[str],
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The parts of the word level for one system, and an (n,) mask of translations of
        `translations` or of texts that a model cut."""
        scorer = self._required_words()
        parts: dict[str, np.ndarray] = {}
        truncated = np.zeros(len(predictions), dtype=bool)
        source, prediction = encoded.words[0], encoded.words[1 + system]
        parts["wmd"] = scorer.mover(source, prediction)
        for part, translated in translations.items():
            # All systems share the pseudo-references.
            place, compared = 0, prediction
            if part == "back" and encoded.unmapped_sources is not None:
                place, compared = system, encoded.unmapped_sources
            values = scorer.mover(encoded.translations[part][place], compared)
            # The encoder frames blank text, too, so it would come out close to everything.
            is_blank = np.array([not item.text.strip() for item in translated[place]])
            parts[part] = np.where(is_blank, scorer._floor()[1]["mover"], values)
            truncated |= np.array([item.is_truncated for item in translated[place]])
        if "lm" in self.word_weights:
            parts["lm"], is_cut = scorer.lm_part(predictions)
            truncated |= is_cut
        parts["wrd"] = weighted_sum(parts, self.word_weights)
        return parts, truncated

    def combined(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        words = {"wrd": weighted_sum(parts, self.word_weights)} if self.word_weights else {}
        return weighted_sum({**parts, **words}, self.level_weights)

    def _floor(self) -> tuple[float, dict[str, float]]:
        floors = {"snt": -1.0}
        if self.words is not None:
            words = self.words._floor()[1]
            floors |= dict.fromkeys(("wmd", "pseudo", "back"), words["mover"]) | {"lm": words["lm"]}
        arrays = {name: np.array([value]) for name, value in floors.items()}
        if self.word_weights:
            arrays["wrd"] = weighted_sum(arrays, self.word_weights)
        kept = {name: float(arrays[name][0]) for name in (*self.word_weights, *self.level_weights)}
        return float(weighted_sum(arrays, self.level_weights)[0]), kept

    def _translated(self, batch: Batch) -> dict[str, list[list[Translation]]]:
        """Part -> translations: of the sources, once, for ``pseudo``, of the translations of each
        system for ``back``."""
        translations = {}
        for part, translator in self._translators.items():
            columns = [batch.compared] if part == "pseudo" else batch.predictions
            translations[part] = [translator.translate(texts) for texts in columns]
        return translations

    @property
    def _translators(self) -> dict[str, Translator]:
        """By the part that it makes."""
        both = {"pseudo": self.translator, "back": self.back_translator}
        return {
            part: translator
            for part, translator in both.items()
            if translator is not None and part in self.word_weights
        }

    def _encoded(
        self, batch: Batch, translations: Mapping[str, list[list[Translation]]]
    ) -> _Encoded:
        """Encodes all texts, each once per encoder."""
        encoded = _Encoded()
        words = self.words if self.word_weights else None
        if words is not None:
            source, *systems = encoded_columns(words.encoder, batch)
            encoded.words.append(words.ngrams_of(source, "source"))
            encoded.words += [words.ngrams_of(system, "target") for system in systems]
            if "back" in translations:
                encoded.unmapped_sources = words.ngrams_of(source, "target")
            for part, columns in translations.items():
                language = (
                    self.iso_languages.target if part == "pseudo" else self.iso_languages.source
                )
                tokens = [
                    words.encoder.encode([item.text for item in column], language)
                    for column in columns
                ]
                encoded.translations[part] = [words.ngrams_of(side, "target") for side in tokens]
        if self._sentences is not None:
            encoded.sentences = encoded_columns(self._sentences, batch)
        return encoded

    @property
    def _sentences(self) -> Encoder | None:
        return self.sentences if "snt" in self.level_weights else None

    @property
    def cells(self) -> Cells:
        """Costs; an `InputError` without the word level."""
        return self._required_words().cells

    def _required_words(self) -> XMoverScore:
        """The scorer of the word level; an `InputError` without it."""
        if self.words is None:
            raise InputError(f"alignments: {self.why_no_words}")
        return self.words

    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        """Aligns with the sources, not with the pseudo-references."""
        return self._required_words().align_batch(batch)

    def evidence(
        self, predictions: list[str], alignments: Sequence[Alignment]
    ) -> list[list[Evidence]]:
        weights = self.word_weights.get("wmd", 0.0), self.word_weights.get("lm", 0.0)
        return self._required_words().weighted_evidence(predictions, alignments, *weights)

    def __init__(
        self,
        words: XMoverScore | None = None,
        translator: Translator | None = None,
        sentences: Encoder | None = None,
        *,
        back_translator: Translator | None = None,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(settings=settings, **options)
        settings = self.settings
        gone = _names(settings.without)
        self.word_weights, self.level_weights = part_weights(
            settings.weights, settings.combine, gone
        )
        self.without = sorted(name for name in gone if self.word_weights or OPTIONAL[name] == "snt")
        self.words, self.sentences = words, sentences
        # Of the translations that the parts "pseudo" and "back" compare with.
        self.translator, self.back_translator = translator, back_translator
        self.encoder_layers = None if words is None else words.encoder_layers
        encoder = words.encoder if words is not None and self.word_weights else self._sentences
        self.dtype = None if encoder is None else encoder.dtype
        models = {
            "wmd": words,
            "pseudo": translator,
            "lm": words and words.language_model,
            "snt": sentences,
        }
        models["back"] = back_translator
        for name in (*self.word_weights, *self.level_weights):
            if name in models and models[name] is None:
                advice = "pass it, or leave the part out by name (without=)"
                raise InputError(
                    f"the model of the part {name!r} is missing; {advice}", mentions=["without="]
                )
        if words is not None and words.variant != "uscore":
            raise InputError(
                f"words: XMoverScore's variant 'uscore' is needed, not {words.variant!r}"
            )

    @classmethod
    def options_without_pair(cls, options: Options) -> dict[str, Any]:
        return {
            "map": "none",
            "without": "+".join(sorted({*_names(options.get("without")), "translation"})),
        }

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """A preset may be one that ``mtmetrics train uscore`` makes; one that was made for a language
        pair needs none.

        Raises:
            ArtifactError: a part that was not left out has no model.
        """
        lang_pair = settings.lang_pair or preset.settings.get("lang_pair")
        without = _names(settings.without) | {*preset.settings.get("score", {}).get("without", [])}
        if settings.lm == "none":
            without.add("language_model")
        settings = dataclasses.replace(
            settings, lang_pair=lang_pair, without="+".join(sorted(without)) or None
        )
        word_weights, level_weights = part_weights(settings.weights, settings.combine, without)
        pair = required_pair(lang_pair) if word_weights else ("", target_language(lang_pair) or "")
        tables = _model_tables(preset, settings)
        needed = [
            name for name, part in OPTIONAL.items() if part in word_weights or part in level_weights
        ]
        _refuse_missing_models([name for name in needed if name not in tables], preset, pair[1])
        # Only the models of parts that have a weight are loaded.
        loaders: dict[str, Callable[..., Any]] = {
            "translation": functools.partial(models.translator, lang_pair="-".join(pair)),
            "language_model": models.language_model,
            "sentences": models.sentence_encoder,
            "back_translation": functools.partial(
                models.translator, lang_pair="-".join(reversed(pair))
            ),
        }
        loaded = {name: loaders[name](**tables[name]) for name in needed}
        words = None
        if word_weights:
            words = _word_level(preset, settings, models, loaded.get("language_model"))
        return cls(
            words,
            loaded.get("translation"),
            loaded.get("sentences"),
            back_translator=loaded.get("back_translation"),
            settings=settings,
        )

    def signature_fields(self) -> dict[str, object]:
        fields: dict[str, object] = {
            "parts": "+".join(self.level_weights),
            "weights": self.settings.weights,
            "without": "+".join(self.without) or None,
        }
        if self.words is not None and self.word_weights:
            fields |= self._word_fields(self.words)
        fields["sent"] = model_name(self._sentences)
        return fields | self.settings.signature_fields()

    def _word_fields(self, words: XMoverScore) -> dict[str, object]:
        """The fields of the signature for the word level."""
        has_usual_pieces = words.pieces == VARIANTS["uscore"].pieces
        fields: dict[str, object] = {
            "enc": model_name(words.encoder),
            "layer": words.encoder.layer,
            "pieces": None if has_usual_pieces else words.pieces,
            "mass": words.weights,
            "map": map_name(words.remapping),
        }
        for part, translator in self._translators.items():
            model, beams, length = _TRANSLATOR_KEYS[part]
            fields[model] = model_name(translator)
            fields[beams], fields[length] = translator.beams, translator.max_length
        language_model = words.language_model
        if language_model is not None and "lm" in self.word_weights:
            fields["lm"] = model_name(language_model)
            fields |= language_model.signature_fields
        return fields


def _names(listed: str | Collection[str] | None) -> set[str]:
    return set(listed.split("+") if isinstance(listed, str) else listed or ())


def _model_tables(preset: Preset, settings: UScore.Settings) -> dict[str, dict[str, Any]]:
    """By the names of `OPTIONAL`, the models that the user or the preset names."""
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


def _refuse_missing_models(missing: Sequence[str], preset: Preset, target: str) -> None:
    """Raises an `ArtifactError` where the preset lacks models of parts that are not left out."""
    if not missing:
        return
    labels = [f"{name} ({target})" if name == "language_model" else name for name in missing]
    without = f"without={'+'.join(missing)!r}"
    raise ArtifactError(
        f"preset {preset.name}: names no model for {' and '.join(labels)}; 'mtmetrics train "
        "uscore' makes a preset that does, from text of both languages; or leave out by name: "
        f"{without}",
        option="preset",
        mentions=[without],
    )


def _word_level(
    preset: Preset,
    settings: UScore.Settings,
    models: ModelPool,
    language_model: LanguageModel | None,
) -> XMoverScore:
    """The scorer of the parts of the word level."""
    score_table = preset.settings.get("score", {})
    encoder = models.encoder(**encoder_table(preset, None, None))
    masses = choice("masses", score_table.get("masses", "uniform"), ("uniform", "norm"))
    remapping = load_remapping(
        preset, models, encoder, settings.lang_pair, kind=settings.map, artifact=settings.maps
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
