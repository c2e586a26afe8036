"""Devices and number formats that a network computes with, from the names that users give."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from mtmetrics.checks import choice, warn
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.models.format_trial import format_trial

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


class NumberFormat(NamedTuple):
    """A number format to compute in.

    Attributes:
        name: one of `DTYPES`.
        reason: why it was chosen, a clause for a note; empty where the user named the format.
    """

    name: str
    reason: str


def number_format(name: str, devices: Devices) -> NumberFormat:
    """Returns the number format to compute in: that of `name`, or for ``"auto"`` the fastest one.

    The fastest one is ``"bfloat16"`` where it is so on all devices: on CUDA from Ampere, on CPUs
    with AMX, and on CPUs where `format_trial` finds it clearly faster. Else it is ``"float32"``.

    Raises:
        InputError: `name` is neither ``"auto"`` nor one of `DTYPES`; or, with ``"auto"``, this
            machine has no such device.
    """
    if choice("dtype", name, (*DTYPES, "auto")) != "auto":
        return NumberFormat(name, "")
    formats = dict.fromkeys(map(_fastest_format, pick_devices(devices)))
    against = [chosen for chosen in formats if chosen.name == "float32"]
    return (against or [*formats])[0]


def warn_of_slow_dtype(name: str, devices: Devices) -> None:
    """Warns where the user asks for bfloat16 on a CPU that is slower in it than in float32."""
    if name != "bfloat16" or not any(device.type == "cpu" for device in pick_devices(devices)):
        return
    if _has_amx():
        return
    trial = format_trial()
    if trial.rules_out_bfloat16:
        warn(
            f"dtype 'bfloat16': this processor takes {1 / trial.speedup:.1f} times as long in it "
            "as in float32; use 'float32' or 'auto'"
        )


def _fastest_format(device: "torch.device") -> NumberFormat:
    import torch

    if device.type == "cuda":
        if torch.cuda.get_device_capability(device) >= (8, 0):
            return NumberFormat("bfloat16", f"{device} computes it natively")
        return NumberFormat("float32", f"{device} does not compute bfloat16 natively")
    if device.type != "cpu":
        return NumberFormat("float32", f"bfloat16 is not tried on {device}")
    if _has_amx():
        return NumberFormat("bfloat16", "the processor has AMX")
    trial = format_trial()
    reason = f"bfloat16 has {trial.speedup:.1f} times the speed of float32 in a trial"
    return NumberFormat("bfloat16" if trial.favours_bfloat16 else "float32", reason)


def _has_amx() -> bool:
    import torch

    # Before version 2.10, torch does not tell what a CPU can do.
    if not hasattr(torch.cpu, "get_capabilities"):
        return False
    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


def torch_dtype(name: str) -> "torch.dtype":
    """Returns the number format of torch that has one of the names in `DTYPES`."""
    import torch

    return getattr(torch, choice("dtype", name, DTYPES))


def overflow_error(subject: str, dtype: str, *, option: str | None = None) -> MTMetricsError:
    """Makes the error for a model that computed numbers that are not finite.

    Args:
        subject: begins the message; names the model.
        dtype: number format of the computation. In float32, the weights are at fault.
        option: keyword with which the subject begins, see `MTMetricsError`.
    """
    if dtype == "float32":
        return MTMetricsError(
            f"{subject} overflows in {dtype}; its weights may be damaged, choose another model",
            option=option,
        )
    return MTMetricsError(
        f"{subject} overflows in {dtype}; use dtype='float32'",
        option=option,
        mentions=["dtype='float32'"],
    )


def dtype_name(dtype: str) -> str:
    """Returns the short name of a number format, such as ``"fp32"``."""
    return _SHORT_NAMES[dtype]
