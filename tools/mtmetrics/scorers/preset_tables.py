"""What the tables of a preset name, and the line that pins a score: its signature."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from mtmetrics._version import __version__
from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import choice, language_pair
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.remapping import KINDS, Level, Remapping
from mtmetrics.matching.remapping_files import load_map
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.packed import Encoder
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.stored_vectors import SUFFIX


def preset_language_model(
    bundle: Preset, pool: ModelPool, target: str, override: str | None
) -> tuple[LanguageModel | None, float]:
    """The language model of a preset of XMoverScore for a target language, or the user's own, and its weight."""
    table = bundle.settings.get("language_models", {}).get(target, {})
    if table and "model" not in table:
        raise ArtifactError(f"preset {bundle.name}: names no model in its [language_models.{target}] table")
    weight = table.get("weight", 0.1)
    name = override or (bundle.path(table["model"]) if table else "none")
    if name == "none":
        return None, weight
    options = {} if override else {key: value for key, value in table.items() if key not in ("model", "weight")}
    return pool.language_model(name, **options), weight


class Pinned(Protocol):
    """A model that a signature names by its label and the 8 hexadecimal digits that pin its numbers."""

    label: str
    fingerprint: str


def signature(metric: str, fields: Mapping[str, object]) -> str:
    """``metric|key:value|...|v:VERSION``; fields whose value is None are left out.

    Example:
        >>> signature("xmoverscore", {"lp": "de-en", "layer": 12, "drop": None}).rsplit("|", 1)[0]
        'xmoverscore|lp:de-en|layer:12'
    """
    shown = [f"{key}:{value}" for key, value in fields.items() if value is not None]
    return "|".join([metric, *shown, f"v:{__version__}"])


def extended(line: str, *fields: str) -> str:
    """A signature with more fields, before the version."""
    head, _, version = line.rpartition("|v:")
    return "|".join([head, *fields, f"v:{version}"])


def model_name(model: Pinned | None) -> str | None:
    """Label and fingerprint of a model; None where there is none."""
    return None if model is None else f"{model.label}#{model.fingerprint}"


def map_name(remapping: Remapping | None) -> str:
    """Kind and fingerprint of a map, or ``none``."""
    return "none" if remapping is None else f"{remapping.kind}#{remapping.fingerprint}"


def needed_languages(bundle: Preset, lang_pair: str | None) -> tuple[str, str]:
    """Source and target language, which the preset knows; an `InputError` where no pair is given."""
    pair = languages(bundle, lang_pair)
    if pair is None:
        raise InputError("language pair None: pass lang_pair=, such as 'de-en'")
    return pair


def languages(bundle: Preset, lang_pair: str | None) -> tuple[str, str] | None:
    """Source and target language, which the preset knows; None where no pair is given."""
    if lang_pair is None:
        return None
    pair = language_pair(lang_pair)
    only, known = bundle.settings.get("lang_pair"), bundle.settings.get("languages")
    if only not in (None, lang_pair):
        raise InputError(f"language pair {lang_pair}: preset {bundle.name} was made for {only} only")
    for language in pair:
        if known is not None and language not in known:
            there = f"preset {bundle.name} knows the languages {' '.join(known)}"
            raise InputError(f"language pair {lang_pair}: {there}, not {language!r}")
    return pair


def encoder_table(bundle: Preset, override: str | None, target: str | None = None) -> dict[str, Any]:
    """The table of the encoder: the user's own, else ``[encoders.LANGUAGE]`` of the target, else ``[encoder]``."""
    if override:
        return {"model": override}
    tables = bundle.settings.get("encoders", {})
    if tables and target is None:
        raise InputError(f"lang_pair is missing; preset {bundle.name} chooses its encoder by the target language")
    table = tables.get(target) or bundle.settings.get("encoder", {})
    if "model" not in table:
        raise ArtifactError(f"preset {bundle.name}: names no model in its [encoder] table")
    return {**table, "model": bundle.path(table["model"])}


def preset_map(
    bundle: Preset,
    pool: ModelPool,
    encoder: Encoder,
    lang_pair: str | None,
    *,
    kind: str | None,
    maps: str | None,
    level: Level = "word",
) -> Remapping | None:
    """The map of the source side that the user or the preset asks for."""
    table = bundle.settings.get("maps", {})
    chosen = choice("map", kind or table.get("kind", "none"), ("none", *KINDS))
    if chosen == "none":
        return None
    language_pair(lang_pair)
    artifact = maps or bundle.path(table.get("artifact", "."))
    return load_map(artifact, str(lang_pair), chosen, encoder, level=level, local_files_only=pool.local_files_only)


def source_and_target_encoders(
    bundle: Preset, pool: ModelPool, pair: tuple[str, str], chosen: Any, usual_layer: int | None
) -> tuple[Any, Any]:
    """The encoders of sources and of predictions, by the settings that were `chosen` of XMoverScore: two tables of word
    vectors, or one encoder, twice; `usual_layer` is read where nothing says another one."""
    table = encoder_table(bundle, chosen.encoder)
    sources, targets = (bundle.path(table["model"].replace("{lang}", language)) for language in pair)
    layer = table.get("layer") if chosen.layer is None else chosen.layer
    if sources.endswith(SUFFIX) and chosen.similarity != "cosine":
        raise InputError(f"encoder {sources}: holds a vector per text; use similarity='cosine'")
    if Path(sources).is_file() and Path(targets).is_file() and not sources.endswith(SUFFIX):
        if layer is not None:
            raise InputError(f"layer {layer}: {sources} is a table of word vectors, which have no layers; leave it out")
        if chosen.similarity == "cosine":
            why = f"{sources} is a table of word vectors, use similarity='mover'"
            raise InputError(f"similarity='cosine' needs a vector per text; {why}")
        return pool.static_vectors(sources), pool.static_vectors(targets)
    if sources != targets:
        missing = targets if Path(sources).is_file() else sources
        raise InputError(f"encoder {table['model']}: no such table of word vectors: {missing}")
    load, usual = (pool.sentence_encoder, None) if chosen.similarity == "cosine" else (pool.encoder, usual_layer)
    encoder = load(sources, layer=usual if layer is None else layer, revision=table.get("revision"))
    return encoder, encoder
