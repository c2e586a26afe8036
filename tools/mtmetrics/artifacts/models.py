"""Finds and loads transformer models."""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.artifacts.adapters import SETTINGS, is_adapter, merged, read_adapter
from mtmetrics.artifacts.hub import download
from mtmetrics.artifacts.places import hub_snapshot, hub_source, local_folder, places_in_words
from mtmetrics.errors import ArtifactError
from mtmetrics.io.atomic import sha256_unchanged

if TYPE_CHECKING:
    import torch

TOKENIZER_FILES = [
    "tokenizer*.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
]
# What a sentence-transformers folder holds besides a transformer.
_PIPELINE = [
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_*_config.json",
    "?_*/*.json",
]
_WEIGHTS = ["*.safetensors", "*.safetensors.index.json", "?_*/*.safetensors"]
# Where transformers and sentence-transformers find names of code.
_CONFIGURATIONS = ["*config.json", "config_sentence_transformers.json", "modules.json"]
_OWN_MODULES = "sentence_transformers."
# Tokenizers of single languages, see `TokenEncoder`.
_LANGUAGES = "languages/*/tokenizer*.json"
# What a training leaves beside the weights: data, settings, language pair.
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
    """The folder that holds a model, in the order of `mtmetrics.artifacts.places`.

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
        folder = _elsewhere(name, revision, local_files_only)
    refuse_code(folder)
    if not any(path for pattern in _WEIGHTS for path in folder.glob(pattern)):
        options = f"{name}{f' --revision {revision}' if revision else ''}"
        command = f"'mtmetrics artifacts convert {options} --out DIR'"
        advice = f"convert a pytorch_model.bin by {command}, and pass DIR instead"
        raise ArtifactError(
            f"{folder}: no *.safetensors weights; other formats may run code, so they are not "
            f"read; {advice}"
        )
    return folder


def base_folder(folder: Path, *, local_files_only: bool = True) -> Path:
    """The folder with the tokenizer and the whole weights of a model: its own, or, of an adapter,
    that of the encoder that it was made for.

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
            f"'mtmetrics train contrastive --model {adapter.base} --adapter-rank {adapter.rank}'"
        )
    return base


def require_adaptable(folder: Path) -> None:
    """Refuses a model that adapters cannot be trained or read on: they are for encoders that are
    mean-pooled."""
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


def _elsewhere(name: str | Path, revision: str | None, local_files_only: bool) -> Path:
    if Path(name).is_dir():
        raise ArtifactError(f"{name}: the folder holds no config.json, so it is no model")
    source = hub_source(name, revision)
    try:
        return download(source, MODEL_FILES, local_files_only=local_files_only)
    except ArtifactError as error:
        raise ArtifactError(
            f"the model {str(name)!r} was not found {places_in_words()}, in the cache or on the "
            f"Hub: {error}; with a network, 'hf download {source.repository}' fetches it; a "
            "bundled preset, such as mini, needs none"
        ) from error


def refuse_code(folder: Path) -> None:
    """Refuses a model that brings code to run.

    `transformers` would ask on standard input whether to run it, where the first line of piped
    texts is the answer.

    Raises:
        ArtifactError: a configuration in the folder, or one of its folders, names code that is no
            part of `transformers` or sentence-transformers.
    """
    places = [place + name for name in _CONFIGURATIONS for place in ("", "*/", "*/*/")]
    for path in sorted({path for place in places for path in folder.glob(place)}):
        try:
            configuration = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # loading says what is wrong
            continue
        code = _code_in(configuration, path.name)
        if code is not None:
            why = "names code of its own, which would run on this machine with all your rights"
            mend = (
                "such models are not loaded; choose one that transformers or "
                "sentence-transformers compute themselves"
            )
            raise ArtifactError(f"{path}: {why} ({code:.90}); {mend}")


def _code_in(configuration: Any, file: str) -> str | None:
    """The first entry of a configuration that stands for code from elsewhere, or None."""
    for key, value in _entries(configuration):
        if (key in ("auto_map", "trust_remote_code") and value) or _is_foreign_class(
            key, value, file
        ):
            return f"{key}: {json.dumps(value)}"
    return None


