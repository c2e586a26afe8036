"""Options of running a model: devices, number format, batch size. Every model has them."""

import dataclasses
from typing import Any

from mtmetrics.models.devices import Devices


def run_option(default: Any, help_text: str, metavar: str = "") -> Any:
    """Makes a field of `Running`.

    Args:
        default: value of the option where the user names none.
        help_text: describes the option on the command line and in the documentation.
        metavar: stands for the value in the help of the command line, such as ``DTYPE``. If it is
            empty, the name of the option in capitals stands there.
    """
    return dataclasses.field(default=default, metadata={"help": help_text, "usage": metavar})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Running:
    """Options of running a model: keywords of everything that loads one.

    The options of the command line and the documentation of ``evaluate.load`` come from the fields.
    `pick_devices` reads the device, and `number_format` the number format, both of
    `mtmetrics.models.devices`.
    """

    device: Devices = run_option(
        "auto", "auto, cpu, cuda, cuda:1 or 1, mps; several share the work: 0,1", "NAME,..."
    )
    dtype: str = run_option(
        "float32",
        (
            "float32, bfloat16, float16, or auto: bfloat16 where the device is faster in it, else "
            "float32"
        ),
        "DTYPE",
    )
    batch_tokens: int = run_option(4096, "most tokens in a batch, padding included")
    local_files_only: bool = run_option(False, "never ask the Hub")
