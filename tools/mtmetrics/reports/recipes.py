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
from mtmetrics.judgements.judged import Judged
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.agreement import Measure, MetricTable, metric_table
from mtmetrics.reports.metric_runs import (
    SCORE,
    Entry,
    MetricRuns,
    RowScores,
    run_metrics,
)
from mtmetrics.scorers.spec import MetricSpec

_FOLDER = Path(__file__).parent / "recipes"
# The preset with the papers' models, for which the rows of the recipes are written.
_PAPER = "paper"
# The field of a signature that names a language model.
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
        corpus: whether the score is sacrebleu's corpus BLEU of each system.
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
    def _folder(self) -> str | None:
        """The folder beside the recipes that holds the models of this row, if it has one."""
        if self.preset is None or not (_FOLDER / self.preset).is_dir():
            return None
        return str(_FOLDER / self.preset)

    def entry(
        self,
        preset: str,
        specs: Mapping[str, MetricSpec] | None = None,
        vectors: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Entry:
        """The row as it is run.

        Args:
            preset: of its metric, unless the user names another one.
            specs: name of a metric -> the preset and the options that the user names.
            vectors: model -> the options of its stored vectors.
        """
        stored = (vectors or {}).get(self.vectors or "", {})
        if why_not := self.why_not or self._lacking(stored):
            return Entry(self.title, why_not=why_not)
        spec = None
        if self.metric is not None:
            spec = self._spec((specs or {}).get(self.metric, MetricSpec(self.metric)), preset)
            spec = spec.having(**stored)
        return Entry(self.title, spec, self.column, self.part, self.falls, self.corpus)

    def _spec(self, spec: MetricSpec, preset: str) -> MetricSpec:
        """The metric of the row, with a preset and the row's options where the user names none."""
        default_preset = preset if self._folder else self.preset or preset
        options = self.options
        if (spec.preset or default_preset) not in (_PAPER, None if self._folder else self.preset):
            # Another encoder has other layers.
            options = {name: value for name, value in options.items() if name != "layer"}
        spec = spec.filled(default_preset, options)
        if self._folder and spec.preset == _PAPER:
            return dataclasses.replace(spec, preset=self._folder)
        return spec

    def _lacking(self, stored: Mapping[str, str]) -> str:
        """The reason why a row of stored vectors cannot be run; empty where it can."""
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
            command = f"mtmetrics train maps --encoder {file} --level sentence"
            return (
                f"needs a map of these vectors ({command}): --vectors "
                f"{self.vectors}={file},maps=DIR"
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
        differences = []
        if spec.preset not in (None, _PAPER, self._folder or self.preset):
            differences.append(str(spec.preset))
        of_vectors = ("encoder", "maps") if self.vectors else ()
        for name, value in spec.options:
            if name not in of_vectors and self.options.get(name) != value:
                differences.append(f"{name}={value}")
        if self.lm:
            differences += _without_language_model(scored.signatures, pairs)
        title = f"{self.title} [{', '.join(differences)}]" if differences else self.title
        return dataclasses.replace(scored, entry=dataclasses.replace(scored.entry, title=title))


def _without_language_model(signatures: Sequence[str], pairs: Sequence[str]) -> list[str]:
    """A remark on the language pairs that were scored without a language model, if there are
    any."""
    signed = [
        (pair, signature)
        for pair, signature in zip(pairs, signatures, strict=True)
        if signature  # of a file that was scored
    ]
    without = [pair for pair, signature in signed if not _LANGUAGE_MODEL.search(signature)]
    if not without:
        return []
    where = "" if len(without) == len(signed) else f" for {' '.join(without)}"
    return [f"no language model{where}"]


class Mean(NamedTuple):
    """A column of averages: of the rows of another table over some of its language pairs, all if
    there are none."""

    recipe: str
    pairs: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A table of a paper, or a figure.

    Attributes:
        level: of the judgements, ``"segment"`` or ``"system"``.
        coefficient: of agreement.
        pairs, rows: of a table, in the paper's order; of a table of averages, `pairs` are its
            columns.
        pull: names of the public sets that it reads, for ``mtmetrics data pull``.
        where: name of such a set -> which of its rows, ``FIELD=VALUE``.
        data: where the data is, if it cannot be pulled.
        text: other files that it reads, and the user has to bring.
        means: column of a table of averages -> the other table that it averages.
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
        data = f"pulled: {' '.join(self.pull)}" if self.pull else self.data
        return "; --text: ".join(filter(None, [data, self.text]))

    def entries(
        self,
        preset: str,
        specs: Mapping[str, MetricSpec],
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
        for name in specs.keys() - metrics:
            raise InputError(
                f"--metric {name}: recipe {self.name} has rows of {', '.join(metrics)}"
            )
        return [row.entry(preset, specs, vectors) for row in self.rows]


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
    rows = [_read_row(row, table["pairs"]) for row in table.pop("rows", [])]
    means = {column: Mean(**mean) for column, mean in table.pop("means", {}).items()}
    return Recipe(name=name, rows=rows, means=means, **table)


def _read_row(row: dict[str, Any], pairs: Sequence[str]) -> RecipeRow:
    # nan stands for what a paper leaves out or what could not be read.
    values = row.pop("published", [math.nan] * len(pairs))
    published = {
        pair: value for pair, value in zip(pairs, values, strict=True) if not math.isnan(value)
    }
    return RecipeRow(published=published, **row)


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


def judge_recipe(
    recipe: Recipe,
    entries: Sequence[Entry],
    files: Sequence[Judged],
    pool: ModelPool,
    measure: Measure,
    *,
    test: str = "none",
    intervals: bool = False,
) -> tuple[MetricRuns, MetricTable]:
    """Runs the rows of a paper's table on judged data, as `mtmetrics.reports.agreement` does those
    of any table.

    A metric that cannot be run is left out. A row that is not run as published has a mark in its
    title.

    Args:
        recipe: the paper's table.
        entries: its rows as they are run, see `Recipe.entries`.
        files, pool, measure, test, intervals: of `mtmetrics.reports.agreement.judge_entries`.
    """
    metrics = [entry.metric for entry in entries if entry.metric is not None]
    runs = run_metrics(metrics, files, pool, lenient=True)
    pairs = [file.lang_pair for file in files]
    scored = [
        row.marked(runs.scored(entry), pairs)
        for row, entry in zip(recipe.rows, entries, strict=True)
    ]
    return runs, metric_table(scored, files, measure, test=test, intervals=intervals)
