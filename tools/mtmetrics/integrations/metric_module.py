"""`MetricModule`, the base class of the `evaluate` modules of this package.

It checks keywords and texts before `evaluate` stores them, keeps the models that it loads, and has a
scorer of `mtmetrics.scorers` compute. `documentation` writes the description of the arguments.
`text_entries`, `option_entries` and `result_entries` list what it describes; the metric cards show
the same lists.
"""

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import datasets
import evaluate

from mtmetrics.artifacts.presets import Preset, preset_names
from mtmetrics.checks import check, choice, language_of
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.lines import JsonObject
from mtmetrics.layout import metric_scripts
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.running import Running
from mtmetrics.scorers.metric import METRICS, MetricEntry
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.settings import plain_types
from mtmetrics.scorers.side import Side, resolve_side
from mtmetrics.scorers.words import require_word_scorer

if TYPE_CHECKING:
    from mtmetrics.scorers.base import Scorer

_COLUMNS = ("sources", "predictions", "references")
# Keywords of `evaluate.Metric`; `config_name` is an argument of `MetricModule` itself.
_EVALUATE_KEYWORDS = frozenset(inspect.signature(evaluate.Metric.__init__).parameters) - {
    "self",
    "config_name",
    "kwargs",
}
_MODEL_OPTIONS = {field.name: field for field in dataclasses.fields(Running)}


class Entry(NamedTuple):
    """A keyword, or an entry of a result, as documentation lists it.

    Attributes:
        name: of the keyword or entry.
        types: in Markdown, such as ```list` of `str```.
        text: a phrase without a full stop.
        request: for an entry that a result holds on request only: the keyword that asks for it.
    """

    name: str
    types: str
    text: str
    request: str | None = None


_TEXTS = {
    "sources": Entry("sources", "`list` of `str`", "the source segments"),
    "predictions": Entry("predictions", "`list` of `str`", "the translations"),
    "references": Entry(
        "references",
        "`list` of `str`, or of `list` of `str`",
        "one reference per translation, or several, of which the best counts",
    ),
}
# Keyword of `compute` that chooses what it returns -> default, and help.
RETURNS = {
    "return_parts": (False, "also return the parts that a score is combined from"),
    "return_alignments": (
        False,
        "also return what was matched with what, and at what cost or cosine",
    ),
    "return_ci": (False, "also return a 95 % bootstrap interval of the mean"),
    "return_scores": (
        True,
        "return the scores of the segments; without them the result is small enough to be logged",
    ),
}


