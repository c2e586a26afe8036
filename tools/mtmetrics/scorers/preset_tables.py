"""Models and maps of a metric: reads them from the tables of a preset, or from the options of the user,
which replace these tables.

A map is a linear transformation that moves vectors of the source language closer to those of the target
language, see `mtmetrics.matching.remapping.Remapping`. It is made for one language pair, one encoder and
one layer."""

from typing import Any

from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import choice, for_language, language_of, language_pair, names_of_pair
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.remapping import KINDS, Remapping
from mtmetrics.matching.remapping_files import load_map
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.packed import Encoder, Level
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.side import Table

# Keys of a table of a language model that determine how the model scores texts.
_LM_SCORING_KEYS = ("start_token", "end_token", "length_power")


def refuse_other_languages(preset: Preset, lang_pair: str) -> None:
    """Checks that a preset is made for a language pair.

    Raises:
        InputError: the preset was made for another pair, or does not know one of the languages.
    """
    label = f"language pair {lang_pair}"
    only_pair, languages = preset.settings.get("lang_pair"), preset.settings.get("languages")
    if only_pair is not None and not names_of_pair(lang_pair, [only_pair]):
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
        InputError: `lang_pair` is None, or no language pair.
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
    preset: Preset, encoder: str | None, layer: int | None, target: str | None = None
) -> dict[str, Any]:
    """Returns model, layer and revision of the encoder: keywords of `ModelPool.encoder`.

    Args:
        preset: has a table ``[encoders.LANGUAGE]`` for the target, or else ``[encoder]``.
        encoder: name or folder of the user's encoder, which replaces the table; None for the table.
        layer: the user's layer; None for the one of the table.
        target: language of the translations, by which ``[encoders.LANGUAGE]`` is chosen. The empty
            text skips these tables, so that ``[encoder]`` counts. None means unknown.

    Raises:
        InputError: the preset has tables ``[encoders.LANGUAGE]``, and the target is unknown.
        ArtifactError: the table names no model.
    """
    tables = preset.settings.get("encoders", {})
    if encoder:
        table = {"model": encoder}
    elif tables and target is None:
        reason = f"preset {preset.name} chooses its encoder by the target language"
        raise InputError(f"lang_pair is missing; {reason}", option="lang_pair")
    else:
        table = for_language(tables, target) or preset.settings.get("encoder", {})
        table = model_table(preset, "encoder", table)
    return {
        "revision": None,
        **table,
        "layer": table.get("layer") if layer is None else layer,
    }


def model_table(preset: Preset, name: str, table: Table) -> dict[str, Any]:
    """Returns a table of a preset with the path of its model, which may be relative to the preset.

    Args:
        preset: the preset.
        name: name of the table, for the error.
        table: the table.

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
    kind: str | None,
    artifact: str | None,
    level: Level = "word",
) -> Remapping | None:
    """Loads the map of a language pair; None if neither the user nor the preset wants one.

    Two options of the user belong to it: ``map`` is the kind of the map, ``maps`` is where maps lie.

    Args:
        preset: its table ``[maps]`` has the kind and the artifact, unless the user passes them.
        models: the pool that knows whether the Hub may be asked.
        encoder: the loaded encoder, whose vectors are mapped.
        lang_pair: such as ``"de-en"``.
        kind: the user's ``map``, such as ``"clp"`` or ``"none"``; None for the preset's.
        artifact: the user's ``maps``, a file, folder or artifact; None for the preset's.
        level: whether the vectors are those of words or of sentences.

    Raises:
        InputError: there is no such kind, or `lang_pair` is no language pair.
        ArtifactError: the map cannot be loaded, or belongs to another encoder.
    """
    table = preset.settings.get("maps", {})
    kind = choice("map", kind or table.get("kind", "none"), ("none", *KINDS))
    if kind == "none":
        return None
    language_pair(lang_pair)
    load_options: dict[str, Any] = {"level": level, "local_files_only": models.local_files_only}
    if not artifact:
        # All maps of an artifact have one revision. But the fingerprint pins the numbers of a single
        # map, the one of the preset's kind, so that a map of another kind has another fingerprint.
        load_options["revision"] = table.get("revision")
        is_pinned_kind = kind == table.get("kind")
        load_options["fingerprint"] = table.get("fingerprint") if is_pinned_kind else None
    map_source = artifact or preset.path(table.get("artifact", "."))
    return load_map(map_source, str(lang_pair), kind, encoder, **load_options)


def load_language_model(
    preset: Preset, models: ModelPool, lang_pair: str | None, model: str | None
) -> tuple[LanguageModel | None, float]:
    """Loads the language model of the target language.

    Args:
        preset: its table ``[language_models.LANGUAGE]`` may name the model.
        models: the pool that loads it.
        lang_pair: such as ``"de-en"``.
        model: name or folder of the user's model, or ``"none"``; None for the preset's.

    Returns:
        The language model, None if there is none; and the weight of its log-likelihood in the score
        of a segment, beside the similarity, whose weight is 1.

    Raises:
        InputError: `lang_pair` is None, or no language pair.
    """
    target = required_pair(lang_pair)[1]
    preset_table = for_language(preset.settings.get("language_models", {}), target) or {}
    table: dict[str, Any] = {"model": "none"}
    if preset_table:
        table = model_table(preset, f"language_models.{target}", preset_table)
    weight: float = table.pop("weight", 0.1)
    if model:
        table = user_language_model_table(model, preset_table)
    return (None if table["model"] == "none" else models.language_model(**table)), weight


def user_language_model_table(model: str, table: Table) -> dict[str, Any]:
    """Returns the table of a user's language model. It scores texts in the way that the preset's
    model does.

    Args:
        model: name or folder of the user's model.
        table: the preset's table of its language model.
    """
    return {"model": model} | {name: table[name] for name in _LM_SCORING_KEYS if name in table}
