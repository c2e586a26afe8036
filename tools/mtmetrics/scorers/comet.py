"""COMET (Rei et al., 2020): the scores of checkpoints that others have published."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
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

_NAMES: dict[Column, str] = {"sources": "src", "references": "ref"}
# Of words at fault: in the middle of the levels that are shown as doubtful and as wrong, and the
# highest.
_SEVERITIES = {"minor": 0.6, "major": 0.85, "critical": 1.0}


class CometScore(WordScorer):
    """How a checkpoint of COMET, trained by others on judgements, would have people judge a
    translation.

    What such checkpoints compute is in `mtmetrics.models.comet_network`. A segment with a blank
    side gets the floor that the conversion recorded: 0, or -2 for checkpoints of 2020 and 2021,
    whose scores are standardised. Parts, where texts are read as one sequence: ``src``, ``ref`` and
    ``unified``, the scores of the inputs; of XCOMET also ``mqm``, that of the errors that it found.

    Args:
        model: the checkpoint.
        **options: `against`, what to compare with, where the checkpoint has the choice; by default
            source and reference.

    Raises:
        InputError: it cannot compare with that.
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
            able = " or the ".join(side.label for side in sides)
            raise InputError(
                f"against {str(against)!r}: COMET {model.label} compares with the {able}",
                option="against",
            )
        self.set_side(against or sides[0], sides)

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """The model of a preset compares with what the preset says; the user's own says it
        itself."""
        if settings.model:
            return cls(models.comet(preset.path(settings.model)), settings=settings)
        cls.choose_allowed_side(preset, settings.against)
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
        """Finds the errors in n translations, with a network that looks for them.

        Takes the arguments of `align`.

        Raises:
            InputError: it does not look for errors; or as `score`.
        """
        refuse_positional("errors", "predictions", others)
        if not self.model.settings.error_labels:
            raise InputError(
                f"errors: COMET {self.model.label} gives scores alone; XCOMET finds errors"
            )
        batch = self.checked_batch({"": predictions}, sources=sources, references=references)
        return self._scores(batch).errors

    @property
    def cells(self) -> Cells:
        """Cosines, of a checkpoint that finds no errors."""
        if self.model.settings.error_labels:
            raise InputError(f"alignments: {self.no_alignments_reason}")
        return "cosine"

    @property
    def can_blame(self) -> bool:
        """True: an error that the network found is that of words."""
        return True

    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        """Matches each piece of the translation with the nearest of the reference or, where that is
        not read, of the source. No score is made of it, but of the same vectors."""
        compared = (
            batch.sources_or_references if batch.references is None else batch.single_references
        )
        [predictions] = batch.predictions
        sides = [self.model.piece_vectors(texts) for texts in (compared, predictions)]
        for (x, first), (y, second) in zip(*sides, strict=True):
            if len(x) and len(y):
                yield greedy_plan(first, second, x @ y.T, (1, np.ones(len(y))))
            else:
                yield Alignment.nothing("cosine")

    def blame(
        self,
        predictions: Sequence[str],
        *others: object,
        sources: Sequence[str] | None = None,
        references: Sequence[str] | None = None,
    ) -> list[list[Fault]]:
        """Finds the words of the errors that the network found, and the share of each in what they
        cost in MQM; of a network that looks for none, those that `faults` finds."""
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
        no_row = np.zeros(len(scored.scores), dtype=bool)
        scores = PartScores(scored.scores, scored.parts, scored.truncated, empty=no_row)
        return scores.split(len(batch.systems))

    def _scores(self, batch: Batch) -> CometScores:
        """The scores of all systems, one after the other."""
        count = len(batch.systems)
        columns = {"sources": batch.sources or (), "references": batch.single_references}
        repeated = {_NAMES[name]: list(columns[name]) * count for name in self.side.columns}
        return self.model.score(
            [text for predictions in batch.predictions for text in predictions], repeated
        )

    def floor_with_parts(self) -> tuple[float, dict[str, float]]:
        return self.model.settings.floor, dict.fromkeys(self.parts, self.model.settings.floor)

    @property
    def parts(self) -> list[str]:
        """Names of the parts of its scores."""
        checkpoint = self.model.settings
        if not checkpoint.joint:
            return []
        parts = [_NAMES[name] for name in self.side.columns]
        if len(parts) > 1:
            parts.append("unified")
        if checkpoint.class_identifier == "xcomet_metric":
            parts.append("mqm")
        return parts


def _evidence(spans: Sequence[ErrorSpan]) -> Evidence:
    places = spans_of([(span.start, span.end) for span in spans])
    costs = np.array([MQM_PENALTIES[span.severity] for span in spans], dtype=np.float64)
    return Evidence(
        places, costs, np.array([_SEVERITIES[span.severity] for span in spans], dtype=np.float64)
    )
