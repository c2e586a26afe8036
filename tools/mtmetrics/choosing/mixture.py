"""Several metrics as one number: a weighted sum."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from mtmetrics.checks import InputReport, number
from mtmetrics.errors import InputError
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.metric import MetricEntry
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.spec import MetricSpec


def load_scorers(
    specs: Mapping[str, MetricSpec],
    columns: Collection[str],
    pool: ModelPool,
    lang_pair: str | None,
    mbr: bool = False,
) -> dict[str, Scorer]:
    """Loads metrics by name.

    Args:
        specs: name -> the metric.
        columns: ``sources`` and ``references``, as far as there are such texts.
        pool: loads the models.
        lang_pair: such as ``"de-en"``.
        mbr: whether the other candidates serve as references. Then a metric compares with these,
            and with the source too if it compares with both.

    Raises:
        InputError: a metric compares with texts that are not among the columns; names the metric.
    """
    scorers = {}
    for name, spec in specs.items():
        metric = find_metric(spec.metric)
        if mbr and metric.sides == ("source",):
            raise InputError(
                f"metric {name}: {spec.metric} compares with sources; expected utility (mbr) needs "
                "a metric that compares with references, such as chrf or sentsim:mini",
                option="metric",
            )
        try:
            metric_columns = columns
            if mbr:
                further_columns = columns if _reads_both(metric, spec) else ()
                metric_columns = {"references", *further_columns}
            scorers[name] = spec.load_for(metric_columns, pool, lang_pair)
        except InputError as error:
            raise error.within(f"metric {name}", option="metric") from None
    return scorers


def _reads_both(metric: MetricEntry, spec: MetricSpec) -> bool:
    """Whether a metric that compares with references compares with the source at the same time."""
    reference_sides = {"reference", "both"} & {*metric.sides}
    if len(reference_sides) == 1:
        return "both" in reference_sides
    return metric.explicit_side(spec.preset, dict(spec.options)) == "both"


class Mixture:
    """A weighted sum of metrics, as they are, without scaling.

    Args:
        scorers: by the names that weights are given to.
        weights: name -> weight; a metric that is not named has 1.
        model_scores: names of scores by the translation model; a score without a weight has 0.

    Raises:
        InputError: a weight of something unknown, or one that is no finite number.
    """

    def __init__(
        self,
        scorers: Mapping[str, Scorer],
        weights: Mapping[str, float] | None = None,
        model_scores: Iterable[str] = (),
    ) -> None:
        self.scorers = dict(scorers)
        self.weights = dict.fromkeys(scorers, 1.0) | dict.fromkeys(model_scores, 0.0)
        for name, value in (weights or {}).items():
            if name not in self.weights:
                names = ", ".join(self.weights) or "nothing"
                raise InputError(
                    f"weight of {name!r}: there is no such score; weights can be given to: {names}"
                )
            self.weights[name] = number(f"weight of {name!r}:", value)
        self.reports = {name: InputReport() for name in scorers}

    def score(
        self,
        columns: Mapping[str, Sequence[object]],
        predictions: Sequence[str],
    ) -> np.ndarray:
        """(k, n) scores of n translations by k metrics.

        Each metric takes the columns that it compares with, ``sources`` and ``references``; equal
        texts are encoded once.
        """
        rows = [np.zeros((0, len(predictions)))]
        for name, scorer in self.scorers.items():
            batch = Batch({"": list(predictions)}, **columns)
            [[result]] = scorer.score_batches([batch])
            self.reports[name].add(result.report)
            rows.append(result.segments[None])
        return np.concatenate(rows)

    def sum(self, values: np.ndarray) -> np.ndarray:
        """(n,) weighted sums of (k, n) values in the order of the weights."""
        return np.array([*self.weights.values()]) @ values

    def about(self) -> dict[str, dict[str, object]]:
        """Metric -> its weight, its signature, and the counts of unusual segments; for reports."""
        return {
            name: {
                "weight": self.weights[name],
                "signature": scorer.signature,
                "report": self.reports[name].as_dict(),
            }
            for name, scorer in self.scorers.items()
        }
