"""Converts weights that exist only as pickles of PyTorch (``pytorch_model.bin``) to safetensors.

A pickle may run code, so it is read by ``torch.load(weights_only=True)`` alone, in a process of its
own (`mtmetrics.artifacts.pickles`). That process is this module run as a program. Checkpoints of
COMET are left to `mtmetrics.artifacts.comet_checkpoints`.
"""

import json
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.artifacts.adapters import SETTINGS, is_adapter
from mtmetrics.artifacts.comet_checkpoints import (
    CHECKPOINT,
    HPARAMS,
    conversion_record,
    convert_comet,
)
from mtmetrics.artifacts.hub import download
from mtmetrics.artifacts.merging import merge_adapter
from mtmetrics.artifacts.models import MODEL_FILES, model_config, refuse_code
from mtmetrics.artifacts.pickles import answer, converted_apart, is_tensors, save_tensors
from mtmetrics.artifacts.places import hub_source, local_folder
from mtmetrics.errors import InputError
from mtmetrics.io.atomic import atomic_folder, write_json
from mtmetrics.io.lines import JsonObject

if TYPE_CHECKING:
    import torch

_PICKLES = ["pytorch_model*.bin", "?_*/pytorch_model.bin"]
_INDEX = "pytorch_model.bin.index.json"
_COPIED = [*MODEL_FILES, "README.md", "LICENSE*"]


def convert_model(
    name: str | Path,
    out: str | Path,
    *,
    revision: str | None = None,
    encoder: str | Path | None = None,
    local_files_only: bool = False,
    overwrite: bool = False,
) -> JsonObject:
    """Makes a folder that holds a model with its weights as safetensors.

    For a checkpoint of COMET it calls `mtmetrics.artifacts.comet_checkpoints.convert_comet`, for an
    adapter `mtmetrics.artifacts.merging.merge_adapter`.

    Where `transformers` ties two names to one tensor, and the pickle holds one tensor for both, it
    is written once.

    Args:
        name: a folder with config.json and pytorch_model.bin (or its parts), or one with
            hparams.yaml and checkpoints/model.ckpt, or a Hub repository.
        out: the folder to make; ``conversion.json`` in it is the record of the conversion.
        revision: Hub branch, tag or commit; None for the main branch.
        encoder: of a checkpoint of COMET, where configuration and tokenizer of its encoder lie.
        local_files_only: never ask the Hub.
        overwrite: replace an existing folder.

    Returns:
        The content of conversion.json: ``model``, ``revision``, and for each pickle its sha256 and
        the number of its tensors.

    Raises:
        InputError: `out` exists already, or there is nothing to convert.
        ArtifactError: the model cannot be found, or a pickle is damaged or holds other things than
            tensors.
        MTMetricsError: `out` cannot be written.
    """
    folder = local_folder(name, "config.json", "modules.json", HPARAMS, SETTINGS)
    if folder is None:
        small_files = [pattern for pattern in _COPIED if ".safetensors" not in pattern]
        checkpoint = [HPARAMS, CHECKPOINT, Path(CHECKPOINT).name]
        folder = download(
            hub_source(name, revision),
            [*small_files, *_PICKLES, _INDEX, *checkpoint],
            local_files_only=local_files_only,
        )
    refuse_code(folder)
    if is_adapter(folder) and encoder is None:
        return merge_adapter(
            name,
            out,
            revision=revision,
            local_files_only=local_files_only,
            overwrite=overwrite,
        )
    if (folder / HPARAMS).is_file():
        return convert_comet(
            folder, out, encoder=encoder, local_files_only=local_files_only, overwrite=overwrite
        )
    if encoder is not None:
        raise InputError(
            f"--encoder {encoder}: {name} is no checkpoint of COMET, which alone needs one"
        )
    pickles = [
        path
        for pattern in _PICKLES
        for path in sorted(folder.glob(pattern))
        if not any(path.parent.glob("*.safetensors"))
    ]
    if not pickles:
        raise InputError(
            f"{name}: nothing to convert, it holds no pytorch_model.bin that has no *.safetensors "
            "beside it"
        )
    record = conversion_record(folder)
    with atomic_folder(out, overwrite) as new:
        for path in sorted({path for pattern in _COPIED for path in folder.glob(pattern)}):
            target = new / path.relative_to(folder)
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, target)
        for path in pickles:
            inner = path.relative_to(folder)
            target = new / inner.with_name(_converted_name(path.name))
            target.parent.mkdir(exist_ok=True)
            record["files"][inner.as_posix()] = converted_apart(__name__, path, target)
        if (folder / _INDEX).is_file():
            _write_index(folder / _INDEX, new, record["files"])
        write_json(new / "conversion.json", record)
    return record


def _converted_name(name: str) -> str:
    return name.replace("pytorch_model", "model").replace(".bin", ".safetensors")


def _write_index(index_path: Path, target: Path, files: JsonObject) -> None:
    """Writes the index of weights in several files, without names that are tied to others."""
    index = json.loads(index_path.read_text(encoding="utf-8"))
    tied = {name for file in files.values() for name in file["tied"]}
    index["weight_map"] = {
        name: _converted_name(file)
        for name, file in index["weight_map"].items()
        if name not in tied
    }
    write_json(target / _converted_name(index_path.name), index)


def convert_file(path: Path, target: Path) -> JsonObject:
    """Reads a pickle and writes its tensors; compares names, shapes and types of both files.

    Returns:
        ``tensors``, how many the pickle holds, and ``tied``, see `_tied`.
    """
    import torch
    from safetensors.torch import load_file

    tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    if not is_tensors(tensors):
        raise TypeError("it holds no plain table of tensors")
    tied = _tied(path.parent, tensors)
    kept = {name: tensor for name, tensor in tensors.items() if name not in tied}
    save_tensors(kept, target)
    if _shapes(kept) != _shapes(load_file(target)):
        raise ValueError("other tensors were written than were read")
    return {"tensors": len(tensors), "tied": tied}


def _shapes(tensors: "dict[str, torch.Tensor]") -> "dict[str, tuple[torch.dtype, torch.Size]]":
    return {name: (tensor.dtype, tensor.shape) for name, tensor in tensors.items()}


def _tied(folder: Path, tensors: "dict[str, torch.Tensor]") -> dict[str, str]:
    """Finds names that `transformers` ties to another name of the same tensor.

    Returns:
        Name -> the other name, from which `transformers` takes the tensor.
    """
    import torch
    import transformers

    addresses = {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}
    if len(addresses) == len(tensors):
        return {}
    config = model_config(folder, "AutoModel")
    architecture = getattr(transformers, (config.architectures or [""])[0], None)
    if architecture is None:
        return {}
    with torch.device("meta"):
        network = architecture(config)
        network.tie_weights()
    tied = {}
    first_names: dict[int, str] = {}
    for name, parameter in network.named_parameters(remove_duplicate=False):
        first = first_names.setdefault(id(parameter), name)
        are_stored = name in tensors and first in tensors
        if first != name and are_stored and tensors[name].is_set_to(tensors[first]):
            tied[name] = first
    return tied


if __name__ == "__main__":
    answer(convert_file)
