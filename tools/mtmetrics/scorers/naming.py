"""How signatures call encoders, maps and number formats."""

from typing import Literal

from mtmetrics.maps.remapping import Remapping
from mtmetrics.models.packed import Encoder

# What a metric is told to compare with -> the column of the input.
AGAINST: dict[str, Literal["sources", "references"]] = {"source": "sources", "reference": "references"}


def encoder_name(encoder: Encoder) -> str:
    """Label and fingerprint of an encoder."""
    return f"{encoder.label}#{encoder.fingerprint}"


def map_name(remapping: Remapping | None) -> str:
    """Kind and fingerprint of a map, or ``none``."""
    return "none" if remapping is None else f"{remapping.kind}#{remapping.fingerprint}"


def dtype_name(dtype: str) -> str:
    """A number format in short."""
    return {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}[dtype]
