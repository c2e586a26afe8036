"""The base of all scorers: checked input, batches, floor scores, reports and results; and how a
preset is read."""

import abc
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from mtmetrics.scorers.batch import Batch, Languages
from mtmetrics.scorers.degenerate import degenerate, policy
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.preset_tables import Opened, extended, signature, with_references
from mtmetrics.scorers.reloading import Origin, found_by, reloaded
from mtmetrics.scorers.results import (
    CHUNK_LINES,
    MetricResult,
    PartScores,
    best_of_each,
    joined_systems,
    total_report,
)
from mtmetrics.scorers.settings import Settings
from mtmetrics.scorers.side import Side


class Scorer(abc.ABC):
    """A metric that compares the translations of one or several systems with their sources, with
    references, or with both.

    Its models are the first arguments of ``__init__``; `lang_pair` and its `Settings` follow as
    keywords. ``from_preset`` loads the models that a preset names, takes the same keywords, and
    those that say what else to load.

    Attributes:
        metric: name of the metric.
        Settings: the class of its options.
        usual_preset: the preset where none is named; None where none is needed.
        takes_presets: whether a preset may be named.
        tables: table of a preset -> keys that it may hold, besides those of `Settings`; ``.*``
            stands for one table per language.
        needs_pair: whether a language pair has to be given.
        side: what the translations are compared with.
        against: the same for a metric that has the choice, for the signature; else None.
        reads_invisible: whether it gets texts as they are written, and not without the invisible
            characters that mean nothing, see `mtmetrics.io.visible_text`; metrics of others do, so
            that their numbers stay theirs.
        independent: whether a segment's score depends on nothing but its own texts; only then can
            the means of systems be compared.
        lines: segments that are best scored together.
        depth: number of layers that the encoder of words has; None where the layer cannot be
            chosen.
        dtype: number format of the encoder, None where there is none.
        lang_pair: such as ``"de-en"``, where it was given, for the signature and for encoders that
            read languages differently; without it these read references as English.
        floor: score of a segment with a blank side, where it has no parts.
        floor_degenerate: whether output that is no translation (`DEGENERATE`) gets the floor score.
        settings: what was set.
        origin: the names that it was loaded by; None where it was put together from objects.
        scale: of the score of a segment, for documentation.
        told_parts: what the parts of a score are, where it has any.
        told_alignments: what alignments hold, where words are aligned.
        why_no_words: why a metric that matches no words does not do so.
    """

    metric: ClassVar[str]
    scale: ClassVar[str] = ""
    told_parts: ClassVar[str] = ""
    told_alignments: ClassVar[str] = ""
    why_no_words: ClassVar[str] = "this metric compares whole texts, so there is nothing to align"
    Settings: ClassVar[type[Settings]] = Settings
    usual_preset: ClassVar[str | None] = "paper"
    takes_presets: ClassVar[bool] = True
    tables: ClassVar[dict[str, set[str]]] = {}
    needs_pair: ClassVar[bool] = False
    side: Side = Side.SOURCE
    against: Side | None = None
    reads_invisible: ClassVar[bool] = False
    independent: bool = True
    lines: int = CHUNK_LINES
    depth: int | None = None
    dtype: str | None = None
    lang_pair: str | None = None
    floor: float
    floor_degenerate: bool = False
    origin: Origin | None = None

    def __init__(self, lang_pair: str | None = None, **options: Any) -> None:
        self.lang_pair = lang_pair
        self.settings: Any = self.Settings.of(options, opened=True)

    @classmethod
    def from_preset(
        cls,
        preset: str | None = None,
        *,
        lang_pair: str | None = None,
        pool: ModelPool | None = None,
        **options: Any,
    ) -> Self:
        """The metric as a preset describes it.

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
        running = pool.running if isinstance(pool, ModelPool) else {}
        origin = Origin(preset, lang_pair, dict(options), running)
        if cls.usual_preset is None and (preset is None or not cls.takes_presets):
            scorer = cls(lang_pair=lang_pair, **options)
        else:
            scorer = cls.from_opened(cls.open_preset(preset, pool, options, lang_pair))
        scorer.origin = origin
        return scorer

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Has pickles hold the names that it was loaded by, and what was set since; the models are
        loaded again where the pickle is read. One that was put together from objects travels with
        these; models refuse it."""
        names = found_by(type(self))
        if self.origin is None or names is None:
            return super().__reduce_ex__(protocol)
        changed = {name: vars(self)[name] for name in ["floor_degenerate"] if name in vars(self)}
        return reloaded, (*names, self.origin), changed

    @classmethod
    def from_opened(cls, opened: Opened) -> Self:
        """The metric that `from_preset` makes when the preset is open."""
        return cls(**opened.keywords())

    @classmethod
    def loads_models(cls) -> bool:
        """Whether its presets name models or maps."""
        return any(keys & MODEL_KEYS for keys in cls.tables.values())

    @classmethod
    def needs_preset(cls) -> bool:
        """Whether a preset has to say what it is made of. A metric without models needs none, and
        takes the usual one where it has it."""
        if cls.usual_preset is None:
            return False
        return cls.loads_models() or cls.usual_preset in preset_names(cls.metric)

    @property
    def codes(self) -> Languages:
        """The languages of sources and translations as `lang_pair` writes them; where no pair was
        given, English for the translations of a metric that reads references alone, else None."""
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
        cls,
        preset: str | None,
        pool: ModelPool | None,
        options: dict[str, Any],
        lang_pair: str | None = None,
    ) -> Opened:
        """The preset of this metric, with the pool that its models come from and the settings that
        follow from it and from `options`, into which those go that the preset sets and the user
        does not."""
        pool = pool or ModelPool()
        bundle = cls.read_preset(preset, options, local_files_only=pool.local_files_only)
        several = len(METRICS[cls.metric].sides) > 1
        score = {
            *cls.tables.get("score", ()),
            *cls.Settings.preset_keys(),
            *(["against"] if several else []),
        }
        bundle.refuse_unknown(
            {**cls.tables, "agreement.*": AGREEMENT_KEYS, **({"score": score} if score else {})}
        )
        for name, value in bundle.options.items():
            if options.get(name) is None:
                options[name] = value
        against = options.pop("against", None) if several else None
        return Opened(
            bundle, pool, options, cls.Settings.chosen(bundle, options), lang_pair, against
        )

    @classmethod
    def read_preset(
        cls, preset: str | None, options: Mapping[str, Any], *, local_files_only: bool = False
    ) -> Preset:
        """The preset of a name, or what stands in its place: an empty one where none is named or
        needed."""
        if preset is None and not cls.needs_preset():
            return Preset("", cls.metric, Path(), {})
        return load_preset(
            cls.metric, preset or str(cls.usual_preset), local_files_only=local_files_only
        )

    @classmethod
    def preset_settings(cls, preset: str | None, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The tables of a preset, from which `Metric.preset_side` finds the side that it is made
        for."""
        return cls.read_preset(preset, options).settings if cls.takes_presets else {}

    @classmethod
    def unpaired(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options, beyond those given, with which it can be loaded before the language pair is
        known."""
        return {"map": "none"} if "map" in cls.Settings.options() else {}

    def compare_with(self, side: str, sides: Sequence[Side] | None = None) -> None:
        """Sets what translations are compared with, one of `sides`, by default those of the metric,
        else an `InputError`; the signature names it where there are several."""
        sides = METRICS[self.metric].sides if sides is None else sides
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
        *others: Any,
        sources: Sequence[str] | None = None,
        references: Sequence[Any] | None = None,
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
        *others: Any,
        sources: Sequence[str] | None = None,
        references: Sequence[Any] | None = None,
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
        references: Sequence[Any] | None = None,
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
        given = {"sources": sources, "references": references}
        self._require_columns([name for name, texts in given.items() if texts is not None])
        columns: dict[str, Any] = {name: given[name] for name in self.side.columns}
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
            rows, owners = self._read_columns(batch).with_single_references()
            seen = rows.without_invisible()
            scores = self.compute(rows if self.reads_invisible else seen)
            yield self._results(seen, owners, scores)

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
        self, rows: Batch, owners: np.ndarray | None, scores: Sequence[PartScores]
    ) -> list[MetricResult]:
        """The result of each system, of the scores of m rows.

        Args:
            rows: texts without invisible characters, one reference a row.
            owners: (m,) the segment of each row; None where each row is a segment.
            scores: of each system.
        """
        reference_counts = (
            frozenset() if owners is None else frozenset(np.bincount(owners).tolist())
        )
        line = with_references(self.signature, reference_counts)
        results = [
            self._result(rows, owners, predictions, of_system, line, reference_counts)
            for predictions, of_system in zip(rows.predictions, scores, strict=True)
        ]
        report_progress("segments", sum(len(result.segments) for result in results))
        return results

    def _result(
        self,
        rows: Batch,
        owners: np.ndarray | None,
        predictions: list[str],
        scores: PartScores,
        line: str,
        reference_counts: frozenset[int],
    ) -> MetricResult:
        """The result of one system; `line` is its signature."""
        floor, floor_parts = self._floor()
        scores.put(rows.blank_rows(predictions) | scores.empty, floor, floor_parts)
        first_rows = None
        if owners is not None:
            scores = scores.take(best_of_each(scores.segments, owners))
            first_rows = np.flatnonzero(np.diff(owners, prepend=-1))
        source_code, target_code = self.codes
        compares_sources = rows.sources is not None
        unusual = {"blank": scores.empty.copy(), "truncated": scores.truncated}
        unusual |= degenerate(
            rows.compared,
            predictions,
            target_code,
            "sources" if compares_sources else "references",
            first_rows,
            source_code if compares_sources else target_code,
        )
        unusual["identical"] &= ~scores.empty
        if self.floor_degenerate:
            line = extended(line, policy("floor", unusual))
        result = MetricResult(
            scores.segments,
            scores.parts,
            scores.empty,
            InputReport.of(len(scores.segments), unusual),
            line,
            unusual,
            reference_counts,
        )
        if self.floor_degenerate:
            scores.put(result.degenerate, floor, floor_parts)
        return result


def refuse_positional(method: str, first: str, others: Sequence[Any]) -> None:
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
