"""A pool of models: loads each model once, so that several scorers share it."""

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
    """Loads each model once and shares it between scorers. Regressors are small and not shared.

    An encoder is loaded once for all layers. A language model or a translator is loaded once for each
    set of options. Loaded models stay in memory as long as the pool exists. It is not safe to use one
    pool in several threads.

    Args:
        **run_options: keywords of `mtmetrics.models.running.Running`. `batch_tokens` is for encoders
            and COMET; language models and translators have a default size. `dtype` is for all
            models except translators, which compute in float32.

    Attributes:
        run_options: the keywords.
        device: device or devices of all models.
        local_files_only: whether it never asks the Hub.
    """

    def __init__(self, **run_options: Any) -> None:
        self.run_options = run_options
        options = Running(**run_options)
        self.device, self.local_files_only = options.device, options.local_files_only
        self._requested_dtype = options.dtype
        # Options of language models and translators.
        self._device_options: dict[str, Any] = {
            "device": options.device,
            "local_files_only": options.local_files_only,
        }
        self._loaded: dict[tuple[object, ...], Any] = {}
        # Weak, because passes of a network compute the vectors of all its encoders: an encoder that
        # no scorer has any more should not exist. `_loaded` keeps the network itself.
        self._encoders: weakref.WeakValueDictionary[tuple[object, ...], TokenEncoder] = (
            weakref.WeakValueDictionary()
        )

    @functools.cached_property
    def number_format(self) -> NumberFormat:
        """Number format of all models except translators, and the reason for it. It is chosen when
        it is first read, with a warning if the format is slow on the device."""
        warn_of_slow_dtype(self._requested_dtype, self.device)
        return number_format(self._requested_dtype, self.device)

    @property
    def dtype(self) -> str:
        """Name of the `number_format`."""
        return self.number_format.name

    def about(self) -> dict[str, dict[str, str]]:
        """Returns the fields of a report about the automatic choice of a number format:
        ``number_format`` with ``name`` and ``reason``. It is empty if the user chose, or if no model
        has needed the choice."""
        is_chosen = "number_format" in vars(self)  # the cached property has been read
        if self._requested_dtype != "auto" or not is_chosen:
            return {}
        return {"number_format": self.number_format._asdict()}

    @property
    def _encoder_options(self) -> dict[str, Any]:
        return self.run_options | {"dtype": self.dtype}

    def encoder(
        self,
        model: str,
        *,
        layer: int | None = None,
        revision: str | None = None,
        mix: np.ndarray | None = None,
        max_pieces: int | None = None,
    ) -> TokenEncoder:
        """Returns an encoder with one vector per token.

        Args:
            model: folder, name of a bundled artifact, or Hub repository.
            layer: layer of the vectors; None for the last.
            revision: Hub revision.
            mix: weights of sums of layers, see `TokenEncoder`.
            max_pieces: highest number of word pieces of a text, special tokens not counted.
        """
        mix_key = None if mix is None else (mix.shape, mix.tobytes())
        key = (model, layer, revision, max_pieces, mix_key)
        encoder = self._encoders.get(key)
        if encoder is None:
            network = self._load_once(
                ("encoder", model, revision),
                lambda: EncoderNetwork(model, revision=revision, **self._encoder_options),
            )
            encoder = TokenEncoder(network, layer=layer, mix=mix, max_pieces=max_pieces)
            self._encoders[key] = encoder
        return encoder

    def sentence_encoder(
        self, model: str, *, layer: int | None = None, revision: str | None = None
    ) -> "Encoder":
        """Returns an encoder with one vector per text.

        Args:
            model: a sentence-transformers model; another encoder, whose token vectors are averaged;
                or a Parquet file of vectors.
            layer: layer of the averaged token vectors; None for the other two kinds of models.
            revision: Hub revision.

        Raises:
            InputError: `layer` is set for a model without a choice of layers.
        """
        from mtmetrics.models.sentence_encoder import SentenceTransformerEncoder
        from mtmetrics.models.stored_vectors import SUFFIX, StoredVectors

        if model.endswith(SUFFIX):
            if layer is not None:
                raise InputError(
                    f"layer {layer}: {model} holds a vector per text, which has no layers; leave "
                    "the layer out",
                    option="layer",
                )
            return self._load_once(("stored", model), lambda: StoredVectors(model))
        folder = model_folder(model, revision=revision, local_files_only=self.local_files_only)
        if not (folder / "modules.json").is_file():  # no pipeline of sentence-transformers
            return self.encoder(model, layer=layer, revision=revision).means()
        if layer is not None:
            raise InputError(
                f"layer {layer}: {model} is a sentence-transformers model, whose layers cannot be "
                "chosen; leave the layer out",
                option="layer",
            )
        return self._load_once(
            ("sentence", model, revision),
            lambda: SentenceTransformerEncoder(model, revision=revision, **self._encoder_options),
        )

    def static_vectors(self, path: str) -> "StaticVectors":
        """Returns the word vectors of a file, see `StaticVectors`."""
        from mtmetrics.models.static_vectors import StaticVectors

        return self._load_once(("static", path), lambda: StaticVectors(path))

    def language_model(
        self, model: str, *, revision: str | None = None, **options: Any
    ) -> LanguageModel:
        """Returns a language model; `options` are its ``start_token``, ``end_token`` and
        ``length_power``."""
        key = ("lm", model, revision, *sorted(options.items()))
        run_options = self._device_options | {"dtype": self.dtype}
        return self._load_once(
            key, lambda: LanguageModel(model, revision=revision, **options, **run_options)
        )

    def translator(
        self, model: str, lang_pair: str, *, revision: str | None = None, **options: Any
    ) -> "Translator":
        """Returns a translator for a language pair; `options` are ``beams`` and ``max_length``."""
        from mtmetrics.models.translator import Translator

        key = ("translator", model, lang_pair, revision, *sorted(options.items()))
        return self._load_once(
            key,
            lambda: Translator(
                model, lang_pair, revision=revision, **options, **self._device_options
            ),
        )

    def regressor(self, model: str, *, revision: str | None = None) -> "tuple[Regressor, str]":
        """Loads a trained regressor. Returns it with the fingerprint of its files.

        Raises:
            ArtifactError: the model is not found, or is not a regressor.
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
        """Returns a COMET model.

        Args:
            model: checkpoint that ``mtmetrics artifacts convert`` has converted: its folder, or a
                Hub repository.
            revision: Hub revision.
        """

        def load() -> "Comet":
            folder = comet_folder(model, revision=revision, local_files_only=self.local_files_only)
            from mtmetrics.models.comet_network import Comet

            return Comet(folder, **self._encoder_options)

        return self._load_once(("comet", model, revision), load)

    def _load_once(self, key: tuple[object, ...], load: Callable[[], Model]) -> Model:
        """Returns the model stored under a key. On the first use, `load` loads it.

        The key holds every option that `load` passes to the model, except those of the pool.
        """
        if key not in self._loaded:
            self._loaded[key] = load()
        model: Model = self._loaded[key]
        return model
