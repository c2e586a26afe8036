"""Recipes: the tables and figures of the papers, with the metrics that they run, the texts that they
run them on, and the numbers that they print.

Each recipe is a file of the folder ``recipes``. `load_recipe` reads it, `Recipe.entries` makes the
rows that are run, and `judge_recipe` runs them and correlates their scores with the judgements.
"""

import dataclasses
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mtmetrics.artifacts.presets import load_preset
from mtmetrics.checks import choice
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.judgements.judged import Judged
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.stored_vectors import SUFFIX as STORED_SENTENCES
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
# Endings of tables of word vectors.
_STORED_WORDS = (".vec", ".txt", ".gz")
# The field of a signature that names a language model.
_LANGUAGE_MODEL = re.compile(r"\|lm:(?!none(?:\||$))")


@dataclasses.dataclass(frozen=True)
class RecipeRow:
    """A row of a paper's table: it is run by one of our metrics, or stands for a column of the data,
    or is not run.

    Attributes:
        title: its name in the paper.
        published: language pair -> the paper's number, in [-1, 1], where it has one.
        average: the paper's average, where it prints one.
        metric: our metric.
        preset: a folder beside the recipes with the models of this row, where they are not the
            models of the preset ``paper``; or the preset of a metric that has no such preset.
        options: of the metric.
        layer: the layer of the paper's encoder, and its number of layers; another encoder is read
            at the same share of its layers.
        column: the column of the data.
        part: the part of the score of the metric.
        falls: whether lower is better; then the sign of our values is turned.
        lm: whether the published number had a language model.
        vectors: name of a model that this package cannot run. The metric compares its stored
            vectors, or those of another encoder in its place.
        corpus: whether the score is sacrebleu's corpus BLEU of each system.
        why_not: the reason why the row is not run; with a metric, the user has to make something
            first.
    """

    title: str
    published: dict[str, float]
    average: float | None = None
    metric: str | None = None
    preset: str | None = None
    options: dict[str, object] = dataclasses.field(default_factory=dict)
    layer: list[int] | None = None
    column: str | None = None
    part: str = SCORE
    falls: bool = False
    lm: bool = False
    vectors: str | None = None
    corpus: bool = False
    why_not: str | None = None

    def average_over(self, pairs: Sequence[str]) -> float | None:
        """Mean of the paper's numbers for some language pairs; None where there is none, or the
        paper lacks one of them."""
        if not pairs or not self.published.keys() >= set(pairs):
            return None
        return sum(self.published[pair] for pair in pairs) / len(pairs)

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
        maps: str | None = None,
    ) -> Entry:
        """The row as it is run.

        Args:
            preset: of its metric, unless the user names another one.
            specs: name of a metric -> the preset and the options that the user names.
            vectors: model -> the options of its vectors, ``encoder`` and perhaps ``maps``.
            maps: a folder or an artifact for the rows that have a map.
        """
        if self.why_not is not None:
            return Entry(self.title, why_not=self.why_not)
        spec = None
        if self.metric is not None:
            spec = self._spec((specs or {}).get(self.metric, MetricSpec(self.metric)), preset)
            brought = dict((vectors or {}).get(self.vectors or "", {}))
            if self.vectors is not None and not brought:
                brought = self._vectors_of_preset(spec)
            if maps is not None and self.is_mapped and "maps" not in dict(spec.options):
                brought = {"maps": maps} | brought
            if why_not := self._lacking(brought):
                return Entry(self.title, why_not=why_not)
            spec = spec.having(**brought)
        return Entry(self.title, spec, self.column, self.part, self.falls, self.corpus)

    @property
    def is_mapped(self) -> bool:
        """Whether the row maps vectors."""
        return self.options.get("map", "none") != "none"

    def _spec(self, spec: MetricSpec, preset: str) -> MetricSpec:
        """The metric of the row, with a preset and the row's options where the user names none.

        Args:
            spec: the metric as the user names it.
            preset: the preset of rows that have none.
        """
        # None where the row has a folder, which stands in place of ``paper``.
        row_preset = None if self._folder else self.preset
        default_preset = row_preset or preset
        options = self.options
        if self.layer is not None and (spec.preset or default_preset) in (_PAPER, row_preset):
            options = options | {"layer": self.layer[0]}
        spec = spec.filled(default_preset, options)
        if self._folder and spec.preset == _PAPER:
            return dataclasses.replace(spec, preset=self._folder)
        return spec

    def at_its_layer(self, entry: Entry, pool: ModelPool, lang_pair: str) -> Entry:
        """The row with the layer of its encoder that lies as deep as the paper's; as it is where it
        names a layer, or where its encoder cannot be loaded.

        Args:
            entry: the row as it is run.
            pool: loads the encoder.
            lang_pair: a language pair that the row is run on.
        """
        spec = entry.metric
        if self.layer is None or spec is None or "layer" in dict(spec.options):
            return entry
        try:
            depth = spec.load(pool, lang_pair).encoder_depth
        except MTMetricsError:
            # The run of the row says why.
            return entry
        if depth is None:
            return entry
        layer, layers = self.layer
        # The nearest layer; of two that are as near, the lower one.
        as_deep = math.ceil(layer * depth / layers - 0.5)
        return dataclasses.replace(entry, metric=spec.having(layer=as_deep))

    def _vectors_of_preset(self, spec: MetricSpec) -> dict[str, str]:
        """The encoder of a preset, whose mean vectors stand for the vectors of the row; nothing for
        vectors of words, for the papers' presets, and for a preset that cannot be read.

        Args:
            spec: the metric with its preset.
        """
        if "similarity" not in self.options or spec.preset in (None, _PAPER):
            return {}
        try:
            preset = load_preset(spec.metric, spec.preset)
        except MTMetricsError:
            return {}
        model = preset.settings.get("encoder", {}).get("model")
        return {} if model is None else {"encoder": preset.path(model)}

    def _lacking(self, brought: Mapping[str, str]) -> str:
        """The reason why a row of vectors cannot be run; empty where it can.

        Args:
            brought: the options of the vectors, ``encoder`` and perhaps ``maps``.
        """
        if self.vectors is None:
            return ""
        if "encoder" not in brought:
            if "similarity" not in self.options:
                return (
                    f"vectors of {self.vectors} are not part of this package; --vectors "
                    f"{self.vectors}=FOLDER/{{lang}}.vec brings them"
                )
            return (
                f"vectors of {self.vectors} are not part of this package; --vectors "
                f"{self.vectors}=FILE.parquet brings them, and --vectors {self.vectors}=MODEL takes "
                "another encoder of sentences in their place"
            )
        file = brought["encoder"]
        if _is_stored(file) and self.is_mapped and "maps" not in brought:
            command = f"mtmetrics train maps --encoder {file} --level sentence"
            return (
                f"needs a map of these vectors ({command}): --vectors "
                f"{self.vectors}={file},maps=DIR"
            )
        return ""

    def marked(self, scored: RowScores, pairs: Sequence[str]) -> RowScores:
        """The scores under a title that has the differences from the published row in brackets.

        Args:
            scored: the scores of the row.
            pairs: the language pair of each file.
        """
        spec = scored.entry.metric
        if spec is None or not scored.scores:
            return scored
        differences = []
        if spec.preset not in (None, _PAPER, self._folder or self.preset):
            differences.append(str(spec.preset))
        # Stored vectors of the paper's model, and maps of them, are no difference.
        has_stored = self.vectors and _is_stored(dict(spec.options).get("encoder"))
        for name, value in spec.options:
            is_published = self.options.get(name) == value or (
                name == "layer" and self.layer is not None and value == self.layer[0]
            )
            if not is_published and not (has_stored and name in ("encoder", "maps")):
                differences.append(f"{name}={value}")
        if self.lm:
            differences += _without_language_model(scored.signatures, pairs)
        title = f"{self.title} [{', '.join(differences)}]" if differences else self.title
        return dataclasses.replace(scored, entry=dataclasses.replace(scored.entry, title=title))


