"""Tables and figures of the papers: which metrics they run, on which texts, and the numbers that
they print."""

import dataclasses
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mtmetrics.checks import choice
from mtmetrics.errors import InputError
from mtmetrics.reports.metric_runs import SCORE, Entry, MetricSpec, RowScores

_FOLDER = Path(__file__).parent / "recipes"
# The preset with the papers' models, for which the rows of the recipes are written.
_PAPER = "paper"
# What a signature says of a language model.
_LANGUAGE_MODEL = re.compile(r"\|lm:(?!none(?:\||$))")


@dataclasses.dataclass(frozen=True)
class RecipeRow:
    """A row of a paper's table: one of our metrics, a column of the data, or why we do not run it;
    for a metric of ours with a reason the user has to make something first.

    Attributes:
        published: language pair -> the paper's number, in [-1, 1], as far as it has one.
        average: as the paper prints it, if it does.
        preset: a folder beside the recipes with the models of this row, where they are not those of
            ``paper``; or a preset of a metric that has none of the usual ones.
        falls: whether lower is better; the sign of our values is turned.
        lm: whether the published number had a language model.
        vectors: whose sentence vectors it compares, of a model that this package cannot run.
        corpus: the score is sacrebleu's corpus BLEU of each system.
    """

    title: str
    published: dict[str, float]
    average: float | None = None
    metric: str | None = None
    preset: str | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    column: str | None = None
    part: str = SCORE
    falls: bool = False
    lm: bool = False
    vectors: str | None = None
    corpus: bool = False
    why_not: str | None = None

    def average_over(self, pairs: Sequence[str]) -> float | None:
        """Mean of the paper's numbers for some language pairs, None where it lacks one of them."""
        values = [self.published[pair] for pair in pairs if pair in self.published]
        return sum(values) / len(values) if values and len(values) == len(pairs) else None

    @property
    def _has_folder(self) -> bool:
        return self.preset is not None and (_FOLDER / self.preset).is_dir()

    @property
    def _published_presets(self) -> set[str]:
        """The presets with the models of the published numbers."""
        return {_PAPER} if self.preset is None or self._has_folder else {_PAPER, self.preset}

    @property
    def _options_of_any_model(self) -> dict[str, Any]:
        """The options without those that belong to the paper's models: another encoder has other
        layers."""
        return {name: value for name, value in self.options.items() if name != "layer"}

    def entry(
        self,
        preset: str,
        asked: Mapping[str, MetricSpec] | None = None,
        vectors: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Entry:
        """The row as it is run: with a preset, unless the user asks for another one or options of
        the metric, and with the options of stored `vectors`, by the names of their models."""
        spec = None
        stored = (vectors or {}).get(self.vectors or "", {})
        if lacking := self.why_not or self._lacking(stored):
            return Entry(self.title, why_not=lacking)
        if self.metric is not None:
            spec = (asked or {}).get(self.metric, MetricSpec(self.metric))
            chosen = spec.preset or (preset if self._has_folder else self.preset or preset)
            options = (
                self.options if chosen in self._published_presets else self._options_of_any_model
            )
            if self._has_folder:
                spec = spec.filled(preset, options)
                spec = (
                    dataclasses.replace(spec, preset=str(_FOLDER / self.preset))
                    if spec.preset == _PAPER
                    else spec
                )
            else:
                spec = spec.filled(self.preset or preset, options).having(**stored)
        return Entry(self.title, spec, self.column, self.part, self.falls, self.corpus)

    def _lacking(self, stored: Mapping[str, str]) -> str:
        """What the user has to bring for a row of stored vectors, empty where it is there."""
        if self.vectors is None:
            return ""
        if not stored:
            file = "FILE.parquet" if "similarity" in self.options else "FOLDER/{lang}.vec"
            return (
                f"vectors of {self.vectors} are not part of this package; --vectors "
                f"{self.vectors}={file} brings them"
            )
        if self.options.get("map", "none") != "none" and "maps" not in stored:
            file = stored["encoder"]
            made = f"mtmetrics train maps --encoder {file} --level sentence"
            return (
                f"needs a map of these vectors ({made}): --vectors {self.vectors}={file},maps=DIR"
            )
        return ""

    def marked(self, scored: RowScores, pairs: Sequence[str]) -> RowScores:
        """The scores under a title that says in brackets how the metric was not run as published.

        Args:
            scored: of the row's entry.
            pairs: the language pair of each file.
        """
        spec = scored.entry.metric
        if spec is None or not scored.scores:
            return scored
        published = {None, _PAPER, str(_FOLDER / self.preset) if self._has_folder else self.preset}
        differs = [] if spec.preset in published else [str(spec.preset)]
        own = {"encoder", "maps"} if self.vectors else set()
        differs += [
            f"{name}={value}"
            for name, value in spec.options
            if name not in own and self.options.get(name) != value
        ]
        signed = [
            (pair, signature)
            for pair, signature in zip(pairs, scored.signatures, strict=True)
            if signature
        ]
        pairs = [pair for pair, _ in signed]
        silent = [
            pair for pair, signature in signed if self.lm and not _LANGUAGE_MODEL.search(signature)
        ]
        if silent:
            where = "" if len(silent) == len(pairs) else f" for {' '.join(silent)}"
            differs.append(f"no language model{where}")
        title = f"{self.title} [{', '.join(differs)}]" if differs else self.title
        return dataclasses.replace(scored, entry=dataclasses.replace(scored.entry, title=title))


class Mean(NamedTuple):
    """A column of averages: of the rows of another table over some of its language pairs, all if
    there are none."""

    recipe: str
    pairs: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A table of a paper, or a figure.

    Attributes:
        level: what is judged, ``"segment"`` or ``"system"``.
        coefficient: of agreement.
        pairs, rows: of a table, in the paper's order; of a table of averages, `pairs` are its
            columns.
        pull: names of the public sets that it reads, for ``mtmetrics data pull``.
        where: name of such a set -> which of its rows, ``FIELD=VALUE``.
        data: where the data is, if it cannot be pulled.
        text: what else it reads, files that the user has to bring.
        means: column -> what it averages, of a table of averages over other tables.
        runs: the calls of this command that draw a figure; ``{data}``, ``{sets[0]}``,
            ``{text[0]}``, ``{preset}``, ``{model}`` and ``{out}`` stand in them for the files of
            judgements, the first of the public sets and of the files of `text`, the preset that the
            user chooses, its entry in `models`, and the folder of pictures.
        models: preset -> the encoder of a figure that makes something, with its layer.
        bars: the table whose rows a figure draws as bars; they and its columns are those of the
            figure.
        layers: whether a figure draws its rows at each layer of the encoder.
        missing: the one thing for want of which it cannot be run.
    """

    name: str
    title: str
    citation: str
    level: str = "segment"
    pairs: list[str] = dataclasses.field(default_factory=list)
    rows: list[RecipeRow] = dataclasses.field(default_factory=list)
    note: str = ""
    coefficient: str = "pearson"
    data: str = ""
    missing: str | None = None
    pull: list[str] = dataclasses.field(default_factory=list)
    where: Mapping[str, str] = dataclasses.field(default_factory=dict)
    runs: list[str] = dataclasses.field(default_factory=list)
    text: str = ""
    means: dict[str, Mean] = dataclasses.field(default_factory=dict)
    models: dict[str, str] = dataclasses.field(default_factory=dict)
    bars: str = ""
    layers: bool = False

    @property
    def draws(self) -> bool:
        """Whether it draws a figure, in a folder of the user's."""
        return bool(self.runs or self.bars or self.layers)

    @property
    def texts(self) -> str:
        """Where its texts come from, for a list."""
        if self.missing is not None:
            return f"not run: {self.missing}"
        if self.means:
            return f"as {' '.join(dict.fromkeys(mean.recipe for mean in self.means.values()))}"
        found = f"pulled: {' '.join(self.pull)}" if self.pull else self.data
        return "; --text: ".join(filter(None, [found, self.text]))

    def entries(
        self,
        preset: str,
        asked: Mapping[str, MetricSpec],
        vectors: Mapping[str, Mapping[str, str]] | None = None,
    ) -> list[Entry]:
        """All rows as they are run, see `RecipeRow.entry`; refuses metrics and vectors that no row
        has."""
        models = dict.fromkeys(row.vectors for row in self.rows if row.vectors is not None)
        for name in (vectors or {}).keys() - models:
            raise InputError(
                f"--vectors {name}: recipe {self.name} has rows of "
                f"{', '.join(models) or 'no such vectors'}"
            )
        metrics = dict.fromkeys(row.metric for row in self.rows if row.metric is not None)
        for name in asked.keys() - metrics:
            raise InputError(
                f"--metric {name}: recipe {self.name} has rows of {', '.join(metrics)}"
            )
        return [row.entry(preset, asked, vectors) for row in self.rows]


def recipe_names() -> list[str]:
    """Names of all tables and figures, sorted, those that cannot be run too."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read_recipe(name: str) -> Recipe:
    """The table or figure of a name, as it is stored."""
    table = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    if "bars" in table:
        drawn = read_recipe(table["bars"])
        shared = {
            field: getattr(drawn, field) for field in ("pairs", "level", "coefficient", "note")
        }
        return dataclasses.replace(Recipe(name=name, **shared | table), rows=drawn.rows)
    rows = []
    for row in table.pop("rows", []):
        # nan stands for what a paper leaves out or what could not be read.
        values = zip(
            table["pairs"], row.pop("published", [math.nan] * len(table["pairs"])), strict=True
        )
        rows.append(
            RecipeRow(
                published={pair: value for pair, value in values if not math.isnan(value)}, **row
            )
        )
    means = {column: Mean(**mean) for column, mean in table.pop("means", {}).items()}
    return Recipe(name=name, rows=rows, means=means, **table)


def load_recipe(name: str) -> Recipe:
    """Reads a recipe; refuses one that does not exist or cannot be run."""
    recipe = read_recipe(choice("recipe", name, recipe_names()))
    if recipe.missing is not None:
        raise InputError(f"recipe {name}: cannot be run: {recipe.missing}", option="recipe")
    return recipe


def list_recipes() -> list[list[str]]:
    """A row for each table and figure: its name, its title, and its data or why it cannot be run;
    the head first."""
    recipes = map(read_recipe, recipe_names())
    return [
        ["NAME", "TABLE OR FIGURE", "DATA"],
        *([recipe.name, recipe.title, recipe.texts] for recipe in recipes),
    ]
