"""The metrics by name; nothing is imported until one is asked for, so the command line knows them
all at no cost."""

import functools
from typing import TYPE_CHECKING, Any

from mtmetrics.errors import InputError
from mtmetrics.scorers.metric import METRICS, MetricEntry
from mtmetrics.scorers.side import resolve_side

if TYPE_CHECKING:
    from mtmetrics.scorers.base import Scorer

# What any metric may be passed, besides its own options.
_COMMON = ("preset", "lang_pair", "pool", "against")


def known_metric(name: str) -> MetricEntry | None:
    """The metric of a name, be it that of a plug-in that is installed; None where there is none."""
    if name not in METRICS:
        installed_plugins()
    return METRICS.get(name)


@functools.cache
def installed_plugins() -> list[str]:
    """Makes the metrics of installed plug-ins known, once, and returns their names."""
    from mtmetrics.scorers.plugins import plugin_metrics

    return plugin_metrics()


def find_metric(name: str) -> MetricEntry:
    metric = known_metric(name)
    if metric is None:
        raise InputError(f"metric {name!r}: must be one of {', '.join(METRICS)}", option="metric")
    return metric


def load_scorer(metric: str, preset: str | None = None, **options: Any) -> "Scorer":
    """The scorer of a metric by name.

    Args:
        metric: one of `METRICS`.
        preset: name of a preset, or a folder with a preset.toml; the metric's default if None.
        **options: see `MetricEntry.keywords`; None means that the preset decides. `preset`, `lang_pair`,
            `pool`, and `against` with a side that it compares with, may be passed to any metric,
            also to a baseline that depends on none of them; its signature leaves them out.

    Raises:
        InputError: an unknown metric, an option that it does not have, or as `Scorer.load`.
        ArtifactError: as `Scorer.load`.
    """
    spec = find_metric(metric)
    keywords = spec.keywords()
    presets = ["preset"] if spec.takes_presets else []
    for name, value in options.items():
        if name not in (*keywords, *_COMMON) and value is not None:
            raise InputError(
                f"{metric} has no option {name!r}; it takes: {', '.join([*presets, *keywords])}"
            )
    if len(spec.sides) == 1:
        resolve_side(spec.side_choice, options.pop("against", None), None, None)
    set_options = {name: value for name, value in options.items() if value is not None}
    return spec.scorer_class().load(preset or spec.usual_preset(), **set_options)
