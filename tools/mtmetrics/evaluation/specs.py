"""How a user names a metric: ``NAME``, ``NAME:PRESET`` or ``NAME:PRESET:option=value,...``."""

import dataclasses
from typing import Any

from mtmetrics.errors import InputError
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.scorers.registry import METRICS, has_presets, load_scorer

_OWN = ("metric", "preset", "pool", "lang_pair")
_WORDS = {"true": True, "false": False}


@dataclasses.dataclass(frozen=True)
class MetricSpec:
    """A metric with its preset and what overrides the preset.

    Attributes:
        metric: name, such as ``"xmoverscore"``.
        preset: name of a preset or a folder; None for the metric's own default.
        options: names and values of options of the metric's loader.
    """

    metric: str
    preset: str | None = None
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(cls, text: str) -> "MetricSpec":
        """Reads what a user wrote; an empty preset, as in ``sentsim::variant=wmd``, is the default.

        Values are ``true`` and ``false``, numbers where they look like numbers, and text otherwise.

        Raises:
            InputError: no name, an option without a value, twice the same, or one that is no option of a metric.

        Example:
            >>> MetricSpec.parse("xmoverscore:mini:layer=1,map=none").options
            (('layer', 1), ('map', 'none'))
            >>> str(MetricSpec.parse("sentsim::variant=wmd"))
            'sentsim::variant=wmd'
        """
        metric, _, rest = text.partition(":")
        if not metric.strip():
            raise InputError(
                f"metric {text!r}: has no name; NAME, NAME:PRESET or NAME:PRESET:option=value,... is needed"
            )
        preset, _, listed = rest.partition(":")
        options: dict[str, Any] = {}
        for item in listed.split(",") if listed else []:
            name, equals, value = item.partition("=")
            name = name.strip().replace("-", "_")
            if not equals or not name or name in options or name in _OWN:
                raise InputError(
                    f"metric {text!r}: {item!r} cannot be used; NAME:PRESET:option=value,option=value is needed"
                )
            options[name] = _value(value.strip())
        return cls(metric.strip(), preset.strip() or None, tuple(options.items()))

    def __str__(self) -> str:
        options = ",".join(
            f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in self.options
        )
        return f"{self.metric}:{self.preset or ''}:{options}".rstrip(":")

    def filled(self, preset: str, options: dict[str, Any]) -> "MetricSpec":
        """The same metric, with a preset, where it has presets, and options for what it does not say itself."""
        takes = METRICS[self.metric].options() if self.metric in METRICS else ()
        return MetricSpec(
            self.metric,
            self.preset or (preset if "preset" in takes else None),
            tuple((options | dict(self.options)).items()),
        )

    def having(self, **options: Any) -> "MetricSpec":
        """The same metric with other options."""
        return dataclasses.replace(self, options=tuple((dict(self.options) | options).items()))

    def load(self, pool: ModelPool, lang_pair: str) -> Scorer:
        """The scorer of the metric for a language pair.

        Raises:
            InputError: a preset of a metric that has none, or as `mtmetrics.scorers.registry.load_scorer`.
            ArtifactError: as there.
        """
        if self.preset is not None and not has_presets(self.metric):
            raise InputError(
                f"metric {str(self)!r}: {self.metric} has no presets; write {dataclasses.replace(self, preset=None)}"
            )
        preset = {} if self.preset is None else {"preset": self.preset}
        return load_scorer(self.metric, pool=pool, lang_pair=lang_pair, **preset, **dict(self.options))


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
