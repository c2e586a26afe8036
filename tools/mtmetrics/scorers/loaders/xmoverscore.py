"""XMoverScore, or its language model alone, from a preset."""

from pathlib import Path
from typing import Any

from mtmetrics.artifacts.presets import Preset, load_preset
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.inputs import choice
from mtmetrics.maps.remapping import Level
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.words import TokenWeights
from mtmetrics.scorers.baselines import Fluency
from mtmetrics.scorers.loaders.common import encoder_table, languages, preset_map
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.scorers.xmoverscore import SIMILARITIES, VARIANTS, XMoverScore

_TABLES: dict[str, set[str]] = {
    "encoder": {"model", "revision", "layer"},
    "score": {"similarity", "variant", "ngram", "distance", "sides", "drop_rate"},
    "maps": {"artifact", "kind"},
    "language_models.*": {"model", "revision", "weight", "start_token", "end_token", "length_power"},
}


def load_xmoverscore(
    preset: str = "paper",
    lang_pair: str | None = None,
    pool: ModelPool | None = None,
    *,
    encoder: str | None = None,
    layer: int | None = None,
    similarity: Any = None,
    variant: str | None = None,
    ngram: int | None = None,
    distance: Any = None,
    map: str | None = None,
    maps: str | None = None,
    sides: Any = None,
    lm: str | None = None,
    lm_weight: float | None = None,
    weights: str | None = None,
    drop_rate: float | None = None,
    threads: int | None = None,
) -> XMoverScore:
    """XMoverScore as a preset describes it; each option that is not None overrides the preset.

    Args:
        preset: name of a preset, or a folder with a preset.toml.
        lang_pair: such as ``"de-en"``; chooses map and language model.
        pool: loaded models to share.
        encoder: an encoder, for ``similarity="cosine"`` also a sentence-transformers model; or a table of static word
            vectors, whose path may hold ``{lang}`` for one table per language (in a shared space). The layer and the
            maps of the preset belong to its own
            encoder: with another one pass `maps`, or ``map="none"``.
        layer: hidden state of the encoder.
        similarity: ``"mover"`` or ``"cosine"``.
        variant: ``"acl20"``, ``"release"`` or ``"uscore"``.
        ngram: tokens per n-gram.
        distance: ``"sqeuclidean"``, ``"euclidean"`` or ``"cosine"``.
        map: ``"none"``, ``"clp"``, ``"umd"``, ``"clp+umd"`` or ``"umd+clp"``.
        maps: a map file, a folder of maps, or the name of a map artifact.
        sides: ``"source"`` or ``"both"``.
        lm: a language model, or ``"none"``. A preset without a model for the target language uses none, and the
            signature says so.
        lm_weight: weight of the language model.
        weights: ``"uniform"``, or a stored table of inverse document frequencies.
        drop_rate: share of flows that partial transport drops.
        threads: solver threads.

    Raises:
        InputError: an unknown preset, pair or option.
        ArtifactError: something that the preset names cannot be loaded; nothing falls back silently.
    """
    pool = pool or ModelPool()
    bundle = load_preset("xmoverscore", preset, local_files_only=pool.local_files_only)
    bundle.refuse_unknown(_TABLES)
    pair = _pair(bundle, lang_pair)
    score = dict(bundle.settings.get("score", {}))
    chosen = choice("variant", variant or score.get("variant", "acl20"), list(VARIANTS))
    similarity = choice("similarity", similarity or score.get("similarity", "mover"), SIMILARITIES)
    if similarity == "cosine":
        score = {name: value for name, value in score.items() if name not in ("ngram", "distance", "drop_rate")}
    source_encoder, target_encoder = _encoders(bundle, pool, pair, similarity, encoder, layer, VARIANTS[chosen].layer)
    level: Level = "sentence" if similarity == "cosine" else "word"
    remapping = preset_map(bundle, pool, source_encoder, lang_pair, kind=map, maps=maps, level=level)
    model, model_weight = _language_model(bundle, pool, pair[1], lm)
    table = None if weights in (None, "uniform") else TokenWeights.load(bundle.path(str(weights)))
    return XMoverScore(
        source_encoder,
        target_encoder=target_encoder,
        similarity=similarity,
        variant=chosen,
        ngram=score.get("ngram") if ngram is None else ngram,
        distance=score.get("distance") if distance is None else distance,
        remapping=remapping,
        sides=score.get("sides", "source") if sides is None else sides,
        language_model=model,
        lm_weight=model_weight if lm_weight is None else lm_weight,
        weights=table,
        drop_rate=score.get("drop_rate") if drop_rate is None else drop_rate,
        lang_pair=lang_pair,
        threads=threads,
    )


