"""Names of devices and number formats as the user gives them, checked."""

from typing import TYPE_CHECKING

from mtmetrics.errors import InputError
from mtmetrics.inputs import choice

if TYPE_CHECKING:
    import torch

DTYPES = ("float32", "bfloat16", "float16")


def pick_device(device: str) -> "torch.device":
    """The torch device of that name; ``"auto"`` means CUDA, then MPS, then CPU, whichever is there first.

    Raises:
        InputError: torch knows no such device, or this machine has none.
    """
    import torch

    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen)
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        raise InputError(f"device {device!r} cannot be used here ({str(error).splitlines()[0]}); try 'auto' or 'cpu'") from None
    return chosen


def torch_dtype(name: str) -> "torch.dtype":
    """The torch number format of that name.

    Raises:
        InputError: not one of `DTYPES`.
    """
    import torch

    return getattr(torch, choice("dtype", name, DTYPES))
