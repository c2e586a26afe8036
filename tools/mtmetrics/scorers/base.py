"""The base class of all scorers: loads a metric, checks texts, and turns the scores of a metric into
results."""

import abc
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
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.languages import standard_pair
from mtmetrics.models.devices import dtype_name
from mtmetrics.models.packed import Encoder, PackedTokens
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.progress import report_progress
from mtmetrics.scorers.batch import Batch, Languages, References
from mtmetrics.scorers.degenerate import any_degenerate, find_degenerate, signature_field
from mtmetrics.scorers.preset_tables import check_supported_pair
from mtmetrics.scorers.reloading import Origin, shared_pool
from mtmetrics.scorers.results import (
    BATCH_SEGMENTS,
    MetricResult,
    PartScores,
    best_rows,
    first_rows,
    join_systems,
    total_report,
)
from mtmetrics.scorers.settings import Settings as BaseSettings
from mtmetrics.scorers.settings import refuse_unknown_options
from mtmetrics.scorers.side import Options, Side, SideChoice, Table, resolve_side
from mtmetrics.scorers.signature import signature as format_signature
from mtmetrics.scorers.signature import with_fields, with_references


class Scorer(abc.ABC):
    """A metric that compares the translations of one or several systems with their sources, with
    references, or with both.

    There are two ways to make a scorer. ``load`` takes a preset name and options, and loads the
    models. ``__init__`` takes models that are loaded already, and the options for which no model has
    to be loaded.

    Texts are processed in four steps: `score` checks them and makes a `Batch`; `Batch.slices` splits
    it; `compute` gives the scores of each slice; and `_results` makes results from these.

    If segments have several references, a batch has rows: a row is a segment with one of its
    references. The row with the best score counts.

    The score of some metrics is combined from parts, such as a similarity and the likelihood of a
    language model.

    A subclass sets `metric` and `sides`, and defines:

    - `compute`, always;
    - a value for `floor`; or `floor_with_parts`, if its scores have parts;
    - `Settings`, if it has options: each option is a field of this class;
    - `from_preset` and `preset_keys`, if it loads models;
    - `signature_fields`, if the signature names models;
    - `combine_parts`, if options weigh the parts of a score;
    - a call of `set_side` in its ``__init__``, if it can compare with several sides.

    A metric that aligns words, or says which words lower the score, is a subclass of
    `mtmetrics.scorers.words.WordScorer`.

    Attributes:
        metric: name of the metric.
        Settings: the class of its settings.
        sides: the sides that it can compare translations with.
        usual: the default side, for a user who does not choose; None if the user has to choose.
        usual_preset: the default preset; None if the metric needs none.
        takes_presets: whether the user may name a preset; if not, `load` ignores the name.
        preset_keys: name of a table of a preset -> the keys that it may hold, besides those of
            `Settings`; the name ``encoders.*`` stands for one table per language.
        needs_pair: whether the user has to name a language pair.
        keeps_invisible: whether `compute` gets the texts unchanged, so that third-party code reports
            the same numbers as it does elsewhere. Other metrics get them without invisible
            characters that carry no meaning, see `mtmetrics.io.visible_text`.
        scale: description of the range of a segment's score in documentation.
        parts_help: description of the parts of a score in documentation; empty without parts.
        alignments_help: description of alignments in documentation; empty for a metric that aligns
            no words.
        no_alignments_reason: the reason that an error gives if the metric has no alignments.
        settings: the settings of this scorer, an object of the class `Settings`.
        lang_pair: such as ``"de-en"``; None if the user names none. It stands in the signature, and
            tells language-aware encoders which language a text is in.
        side: the side that this scorer compares with.
        side_in_signature: the side as the signature names it; None if there is only one to choose.
        has_independent_segments: whether a segment's score depends on its own texts only. Otherwise
            input cannot be scored in pieces, and means of systems cannot be compared, since each
            depends on the other segments of its system.
        batch_segments: the number of segments in a batch.
        encoder_depth: the number of layers of the encoder, if the user may choose one; else None.
        dtype: number format of the encoder; None without an encoder.
        floor: the score of a segment in which a text is blank. Metrics whose scores have parts
            define `floor_with_parts` instead.
        floor_degenerate: whether degenerate output, such as a copy of the source or a text that
            repeats itself, gets the floor score; see `mtmetrics.scorers.degenerate`.
        origin: the arguments of the `load` call that made it; None if it was made from objects.
    """

    metric: ClassVar[str]
    Settings: ClassVar[type[BaseSettings]] = BaseSettings
    sides: ClassVar[Sequence[str]] = (Side.SOURCE,)
    usual: ClassVar[str | None] = None
    usual_preset: ClassVar[str | None] = "paper"
    takes_presets: ClassVar[bool] = True
    preset_keys: ClassVar[dict[str, set[str]]] = {}
    needs_pair: ClassVar[bool] = False
    keeps_invisible: ClassVar[bool] = False
    scale: ClassVar[str] = ""
    parts_help: ClassVar[str] = ""
    alignments_help: ClassVar[str] = ""
    no_alignments_reason: ClassVar[str] = (
        "this metric compares whole texts, so there is nothing to align"
    )
    settings: BaseSettings
    lang_pair: str | None = None
    side: Side
    side_in_signature: Side | None = None
    has_independent_segments: bool = True
    batch_segments: int = BATCH_SEGMENTS
    encoder_depth: int | None = None
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
            settings: all settings, which replace `lang_pair` and `options`; None to build them from
                `lang_pair` and `options`.
            **options: options for which no model has to be loaded; and `against`, if the metric can
                compare with several sides.
        """
        if settings is None:
            against = options.pop("against", None) if len(self.sides) > 1 else None
            refuse_unknown_options(options, self.Settings.non_loading_options())
            settings = self.Settings(lang_pair=lang_pair, against=against, **options)
        self.settings = settings
        self.lang_pair = settings.lang_pair
        if len(self.sides) == 1:
            self.side = Side(self.sides[0])

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
            sources: n texts, needed if the metric compares with them.
            references: n texts, needed if the metric compares with them; or n lists of texts, of
                which the best one counts.

        Returns:
            Scores in the order of the input. A segment in which a text is blank gets the floor
            score, if the metric has one, and is counted in the report.

        Raises:
            InputError: a column is not a list of strings, is empty, or differs in length; or a
                column that the metric compares with is missing.
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
            InputError: the errors of `score`.
        """
        refuse_positional("score_systems", "systems", others)
        batch = self.checked_batch(systems, sources=sources, references=references)
        system_results = join_systems(self.score_batches(batch.slices(self.batch_segments)))
        results = dict(zip(batch.systems, system_results, strict=True))
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
            InputError: the errors of `score`.
        """
        if not isinstance(systems, Mapping):
            raise InputError(
                f"systems: must be a dictionary of name -> translations, got {shown(systems)}"
            )
        if not systems:
            raise InputError("systems: empty; there is nothing to score")
        columns = self._needed_columns(sources, references)
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

    def _needed_columns(
        self, sources: Sequence[str] | None, references: References | None
    ) -> dict[str, Any]:
        """Returns the columns that translations are compared with: name -> texts.

        Raises:
            InputError: one of them is missing.
        """
        texts_of_column = {"sources": sources, "references": references}
        columns: dict[str, Any] = {name: texts_of_column[name] for name in self.side.columns}
        if any(texts is None for texts in columns.values()):
            needed = " and ".join(columns)
            raise InputError(f"{self.metric} compares predictions with {needed}; pass {needed}")
        return columns

    def score_batches(self, batches: Iterable[Batch]) -> Iterator[list[MetricResult]]:
        """Scores batches of checked texts one after the other. Holds no texts or results in memory
        between batches.

        Args:
            batches: batches of the same systems; may have columns that the metric does not read.

        Yields:
            The result of each system of a batch. A metric that needs the whole input before it can
            score yields only once, after the last batch.
        """
        for batch in batches:
            row_batch, segment_of_row = self._with_needed_columns(batch).with_single_references()
            visible_batch = row_batch.without_invisible()
            scores = self.compute(row_batch if self.keeps_invisible else visible_batch)
            results = self._results(visible_batch, segment_of_row, scores)
            report_progress("segments", sum(len(result.segments) for result in results))
            yield results

    def _with_needed_columns(self, batch: Batch) -> Batch:
        """Returns the batch with only the columns that the metric reads, and with the languages of
        the scorer."""
        columns = self._needed_columns(batch.sources, batch.references)
        return Batch(batch.systems, languages=self.iso_languages, **columns)

    @abc.abstractmethod
    def compute(self, batch: Batch) -> list[PartScores]:
        """Applies the formula of the metric. Returns the scores of each system of a batch.

        The batch has the columns that the metric compares with, one reference per segment, and
        texts without invisible characters (unless `keeps_invisible`). The caller gives segments
        with a blank text the score of `floor_with_parts`. Only if that is None do they keep the score
        that this method returns."""

    def combine_parts(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Combines the parts of scores with the weights that the options set.

        Metrics with such options (``mtmetrics.option(..., weighs=True)``) override this method and
        call it in `compute`. ``mtmetrics evaluate --tune`` calls it, too, to try other
        weights without running a model.

        Args:
            parts: name of a part -> its (n,) values.

        Returns:
            (n,) scores.
        """
        raise NotImplementedError

    def floor_with_parts(self) -> tuple[float | None, dict[str, float]]:
        """Returns the floor score and the parts of a segment in which a text is blank. If the floor
        score is None, the segment keeps the score that `compute` gave it."""
        return self.floor, {}

    def require_floor(self) -> None:
        """Checks that the metric has a floor score if `floor_degenerate` is set.

        Raises:
            InputError: the floor score is needed, but is missing or not finite.
        """
        floor, _ = self.floor_with_parts()
        if self.floor_degenerate and (floor is None or not np.isfinite(floor)):
            raise InputError(
                f"degenerate 'floor': {self.metric} has no floor score here", option="degenerate"
            )

    def _results(
        self, row_batch: Batch, segment_of_row: np.ndarray | None, scores: Sequence[PartScores]
    ) -> list[MetricResult]:
        """Makes the result of each system from its scores of m rows.

        Args:
            row_batch: m rows without invisible characters, with one reference per row.
            segment_of_row: (m,) segment index of each row, ascending; None if each row is a segment.
            scores: the scores of each system on the m rows; they are changed in place.
        """
        # The distinct numbers of references per segment.
        reference_counts: frozenset[int] = frozenset()
        if segment_of_row is not None:
            reference_counts = frozenset(np.bincount(segment_of_row).tolist())
        signature = with_references(self.signature, reference_counts)
        results = []
        for predictions, row_scores in zip(row_batch.predictions, scores, strict=True):
            is_blank = row_batch.blank_mask(predictions) | row_scores.empty
            row_scores.apply_floor(is_blank, *self.floor_with_parts())
            segment_scores = row_scores
            if segment_of_row is not None:
                best = best_rows(row_scores.segments, segment_of_row)
                segment_scores = row_scores.take(best)
            unusual = self._unusual_segments(row_batch, segment_of_row, predictions, segment_scores)
            report = InputReport.of(len(segment_scores.segments), unusual)
            result_signature = signature
            if self.floor_degenerate:
                segment_scores.apply_floor(any_degenerate(unusual), *self.floor_with_parts())
                # The signature names the kinds of degenerate output that get the floor score.
                result_signature = with_fields(signature, signature_field("floor", unusual))
            result = MetricResult(
                segments=segment_scores.segments,
                parts=segment_scores.parts,
                empty=segment_scores.empty,
                report=report,
                signature=result_signature,
                unusual=unusual,
                reference_counts=reference_counts,
            )
            results.append(result)
        return results

    def _unusual_segments(
        self,
        row_batch: Batch,
        segment_of_row: np.ndarray | None,
        predictions: list[str],
        scores: PartScores,
    ) -> dict[str, np.ndarray]:
        """Finds blank, truncated and degenerate segments: kind -> (n,) mask.

        Args:
            row_batch, segment_of_row: as for `_results`.
            predictions: m translations of a system.
            scores: its scores on the n segments.
        """
        # The rows of a segment differ only in their reference. Degenerate output is found by the
        # first one. Blank and truncated segments come from `scores`, so from the best one.
        first_row_of_segment = None if segment_of_row is None else first_rows(segment_of_row)
        source_language, target_language = self.language_tags
        compares_sources = row_batch.sources is not None
        # References are written in the language of the translations.
        compared_language = source_language if compares_sources else target_language
        # A copy, because the floor score of degenerate segments changes `scores.empty` later.
        unusual = {"blank": scores.empty.copy(), "truncated": scores.truncated}
        unusual |= find_degenerate(
            row_batch.sources_or_references,
            predictions,
            target_language,
            compares_sources=compares_sources,
            compared_language=compared_language,
            rows=first_row_of_segment,
        )
        # Blank segments are counted already, so they do not count as identical too.
        unusual["identical"] &= ~scores.empty
        return unusual

    @property
    def signature(self) -> str:
        """One line that names everything that determines the scores: metric, models with their
        fingerprints, options, version. Only the signature of a result also names the numbers of
        references and the treatment of degenerate output. Results with equal signatures have
        comparable scores."""
        pair = None if self.lang_pair is None else standard_pair(self.lang_pair)
        fields = {"lp": pair, "against": self.side_in_signature, **self.signature_fields()}
        if self.dtype is not None:
            fields["dtype"] = dtype_name(self.dtype)
        return format_signature(self.metric, fields)

    def signature_fields(self) -> dict[str, object]:
        """Returns the fields of the signature for models and options: key -> value. A field whose
        value is None is left out. A metric lists its models, then its plain options."""
        return self.settings.signature_fields()

    @property
    def can_align(self) -> bool:
        """Whether the metric aligns words with its current settings."""
        return False

    @property
    def can_blame(self) -> bool:
        """Whether the metric says which words lower the score."""
        return False

    @property
    def language_tags(self) -> Languages:
        """The tags of the languages of sources and translations as `lang_pair` has them, such as
        ``sr_Latn``.

        Without a language pair both are None. The exception: if a metric compares with references
        only, translations count as English.
        """
        if self.lang_pair is None:
            return Languages(target="en" if self.side is Side.REFERENCE else None)
        return Languages(*split_pair(self.lang_pair))

    @property
    def iso_languages(self) -> Languages:
        """The ISO 639 codes of `language_tags`, used to choose models."""
        source, target = self.language_tags
        return Languages(source and language_of(source), target and language_of(target))

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
                (`usual_preset`), if the metric needs one. A metric that takes no presets ignores it.
            lang_pair: such as ``"de-en"``.
            pool: models that are shared with other scorers; None to load them for this scorer only.
            **options: fields of `Settings`, each of which overrides the preset unless it is None;
                and `against`, if the metric can compare with several sides. Without `against`, a
                preset that is made for one side determines the side; otherwise it is the default
                side (`usual`).

        Raises:
            InputError: an unknown preset, pair or option; or the metric or preset cannot compare
                with that side.
            ArtifactError: something that the preset names cannot be loaded.
        """
        model_pool = pool or ModelPool()
        opened_preset = cls.read_checked_preset(
            preset, options, local_files_only=model_pool.local_files_only
        )
        if lang_pair is not None:
            check_supported_pair(opened_preset, lang_pair)
        # A preset may have a table [options] with names of options as the user writes them. They
        # count as set by the user.
        requested = dict(opened_preset.options)
        requested |= {name: value for name, value in options.items() if value is not None}
        against = requested.pop("against", None) if len(cls.sides) > 1 else None
        settings = cls.Settings.from_preset(
            opened_preset, requested, lang_pair=lang_pair, against=against
        )
        scorer = cls.from_preset(opened_preset, settings, model_pool)
        scorer.origin = Origin(preset, lang_pair, dict(options), model_pool.run_options)
        return scorer

    @classmethod
    def from_preset(cls, preset: Preset, settings: Any, models: ModelPool) -> Self:
        """Makes the scorer that a preset and settings describe. A metric that loads models overrides
        this method.

        Args:
            preset: names the models and maps.
            settings: an object of the class `Settings` of the metric; it overrides the preset.
            models: the pool that loads models, each once.
        """
        return cls(settings=settings)

    @classmethod
    def needs_preset(cls) -> bool:
        """Whether `usual_preset` is read if the user names no preset: the metric loads models, or has
        a preset with this name."""
        if cls.usual_preset is None:
            return False
        return cls.loads_models() or cls.usual_preset in preset_names(cls.metric)

    @classmethod
    def loads_models(cls) -> bool:
        """Whether its presets name models or maps."""
        return any(keys & MODEL_KEYS for keys in cls.preset_keys.values())

    @classmethod
    def read_checked_preset(
        cls, preset: str | None, options: Options, *, local_files_only: bool = False
    ) -> Preset:
        """Reads a preset, see `read_preset`, and checks its tables and keys, and its side.

        Raises:
            ArtifactError: the preset has a table or key that the metric does not know, or names a
                side that the metric cannot compare with.
        """
        opened_preset = cls.read_preset(
            preset if cls.takes_presets else None, options, local_files_only=local_files_only
        )
        score_keys = cls.preset_keys.get("score", set()) | cls.Settings.preset_keys()
        if len(cls.sides) > 1:
            score_keys |= {"against"}
        # The tables [agreement.SIDE] say how well the scores agree with people.
        tables = {**cls.preset_keys, "agreement.*": AGREEMENT_KEYS}
        if score_keys:
            tables["score"] = score_keys
        opened_preset.refuse_unknown(tables)
        preset_against = opened_preset.settings.get("score", {}).get("against")
        if preset_against not in (None, *cls.sides):
            raise ArtifactError(
                f"preset {opened_preset.name}: against {preset_against!r} in [score] must be one of "
                f"{', '.join(cls.sides)}",
                option="preset",
            )
        return opened_preset

    @classmethod
    def read_preset(
        cls, preset: str | None, options: Options, *, local_files_only: bool = False
    ) -> Preset:
        """Reads a preset. Returns an empty one if the user names none and the metric needs none.

        Args:
            preset: its name or folder; None for the default one.
            options: options of the user; some metrics choose their preset by one of these.
            local_files_only: use only files that are on this machine.
        """
        if preset is None and not cls.needs_preset():
            return Preset("", cls.metric, Path(), {})
        return load_preset(
            cls.metric, preset or str(cls.usual_preset), local_files_only=local_files_only
        )

    @classmethod
    def tables_of_preset(cls, preset: str | None, options: Options) -> Table:
        """Returns the tables of a preset, see `read_preset`; none for a metric that takes no presets."""
        return cls.read_preset(preset, options).settings if cls.takes_presets else {}

    @classmethod
    def options_without_pair(cls, options: Options) -> dict[str, Any]:
        """Returns options that switch off the models of a language pair, such as maps. With these
        options the metric loads for any pair.

        Args:
            options: options of the user. A returned option replaces that of the user, so it includes
                the user's value: for ``without="sentences"`` UScore returns
                ``without="sentences+translation"``.
        """
        return {"map": "none"} if "map" in cls.Settings.options() else {}

    @classmethod
    def side_choice(cls) -> SideChoice:
        """The sides that the metric can compare with, and its default side."""
        usual = None if cls.usual is None else Side(cls.usual)
        return SideChoice(cls.metric, tuple(map(Side, cls.sides)), usual)

    @classmethod
    def choose_side(cls, preset: Preset, against: str | None) -> Side:
        """Returns the side to compare with: `against` if the user passes it, else the side that the
        preset is made for, else the default side; see `resolve_side`."""
        preset_side = cls.side_choice().preset_side(preset.settings)
        return resolve_side(cls.side_choice(), against, preset_side, given_columns=None)

    @classmethod
    def choose_allowed_side(cls, preset: Preset, against: str | None) -> Side:
        """Returns the side to compare with, see `choose_side`, if the preset allows it.

        Raises:
            InputError: the preset is made for another side.
        """
        side = cls.choose_side(preset, against)
        preset_side = cls.side_choice().preset_side(preset.settings)
        if preset_side not in (None, side):
            problem = f"preset {preset.name} compares with the {preset_side.label} only"
            raise InputError(
                f"against {side.value!r}: {problem}; choose another preset", option="against"
            )
        return side

    def set_side(self, side: str, sides: Sequence[Side] | None = None) -> None:
        """Sets the side that translations are compared with. If there are several sides to choose
        from, the signature names the side.

        Args:
            side: one of `sides`.
            sides: the sides to choose from; None for the sides of the metric.

        Raises:
            InputError: `side` is not one of `sides`.
        """
        sides = self.side_choice().sides if sides is None else sides
        self.side = Side(choice("against", side, sides))
        self.side_in_signature = self.side if len(sides) > 1 else None

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Describes the scorer for pickles: the call that loads it again, and `floor_degenerate`,
        which may have been set after loading. Unpickling loads the models again. A scorer without an
        origin is pickled with its objects, which fails if these are loaded models."""
        if self.origin is None:
            return super().__reduce_ex__(protocol)
        function, arguments = self._reload_call(self.origin)
        return function, arguments, {"floor_degenerate": self.floor_degenerate}

    def _reload_call(self, origin: Origin) -> tuple[Callable[..., "Scorer"], tuple[Any, ...]]:
        """Returns the function that loads the scorer again in another process, and its arguments."""
        return type(self).reload, (origin,)

    @classmethod
    def reload(cls, origin: Origin) -> Self:
        """Loads a scorer again with the arguments in `origin`. All scorers that a process loads again
        share their models."""
        pool = shared_pool(origin.running)
        return cls.load(origin.preset, lang_pair=origin.lang_pair, pool=pool, **origin.options)


