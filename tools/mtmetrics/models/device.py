"""Names of devices and number formats as the user gives them, checked."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtmetrics.errors import InputError
from mtmetrics.inputs import choice

if TYPE_CHECKING:
    import torch

DTYPES = ("float32", "bfloat16", "float16")
Devices = int | str | Sequence[int | str]


def pick_devices(device: Devices) -> "list[torch.device]":
    """The torch devices of these names; a device that is named twice is there twice.

    Args:
        device: what `pick_device` takes, a list or tuple of that, or names joined by commas (``"cuda:0,cuda:1"``).

    Raises:
        InputError: no device is named, or one cannot be used on this machine.
    """
    named = device.split(",") if isinstance(device, str) else device if isinstance(device, list | tuple) else [device]
    if not named:
        raise InputError(f"device {device!r}: names no device; try 'auto' or 'cpu'")
    return [pick_device(name) for name in named]


def pick_device(device: int | str) -> "torch.device":
    """The torch device of that name; `InputError` where this machine has none.

    Args:
        device: ``"auto"`` (CUDA, then MPS, then CPU), a name of torch, or the number of a CUDA device, also in digits.
    """
    import torch

    name = str(device).strip()
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(f"cuda:{name}" if name.isdecimal() else name)
        torch.zeros(1, device=chosen).cpu()
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        cuda = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
        here = ", ".join(["cpu", *cuda, *(["mps"] if torch.backends.mps.is_available() else [])])
        raise InputError(f"device {device!r} cannot be used here ({reason}); this machine has {here}") from None
    return chosen


def pick_dtype(name: str, device: Devices) -> str:
    """The number format of that name; of ``"auto"`` what suits the devices: ``"bfloat16"`` where all of them compute it
    natively (CUDA from Ampere, CPUs with AMX or AVX512-BF16), else ``"float32"``.

    Raises:
        InputError: an unknown name, or as `pick_devices`.
    """
    if choice("dtype", name, (*DTYPES, "auto")) != "auto":
        return name
    return "bfloat16" if all(map(_computes_bfloat16, pick_devices(device))) else "float32"


def _computes_bfloat16(device: "torch.device") -> bool:
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type != "cpu" or not hasattr(torch.cpu, "get_capabilities"):  # as before torch 2.10
        return False
    able = torch.cpu.get_capabilities()
    return bool(able.get("amx_bf16") or able.get("avx512_bf16"))


def torch_dtype(name: str) -> "torch.dtype":
    """The torch number format that one of `DTYPES` names."""
    import torch

    return getattr(torch, choice("dtype", name, DTYPES))
