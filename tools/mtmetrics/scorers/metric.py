"""The metrics by name, and what each can compare translations with; no class is imported until one
is asked for."""

import dataclasses
import importlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from mtmetrics.scorers.side import (
    SETTING_OF_SIDE,
    Column,
    Side,
    requested_side,
    resolve_side,
)

if TYPE_CHECKING:
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.settings import Settings


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric, and the choice that it leaves of what to compare with.

    Attributes:
        name: of the metric.
        scorer: module of `mtmetrics.scorers`, and the class in it; of a plug-in the class.
        sides: what it can compare with.
        usual: the side where both are given and `against` is not; None if that is an error.
        where: the file or package of a plug-in.
    """

    name: str
    scorer: "str | type[Scorer]"
    sides: tuple[Side, ...] = (Side.SOURCE,)
    usual: Side | None = None
    where: str | None = None

    def made_by(self) -> "type[Scorer]":
        """The class of its scorers."""
        if not isinstance(self.scorer, str):
            return self.scorer
        module, name = self.scorer.split(".")
        return getattr(importlib.import_module(f"mtmetrics.scorers.{module}"), name)

    def settings(self) -> "type[Settings]":
        """The class of its own options."""
        return self.made_by().Settings

    def keywords(self) -> list[str]:
        """The keywords that `load_scorer` takes for it besides preset and pool: language pair, side
        where there is a choice, options of the metric."""
        return [
            "lang_pair",
            *(["against"] if len(self.sides) > 1 else []),
            *self.settings().options(),
        ]

    def usual_preset(self) -> str | None:
        """The preset where none is named; None where none is needed."""
        made_by = self.made_by()
        return made_by.usual_preset if made_by.needs_preset() else None

    @property
    def takes_presets(self) -> bool:
        """Whether a preset may be named."""
        return self.made_by().takes_presets

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it can compare with."""
        return tuple(dict.fromkeys(column for side in self.sides for column in side.columns))

    def sides_of(self, settings: Mapping[str, Any]) -> list[Side]:
        """The sides that a preset with these settings is made for; all where it names none."""
        named = settings.get("score", {}).get("against")
        if named is not None:
            made_for = {named}
        else:
            made_for = {*settings.get("regressors", {})}
            for side, setting in SETTING_OF_SIDE.items():
                if {setting, f"{setting}s"} & settings.keys():
                    made_for.add(side)
        return [side for side in self.sides if side in made_for] or [*self.sides]

    def preset_side(self, settings: Mapping[str, Any]) -> Side | None:
        """The one side that a preset with these settings is made for; None where it leaves the
        choice."""
        sides = self.sides_of(settings)
        return sides[0] if len(sides) == 1 and len(self.sides) > 1 else None

    def settings_for(self, side: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a preset without the tables that are read for other sides alone."""
        of_other_sides = {
            table
            for other, setting in SETTING_OF_SIDE.items()
            if other != side
            for table in (setting, f"{setting}s")
        }
        kept = {name: value for name, value in settings.items() if name not in of_other_sides}
        if "regressors" in kept:
            regressors = kept["regressors"]
            kept["regressors"] = {side: regressors[side]} if side in regressors else {}
        return kept

    def requested_side(self, options: Mapping[str, Any]) -> str | None:
        """The side that options ask for, see `mtmetrics.scorers.side.requested_side`."""
        if "setting" in self.settings().options():
            return requested_side(options)
        return options.get("against")

    def side_of_options(
        self, options: Mapping[str, Any], given_columns: Collection[str] | None = None
    ) -> Side:
        """Returns the side to compare with where no preset has a say, see `resolve_side`."""
        return resolve_side(self, self.requested_side(options), None, given_columns)

    def side_of_preset(
        self,
        preset: str | None,
        options: Mapping[str, Any],
        given_columns: Collection[str] | None = None,
    ) -> Side:
        """Returns the side to compare with, see `resolve_side`; the preset is only opened where it
        decides."""
        requested, preset_side = self.requested_side(options), None
        if len(self.sides) > 1 and not requested:
            preset_side = self.preset_side(self.made_by().preset_settings(preset, options))
        return resolve_side(self, requested, preset_side, given_columns)


_EITHER = (Side.SOURCE, Side.REFERENCE)
_REFERENCE = (Side.REFERENCE,)
_ANY = tuple(Side)
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("xmoverscore", "xmoverscore.XMoverScore"),
        Metric("sentsim", "sentsim.SentSim", _EITHER),
        Metric("distilscore", "distilscore.DistilScore", _EITHER, Side.SOURCE),
        Metric("uscore", "uscore.UScore"),
        Metric("bertr", "bertr.BERTR", _EITHER, Side.REFERENCE),
        Metric("bilstm", "learned.BiLSTM", _ANY, Side.REFERENCE),
        Metric("bilstm_attention", "learned.BiLSTMAttention", _ANY, Side.REFERENCE),
        Metric("esim", "learned.ESIM", _ANY, Side.REFERENCE),
        Metric("source_length", "baselines.SourceLength"),
        Metric("prediction_length", "baselines.PredictionLength"),
        Metric("fluency", "baselines.Fluency"),
        Metric("random", "baselines.Chance"),
        Metric("sentbleu", "baselines.SentBLEU", _REFERENCE),
        Metric("chrf", "baselines.ChrF", _REFERENCE),
        Metric("chrfpp", "baselines.ChrFPlusPlus", _REFERENCE),
        Metric("ter", "baselines.TER", _REFERENCE),
        Metric("comet", "comet.CometScore", _ANY, Side.BOTH),
        Metric("scores", "stored.StoredScores", _EITHER, Side.SOURCE),
        Metric("cmd", "commands.CommandMetric", _ANY, Side.BOTH),
    )
}