def _is_stored(encoder: object) -> bool:
    """Whether an encoder is a file of vectors that were computed elsewhere."""
    return str(encoder).endswith((STORED_SENTENCES, *_STORED_WORDS))


def _without_language_model(signatures: Sequence[str], pairs: Sequence[str]) -> list[str]:
    """A remark on the language pairs that were scored without a language model; none where all had
    one.

    Args:
        signatures: of the metric, for each file; empty for a file that was not scored.
        pairs: the language pair of each file.
    """
    scored_pairs = []
    pairs_without = []
    for pair, signature in zip(pairs, signatures, strict=True):
        if signature:
            scored_pairs.append(pair)
            if not _LANGUAGE_MODEL.search(signature):
                pairs_without.append(pair)
    if not pairs_without:
        return []
    if pairs_without == scored_pairs:
        return ["no language model"]
    return [f"no language model for {' '.join(pairs_without)}"]


class Mean(NamedTuple):
    """A column of averages over language pairs of another table.

    Attributes:
        recipe: name of the other table.
        pairs: the language pairs; empty for all.
    """

    recipe: str
    pairs: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A table of a paper, or a figure.

    Attributes:
        name: of the recipe.
        title: of the table or figure, with its paper.
        citation: of the paper.
        level: of the judgements, ``"segment"`` or ``"system"``.
        pairs: the language pairs of a table, in the paper's order; the columns of a table of
            averages.
        rows: the rows of a table, in the paper's order.
        note: a remark that stands under the table.
        coefficient: name of the correlation.
        data: where the judgements can be had, if ``mtmetrics data pull`` has no such set.
        pull: names of the public sets that it reads, for ``mtmetrics data pull``.
        where: name of such a set -> a condition for its rows, ``FIELD=VALUE``.
        runs: the calls of the command that draw a figure. In them ``{data}`` stands for the files
            of judgements, ``{sets[0]}`` for the first public set, ``{text[0]}`` for the first file
            of `text`, ``{texts}`` for all of them, ``{preset}`` for the preset that the user
            chooses, ``{model}`` for its encoder, and ``{out}`` for the folder of pictures.
        text: other files that it reads, which the user has to bring.
        means: column of a table of averages -> the other table that it averages.
        models: preset -> the encoder, with its layer, of a figure that makes something.
        bars: name of the table whose rows and columns a figure draws as bars.
        layers: whether a figure draws its rows at each layer of the encoder.
        word_by_word: whether the numbers of a table are no correlations, but the shares of
            word-by-word translations that its rows prefer to human ones.
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
    pull: list[str] = dataclasses.field(default_factory=list)
    where: Mapping[str, str] = dataclasses.field(default_factory=dict)
    runs: list[str] = dataclasses.field(default_factory=list)
    text: str = ""
    means: dict[str, Mean] = dataclasses.field(default_factory=dict)
    models: dict[str, str] = dataclasses.field(default_factory=dict)
    bars: str = ""
    layers: bool = False
    word_by_word: bool = False

    def model(self, preset: str) -> str | None:
        """The encoder of a figure that makes something, with its layer, as options of a command;
        None where it makes nothing.

        Args:
            preset: name of the preset.

        Raises:
            InputError: the figure has no encoder for the preset.
        """
        if self.models and preset not in self.models:
            raise InputError(f"--recipe {self.name}: runs with --preset {' or '.join(self.models)}")
        return self.models.get(preset)

    @property
    def draws(self) -> bool:
        """Whether it draws a figure, in a folder of the user's."""
        return bool(self.runs or self.bars or self.layers)

    @property
    def texts(self) -> str:
        """The place of its texts, for a list."""
        if self.means:
            return f"as {' '.join(dict.fromkeys(mean.recipe for mean in self.means.values()))}"
        data = f"pulled: {' '.join(self.pull)}" if self.pull else self.data
        return "; --text: ".join(filter(None, [data, self.text]))

    def entries(
        self,
        preset: str,
        specs: Mapping[str, MetricSpec],
        vectors: Mapping[str, Mapping[str, str]] | None = None,
        maps: str | None = None,
    ) -> list[Entry]:
        """All rows as they are run, see `RecipeRow.entry`.

        Raises:
            InputError: the user names a metric, vectors or maps that no row has.
        """
        if maps is not None and not any(row.is_mapped for row in self.rows):
            raise InputError(f"--maps {maps}: recipe {self.name} has no rows with maps")
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
        return [row.entry(preset, specs, vectors, maps) for row in self.rows]


