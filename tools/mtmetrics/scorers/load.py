"""Builds a scorer from a preset and the options that override it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.models import model_folder
from mtmetrics.artifacts.presets import Preset, load_preset
from mtmetrics.encoders.base import Encoder
from mtmetrics.encoders.device import Devices
from mtmetrics.encoders.sentence_encoder import MeanPooledEncoder, SentenceTransformerEncoder, is_sentence_transformer
from mtmetrics.encoders.static_vectors import StaticVectors
from mtmetrics.encoders.token_encoder import TokenEncoder
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.fluency import LanguageModel
from mtmetrics.inputs import choice, language_pair
from mtmetrics.matching.weights import TokenWeights
from mtmetrics.remap import KINDS, Level
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.maps import load_map
from mtmetrics.scorers.xmoverscore import SIMILARITIES, VARIANTS, XMoverScore

_TABLES: dict[str, set[str]] = {
    "encoder": {"model", "revision", "layer"},
    "score": {"similarity", "variant", "ngram", "distance", "sides", "drop_rate"},
    "maps": {"artifact", "kind"},
}


class ModelPool:
    """Encoders and language models that were loaded already, so that several scorers share them.

    Args:
        device: ``"auto"``, a device, or several of them, see `mtmetrics.encoders.device.pick_devices`.
        dtype: number format of the encoders.
        batch_tokens: padded tokens per encoder batch; fewer where memory runs out.
        embedding_cache: folder where encoded texts are kept for later runs; None keeps none.
        local_files_only: never ask the Hub.
    """

    def __init__(
        self,
        *,
        device: Devices = "auto",
        dtype: str = "float32",
        batch_tokens: int = 4096,
        embedding_cache: str | Path | None = None,
        local_files_only: bool = False,
    ) -> None:
        self.device = device
        self.dtype = dtype
        self.batch_tokens = batch_tokens
        self.embedding_cache = embedding_cache
        self.local_files_only = local_files_only
        self._loaded: dict[tuple[object, ...], Any] = {}

    def encoder(self, model: str, *, layer: int | None, revision: str | None = None) -> TokenEncoder:
        """The encoder at a layer."""
        return self._once(
            ("encoder", model, layer, revision),
            lambda: TokenEncoder(
                model,
                layer=layer,
                revision=revision,
                device=self.device,
                dtype=self.dtype,
                batch_tokens=self.batch_tokens,
                embedding_cache=self.embedding_cache,
                local_files_only=self.local_files_only,
            ),
        )

    def sentence_encoder(self, model: str, *, layer: int | None = None, revision: str | None = None) -> Encoder:
        """An encoder of one vector per text: a sentence-transformers model, or the mean of the token vectors at a layer."""
        folder = model_folder(model, revision=revision, local_files_only=self.local_files_only)
        if not is_sentence_transformer(folder):
            tokens = self.encoder(model, layer=layer, revision=revision)
            return self._once(("mean", model, layer, revision), lambda: MeanPooledEncoder(tokens))
        if layer is not None:
            raise InputError(f"layer {layer}: {model} is a sentence-transformers model, whose layers cannot be chosen; leave it out")
        return self._once(
            ("sentence", model, revision),
            lambda: SentenceTransformerEncoder(
                model, revision=revision, device=self.device, dtype=self.dtype, local_files_only=self.local_files_only
            ),
        )

    def static_vectors(self, table: str) -> StaticVectors:
        """A table of word vectors."""
        return self._once(("static", table), lambda: StaticVectors(table))

    def language_model(self, model: str, *, start_token: Any, revision: str | None = None) -> LanguageModel:
        """The language model."""
        return self._once(
            ("lm", model, start_token, revision),
            lambda: LanguageModel(
                model,
                start_token=start_token,
                revision=revision,
                device=self.device,
                local_files_only=self.local_files_only,
            ),
        )

    def _once(self, key: tuple[object, ...], load: Callable[[], Any]) -> Any:
        if key not in self._loaded:
            self._loaded[key] = load()
        return self._loaded[key]


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
        encoder: an encoder, for ``similarity="cosine"`` also a sentence-transformers model; or a table of static word vectors, whose path
            may hold ``{lang}`` for one table per language (in a shared space). The layer and the maps of the preset belong to its own
            encoder: with another one pass `maps`, or ``map="none"``.
        layer: hidden state of the encoder.
        similarity: ``"mover"`` or ``"cosine"``.
        variant: ``"acl20"``, ``"release"`` or ``"uscore"``.
        ngram: tokens per n-gram.
        distance: ``"sqeuclidean"``, ``"euclidean"`` or ``"cosine"``.
        map: ``"none"``, ``"clp"``, ``"umd"``, ``"clp+umd"`` or ``"umd+clp"``.
        maps: a map file, a folder of maps, or the name of a map artifact.
        sides: ``"source"`` or ``"both"``.
        lm: a language model, or ``"none"``. A preset without a model for the target language uses none, and the signature says so.
        lm_weight: weight of the language model.
        weights: ``"uniform"``, or a stored table of inverse document frequencies.
        drop_rate: share of flows that partial transport drops.
        threads: solver threads.

    Raises:
        InputError: an unknown preset, pair or option.
        ArtifactError: something that the preset names cannot be loaded; nothing falls back silently.
    """
    bundle = load_preset("xmoverscore", preset)
    bundle.refuse_unknown(_TABLES)
    source, target = language_pair(lang_pair)
    languages = bundle.settings.get("languages")
    for language in (source, target):
        if languages is not None and language not in languages:
            raise InputError(f"language pair {lang_pair}: preset {bundle.name} knows the languages {' '.join(languages)}, not {language!r}")
    pool = pool or ModelPool()
    score = dict(bundle.settings.get("score", {}))
    chosen = choice("variant", variant or score.get("variant", "acl20"), list(VARIANTS))
    similarity = choice("similarity", similarity or score.get("similarity", "mover"), SIMILARITIES)
    if similarity == "cosine":
        score = {name: value for name, value in score.items() if name not in ("ngram", "distance", "drop_rate")}
    source_encoder, target_encoder = _encoders(bundle, pool, (source, target), similarity, encoder, layer, VARIANTS[chosen].layer)
    map_table = bundle.settings.get("maps", {})
    kind = choice("map", map or map_table.get("kind", "none"), ("none", *KINDS))
    remapping = None
    if kind != "none":
        artifact = maps or bundle.path(map_table.get("artifact", "."))
        level: Level = "sentence" if similarity == "cosine" else "word"
        remapping = load_map(artifact, str(lang_pair), kind, source_encoder, level=level, local_files_only=pool.local_files_only)
    model, model_weight = _language_model(bundle, pool, target, lm)
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


