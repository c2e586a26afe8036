"""The bundled example: a few segments, translated by people and by three systems."""

import functools
import tomllib
from pathlib import Path
from typing import NamedTuple

SYSTEMS = ("careful", "hasty", "literal")
_EXAMPLE = Path(__file__).with_name("example.toml")


class Example(NamedTuple):
    """The bundled example: n segments with a human translation, another one, and those of each
    system."""

    lang_pair: str
    sources: list[str]
    references: list[str]
    second: list[str]
    systems: dict[str, list[str]]


@functools.cache
def example() -> Example:
    """The bundled example, German to English."""
    read = tomllib.loads(_EXAMPLE.read_text(encoding="utf-8"))
    columns = {
        name: [row[name] for row in read["segments"]]
        for name in ("source", "reference", "second", *SYSTEMS)
    }
    first = (columns[name] for name in ("source", "reference", "second"))
    return Example(read["lang_pair"], *first, {name: columns[name] for name in SYSTEMS})
