"""Finds and loads transformer models: `model_folder` finds one, the functions after it load it.

Every function that loads refuses a model that brings code of its own.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.artifacts.adapters import (
    SETTINGS,
    is_adapter,
    merged,
    read_adapter,
    read_json_object,
)
from mtmetrics.artifacts.hub import download
from mtmetrics.artifacts.places import hub_snapshot, hub_source, local_folder, places_in_words
from mtmetrics.errors import ArtifactError
from mtmetrics.io.checksums import cached_sha256
from mtmetrics.io.lines import JsonObject

if TYPE_CHECKING:
    import torch

# A tokenizer, and a network, of `transformers`: their own types change from version to version.
Tokenizer = Any
Network = Any
# The configuration of a network, with an attribute for each size.
NetworkConfig = Any

TOKENIZER_FILES = [
    "tokenizer*.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
]
# Files of a sentence-transformers folder besides those of a transformer.
_PIPELINE = [
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_*_config.json",
    "?_*/*.json",
]
_WEIGHTS = ["*.safetensors", "*.safetensors.index.json", "?_*/*.safetensors"]
# Files in which transformers and sentence-transformers look for names of classes.
_CONFIGURATIONS = ["*config.json", "config_sentence_transformers.json", "modules.json"]
_OWN_MODULES = "sentence_transformers."
# Tokenizers of single languages, see `TokenEncoder`.
_LANGUAGES = "languages/*/tokenizer*.json"
# Record of a training, beside the weights: data, settings, language pair.
RECORD = "training.json"
MODEL_FILES = [
    RECORD,
    "config.json",
    SETTINGS,
    "comet.json",
    "generation_config.json",
    *_WEIGHTS,
    *TOKENIZER_FILES,
    *_PIPELINE,
    _LANGUAGES,
]


def model_folder(
    name: str | Path, *, revision: str | None = None, local_files_only: bool = False
) -> Path:
    """Finds the folder of a model, in the order of `mtmetrics.artifacts.places`.

    Args:
        name: a folder, the name of an artifact, or a Hub repository.
        revision: Hub branch, tag or commit; None for the one that the catalog pins, or the main
            branch.
        local_files_only: never ask the network (``HF_HUB_OFFLINE=1`` does the same).

    Raises:
        ArtifactError: it is in none of these places (the message names them all), damaged, without
            safetensors, or brings code of its own, see `refuse_code`; or it is an adapter, and the
            encoder that it was made for cannot be had.
    """
    folder = _folder_with_weights(name, revision, local_files_only)
    base_folder(folder, local_files_only=local_files_only)
    return folder


def _folder_with_weights(name: str | Path, revision: str | None, local_files_only: bool) -> Path:
    folder = local_folder(name, "config.json", "modules.json", SETTINGS)
    if folder is None:
        folder = _downloaded(name, revision, local_files_only)
    refuse_code(folder)
    if not any(path for pattern in _WEIGHTS for path in folder.glob(pattern)):
        revision_option = f" --revision {revision}" if revision else ""
        command = f"mtmetrics artifacts convert {name}{revision_option} --out DIR"
        raise ArtifactError(
            f"{folder}: no *.safetensors weights; other formats may run code, so they are not "
            f"read; convert a pytorch_model.bin by '{command}', and pass DIR instead"
        )
    return folder


def base_folder(folder: Path, *, local_files_only: bool = True) -> Path:
    """Finds the folder with the tokenizer and the whole weights of a model.

    It is the model's own folder; for an adapter, that of the encoder that it was made for.

    Args:
        folder: of the model.
        local_files_only: never ask the network.

    Raises:
        ArtifactError: the encoder cannot be found, is another one than the adapter was made for,
            or is one that is not mean-pooled.
    """
    if not is_adapter(folder):
        return folder
    adapter = read_adapter(folder)
    try:
        base = _folder_with_weights(adapter.base_place, adapter.revision, local_files_only)
    except ArtifactError as error:
        raise ArtifactError(
            f"{folder}: an adapter of {adapter.base}#{adapter.base_fingerprint}: {error}"
        ) from error
    require_adaptable(base)
    base_fingerprint = model_fingerprint(base)
    if base_fingerprint != adapter.base_fingerprint:
        raise ArtifactError(
            f"{folder}: an adapter of {adapter.base}#{adapter.base_fingerprint}, but {base} is "
            f"#{base_fingerprint}; get that version of the encoder, or train the adapter again by "
            f"'mtmetrics train contrastive --model {adapter.base_place} --adapter-rank "
            f"{adapter.rank}'"
        )
    return base


def require_adaptable(folder: Path) -> None:
    """Raises an ArtifactError for a model that adapters cannot be trained or read on: they are for
    encoders that are mean-pooled."""
    problem = None
    if is_adapter(folder):
        problem = "is an adapter itself; name its encoder instead"
    elif (folder / "modules.json").is_file():
        problem = (
            "is a pipeline of sentence-transformers; name an encoder of transformers, which is "
            "mean-pooled"
        )
    if problem:
        raise ArtifactError(f"{folder}: adapters are for an encoder alone, and this {problem}")


def _downloaded(name: str | Path, revision: str | None, local_files_only: bool) -> Path:
    from huggingface_hub.errors import HFValidationError

    if Path(name).is_dir():
        raise ArtifactError(f"{name}: the folder holds no config.json, so it is no model")
    source = hub_source(name, revision)
    try:
        return download(source, MODEL_FILES, local_files_only=local_files_only)
    except ArtifactError as error:
        message = (
            f"the model {str(name)!r} was not found {places_in_words()}, in the cache or on the "
            f"Hub: {error}"
        )
        if not isinstance(error.__cause__, HFValidationError):  # else it is a path, say
            revision_option = f" --revision {source.revision}" if source.revision else ""
            message += (
                f"; with a network, 'hf download {source.repository}{revision_option}' fetches it; "
                "a bundled preset, such as mini, needs none"
            )
        raise ArtifactError(message) from error


def refuse_code(folder: Path) -> None:
    """Refuses a model that brings code to run.

    `transformers` would ask on standard input whether to run it, where the first line of piped
    texts is the answer.

    Raises:
        ArtifactError: a configuration in the folder, or one of its folders, names code that is no
            part of `transformers` or sentence-transformers.
    """
    patterns = [depth + name for name in _CONFIGURATIONS for depth in ("", "*/", "*/*/")]
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
        try:
            configuration = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # loading the model says what is wrong
        for key, value in _entries(configuration):
            if _names_code(key, value, path.name):
                entry = f"{key}: {json.dumps(value)}"
                raise ArtifactError(
                    f"{path}: names code of its own, which would run on this machine with all your "
                    f"rights ({entry:.90}); such models are not loaded; choose one that "
                    "transformers or sentence-transformers compute themselves"
                )


def _entries(configuration: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yields every key of nested objects with its value; an item of a list has the key of the
    list."""
    yield key, configuration
    if isinstance(configuration, dict):
        for name, value in configuration.items():
            yield from _entries(value, name)
    elif isinstance(configuration, list):
        for value in configuration:
            yield from _entries(value, key)


