"""Tables of the papers: which metrics they run, on which language pairs, and the numbers that they print."""

import dataclasses
import math
import tomllib
from pathlib import Path
from typing import Any

from mtmetrics.errors import InputError
from mtmetrics.evaluation.run import SCORE, Entry, MetricSpec

_FOLDER = Path(__file__).parent / "recipes"


@dataclasses.dataclass(frozen=True)
class RecipeRow:
    """A row of a paper's table: one of our metrics, a column of the data, or why we do not run it.

    Attributes:
        published: language pair -> the paper's number, in [-1, 1], as far as it has one.
        average: as the paper prints it, if it does.
        falls: whether lower is better; the sign of our values is turned.
    """

    title: str
    published: dict[str, float]
    average: float | None = None
    metric: str | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    column: str | None = None
    part: str = SCORE
    falls: bool = False
    why_not: str | None = None

    def entry(self, preset: str) -> Entry:
        spec = None if self.metric is None else MetricSpec(self.metric).filled(preset, self.options)
        return Entry(self.title, spec, self.column, self.part, self.falls, self.why_not)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A table of a paper, its language pairs and rows in the paper's order; the level is ``"segment"`` or
    ``"system"``."""

    name: str
    title: str
    citation: str
    level: str
    pairs: list[str]
    rows: list[RecipeRow]
    note: str = ""


def recipe_names() -> list[str]:
    """Names of the recipes, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def load_recipe(name: str) -> Recipe:
    """Reads a recipe; its numbers are Pearson's r, as in all tables of the papers.

    Raises:
        InputError: there is none of that name.
    """
    if name not in recipe_names():
        raise InputError(f"recipe {name!r}: must be one of {', '.join(recipe_names())}")
    table = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    rows = [_row(row, table["pairs"]) for row in table.pop("rows")]
    return Recipe(name=name, rows=rows, **table)


def _row(row: dict[str, Any], pairs: list[str]) -> RecipeRow:
    # nan stands for what a paper leaves out or what could not be read.
    values = row.pop("published", [math.nan] * len(pairs))
    published = {pair: value for pair, value in zip(pairs, values, strict=True) if not math.isnan(value)}
    return RecipeRow(published=published, **row)
