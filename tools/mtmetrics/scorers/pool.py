"""The models of scorers, loaded once and shared, as the tables of a preset name them, and the line that pins them with
all else that a score depends on."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from mtmetrics import __version__
from mtmetrics.artifacts.models import loading, model_fingerprint, model_folder, model_size
from mtmetrics.artifacts.presets import Preset
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.inputs import choice, language_pair
from mtmetrics.maps.files import load_map
from mtmetrics.maps.remapping import KINDS, Level, Remapping
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.packed import Encoder
from mtmetrics.models.runner import pick_dtype
from mtmetrics.models.token_encoder import TokenEncoder

if TYPE_CHECKING:
    from mtmetrics.models.runner import Devices
    from mtmetrics.models.static_vectors import StaticVectors
    from mtmetrics.models.token_encoder import LayerView
    from mtmetrics.models.translator import Translator
    from mtmetrics.scorers.networks import Regressor

# What a metric is told to compare with -> the column of the input.
AGAINST: dict[str, Literal["sources", "references"]] = {"source": "sources", "reference": "references"}


class ModelPool:
    """Encoders, language models and translators that were loaded already, so that several scorers share them.

    Args:
        device: ``"auto"``, a device, or several of them, see `mtmetrics.models.runner.pick_devices`.
        dtype: number format of the encoders, see `mtmetrics.models.runner.pick_dtype`.
        batch_tokens: padded tokens per encoder batch; fewer where memory runs out.
        embedding_cache: folder where encoded texts are kept for later runs; None keeps none.
        local_files_only: never ask the Hub.
    """

    def __init__(
        self,
        *,
        device: "Devices" = "auto",
        dtype: str = "float32",
        batch_tokens: int = 4096,
        embedding_cache: str | Path | None = None,
        local_files_only: bool = False,
    ) -> None:
        self.device = device
        # Here too, since stages of a production are found again by it.
        self.dtype = dtype if dtype != "auto" else pick_dtype(dtype, device)
        self.batch_tokens = batch_tokens
        self.embedding_cache = embedding_cache
        self.local_files_only = local_files_only
        self._loaded: dict[tuple[object, ...], Any] = {}

    def encoder(
        self,
        model: str,
        *,
        layer: int | None = None,
        revision: str | None = None,
        mix: np.ndarray | None = None,
        max_pieces: int | None = None,
    ) -> TokenEncoder:
        """The encoder at a layer, or with a mix of its layers."""
        key = ("encoder", model, layer, revision, max_pieces, None if mix is None else (mix.shape, mix.tobytes()))
        options = self._options(revision) | {"layer": layer, "mix": mix, "max_pieces": max_pieces, "dtype": self.dtype}
        options |= {"batch_tokens": self.batch_tokens, "embedding_cache": self.embedding_cache}
        return self._once(key, lambda: TokenEncoder(model, **options))

    def sentence_encoder(self, model: str, *, layer: int | None = None, revision: str | None = None) -> "Encoder":
        """One vector per text, of a sentence-transformers model or the mean of the token vectors at a layer."""
        from mtmetrics.models import sentence_encoder as sentences

        folder = model_folder(model, revision=revision, local_files_only=self.local_files_only)
        if not (folder / "modules.json").is_file():  # no pipeline of sentence-transformers
            tokens = self.encoder(model, layer=layer, revision=revision)
            return self._once(("mean", model, layer, revision), lambda: sentences.MeanPooledEncoder(tokens))
        if layer is not None:
            why = f"{model} is a sentence-transformers model, whose layers cannot be chosen; leave it out"
            raise InputError(f"layer {layer}: {why}")
        options = self._options(revision) | {"dtype": self.dtype}
        return self._once(("sentence", model, revision), lambda: sentences.SentenceTransformerEncoder(model, **options))

    def words_and_sentences(
        self, words: tuple[str, str | None], sentences: tuple[str, str | None], *, layer: int | None
    ) -> "tuple[TokenEncoder | LayerView, Encoder]":
        """Encoders of words, at a layer, and of sentences, each named by model and revision. Where both are one model
        whose sentence vectors are means of its last layer, they read one pass over each text."""
        from mtmetrics.models.sentence_encoder import MeanPooledEncoder, is_mean_pooled
        from mtmetrics.models.token_encoder import LayerView, one_hot_mix

        if words == sentences and type(layer) is int:
            folder = model_folder(words[0], revision=words[1], local_files_only=self.local_files_only)
            if is_mean_pooled(folder) and 0 < layer <= (depth := model_size(folder)[1]):
                layers = (layer, depth)
                tokens = self.encoder(words[0], mix=one_hot_mix(layers, depth), revision=words[1])
                return LayerView(tokens, layers, 0), MeanPooledEncoder(LayerView(tokens, layers, 1))
        encoder = self.encoder(words[0], layer=layer, revision=words[1])
        return encoder, self.sentence_encoder(sentences[0], revision=sentences[1])

    def static_vectors(self, table: str) -> "StaticVectors":
        from mtmetrics.models.static_vectors import StaticVectors

        return self._once(("static", table), lambda: StaticVectors(table))

    def language_model(self, model: str, *, revision: str | None = None, **options: Any) -> LanguageModel:
        """The language model; `options` are its ``start_token``, ``end_token`` and ``length_power``."""
        key = ("lm", model, revision, *sorted(options.items()))
        return self._once(key, lambda: LanguageModel(model, **self._options(revision), **options))

    def translator(self, model: str, lang_pair: str, *, revision: str | None = None, **options: int) -> "Translator":
        """The translator of a language pair; `options` are its ``beams`` and ``max_length``."""
        from mtmetrics.models.translator import Translator

        key = ("translator", model, lang_pair, revision, *sorted(options.items()))
        return self._once(key, lambda: Translator(model, lang_pair, **self._options(revision), **options))

    def regressor(self, model: str, *, revision: str | None = None) -> "tuple[Regressor, str]":
        """A trained regressor, and its fingerprint."""
        folder = model_folder(model, revision=revision, local_files_only=self.local_files_only)
        if not (folder / "model.safetensors").is_file():
            raise ArtifactError(f"{folder}: no model.safetensors, so it is no regressor")
        from mtmetrics.scorers.networks import Regressor

        with loading(folder, "regressor"):
            try:
                return Regressor.read(folder), model_fingerprint(folder)
            except TypeError as error:
                raise ArtifactError(f"{folder}: its config.json is not that of a regressor ({error})") from error

    def _options(self, revision: str | None) -> dict[str, Any]:
        return {"revision": revision, "device": self.device, "local_files_only": self.local_files_only}

    def _once(self, key: tuple[object, ...], load: Callable[[], Any]) -> Any:
        if key not in self._loaded:
            self._loaded[key] = load()
        return self._loaded[key]


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


def model_name(model: Pinned | None) -> str | None:
    """Label and fingerprint of a model; None where there is none."""
    return None if model is None else f"{model.label}#{model.fingerprint}"


def map_name(remapping: Remapping | None) -> str:
    """Kind and fingerprint of a map, or ``none``."""
    return "none" if remapping is None else f"{remapping.kind}#{remapping.fingerprint}"


def dtype_name(dtype: str) -> str:
    """A number format in short."""
    return {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}[dtype]


def languages(bundle: Preset, lang_pair: str | None, *, needed: bool = False) -> tuple[str, str] | None:
    """Source and target language, which the preset knows; None where no pair is given."""
    if lang_pair is None:
        if needed:
            raise InputError("language pair None: pass lang_pair=, such as 'de-en'")
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


def compared_with(bundle: Preset, asked: Any, *, usual: str) -> str:
    """``"source"`` or ``"reference"``: as asked, else as the preset says, else as usual."""
    only = bundle.settings.get("score", {}).get("against")
    against = choice("against", asked or only or usual, tuple(AGAINST))
    if only not in (None, against):
        there = f"preset {bundle.name} compares with the {only} only"
        raise InputError(f"against {against!r}: {there}; choose another preset")
    return against


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