def _names_code(key: str, value: object, file: str) -> bool:
    """Whether an entry of a configuration file names code, a class, or a kernel, from elsewhere."""
    if key in ("auto_map", "trust_remote_code"):
        return bool(value)
    if file == "router_config.json" and key == "types" and isinstance(value, dict):
        return not all(str(name).startswith(_OWN_MODULES) for name in value.values())
    if not isinstance(value, str):
        return False
    if file == "modules.json" and key == "type":
        return not value.startswith(_OWN_MODULES)
    if key in ("activation_function", "tokenizer_class"):
        return "." in value and not value.startswith(("torch.", _OWN_MODULES))
    return key.endswith("_implementation") and "/" in value  # a repository of kernels


def pretrained(auto_class: str, folder: Path, dtype: "torch.dtype") -> tuple[Tokenizer, Network]:
    """Loads tokenizer and weights of a folder, see `pretrained_tokenizer` and
    `transformers_network`."""
    return pretrained_tokenizer(folder), transformers_network(auto_class, folder, dtype)


def pretrained_tokenizer(folder: Path, *, as_stored: bool = False) -> Tokenizer:
    """Loads the tokenizer of a model folder.

    Args:
        folder: holds the tokenizer's files.
        as_stored: take everything from tokenizer.json, where there is one. Otherwise
            `transformers` 5 takes only the vocabulary from it, and makes the rest anew, if the
            folder names a class of tokenizer that it has.

    Raises:
        ArtifactError: a file is missing or damaged.
    """
    import tokenizers
    import transformers

    folder = base_folder(folder)
    with loading(folder, "tokenizer"):
        general_class = transformers.PreTrainedTokenizerFast
        kind = transformers.AutoTokenizer
        file = folder / "tokenizer.json"
        if (_names_general_class(folder) or as_stored) and file.is_file():
            kind = general_class
        tokenizer = kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if type(tokenizer) is general_class and transformers.__version__.startswith("4."):
            # Version 4 forgets whether a space is put before the first word, in this class.
            stored = tokenizers.Tokenizer.from_file(str(file))
            tokenizer.backend_tokenizer.pre_tokenizer = stored.pre_tokenizer
        return tokenizer


