"""Devices and number formats that a network computes with, from the names that users give."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtmetrics.checks import choice
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    import torch

Devices = int | str | Sequence[int | str]
DTYPES = ("float32", "bfloat16", "float16")
_SHORT_NAMES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def pick_devices(devices: "Devices | torch.device") -> "list[torch.device]":
    """Returns the torch devices of one name, of a list of names, or of names joined by commas.

    A device that is named twice is there twice.

    Example:
        >>> pick_devices("cpu,cpu")
        [device(type='cpu'), device(type='cpu')]

    Raises:
        InputError: no device is named, or this machine has none of that name.
    """
    names: Sequence[int | str | torch.device]
    if isinstance(devices, str):
        names = devices.split(",")
    elif isinstance(devices, list | tuple):
        names = devices
    else:
        names = [devices]  # type: ignore[list-item]
    if not names:
        raise InputError(
            f"device {devices!r}: names no device; try 'auto' or 'cpu'", option="device"
        )
    return [pick_device(name) for name in names]


def pick_device(device: "int | str | torch.device") -> "torch.device":
    """Returns the torch device of a name.

    Args:
        device: ``"auto"`` (CUDA, then MPS, then CPU), a name of torch, or the number of a CUDA
            device, also in digits.

    Raises:
        InputError: this machine has no such device.
    """
    import torch

    name = str(device).strip()
    if name == "auto":
        return _best_device()
    try:
        chosen = torch.device(f"cuda:{name}" if name.isdecimal() else name)
        torch.zeros(1, device=chosen).cpu()
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        lines = str(error).splitlines()
        reason = lines[0] if lines else type(error).__name__
        devices_here = ", ".join(_device_names())
        raise InputError(
            f"device {device!r} cannot be used here ({reason}); this machine has {devices_here}",
            option="device",
        ) from None
    return chosen


def _best_device() -> "torch.device":
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def _device_names() -> list[str]:
    import torch

    names = ["cpu"]
    names += [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        names.append("mps")
    return names


def pick_dtype(name: str, devices: Devices) -> str:
    """Returns the number format to compute in: `name` itself, or for ``"auto"`` the best one.

    The best one is ``"bfloat16"`` where all devices compute it natively (CUDA from Ampere, CPUs
    with AMX or AVX512-BF16), else ``"float32"``.

    Raises:
        InputError: `name` is neither ``"auto"`` nor one of `DTYPES`.
    """
    if choice("dtype", name, (*DTYPES, "auto")) != "auto":
        return name
    is_native = all(_computes_bfloat16(device) for device in pick_devices(devices))
    return "bfloat16" if is_native else "float32"


def _computes_bfloat16(device: "torch.device") -> bool:
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    # Before version 2.10, torch does not tell what a CPU can do.
    if device.type != "cpu" or not hasattr(torch.cpu, "get_capabilities"):
        return False
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("amx_bf16") or capabilities.get("avx512_bf16"))


def torch_dtype(name: str) -> "torch.dtype":
    """Returns the number format of torch that has one of the names in `DTYPES`."""
    import torch

    return getattr(torch, choice("dtype", name, DTYPES))


def dtype_name(dtype: str) -> str:
    """Returns the short name of a number format, such as ``"fp32"``."""
    return _SHORT_NAMES[dtype]
