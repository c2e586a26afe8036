"""The base of all scorers: how one is loaded, and its way from checked texts to results."""

import abc
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.artifacts.presets import (
    AGREEMENT_KEYS,
    MODEL_KEYS,
    Preset,
    load_preset,
    preset_names,
)
from mtmetrics.checks import InputReport, check, choice, language_of, shown, split_pair
from mtmetrics.errors import InputError
from mtmetrics.io.languages import standard_pair
from mtmetrics.models.devices import dtype_name
from mtmetrics.models.packed import Encoder, PackedTokens
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.progress import report_progress
from mtmetrics.scorers.batch import Batch, Languages, References
from mtmetrics.scorers.degenerate import degenerate, policy
from mtmetrics.scorers.preset_tables import refuse_other_languages
from mtmetrics.scorers.reloading import Origin, shared_pool
from mtmetrics.scorers.results import (
    CHUNK_LINES,
    MetricResult,
    PartScores,
    best_of_each,
    joined_systems,
    total_report,
)
from mtmetrics.scorers.settings import Settings as BaseSettings
from mtmetrics.scorers.settings import refuse_unknown_options
from mtmetrics.scorers.side import Options, Side, SideChoice, Table, resolve_side
from mtmetrics.scorers.signature import extended, signature, with_references


class Scorer(abc.ABC):
    """A metric that compares the translations of one or several systems with their sources, with
    references, or with both.

    A class is made in two ways: ``load`` takes names, of a preset and of options, and
    ``__init__`` takes models that are loaded, and the options that concern no loading. A metric
    writes `from_preset`, `compute`, `signature_fields`, and `_floor` where it has parts.

    Attributes:
        metric: name of the metric.
        Settings: the class of its settings.
        sides: the sides that it can compare translations with.
        usual: the side where texts of both are given and nobody chooses; None if that is an error.
        usual_preset: the preset where none is named; None where none is needed.
        takes_presets: whether a preset may be named.
        tables: table of a preset -> keys that it may hold, besides those of `Settings`; ``.*``
            stands for one table per language.
        needs_pair: whether a language pair has to be given.
        reads_invisible: whether `compute` gets texts as they are written. Other metrics get them
            without invisible characters that mean nothing, see `mtmetrics.io.visible_text`. Metrics
            that other projects compute read texts as written, so that we report their numbers.
        scale: of the score of a segment, for documentation.
        parts_help: description of the parts of a score, where it has any, for documentation.
        alignments_help: description of alignments, where it aligns words, for documentation.
        why_no_words: reason why it matches no words, for errors.
        settings: of this scorer.
        lang_pair: such as ``"de-en"``, where it was given, for the signature and for encoders that
            read languages differently; without it these read references as English.
        side: the side that this scorer compares with.
        against: `side`, where the metric has a choice of sides, so that the signature names it;
            else None.
        independent: whether a segment's score depends on nothing but its own texts; only then can
            the means of systems be compared.
        lines: segments that are best scored together.
        depth: number of layers that the encoder of words has; None where the layer cannot be
            chosen.
        dtype: number format of the encoder, None where there is none.
        floor: score of a segment with a blank side, where it has no parts.
        floor_degenerate: whether output that is no translation (`DEGENERATE`) gets the floor score.
        origin: the names that it was loaded by; None where it was put together from objects.
    """

    metric: ClassVar[str]
    Settings: ClassVar[type[BaseSettings]] = BaseSettings
    sides: ClassVar[Sequence[str]] = (Side.SOURCE,)
    usual: ClassVar[str | None] = None
    usual_preset: ClassVar[str | None] = "paper"
    takes_presets: ClassVar[bool] = True
    tables: ClassVar[dict[str, set[str]]] = {}
    needs_pair: ClassVar[bool] = False
    reads_invisible: ClassVar[bool] = False
    scale: ClassVar[str] = ""
    parts_help: ClassVar[str] = ""
    alignments_help: ClassVar[str] = ""
    why_no_words: ClassVar[str] = "this metric compares whole texts, so there is nothing to align"
    settings: BaseSettings
    lang_pair: str | None = None
    side: Side = Side.SOURCE
    against: Side | None = None
    independent: bool = True
    lines: int = CHUNK_LINES
    depth: int | None = None
    dtype: str | None = None
    floor: float
    floor_degenerate: bool = False
    origin: Origin | None = None

    def __init__(
        self,
        lang_pair: str | None = None,
        *,
        settings: BaseSettings | None = None,
        **options: Any,
    ) -> None:
        """Sets language pair, settings and, where the metric compares with one side only, the side.

        Args:
            lang_pair: such as ``"de-en"``.
            settings: all settings, as `from_preset` gets them.
            **options: instead of settings, options that concern no loading; and `against`, where
                the metric has the choice.
        """
        if settings is None:
            against = options.pop("against", None) if len(self.sides) > 1 else None
            refuse_unknown_options(options, self.Settings.scoring_options())
            settings = self.Settings(lang_pair=lang_pair, against=against, **options)
        self.settings = settings
        self.lang_pair = settings.lang_pair
        if len(self.sides) == 1:
            self.side = Side(self.sides[0])

    @classmethod
    def load(
        cls,
        preset: str | None = None,
        *,
        lang_pair: str | None = None,
        pool: ModelPool | None = None,
        **options: Any,
    ) -> Self:
        """Loads the metric as a preset describes it.

        Args:
            preset: name of a preset, or a folder with a preset.toml; None for the usual one, where
                one is needed.
            lang_pair: such as ``"de-en"``.
            pool: loaded models to share.
            **options: of `Settings`, each of which overrides the preset unless it is None; and
                `against` where the metric can compare with either side. Without it the preset
                decides where it is made for one side, else what is usual.

        Raises:
            InputError: an unknown preset, pair or option; or the metric or preset cannot compare
                with that side.
            ArtifactError: something that the preset names cannot be loaded; nothing falls back
                silently.
        """
        models = pool or ModelPool()
        local_files_only = cls.takes_presets and models.local_files_only
        opened_preset = cls.open_preset(preset, options, local_files_only=local_files_only)
        if lang_pair is not None:
            refuse_other_languages(opened_preset, lang_pair)
        requested = dict(opened_preset.options)
        requested |= {name: value for name, value in options.items() if value is not None}
        against = requested.pop("against", None) if len(cls.sides) > 1 else None
        settings = cls.Settings.of_preset(
            opened_preset, requested, lang_pair=lang_pair, against=against
        )
        scorer = cls.from_preset(opened_preset, settings, models)
        running = pool.running if isinstance(pool, ModelPool) else {}
        scorer.origin = Origin(preset, lang_pair, dict(options), running)
        return scorer

    @classmethod
    def from_preset(cls, preset: Preset, settings: Any, models: ModelPool) -> Self:
        """Makes the scorer that a preset and settings describe.

        Args:
            preset: names the models and maps.
            settings: of the class `Settings` of the metric; they win over the preset.
            models: loads the models, each once.
        """
        return cls(settings=settings)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Describes the scorer for pickles: by the names that it was loaded by, and attributes that
        were set since. The models are loaded again where the pickle is read. A scorer that was made
        from objects is pickled with these objects; loaded models refuse to be pickled."""
        if self.origin is None:
            return super().__reduce_ex__(protocol)
        changed = {name: vars(self)[name] for name in ["floor_degenerate"] if name in vars(self)}
        return *self._reloading(self.origin), changed

    def _reloading(self, origin: Origin) -> tuple[Callable[..., "Scorer"], tuple[Any, ...]]:
        """The function that loads it again in another process, and its arguments."""
        return type(self).reload, (origin,)

    @classmethod
    def reload(cls, origin: Origin) -> Self:
        """Loads a scorer again by its names. All scorers that a process loads again share their
        models."""
        pool = shared_pool(origin.running)
        return cls.load(origin.preset, lang_pair=origin.lang_pair, pool=pool, **origin.options)

    @classmethod
    def loads_models(cls) -> bool:
        """Whether its presets name models or maps."""
        return any(keys & MODEL_KEYS for keys in cls.tables.values())

    @classmethod
    def needs_preset(cls) -> bool:
        """Whether a preset is read even where the user names none: that of `usual_preset`. A metric
        without models needs none, unless it has a preset of that name."""
        if cls.usual_preset is None:
            return False
        return cls.loads_models() or cls.usual_preset in preset_names(cls.metric)

    @property
    def codes(self) -> Languages:
        """The languages of sources and translations, as `lang_pair` writes them.

        Without a language pair they are None; but translations that are compared with references
        alone are taken for English.
        """
        if self.lang_pair is None:
            return Languages(target="en" if self.side is Side.REFERENCE else None)
        return Languages(*split_pair(self.lang_pair))

    @property
    def languages(self) -> Languages:
        """The ISO 639 codes of `codes`, which choose models."""
        source, target = self.codes
        return Languages(source and language_of(source), target and language_of(target))

    @classmethod
    def open_preset(
        cls, preset: str | None, options: Options, *, local_files_only: bool = False
    ) -> Preset:
        """Reads a preset, see `read_preset`, and refuses keys that the metric does not know."""
        opened_preset = cls.read_preset(
            preset if cls.takes_presets else None, options, local_files_only=local_files_only
        )
        score_keys = cls.tables.get("score", set()) | cls.Settings.preset_keys()
        if len(cls.sides) > 1:
            score_keys |= {"against"}
        tables = {**cls.tables, "agreement.*": AGREEMENT_KEYS}
        if score_keys:
            tables["score"] = score_keys
        opened_preset.refuse_unknown(tables)
        return opened_preset

    @classmethod
    def read_preset(
        cls, preset: str | None, options: Options, *, local_files_only: bool = False
    ) -> Preset:
        """Reads the preset of a name; an empty one where none is named and none is needed.

        Args:
            preset: its name or folder; None for the usual one.
            options: of the user; some metrics find their preset by one of them.
            local_files_only: never ask the Hub.
        """
        if preset is None and not cls.needs_preset():
            return Preset("", cls.metric, Path(), {})
        return load_preset(
            cls.metric, preset or str(cls.usual_preset), local_files_only=local_files_only
        )

    @classmethod
    def preset_settings(cls, preset: str | None, options: Options) -> Table:
        """The tables of a preset; none of a metric that takes no presets."""
        return cls.read_preset(preset, options).settings if cls.takes_presets else {}

    @classmethod
    def unpaired(cls, options: Options) -> dict[str, Any]:
        """Returns options to add to those of the user, so that it can be loaded before the language
        pair is known."""
        return {"map": "none"} if "map" in cls.Settings.options() else {}

    @classmethod
    def side_choice(cls) -> SideChoice:
        """The choice that the metric leaves of what to compare with."""
        usual = None if cls.usual is None else Side(cls.usual)
        return SideChoice(cls.metric, tuple(map(Side, cls.sides)), usual)

    @classmethod
    def wanted_side(cls, preset: Preset, against: str | None) -> Side:
        """The side to compare with: the user's wish `against`, else that of the preset, else the
        usual one, see `resolve_side`."""
        choices = cls.side_choice()
        return resolve_side(choices, against, choices.preset_side(preset.settings), None)

    @classmethod
    def supported_side(cls, preset: Preset, against: str | None) -> Side:
        """The side to compare with, see `wanted_side`; an `InputError` where the preset is made for
        another one."""
        side = cls.wanted_side(preset, against)
        preset_side = cls.side_choice().preset_side(preset.settings)
        if preset_side not in (None, side):
            problem = f"preset {preset.name} compares with the {preset_side.label} only"
            raise InputError(
                f"against {side.value!r}: {problem}; choose another preset", option="against"
            )
        return side

    def compare_with(self, side: str, sides: Sequence[Side] | None = None) -> None:
        """Sets what translations are compared with, one of `sides`, by default those of the metric,
        else an `InputError`; the signature names it where there are several."""
        sides = self.side_choice().sides if sides is None else sides
        self.side = Side(choice("against", side, sides))
        self.against = self.side if len(sides) > 1 else None

    @property
    def signature(self) -> str:
        """One line that pins the scores."""
        pair = None if self.lang_pair is None else standard_pair(self.lang_pair)
        fields = {"lp": pair, "against": self.against, **self.signature_fields()}
        if self.dtype is not None:
            fields["dtype"] = dtype_name(self.dtype)
        return signature(self.metric, fields)

    def signature_fields(self) -> dict[str, object]:
        """Returns what the signature says of models and options: key -> value, None where there is
        nothing to say. A metric lists its models, then its plain options."""
        return self.settings.signature_fields()

    @abc.abstractmethod
    def compute(self, batch: Batch) -> list[PartScores]:
        """Computes the scores of each system of a batch: the formula of the metric.

        The batch has the columns that the metric compares with, one reference per segment, and
        texts without invisible characters (unless `reads_invisible`). Blank texts get the floor
        score afterwards, whatever is computed for them."""

    def require_floor(self) -> None:
        """Refuses to give `DEGENERATE` output a floor score that is not known."""
        floor, _ = self._floor()
        if self.floor_degenerate and (floor is None or not np.isfinite(floor)):
            raise InputError(
                f"degenerate 'floor': {self.metric} has no floor score here", option="degenerate"
            )

    def combined(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        """(n,) scores of (n,) parts, as the options say that weigh them."""
        raise NotImplementedError

    def _floor(self) -> tuple[float | None, dict[str, float]]:
        """Score and parts of a segment with a blank side; None for a score that stays what it
        is."""
        return self.floor, {}

    def score(
        self,
        predictions: Sequence[str],
        *others: object,
        sources: Sequence[str] | None = None,
        references: References | None = None,
    ) -> MetricResult:
        """Scores one system.

        Args:
            predictions: n translations.
            *others: refused; texts are passed by name.
            sources: n texts, needed where the metric compares with them.
            references: n texts, needed where the metric compares with them; or n lists of texts, of
                which the best one counts.

        Returns:
            Scores in the order of the input. A segment with a blank side gets the floor score and
            is counted in the report.

        Raises:
            InputError: the columns are no lists of strings, empty, or of unequal length; or one
                that the metric compares with is missing.
        """
        refuse_positional("score", "predictions", others)
        return self.score_systems({"": predictions}, sources=sources, references=references)[""]

    def score_systems(
        self,
        systems: Mapping[str, Sequence[str]],
        *others: object,
        sources: Sequence[str] | None = None,
        references: References | None = None,
    ) -> dict[str, MetricResult]:
        """Scores several systems on the same sources or references, which are encoded once.

        Args:
            systems: name of a system -> its n translations.
            *others: refused; texts are passed by name.
            sources: as for `score`.
            references: as for `score`.

        Returns:
            The result of each system by its name.

        Raises:
            InputError: as `score`.
        """
        refuse_positional("score_systems", "systems", others)
        batch = self.checked_batch(systems, sources=sources, references=references)
        joined = joined_systems(self.score_batches(batch.slices(self.lines)))
        results = dict(zip(batch.systems, joined, strict=True))
        total_report(results.values()).warn()
        return results

    def checked_batch(
        self,
        systems: Mapping[str, Sequence[str]],
        *,
        sources: Sequence[str] | None = None,
        references: References | None = None,
    ) -> Batch:
        """Checks texts as the user passes them; columns that the metric does not read are left out.

        Raises:
            InputError: as `score`.
        """
        if not isinstance(systems, Mapping):
            raise InputError(
                f"systems: a dictionary, name -> translations, is needed, got {shown(systems)}"
            )
        if not systems:
            raise InputError("systems: empty; there is nothing to score")
        user_columns = {"sources": sources, "references": references}
        self._require_columns([name for name, texts in user_columns.items() if texts is not None])
        columns: dict[str, Any] = {name: user_columns[name] for name in self.side.columns}
        labels = {name: f"predictions of {name}" if name else "predictions" for name in systems}
        for name, texts in systems.items():
            columns[labels[name]] = texts
        checked = dict(zip(columns, check(**columns), strict=True))
        return Batch(
            {name: checked[label] for name, label in labels.items()},
            checked.get("sources"),
            checked.get("references"),
            self.languages,
        )

    def _require_columns(self, columns: Sequence[str]) -> None:
        """Refuses to score where one of the columns is missing that translations are compared
        with."""
        if not {*self.side.columns} <= {*columns}:
            needed = " and ".join(self.side.columns)
            raise InputError(f"{self.metric} compares predictions with {needed}; pass {needed}")

    def score_batches(self, batches: Iterable[Batch]) -> Iterator[list[MetricResult]]:
        """Scores checked texts that arrive batch by batch, of which nothing is kept.

        Args:
            batches: of the same systems; columns that the metric does not read are left aside.

        Yields:
            The result of each system of a batch. A metric that needs its whole input first gives
            everything at the end.
        """
        for batch in batches:
            rows, segment_of_row = self._read_columns(batch).with_single_references()
            visible_rows = rows.without_invisible()
            scores = self.compute(rows if self.reads_invisible else visible_rows)
            yield self._results(visible_rows, segment_of_row, scores)

    def _read_columns(self, batch: Batch) -> Batch:
        """The batch with the columns that the metric compares with, and their languages."""
        columns = {"sources": batch.sources, "references": batch.references}
        self._require_columns([name for name, texts in columns.items() if texts is not None])
        return Batch(
            batch.systems,
            batch.sources if "sources" in self.side.columns else None,
            batch.references if "references" in self.side.columns else None,
            self.languages,
        )

    def _results(
        self, rows: Batch, segment_of_row: np.ndarray | None, scores: Sequence[PartScores]
    ) -> list[MetricResult]:
        """Makes the result of each system from its scores of m rows.

        Args:
            rows: texts without invisible characters, one reference a row.
            segment_of_row: (m,) numbers of segments, ascending; None where each row is a segment.
            scores: of each system.
        """
        reference_counts: frozenset[int] = frozenset()
        if segment_of_row is not None:
            reference_counts = frozenset(np.bincount(segment_of_row).tolist())
        signature = with_references(self.signature, reference_counts)
        results = []
        for predictions, system_scores in zip(rows.predictions, scores, strict=True):
            result = self._result(rows, segment_of_row, predictions, system_scores, signature)
            results.append(dataclasses.replace(result, reference_counts=reference_counts))
        report_progress("segments", sum(len(result.segments) for result in results))
        return results

    def _result(
        self,
        rows: Batch,
        segment_of_row: np.ndarray | None,
        predictions: list[str],
        scores: PartScores,
        signature: str,
    ) -> MetricResult:
        """Makes the result of one system: floor scores, the best of several references, counts of
        unusual segments."""
        floor, floor_parts = self._floor()
        scores.set_floor(rows.blank_rows(predictions) | scores.empty, floor, floor_parts)
        first_rows = None
        if segment_of_row is not None:
            scores = scores.take(best_of_each(scores.segments, segment_of_row))
            first_rows = np.flatnonzero(np.diff(segment_of_row, prepend=-1))
        source_code, target_code = self.codes
        compares_sources = rows.sources is not None
        unusual = {"blank": scores.empty.copy(), "truncated": scores.truncated}
        unusual |= degenerate(
            rows.compared,
            predictions,
            target_code,
            column="sources" if compares_sources else "references",
            rows=first_rows,
            other_code=source_code if compares_sources else target_code,
        )
        unusual["identical"] &= ~scores.empty
        if self.floor_degenerate:
            signature = extended(signature, policy("floor", unusual))
        report = InputReport.of(len(scores.segments), unusual)
        result = MetricResult(
            scores.segments, scores.parts, scores.empty, report, signature, unusual
        )
        if self.floor_degenerate:
            scores.set_floor(result.degenerate, floor, floor_parts)
        return result


def refuse_positional(method: str, first: str, others: Sequence[object]) -> None:
    """Raises an `InputError` where texts are passed by position, as versions before 2.0 took
    them."""
    if others:
        raise InputError(
            f"{method}: since 2.0 texts are passed by name: "
            f"{method}({first}, sources=...) or {method}({first}, references=...)"
        )


def encoded_rows(encoder: Encoder, batch: Batch) -> PackedTokens:
    """Encodes all columns of a batch, laid end to end, in one call, so that no text is encoded
    twice, whatever a cache holds."""
    texts: list[str] = []
    languages: list[str | None] = []
    for column, language in batch.columns:
        texts += column
        languages += [language] * len(column)
    return encoder.encode(texts, languages)


def encoded_columns(encoder: Encoder, batch: Batch) -> list[PackedTokens]:
    """Encodes all columns of a batch, see `encoded_rows`: sources and references, where they are
    there, then each system."""
    return encoded_rows(encoder, batch).split(len(batch))


def any_truncated(*sides: PackedTokens) -> np.ndarray:
    """(n,) bool, pairs of which a side was truncated."""
    return np.any([side.truncated[side.index] for side in sides], axis=0)