def load_fluency(
    preset: str = "paper", lang_pair: str | None = None, pool: ModelPool | None = None, *, lm: str | None = None
) -> Fluency:
    """The language model of a preset of XMoverScore, as a metric by itself.

    Args:
        preset: name of a preset of XMoverScore, or a folder with a preset.toml.
        lang_pair: such as ``"de-en"``; chooses the language model.
        pool: loaded models to share.
        lm: another language model.

    Raises:
        InputError: an unknown preset or pair, or no language model for its target language.
        ArtifactError: the language model cannot be loaded.
    """
    pool = pool or ModelPool()
    bundle = load_preset("xmoverscore", preset, local_files_only=pool.local_files_only)
    bundle.refuse_unknown(_TABLES)
    pair = _pair(bundle, lang_pair)
    model, _ = _language_model(bundle, pool, pair[1], lm)
    if model is None:
        raise InputError(
            f"fluency needs a language model for {pair[1]!r}, and preset {bundle.name} names none; pass lm= (--lm)"
        )
    return Fluency(model, lang_pair=lang_pair)


def _pair(bundle: Preset, lang_pair: str | None) -> tuple[str, str]:
    pair = languages(bundle, lang_pair)
    if pair is None:
        raise InputError("language pair None: pass one such as 'de-en' (lang_pair=, or --lp)")
    return pair


def _encoders(
    bundle: Preset,
    pool: ModelPool,
    pair: tuple[str, str],
    similarity: str,
    override: str | None,
    layer: int | None,
    usual_layer: int | None,
) -> tuple[Any, Any]:
    """The encoders of sources and of predictions."""
    table = encoder_table(bundle, override)
    names = [bundle.path(table["model"].replace("{lang}", language)) for language in pair]
    if layer is None:
        layer = table.get("layer")
    if all(Path(name).is_file() for name in names):
        if layer is not None:
            raise InputError(
                f"layer {layer}: {names[0]} is a table of word vectors, which have no layers; leave it out"
            )
        if similarity == "cosine":
            raise InputError(
                f"similarity='cosine' needs a vector per text; {names[0]} is a table of word vectors, use similarity='mover'"
            )
        return pool.static_vectors(names[0]), pool.static_vectors(names[1])
    if names[0] != names[1]:
        missing = next(name for name in names if not Path(name).is_file())
        raise InputError(f"encoder {table['model']}: no such table of word vectors: {missing}")
    if similarity == "cosine":
        encoder = pool.sentence_encoder(names[0], layer=layer, revision=table.get("revision"))
    else:
        encoder = pool.encoder(names[0], layer=usual_layer if layer is None else layer, revision=table.get("revision"))
    return encoder, encoder


def _language_model(
    bundle: Preset, pool: ModelPool, target: str, override: str | None
) -> tuple[LanguageModel | None, float]:
    table = bundle.settings.get("language_models", {}).get(target, {})
    if table and "model" not in table:
        raise ArtifactError(f"preset {bundle.name}: names no model in its [language_models.{target}] table")
    weight = table.get("weight", 0.1)
    name = override or (bundle.path(table["model"]) if table else "none")
    if name == "none":
        return None, weight
    options = {} if override else {key: value for key, value in table.items() if key not in ("model", "weight")}
    return pool.language_model(name, **options), weight
