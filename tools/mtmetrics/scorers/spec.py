"""Metrics as users write them: ``NAME:PRESET:option=value,...``."""

import dataclasses
from collections.abc import Collection
from typing import Any

from mtmetrics.checks import split_pair
from mtmetrics.errors import InputError
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.metric import MetricEntry
from mtmetrics.scorers.registry import find_metric, load_scorer
from mtmetrics.scorers.settings import parse_value, plain_types

# Arguments of `load_scorer` that no option sets: other parts of the text have the metric and the
# preset, and the caller of `MetricSpec.load` passes the others.
_NO_OPTIONS = ("metric", "preset", "pool", "lang_pair")


@dataclasses.dataclass(frozen=True)
class MetricSpec:
    """A metric, its preset, and the options that override the preset.

    Attributes:
        metric: name of the metric.
        preset: name or folder of the preset, in which ``{lp}`` stands for the language pair; None
            for the default one of the metric.
        options: pairs of name and value.
    """

    metric: str
    preset: str | None = None
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(cls, text: str) -> "MetricSpec":
        """Reads ``NAME[:PRESET[:option=value,...]]``; an empty preset is the default.

        A value is parsed as a type that the option allows, see `parse_value`. The value of an
        unknown option may have any of these types; only `load` refuses the option.

        Raises:
            InputError: the text has no name or an unknown one; a preset, though the metric takes
                none; an option without a value, with a value of the wrong type, or twice; or
                ``metric``, ``preset``, ``pool`` or ``lang_pair`` as an option.

        Example:
            >>> MetricSpec.parse("xmoverscore:mini:layer=1,map=none").options
            (('layer', 1), ('map', 'none'))
            >>> str(MetricSpec.parse("sentsim::variant=wmd"))
            'sentsim::variant=wmd'
        """
        name_of_metric, _, rest = text.partition(":")
        if not name_of_metric.strip():
            needed = "NAME, NAME:PRESET or NAME:PRESET:option=value,... is needed"
            raise InputError(f"metric {text!r}: has no name; {needed}", option="metric")
        metric = find_metric(name_of_metric.strip())
        preset, _, listed = rest.partition(":")
        options: dict[str, Any] = {}
        for item in listed.split(",") if listed else []:
            name, equals, value = item.partition("=")
            name, value = name.strip().replace("-", "_"), value.strip()
            if not equals or not name or not value or name in options or name in _NO_OPTIONS:
                needed = "NAME:PRESET:option=value,option=value is needed"
                raise InputError(
                    f"metric {text!r}: {item!r} cannot be used; {needed}", option="metric"
                )
            options[name] = _value(metric, name, value)
        spec = cls(metric.name, preset.strip() or None, tuple(options.items()))
        if spec.preset is not None and not metric.takes_presets:
            without_preset = dataclasses.replace(spec, preset=None)
            raise InputError(
                f"metric {text!r}: {spec.metric} has no presets; write {without_preset}",
                option="metric",
            )
        return spec

    def __str__(self) -> str:
        shown = (
            f"{name}={str(value).lower() if isinstance(value, bool) else value}"
            for name, value in self.options
        )
        return f"{self.metric}:{self.preset or ''}:{','.join(shown)}".rstrip(":")

    def filled(self, preset: str | None, options: dict[str, Any]) -> "MetricSpec":
        """Returns a copy with a preset and options where the user names none.

        Args:
            preset: name or folder of the preset; None for the default one of the metric. A metric
                without a `Scorer.usual_preset` gets no preset.
            options: name -> value.
        """
        metric = find_metric(self.metric)
        filled_preset = self.preset
        if filled_preset is None and metric.scorer_class().usual_preset is not None:
            filled_preset = preset or metric.usual_preset()
        return MetricSpec(self.metric, filled_preset, tuple((options | dict(self.options)).items()))

    def having(self, **options: Any) -> "MetricSpec":
        """Returns a copy with these options, which replace those of the same name."""
        return dataclasses.replace(self, options=tuple((dict(self.options) | options).items()))

    def load(self, pool: ModelPool, lang_pair: str | None) -> Scorer:
        """Loads the scorer of the metric for a language pair.

        Raises:
            InputError, ArtifactError: the errors of `load_scorer`.
        """
        options = dict(self.options)
        return load_scorer(
            self.metric, self.preset_of(lang_pair), pool=pool, lang_pair=lang_pair, **options
        )

    def preset_of(self, lang_pair: str | None) -> str | None:
        """Returns the preset for a language pair, in which the pair replaces ``{lp}``.

        Raises:
            InputError: the preset has ``{lp}``, but `lang_pair` is not a language pair.
        """
        if self.preset is None or "{lp}" not in self.preset:
            return self.preset
        # One folder for each language pair, as `mtmetrics train uscore` makes them.
        return self.preset.replace("{lp}", "-".join(split_pair(lang_pair)))

    def load_for(self, columns: Collection[str], pool: ModelPool, lang_pair: str | None) -> Scorer:
        """Loads the scorer that compares with the columns that are given.

        Args:
            columns: ``sources``, ``references`` or both.
            pool, lang_pair: as for `load`.

        Raises:
            InputError: the metric cannot compare with a column that is given alone; or a score
                depends on other segments than its own.
            InputError, ArtifactError: the errors of `load`.
        """
        spec = self
        # If both are given, the preset or the default decides between them.
        if len(columns) == 1:
            metric = find_metric(self.metric)
            spec = self.having(
                against=metric.resolve_side_without_preset(dict(self.options), columns)
            )
        scorer = spec.load(pool, lang_pair)
        if not scorer.has_independent_segments:
            raise InputError(
                "scores depend on the other segments of the same system here, so they cannot be "
                "compared; use normalize=fixed, with a preset that has bounds (sentsim: mini)",
                mentions=["normalize=fixed"],
            )
        return scorer


def _value(metric: MetricEntry, option: str, text: str) -> Any:
    """Parses the value of an option of a metric.

    Raises:
        InputError: the option does not allow a value of this type.
    """
    field = metric.settings_class().options().get(option)
    types = {bool, int, float, str} if field is None else plain_types(field)
    try:
        return parse_value(types, text)
    except InputError as error:
        raise InputError(
            f"metric {metric.name}: '{option}={text}' cannot be used; {error}", option="metric"
        ) from None
