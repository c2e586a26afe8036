"""What an artifact says about its own making: configuration, versions, data; and how its weights are stored."""

import csv
import io
import json
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.files import write_atomic
from mtmetrics.artifacts.models import model_fingerprint, model_label

_PACKAGES = (
    "mtmetrics",
    "torch",
    "transformers",
    "sentence-transformers",
    "tokenizers",
    "safetensors",
    "accelerate",
    "numpy",
    "scipy",
)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that shape a training run."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def pinned(model: str | Path, folder: Path) -> str:
    """How records call a model: label and fingerprint.

    Args:
        model: as the user named it.
        folder: where it lies.
    """
    return f"{model_label(model)}#{model_fingerprint(folder)}"


def write_record(folder: Path, record: dict[str, Any], history: list[dict[str, Any]]) -> None:
    """Writes training.json, and the logged numbers of the run as training_log.csv.

    Args:
        folder: the artifact folder.
        record: configuration, data counts and results; versions are added.
        history: one dictionary per logged step, as `transformers.Trainer` keeps it.
    """
    text = json.dumps({**record, "versions": versions()}, indent=2, ensure_ascii=False) + "\n"
    write_atomic(folder / "training.json", text)
    columns = sorted({name for row in history for name in row}, key=lambda name: (name != "step", name))
    table = io.StringIO()
    writer = csv.DictWriter(table, columns, lineterminator="\n")
    writer.writeheader()
    for row in history:
        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
    write_atomic(folder / "training_log.csv", table.getvalue())


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of an artifact, or None where it has none."""
    path = folder / "training.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def save_half(model: Any, folder: Path) -> None:
    """Saves a `transformers` model as float16 safetensors, in files of at most 16 MiB."""
    import copy

    import torch

    half = copy.deepcopy(model).to(device="cpu", dtype=torch.float16)
    half.config.dtype = torch.float16
    half.config._name_or_path = ""
    half.save_pretrained(folder, max_shard_size=16 * 2**20)
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)


def save_model(model: Any, tokenizer: Any, folder: Path) -> None:
    """Saves a `transformers` model, see `save_half`, and its tokenizer."""
    from mtmetrics.training import vocabulary

    save_half(model, folder)
    vocabulary.save_tokenizer(tokenizer, folder)


def save_sentence_encoder(model: Any, folder: Path) -> None:
    """Saves a sentence-transformers model whose first module is a transformer, with its weights in float16."""
    model.save_pretrained(str(folder), create_model_card=False)
    network = model[0].auto_model
    network.pooler = None  # of BERT and its kin: no part of a mean over tokens, and not trained
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    save_model(network, model.tokenizer, folder)
