"""Scores several systems with several metrics, turn by turn, and compares them."""

import contextlib
import dataclasses
import functools
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mtmetrics.errors import MTMetricsError
from mtmetrics.models.pool import ModelPool
from mtmetrics.page.offers import MetricChoice
from mtmetrics.page.texts import Texts
from mtmetrics.reports.comparison import SystemComparison, SystemScore, compare_systems
from mtmetrics.reports.example import example
from mtmetrics.reports.human_agreement import AgreementCurve, known_agreement
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.results import MetricResult, join_systems, take_turns
from mtmetrics.statistics.significance import SEED, bootstrap_interval

_RESAMPLES = 1000
# Translations that a metric scores in one turn, of all systems together: the page shows progress
# after each turn.
_PAIRS_AT_ONCE = 192
# Most systems for which the orders by pairs of systems are offered; of more there would be too many.
_MOST_FOR_PAIRS = 4


class Progress(NamedTuple):
    """The state of a comparison.

    Attributes:
        what: the present activity, as the page shows it.
        done: translations that are scored; each counts once for each metric.
        total: translations in all, counted in the same way.
        left: estimated seconds that are left to score; None before and after scoring.
    """

    what: str
    done: int
    total: int
    left: float | None


class Anchors(NamedTuple):
    """The scores of the bundled example: of sentences paired at random, and of a human
    translation."""

    random: float
    human: float


@dataclasses.dataclass(frozen=True)
class ScoredMetric:
    """The results of one metric by system, their comparison, and the anchors, where it can score
    the example."""

    offer: MetricChoice
    scorer: Scorer
    results: Mapping[str, MetricResult]
    comparison: SystemComparison
    anchors: Anchors | None


@dataclasses.dataclass(frozen=True)
class ComparisonResult:
    """The result of a comparison of systems: the texts, and a `ScoredMetric` for each metric."""

    texts: Texts
    metrics: Sequence[ScoredMetric]

    @property
    def tested(self) -> bool:
        """Whether there is a test: not for a single system or a single segment."""
        return len(self.texts.systems) > 1 and self.texts.segments > 1

    def scores(self, metric: int) -> np.ndarray:
        """(k, n) scores of the systems' segments, in the order of the systems as given."""
        results = self.metrics[metric].results
        return np.array([results[name].segments for name in self.texts.systems])

    def order(self, metric: int, order: str) -> np.ndarray:
        """(n,) numbers of the segments, from 0 up, in an order that `orders` names."""
        scores = self.scores(metric)
        if order == "input":
            keys = np.arange(scores.shape[1])
        elif order == "disagree":
            keys = -np.ptp(scores, axis=0)
        elif order == "lowest":
            keys = scores.mean(0)
        elif order == "highest":
            keys = -scores.mean(0)
        else:
            ahead, behind = map(int, order.split(">"))
            keys = scores[behind] - scores[ahead]
        return np.argsort(keys, kind="stable")

    def orders(self) -> list[tuple[str, str]]:
        """Label and name of the orders of segments; by ``0>1`` those come first in which the first
        system leads the second."""
        names = list(self.texts.systems)
        orders = [
            ("as in the input", "input"),
            ("lowest score first", "lowest"),
            ("highest score first", "highest"),
        ]
        if len(names) > 1:
            orders.insert(0, ("where systems disagree most", "disagree"))
        if 1 < len(names) <= _MOST_FOR_PAIRS:
            for i, j in itertools.permutations(range(len(names)), 2):
                orders.append((f"{names[i]} ahead of {names[j]}", f"{i}>{j}"))
        return orders


