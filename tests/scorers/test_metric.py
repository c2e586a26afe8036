"""The metrics by name: all of them are there."""

from mtmetrics.layout import metric_names
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.metric import METRICS


def test_every_script_has_a_scorer_that_says_its_name() -> None:
    assert set(metric_names()) <= METRICS.keys()
    for name in metric_names():
        scorer = METRICS[name].scorer_class()
        assert issubclass(scorer, Scorer)
        assert scorer.metric == name