class MetricModule(evaluate.Metric):
    """A metric of this package as an `evaluate` module.

    A subclass sets the attributes; its docstring is the description of the metric. The columns of
    text and the keywords of ``compute`` come from the metric and its `Settings`. ``evaluate.load``
    takes the same keywords, as defaults.

    Attributes:
        metric_name: name of the metric.
        paper: key of the paper in papers.bib, or in a file ``paper.bib`` of the metric's folder.
        examples: calls and their output, as the interpreter shows them.

    Args:
        config_name: name of a preset; None or ``"default"`` stands for `MetricEntry.usual_preset`.
        preset: a folder with a preset.toml, or the name of a preset, instead of `config_name`.
        **options: keywords of `mtmetrics.models.running.Running`, of `evaluate.Metric`, and of
            ``compute``. ``HF_EVALUATE_OFFLINE=1`` and a download configuration can set
            `local_files_only` too.

    Raises:
        InputError: an unknown keyword or preset.
        ArtifactError: the preset cannot be read.
        MTMetricsError: the cache folder of `evaluate` cannot be written.
    """

    metric_name: ClassVar[str]
    paper: ClassVar[str]
    examples: ClassVar[str]

    def __init__(
        self, config_name: str | None = None, *, preset: str | Path | None = None, **options: Any
    ) -> None:
        base_options = {name: options.pop(name) for name in _EVALUATE_KEYWORDS & options.keys()}
        self._model_options = {
            name: options.pop(name) for name in _MODEL_OPTIONS if name in options
        }
        self._refuse_unknown(
            "evaluate.load", options, ("preset", *_MODEL_OPTIONS, *self._option_names())
        )
        self.defaults = options
        is_offline = self._model_options.pop("local_files_only", False)
        self._local_files_only = is_offline or evaluate.config.HF_EVALUATE_OFFLINE
        scorer_class = METRICS[self.metric_name].scorer_class()
        self.preset: Preset = scorer_class.read_preset(
            _preset_name(self.metric_name, config_name, preset),
            {},
            local_files_only=self._local_files_only,
        )
        try:
            super().__init__(config_name, **base_options)
        except OSError as error:
            advice = "pass cache_dir= to evaluate.load, or set HF_HOME to another folder"
            raise MTMetricsError(
                f"the cache of evaluate cannot be written: {error}; {advice}"
            ) from error
        self.info.module_name = self.metric_name
        # Columns of the rows that were added since the last `compute`.
        self._columns_in_use: list[str] | None = None

    @property
    def name(self) -> str:
        """Name of the metric; that of `evaluate` would be derived from the name of the class."""
        return self.metric_name

    @property
    def scorer_options(self) -> JsonObject:
        """Keywords of ``evaluate.load`` that `scorer` takes."""
        return {
            name: value for name, value in self.defaults.items() if not name.startswith("return_")
        }

    def _info(self) -> evaluate.MetricInfo:
        """Describes the metric for `evaluate`."""
        metric = METRICS[self.metric_name]
        text = datasets.Value("string")
        texts = datasets.List(text)
        # Side to compare with -> types of its columns; there may be several references.
        column_types: dict[str, list[tuple[datasets.Value | datasets.List, ...]]] = {
            "source": [(text,)],
            "reference": [(text,), (texts,)],
            "both": [(text, text), (text, texts)],
        }
        usual_first = sorted(metric.sides, key=lambda side: side != metric.usual)
        variants = [
            datasets.Features({"predictions": text, **dict(zip(side.columns, types, strict=True))})
            for side in usual_first
            for types in column_types[side]
        ]
        features = variants
        if len(variants) == 1:
            features = datasets.Features({"sources": text, "predictions": text})
        citation, address, code = _cited(self.paper)
        return evaluate.MetricInfo(
            description=inspect.cleandoc(str(type(self).__doc__)),
            citation=citation,
            inputs_description=documentation(type(self)),
            features=features,
            homepage=address,
            reference_urls=[address],
            codebase_urls=[code],
            license="Apache-2.0",
        )

    def _download_and_prepare(self, dl_manager: datasets.DownloadManager) -> None:
        """Loads the models that follow from the preset and the keywords of ``evaluate.load``, and
        keeps them. Models that depend on a language pair are left out, where there is none yet."""
        is_offline = self._local_files_only or dl_manager.download_config.local_files_only
        self.pool = ModelPool(local_files_only=bool(is_offline), **self._model_options)
        options = self.scorer_options
        metric = METRICS[self.metric_name]
        if len(metric.sides) > 1 and metric.usual is None and not metric.requested_side(options):
            return  # the columns of `compute` decide what is compared, and so the models
        settings = self.preset.settings
        if options.get("lang_pair") is None and "lang_pair" in settings:
            options["lang_pair"] = settings["lang_pair"]
        elif options.get("lang_pair") is None:
            # Any language of the preset, so that the scorer can be made; `options_without_pair` leaves out what
            # depends on the pair.
            codes = [*settings.get("language_models", {}), *settings.get("languages", []), "en"]
            language = language_of(codes[0])
            options["lang_pair"] = f"{language}-{language}"
            options |= metric.scorer_class().options_without_pair(options)
        self.scorer(**options)

    def scorer(self, **options: object) -> "Scorer":
        """Returns a scorer of the preset with these options; models are loaded once."""
        return load_scorer(
            self.metric_name, preset=self.preset.name or None, pool=self.pool, **options
        )

    def _compute(self, **arguments: Any) -> JsonObject:
        """Scores checked texts.

        Args:
            arguments: columns of text, options of the scorer, and keywords of `RETURNS`.

        Returns:
            Plain floats and lists.
        """
        columns = {name: arguments.pop(name) for name in _COLUMNS if name in arguments}
        columns = {name: texts for name, texts in columns.items() if texts is not None}
        returns = {name: arguments.pop(name, default) for name, (default, _) in RETURNS.items()}
        metric = METRICS[self.metric_name]
        side = resolve_side(
            metric.side_choice,
            metric.requested_side(arguments),
            metric.side_choice.preset_side(self.preset.settings),
            columns,
        )
        scorer = self.scorer(**arguments | {"against": side})
        scored = scorer.score(**columns)
        result = scored.as_dict(scores=returns["return_scores"], parts=returns["return_parts"])
        if returns["return_ci"]:
            from mtmetrics.statistics.significance import bootstrap_interval

            interval = bootstrap_interval(scored.segments)
            result["ci"] = interval and interval._asdict()
        if returns["return_alignments"]:
            alignments = require_word_scorer(scorer).align(**columns)
            result["alignments"] = [alignment.as_dict() for alignment in alignments]
        return result

    def compute(
        self, *, predictions: object = None, references: object = None, **kwargs: object
    ) -> JsonObject | None:
        """Scores the rows that were added, and the texts that are passed here behind them.

        Where scoring fails, the rows that were added are kept, so that the call can be repeated
        with other options.

        Raises:
            InputError: the texts are no parallel lists of strings, there is none, or a keyword is
                unknown, missing or has a wrong value.
            ArtifactError: something that the options name cannot be loaded.

        """
        arguments = self._columns(predictions=predictions, references=references, **kwargs)
        columns = {name: arguments.pop(name, None) for name in self._known_columns()}
        options = self.defaults | self._without_side(arguments)
        self._refuse_unknown("compute", options, (*self._known_columns(), *self._option_names()))
        if METRICS[self.metric_name].scorer_class().needs_pair and "lang_pair" not in options:
            raise InputError(
                "lang_pair is missing; pass lang_pair='de-en' to compute or to evaluate.load",
                option="lang_pair",
            )
        if all(column is None for column in columns.values()):
            columns = {}
            if self.writer is None:
                names = "=, ".join(self._known_columns())
                raise InputError(
                    f"nothing to score; pass {names}= to compute, or call add or add_batch before"
                )
        else:
            columns = self._checked(columns)
        added_rows = len(self)
        try:
            result = super().compute(**columns, **options)
        except BaseException:
            self._put_back(added_rows)
            raise
        self._columns_in_use = None
        return result

    def add_batch(
        self, *, predictions: object = None, references: object = None, **kwargs: object
    ) -> None:
        """Checks parallel lists of texts, and adds them for the next ``compute``.

        Raises:
            InputError: the texts are no parallel lists of strings, there is none, or a keyword is
                unknown.

        """
        columns = self._columns(predictions=predictions, references=references, **kwargs)
        self._refuse_unknown("add_batch", columns, self._known_columns())
        super().add_batch(**self._checked(columns))

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Adds one segment for the next ``compute``, such as ``add(source="Hallo",
        prediction="Hello")``. The names of the columns, such as ``sources``, can be used too.

        Raises:
            InputError: a text is missing, no string, or given by both names; or a keyword is
                unknown.

        """
        texts = {"prediction": prediction, "reference": reference, **kwargs}
        for column in _COLUMNS:
            name = column.removesuffix("s")
            text = texts.pop(name, None)
            if text is None:
                continue
            if texts.get(column) is not None:
                raise InputError(f"add: {name} and {column} are the same column; pass one of them")
            texts[column] = text
        columns = self._columns(**texts)
        self._refuse_unknown("add", columns, self._known_columns())
        self.add_batch(**{name: [text] for name, text in columns.items() if text is not None})

    def _feature_names(self) -> list[str]:
        """Returns the columns of the rows that were added. Before there are any, these are the
        columns that `evaluate.combine` picks for this metric."""
        if self._columns_in_use:
            return self._columns_in_use
        metric = METRICS[self.metric_name]
        if metric.usual is None and not metric.requested_side(self.defaults):
            return self._known_columns()
        return ["predictions", *metric.resolve_side_without_preset(self.defaults).columns]

    def _infer_feature_from_example(self, example: dict[str, object]) -> datasets.Features:
        """Returns the types of checked columns; the method of `evaluate` assumes the same types for
        all metrics."""
        text = datasets.Value("string")
        types = {}
        for name, value in example.items():
            types[name] = text if isinstance(value, str) else datasets.List(text)
        return datasets.Features(types)

    def _known_columns(self) -> list[str]:
        """Returns all columns that the metric can read."""
        features = self.info.features
        if not isinstance(features, list):
            return list(features)
        return list(dict.fromkeys(name for columns in features for name in columns))

    @classmethod
    def _option_names(cls) -> list[str]:
        """Returns the keywords of ``compute`` that are no columns of text."""
        return [*METRICS[cls.metric_name].keywords(), *cls.returns()]

    @classmethod
    def returns(cls) -> list[str]:
        """Returns the keywords of `RETURNS` that make sense for the metric."""
        scorer = METRICS[cls.metric_name].scorer_class()
        lacking = {
            "return_parts": not scorer.parts_help,
            "return_alignments": not scorer.alignments_help,
        }
        return [name for name in RETURNS if not lacking.get(name)]

    def _columns(self, **arguments: object) -> dict[str, object]:
        """Drops the columns of other metrics: `evaluate.combine` passes all columns to all of its
        metrics."""
        foreign = {*_COLUMNS} - {*self._known_columns()}
        return {name: value for name, value in arguments.items() if name not in foreign}

    def _without_side(self, options: dict[str, object]) -> dict[str, object]:
        """Drops the option `against`, where the metric has no choice: `evaluate.combine` passes it
        to all of its metrics."""
        if len(METRICS[self.metric_name].sides) > 1 or options.get("against") is None:
            return options
        choice("against", options["against"], tuple(Side))
        return {name: value for name, value in options.items() if name != "against"}

    def _checked(self, columns: dict[str, object]) -> dict[str, list[Any]]:
        """Returns the columns as lists of strings, in the order of the metric.

        Raises:
            InputError: a column is missing, or others were added before, or a text is no string.
        """
        present = [name for name in self._known_columns() if columns.get(name) is not None]
        if isinstance(self.info.features, list):
            if not set(present) - {"predictions"}:
                METRICS[self.metric_name].resolve_side_without_preset(
                    {}, []
                )  # raises: says what is missing
            needed = ["predictions", *present]
        else:
            needed = self._known_columns()
        if self.writer is not None and self._columns_in_use:
            needed = self._columns_in_use
        for name in needed:
            if name not in present:
                raise InputError(
                    f"{name} is missing; {self.metric_name} needs {' and '.join(needed)}"
                )
        checked = check(**{name: columns[name] for name in present})
        self._columns_in_use = present
        return dict(zip(present, checked, strict=True))

    def _refuse_unknown(self, call: str, keywords: Iterable[str], allowed: Sequence[str]) -> None:
        for name in keywords:
            if name not in allowed:
                raise InputError(
                    f"{call}: {self.metric_name} has no keyword {name!r}; it takes: "
                    f"{', '.join(allowed)}"
                )

    def _put_back(self, count: int) -> None:
        """After a failure: frees the cache files of `evaluate`, and adds the first `count` rows
        again."""
        data, self.data = self.data, None
        if data is None:  # the failure came before `evaluate` collected the rows
            return
        rows = {name: data[name][:count] for name in self._feature_names()}
        del data
        if self.buf_writer is None:
            for lock, path in reversed(list(zip(self.filelocks, self.file_paths, strict=True))):
                Path(path).unlink()
                lock.release()
        self.buf_writer = None
        if count and self.num_process == 1:
            super().add_batch(**rows)


def text_entries(metric: MetricEntry) -> list[Entry]:
    """Lists the columns of text that a metric reads."""
    columns = {"predictions", *metric.columns}
    return [_TEXTS[name] for name in _COLUMNS if name in columns]


def option_entries(metric: MetricEntry) -> list[Entry]:
    """Lists the keywords of a metric, besides texts and `RETURNS`: language pair, side, and its own
    settings."""
    purpose = "some models are chosen by it"
    entries = [Entry("lang_pair", "`str`", f'language pair such as `"de-en"`; {purpose}')]
    if len(metric.sides) > 1:
        sides = " or ".join(f'`"{side}"`' for side in metric.sides)
        usual = "needed then" if metric.usual is None else f'`"{metric.usual}"` by default'
        text = f"the side to compare with, if you pass texts of both: {sides} ({usual})"
        entries.append(Entry("against", "`str`", text))
    return [*entries, *map(_field_entry, metric.settings_class().options().values())]


def result_entries(metric: MetricEntry) -> list[Entry]:
    """Lists the entries of a result of ``compute``."""
    scorer = metric.scorer_class()
    on_request = [
        Entry("parts", "`dict` of `list` of `float`", scorer.parts_help, "return_parts"),
        Entry("alignments", "`list` of `dict`", scorer.alignments_help, "return_alignments"),
    ]
    scores = f"one score per segment, {scorer.scale}"
    return [
        Entry("mean_score", "`float`", "score of the system: the mean of the segment scores"),
        Entry("scores", "`list` of `float`", scores),
        *(entry for entry in on_request if entry.text),
        Entry(
            "ci",
            "`dict`",
            "the 95 % interval of the mean (`low`, `high`), and how it was made",
            "return_ci",
        ),
        Entry("signature", "`str`", "one line that names everything that the scores depend on"),
        Entry(
            "report",
            "`dict` of `int`",
            "counts: `segments` is all of them; the others say how many are `blank`, were cut "
            "(`truncated`), equal the source (`identical`), repeat a phrase over and over "
            "(`looping`), are in an unexpected `script` or `language`, or are far too long or too "
            "short (`length`)",
        ),
    ]


def documentation(module: type[MetricModule]) -> str:
    """Writes ``inputs_description``: the arguments of ``evaluate.load`` and of ``compute``, from the
    settings of the metric, and the entries of the result."""
    metric = METRICS[module.metric_name]
    returns = [Entry(name, "`bool`", RETURNS[name][1]) for name in module.returns()]
    arguments = [*text_entries(metric), *option_entries(metric), *returns]
    usual = metric.usual_preset()
    names = " or ".join(f'`"{name}"`' for name in preset_names(metric.name))
    loading = [
        *([f'config_name (`str`): a preset: {names}; `"{usual}"` by default.'] if usual else []),
        "preset (`str`): a folder with a preset.toml, instead of a config name.",
        *(
            f"{_documented(_field_entry(field))} Default: {field.default}."
            for field in _MODEL_OPTIONS.values()
        ),
    ]
    return f"""
