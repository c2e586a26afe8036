"""The metrics by name; nothing is imported until one is asked for, so the command line knows them all at no cost."""

import dataclasses
import importlib
import inspect
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.scorers.base import Scorer

Column = Literal["sources", "references"]
# What callers pass whatever the metric; a baseline has no use for some of it.
_COMMON = ("preset", "lang_pair", "pool")


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric, and the choice that it leaves of what to compare with.

    Attributes:
        name: of the metric.
        scorer: module of `mtmetrics.scorers`, and the class in it, or a function that makes a scorer.
        values: column -> value of the option that asks for it, None where there is no option.
        option: name of that option, or None.
        usual: the column where both are given and the option is not; None if that is an error.
    """

    name: str
    scorer: str
    values: Mapping[Column, str | None] = dataclasses.field(default_factory=lambda: {"sources": None})
    option: str | None = None
    usual: Column | None = None

    def made_by(self) -> Any:
        """The class of its scorers, or the function that makes them."""
        module, name = self.scorer.split(".")
        return getattr(importlib.import_module(f"mtmetrics.scorers.{module}"), name)

    def options(self) -> dict[str, inspect.Parameter]:
        """What `load_scorer` takes for it: the arguments of its ``from_preset`` and, where that passes settings on, the
        keywords of the scorer itself."""
        made_by = self.made_by()
        known = dict(inspect.signature(getattr(made_by, "from_preset", made_by)).parameters)
        if known.pop("settings", None):
            for name, parameter in inspect.signature(made_by).parameters.items():
                if parameter.kind is parameter.KEYWORD_ONLY:
                    known.setdefault(name, parameter)
        return known

    def default_preset(self) -> str | None:
        """The preset where none is named; None for a metric without presets."""
        preset = self.options().get("preset")
        return None if preset is None else preset.default

    def against(self, side: str) -> str | None:
        """The value of its option that asks for the ``"source"`` or the ``"reference"``."""
        sides = {"source": "sources", "reference": "references"}
        if side not in sides:
            raise InputError(f"against {side!r}: must be one of source, reference")
        if sides[side] not in self.values:
            raise InputError(f"{self.name} compares with {' or '.join(self.values)} only, not with a {side}")
        return self.values[sides[side]]

    def only(self, settings: Mapping[str, Any]) -> Column | None:
        """The one column that a preset with these settings is made for; None where it leaves the choice."""
        named = {settings.get("score", {}).get("against"), *settings, *settings.get("regressors", {})}
        columns = [column for column, value in self.values.items() if value in named]
        return columns[0] if len(columns) == 1 and self.option else None

    def choose(self, given: Collection[str], asked: Any = None) -> tuple[Column, dict[str, Any]]:
        """The column to compare with, and the option that says so to `load_scorer`.

        Args:
            given: the columns that the user passed.
            asked: value of the option, or None.

        Raises:
            InputError: the column is missing, or both are there and nothing says which one counts.
        """
        if asked is not None:
            wanted = [column for column, value in self.values.items() if value == asked]
            if not wanted:
                raise InputError(f"{self.option} {asked!r}: must be one of {', '.join(map(str, self.values.values()))}")
            if wanted[0] not in given:
                raise InputError(f"{self.option}={asked!r} compares with {wanted[0]}; pass {wanted[0]}")
            return wanted[0], {self.option or "": asked}
        found = [column for column in self.values if column in given]
        if not found:
            columns = " or ".join(self.values)
            raise InputError(f"{self.name} compares predictions with {columns}; pass {columns}")
        if len(found) == 2 and self.usual is None:
            choices = " or ".join(f"{self.option}={value!r}" for value in self.values.values())
            raise InputError(f"both sources and references are given: pass {choices}")
        column = found[0] if len(found) == 1 or self.usual is None else self.usual
        return column, {} if self.option is None else {self.option: self.values[column]}


_AGAINST: dict[Column, str | None] = {"sources": "source", "references": "reference"}
_REFERENCES: dict[Column, str | None] = {"references": None}
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("xmoverscore", "xmoverscore.XMoverScore"),
        Metric("sentsim", "sentsim.SentSim", {"sources": "src-mt", "references": "mt-ref"}, "setting"),
        Metric("distilscore", "distilscore.DistilScore", _AGAINST, "against", "sources"),
        Metric("uscore", "uscore.UScore"),
        Metric("bertr", "bertr.BERTR", _AGAINST, "against", "references"),
        Metric("bilstm", "learned.BiLSTM", _AGAINST, "against", "references"),
        Metric("bilstm_attention", "learned.BiLSTMAttention", _AGAINST, "against", "references"),
        Metric("esim", "learned.ESIM", _AGAINST, "against", "references"),
        Metric("source_length", "baselines.source_length"),
        Metric("prediction_length", "baselines.prediction_length"),
        Metric("fluency", "baselines.Fluency"),
        Metric("random", "baselines.chance"),
        Metric("sentbleu", "baselines.sentbleu", _REFERENCES),
        Metric("chrf", "baselines.chrf", _REFERENCES),
        Metric("chrfpp", "baselines.chrfpp", _REFERENCES),
        Metric("ter", "baselines.ter", _REFERENCES),
    )
}


def find_metric(name: str) -> Metric:
    if name not in METRICS:
        raise InputError(f"metric {name!r}: must be one of {', '.join(METRICS)}")
    return METRICS[name]


def has_presets(metric: str) -> bool:
    """Whether a preset changes anything about a metric."""
    return "preset" in find_metric(metric).options()


def load_scorer(metric: str, preset: str | None = None, **options: Any) -> "Scorer":
    """The scorer of a metric by name.

    Args:
        metric: one of `METRICS`.
        preset: name of a preset, or a folder with a preset.toml; the metric's default if None.
        **options: see `Metric.options`; None means that the preset decides. `preset`, `lang_pair` and `pool` may be
            passed to any metric, also to a baseline that depends on none of them; its signature leaves them out.

    Raises:
        InputError: an unknown metric, an option that it does not have, or as its ``from_preset``.
        ArtifactError: as its ``from_preset``.
    """
    found = find_metric(metric)
    options["preset"] = preset
    known = found.options()
    for name, value in options.items():
        if name not in (*known, *_COMMON) and value is not None:
            takes = ", ".join(option for option in known if option != "pool")
            raise InputError(f"{metric} has no option {name!r}; it takes: {takes or 'none'}")
    passed = {name: value for name, value in options.items() if name in known and value is not None}
    for name, parameter in known.items():
        if parameter.default is parameter.empty:  # its ``from_preset`` says what is missing
            passed.setdefault(name, None)
    made_by = found.made_by()
    return getattr(made_by, "from_preset", made_by)(**passed)