class Comparer:
    """Loads the scorers that are asked for, and keeps them; asks no network."""

    def __init__(self) -> None:
        self._pool = ModelPool(local_files_only=True)
        # Loads the scorer of a metric for a language pair.
        self.scorer = functools.lru_cache(maxsize=64)(self._load)
        self._anchors = functools.lru_cache(maxsize=64)(self._of_example)

    def compare(
        self, texts: Texts, offers: Sequence[MetricChoice]
    ) -> Iterator[Progress | ComparisonResult]:
        """Yields how far it has come, and at last the result.

        Raises:
            InputError: as `mtmetrics.scorers.spec.MetricSpec.load_for`.
            ArtifactError: a model cannot be loaded.
        """
        total = texts.segments * len(texts.systems) * len(offers)
        scorers = []
        for offer in offers:
            yield Progress(f"loading {offer.title}", 0, total, None)
            scorers.append(self.scorer(offer, texts.lang_pair))
        started, done = time.monotonic(), 0
        collected: list[list[list[MetricResult]]] = [[] for _ in offers]
        lines = max(8, _PAIRS_AT_ONCE // len(texts.systems))
        streams = [
            scorer.score_batches(scorer.checked_batch(texts.systems, **texts.columns).slices(lines))
            for scorer in scorers
        ]
        for number, results in take_turns(streams):  # so that the time left holds for all
            collected[number].append(results)
            done += len(results) * len(results[0].segments)
            left = (time.monotonic() - started) * (total - done) / done
            yield Progress(f"scoring with {offers[number].title}", done, total, left)
        yield Progress("testing the differences", total, total, None)
        metrics = []
        for offer, scorer, batches in zip(offers, scorers, collected, strict=True):
            metrics.append(self._scored_metric(offer, scorer, batches, texts))
        yield ComparisonResult(texts, metrics)

    def score(self, offer: MetricChoice, texts: Texts) -> dict[str, MetricResult]:
        """The results of one metric by system; errors as `compare`."""
        return self.scorer(offer, texts.lang_pair).score_systems(texts.systems, **texts.columns)

    def _load(self, offer: MetricChoice, lang_pair: str) -> Scorer:
        return offer.spec.load_for(offer.columns, self._pool, lang_pair)

    def _scored_metric(
        self, offer: MetricChoice, scorer: Scorer, batches: list[list[MetricResult]], texts: Texts
    ) -> ScoredMetric:
        results = dict(zip(texts.systems, join_systems(batches), strict=True))
        scores = {name: result.segments for name, result in results.items()}
        anchors = None
        with contextlib.suppress(MTMetricsError):  # such as a preset for another language pair
            anchors = self._anchors(offer)
        people = known_agreement(offer.spec, scorer)
        return ScoredMetric(offer, scorer, results, _compared(scores, people), anchors)

    def _of_example(self, offer: MetricChoice) -> Anchors:
        texts = example()
        scorer = self.scorer(offer, texts.lang_pair)
        columns = {"sources": texts.sources, "references": texts.references}
        # Against itself, a reference would get the best score.
        human = texts.second if "references" in offer.columns else texts.references
        # Moved by half of the list, no translation stays with its own segment.
        moved = (len(human) - 1) // 2
        random_pairs = [*human[moved:], *human[:moved]]
        results = scorer.score_systems({"random": random_pairs, "human": human}, **columns)
        return Anchors(results["random"].system, results["human"].system)


def _compared(
    scores: Mapping[str, np.ndarray], people: AgreementCurve | str | None
) -> SystemComparison:
    """Compares systems by their (n,) scores; without tests, all p-values 1 and one cluster, for a
    single system or a single segment."""
    count = len(next(iter(scores.values())))
    if len(scores) > 1 and count > 1:
        return compare_systems(scores, resamples=_RESAMPLES, people=people)
    order = sorted(scores, key=lambda name: -scores[name].mean())
    systems = [
        SystemScore(name, float(scores[name].mean()), bootstrap_interval(scores[name]), rank, 1)
        for rank, name in enumerate(order, 1)
    ]
    return SystemComparison(
        systems, np.ones((len(order),) * 2), count, "permutation", "none", _RESAMPLES, SEED
    )
