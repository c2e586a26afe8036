"""Finds metrics by name, also those of plug-ins, and loads their scorers. The class of a metric is
imported only when it is needed, so that the command line starts fast."""

import functools
from typing import TYPE_CHECKING, Any

from mtmetrics.errors import InputError
from mtmetrics.scorers.metric import METRICS, MetricEntry
from mtmetrics.scorers.side import resolve_side

if TYPE_CHECKING:
    from mtmetrics.scorers.base import Scorer

# Keywords that `load_scorer` takes for every metric, besides the options of the metric.
_COMMON = ("lang_pair", "pool", "against")


def known_metric(name: str) -> MetricEntry | None:
    """Returns the metric with this name; None if there is none. Looks for plug-ins if no metric that
    is known so far has the name."""
    if name not in METRICS:
        installed_plugins()
    return METRICS.get(name)


@functools.cache
def installed_plugins() -> list[str]:
    """Adds the metrics of plug-ins to `METRICS`, once per process, and returns their names. Plug-ins
    are found as `mtmetrics.scorers.plugins.plugin_metrics` says."""
    from mtmetrics.scorers.plugins import plugin_metrics

    return plugin_metrics()


def find_metric(name: str) -> MetricEntry:
    """Returns the metric with this name, see `known_metric`.

    Raises:
        InputError: there is none.
    """
    metric = known_metric(name)
    if metric is None:
        raise InputError(f"metric {name!r}: must be one of {', '.join(METRICS)}", option="metric")
    return metric


def load_scorer(metric: str, preset: str | None = None, **options: Any) -> "Scorer":
    """Loads the scorer of a metric.

    Args:
        metric: name of the metric, see `find_metric`.
        preset: name of a preset, or a folder with a preset.toml; None for the default one of the
            metric. A metric that takes no presets ignores it.
        **options: the keywords of `MetricEntry.keywords`; None means that the preset decides.
            `lang_pair`, `pool` and `against` may be passed to every metric, also to one that does
            not depend on them (its signature leaves them out); but `against` has to be a side that
            it compares with.

    Raises:
        InputError: an unknown metric, or an option that it does not have.
        InputError, ArtifactError: the errors of `Scorer.load`.
    """
    entry = find_metric(metric)
    keywords = entry.keywords()
    presets = ["preset"] if entry.takes_presets else []
    for name, value in options.items():
        if name not in (*keywords, *_COMMON) and value is not None:
            raise InputError(
                f"{metric} has no option {name!r}; it takes: {', '.join([*presets, *keywords])}"
            )
    if len(entry.sides) == 1:
        resolve_side(entry.side_choice, options.pop("against", None), None, None)
    set_options = {name: value for name, value in options.items() if value is not None}
    return entry.scorer_class().load(preset or entry.usual_preset(), **set_options)
