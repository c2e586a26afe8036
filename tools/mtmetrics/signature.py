"""One line that pins a score: the metric and everything that its value depends on, in the manner of sacrebleu."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from mtmetrics import __version__

if TYPE_CHECKING:
    from mtmetrics.maps.remapping import Remapping


class Pinned(Protocol):
    """A model that a signature names by its label and the 8 hexadecimal digits that pin its numbers."""

    label: str
    fingerprint: str


def signature(metric: str, fields: Mapping[str, object]) -> str:
    """``metric|key:value|...|v:VERSION``; fields whose value is None are left out.

    Example:
        >>> signature("xmoverscore", {"lp": "de-en", "layer": 12, "drop": None}).rsplit("|", 1)[0]
        'xmoverscore|lp:de-en|layer:12'
    """
    shown = [f"{key}:{value}" for key, value in fields.items() if value is not None]
    return "|".join([metric, *shown, f"v:{__version__}"])


def model_name(model: Pinned | None) -> str | None:
    """Label and fingerprint of a model; None where there is none."""
    return None if model is None else f"{model.label}#{model.fingerprint}"


def map_name(remapping: "Remapping | None") -> str:
    """Kind and fingerprint of a map, or ``none``."""
    return "none" if remapping is None else f"{remapping.kind}#{remapping.fingerprint}"


def dtype_name(dtype: str) -> str:
    """A number format in short."""
    return {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}[dtype]