def refuse_positional(method: str, first: str, others: Sequence[object]) -> None:
    """Raises an `InputError` if texts are passed by position, which was possible before 2.0."""
    if others:
        raise InputError(
            f"{method}: since 2.0 texts are passed by name: "
            f"{method}({first}, sources=...) or {method}({first}, references=...)"
        )


def encode_as_one_list(encoder: Encoder, batch: Batch) -> PackedTokens:
    """Encodes all columns of a batch as one list of texts: the first column, then the second, and so
    on. In a single call the encoder finds texts that are equal, and encodes each of them once."""
    texts: list[str] = []
    languages: list[str | None] = []
    for column, language in batch.texts_and_languages:
        texts += column
        languages += [language] * len(column)
    return encoder.encode(texts, languages)


def encode_columns(encoder: Encoder, batch: Batch) -> list[PackedTokens]:
    """Encodes all columns of a batch, see `encode_as_one_list`.

    Returns:
        The vectors of each column: of sources and of references, if the batch has them, then of each
        system.
    """
    return encode_as_one_list(encoder, batch).split(len(batch))


def any_truncated(*columns: PackedTokens) -> np.ndarray:
    """Returns an (n,) mask of the segments with a truncated text in any of these columns."""
    return np.any([column.truncated[column.index] for column in columns], axis=0)
