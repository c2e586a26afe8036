"""What the tests of trainings make their files with, and read from artifacts."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file


def rows_file(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Writes JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def record_of(folder: Path) -> dict[str, Any]:
    """The record of an artifact."""
    return json.loads((folder / "training.json").read_text(encoding="utf-8"))


def equal_weights(first: Path, second: Path, name: str = "model.safetensors") -> bool:
    """Whether two artifacts hold the same tensors."""
    one, other = load_file(first / name), load_file(second / name)
    return one.keys() == other.keys() and all(bool((one[key] == other[key]).all()) for key in one)


def precisions(folder: Path) -> set[str]:
    """Of the tensors of an artifact, which hold no pooler."""
    weights = load_file(folder / "model.safetensors")
    assert not any(name.startswith("pooler") for name in weights)
    return {str(tensor.dtype) for tensor in weights.values()}
