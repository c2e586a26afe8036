"""What the loaders of several metrics share."""

from typing import Any

from mtmetrics.artifacts.presets import Preset
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.inputs import choice, language_pair
from mtmetrics.maps.files import load_map
from mtmetrics.maps.remapping import KINDS, Level, Remapping
from mtmetrics.models.packed import Encoder
from mtmetrics.scorers.naming import AGAINST
from mtmetrics.scorers.pool import ModelPool


def languages(bundle: Preset, lang_pair: str | None) -> tuple[str, str] | None:
    """Source and target language; None where no pair is given.

    Raises:
        InputError: no language pair, or one that the preset does not know.
    """
    if lang_pair is None:
        return None
    pair = language_pair(lang_pair)
    only, known = bundle.settings.get("lang_pair"), bundle.settings.get("languages")
    if only not in (None, lang_pair):
        raise InputError(f"language pair {lang_pair}: preset {bundle.name} was made for {only} only")
    for language in pair:
        if known is not None and language not in known:
            raise InputError(
                f"language pair {lang_pair}: preset {bundle.name} knows the languages {' '.join(known)}, not {language!r}"
            )
    return pair


def compared_with(bundle: Preset, asked: Any, *, usual: str) -> str:
    """What translations are compared with, ``"source"`` or ``"reference"``: as asked, else as the preset says, else as
    usual.

    Raises:
        InputError: neither of the two, or the preset is made for the other one.
    """
    only = bundle.settings.get("score", {}).get("against")
    against = choice("against", asked or only or usual, tuple(AGAINST))
    if only not in (None, against):
        raise InputError(
            f"against {against!r}: preset {bundle.name} compares with the {only} only; choose another preset"
        )
    return against


def encoder_table(bundle: Preset, override: str | None, target: str | None = None) -> dict[str, Any]:
    """The table of the encoder: the user's own model, else ``[encoders.LANGUAGE]`` of the target language, else
    ``[encoder]``.

    Raises:
        InputError: the preset chooses by language, and none is given.
        ArtifactError: the preset names no model.
    """
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
    """The map of the source side that the preset or the user asks for.

    Raises:
        InputError: an unknown kind, or no language pair.
        ArtifactError: there is no such map, or it was made for another encoder.
    """
    table = bundle.settings.get("maps", {})
    chosen = choice("map", kind or table.get("kind", "none"), ("none", *KINDS))
    if chosen == "none":
        return None
    language_pair(lang_pair)
    artifact = maps or bundle.path(table.get("artifact", "."))
    return load_map(artifact, str(lang_pair), chosen, encoder, level=level, local_files_only=pool.local_files_only)
