"""The metrics by name, and what each can compare translations with; no class is imported until one
is asked for."""

import dataclasses
import importlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

from mtmetrics.checks import choice
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.settings import Settings

Column = Literal["sources", "references"]
# What a metric is told to compare with -> the columns of the input.
COLUMNS: dict[str, tuple[Column, ...]] = {
    "source": ("sources",),
    "reference": ("references",),
    "both": ("sources", "references"),
}
# How a side is called where it is read.
SIDES = {"source": "source", "reference": "reference", "both": "source and the reference"}
# Column -> what a field of rows of text is called that holds it.
KEYS: dict[Column, str] = {"sources": "source", "references": "reference"}
# What the paper of SentSim calls the sides.
SETTINGS: dict[str, str] = {"source": "src-mt", "reference": "mt-ref"}


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric, and the choice that it leaves of what to compare with.

    Attributes:
        name: of the metric.
        scorer: module of `mtmetrics.scorers`, and the class in it; of a plug-in the class.
        sides: what it can compare with, of `COLUMNS`.
        usual: the side where both are given and `against` is not; None if that is an error.
        where: the file or package of a plug-in.
    """

    name: str
    scorer: "str | type[Scorer]"
    sides: tuple[str, ...] = ("source",)
    usual: str | None = None
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
        """What `load_scorer` takes for it besides preset and pool: language pair, side where there
        is a choice, own options."""
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
        return tuple(dict.fromkeys(column for side in self.sides for column in COLUMNS[side]))

    def sides_of(self, settings: Mapping[str, Any]) -> list[str]:
        """The sides that a preset with these settings is made for; all where it names none."""
        said = settings.get("score", {}).get("against")
        holds = {side for side, name in SETTINGS.items() if {name, f"{name}s"} & settings.keys()}
        named = {*settings.get("regressors", {}), *holds} if said is None else {said}
        return [side for side in self.sides if side in named] or [*self.sides]

    def settings_for(self, side: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a preset without the tables that are read for other sides alone."""
        elsewhere = {
            table
            for other, name in SETTINGS.items()
            if other != side
            for table in (name, f"{name}s")
        }
        kept = {name: value for name, value in settings.items() if name not in elsewhere}
        if "regressors" in kept:
            kept["regressors"] = {
                name: table for name, table in kept["regressors"].items() if name == side
            }
        return kept

    def only(self, settings: Mapping[str, Any]) -> str | None:
        """The one side that a preset with these settings is made for; None where it leaves the
        choice."""
        found = self.sides_of(settings)
        return found[0] if len(found) == 1 and len(self.sides) > 1 else None

    def asked(self, options: Mapping[str, Any]) -> str | None:
        """The side that options ask for, by `against` or, of SentSim, by its alias `setting`; None
        where they ask for none."""
        against, setting = options.get("against"), options.get("setting")
        if setting is None or "setting" not in self.settings().options():
            return against
        choice("setting", setting, tuple(SETTINGS.values()))
        [side] = [side for side, name in SETTINGS.items() if name == setting]
        if against not in (None, side):
            raise InputError(
                f"against {against!r} and setting {setting!r} contradict; pass one of them",
                option="against",
            )
        return side

    def side(
        self,
        options: Mapping[str, Any],
        given: Collection[str] | None = None,
        preset: Mapping[str, Any] | None = None,
    ) -> str:
        """``"source"``, ``"reference"`` or ``"both"``, whichever the metric is to compare with.

        Args:
            options: as `load_scorer` takes them; what they ask for decides.
            given: the columns that the user passed, where that is known.
            preset: settings of the preset, where they are known; a preset that is made for one side
                decides where the options do not, then the columns, then what is usual.

        Raises:
            InputError: the metric cannot compare with that side, or it is not given; or nothing
                says which one counts.
        """
        asked = self.asked(options)
        there = [side for side in self.sides if given is None or {*COLUMNS[side]} <= {*given}]
        known = " or ".join(
            " and ".join(COLUMNS[side])
            for side in self.sides
            if side != "both" or len(self.sides) == 1
        )
        known += ", or both" if "both" in self.sides and len(self.sides) > 1 else ""
        if asked is not None:
            choice("against", asked, tuple(COLUMNS))
            if asked not in self.sides:
                wrong = "both" if asked == "both" else f"a {asked}"
                raise InputError(f"{self.name} compares with {known} only, not with {wrong}")
            if asked not in there:
                needed = " and ".join(COLUMNS[asked])
                raise InputError(
                    f"against={asked!r} compares with {needed}; pass {needed}",
                    option="against",
                    mentions=[f"against={asked!r}", *COLUMNS[asked]],
                )
            return asked
        if not there:
            raise InputError(
                f"{self.name} compares predictions with {known}; pass {known}",
                mentions=["sources", "references"],
            )
        only = None if preset is None else self.only(preset)
        if only in there:
            return str(only)
        if len(there) > 1 and self.usual is None:
            both = f"{self.name}: both sources and references are given"
            if given is None:
                both = f"{self.name} compares with the source or the reference"
            raise InputError(
                f"{both}: pass against='source' or against='reference'",
                mentions=["against='source'", "against='reference'"],
            )
        return there[0] if len(there) == 1 else str(self.usual)

    def side_of_preset(
        self, preset: str | None, options: Mapping[str, Any], given: Collection[str] | None = None
    ) -> str:
        """As `side`, of a preset by its name, which is opened where it decides."""
        decides = len(self.sides) > 1 and not self.asked(options)
        return self.side(
            options, given, self.made_by().preset_settings(preset, options) if decides else None
        )


_EITHER, _REFERENCE = ("source", "reference"), ("reference",)
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("xmoverscore", "xmoverscore.XMoverScore"),
        Metric("sentsim", "sentsim.SentSim", _EITHER),
        Metric("distilscore", "distilscore.DistilScore", _EITHER, "source"),
        Metric("uscore", "uscore.UScore"),
        Metric("bertr", "bertr.BERTR", _EITHER, "reference"),
        Metric("bilstm", "learned.BiLSTM", tuple(COLUMNS), "reference"),
        Metric("bilstm_attention", "learned.BiLSTMAttention", tuple(COLUMNS), "reference"),
        Metric("esim", "learned.ESIM", tuple(COLUMNS), "reference"),
        Metric("source_length", "baselines.SourceLength"),
        Metric("prediction_length", "baselines.PredictionLength"),
        Metric("fluency", "baselines.Fluency"),
        Metric("random", "baselines.Chance"),
        Metric("sentbleu", "baselines.SentBLEU", _REFERENCE),
        Metric("chrf", "baselines.ChrF", _REFERENCE),
        Metric("chrfpp", "baselines.ChrFPlusPlus", _REFERENCE),
        Metric("ter", "baselines.TER", _REFERENCE),
        Metric("comet", "comet.CometScore", tuple(COLUMNS), "both"),
        Metric("scores", "stored.StoredScores", _EITHER, "source"),
        Metric("cmd", "commands.CommandMetric", tuple(COLUMNS), "both"),
    )
}
