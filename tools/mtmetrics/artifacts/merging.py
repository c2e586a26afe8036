"""Makes a model of its own from an adapter: the folder of its encoder, with the adapter merged."""

import shutil
from pathlib import Path

from mtmetrics.artifacts.adapters import SETTINGS, WEIGHTS, merged, read_adapter
from mtmetrics.artifacts.models import (
    MODEL_FILES,
    RECORD,
    base_folder,
    model_fingerprint,
    model_folder,
    model_label,
)
from mtmetrics.artifacts.pickles import save_tensors
from mtmetrics.io.atomic import atomic_folder, write_json
from mtmetrics.io.lines import JsonObject

_COPIED = [*MODEL_FILES, "LICENSE*"]


def merge_adapter(
    name: str | Path,
    out: str | Path,
    *,
    revision: str | None = None,
    local_files_only: bool = False,
    overwrite: bool = False,
) -> JsonObject:
    """Makes a folder that holds the encoder of an adapter with the adapter merged, in the number
    format of the encoder's file: `transformers` and sentence-transformers load it, and mean-pool
    it.

    Args:
        name: of the adapter: a folder, an artifact, or a Hub repository.
        out: the folder to make; ``conversion.json`` in it says what was merged.
        revision: Hub revision of the adapter.
        local_files_only: never ask the Hub.
        overwrite: replace an existing folder.

    Returns:
        The content of conversion.json: both models with their fingerprints, and how many matrices
        changed.

    Raises:
        InputError: `out` exists already.
        ArtifactError: one of them cannot be found or read, or they do not belong together.
        MTMetricsError: `out` cannot be written.
    """
    from safetensors.torch import load_file

    folder = model_folder(name, revision=revision, local_files_only=local_files_only)
    base = base_folder(folder)
    shards = {path.name: load_file(path) for path in sorted(base.glob("*.safetensors"))}
    stored = {key: tensor for tensors in shards.values() for key, tensor in tensors.items()}
    whole = merged(stored, folder)
    changed = [key for key, tensor in stored.items() if whole[key] is not tensor]
    record = {
        "model": f"{model_label(name)}#{model_fingerprint(folder)}",
        "encoder": f"{model_label(read_adapter(folder).base)}#{model_fingerprint(base)}",
        "merged": len(changed),
    }
    files = {path for pattern in _COPIED for path in base.glob(pattern)}
    files -= {base / unwanted for unwanted in (*shards, RECORD, SETTINGS, WEIGHTS)}
    with atomic_folder(out, overwrite) as made:
        for path in sorted(files):
            target = made / path.relative_to(base)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        if (folder / RECORD).is_file():
            shutil.copyfile(folder / RECORD, made / RECORD)
        for shard, tensors in shards.items():
            save_tensors(
                {key: whole[key].to(old.dtype) for key, old in tensors.items()}, made / shard
            )
        write_json(made / "conversion.json", record)
    return record
