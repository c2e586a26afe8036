"""Metrics that other packages and files bring: how one is written, and how it is found."""

import dataclasses
import importlib.metadata
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import is_finite_number
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.foreign import ForeignMetric
from mtmetrics.scorers.metric import METRICS, MetricEntry
from mtmetrics.scorers.reloading import Origin
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import Settings
from mtmetrics.scorers.side import Side, resolve_side
from mtmetrics.scorers.signature import with_fields


class PluginMetric(ForeignMetric):
    """A metric of somebody else. A subclass sets its name, `metric`, and defines `segment_scores`.
    It is then a metric like all others: on the command line, in comparisons, tables, reranking and
    filtering.

    It is found in a file that is named (``--plugin FILE.py``, or the environment variable
    ``MTMETRICS_PLUGINS``, paths joined as in ``PATH``), or where a package declares it as entry
    point of the group ``mtmetrics.metrics``. Options are fields of its `Settings`, see
    `mtmetrics.option`; those that name a key of the signature stand in it.

    Attributes:
        sides: what it can compare with, of ``"source"``, ``"reference"`` and ``"both"``.
        usual: the default side, if the user passes no `against`. On the command line it counts only
            if texts of several sides are given. None: the command line raises an error then, and
            Python takes the first of `sides`.
        lower_is_better: whether lower scores are better. If so, they are turned round (multiplied
            by -1), and the signature says so.
        floor: score of a segment with a blank text, before it is turned round. `segment_scores`
            does not get such segments.
        version: version of the metric, for the signature. Raise it when the scores change.
    """

    usual_preset = None
    floor = 0.0
    version: ClassVar[str] = "1"

    def __init__(
        self, lang_pair: str | None = None, *, settings: Settings | None = None, **options: Any
    ) -> None:
        super().__init__(lang_pair, settings=settings, **options)
        choices = self.side_choice()
        choices = choices._replace(usual=choices.usual or choices.sides[0])
        self.set_side(resolve_side(choices, self.settings.against, None, None), choices.sides)
        self.open()

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """Makes the metric with these settings. It needs no preset; one that the user names may
        choose the side."""
        if len(cls.sides) > 1 and preset.name:
            side = cls.choose_side(preset, settings.against)
            settings = dataclasses.replace(settings, against=side)
        return cls(settings=settings)

    def _reload_call(self, origin: Origin) -> tuple[Callable[..., Scorer], tuple[Any, ...]]:
        """The metric of a file is loaded from this file again."""
        file = METRICS[self.metric].plugin_path if self.metric in METRICS else None
        if file is None or not Path(file).is_file():
            return super()._reload_call(origin)
        return _reload_from_file, (file, self.metric, origin)

    def open(self) -> None:
        """Loads models or files once, before the first call of `segment_scores`. `settings` and
        `side` are set already."""

    def segment_scores(
        self,
        predictions: list[str],
        sources: list[str] | None = None,
        references: list[str] | None = None,
    ) -> Sequence[float]:
        """Returns one finite number for each of n translations; none of the texts is blank.

        Args:
            predictions: n translations.
            sources: n texts; not passed if `side` is ``"reference"``.
            references: n texts; not passed if `side` is ``"source"``.
        """
        raise NotImplementedError

    @property
    def signature(self) -> str:
        return with_fields(super().signature, *self._signs, f"plugin:{self.version}")

    def compute(self, batch: Batch) -> list[PartScores]:
        scores = []
        seen = batch.without_invisible()
        for name, predictions in seen.systems.items():
            numbers = np.zeros(len(batch))  # segments with a blank text get the floor later
            filled = np.flatnonzero(~seen.blank_mask(predictions))
            if len(filled):
                numbers[filled] = self._scores_of(batch.take(filled.tolist()), name)
            scores.append(self._turned(numbers))
        return scores

    def _scores_of(self, batch: Batch, system: str) -> np.ndarray:
        """Returns the (n,) numbers of one system. No text of the n segments is blank."""
        texts = {}
        if batch.sources is not None:
            texts["sources"] = list(batch.sources)
        if batch.references is not None:
            texts["references"] = batch.single_references
        scores = self.segment_scores(list(batch.systems[system]), **texts)
        return self._checked(scores, len(batch))

    def _checked(self, scores: Sequence[float], count: int) -> np.ndarray:
        try:
            values = np.asarray(scores, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"metric {self.metric}: its scores are no numbers ({error})", option="metric"
            ) from error
        if values.shape != (count,) or not np.isfinite(values).all():
            wrong = f"{count} finite numbers are needed for {count} segments"
            raise InputError(
                f"metric {self.metric}: {wrong}, it gave an array of shape {values.shape}",
                option="metric",
            )
        return values


