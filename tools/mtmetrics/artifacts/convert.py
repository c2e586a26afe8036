"""Converts weights that exist only as pickles of PyTorch (``pytorch_model.bin``) to safetensors.

A pickle may run code, so it is read by ``torch.load(weights_only=True)`` alone, in a process of its
own (`mtmetrics.artifacts.pickles`). That process is this module run as a program."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.artifacts.adapters import SETTINGS, is_adapter
from mtmetrics.artifacts.comet_checkpoints import CHECKPOINT, HPARAMS, convert_comet
from mtmetrics.artifacts.hub import download
from mtmetrics.artifacts.merging import merge_adapter
from mtmetrics.artifacts.models import MODEL_FILES, model_label, refuse_code
from mtmetrics.artifacts.pickles import answer, converted_apart, save_tensors
from mtmetrics.artifacts.places import hub_snapshot, hub_source, local_folder
from mtmetrics.errors import InputError
from mtmetrics.io.atomic import new_folder, write_json

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
) -> dict[str, Any]:
    """Makes a folder that holds a model with its weights as safetensors; of a checkpoint of COMET
    as `mtmetrics.artifacts.comet_checkpoints.convert_comet`, of an adapter as
    `mtmetrics.artifacts.merging.merge_adapter`.

    Where `transformers` ties two names to one tensor, and the pickle holds one tensor for both, it
    is written once.

    Args:
        name: a folder with config.json and pytorch_model.bin (or its parts), or one with
            hparams.yaml and checkpoints/model.ckpt, or a Hub repository.
        out: the folder to make; ``conversion.json`` in it says what was converted.
        revision: Hub branch, tag or commit; None for the main branch.
        encoder: of a checkpoint of COMET, where configuration and tokenizer of its encoder lie.
        local_files_only: never ask the Hub.
        overwrite: replace an existing folder.

    Returns:
        What conversion.json holds: where the model came from, the sha256 of each pickle, and how
        many tensors it has.

    Raises:
        InputError: `out` exists already, or there is nothing to convert.
        ArtifactError: the model cannot be found, or a pickle is damaged or holds other things than
            tensors.
        MTMetricsError: `out` cannot be written.
    """
    folder = local_folder(name, "config.json", "modules.json", HPARAMS, SETTINGS)
    if folder is None:
        wanted = [pattern for pattern in _COPIED if ".safetensors" not in pattern]
        source = hub_source(name, revision)
        folder = download(
            source,
            [*wanted, *_PICKLES, _INDEX, HPARAMS, CHECKPOINT, Path(CHECKPOINT).name],
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
    pickles = [path for pattern in _PICKLES for path in sorted(folder.glob(pattern))]
    pickles = [path for path in pickles if not any(path.parent.glob("*.safetensors"))]
    if not pickles:
        what = "no pytorch_model.bin that has no *.safetensors beside it"
        raise InputError(f"{name}: nothing to convert, it holds {what}")
    snapshot = hub_snapshot(folder)
    record = {"model": model_label(folder), "revision": snapshot and snapshot[1], "files": {}}
    with new_folder(out, overwrite) as made:
        for path in sorted({path for pattern in _COPIED for path in folder.glob(pattern)}):
            target = made / path.relative_to(folder)
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, target)
        for path in pickles:
            target = made / path.relative_to(folder).with_name(_renamed(path.name))
            target.parent.mkdir(exist_ok=True)
            record["files"][path.relative_to(folder).as_posix()] = converted_apart(
                __name__, path, target
            )
        if (folder / _INDEX).is_file():
            _write_index(folder / _INDEX, made, record["files"])
        write_json(made / "conversion.json", record)
    return record


def _renamed(name: str) -> str:
    return name.replace("pytorch_model", "model").replace(".bin", ".safetensors")


def _write_index(index: Path, made: Path, files: dict[str, Any]) -> None:
    whole = json.loads(index.read_text(encoding="utf-8"))
    tied = {name for file in files.values() for name in file["tied"]}
    whole["weight_map"] = {
        name: _renamed(file) for name, file in whole["weight_map"].items() if name not in tied
    }
    write_json(made / _renamed(index.name), whole)


def _convert_file(path: Path, target: Path) -> dict[str, Any]:
    """Reads a pickle, writes its tensors, and compares their names, shapes and types with what was
    written."""
    import torch
    from safetensors.torch import load_file

    tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    if not isinstance(tensors, dict) or not all(
        isinstance(value, torch.Tensor) for value in tensors.values()
    ):
        raise TypeError("it holds no plain table of tensors")
    tied = _tied(path.parent, tensors)
    kept = {name: tensor for name, tensor in tensors.items() if name not in tied}
    save_tensors(kept, target)
    forms = [
        {name: (value.dtype, value.shape) for name, value in part.items()}
        for part in (kept, load_file(target))
    ]
    if forms[0] != forms[1]:
        raise ValueError("other tensors were written than were read")
    return {"tensors": len(tensors), "tied": tied}


def _tied(folder: Path, tensors: "dict[str, torch.Tensor]") -> dict[str, str]:
    """Name -> the name of the same tensor that `transformers` takes for it when it loads the
    architecture."""
    import torch
    import transformers

    if len({tensor.untyped_storage().data_ptr() for tensor in tensors.values()}) == len(tensors):
        return {}
    config = transformers.AutoConfig.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )
    architecture = getattr(transformers, (config.architectures or [""])[0], None)
    if architecture is None:
        return {}
    with torch.device("meta"):
        network = architecture(config)
        network.tie_weights()
    ties: dict[str, str] = {}
    first: dict[int, str] = {}
    for name, parameter in network.named_parameters(remove_duplicate=False):
        if id(parameter) in first:
            ties[name] = first[id(parameter)]
        first.setdefault(id(parameter), name)
    held = {name: other for name, other in ties.items() if name in tensors and other in tensors}
    return {name: other for name, other in held.items() if tensors[name].is_set_to(tensors[other])}


if __name__ == "__main__":
    answer(_convert_file)
