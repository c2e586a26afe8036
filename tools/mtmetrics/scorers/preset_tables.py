"""Models and maps of a preset: which of its tables a metric reads, and what the user says instead."""

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

# Keys of a table of a language model that say how it scores texts.
_LM_OPTIONS = ("start_token", "end_token", "length_power")


def refuse_other_languages(preset: Preset, lang_pair: str) -> None:
    """Raises an `InputError` where a preset does not know a language, or was made for another
    pair."""
    place = f"language pair {lang_pair}"
    only_pair, languages = preset.settings.get("lang_pair"), preset.settings.get("languages")
    if only_pair is not None and not names_of_pair(lang_pair, [only_pair]):
        raise InputError(f"{place}: preset {preset.name} was made for {only_pair} only")
    for language in language_pair(lang_pair):
        if languages is not None and language not in map(language_of, languages):
            raise InputError(
                f"{place}: preset {preset.name} knows the languages {' '.join(languages)}, not "
                f"{language!r}"
            )


def required_pair(lang_pair: str | None) -> tuple[str, str]:
    """The languages of source and translation; an `InputError` where no pair is given."""
    if lang_pair is None:
        raise InputError(
            "language pair None: pass lang_pair=, such as 'de-en'", mentions=["lang_pair="]
        )
    return language_pair(lang_pair)


def target_language(lang_pair: str | None) -> str | None:
    """The language of the translations; None where no pair is given."""
    return None if lang_pair is None else language_pair(lang_pair)[1]


def encoder_table(
    preset: Preset, encoder: str | None, layer: int | None, target: str | None = None
) -> dict[str, Any]:
    """Model, layer and revision of the encoder, as `ModelPool.encoder` takes them.

    Args:
        preset: has a table ``[encoders.LANGUAGE]`` for the target, or else ``[encoder]``.
        encoder: the user's own, which replaces the table.
        layer: the user's own.
        target: language of the translations; None where it is not known, the empty text where it
            does not matter.

    Raises:
        InputError: the preset chooses its encoder by the target, which is not known.
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
    """A table of a preset that names a model, with the place of that model; an `ArtifactError` if
    it names none."""
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
    """The map of the source side; None where none is asked for.

    Args:
        preset: its table ``[maps]`` says kind and artifact where the user does not.
        models: says whether the Hub may be asked.
        encoder: the encoder whose vectors are mapped.
        lang_pair: such as ``"de-en"``.
        kind: the user's ``map``.
        artifact: the user's ``maps``.
        level: whether vectors are those of words or of sentences.

    Raises:
        InputError: there is no such kind, or no language pair is given.
        ArtifactError: the map cannot be loaded, or belongs to another encoder.
    """
    table = preset.settings.get("maps", {})
    kind = choice("map", kind or table.get("kind", "none"), ("none", *KINDS))
    if kind == "none":
        return None
    language_pair(lang_pair)
    options: dict[str, Any] = {"level": level, "local_files_only": models.local_files_only}
    if not artifact:
        options["revision"] = table.get("revision")
        # The fingerprint is that of one map: of the preset's kind.
        options["fingerprint"] = table.get("fingerprint") if kind == table.get("kind") else None
    place = artifact or preset.path(table.get("artifact", "."))
    return load_map(place, str(lang_pair), kind, encoder, **options)


def load_language_model(
    preset: Preset, models: ModelPool, lang_pair: str | None, model: str | None
) -> tuple[LanguageModel | None, float]:
    """The language model of the target language, and its weight.

    Args:
        preset: its table ``[language_models.LANGUAGE]`` names the model, where it has one.
        models: loads it.
        lang_pair: such as ``"de-en"``.
        model: the user's own, or ``"none"``.
    """
    target = required_pair(lang_pair)[1]
    preset_table = for_language(preset.settings.get("language_models", {}), target) or {}
    table: dict[str, Any] = {"model": "none"}
    if preset_table:
        table = model_table(preset, f"language_models.{target}", preset_table)
    weight: float = table.pop("weight", 0.1)
    if model:
        table = own_language_model(model, preset_table)
    return (None if table["model"] == "none" else models.language_model(**table)), weight


def own_language_model(model: str, table: Table) -> dict[str, Any]:
    """The table of a user's language model, which scores texts in the way of the preset's own one
    (`table`)."""
    return {"model": model} | {name: table[name] for name in _LM_OPTIONS if name in table}
