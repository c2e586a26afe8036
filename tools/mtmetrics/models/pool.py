"""Models that were loaded already, so that several scorers share them."""

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.artifacts.comet_checkpoints import comet_folder
from mtmetrics.artifacts.models import loading, model_fingerprint, model_folder
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.encoder_network import EncoderNetwork
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.packed import Encoder
from mtmetrics.models.runner import pick_dtype
from mtmetrics.models.token_encoder import TokenEncoder

if TYPE_CHECKING:
    from mtmetrics.models.comet import Comet
    from mtmetrics.models.regressor import Regressor
    from mtmetrics.models.runner import Devices
    from mtmetrics.models.static_vectors import StaticVectors
    from mtmetrics.models.translator import Translator


class ModelPool:
    """Encoders, language models and translators that were loaded already, so that several scorers share them.

    Args:
        device: ``"auto"``, a device, or several of them, see `mtmetrics.models.runner.pick_devices`.
        dtype: number format of encoders and language models, see `mtmetrics.models.runner.pick_dtype`.
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
        # What nobody reads any more is not computed.
        self._encoders: weakref.WeakValueDictionary[tuple[object, ...], TokenEncoder] = weakref.WeakValueDictionary()

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
        key = (model, layer, revision, max_pieces, None if mix is None else (mix.shape, mix.tobytes()))
        found = self._encoders.get(key)
        if found is None:
            options = self._options(revision) | {"dtype": self.dtype, "batch_tokens": self.batch_tokens}
            network = self._once(("encoder", model, revision), lambda: EncoderNetwork(model, **options))
            reads: dict[str, Any] = {"layer": layer, "mix": mix, "max_pieces": max_pieces}
            found = TokenEncoder(network, embedding_cache=self.embedding_cache, **reads)
            self._encoders[key] = found
        return found

    def sentence_encoder(self, model: str, *, layer: int | None = None, revision: str | None = None) -> "Encoder":
        """One vector per text, of a sentence-transformers model, or the mean of the token vectors at a layer; or those
        that a Parquet file holds."""
        from mtmetrics.models import sentence_encoder as sentences
        from mtmetrics.models.stored_vectors import SUFFIX, StoredVectors

        if model.endswith(SUFFIX):
            if layer is not None:
                raise InputError(f"layer {layer}: {model} holds a vector per text, which has no layers; leave it out")
            return self._once(("stored", model), lambda: StoredVectors(model))
        folder = model_folder(model, revision=revision, local_files_only=self.local_files_only)
        if not (folder / "modules.json").is_file():  # no pipeline of sentence-transformers
            return sentences.MeanPooledEncoder(self.encoder(model, layer=layer, revision=revision))
        if layer is not None:
            why = f"{model} is a sentence-transformers model, whose layers cannot be chosen; leave it out"
            raise InputError(f"layer {layer}: {why}")
        options = self._options(revision) | {"dtype": self.dtype}
        return self._once(("sentence", model, revision), lambda: sentences.SentenceTransformerEncoder(model, **options))

    def words_and_sentences(
        self, words: tuple[str, str | None], sentences: tuple[str, str | None], *, layer: int | None
    ) -> "tuple[TokenEncoder, Encoder]":
        """Encoders of words, at a layer, and of sentences, each named by model and revision. Where both are one model
        whose sentence vectors are means of its last layer, they read one pass over each text."""
        from mtmetrics.models.sentence_encoder import MeanPooledEncoder, is_mean_pooled

        encoder = self.encoder(words[0], layer=layer, revision=words[1])
        if words == sentences and type(layer) is int:
            folder = model_folder(words[0], revision=words[1], local_files_only=self.local_files_only)
            if is_mean_pooled(folder):
                return encoder, MeanPooledEncoder(self.encoder(words[0], revision=words[1]))
        return encoder, self.sentence_encoder(sentences[0], revision=sentences[1])

    def static_vectors(self, table: str) -> "StaticVectors":
        from mtmetrics.models.static_vectors import StaticVectors

        return self._once(("static", table), lambda: StaticVectors(table))

    def language_model(self, model: str, *, revision: str | None = None, **options: Any) -> LanguageModel:
        """The language model; `options` are its ``start_token``, ``end_token`` and ``length_power``."""
        key = ("lm", model, revision, *sorted(options.items()))
        return self._once(key, lambda: LanguageModel(model, **self._options(revision), dtype=self.dtype, **options))

    def translator(self, model: str, lang_pair: str, *, revision: str | None = None, **options: Any) -> "Translator":
        """The translator of a language pair; `options` are its ``beams`` and ``max_length``."""
        from mtmetrics.models.translator import Translator

        key = ("translator", model, lang_pair, revision, *sorted(options.items()))
        return self._once(key, lambda: Translator(model, lang_pair, **self._options(revision), **options))

    def regressor(self, model: str, *, revision: str | None = None) -> "tuple[Regressor, str]":
        """A trained regressor, and its fingerprint."""
        folder = model_folder(model, revision=revision, local_files_only=self.local_files_only)
        if not (folder / "model.safetensors").is_file():
            raise ArtifactError(f"{folder}: no model.safetensors, so it is no regressor")
        from mtmetrics.models.regressor import Regressor

        with loading(folder, "regressor"):
            try:
                return Regressor.read(folder), model_fingerprint(folder)
            except TypeError as error:
                raise ArtifactError(f"{folder}: its config.json is not that of a regressor ({error})") from error

    def comet(self, model: str, *, revision: str | None = None) -> "Comet":
        """A converted checkpoint of COMET."""
        folder = comet_folder(model, revision=revision, local_files_only=self.local_files_only)
        from mtmetrics.models.comet import Comet

        options: dict[str, Any] = {"device": self.device, "dtype": self.dtype, "batch_tokens": self.batch_tokens}
        return self._once(("comet", model, revision), lambda: Comet(folder, **options))

    def _options(self, revision: str | None) -> dict[str, Any]:
        return {"revision": revision, "device": self.device, "local_files_only": self.local_files_only}

    def _once(self, key: tuple[object, ...], load: Callable[[], Any]) -> Any:
        if key not in self._loaded:
            self._loaded[key] = load()
        return self._loaded[key]
