"""UScore from a preset."""

import functools
from collections.abc import Callable
from typing import Any

from mtmetrics.artifacts.presets import Preset, load_preset
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.scorers.loaders.common import encoder_table, languages, preset_map
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.scorers.uscore import OPTIONAL, UScore, part_weights
from mtmetrics.scorers.xmoverscore import XMoverScore

_TABLES: dict[str, set[str]] = {
    "encoder": {"model", "revision", "layer"},
    "maps": {"artifact", "kind"},
    "sentences": {"model", "revision"},
    "translation": {"model", "revision", "beams", "max_length"},
    "language_models.*": {"model", "revision", "start_token", "end_token", "length_power"},
    "score": {"parts", "weights", "without"},
    # Read by `mtmetrics.uscore`, which makes presets from this one.
    "start": {"sentences", "translation", "aligner_layer"},
}


def load_uscore(
    preset: str = "paper",
    lang_pair: str | None = None,
    pool: ModelPool | None = None,
    *,
    parts: str | None = None,
    weights: str | None = None,
    without: str | None = None,
    map: str | None = None,
    maps: str | None = None,
    lm: str | None = None,
    threads: int | None = None,
) -> UScore:
    """UScore as a preset describes it; each option that is not None overrides the preset.

    Args:
        preset: name of a preset, or a folder with a preset.toml, such as ``mtmetrics uscore`` makes.
        lang_pair: such as ``"de-en"``; not needed where the preset was made for one.
        pool: loaded models to share.
        parts: ``"wrd"``, ``"snt"`` or ``"wrd+snt"``.
        weights: ``"tuned"``, ``"+"`` or ``"++"``.
        without: what is left out, besides what the preset leaves out: ``"translation"``, ``"language_model"`` or
            ``"sentences"``, or several of them joined by ``+``.
        map: ``"none"``, ``"clp"``, ``"umd"``, ``"clp+umd"`` or ``"umd+clp"``.
        maps: a map file, a folder of maps, or the name of a map artifact.
        lm: a language model, or ``"none"``, which leaves it out.
        threads: solver threads.

    Raises:
        InputError: an unknown preset, pair or option.
        ArtifactError: something that the preset names cannot be loaded, or a part that was not left out has no model.
    """
    pool = pool or ModelPool()
    bundle = load_preset("uscore", preset, local_files_only=pool.local_files_only)
    bundle.refuse_unknown(_TABLES)
    lang_pair = lang_pair or bundle.settings.get("lang_pair")
    pair = languages(bundle, lang_pair)
    score = bundle.settings.get("score", {})
    parts, weights = parts or score.get("parts", "wrd+snt"), weights or score.get("weights", "tuned")
    gone = {
        *score.get("without", []),
        *(without.split("+") if without else []),
        *(["language_model"] if lm == "none" else []),
    }
    word_weights, level_weights = part_weights(weights, parts, gone)
    if word_weights and pair is None:
        raise InputError("language pair None: pass one such as 'de-en' (lang_pair=, or --lp)")
    target = str(pair and pair[1])
    tables = _tables(bundle, target, lm)
    needed = [name for name, part in OPTIONAL.items() if part in word_weights or part in level_weights]
    missing = [name for name in needed if "model" not in tables[name]]
    if missing:
        named = [f"{name} ({target})" if name == "language_model" else name for name in missing]
        raise ArtifactError(
            f"preset {bundle.name}: names no model for {' and '.join(named)}; "
            f"'mtmetrics uscore' makes a preset that does, from text of both languages; or leave out by name: without={'+'.join(missing)!r}"
        )
    loaders: dict[str, Callable[..., Any]] = {
        "translation": functools.partial(pool.translator, lang_pair=lang_pair),
        "language_model": pool.language_model,
        "sentences": pool.sentence_encoder,
    }
    models = {name: loaders[name](**tables[name]) for name in needed}
    words = None
    if word_weights:
        table = encoder_table(bundle, None)
        encoder = pool.encoder(table["model"], layer=table.get("layer"), revision=table.get("revision"))
        remapping = preset_map(bundle, pool, encoder, lang_pair, kind=map, maps=maps)
        model = models.get("language_model")
        words = XMoverScore(encoder, variant="uscore", remapping=remapping, language_model=model, threads=threads)
    return UScore(
        words,
        translator=models.get("translation"),
        sentences=models.get("sentences"),
        parts=parts,
        weights=weights,
        without=gone,
        lang_pair=lang_pair,
    )


def _tables(bundle: Preset, target: str, lm: str | None) -> dict[str, dict[str, Any]]:
    """By the names of `OPTIONAL`, the tables of the models, with their paths; empty where the preset has none."""
    tables = {
        "translation": bundle.settings.get("translation", {}),
        "language_model": {"model": lm} if lm else bundle.settings.get("language_models", {}).get(target, {}),
        "sentences": bundle.settings.get("sentences", {}),
    }
    return {
        name: {**table, "model": bundle.path(table["model"])} if "model" in table else {}
        for name, table in tables.items()
    }
