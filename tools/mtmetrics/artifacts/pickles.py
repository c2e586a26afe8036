"""Reads pickles of PyTorch, which may run code, in a process of its own that gives nothing back but
a line of JSON."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.errors import ArtifactError
from mtmetrics.io.atomic import sha256_file

if TYPE_CHECKING:
    import torch


def converted_apart(module: str, path: Path, target: Path) -> dict[str, Any]:
    """Has a module, run as a program, convert one file; returns the file's sha256 and what the
    module answers. An `ArtifactError` says in a line what is wrong."""
    command = [sys.executable, "-m", module, str(path), str(target)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"its process ended with {done.returncode}"])[
            -1
        ]
        killed = "; was there enough memory?" if done.returncode < 0 else ""
        raise ArtifactError(f"{path}: cannot be converted ({said}){killed}; nothing was kept")
    return {"sha256": sha256_file(path), **json.loads(done.stdout)}


def answer(convert: Callable[[Path, Path], dict[str, Any]]) -> None:
    """Converts the file that the command line names, and prints the result as JSON. Modules that are
    run in a process of their own call it."""
    sys.excepthook = lambda _, error, __: print(_in_one_line(error), file=sys.stderr)
    print(json.dumps(convert(*map(Path, sys.argv[1:]))))


def save_tensors(tensors: "dict[str, torch.Tensor]", target: Path) -> None:
    """Writes tensors as safetensors, which share no memory there; of those that do, copies."""
    import torch
    from safetensors.torch import save_file

    storages, own = set(), {}
    for name, tensor in tensors.items():
        storage = tensor.untyped_storage()
        alone = storage.nbytes() == tensor.nbytes and storage.data_ptr() not in storages
        storages.add(storage.data_ptr())
        own[name] = (
            tensor.contiguous() if alone else tensor.clone(memory_format=torch.contiguous_format)
        )
    save_file(own, target, {"format": "pt"})
    target.chmod(0o644)


def _in_one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if isinstance(error, pickle.UnpicklingError):
        # The other lines of PyTorch's message advise to run the code.
        reasons = [line.strip() for line in lines if "GLOBAL" in line or "Unpickler error" in line]
        return f"it holds more than tensors, which might run code: {' '.join(reasons)}"
    return lines[0]