def _encoders(
    bundle: Preset,
    pool: ModelPool,
    languages: tuple[str, str],
    similarity: str,
    override: str | None,
    layer: int | None,
    usual_layer: int | None,
) -> tuple[Any, Any]:
    """The encoders of sources and of predictions."""
    table = {"model": override} if override else bundle.settings.get("encoder", {})
    if "model" not in table:
        raise ArtifactError(f"preset {bundle.name}: names no model in its [encoder] table")
    names = [bundle.path(table["model"].replace("{lang}", language)) for language in languages]
    if layer is None:
        layer = table.get("layer")
    if all(Path(name).is_file() for name in names):
        if layer is not None:
            raise InputError(f"layer {layer}: {names[0]} is a table of word vectors, which have no layers; leave it out")
        if similarity == "cosine":
            raise InputError(f"similarity='cosine' needs a vector per text; {names[0]} is a table of word vectors, use similarity='mover'")
        return pool.static_vectors(names[0]), pool.static_vectors(names[1])
    if names[0] != names[1]:
        missing = next(name for name in names if not Path(name).is_file())
        raise InputError(f"encoder {table['model']}: no such table of word vectors: {missing}")
    if similarity == "cosine":
        encoder = pool.sentence_encoder(names[0], layer=layer, revision=table.get("revision"))
    else:
        encoder = pool.encoder(names[0], layer=usual_layer if layer is None else layer, revision=table.get("revision"))
    return encoder, encoder


def _language_model(bundle: Preset, pool: ModelPool, target: str, override: str | None) -> tuple[LanguageModel | None, float]:
    table = bundle.settings.get("language_models", {}).get(target, {})
    if table and "model" not in table:
        raise ArtifactError(f"preset {bundle.name}: names no model in its [language_models.{target}] table")
    weight = table.get("weight", 0.1)
    name = override or (bundle.path(table["model"]) if table else "none")
    if name == "none":
        return None, weight
    start_token = "short" if override else table.get("start_token", "short")
    return pool.language_model(name, start_token=start_token, revision=None if override else table.get("revision")), weight


LOADERS: dict[str, Callable[..., Scorer]] = {"xmoverscore": load_xmoverscore}


def load_scorer(metric: str, **options: Any) -> Scorer:
    """The scorer of a metric by name; see the loader of the metric for its options.

    Raises:
        InputError: an unknown metric, or as its loader.
        ArtifactError: as its loader.
    """
    return LOADERS[choice("metric", metric, list(LOADERS))](**options)
