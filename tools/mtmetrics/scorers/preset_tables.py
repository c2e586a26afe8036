"""Loads the models and maps of a metric from the tables of a preset. Options of the user replace these
tables.

A map is a linear transformation that moves vectors of the source language closer to those of the target
language, see `mtmetrics.matching.remapping.Remapping`. It is made for one language pair, one encoder and
one layer. Its kind is a method, or two methods in turn: ``clp`` (cross-lingual projection) or ``umd``
(universal language mismatch direction). A map artifact is a folder of maps with a name; it may hold maps
of several kinds."""

from typing import Any

from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import choice, for_language, language_of, language_pair
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.remapping import KINDS, Remapping
from mtmetrics.matching.remapping_files import load_map
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.packed import Encoder, Level
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.side import Table

# Keys of tables that several metrics read: of ``[encoder]``, of ``[maps]``, and of
# ``[language_models.LANGUAGE]``.
ENCODER_KEYS = {"model", "revision", "layer"}
MAP_KEYS = {"artifact", "kind", "revision", "fingerprint"}
# They determine how a language model scores texts, see
# `mtmetrics.models.language_model.LanguageModel`.
_LM_SCORING_KEYS = {"start_token", "end_token", "length_power"}
LANGUAGE_MODEL_KEYS = {"model", "revision", *_LM_SCORING_KEYS}


def check_supported_pair(preset: Preset, lang_pair: str) -> None:
    """Checks that a preset supports a language pair.

    Raises:
        InputError: the preset was made for another pair, or does not support one of the languages.
    """
    label = f"language pair {lang_pair}"
    only_pair, languages = preset.settings.get("lang_pair"), preset.settings.get("languages")
    if only_pair is not None and language_pair(lang_pair) != language_pair(only_pair):
        raise InputError(f"{label}: preset {preset.name} was made for {only_pair} only")
    for language in language_pair(lang_pair):
        if languages is not None and language not in map(language_of, languages):
            raise InputError(
                f"{label}: preset {preset.name} knows the languages {' '.join(languages)}, not "
                f"{language!r}"
            )


def required_pair(lang_pair: str | None) -> tuple[str, str]:
    """Returns the languages of source and translation.

    Raises:
        InputError: `lang_pair` is None or not a language pair.
    """
    if lang_pair is None:
        raise InputError(
            "language pair None: pass lang_pair=, such as 'de-en'", mentions=["lang_pair="]
        )
    return language_pair(lang_pair)


def target_language(lang_pair: str | None) -> str | None:
    """Returns the language of the translations; None without a language pair."""
    return None if lang_pair is None else language_pair(lang_pair)[1]


def encoder_table(
    preset: Preset,
    encoder: str | None,
    layer: int | None,
    *,
    use_target_encoder: bool = False,
    target: str | None = None,
) -> dict[str, Any]:
    """Returns model, layer and revision of the encoder: keywords of `ModelPool.encoder`.

    Args:
        preset: has a table ``[encoder]``, or tables ``[encoders.LANGUAGE]``.
        encoder: name or folder of the user's encoder, which replaces the table; None for the table.
        layer: the user's layer; None to use the layer of the table.
        use_target_encoder: whether to prefer the table ``[encoders.LANGUAGE]`` of the target to
            ``[encoder]``.
        target: language of the translations; None if it is unknown.

    Raises:
        InputError: the preset chooses its encoder by the target, and the target is unknown.
        ArtifactError: the table names no model.
    """
    tables_by_language = preset.settings.get("encoders", {}) if use_target_encoder else {}
    if encoder:
        table = {"model": encoder}
    elif tables_by_language and target is None:
        raise InputError(
            f"lang_pair is missing; preset {preset.name} chooses its encoder by the target language",
            option="lang_pair",
        )
    else:
        target_table = for_language(tables_by_language, target)
        if target_table:
            table = model_table(preset, f"encoders.{target}", target_table)
        else:
            table = model_table(preset, "encoder", preset.settings.get("encoder", {}))
    return {
        "model": table["model"],
        "layer": table.get("layer") if layer is None else layer,
        "revision": table.get("revision"),
    }


