"""COMET (Rei et al., 2020): the scores of checkpoints that others have published."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import as_texts
from mtmetrics.errors import InputError
from mtmetrics.matching.plan import Alignment, Cells, greedy_plan
from mtmetrics.matching.word_errors import Evidence, Fault, word_faults
from mtmetrics.models.comet_network import MQM_PENALTIES, Comet, CometScores, ErrorSpan
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.text_units import spans_of
from mtmetrics.scorers.base import refuse_positional
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import model_table
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import Settings as BaseSettings
from mtmetrics.scorers.settings import loading_option
from mtmetrics.scorers.side import Column, Side
from mtmetrics.scorers.signature import model_name
from mtmetrics.scorers.words import WordScorer

# Name of a column -> the role of its texts in `mtmetrics.models.comet_network`.
_ROLES: dict[Column, str] = {"sources": "src", "references": "ref"}
# Severity of an error -> severity of its words (0 to 1): the middle of the range that is shown as
# doubtful, the middle of the range that is shown as wrong (see
# `mtmetrics.matching.word_errors.LEVELS`), and the highest value.
_SEVERITIES = {"minor": 0.6, "major": 0.85, "critical": 1.0}


class CometScore(WordScorer):
    """The score of a published checkpoint of COMET, which was trained to predict judgements by
    people.

    The formulas are in `mtmetrics.models.comet_network`. A segment with a blank side gets the floor
    that the conversion recorded: 0, or -2 for checkpoints of 2020 and 2021, whose scores are
    standardised.

    Only checkpoints that read several texts as one sequence have parts: ``src``, ``ref`` and
    ``unified``, the scores with the source, with the reference and with both. XCOMET also has
    ``mqm``, which is computed from the errors that it found.

    Args:
        model: the checkpoint.
        settings: all options as one object, which replaces `options`.
        **options: `against`, the side to compare with: one of the sides of the checkpoint. The
            default is the first of them: both source and reference, if the checkpoint reads both.

    Raises:
        InputError: the checkpoint cannot compare with that side.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(BaseSettings):
        """The options of COMET."""

        model: str | None = loading_option(
            "another converted checkpoint: a folder, or a Hub repository",
            usage="MODEL",
        )

    settings: Settings

    metric = "comet"
    sides = tuple(Side)
    usual = Side.BOTH
    keeps_invisible: ClassVar = True
    usual_preset: ClassVar = "wmt22-comet-da"
    preset_keys: ClassVar = {"comet": {"model", "revision"}}
    scale = "about 0 to 1 for checkpoints since 2022"
    parts_help = (
        "for the unified and the XCOMET checkpoints: the scores against the source (`src`), the "
        "reference (`ref`) and both (`unified`); for XCOMET also `mqm`, computed from the errors "
        "that it found"
    )
    alignments_help = (
        "for all checkpoints but XCOMET: per segment the pieces of the reference (or of the source, "
        "if no reference is read) as `source`, those of the `prediction`, and the cosines of their "
        "vectors (`values`); the score is not computed from these cosines"
    )

    def __init__(self, model: Comet, *, settings: Settings | None = None, **options: Any) -> None:
        super().__init__(settings=settings, **options)
        self.model, self.dtype = model, model.dtype
        against, sides = self.settings.against, tuple(map(Side, model.settings.sides))
        if against not in (None, *sides):
            side_labels = " or the ".join(side.label for side in sides)
            raise InputError(
                f"against {str(against)!r}: COMET {model.label} compares with the {side_labels}",
                option="against",
            )
        self.set_side(against or sides[0], sides)

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """Loads the checkpoint of the user, or else that of the preset.

        `against` decides the side. Without it the preset does, if it names a side and its checkpoint
        is used; otherwise the checkpoint does.

        Raises:
            InputError: the preset or the checkpoint cannot compare with that side.
            ArtifactError: the preset names no checkpoint, or it cannot be loaded.
        """
        if settings.model:
            return cls(models.comet(preset.path(settings.model)), settings=settings)
        cls.choose_allowed_side(preset, settings.against)  # refuses a side that the preset excludes
        against = settings.against or cls.side_choice().preset_side(preset.settings)
        settings = dataclasses.replace(settings, against=against)
        table = model_table(preset, "comet", preset.settings.get("comet", {}))
        return cls(models.comet(**table), settings=settings)

    def signature_fields(self) -> dict[str, object]:
        return {"model": model_name(self.model), **self.settings.signature_fields()}

    def errors(
        self,
        predictions: Sequence[str],
        *others: object,
        sources: Sequence[str] | None = None,
        references: Sequence[str] | None = None,
    ) -> list[list[ErrorSpan]]:
        """Finds the errors in n translations, with a checkpoint that does, such as XCOMET; see `align`
        for the arguments.

        Raises:
            InputError: the checkpoint finds no errors; a segment has several references; or the
                errors of `score`.
        """
        refuse_positional("errors", "predictions", others)
        if not self.model.settings.error_labels:
            raise InputError(
                f"errors: COMET {self.model.label} gives scores alone; XCOMET finds errors"
            )
        batch = self.checked_batch({"": predictions}, sources=sources, references=references)
        if batch.references is not None:
            as_texts("references", batch.references)  # raises at a list of references
        return self._scores(batch).errors

    @property
    def cells(self) -> Cells:
        """Meaning of the values of alignments: cosines.

        Raises:
            InputError: with a checkpoint that finds errors, such as XCOMET: it aligns no words.
        """
        if self.model.settings.error_labels:
            raise InputError(f"alignments: {self.no_alignments_reason}")
        return "cosine"

    @property
    def can_blame(self) -> bool:
        """True: XCOMET finds errors, and other checkpoints align words."""
        return True

    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        """Matches each word piece of the translation with the nearest piece of the reference; or of
        the source, if no reference is read. The score is not computed from these matches."""
        compared = (
            batch.sources_or_references if batch.references is None else batch.single_references
        )
        [predictions] = batch.predictions
        sides = [self.model.piece_vectors(texts) for texts in (compared, predictions)]
        for (x, x_pieces), (y, y_pieces) in zip(*sides, strict=True):
            if len(x) and len(y):
                # Precision: every piece of the translation (side 1) looks for its best match.
                yield greedy_plan(x_pieces, y_pieces, x @ y.T, (1, np.ones(len(y))))
            else:
                yield Alignment.nothing("cosine")

    def blame(
        self,
        predictions: Sequence[str],
        *others: object,
        sources: Sequence[str] | None = None,
        references: Sequence[str] | None = None,
    ) -> list[list[Fault]]:
        """Finds the words that lower the scores; see `align` for the arguments and `faults` for the
        result. With XCOMET these are the words of the errors that it finds, and the share of a word
        is its share of their MQM penalties."""
        refuse_positional("blame", "predictions", others)
        if not self.model.settings.error_labels:
            return super().blame(predictions, sources=sources, references=references)
        errors = self.errors(predictions, sources=sources, references=references)
        return [
            word_faults(text, [_evidence(spans)])
            for text, spans in zip(predictions, errors, strict=True)
        ]

    def compute(self, batch: Batch) -> list[PartScores]:
        scored = self._scores(batch)
        none_empty = np.zeros(len(scored.scores), dtype=bool)
        scores = PartScores(scored.scores, scored.parts, scored.truncated, empty=none_empty)
        return scores.split(len(batch.systems))

    def _scores(self, batch: Batch) -> CometScores:
        """Returns the scores of all systems, one after the other."""
        columns = {"sources": batch.sources or (), "references": batch.single_references}
        # The compared texts, once for each system.
        repeated_texts = {
            _ROLES[name]: list(columns[name]) * len(batch.systems) for name in self.side.columns
        }
        translations = [text for predictions in batch.predictions for text in predictions]
        return self.model.score(translations, repeated_texts)

    def floor_with_parts(self) -> tuple[float, dict[str, float]]:
        return self.model.settings.floor, dict.fromkeys(self.parts, self.model.settings.floor)

    @property
    def parts(self) -> list[str]:
        """Names of the parts of a score, see the docstring of the class."""
        checkpoint = self.model.settings
        if not checkpoint.joint:
            return []
        parts = [_ROLES[name] for name in self.side.columns]
        if len(parts) > 1:
            parts.append("unified")
        if checkpoint.class_identifier == "xcomet_metric":
            parts.append("mqm")
        return parts


def _evidence(errors: Sequence[ErrorSpan]) -> Evidence:
    """Returns the evidence of errors against the words of a translation."""
    spans = spans_of([(error.start, error.end) for error in errors])
    penalties = np.array([MQM_PENALTIES[error.severity] for error in errors], dtype=np.float64)
    severities = np.array([_SEVERITIES[error.severity] for error in errors], dtype=np.float64)
    return Evidence(spans, penalties, severities)
