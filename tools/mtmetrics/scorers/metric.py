"""The registry of metrics; the class of a metric is imported when it is first needed."""

import dataclasses
import importlib
from collections.abc import Collection
from typing import TYPE_CHECKING

from mtmetrics.checks import choice
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
    """An entry of the registry: the name of a metric, and the class of its scorers.

    Attributes:
        name: name of the metric.
        scorer: the class of its scorers, as ``"module.Class"`` within `mtmetrics.scorers`; for a
            plug-in the class itself.
        plugin_path: for a plug-in the file or package that it comes from.
    """

    name: str
    scorer: "str | type[Scorer]"
    plugin_path: str | None = None

    def scorer_class(self) -> "type[Scorer]":
        """Imports the class of its scorers."""
        if not isinstance(self.scorer, str):
            return self.scorer
        module, name = self.scorer.split(".")
        return getattr(importlib.import_module(f"mtmetrics.scorers.{module}"), name)

    def settings_class(self) -> "type[Settings]":
        """The class of its settings, whose fields are its options."""
        return self.scorer_class().Settings

    def keywords(self) -> list[str]:
        """The keyword arguments of `load_scorer` for this metric, apart from `preset` and `pool`:
        ``lang_pair``, ``against`` if it can compare with several sides, and its options."""
        return [
            "lang_pair",
            *(["against"] if len(self.sides) > 1 else []),
            *self.settings_class().options(),
        ]

    def usual_preset(self) -> str | None:
        """The default preset; None if the metric needs none."""
        scorer_class = self.scorer_class()
        return scorer_class.usual_preset if scorer_class.needs_preset() else None

    @property
    def takes_presets(self) -> bool:
        """Whether the user may name a preset."""
        return self.scorer_class().takes_presets

    @property
    def side_choice(self) -> SideChoice:
        """The sides that it can compare with, and its default side."""
        return self.scorer_class().side_choice()

    @property
    def sides(self) -> tuple[Side, ...]:
        """The sides that it can compare with."""
        return tuple(self.side_choice.sides)

    @property
    def usual(self) -> Side | None:
        """The default side: it counts if the user gives sources and references, but no `against`.
        None if the user has to choose."""
        return self.side_choice.usual

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it can compare with."""
        return tuple(dict.fromkeys(column for side in self.sides for column in side.columns))

    def requested_side(self, options: Options) -> str | None:
        """Returns the side that options ask for, or None. SentSim calls it `setting`, too."""
        if "setting" in self.settings_class().options():
            return requested_side(options)
        return options.get("against")

    def explicit_side(self, preset: str | None, options: Options) -> Side | None:
        """Returns the side that options ask for, else the side of the preset, if it is made for
        only one; None if neither chooses.

        Raises:
            InputError: the options ask for something that is not a side.
        """
        requested = self.requested_side(options)
        if not requested:
            return self._preset_side(preset, options)
        return Side(choice("against", requested, tuple(Side)))

    def resolve_side(
        self,
        preset: str | None,
        options: Options,
        given_columns: Collection[str] | None = None,
    ) -> Side:
        """Returns the side to compare with, see `mtmetrics.scorers.side.resolve_side`. Opens the
        preset only if its answer is needed."""
        requested = self.requested_side(options)
        preset_side = None
        if len(self.sides) > 1 and not requested:
            preset_side = self._preset_side(preset, options)
        return resolve_side(self.side_choice, requested, preset_side, given_columns)

    def resolve_side_without_preset(
        self, options: Options, given_columns: Collection[str] | None = None
    ) -> Side:
        """Returns the side to compare with, see `resolve_side`, without looking at a preset."""
        return resolve_side(self.side_choice, self.requested_side(options), None, given_columns)

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
