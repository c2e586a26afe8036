"""Models that were loaded already, so that several scorers share them."""

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mtmetrics.artifacts.comet_checkpoints import comet_folder
from mtmetrics.artifacts.models import loading, model_fingerprint, model_folder
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.devices import NumberFormat, number_format, warn_of_slow_dtype
from mtmetrics.models.encoder_network import EncoderNetwork
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.packed import Encoder
from mtmetrics.models.running import Running
from mtmetrics.models.token_encoder import TokenEncoder

if TYPE_CHECKING:
    from mtmetrics.models.comet_network import Comet
    from mtmetrics.models.regressor import Regressor
    from mtmetrics.models.static_vectors import StaticVectors
    from mtmetrics.models.translator import Translator

Model = TypeVar("Model")


class ModelPool:
    """Encoders, language models and translators that were loaded already, so that several scorers
    share them.

    Its keywords are those of `mtmetrics.models.running.Running`. Translators compute in float32;
    language models and translators have batches of their own size.

    Attributes:
        running: the keywords.
    """

    def __init__(self, **running: Any) -> None:
        self.running = running
        given = Running(**running)
        self.device, self.local_files_only = given.device, given.local_files_only
        self._asked_dtype = given.dtype
        self._generating: dict[str, Any] = {
            "device": given.device,
            "local_files_only": given.local_files_only,
        }
        self._loaded: dict[tuple[object, ...], Any] = {}
        # What nobody reads any more is not computed.
        self._encoders: weakref.WeakValueDictionary[tuple[object, ...], TokenEncoder] = (
            weakref.WeakValueDictionary()
        )

    @functools.cached_property
    def number_format(self) -> NumberFormat:
        """Number format of encoders and language models, and why it was chosen; found out when the
        first model is loaded."""
        warn_of_slow_dtype(self._asked_dtype, self.device)
        return number_format(self._asked_dtype, self.device)

    @property
    def dtype(self) -> str:
        """Name of the number format."""
        return self.number_format.name

    def about(self) -> dict[str, dict[str, str]]:
        """Returns what a report says of an automatic choice: ``number_format`` with ``name`` and
        ``reason``; nothing where the user chose, or no model needed it."""
        if self._asked_dtype != "auto" or "number_format" not in vars(self):
            return {}
        return {"number_format": self.number_format._asdict()}

    @property
    def _encoding(self) -> dict[str, Any]:
        return self.running | {"dtype": self.dtype}

    def encoder(
        self,
        model: str,
        *,
        layer: int | None = None,
        revision: str | None = None,
        mix: np.ndarray | None = None,
        max_pieces: int | None = None,
    ) -> TokenEncoder:
        """Returns an encoder; the keywords are those of `TokenEncoder`."""
        mix_key = None if mix is None else (mix.shape, mix.tobytes())
        key = (model, layer, revision, max_pieces, mix_key)
        encoder = self._encoders.get(key)
        if encoder is None:
            network = self._once(
                ("encoder", model, revision),
                lambda: EncoderNetwork(model, revision=revision, **self._encoding),
            )
            encoder = TokenEncoder(network, layer=layer, mix=mix, max_pieces=max_pieces)
            self._encoders[key] = encoder
        return encoder

    def sentence_encoder(
        self, model: str, *, layer: int | None = None, revision: str | None = None
    ) -> "Encoder":
        """Returns an encoder with one vector for each text.

        Args:
            model: a sentence-transformers model; another encoder, whose token vectors are averaged;
                or a Parquet file of vectors.
            layer: of an encoder whose token vectors are averaged.
            revision: Hub revision.

        Raises:
            InputError: a layer of a model that has no choice of layers.
        """
        from mtmetrics.models.sentence_encoder import SentenceTransformerEncoder
        from mtmetrics.models.stored_vectors import SUFFIX, StoredVectors

        if model.endswith(SUFFIX):
            if layer is not None:
                raise InputError(
                    f"layer {layer}: {model} holds a vector per text, which has no layers; leave "
                    "it out",
                    option="layer",
                )
            return self._once(("stored", model), lambda: StoredVectors(model))
        folder = model_folder(model, revision=revision, local_files_only=self.local_files_only)
        if not (folder / "modules.json").is_file():  # no pipeline of sentence-transformers
            return self.encoder(model, layer=layer, revision=revision).means()
        if layer is not None:
            why = (
                f"{model} is a sentence-transformers model, whose layers cannot be chosen; leave "
                "it out"
            )
            raise InputError(f"layer {layer}: {why}", option="layer")
        return self._once(
            ("sentence", model, revision),
            lambda: SentenceTransformerEncoder(model, revision=revision, **self._encoding),
        )

    def static_vectors(self, table: str) -> "StaticVectors":
        """Returns the word vectors of a file."""
        from mtmetrics.models.static_vectors import StaticVectors

        return self._once(("static", table), lambda: StaticVectors(table))

    def language_model(
        self, model: str, *, revision: str | None = None, **options: Any
    ) -> LanguageModel:
        """The language model; `options` are its ``start_token``, ``end_token`` and
        ``length_power``."""
        key = ("lm", model, revision, *sorted(options.items()))
        options |= {"revision": revision, "dtype": self.dtype, **self._generating}
        return self._once(key, lambda: LanguageModel(model, **options))

    def translator(
        self, model: str, lang_pair: str, *, revision: str | None = None, **options: Any
    ) -> "Translator":
        """Returns a translator of a language pair; `options` are ``beams`` and ``max_length``."""
        from mtmetrics.models.translator import Translator

        key = ("translator", model, lang_pair, revision, *sorted(options.items()))
        options |= {"revision": revision, **self._generating}
        return self._once(key, lambda: Translator(model, lang_pair, **options))

    def regressor(self, model: str, *, revision: str | None = None) -> "tuple[Regressor, str]":
        """Returns a trained regressor and its fingerprint.

        Raises:
            ArtifactError: the model is not found, or is no regressor.
        """
        folder = model_folder(model, revision=revision, local_files_only=self.local_files_only)
        if not (folder / "model.safetensors").is_file():
            raise ArtifactError(f"{folder}: no model.safetensors, so it is no regressor")
        from mtmetrics.models.regressor import Regressor

        with loading(folder, "regressor"):
            try:
                return Regressor.read(folder), model_fingerprint(folder)
            except TypeError as error:
                raise ArtifactError(
                    f"{folder}: its config.json is not that of a regressor ({error})"
                ) from error

    def comet(self, model: str, *, revision: str | None = None) -> "Comet":
        """Returns a converted checkpoint of COMET."""
        folder = comet_folder(model, revision=revision, local_files_only=self.local_files_only)
        from mtmetrics.models.comet_network import Comet

        return self._once(("comet", model, revision), lambda: Comet(folder, **self._encoding))

    def _once(self, key: tuple[object, ...], load: Callable[[], Model]) -> Model:
        """Returns the model of a key, which `load` loads the first time."""
        if key not in self._loaded:
            self._loaded[key] = load()
        model: Model = self._loaded[key]
        return model