def model_config(folder: Path, kind: str) -> NetworkConfig:
    """Reads the configuration of a model, without its weights.

    Args:
        folder: of the model; not of an adapter, whose configuration is that of its `base_folder`.
        kind: what the model shall be loaded as, for the message.

    Raises:
        ArtifactError: the configuration is missing or damaged, or names code.
    """
    import transformers

    with loading(folder, kind):
        return transformers.AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )


def transformers_network(auto_class: str, folder: Path, dtype: "torch.dtype") -> Network:
    """Loads the weights of a folder, safetensors only.

    Args:
        auto_class: name of an Auto class of `transformers`, such as ``"AutoModel"``.
        folder: holds config.json and weights.
        dtype: number format to load into; without it `transformers` would take the stored one.

    Raises:
        ArtifactError: a file is missing, damaged, or not of the kind.
    """
    import torch
    import transformers

    base = base_folder(folder)
    with loading(base, auto_class):
        network = getattr(transformers, auto_class).from_pretrained(
            base,
            local_files_only=True,
            # An adapter is added in float32, and the sum is rounded.
            dtype=torch.float32 if is_adapter(folder) else dtype,
            use_safetensors=True,
            trust_remote_code=False,
        )
    if is_adapter(folder):
        network.load_state_dict(merged(network.state_dict(), folder))
        network.to(dtype)
    return network


def _names_general_class(folder: Path) -> bool:
    """Whether a folder says that its tokenizer is of the general class of `transformers`.

    Raises:
        ArtifactError: tokenizer_config.json is damaged.
    """
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return False
    name = read_json_object(path).get("tokenizer_class")
    return name in ("PreTrainedTokenizerFast", "TokenizersBackend")


def language_tokenizers(folder: Path) -> dict[str, Tokenizer]:
    """Loads the tokenizers of single languages that a model folder holds, by language.

    Raises:
        ArtifactError: one cannot be read.
    """
    from transformers import PreTrainedTokenizerFast

    by_language = {}
    for path in sorted(base_folder(folder).glob("languages/*/tokenizer.json")):
        language_folder = path.parent
        with loading(language_folder, "tokenizer"):
            by_language[language_folder.name] = PreTrainedTokenizerFast.from_pretrained(
                language_folder, local_files_only=True, trust_remote_code=False
            )
    return by_language


def require_one_vocabulary(folder: Path) -> None:
    """Raises an ArtifactError for an encoder with tokenizers of single languages, which
    sentence-transformers cannot use."""
    if any(base_folder(folder).glob(_LANGUAGES)):
        raise ArtifactError(
            f"{folder}: reads some languages with a vocabulary of its own, which "
            "sentence-transformers cannot do; train adapters of it by 'mtmetrics train "
            "contrastive --adapter-rank N', or choose another model"
        )


