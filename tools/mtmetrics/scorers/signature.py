"""The signature: one line that pins a score."""

from collections.abc import Collection, Mapping
from typing import Protocol

from mtmetrics._version import __version__
from mtmetrics.matching.remapping import Remapping

# How scores with several references become one.
_BEST_REFERENCE = "combine:max"


class Pinned(Protocol):
    """A model that a signature names by its label and the 8 hexadecimal digits that pin its
    numbers."""

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


def with_fields(line: str, *fields: str) -> str:
    """Returns a signature with more fields, before the version."""
    head, _, version = line.rpartition("|v:")
    return "|".join([head, *fields, f"v:{version}"])


def with_references(line: str, counts: Collection[int]) -> str:
    """Returns a signature that says how many references the segments have, and that the best one
    counts. Replaces such fields if there are any. Returns the signature unchanged if no segment has
    several references.

    Args:
        line: the signature; sacrebleu's own key for the number is ``nrefs``.
        counts: how many references a segment has, each number once; ``var`` stands for several
            numbers.

    Example:
        >>> with_references("bertr|layer:8|v:2.0.0", {2}), with_references("chrf|nrefs:1|v:2.0.0", {1, 2})
        ('bertr|layer:8|refs:2|combine:max|v:2.0.0', 'chrf|nrefs:var|combine:max|v:2.0.0')
    """
    if {*counts} <= {1}:
        return line
    number = str(*counts) if len(counts) == 1 else "var"
    fields = [field for field in line.split("|") if field != _BEST_REFERENCE]
    places = [place for place, field in enumerate(fields) if field.startswith(("refs:", "nrefs:"))]
    if places:
        [place] = places
        fields[place] = f"{fields[place].partition(':')[0]}:{number}"
    else:
        place = len(fields) - 1  # before the version
        fields.insert(place, f"refs:{number}")
    fields.insert(place + 1, _BEST_REFERENCE)
    return "|".join(fields)


def model_name(model: Pinned | None) -> str | None:
    """Label and fingerprint of a model; None where there is none."""
    return None if model is None else f"{model.label}#{model.fingerprint}"


def map_name(remapping: Remapping | None) -> str:
    """Kind and fingerprint of a map, or ``none``."""
    return "none" if remapping is None else f"{remapping.kind}#{remapping.fingerprint}"