def recipe_names() -> list[str]:
    """Names of all tables and figures, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def load_recipe(name: str) -> Recipe:
    """Reads the table or figure of a name; refuses one that does not exist."""
    choice("recipe", name, recipe_names())
    fields = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    if "bars" in fields:
        # A figure of bars has the rows of its table, and its fields unless it has its own.
        table = load_recipe(fields["bars"])
        shared = ("pairs", "level", "coefficient", "note")
        table_fields = {field: getattr(table, field) for field in shared}
        return Recipe(name=name, rows=table.rows, **(table_fields | fields))
    rows = [_read_row(row, fields["pairs"]) for row in fields.pop("rows", [])]
    means = {column: Mean(**mean) for column, mean in fields.pop("means", {}).items()}
    return Recipe(name=name, rows=rows, means=means, **fields)


def _read_row(row: dict[str, Any], pairs: Sequence[str]) -> RecipeRow:
    """Reads a row of a table; `pairs` are the language pairs of its numbers."""
    # nan stands for a number that the paper leaves out, or that could not be read.
    values = row.pop("published", [math.nan] * len(pairs))
    published = {
        pair: value for pair, value in zip(pairs, values, strict=True) if not math.isnan(value)
    }
    return RecipeRow(published=published, **row)


def list_recipes() -> list[list[str]]:
    """A table of all recipes, the head first: name, title, and the place of the data."""
    recipes = map(load_recipe, recipe_names())
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
    """Runs the rows of a paper's table on judged data, and correlates their scores with the
    judgements.

    A metric that cannot be run is left out. A row that is not run as published has a mark in its
    title.

    Args:
        recipe: the paper's table.
        entries: its rows as they are run, see `Recipe.entries`.
        files, pool, measure, test, intervals: of `mtmetrics.reports.agreement.judge_entries`.
    """
    pairs = [file.lang_pair for file in files]
    entries = [
        row.at_its_layer(entry, pool, pairs[0])
        for row, entry in zip(recipe.rows, entries, strict=True)
    ]
    metrics = [entry.metric for entry in entries if entry.metric is not None]
    # Models without a language model for a target language still have their other parts.
    instead = {spec: spec.having(lm="none") for spec in metrics if spec.metric == "uscore"}
    runs = run_metrics(metrics, files, pool, lenient=True, instead=instead)
    scored = [
        row.marked(runs.scored(entry), pairs)
        for row, entry in zip(recipe.rows, entries, strict=True)
    ]
    return runs, metric_table(scored, files, measure, test=test, intervals=intervals)
