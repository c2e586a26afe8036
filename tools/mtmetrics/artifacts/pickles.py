"""Reading pickles of PyTorch in a process of its own, since they may run code.

`converted_apart` starts a module as a program; the module calls `answer`, which converts the file
and prints a line of JSON.
"""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.errors import ArtifactError
from mtmetrics.io.checksums import sha256_file
from mtmetrics.io.lines import JsonObject

if TYPE_CHECKING:
    import torch


def converted_apart(module: str, path: Path, target: Path) -> JsonObject:
    """Converts one file in another process.

    Args:
        module: name of the module that is run as a program.
        path: the file.
        target: the file or folder to write.

    Returns:
        The ``sha256`` of the file, and the entries that the module answers.

    Raises:
        ArtifactError: the file cannot be converted.
    """
    command = [sys.executable, "-m", module, str(path), str(target)]
    process = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if process.returncode:
        messages = process.stderr.strip().splitlines()
        reason = messages[-1] if messages else f"its process ended with {process.returncode}"
        was_killed = process.returncode < 0
        advice = "; was there enough memory?" if was_killed else ""
        raise ArtifactError(f"{path}: cannot be converted ({reason}){advice}; nothing was kept")
    return {"sha256": sha256_file(path), **json.loads(process.stdout)}


def answer(convert: Callable[[Path, Path], JsonObject]) -> None:
    """Converts the file that the command line names, and prints the result as JSON.

    A module calls it where it is run as a program, see `converted_apart`.

    Args:
        convert: takes the file and the target; returns entries of JSON.
    """
    sys.excepthook = lambda _, error, __: print(_in_one_line(error), file=sys.stderr)
    print(json.dumps(convert(*map(Path, sys.argv[1:]))))


def save_tensors(tensors: "dict[str, torch.Tensor]", target: Path) -> None:
    """Writes tensors as safetensors.

    Tensors in such a file share no memory: of tensors that do, copies are written.
    """
    import torch
    from safetensors.torch import save_file

    addresses: set[int] = set()
    separate = {}
    for name, tensor in tensors.items():
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        is_separate = storage.nbytes() == tensor.nbytes and address not in addresses
        addresses.add(address)
        if is_separate:
            separate[name] = tensor.contiguous()
        else:
            separate[name] = tensor.clone(memory_format=torch.contiguous_format)
    save_file(separate, target, {"format": "pt"})
    target.chmod(0o644)


def is_tensors(value: object) -> bool:
    """Whether a value is a dictionary of tensors, and of nothing else."""
    import torch

    if not isinstance(value, dict):
        return False
    return all(isinstance(tensor, torch.Tensor) for tensor in value.values())


def _in_one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if isinstance(error, pickle.UnpicklingError):
        # The other lines of PyTorch's message advise to run the code.
        reasons = [line.strip() for line in lines if "GLOBAL" in line or "Unpickler error" in line]
        return f"it holds more than tensors, which might run code: {' '.join(reasons)}"
    return lines[0]
