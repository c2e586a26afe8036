"""Several metrics as one number: a weighted sum."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mtmetrics.checks import InputReport, number
from mtmetrics.errors import InputError
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.metric import Metric
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.spec import MetricSpec


def load_scorers(
    specs: Mapping[str, MetricSpec],
    given: Collection[str],
    pool: ModelPool,
    lang_pair: str | None,
    mbr: bool = False,
) -> dict[str, Scorer]:
    """Metrics by name, each of which compares with what it can of the `given` columns; with `mbr`
    with references, which the other candidates are, or with those and the source. Errors name the
    metric."""
    scorers = {}
    for name, spec in specs.items():
        metric = find_metric(spec.metric)
        if mbr and metric.sides == ("source",):
            why = (
                f"{spec.metric} compares with sources; expected utility (mbr) needs a metric "
                "that compares with "
            )
            raise InputError(
                f"metric {name}: {why}references, such as chrf or sentsim:mini", option="metric"
            )
        try:
            columns = (
                {"references", *(given if _reads_both(metric, spec) else ())} if mbr else given
            )
            scorers[name] = spec.load_for(columns, pool, lang_pair)
        except InputError as error:
            raise error.within(f"metric {name}", option="metric") from None
    return scorers


def _reads_both(metric: Metric, spec: MetricSpec) -> bool:
    """Whether it compares with references together with the source only."""
    if len({"reference", "both"} & {*metric.sides}) == 1:
        return "both" in metric.sides
    options = dict(spec.options)
    return "both" in (
        metric.requested_side(options),
        metric.choices.preset_side(metric.made_by().preset_settings(spec.preset, options)),
    )


class Mixture:
    """A weighted sum of metrics, as they are, without scaling.

    Args:
        scorers: by the names that weights are given to.
        weights: name -> weight; a metric that is not named has 1.
        others: names of further numbers that may have a weight; one that is not named has 0.

    Raises:
        InputError: a weight of something unknown, or one that is no finite number.
    """

    def __init__(
        self,
        scorers: Mapping[str, Scorer],
        weights: Mapping[str, float] | None = None,
        others: Iterable[str] = (),
    ) -> None:
        self.scorers = dict(scorers)
        self.weights = dict.fromkeys(scorers, 1.0) | dict.fromkeys(others, 0.0)
        for name, value in (weights or {}).items():
            if name not in self.weights:
                names = ", ".join(self.weights) or "nothing"
                raise InputError(
                    f"weight of {name!r}: there is no such score; weights can be given to: {names}"
                )
            self.weights[name] = number(f"weight of {name!r}:", value)
        self.reports = {name: InputReport() for name in scorers}

    def score(self, columns: Mapping[str, Sequence[Any]], predictions: Sequence[str]) -> np.ndarray:
        """(k, n) scores of n translations by k metrics, each of which picks the columns that it
        compares with; texts that are equal are encoded once."""
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

    def about(self) -> dict[str, Any]:
        """For reports, of each metric: its weight, its signature, and the counts of unusual
        segments."""
        return {
            name: {
                "weight": self.weights[name],
                "signature": scorer.signature,
                "report": self.reports[name].as_dict(),
            }
            for name, scorer in self.scorers.items()
        }