Scores translations. A higher score is better; scores are comparable where their signatures are equal.

Args of `evaluate.load`, besides all but the texts of `compute`, which are defaults for it then:
{_indented(loading)}

Args of `compute`; what is not passed is as the preset has it:
{_indented(map(_documented, arguments))}

Returns:
{_indented(map(_documented, result_entries(metric)))}

Examples:

{textwrap.indent(inspect.cleandoc(module.examples), "    ")}
"""


def _field_entry(field: dataclasses.Field[Any]) -> Entry:
    """Returns the entry of a setting, with its types and its help."""
    types = " or ".join(sorted(kind.__name__ for kind in plain_types(field)))
    return Entry(field.name, f"`{types}`", field.metadata["help"])


def _documented(entry: Entry) -> str:
    """Writes an entry as a line of documentation."""
    request = "" if entry.request is None else f"with `{entry.request}=True`: "
    return f"{entry.name} ({entry.types}): {request}{entry.text}."


def _cited(key: str) -> tuple[str, str, str]:
    """Returns a paper as BibTeX, its address, and the address of its authors' code."""
    files = [Path(__file__).with_name("papers.bib"), *metric_scripts().glob("*/paper.bib")]
    entries = [
        entry.strip() for file in files for entry in file.read_text(encoding="utf-8").split("\n\n")
    ]
    [entry] = [entry for entry in entries if entry.split("{")[1].startswith(f"{key},")]
    address, code = (re.findall(rf'{field} = "(.*)"', entry)[0] for field in ("url", "code"))
    return entry, address, code


def _indented(lines: Iterable[str]) -> str:
    """Formats lines as a list of arguments: wraps each, and indents what follows its first line."""
    filled = [textwrap.fill(line, 116, subsequent_indent="    ") for line in lines]
    return textwrap.indent("\n".join(filled), "    ")


def _preset_name(metric: str, config_name: str | None, preset: str | Path | None) -> str | None:
    """Returns the name or the folder of the preset; None for no preset."""
    if config_name in (None, "default"):
        return METRICS[metric].usual_preset() if preset is None else str(preset)
    if preset is not None:
        raise InputError(
            f"config name {config_name!r} and preset={str(preset)!r} both name a preset; pass "
            "one of them"
        )
    if config_name not in preset_names(metric):
        raise InputError(
            f"unknown preset {config_name!r} for metric {metric}; there are: "
            f"{', '.join(preset_names(metric))}; for a folder with a preset.toml pass preset=DIR"
        )
    return config_name
