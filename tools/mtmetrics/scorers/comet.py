"""COMET (Rei et al., 2020): the scores of checkpoints that others have published."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.checks import as_texts, check, compared_columns
from mtmetrics.errors import InputError
from mtmetrics.matching.plan import Alignment, Cells, greedy_plan
from mtmetrics.matching.word_errors import Evidence, Fault, word_faults
from mtmetrics.models.comet_network import PENALTIES, Comet, CometScores, ErrorSpan
from mtmetrics.models.text_units import spans_of
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.metric import SIDES
from mtmetrics.scorers.preset_tables import Opened, model_name
from mtmetrics.scorers.results import ChunkScores
from mtmetrics.scorers.settings import option

_NAMES = {"sources": "src", "references": "ref"}
# Of words at fault: in the middle of the levels that are shown as doubtful and as wrong, and the
# highest.
_SEVERITIES = {"minor": 0.6, "major": 0.85, "critical": 1.0}


class CometScore(Scorer):
    """How a checkpoint of COMET, trained by others on judgements, would have people judge a
    translation.

    What such checkpoints compute is in `mtmetrics.models.comet_network`. A segment with a blank
    side gets the floor that the conversion recorded: 0, or -2 for checkpoints of 2020 and 2021,
    whose scores are standardised. Parts, where texts are read as one sequence: ``src``, ``ref`` and
    ``unified``, the scores of the inputs; of XCOMET also ``mqm``, that of the errors that it found.

    Args:
        model: the checkpoint.
        against: what to compare with, where it has the choice; by default source and reference.
        **options: of `CometScore.Settings`.

    Raises:
        InputError: it cannot compare with that.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of COMET."""

        model: str | None = option(
            None,
            "another converted checkpoint: a folder or Hub repository",
            usage="MODEL",
            signed="model",
            opens=True,
        )

    metric = "comet"
    reads_invisible: ClassVar = True
    usual_preset: ClassVar = "wmt22-comet-da"
    tables: ClassVar = {"comet": {"model", "revision"}}
    scale = "about 0 to 1 for checkpoints since 2022"
    told_parts = "src, ref, unified and mqm, of checkpoints that read one sequence"
    told_alignments = (
        "of checkpoints that find no errors, per segment the pieces of `source` (the reference, "
        "where that is read) and `prediction`, and the cosines of their vectors (`values`), of "
        "which no score is made"
    )

    def __init__(
        self,
        model: Comet,
        *,
        against: str | None = None,
        lang_pair: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(lang_pair, **options)
        self.model, self.dtype = model, model.dtype
        sides = model.settings.sides
        if against not in (None, *sides):
            able = " or the ".join(SIDES[side] for side in sides)
            raise InputError(
                f"against {against!r}: COMET {model.label} compares with the {able}",
                option="against",
            )
        self.compare_with(against or sides[0], sides)

    @classmethod
    def from_opened(cls, opened: Opened) -> Self:
        """Its own model knows what the preset compares with; another one says it itself."""
        own = opened.chosen.model
        table = opened.model_table(
            "comet", {"model": own} if own else opened.bundle.settings.get("comet", {})
        )
        if not own:
            opened.side()
        return cls(opened.pool.comet(**table), against=opened.against, lang_pair=opened.lang_pair)

    def pinned(self, option: str) -> Any:
        return model_name(self.model)

    def errors(self, others: Sequence[Any], predictions: Sequence[str]) -> list[list[ErrorSpan]]:
        """The errors that the network found in n translations, of one that looks for them.

        Raises:
            InputError: it does not look for errors; or as `score`.
        """
        if not self.model.settings.error_labels:
            raise InputError(
                f"errors: COMET {self.model.label} gives scores alone; XCOMET finds errors"
            )
        *columns, texts = check(**compared_columns(self.compares, others), predictions=predictions)
        return self._scores(dict(zip(self.compares, columns, strict=True)), texts).errors

    @property
    def cells(self) -> Cells:
        """Cosines, of a checkpoint that finds no errors."""
        return super().cells if self.model.settings.error_labels else "cosine"

    @property
    def blames(self) -> bool:
        return True

    def align(self, others: Sequence[Any], predictions: Sequence[str]) -> list[Alignment]:
        """As `Scorer.align`: each piece of the translation with the nearest of the reference or,
        where that is not read, of the source. No score is made of it, but of the same vectors."""
        _ = self.cells
        *columns, texts = check(**compared_columns(self.compares, others), predictions=predictions)
        sides = (
            self.model.pieces(as_texts(self.compares[-1], column))
            for column in (columns[-1], texts)
        )
        return [
            greedy_plan(first, second, x @ y.T, (1, np.ones(len(y))))
            if len(x) and len(y)
            else Alignment.nothing("cosine")
            for (x, first), (y, second) in zip(*sides, strict=True)
        ]

    def blame(self, others: Sequence[Any], predictions: Sequence[str]) -> list[list[Fault]]:
        """The words of the errors that the network found, and the share of each in what they cost
        in MQM; of a network that looks for none, as `Scorer.blame`."""
        if not self.model.settings.error_labels:
            return super().blame(others, predictions)
        found = self.errors(others, predictions)
        return [
            word_faults(text, [_evidence(spans)])
            for text, spans in zip(predictions, found, strict=True)
        ]

    def _score_chunk(self, others: list[Any], systems: list[list[str]]) -> list[ChunkScores]:
        columns = compared_columns(self.compares, others)
        repeated = {name: list(texts) * len(systems) for name, texts in columns.items()}
        found = self._scores(repeated, [text for texts in systems for text in texts])
        count = len(others)
        results = []
        for place in range(len(systems)):
            own = slice(place * count, (place + 1) * count)
            parts = {name: values[own].copy() for name, values in found.parts.items()}
            nothing = np.zeros(count, dtype=bool)
            results.append(
                ChunkScores(found.scores[own].copy(), parts, found.truncated[own], nothing)
            )
        return results

    def _scores(self, columns: dict[Any, list[str]], texts: list[str]) -> CometScores:
        return self.model.score(texts, {_NAMES[name]: column for name, column in columns.items()})

    def _floor(self) -> tuple[float, dict[str, float]]:
        return self.model.settings.floor, dict.fromkeys(self.parts, self.model.settings.floor)

    @property
    def parts(self) -> list[str]:
        """Names of the parts of its scores."""
        told = self.model.settings
        if not told.joint:
            return []
        inputs = [_NAMES[name] for name in self.compares]
        errors = ["mqm"] if told.class_identifier == "xcomet_metric" else []
        return [*inputs, *(["unified"] if len(inputs) > 1 else []), *errors]


def _evidence(spans: Sequence[ErrorSpan]) -> Evidence:
    places = spans_of([(span.start, span.end) for span in spans])
    costs = np.array([PENALTIES[span.severity] for span in spans], dtype=np.float64)
    return Evidence(
        places, costs, np.array([_SEVERITIES[span.severity] for span in spans], dtype=np.float64)
    )
