"""The fields of a judged row: their names, and what may stand in them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mtmetrics.errors import InputError

# What a field is called in the layouts: in our files first, then in common training files, WMT17, and MLQE-PE.
NAMES: dict[str, tuple[str, ...]] = {
    "lp": ("lp", "LP"),
    "source": ("source", "src", "original"),
    "translation": ("translation", "mt"),
    "reference": ("reference", "ref"),
    "system": ("system", "sys"),
    "item": ("item", "sid"),
    "human": ("human", "score", "HUMAN_score", "z_mean"),
    "raw": ("raw", "da_mean", "mean"),
}
_LARGEST = np.finfo(np.float64).max.item()


def field_name(row: Mapping[str, Any], field: str) -> str | None:
    """The name under which a row has a field, or None where it has not."""
    return next((name for name in NAMES[field] if name in row), None)


def missing(row: Mapping[str, Any], names: tuple[str, ...], where: str) -> InputError:
    """The error for a row that has no field of these names."""
    return InputError(
        f"{where}: no field {' or '.join(map(repr, names))}; the row has: {', '.join(map(repr, row)) or 'no field at all'}"
    )


def required_text(row: Mapping[str, Any], field: str, where: str) -> str:
    """The string that a row has for a field.

    Raises:
        InputError: the row has no such field, or something else is in it; names the place.
    """
    return text(row, _required(row, field, where), where)


def required_number(row: Mapping[str, Any], field: str, where: str) -> float:
    """The finite number that a row has for a field.

    Raises:
        InputError: as `required_text`.
    """
    return number(row, _required(row, field, where), where)


def _required(row: Mapping[str, Any], field: str, where: str) -> str:
    name = field_name(row, field)
    if name is None:
        raise missing(row, NAMES[field], where)
    return name


def text(row: Mapping[str, Any], name: str, where: str) -> str:
    """The string in a field of a row.

    Raises:
        InputError: something else is in it; names the place.
    """
    value = row[name]
    if not isinstance(value, str):
        raise InputError(f"{where}, field {name!r}: a string is needed, got {_shown(value)}")
    return value


def name(row: Mapping[str, Any], field: str, where: str) -> str:
    """The string or whole number in a field of a row, as a string.

    Raises:
        InputError: something else is in it; names the place.
    """
    value = row[field]
    return str(value) if isinstance(value, int) and is_number(value) else text(row, field, where)


def number(row: Mapping[str, Any], name: str, where: str) -> float:
    """The finite number in a field of a row.

    Raises:
        InputError: something else is in it; names the place.
    """
    value = row[name]
    # Python's JSON reader lets NaN, Infinity and whole numbers through that no float holds.
    if not is_number(value) or not abs(value) <= _LARGEST:
        raise InputError(f"{where}, field {name!r}: a finite number is needed, got {_shown(value)}")
    return float(value)


def is_number(value: Any) -> bool:
    """Whether a value is a number; JSON's true, which would pass for 1, is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    shown = "null" if value is None else repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
