"""The table of metrics by name; no class is imported until one is asked for."""

import dataclasses
import importlib
from collections.abc import Collection
from typing import TYPE_CHECKING

from mtmetrics.scorers.side import (
    Column,
    Options,
    Side,
    SideChoice,
    requested_side,
    resolve_side,
)

if TYPE_CHECKING:
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.settings import Settings


@dataclasses.dataclass(frozen=True)
class MetricEntry:
    """A name and the class of scorers behind it.

    Attributes:
        name: of the metric.
        scorer: module of `mtmetrics.scorers`, and the class in it; of a plug-in the class.
        where: the file or package of a plug-in.
    """

    name: str
    scorer: "str | type[Scorer]"
    where: str | None = None

    def scorer_class(self) -> "type[Scorer]":
        """The class of its scorers."""
        if not isinstance(self.scorer, str):
            return self.scorer
        module, name = self.scorer.split(".")
        return getattr(importlib.import_module(f"mtmetrics.scorers.{module}"), name)

    def settings_class(self) -> "type[Settings]":
        """The class of its own options."""
        return self.scorer_class().Settings

    def keywords(self) -> list[str]:
        """The keywords that `load_scorer` takes for it besides preset and pool: language pair, side
        where there is a choice, options of the metric."""
        return [
            "lang_pair",
            *(["against"] if len(self.sides) > 1 else []),
            *self.settings_class().options(),
        ]

    def usual_preset(self) -> str | None:
        """The preset where none is named; None where none is needed."""
        scorer = self.scorer_class()
        return scorer.usual_preset if scorer.needs_preset() else None

    @property
    def takes_presets(self) -> bool:
        """Whether a preset may be named."""
        return self.scorer_class().takes_presets

    @property
    def side_choice(self) -> SideChoice:
        """The choice of what to compare with."""
        return self.scorer_class().side_choice()

    @property
    def sides(self) -> tuple[Side, ...]:
        """The sides that it can compare with."""
        return tuple(self.side_choice.sides)

    @property
    def usual(self) -> Side | None:
        """The side where both are given and `against` is not; None if that is an error."""
        return self.side_choice.usual

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it can compare with."""
        return tuple(dict.fromkeys(column for side in self.sides for column in side.columns))

    def requested_side(self, options: Options) -> str | None:
        """The side that options ask for, see `mtmetrics.scorers.side.requested_side`."""
        if "setting" in self.settings_class().options():
            return requested_side(options)
        return options.get("against")

    def resolve_side_without_preset(
        self, options: Options, given_columns: Collection[str] | None = None
    ) -> Side:
        """Returns the side to compare with where no preset has a say, see `resolve_side`."""
        return resolve_side(self.side_choice, self.requested_side(options), None, given_columns)

    def resolve_side(
        self,
        preset: str | None,
        options: Options,
        given_columns: Collection[str] | None = None,
    ) -> Side:
        """Returns the side to compare with, see `resolve_side`; the preset is only opened where it
        decides."""
        requested, preset_side = self.requested_side(options), None
        if len(self.sides) > 1 and not requested:
            preset_side = self._preset_side(preset, options)
        return resolve_side(self.side_choice, requested, preset_side, given_columns)

    def explicit_side(self, preset: str | None, options: Options) -> Side | None:
        """Returns the side that options ask for, else the only one that the preset is made for;
        None where neither chooses."""
        requested = self.requested_side(options)
        return Side(requested) if requested else self._preset_side(preset, options)

    def _preset_side(self, preset: str | None, options: Options) -> Side | None:
        return self.side_choice.preset_side(self.scorer_class().tables_of_preset(preset, options))


METRICS: dict[str, MetricEntry] = {
    name: MetricEntry(name, scorer)
    for name, scorer in {
        "xmoverscore": "xmoverscore.XMoverScore",
        "sentsim": "sentsim.SentSim",
        "distilscore": "distilscore.DistilScore",
        "uscore": "uscore.UScore",
        "bertr": "bertr.BERTR",
        "bilstm": "learned.BiLSTM",
        "bilstm_attention": "learned.BiLSTMAttention",
        "esim": "learned.ESIM",
        "source_length": "baselines.SourceLength",
        "prediction_length": "baselines.PredictionLength",
        "fluency": "baselines.Fluency",
        "random": "baselines.Chance",
        "sentbleu": "baselines.SentBLEU",
        "chrf": "baselines.ChrF",
        "chrfpp": "baselines.ChrFPlusPlus",
        "ter": "baselines.TER",
        "comet": "comet.CometScore",
        "scores": "stored.StoredScores",
        "cmd": "commands.CommandMetric",
    }.items()
}