def _entries(configuration: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yields every key of nested objects with its value; an item of a list has the key of the
    list."""
    yield key, configuration
    if isinstance(configuration, dict):
        for name, value in configuration.items():
            yield from _entries(value, name)
    elif isinstance(configuration, list):
        for value in configuration:
            yield from _entries(value, key)


def _is_foreign_class(key: str, value: Any, file: str) -> bool:
    if file == "router_config.json" and key == "types" and isinstance(value, dict):
        return not all(str(name).startswith(_OWN_MODULES) for name in value.values())
    if not isinstance(value, str):
        return False
    if file == "modules.json" and key == "type":
        return not value.startswith(_OWN_MODULES)
    if key in ("activation_function", "tokenizer_class"):
        return "." in value and not value.startswith(("torch.", _OWN_MODULES))
    return key.endswith("_implementation") and "/" in value  # a repository of kernels


def pretrained(auto_class: str, folder: Path, dtype: "torch.dtype") -> tuple[Any, Any]:
    """Loads tokenizer and weights of a folder, see `pretrained_tokenizer` and
    `transformers_network`."""
    return pretrained_tokenizer(folder), transformers_network(auto_class, folder, dtype)


def pretrained_tokenizer(folder: Path, *, as_stored: bool = False) -> Any:
    """Loads the tokenizer of a model folder.

    Args:
        folder: holds the tokenizer's files.
        as_stored: read tokenizer.json, where there is one, to the letter, as is done anyway where
            no class is named but the general one; `transformers` 5 takes the vocabulary alone from
            it, for classes that it knows, and makes the rest anew.

    Raises:
        ArtifactError: a file is missing or damaged.
    """
    import transformers

    folder = base_folder(folder)
    with loading(folder, "tokenizer"):
        stored = (folder / "tokenizer.json").is_file() and (as_stored or _names_no_class(folder))
        kind = transformers.PreTrainedTokenizerFast if stored else transformers.AutoTokenizer
        tokenizer = kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if type(
            tokenizer
        ) is transformers.PreTrainedTokenizerFast and transformers.__version__.startswith("4."):
            # Of this class, this version forgets whether a space is put before the first word.
            tokenizer.backend_tokenizer.pre_tokenizer = _stored(folder).pre_tokenizer
        return tokenizer


def transformers_network(auto_class: str, folder: Path, dtype: "torch.dtype") -> Any:
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
            dtype=torch.float32 if is_adapter(folder) else dtype,
            use_safetensors=True,
            trust_remote_code=False,
        )
    if is_adapter(folder):
        network.load_state_dict(merged(network.state_dict(), folder))
        network.to(dtype)
    return network


def _names_no_class(folder: Path) -> bool:
    about = folder / "tokenizer_config.json"
    named = (
        json.loads(about.read_text(encoding="utf-8")).get("tokenizer_class")
        if about.is_file()
        else None
    )
    return named in ("PreTrainedTokenizerFast", "TokenizersBackend")


def _stored(folder: Path) -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def own_tokenizers(folder: Path) -> dict[str, Any]:
    """Language -> its tokenizer, of the languages for which a model folder has one of its own; an
    `ArtifactError` where it cannot be read."""
    from transformers import PreTrainedTokenizerFast

    tokenizers = {}
    folder = base_folder(folder)
    for place in sorted(path.parent for path in folder.glob("languages/*/tokenizer.json")):
        with loading(place, "tokenizer"):
            tokenizers[place.name] = PreTrainedTokenizerFast.from_pretrained(
                place, local_files_only=True, trust_remote_code=False
            )
    return tokenizers


def require_one_vocabulary(folder: Path) -> None:
    """Refuses an encoder that cannot be trained as a sentence encoder: it has tokenizers of single
    languages."""
    if any(base_folder(folder).glob(_LANGUAGES)):
        how = (
            "which sentence-transformers cannot do; train adapters of it by 'mtmetrics train "
            "contrastive --adapter-rank N', or choose another model"
        )
        raise ArtifactError(f"{folder}: reads some languages with a vocabulary of its own, {how}")


def sentence_model(folder: Path, device: str, dtype: str = "float32") -> Any:
    """Loads a folder as a sentence-transformers model; an encoder without pooling gets mean
    pooling."""
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
    """Silences the progress bar of `transformers`, and turns what goes wrong into an ArtifactError
    about `folder`; a model that brings code is refused before."""
    import safetensors
    from transformers.utils import logging

    refuse_code(folder)
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
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
            f"{folder}: cannot be loaded as {kind}, damaged or incomplete? ({_said(error)})"
        ) from error
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


def model_size(folder: Path) -> tuple[int, int]:
    """Width of a model's vectors and number of its layers, as its configuration states them."""
    import transformers

    folder = base_folder(folder)
    try:
        refuse_code(folder)
        config = transformers.AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        return int(config.hidden_size), int(config.num_hidden_layers)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        wrong = f"config.json does not state width and layers of an encoder ({_said(error)})"
        raise ArtifactError(f"{folder}: {wrong}") from error


def model_label(name: str | Path) -> str:
    """How signatures and maps call a model: the last part of a path that exists, or the repository
    that the path is a cached snapshot of, else the name as given."""
    if snapshot := hub_snapshot(Path(name)):
        return snapshot[0]
    return Path(name).resolve().name if Path(name).exists() else str(name)


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of the training that made a model; None where the folder has none.

    Raises:
        ArtifactError: the record is no JSON object.
    """
    path = folder / RECORD
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ArtifactError(f"{path}: cannot be read as JSON ({error})") from error
    if not isinstance(record, dict):
        raise ArtifactError(f"{path}: a JSON object is needed")
    return record


def model_fingerprint(folder: Path) -> str:
    """The `fingerprint` of the files of a model folder that decide its numbers."""
    if is_adapter(folder):
        return read_adapter(folder).fingerprint
    modules = (
        "modules.json",
        "sentence_*_config.json",
        "[0-9]*/config.json",
        "[0-9]*/*.safetensors",
    )
    patterns = (
        "config.json",
        "comet.json",
        "*.safetensors",
        *TOKENIZER_FILES,
        _LANGUAGES,
        *modules,
    )
    return fingerprint(sorted({path for pattern in patterns for path in folder.glob(pattern)}))


def fingerprint(files: Iterable[Path]) -> str:
    """First 8 hexadecimal digits of a sha256 over names and contents of files, wherever these
    lie."""
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.name}:{sha256_unchanged(path)}\n".encode())
    return whole.hexdigest()[:8]


def _said(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