def _reload_from_file(file: str, metric: str, origin: Origin) -> Scorer:
    """Loads a scorer again in another process, with the plug-in that brings its metric."""
    load_plugin(file)
    return METRICS[metric].scorer_class().reload(origin)


def load_plugin(path: str | Path) -> list[str]:
    """Makes the metrics of a Python file known, and returns their names.

    Raises:
        InputError: there is no such file, it has no `PluginMetric`, or `register` refuses one.
        ArtifactError: the file cannot be run.
    """
    path = Path(path).resolve()
    if not path.is_file():
        raise InputError(f"plugin {path}: no such file")
    if registered_names := [
        name for name, metric in METRICS.items() if metric.plugin_path == str(path)
    ]:
        return registered_names
    name = f"mtmetrics_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"plugin {path}: a Python file is needed, FILE.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the code of others raises
        raise ArtifactError(
            f"plugin {path}: cannot be loaded ({type(error).__name__}: {error})"
        ) from error
    metrics = [
        value for value in vars(module).values() if _is_metric(value) and value.__module__ == name
    ]
    if not metrics:
        raise InputError(f"plugin {path}: has no class made from mtmetrics.PluginMetric")
    return [register(metric, str(path)) for metric in metrics]


def plugin_metrics() -> list[str]:
    """Makes the metrics of installed packages, and of the files in ``MTMETRICS_PLUGINS``, known.
    Returns their names.

    Raises:
        ArtifactError: one of them cannot be loaded; the message names it.
        InputError: as `load_plugin` and `register`.
    """
    names = []
    for path in filter(None, os.environ.get("MTMETRICS_PLUGINS", "").split(os.pathsep)):
        names += load_plugin(path)
    for point in importlib.metadata.entry_points(group="mtmetrics.metrics"):
        where = f"{point.name} of the package {point.dist.name if point.dist else '?'}"
        try:
            metric = point.load()
        except Exception as error:  # whatever the code of others raises
            raise ArtifactError(
                f"plugin {where}: cannot be loaded ({type(error).__name__}: {error})"
            ) from error
        if not _is_metric(metric):
            raise ArtifactError(f"plugin {where}: no class made from mtmetrics.PluginMetric")
        names.append(register(metric, where))
    return names


def register(metric: type[PluginMetric], where: str) -> str:
    """Makes a class known under the name of its metric, and returns this name.

    Args:
        metric: the class.
        where: the file or package that it comes from.

    Raises:
        InputError: `sides`, `floor` or `segment_scores` are invalid; the metric has no name, or
            that of another class.
    """
    name = getattr(metric, "metric", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(
            f"plugin {where}: the class {metric.__name__} needs a name, such as metric = "
            "'my_metric'"
        )
    if not metric.sides or not {*metric.sides} <= {*Side} or not is_finite_number(metric.floor):
        raise InputError(
            f"plugin {where}: {name} needs sides of {', '.join(Side)}, and a finite floor"
        )
    _, *texts = inspect.signature(metric.segment_scores).parameters
    if texts[:1] != ["predictions"]:
        needed = "segment_scores(self, predictions, sources=None, references=None)"
        raise InputError(f"plugin {where}: {name}: since 2.0 the method is {needed}")
    registered = METRICS.get(name)
    if registered is not None and not (
        registered.scorer is metric and registered.plugin_path == where
    ):
        raise InputError(f"plugin {where}: the name {name!r} is taken by another metric")
    METRICS[name] = MetricEntry(name, metric, where)
    return name


def _is_metric(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, PluginMetric) and value is not PluginMetric
