"""The base class of all scorers: loads a metric, checks texts, and turns the scores of a metric into
results."""

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
from mtmetrics.scorers.degenerate import any_degenerate, degenerate, policy
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
from mtmetrics.scorers.signature import extended, with_references
from mtmetrics.scorers.signature import signature as format_signature


class Scorer(abc.ABC):
    """A metric that compares the translations of one or several systems with their sources, with
    references, or with both.

    There are two ways to make a scorer. ``load`` takes the names of a preset and of options, and
    loads the models. ``__init__`` takes models that are loaded already, and the options that load
    nothing.

    A subclass sets `metric` and `sides`, and writes:

    - `compute`, always;
    - a value for `floor`; or `_floor`, where its scores have parts;
    - `from_preset`, where it loads models;
    - `signature_fields`, where the signature names models;
    - `combined`, where options weigh the parts of a score;
    - a call of `set_side` in its ``__init__``, where it can compare with several sides.

    Attributes:
        metric: name of the metric.
        Settings: the class of its settings.
        sides: the sides that it can compare translations with.
        usual: the default side, where the texts of several sides are given and the user chooses
            none; None where the user has to choose.
        usual_preset: the preset where the user names none; None where the metric needs none.
        takes_presets: whether the user may name a preset.
        preset_keys: name of a table of a preset -> the keys that it may hold, besides those of
            `Settings`; the name ``encoders.*`` stands for one table per language.
        needs_pair: whether the user has to name a language pair.
        reads_invisible: whether `compute` gets texts as they are written. Other metrics get them
            without invisible characters that mean nothing, see `mtmetrics.io.visible_text`. Metrics
            that other projects compute read texts as written, so that we report their numbers.
        scale: range of a segment's score, as documentation shows it.
        parts_help: description of the parts of a score in documentation; empty without parts.
        alignments_help: description of alignments in documentation; empty for a metric that aligns
            no words.
        why_no_words: the reason that an error gives for having no alignments.
        settings: the settings of this scorer, an object of the class `Settings`.
        lang_pair: such as ``"de-en"``; None where the user names none. It stands in the signature,
            and tells encoders that read languages differently which language a text has.
        side: the side that this scorer compares with.
        against: the field ``against`` of the signature: equals `side` where the metric has a choice
            of sides, else None.
        has_independent_segments: whether a segment's score depends on its own texts only. Otherwise
            input cannot be scored in pieces, and means of systems cannot be compared.
        batch_segments: the number of segments in a batch.
        encoder_layers: the number of layers of the encoder of words, from which the user may choose
            one; None where there is no choice.
        dtype: number format of the encoder; None without an encoder.
        floor: the score of a segment with a blank side. Metrics whose scores have parts write
            `_floor` instead.
        floor_degenerate: whether output that is no translation gets the floor score, see
            `mtmetrics.scorers.degenerate.DEGENERATE`.
        origin: the names that `load` was called with; None where the scorer was made from objects.
    """

    metric: ClassVar[str]
    Settings: ClassVar[type[BaseSettings]] = BaseSettings
    sides: ClassVar[Sequence[str]] = (Side.SOURCE,)
    usual: ClassVar[str | None] = None
    usual_preset: ClassVar[str | None] = "paper"
    takes_presets: ClassVar[bool] = True
    preset_keys: ClassVar[dict[str, set[str]]] = {}
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
    has_independent_segments: bool = True
    batch_segments: int = CHUNK_LINES
    encoder_layers: int | None = None
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
        """Sets language pair and settings. Sets the side too, if the metric has only one.

        Args:
            lang_pair: such as ``"de-en"``.
            settings: all settings, as `from_preset` gets them; None to make them from `options`.
            **options: options that load nothing; and `against`, where the metric has a choice of
                sides.
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
            preset: name of a preset, or a folder with a preset.toml; None for the default preset
                (`usual_preset`), where the metric needs one.
            lang_pair: such as ``"de-en"``.
            pool: models that are shared with other scorers.
            **options: fields of `Settings`, each of which overrides the preset unless it is None;
                and `against`, where the metric has a choice of sides. Without `against`, a preset
                that is made for one side determines the side; otherwise it is the default side
                (`usual`).

        Raises:
            InputError: an unknown preset, pair or option; or the metric or preset cannot compare
                with that side.
            ArtifactError: something that the preset names cannot be loaded.
        """
        model_pool = pool or ModelPool()
        local_files_only = cls.takes_presets and model_pool.local_files_only
        opened_preset = cls.open_preset(preset, options, local_files_only=local_files_only)
        if lang_pair is not None:
            refuse_other_languages(opened_preset, lang_pair)
        requested = dict(opened_preset.options)
        requested |= {name: value for name, value in options.items() if value is not None}
        against = requested.pop("against", None) if len(cls.sides) > 1 else None
        settings = cls.Settings.of_preset(
            opened_preset, requested, lang_pair=lang_pair, against=against
        )
        scorer = cls.from_preset(opened_preset, settings, model_pool)
        running = pool.run_options if isinstance(pool, ModelPool) else {}
        scorer.origin = Origin(preset, lang_pair, dict(options), running)
        return scorer

    @classmethod
    def from_preset(cls, preset: Preset, settings: Any, models: ModelPool) -> Self:
        """Makes the scorer that a preset and settings describe.

        Args:
            preset: names the models and maps.
            settings: of the class `Settings` of the metric; they override the preset.
            models: the pool that loads models, each once.
        """
        return cls(settings=settings)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Describes the scorer for pickles: by the names in `origin`, and `floor_degenerate`, which
        is set after loading. Whoever reads the pickle loads the models again. A scorer without an
        origin is pickled with its objects; loaded models refuse to be pickled."""
        if self.origin is None:
            return super().__reduce_ex__(protocol)
        changed = {name: vars(self)[name] for name in ["floor_degenerate"] if name in vars(self)}
        return *self._reloading(self.origin), changed

    def _reloading(self, origin: Origin) -> tuple[Callable[..., "Scorer"], tuple[Any, ...]]:
        """The function that loads the scorer again in another process, and its arguments."""
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
        return any(keys & MODEL_KEYS for keys in cls.preset_keys.values())

    @classmethod
    def needs_preset(cls) -> bool:
        """Whether a scorer reads a preset even if the user names none: the one of `usual_preset`.

        A metric that loads models reads it always. Another metric reads it if such a preset
        exists."""
        if cls.usual_preset is None:
            return False
        return cls.loads_models() or cls.usual_preset in preset_names(cls.metric)

    @property
    def written_languages(self) -> Languages:
        """The languages of sources and translations, as `lang_pair` writes them, such as
        ``sr_Latn``.

        Without a language pair both are None. The exception: if a metric compares with references
        only, translations count as English.
        """
        if self.lang_pair is None:
            return Languages(target="en" if self.side is Side.REFERENCE else None)
        return Languages(*split_pair(self.lang_pair))

    @property
    def iso_languages(self) -> Languages:
        """The ISO 639 codes of `written_languages`, by which models are chosen."""
        source, target = self.written_languages
        return Languages(source and language_of(source), target and language_of(target))

    @classmethod
    def open_preset(
        cls, preset: str | None, options: Options, *, local_files_only: bool = False
    ) -> Preset:
        """Reads a preset, see `read_preset`.

        Raises:
            ArtifactError: the preset has a table or key that the metric does not know.
        """
        opened_preset = cls.read_preset(
            preset if cls.takes_presets else None, options, local_files_only=local_files_only
        )
        score_keys = cls.preset_keys.get("score", set()) | cls.Settings.preset_keys()
        if len(cls.sides) > 1:
            score_keys |= {"against"}
        tables = {**cls.preset_keys, "agreement.*": AGREEMENT_KEYS}
        if score_keys:
            tables["score"] = score_keys
        opened_preset.refuse_unknown(tables)
        return opened_preset

    @classmethod
    def read_preset(
        cls, preset: str | None, options: Options, *, local_files_only: bool = False
    ) -> Preset:
        """Reads a preset. Returns an empty one if the user names none and the metric needs none.

        Args:
            preset: its name or folder; None for the default one.
            options: options of the user; some metrics find their preset by one of them.
            local_files_only: never ask the Hub.
        """
        if preset is None and not cls.needs_preset():
            return Preset("", cls.metric, Path(), {})
        return load_preset(
            cls.metric, preset or str(cls.usual_preset), local_files_only=local_files_only
        )

    @classmethod
    def tables_of_preset(cls, preset: str | None, options: Options) -> Table:
        """The tables of a preset, see `read_preset`; empty for a metric that takes no presets."""
        return cls.read_preset(preset, options).settings if cls.takes_presets else {}

    @classmethod
    def options_without_pair(cls, options: Options) -> dict[str, Any]:
        """Returns options that let the metric load before the language pair is known.

        They leave out what exists per language pair, such as maps.

        Args:
            options: options of the user, to which the result is added.
        """
        return {"map": "none"} if "map" in cls.Settings.options() else {}

    @classmethod
    def side_choice(cls) -> SideChoice:
        """The sides that the metric can compare with, and its default side."""
        usual = None if cls.usual is None else Side(cls.usual)
        return SideChoice(cls.metric, tuple(map(Side, cls.sides)), usual)

    @classmethod
    def resolved_side(cls, preset: Preset, against: str | None) -> Side:
        """The side to compare with: `against` if the user passes it, else the side that the preset
        is made for, else the default side; see `resolve_side`."""
        choices = cls.side_choice()
        return resolve_side(choices, against, choices.preset_side(preset.settings), None)

    @classmethod
    def checked_side(cls, preset: Preset, against: str | None) -> Side:
        """The side to compare with, see `resolved_side`.

        Raises:
            InputError: the preset is made for another side.
        """
        side = cls.resolved_side(preset, against)
        preset_side = cls.side_choice().preset_side(preset.settings)
        if preset_side not in (None, side):
            problem = f"preset {preset.name} compares with the {preset_side.label} only"
            raise InputError(
                f"against {side.value!r}: {problem}; choose another preset", option="against"
            )
        return side

    def set_side(self, side: str, sides: Sequence[Side] | None = None) -> None:
        """Sets the side that translations are compared with.

        Args:
            side: the side.
            sides: the sides to choose from; None for those of the metric. If there are several, the
                signature names the side.

        Raises:
            InputError: `side` is none of `sides`.
        """
        sides = self.side_choice().sides if sides is None else sides
        self.side = Side(choice("against", side, sides))
        self.against = self.side if len(sides) > 1 else None

    @property
    def signature(self) -> str:
        """One line that names all that determines the scores: metric, models with their
        fingerprints, options, version. Equal signatures mean comparable scores."""
        pair = None if self.lang_pair is None else standard_pair(self.lang_pair)
        fields = {"lp": pair, "against": self.against, **self.signature_fields()}
        if self.dtype is not None:
            fields["dtype"] = dtype_name(self.dtype)
        return format_signature(self.metric, fields)

    def signature_fields(self) -> dict[str, object]:
        """Returns the fields of the signature for models and options: key -> value. A field whose
        value is None is left out. A metric lists its models, then its plain options."""
        return self.settings.signature_fields()

    @abc.abstractmethod
    def compute(self, batch: Batch) -> list[PartScores]:
        """Computes the scores of each system of a batch: the formula of the metric.

        The batch has the columns that the metric compares with, one reference per segment, and
        texts without invisible characters (unless `reads_invisible`). The caller gives segments
        with a blank text the floor score, whatever this method returns for them."""

    def require_floor(self) -> None:
        """Checks that a floor score exists, if `floor_degenerate` asks for it.

        Raises:
            InputError: `floor_degenerate` is set, and the metric has no finite floor score.
        """
        floor, _ = self._floor()
        if self.floor_degenerate and (floor is None or not np.isfinite(floor)):
            raise InputError(
                f"degenerate 'floor': {self.metric} has no floor score here", option="degenerate"
            )

    def combined(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Combines the parts of scores with the weights of the options.

        Metrics with options that weigh parts (`weighs=True` in `option`) override this method. They
        call it in `compute`. Tuning calls it, too, to try other weights without running a model.

        Args:
            parts: name of a part -> its (n,) values.

        Returns:
            (n,) scores.
        """
        raise NotImplementedError

    def _floor(self) -> tuple[float | None, dict[str, float]]:
        """Returns score and parts of a segment with a blank side. A score of None means that the
        segment keeps the score that `compute` gave it."""
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
        joined = joined_systems(self.score_batches(batch.slices(self.batch_segments)))
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
        """Checks the texts of the user, and makes a batch of the columns that the metric reads.

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
            self.iso_languages,
        )

    def _require_columns(self, columns: Sequence[str]) -> None:
        """Raises an `InputError` if a column is missing that translations are compared with."""
        if not {*self.side.columns} <= {*columns}:
            needed = " and ".join(self.side.columns)
            raise InputError(f"{self.metric} compares predictions with {needed}; pass {needed}")

    def score_batches(self, batches: Iterable[Batch]) -> Iterator[list[MetricResult]]:
        """Scores batches of checked texts one after the other. Keeps neither texts nor results.

        Args:
            batches: batches of the same systems; may have columns that the metric does not read.

        Yields:
            The result of each system of a batch. A metric that needs its whole input first yields
            once, after the last batch.
        """
        for batch in batches:
            rows, segment_of_row = self._read_columns(batch).with_single_references()
            visible_rows = rows.without_invisible()
            scores = self.compute(rows if self.reads_invisible else visible_rows)
            yield self._results(visible_rows, segment_of_row, scores)

    def _read_columns(self, batch: Batch) -> Batch:
        """Returns the batch with its languages, and only with the columns that the metric reads."""
        columns = {"sources": batch.sources, "references": batch.references}
        self._require_columns([name for name, texts in columns.items() if texts is not None])
        return Batch(
            batch.systems,
            batch.sources if "sources" in self.side.columns else None,
            batch.references if "references" in self.side.columns else None,
            self.iso_languages,
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
        batch_signature = with_references(self.signature, reference_counts)
        results = []
        for predictions, system_scores in zip(rows.predictions, scores, strict=True):
            result = self._result(rows, segment_of_row, predictions, system_scores, batch_signature)
            results.append(dataclasses.replace(result, reference_counts=reference_counts))
        report_progress("segments", sum(len(result.segments) for result in results))
        return results

    def _result(
        self,
        rows: Batch,
        segment_of_row: np.ndarray | None,
        predictions: list[str],
        scores: PartScores,
        batch_signature: str,
    ) -> MetricResult:
        """Makes the result of one system.

        Gives blank segments the floor score, takes the best of several references, finds unusual
        segments and, with `floor_degenerate`, gives output that is no translation the floor score.

        Args:
            rows, segment_of_row: as for `_results`.
            predictions: m translations of the system.
            scores: of the m rows; they are changed in place.
            batch_signature: the signature, with the number of references.
        """
        floor, floor_parts = self._floor()
        scores.set_floor(rows.blank_rows(predictions) | scores.empty, floor, floor_parts)
        first_rows = None
        if segment_of_row is not None:
            scores = scores.take(best_of_each(scores.segments, segment_of_row))
            # The translation of a segment is the same in all of its rows, so the first one suffices.
            first_rows = np.flatnonzero(np.diff(segment_of_row, prepend=-1))
        source_language, target_language = self.written_languages
        compares_sources = rows.sources is not None
        # A copy, because `scores.empty` changes below.
        unusual = {"blank": scores.empty.copy(), "truncated": scores.truncated}
        unusual |= degenerate(
            rows.compared,
            predictions,
            target_language,
            column="sources" if compares_sources else "references",
            rows=first_rows,
            # References are written in the language of the translations.
            other_code=source_language if compares_sources else target_language,
        )
        # These segments are counted as blank already.
        unusual["identical"] &= ~scores.empty
        report = InputReport.of(len(scores.segments), unusual)
        result_signature = batch_signature
        if self.floor_degenerate:
            scores.set_floor(any_degenerate(unusual), floor, floor_parts)
            result_signature = extended(batch_signature, policy("floor", unusual))
        return MetricResult(
            scores.segments, scores.parts, scores.empty, report, result_signature, unusual
        )


def refuse_positional(method: str, first: str, others: Sequence[object]) -> None:
    """Raises an `InputError` where texts are passed by position, as versions before 2.0 took
    them."""
    if others:
        raise InputError(
            f"{method}: since 2.0 texts are passed by name: "
            f"{method}({first}, sources=...) or {method}({first}, references=...)"
        )


def encoded_rows(encoder: Encoder, batch: Batch) -> PackedTokens:
    """Encodes all columns of a batch as one list of texts: the first column, then the second, and so
    on. One call of the encoder finds equal texts, so that it encodes none twice."""
    texts: list[str] = []
    languages: list[str | None] = []
    for column, language in batch.columns:
        texts += column
        languages += [language] * len(column)
    return encoder.encode(texts, languages)


def encoded_columns(encoder: Encoder, batch: Batch) -> list[PackedTokens]:
    """Encodes all columns of a batch, see `encoded_rows`.

    Returns:
        The vectors of each column: of sources and of references, if the batch has them, then of each
        system.
    """
    return encoded_rows(encoder, batch).split(len(batch))


def any_truncated(*sides: PackedTokens) -> np.ndarray:
    """Returns (n,) bool: whether the text of some side was truncated, for each of n segments."""
    return np.any([side.truncated[side.index] for side in sides], axis=0)
