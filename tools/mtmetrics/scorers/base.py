"""What every scorer shares: checked input, chunks, floor scores, reports and results; and how it
reads a preset."""

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
from mtmetrics.checks import (
    InputReport,
    as_texts,
    check,
    choice,
    compared_columns,
    compared_texts,
    language_of,
    shown,
    split_pair,
)
from mtmetrics.errors import InputError
from mtmetrics.io.languages import standard_pair
from mtmetrics.io.visible_text import visible
from mtmetrics.matching.pairs import Pending
from mtmetrics.matching.plan import Alignment, Cells
from mtmetrics.matching.word_errors import (
    Evidence,
    Fault,
    faults_as_written,
    match_evidence,
    word_faults,
)
from mtmetrics.models.devices import dtype_name
from mtmetrics.models.packed import Encoder, PackedTokens
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.progress import report_progress
from mtmetrics.scorers.degenerate import degenerate, policy
from mtmetrics.scorers.metric import COLUMNS, METRICS, Column
from mtmetrics.scorers.preset_tables import Opened, extended, signature, with_references
from mtmetrics.scorers.reloading import Origin, found_by, reloaded
from mtmetrics.scorers.results import (
    CHUNK_LINES,
    MetricResult,
    SystemScores,
    best_of_each,
    blank_rows,
    joined_systems,
    stretches,
    total_report,
    unfolded,
    visible_texts,
)
from mtmetrics.scorers.settings import Settings


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
        compares: what the translations are compared with, ``("sources",)``, ``("references",)`` or
            both of them.
        against: the same for a metric that has the choice, ``"source"``, ``"reference"`` or
            ``"both"``; else None.
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
        system_names: of the systems that are scored next, where the caller knows them; stored
            scores are found by them.
        scale: of the score of a segment, for documentation.
        told_parts: what the parts of a score are, where it has any.
        told_alignments: what alignments hold, where words are aligned.
    """

    metric: ClassVar[str]
    scale: ClassVar[str] = ""
    told_parts: ClassVar[str] = ""
    told_alignments: ClassVar[str] = ""
    Settings: ClassVar[type[Settings]] = Settings
    usual_preset: ClassVar[str | None] = "paper"
    takes_presets: ClassVar[bool] = True
    tables: ClassVar[dict[str, set[str]]] = {}
    needs_pair: ClassVar[bool] = False
    compares: tuple[Column, ...] = ("sources",)
    against: str | None = None
    reads_invisible: ClassVar[bool] = False
    independent: bool = True
    lines: int = CHUNK_LINES
    depth: int | None = None
    dtype: str | None = None
    lang_pair: str | None = None
    system_names: Sequence[str] | None = None
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
        changed = {
            name: vars(self)[name]
            for name in ("system_names", "floor_degenerate")
            if name in vars(self)
        }
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
    def column_codes(self) -> tuple[str | None, str | None]:
        """The languages of what predictions are compared with, the source where that is both, and
        of predictions, as `lang_pair` writes them; where no pair was given, English for references,
        and None for sources."""
        if self.lang_pair is None:
            return (None, None) if "sources" in self.compares else ("en", "en")
        source, target = split_pair(self.lang_pair)
        return (source if "sources" in self.compares else target), target

    @property
    def column_languages(self) -> tuple[str | None, str | None]:
        """The same by their ISO 639 codes, which choose models."""
        other, prediction = (code and language_of(code) for code in self.column_codes)
        return other, prediction

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
        """What a preset says, from which `Metric.only` finds the side that it is made for."""
        return cls.read_preset(preset, options).settings if cls.takes_presets else {}

    @classmethod
    def unpaired(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options, beyond those given, with which it can be loaded before the language pair is
        known."""
        return {"map": "none"} if "map" in cls.Settings.options() else {}

    def compare_with(self, side: str, sides: Sequence[str] | None = None) -> None:
        """Sets what translations are compared with, one of `sides`, by default those of the metric,
        else an `InputError`; the signature names it where there are several."""
        sides = METRICS[self.metric].sides if sides is None else sides
        self.compares = COLUMNS[choice("against", side, sides)]
        self.against = side if len(sides) > 1 else None

    def compared(self, columns: Mapping[str, Sequence[Any]]) -> list[Any]:
        """What translations are compared with, as `score` takes it, of columns of texts by name."""
        return compared_texts([columns[name] for name in self.compares])

    @property
    def signature(self) -> str:
        """One line that pins the scores."""
        pair = None if self.lang_pair is None else standard_pair(self.lang_pair)
        fields: dict[str, Any] = {"lp": pair, "against": self.against}
        for name, field in self.settings.options().items():
            if field.metadata["signed"]:
                value = self.pinned(name)
                fields |= value if isinstance(value, dict) else {field.metadata["signed"]: value}
        return signature(self.metric, fields | {"dtype": self.dtype and dtype_name(self.dtype)})

    def pinned(self, option: str) -> Any:
        """What the signature says of an option: its value where it is not the default; or several
        keys and values."""
        value = getattr(self.settings, option)
        return (
            None
            if value == self.settings.options()[option].default
            else "yes"
            if value is True
            else value
        )

    @abc.abstractmethod
    def _score_chunk(self, others: list[Any], systems: list[list[str]]) -> SystemScores:
        """The scores of each system in one chunk of checked texts, which are strings, or pairs of
        source and a single reference, without invisible characters (see `reads_invisible`); worker
        processes may still be computing them while the next chunk is encoded."""

    def require_floor(self) -> None:
        """Refuses to give `DEGENERATE` output a floor score that is not known."""
        floor, _ = self._floor()
        if self.floor_degenerate and (floor is None or not np.isfinite(floor)):
            raise InputError(f"degenerate 'floor': {self.metric} has no floor score here")

    def combined(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        """(n,) scores of (n,) parts, as the options say that weigh them."""
        raise NotImplementedError

    def _floor(self) -> tuple[float | None, dict[str, float]]:
        """Score and parts of a segment with a blank side; None for a score that stays what it
        is."""
        return self.floor, {}

    def score(self, others: Sequence[Any], predictions: Sequence[str]) -> MetricResult:
        """Scores one system.

        Args:
            others: n source segments, or n references, whichever the metric `compares` with, or n
                pairs of both; of references a segment may have a list, and the best one counts.
            predictions: n translations.

        Returns:
            Scores in the order of the input. A segment with a blank side gets the floor score and
            is counted in the report.

        Raises:
            InputError: the columns are no lists of strings, empty, or of unequal length.
        """
        return self.score_systems(others, {"": predictions})[""]

    def score_systems(
        self, others: Sequence[Any], systems: Mapping[str, Sequence[str]]
    ) -> dict[str, MetricResult]:
        """Scores several systems, by name, on the same sources or references, which are encoded
        once; else as `score`."""
        found = joined_systems(self.score_stretches(others, systems, self.lines))
        results = dict(zip(systems, found, strict=True))
        total_report(results.values()).warn()
        return results

    def score_stretches(
        self, others: Sequence[Any], systems: Mapping[str, Sequence[str]], lines: int
    ) -> Iterator[list[MetricResult]]:
        """As `score_systems`, but yields the results of so many segments at a time; the texts are
        checked at once."""
        if not isinstance(systems, Mapping):
            raise InputError(
                f"systems: a dictionary, name -> translations, is needed, got {shown(systems)}"
            )
        if not systems:
            raise InputError("systems: empty; there is nothing to score")
        self.system_names = list(systems)
        names = {name: f"predictions of {name}" if name else "predictions" for name in systems}
        checked = check(
            **compared_columns(self.compares, others),
            **{names[n]: texts for n, texts in systems.items()},
        )
        count = len(self.compares)
        return self.score_chunks(
            stretches([compared_texts(checked[:count]), *checked[count:]], lines)
        )

    def score_stream(self, chunks: Iterable[list[list[Any]]]) -> list[MetricResult]:
        """Scores input that arrives in chunks, one result per system; memory grows with the scores
        alone.

        Args:
            chunks: lists of columns: what is compared with (see `compared`), then one column per
                system.

        Raises:
            InputError: there is not a single segment.
        """
        results = joined_systems(self.score_chunks(chunks))
        if not results:
            raise InputError(f"{self.compares[0]}: empty; there is nothing to score")
        return results

    def score_chunks(self, chunks: Iterable[list[list[Any]]]) -> Iterator[list[MetricResult]]:
        """As `score_stream`, but yields the results of each chunk; nothing is kept."""
        waiting: list[tuple[Any, ...]] = []
        for given, *systems in chunks:
            others, owners = unfolded(given)
            repeated = (
                systems
                if owners is None
                else [[texts[owner] for owner in owners] for texts in systems]
            )
            seen = (
                [*map(visible_texts, others)],
                [[*map(visible_texts, texts)] for texts in repeated],
            )
            scores = self._score_chunk(*((others, repeated) if self.reads_invisible else seen))
            if waiting:
                yield self._results(*waiting.pop())
            waiting.append((seen[0], owners, seen[1], scores))
            if not isinstance(scores, Pending):
                yield self._results(*waiting.pop())
        for chunk in waiting:
            yield self._results(*chunk)

    def _results(
        self,
        others: list[Any],
        owners: np.ndarray | None,
        systems: list[list[str]],
        computed: SystemScores,
    ) -> list[MetricResult]:
        floor, floor_parts = self._floor()
        first = [other if isinstance(other, str) else other[0] for other in others]
        counts = frozenset() if owners is None else frozenset(np.bincount(owners).tolist())
        signed = with_references(self.signature, counts)
        results = []
        for predictions, scores in zip(
            systems, computed() if isinstance(computed, Pending) else computed, strict=True
        ):
            scores.put(blank_rows(others, predictions) | scores.empty, floor, floor_parts)
            best = scores if owners is None else scores.take(best_of_each(scores.segments, owners))
            counted = {"blank": best.empty.copy(), "truncated": best.truncated}
            compared = None if owners is None else np.flatnonzero(np.diff(owners, prepend=-1))
            other_code, code = self.column_codes
            counted |= degenerate(first, predictions, code, self.compares[0], compared, other_code)
            counted["identical"] &= ~best.empty
            report = InputReport.of(len(best.segments), counted)
            line = extended(signed, policy("floor", counted)) if self.floor_degenerate else signed
            result = MetricResult(
                best.segments, best.parts, best.empty, report, line, counted, counts
            )
            if self.floor_degenerate:
                best.put(result.degenerate, floor, floor_parts)
            results.append(result)
        report_progress("segments", sum(len(result.segments) for result in results))
        return results

    def align(self, others: Sequence[str], predictions: Sequence[str]) -> list[Alignment]:
        """What was matched with what: one plan per segment, an empty one where a side holds nothing
        to compare.

        Args:
            others: n source segments, or n single references, whichever the metric `compares` with.
            predictions: n translations.

        Raises:
            InputError: as `score`; several references per segment; or the metric, as it is set up,
                matches no words.
        """
        _ = self.cells
        [name] = self.compares
        texts, checked = check(**{name: others}, predictions=predictions)
        columns = as_texts(name, texts), checked
        if self.reads_invisible:
            return list(self._align(*columns))
        aligned = self._align(*([*map(visible, column)] for column in columns))
        return [
            alignment.as_written(*pair) for alignment, *pair in zip(aligned, *columns, strict=True)
        ]

    def faults(
        self, predictions: Sequence[str], alignments: Sequence[Alignment]
    ) -> list[list[Fault]]:
        """Which words of the translations the scores suffer from.

        Args:
            predictions: n translations.
            alignments: of these, from `align`.

        Returns:
            For each translation all its words in reading order, with their severity (0 to 1) and
            their share (sum 1) of what its words take away from the score: the cost of what each
            was matched with and, where the metric has a language model, the loss of that, weighted
            as in the score. The part of sentence vectors is no word's.

        Raises:
            InputError: the columns are of unequal length; or the metric, as it is set up, matches
                no words, or gives attention, which says where a network looks, not what it finds
                wrong.
        """
        if self.cells == "attention":
            raise InputError(
                "faults: attention says where a network looks, not which words it finds wrong"
            )
        if len(alignments) != len(predictions):
            raise InputError(
                f"faults: {len(predictions)} predictions, but {len(alignments)} alignments"
            )
        if self.reads_invisible:
            return list(map(word_faults, predictions, self.evidence(list(predictions), alignments)))
        seen = [*map(visible, predictions)]
        evidence = self.evidence(seen, [*map(Alignment.as_seen, alignments, predictions)])
        return list(map(faults_as_written, predictions, map(word_faults, seen, evidence)))

    @property
    def cells(self) -> Cells:
        """What the values of the alignments mean; an `InputError` where the metric, as it is set
        up, has none."""
        raise InputError(
            "alignments: this metric compares whole texts, so there is nothing to align"
        )

    @property
    def aligns(self) -> bool:
        """Whether it matches words, as it is set up."""
        try:
            return bool(self.cells)
        except InputError:
            return False

    @property
    def blames(self) -> bool:
        """Whether it says which words of a translation are at fault."""
        return self.aligns and self.cells != "attention"

    def blame(self, others: Sequence[Any], predictions: Sequence[str]) -> list[list[Fault]]:
        """Which words of n translations the scores suffer from, as `faults` says.

        Args:
            others: as `align`.
            predictions: n translations.

        Raises:
            InputError: as `align` and `faults`.
        """
        return self.faults(predictions, self.align(others, predictions))

    def _align(self, others: list[str], predictions: list[str]) -> Iterator[Alignment]:
        """The alignments of checked texts; called only where there are `cells`."""
        raise NotImplementedError

    def evidence(
        self, predictions: list[str], alignments: Sequence[Alignment]
    ) -> list[list[Evidence]]:
        """What speaks against the words of each translation."""
        return [[match_evidence(alignment)] for alignment in alignments]


def encoded(
    encoder: Encoder, columns: Sequence[list[str]], languages: Sequence[str | None]
) -> PackedTokens:
    """Columns of n texts, laid end to end and packed; one call, so that no text is encoded twice,
    whatever a cache holds.

    Args:
        encoder: reads them.
        columns: what is compared with, then the systems.
        languages: of the first column and of all others, see `Scorer.column_languages`.
    """
    (first, rest), texts = languages, [text for column in columns for text in column]
    return encoder.encode(
        texts, [first] * len(columns[0]) + [rest] * (len(texts) - len(columns[0]))
    )


def encoded_together(
    encoder: Encoder, columns: Sequence[list[str]], languages: Sequence[str | None]
) -> list[PackedTokens]:
    """The same, of each column."""
    return encoded(encoder, columns, languages).split(len(columns[0]))


def any_truncated(*sides: PackedTokens) -> np.ndarray:
    """(n,) bool, pairs of which a side was truncated."""
    return np.any([side.truncated[side.index] for side in sides], axis=0)
