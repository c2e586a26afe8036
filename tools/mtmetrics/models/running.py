"""Options of running a model, which are the same for every model."""

import dataclasses
from typing import Any

from mtmetrics.models.devices import Devices


def setting(default: Any, text: str, usage: str = "") -> Any:
    """Makes a field of `Running`, with its help and what help calls its value."""
    return dataclasses.field(default=default, metadata={"help": text, "usage": usage})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Running:
    """Options of running a model: keywords of everything that loads one.

    The options of the command line and the documentation of ``evaluate.load`` come from the fields.
    Devices and number formats are those of `pick_devices` and `pick_dtype`.
    """

    device: Devices = setting(
        "auto", "auto, cpu, cuda, cuda:1 or 1, mps; several share the work: 0,1", "NAME,..."
    )
    dtype: str = setting(
        "float32",
        (
            "float32, bfloat16, float16, or auto: bfloat16 where the device is faster in it, else "
            "float32"
        ),
        "DTYPE",
    )
    batch_tokens: int = setting(4096, "padded tokens per encoder batch")
    local_files_only: bool = setting(False, "never ask the Hub")