def sentence_model(folder: Path, device: str, dtype: str = "float32") -> Network:
    """Loads a ``SentenceTransformer`` of a folder; an encoder without pooling gets mean pooling.

    Args:
        folder: of the model.
        device: a name of torch, such as ``"cuda:0"``.
        dtype: number format to load into, by the name of torch.

    Raises:
        ArtifactError: a file is missing or damaged, or the encoder has tokenizers of single
            languages.
    """
    import torch
    from sentence_transformers import SentenceTransformer

    require_one_vocabulary(folder)
    base = base_folder(folder)
    with loading(base, "SentenceTransformer"):
        first_dtype = torch.float32 if is_adapter(folder) else getattr(torch, dtype)
        options = {"dtype": first_dtype, "use_safetensors": True}
        model = SentenceTransformer(
            str(base),
            device=device,
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs=options,
        )
    if is_adapter(folder):
        network = model[0].auto_model
        network.load_state_dict(merged(network.state_dict(), folder))
        network.to(getattr(torch, dtype))
    return model


@contextlib.contextmanager
def loading(folder: Path, kind: str) -> Iterator[None]:
    """Wraps the loading of a model.

    Refuses a model that brings code, silences `transformers`, and turns errors into an ArtifactError.

    Args:
        folder: of the model.
        kind: of object that is loaded, for the message.
    """
    import safetensors
    from transformers.utils import logging

    refuse_code(folder)
    shows_progress, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    except (
        OSError,
        ValueError,
        KeyError,
        RuntimeError,
        ImportError,
        safetensors.SafetensorError,
    ) as error:
        raise ArtifactError(
            f"{folder}: cannot be loaded as {kind}, damaged or incomplete? ({_first_line(error)})"
        ) from error
    finally:
        logging.set_verbosity(verbosity)
        if shows_progress:
            logging.enable_progress_bar()


def model_size(folder: Path) -> tuple[int, int]:
    """Reads the width of a model's vectors and the number of its layers from its configuration.

    Raises:
        ArtifactError: the configuration lacks them, or names code.
    """
    import transformers

    folder = base_folder(folder)
    try:
        refuse_code(folder)
        config = transformers.AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        return int(config.hidden_size), int(config.num_hidden_layers)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(
            f"{folder}: config.json does not state width and layers of an encoder "
            f"({_first_line(error)})"
        ) from error


def model_label(name: str | Path) -> str:
    """Returns the name of a model in signatures and maps.

    For a cached snapshot of a Hub repository it is the repository, for another path that exists the
    last part of the path, else the name itself.
    """
    if snapshot := hub_snapshot(Path(name)):
        return snapshot[0]
    return Path(name).resolve().name if Path(name).exists() else str(name)


def read_record(folder: Path) -> JsonObject | None:
    """Reads the record of the training of a model; None where the folder has none.

    Raises:
        ArtifactError: the record is no JSON object.
    """
    path = folder / RECORD
    return read_json_object(path) if path.is_file() else None


def model_fingerprint(folder: Path) -> str:
    """Returns the `fingerprint` of the files of a model folder that decide its numbers."""
    if is_adapter(folder):
        return read_adapter(folder).fingerprint
    patterns = (
        "config.json",
        "comet.json",
        "*.safetensors",
        *TOKENIZER_FILES,
        _LANGUAGES,
        # Of sentence-transformers:
        "modules.json",
        "sentence_*_config.json",
        "[0-9]*/config.json",
        "[0-9]*/*.safetensors",
    )
    return fingerprint(sorted({path for pattern in patterns for path in folder.glob(pattern)}))


def fingerprint(files: Iterable[Path]) -> str:
    """Returns the first 8 hexadecimal digits of a sha256 over names and contents of files, in their
    order; their folders do not count."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name}:{cached_sha256(path)}\n".encode())
    return digest.hexdigest()[:8]


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