def model_table(preset: Preset, name: str, table: Table) -> dict[str, Any]:
    """Returns a copy of a table in which the path of the model no longer depends on the folder of the
    preset.

    Args:
        preset: the preset that the table belongs to.
        name: name of the table, for the error.
        table: one table of the preset, which names a model under the key ``model``.

    Raises:
        ArtifactError: the table names no model.
    """
    if "model" not in table:
        raise ArtifactError(
            f"preset {preset.name}: names no model in its [{name}] table", option="preset"
        )
    return {**table, "model": preset.path(table["model"])}


def load_remapping(
    preset: Preset,
    models: ModelPool,
    encoder: Encoder,
    lang_pair: str | None,
    *,
    map_kind: str | None,
    map_location: str | None,
    level: Level = "word",
) -> Remapping | None:
    """Loads the map of a language pair. Returns None if neither the user nor the preset wants one.

    Args:
        preset: its table ``[maps]`` has the kind and the artifact, unless the user passes them.
        models: the model pool; it says whether downloads are allowed.
        encoder: the loaded encoder, whose vectors are mapped.
        lang_pair: such as ``"de-en"``.
        map_kind: the user's option ``map``, such as ``"clp"`` or ``"none"``; None for the kind of
            the preset.
        map_location: the user's option ``maps``: a file, a folder or the name of a map artifact;
            None for the artifact of the preset.
        level: whether the vectors are those of words or of sentences.

    Raises:
        InputError: there is no such kind, or `lang_pair` is not a language pair.
        ArtifactError: the map cannot be loaded, or belongs to another encoder.
    """
    table = preset.settings.get("maps", {})
    kind = choice("map", map_kind or table.get("kind", "none"), ("none", *KINDS))
    if kind == "none":
        return None
    language_pair(lang_pair)  # refuses a missing or malformed pair
    load_options: dict[str, Any] = {"level": level, "local_files_only": models.local_files_only}
    if map_location:
        return load_map(map_location, str(lang_pair), kind, encoder, **load_options)
    # All maps of an artifact have one revision. But the fingerprint belongs to a single map, so a
    # preset that has one supports one language pair only. It is the map of the preset's kind; a map of
    # another kind is loaded without a check of its fingerprint.
    load_options["revision"] = table.get("revision")
    if kind == table.get("kind"):
        load_options["fingerprint"] = table.get("fingerprint")
    # If the table names no artifact, the maps lie in the folder of the preset.
    artifact = preset.path(table.get("artifact", "."))
    return load_map(artifact, str(lang_pair), kind, encoder, **load_options)


def load_language_model(
    preset: Preset, models: ModelPool, lang_pair: str | None, model: str | None
) -> tuple[LanguageModel | None, float]:
    """Loads the language model of the target language.

    Args:
        preset: its table ``[language_models.LANGUAGE]`` may name the model.
        models: the pool that loads it.
        lang_pair: such as ``"de-en"``.
        model: name or folder of the user's model, or ``"none"``; None for the model of the preset.

    Returns:
        The language model, or None without one; and the weight of its log-likelihood relative to the
        similarity, whose weight is 1.

    Raises:
        InputError: `lang_pair` is None or not a language pair.
        ArtifactError: the table of the preset names no model.
    """
    target = required_pair(lang_pair)[1]
    preset_table = for_language(preset.settings.get("language_models", {}), target) or {}
    weight: float = preset_table.get("weight", 0.1)
    table: dict[str, Any] = {"model": "none"}
    if model:
        table = user_language_model_table(model, preset_table)
    elif preset_table:
        table = model_table(preset, f"language_models.{target}", preset_table)
        table.pop("weight", None)
    language_model = None if table["model"] == "none" else models.language_model(**table)
    return language_model, weight


def user_language_model_table(model: str, table: Table) -> dict[str, Any]:
    """Returns the table of a user's language model, which keeps the keys of the preset's model that
    determine how texts are scored.

    Args:
        model: name or folder of the user's model.
        table: the preset's table of its language model.
    """
    return {"model": model} | {
        name: value for name, value in table.items() if name in _LM_SCORING_KEYS
    }
