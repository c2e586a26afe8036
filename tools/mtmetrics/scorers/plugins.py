"""Metrics that other packages and files bring: how one is written, and how it is found."""

import importlib.metadata
import importlib.util
import inspect
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.scorers.foreign import ForeignMetric
from mtmetrics.scorers.metric import COLUMNS, METRICS, Metric
from mtmetrics.scorers.preset_tables import Opened, extended
from mtmetrics.scorers.results import ChunkScores, blank_rows

__all__ = ["PluginMetric", "load_plugin", "plugin_metrics"]


class PluginMetric(ForeignMetric):
    """A metric of somebody else. A subclass names itself in `metric`, gives `segment_scores`, and
    is then a metric like all others: on the command line, in comparisons, tables, reranking and
    filtering.

    It is found in a file that is named (``--plugin FILE.py``, or the environment variable
    ``MTMETRICS_PLUGINS``, paths joined as in ``PATH``), or where a package declares it as entry
    point of the group ``mtmetrics.metrics``. Options are fields of its `Settings`, see
    `mtmetrics.option`; those that name a key of the signature stand in it.

    Attributes:
        sides: what it can compare with, of ``"source"``, ``"reference"`` and ``"both"``.
        usual: the side where texts of both are given and `against` says nothing; None if that is an
            error.
        lower_is_better: its scores are turned round (multiplied by -1), and the signature says so.
        floor: score of a segment of which a side is blank, on its own scale; the metric itself does
            not see it.
        version: stands in the signature, so that it pins the scores.
    """

    usual_preset = None
    sides: ClassVar[tuple[str, ...]] = ("source",)
    usual: ClassVar[str | None] = None
    floor = 0.0
    version: ClassVar[str] = "1"

    def __init__(
        self, lang_pair: str | None = None, *, against: str | None = None, **options: Any
    ) -> None:
        super().__init__(lang_pair, **options)
        side = Metric(self.metric, type(self), self.sides, self.usual or self.sides[0]).side(
            {"against": against}
        )
        self.compare_with(side, self.sides)
        self.open()

    @classmethod
    def from_opened(cls, opened: Opened) -> Self:
        """The metric with the options of a preset; it needs none."""
        against = opened.wanted_side() if len(cls.sides) > 1 else None
        return cls(**opened.keywords(), against=against)

    def open(self) -> None:
        """Loads what scoring needs, once; `settings` are known."""

    def segment_scores(self, others: list[Any], predictions: list[str]) -> Sequence[float]:
        """One finite number for each of n pairs of a source, or a reference, and its translation;
        none of the texts is blank. Of a metric that compares with both, each of `others` has a
        ``source`` and a ``reference``."""
        raise NotImplementedError

    @property
    def signature(self) -> str:
        return extended(super().signature, *self._signs, f"plugin:{self.version}")

    def _score_chunk(self, others: list[Any], systems: list[list[str]]) -> list[ChunkScores]:
        results = []
        for texts in systems:
            numbers, kept = np.zeros(len(texts)), np.flatnonzero(~blank_rows(others, texts))
            if len(kept):
                found = self.segment_scores(
                    [others[row] for row in kept], [texts[row] for row in kept]
                )
                numbers[kept] = self._checked(found, len(kept))
            results.append(self._turned(numbers))
        return results

    def _checked(self, found: Any, count: int) -> np.ndarray:
        try:
            values = np.asarray(found, dtype=np.float64)
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


def load_plugin(path: str | Path) -> list[str]:
    """Makes the metrics of a Python file known, and returns their names.

    Raises:
        InputError: there is no such file, it has no `PluginMetric`, or one of a name that is taken.
        ArtifactError: the file cannot be run.
    """
    path = Path(path).resolve()
    if not path.is_file():
        raise InputError(f"plugin {path}: no such file")
    if known := [name for name, metric in METRICS.items() if metric.where == str(path)]:
        return known
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
    own = [
        found for found in vars(module).values() if _is_metric(found) and found.__module__ == name
    ]
    if not own:
        raise InputError(f"plugin {path}: has no class made from mtmetrics.PluginMetric")
    return [register(found, str(path)) for found in own]


def plugin_metrics() -> list[str]:
    """Makes the metrics known that installed packages and ``MTMETRICS_PLUGINS`` name, and returns
    their names.

    Raises:
        ArtifactError: one of them cannot be loaded; the message names it.
        InputError: as `load_plugin`.
    """
    names = []
    for path in filter(None, os.environ.get("MTMETRICS_PLUGINS", "").split(os.pathsep)):
        names += load_plugin(path)
    for point in importlib.metadata.entry_points(group="mtmetrics.metrics"):
        where = f"{point.name} of the package {point.dist.name if point.dist else '?'}"
        try:
            found = point.load()
        except Exception as error:  # whatever the code of others raises
            raise ArtifactError(
                f"plugin {where}: cannot be loaded ({type(error).__name__}: {error})"
            ) from error
        if not _is_metric(found):
            raise ArtifactError(f"plugin {where}: no class made from mtmetrics.PluginMetric")
        names.append(register(found, where))
    return names


def register(metric: type[PluginMetric], where: str) -> str:
    """Makes a class known under the name of its metric, which has to be free or the same
    class's."""
    name = getattr(metric, "metric", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(
            f"plugin {where}: the class {metric.__name__} needs a name, such as metric = "
            "'my_metric'"
        )
    if not metric.sides or not {*metric.sides} <= {*COLUMNS} or not math.isfinite(metric.floor):
        raise InputError(
            f"plugin {where}: {name} needs sides of {', '.join(COLUMNS)}, and a finite floor"
        )
    known = METRICS.get(name)
    if known is not None and not (isinstance(known.scorer, type) and known.where == where):
        raise InputError(f"plugin {where}: the name {name!r} is taken by another metric")
    METRICS[name] = Metric(name, metric, metric.sides, metric.usual, where)
    return name


def _is_metric(found: Any) -> bool:
    return inspect.isclass(found) and issubclass(found, PluginMetric) and found is not PluginMetric
