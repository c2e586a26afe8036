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
from mtmetrics.reports.human_agreement import AgreementCurve, anchor_scores, known_agreement
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.results import MetricResult, in_turns, joined_systems
from mtmetrics.statistics.significance import SEED, bootstrap_interval

_RESAMPLES = 1000
_PAIRS_AT_ONCE = 192


class Progress(NamedTuple):
    """How far a comparison has come: pairs scored, of how many, and the seconds left, None while
    that is unknown."""

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
    """What one metric says: results by system, their comparison, and the anchors, where it can
    score the example."""

    offer: MetricChoice
    scorer: Scorer
    results: Mapping[str, MetricResult]
    comparison: SystemComparison
    anchors: Anchors | None


@dataclasses.dataclass(frozen=True)
class Compared:
    """What the page shows: the texts, and a `ScoredMetric` for each metric; `tested` is false for a
    single system or a single segment, of which no test can say anything."""

    texts: Texts
    metrics: Sequence[ScoredMetric]

    @property
    def tested(self) -> bool:
        return len(self.texts.systems) > 1 and self.texts.segments > 1

    def scores(self, metric: int) -> np.ndarray:
        """(k, n) scores of the systems' segments, in the order of the systems as given."""
        results = self.metrics[metric].results
        return np.array([results[name].segments for name in self.texts.systems])

    def order(self, metric: int, wanted: str) -> np.ndarray:
        """(n,) numbers of the segments, from 0 up, in an order that `orders` names."""
        scores = self.scores(metric)
        by = {
            "input": np.arange(scores.shape[1]),
            "disagree": -np.ptp(scores, axis=0),
            "lowest": scores.mean(0),
            "highest": -scores.mean(0),
        }
        if wanted not in by:
            ahead, behind = map(int, wanted.split(">"))
            by[wanted] = scores[behind] - scores[ahead]
        return np.argsort(by[wanted], kind="stable")

    def orders(self) -> list[tuple[str, str]]:
        """What segments can be ordered by: label and name; ``0>1`` is where the first system leads
        the second."""
        names = list(self.texts.systems)
        found = [
            ("as in the input", "input"),
            ("lowest score first", "lowest"),
            ("highest score first", "highest"),
        ]
        if len(names) > 1:
            found.insert(0, ("where systems disagree most", "disagree"))
            pairs = itertools.permutations(range(len(names)), 2) if len(names) <= 4 else ()
            found += [(f"{names[i]} ahead of {names[j]}", f"{i}>{j}") for i, j in pairs]
        return found


class Comparer:
    """Loads the scorers that are asked for, and keeps them; asks no network."""

    def __init__(self) -> None:
        self._pool = ModelPool(local_files_only=True)
        self._scorer = functools.lru_cache(maxsize=64)(self._load)
        self._anchors = functools.lru_cache(maxsize=64)(self._of_example)

    def compare(
        self, texts: Texts, offers: Sequence[MetricChoice]
    ) -> Iterator[Progress | Compared]:
        """Yields how far it has come, and last what was found.

        Raises:
            InputError: as `mtmetrics.reports.metric_runs.MetricSpec.load_for`.
            ArtifactError: a model cannot be loaded.
        """
        total = texts.segments * len(texts.systems) * len(offers)
        scorers = []
        for offer in offers:
            yield Progress(f"loading {offer.title}", 0, total, None)
            scorers.append(self._scorer(offer, texts.lang_pair))
        started, done = time.monotonic(), 0
        collected: list[list[list[MetricResult]]] = [[] for _ in offers]
        lines = max(8, _PAIRS_AT_ONCE // len(texts.systems))
        streams = [
            scorer.score_batches(scorer.checked_batch(texts.systems, **texts.others).slices(lines))
            for scorer in scorers
        ]
        for number, results in in_turns(streams):  # so that the time left holds for all
            collected[number].append(results)
            done += len(results) * len(results[0].segments)
            left = (time.monotonic() - started) * (total - done) / done
            yield Progress(f"scoring with {offers[number].title}", done, total, left)
        yield Progress("testing the differences", total, total, None)
        yield Compared(
            texts, [self._judged(*it, texts) for it in zip(offers, scorers, collected, strict=True)]
        )

    def _load(self, offer: MetricChoice, lang_pair: str) -> Scorer:
        return offer.spec.load_for(offer.columns, self._pool, lang_pair)

    def _judged(
        self, offer: MetricChoice, scorer: Scorer, chunks: list[list[MetricResult]], texts: Texts
    ) -> ScoredMetric:
        results = dict(zip(texts.systems, joined_systems(chunks), strict=True))
        scores = {name: result.segments for name, result in results.items()}
        anchors = None
        with contextlib.suppress(MTMetricsError):  # such as a preset for another language pair
            anchors = self._anchors(offer)
        people = known_agreement(offer.spec, scorer)
        return ScoredMetric(offer, scorer, results, _compared(scores, people), anchors)

    def _of_example(self, offer: MetricChoice) -> Anchors:
        known = example()
        scorer = self._scorer(offer, known.lang_pair)
        columns = {"sources": known.sources, "references": known.references}
        human = known.second if "references" in offer.columns else known.references
        return Anchors(*(float(scores.mean()) for scores in anchor_scores(scorer, columns, human)))


def _compared(
    scores: Mapping[str, np.ndarray], people: AgreementCurve | str | None
) -> SystemComparison:
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
