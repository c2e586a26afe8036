"""Scorers in other processes: a pickle holds what a scorer was loaded from, and loads it again
where it is read."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.metric import METRICS

if TYPE_CHECKING:
    from mtmetrics.scorers.base import Scorer

# Running options, as text -> the pool of this process for them, so that scorers which arrive later
# find their models.
_POOLS: dict[str, ModelPool] = {}


@dataclasses.dataclass(frozen=True)
class Origin:
    """The names that a scorer was loaded by, as `Scorer.from_preset` took them.

    Attributes:
        preset, lang_pair, options: its arguments.
        running: keywords of `mtmetrics.models.running.Running`, of the pool that it took.
    """

    preset: str | None
    lang_pair: str | None
    options: Mapping[str, Any]
    running: Mapping[str, Any]


def found_by(made_by: "type[Scorer]") -> tuple[str, str | None] | None:
    """The name of the metric of a class, and the file of the plug-in that brings it, None where
    there is no such file; None for a class that is not that of a metric with a name."""
    metric = METRICS.get(getattr(made_by, "metric", ""))
    if metric is None or metric.made_by() is not made_by:
        return None
    is_file = metric.where is not None and Path(metric.where).is_file()
    return metric.name, metric.where if is_file else None


def reloaded(metric: str, plugin: str | None, origin: Origin) -> "Scorer":
    """A scorer that was loaded by names, loaded again; scorers of one process share their models.

    Args:
        metric, plugin: as `found_by` gives them.
        origin: the other names.

    Raises:
        InputError: as `mtmetrics.scorers.registry.load_scorer`.
        ArtifactError: a plug-in or a model cannot be loaded here.
    """
    from mtmetrics.scorers.plugins import load_plugin
    from mtmetrics.scorers.registry import find_metric

    if plugin is not None:
        load_plugin(plugin)
    key = repr(sorted(origin.running.items()))
    if key not in _POOLS:
        _POOLS[key] = ModelPool(**origin.running)
    made_by = find_metric(metric).made_by()
    return made_by.from_preset(
        origin.preset, lang_pair=origin.lang_pair, pool=_POOLS[key], **origin.options
    )
