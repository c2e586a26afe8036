"""Finds and loads transformer models: a folder, a bundled artifact, the Hub's cache, or the Hub."""

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.errors import ArtifactError
from mtmetrics.layout import bundled_artifacts

if TYPE_CHECKING:
    import torch

_TOKENIZER_FILES = ("tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.model")
# What a sentence-transformers folder holds besides a transformer.
_PIPELINE_FILES = ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json", "?_*/*.json", "?_*/*.safetensors")
_PATTERNS = ["config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json", *_TOKENIZER_FILES, *_PIPELINE_FILES]


def model_folder(name: str | Path, *, revision: str | None = None, local_files_only: bool = False) -> Path:
    """The folder that holds a model, downloaded from the Hub if it is neither a folder nor bundled nor cached.

    Args:
        name: a folder, the name of a bundled artifact, or a Hub repository.
        revision: Hub branch, tag or commit.
        local_files_only: never ask the network (``HF_HUB_OFFLINE=1`` does the same).

    Raises:
        ArtifactError: it is in none of these places; the message names them all.
    """
    places = [Path(name), bundled_artifacts() / name]
    for place in places:
        if (place / "config.json").is_file() or (place / "modules.json").is_file():
            return place
    if Path(name).is_dir():
        raise ArtifactError(f"{name}: the folder holds no config.json, so it is no model")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(snapshot_download(str(name), revision=revision, local_files_only=local_files_only, allow_patterns=_PATTERNS))
    except HFValidationError:
        raise ArtifactError(f"model {str(name)!r}: no such folder, no bundled artifact, and no valid Hub repository name") from None
    except (OSError, ValueError) as error:
        from huggingface_hub.constants import HF_HUB_CACHE

        raise ArtifactError(
            f"model {str(name)!r} (revision {revision or 'main'}) was not found as a folder, as a bundled artifact, in the cache "
            f"{HF_HUB_CACHE}, or on the Hub ({type(error).__name__}); with a network, 'hf download {name}' fetches it; "
            "--preset mini is bundled and needs none"
        ) from error


def pretrained(auto_class: str, folder: Path, dtype: "torch.dtype") -> tuple[Any, Any]:
    """Loads tokenizer and weights of a folder, safetensors only, with an explicit dtype.

    Args:
        auto_class: name of an Auto class of `transformers`, such as ``"AutoModel"``.
        folder: a folder with config.json, weights and tokenizer files.
        dtype: number format to load into; without it `transformers` would take the stored one.

    Raises:
        ArtifactError: a file is missing, damaged, or not of the kind.
    """
    import transformers

    if not any(folder.glob("*.safetensors")):
        raise ArtifactError(f"{folder}: no *.safetensors weights; other formats are not loaded, since they may run code")
    with loading(folder, auto_class):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        network = getattr(transformers, auto_class).from_pretrained(folder, local_files_only=True, dtype=dtype, use_safetensors=True)
    return tokenizer, network


@contextlib.contextmanager
def loading(folder: Path, kind: str) -> Iterator[None]:
    """Silences the weight-loading progress bar of `transformers`, and turns what goes wrong into one message.

    Args:
        folder: what is being loaded.
        kind: as what.

    Raises:
        ArtifactError: a file is missing, damaged, or not of the kind.
    """
    import safetensors
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError, safetensors.SafetensorError) as error:
        raise ArtifactError(f"{folder}: cannot be loaded as {kind}, damaged or incomplete? ({_first_line(error)})") from error
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


def model_size(folder: Path) -> tuple[int, int]:
    """Width of a model's vectors and number of its layers, as its configuration states them.

    Raises:
        ArtifactError: the configuration is damaged or states neither.
    """
    import transformers

    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        return int(config.hidden_size), int(config.num_hidden_layers)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"{folder}: config.json does not state width and layers of an encoder ({_first_line(error)})") from error


def model_label(name: str | Path) -> str:
    """How signatures and maps call a model: the name of a folder or file without the path to it, else the name as given."""
    return Path(name).resolve().name if Path(name).exists() else str(name)


def fingerprint_files(folder: Path) -> list[Path]:
    """The files of a model folder that decide its numbers: weights, configuration, tokenizer."""
    patterns = ("config.json", "*.safetensors", *_TOKENIZER_FILES, *_PIPELINE_FILES)
    return sorted({path for pattern in patterns for path in folder.glob(pattern)})


def fingerprint(files: Iterable[Path]) -> str:
    """First 8 hexadecimal digits of a sha256 over names and contents of files, wherever they lie."""
    whole = hashlib.sha256()
    for path in files:
        state = os.stat(path)
        whole.update(f"{path.name}:{_digest(str(path.resolve()), state.st_size, state.st_mtime_ns)}\n".encode())
    return whole.hexdigest()[:8]


@functools.lru_cache(maxsize=256)
def _digest(path: str, size: int, changed: int) -> str:
    from mtmetrics.artifacts.files import sha256_file

    return sha256_file(path)


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
