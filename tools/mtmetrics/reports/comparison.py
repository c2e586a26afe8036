"""Comparison of systems by one metric: intervals, paired tests, clusters."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mtmetrics.checks import choice, positive
from mtmetrics.errors import InputError
from mtmetrics.reports.human_agreement import AgreementCurve, Share
from mtmetrics.reports.styles import Grid, Report, decimals
from mtmetrics.scorers.results import MetricResult
from mtmetrics.statistics.correlation import complete
from mtmetrics.statistics.significance import (
    ALPHA,
    NO_INTERVAL,
    SEED,
    Interval,
    Progress,
    bootstrap_intervals,
    bootstrap_p_values,
    permutation_p_values,
)

# Agreement was fitted to means of 500 segments; those of few say little.
_FEWEST_SEGMENTS = 100
PAIRED_TESTS: dict[str, Callable[..., np.ndarray]] = {
    "permutation": permutation_p_values,
    "bootstrap": bootstrap_p_values,
}


@dataclasses.dataclass(frozen=True)
class SystemScore:
    """A system: its mean over segments with a 95 % bootstrap interval (None of too few), its rank,
    and its cluster, 1 for the best.

    The rank is 1 + the number of systems with a higher mean. A cluster ends where each system above
    is significantly better than each system below."""

    name: str
    mean: float
    interval: Interval | None
    rank: int
    cluster: int


@dataclasses.dataclass(frozen=True)
class SystemComparison:
    """The comparison of k systems on one test set by a metric, and its settings.

    The systems stand highest mean first; `p_values` (k, k) are two-sided, of the differences of
    means, in their order. `people` says how often people agree that a system is better, or why that
    is not known; None if no one asked them."""

    systems: list[SystemScore]
    p_values: np.ndarray
    segments: int
    test: str
    correction: str
    resamples: int
    seed: int
    people: AgreementCurve | str | None = None

    def agreement(self, better: int, worse: int) -> Share | None:
        """How often people agree with such a difference of two systems; None where that is not
        known."""
        if not self.calibrated:
            return None
        return self.people.at(self.systems[better].mean - self.systems[worse].mean)

    @property
    def calibrated(self) -> bool:
        """Whether people's agreement is known, and there are segments enough for means that do not
        swing."""
        return isinstance(self.people, AgreementCurve) and self.segments >= _FEWEST_SEGMENTS


def compare_systems(
    scores: Mapping[str, np.ndarray | Sequence[float]],
    *,
    test: str = "permutation",
    correction: str = "none",
    resamples: int = 1000,
    seed: int = SEED,
    people: AgreementCurve | str | None = None,
    progress: Progress | None = None,
) -> SystemComparison:
    """Compares systems by the means of their segment scores, every two of them with a paired test.

    A difference is significant where its two-sided p-value is below 0.05; equal scores have p = 1.
    ``"bootstrap"`` (Koehn, 2004) calls too much significant where there are few segments,
    ``"permutation"`` (approximate randomisation; Riezler and Maxwell, 2005) does not.

    Args:
        scores: system -> its n segment scores, higher is better, on the same segments in the same
            order.
        test: one of `PAIRED_TESTS`.
        correction: one of `CORRECTIONS`, for the number of pairs of systems.
        resamples: number of resamples for tests and intervals.
        seed: of the draws.
        people: of `mtmetrics.reports.human_agreement.known_agreement` for the metric.
        progress: shows how far the resampling is, such as `mtmetrics.cli.messages.progress`.

    Raises:
        InputError: fewer than 2 systems or segments, unequal numbers of segments, scores that are
            not finite, an impossible seed, or so few resamples that no difference could be
            significant.
    """
    draws = PAIRED_TESTS[choice("test", test, list(PAIRED_TESTS))]
    correct = CORRECTIONS[choice("correction", correction, list(CORRECTIONS))]
    if len(scores) < 2:
        raise InputError(
            f"systems: {len(scores)} given ({', '.join(scores)}); at least two are needed for a "
            "comparison"
        )
    columns = complete(scores).values
    for name, column in columns.items():
        if (bad := np.flatnonzero(~np.isfinite(column))).size:
            where = f"segment {bad[0] + 1} ({column[bad[0]]})"
            raise InputError(
                f"{name}: {bad.size} scores are not finite, the first is that of {where}"
            )
    segments = len(column)
    if segments < 2:
        raise InputError(f"segments: {segments} given; at least two are needed for a comparison")
    k = len(columns)
    check_resampling(k, correction=correction, resamples=resamples, seed=seed)
    pairs = list(itertools.combinations(range(k), 2))
    order = sorted(columns, key=lambda name: -columns[name].mean())
    means = np.array([columns[name].mean() for name in order])
    settings: dict[str, Any] = {"resamples": resamples, "seed": seed}
    settings |= {} if progress is None else {"progress": progress}
    ordered = np.stack([columns[name] for name in order])
    one_sided = draws(ordered, pairs, **settings)
    p_values = np.ones((k, k))
    upper, lower = zip(*pairs, strict=True)
    # The better system of a pair is known only from the data, so that both directions count.
    p_values[upper, lower] = p_values[lower, upper] = correct(np.minimum(2 * one_sided, 1.0))
    ranks = [1 + int((means > mean).sum()) for mean in means]
    systems = [
        SystemScore(name, float(mean), interval, rank, cluster)
        for name, mean, interval, rank, cluster in zip(
            order,
            means,
            bootstrap_intervals(ordered, **settings),
            ranks,
            clusters(p_values < ALPHA),
            strict=True,
        )
    ]
    return SystemComparison(systems, p_values, segments, test, correction, resamples, seed, people)


def check_resampling(systems: int, *, correction: str, resamples: int, seed: int) -> None:
    """Refuses, before anything is scored, settings of `compare_systems` that lead nowhere."""
    pairs = systems * (systems - 1) // 2
    enough = enough_resamples(systems, correction)
    if positive("resamples", resamples) < enough:
        why = f"no p-value could be below {ALPHA}; at least {enough} are needed"
        few = f"too few for {pairs} pairs of systems with correction {correction!r}"
        raise InputError(f"resamples {resamples}: {few}: {why}", option="resamples")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed {seed!r}: must be a whole number of at least 0", option="seed")


def enough_resamples(systems: int, correction: str) -> int:
    """The number of resamples below which no difference of that many systems could be significant.

    The smallest two-sided p-value is 2 / (resamples + 1), and Holm's correction multiplies it by
    the number of pairs: 49,000 resamples for the 1,225 pairs of 50 systems."""
    pairs = systems * (systems - 1) // 2
    return int(2 * (pairs if correction == "holm" else 1) / ALPHA)


def clusters(differ: np.ndarray) -> list[int]:
    """The cluster of each of k ranked systems, 1 for the best, as WMT groups them; `differ` (k, k)
    says which differ.

    A cluster ends where every system above is significantly better than every system below; two
    systems of one cluster may differ, with others between them that do not."""
    ends = [differ[:place, place:].all() for place in range(1, len(differ))]
    return [1, *(1 + np.cumsum(ends)).tolist()]


def holm(p_values: np.ndarray) -> np.ndarray:
    """(m,) p-values corrected so that the chance of any false rejection among them stays below the
    level (Holm, 1979).

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
    return corrected


CORRECTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"none": np.asarray, "holm": holm}


def report_comparison(
    comparisons: Mapping[str, SystemComparison],
    results: Mapping[str, Mapping[str, MetricResult]],
) -> Report:
    """Reports comparisons of the same systems by one or several metrics: a table of systems and
    metrics, a table of p-values per metric and the signatures; as ``csv`` and ``tsv`` one table
    with a row per metric and system.

    Args:
        comparisons: metric, as the user wrote it -> its comparison; all of one test set, with the
            same settings.
        results: metric -> system -> its result, for signatures and reports.
    """
    blocks: list[Grid | str] = []
    for metric, comparison in comparisons.items():
        blocks += [f"p-values of {metric}:", _p_value_grid(comparison)]
        if comparison.calibrated:
            blocks.append(
                f"How often people agree with such a difference of {metric} (out of 100):"
            )
            blocks.append(_agreement_grid(comparison))
    blocks.append(_method(next(iter(comparisons.values()))))
    blocks += [f"{metric}: {_signature(systems)}" for metric, systems in results.items()]
    blocks += [
        f"{metric}: people's agreement: {_about(comparison)}"
        for metric, comparison in comparisons.items()
        if comparison.people
    ]
    # Side by side the metrics would not fit into a terminal.
    apart = [_grid(_overview({metric: comparison})) for metric, comparison in comparisons.items()]
    document, flat = _as_json(comparisons, results), _flat(comparisons, results)
    return Report(
        document,
        [_grid(_overview(comparisons)), *blocks],
        [*apart, *blocks],
        flat,
        comments=True,
    )


def _grid(rows: list[list[str]]) -> Grid:
    return Grid(rows, range(1, len(rows[0])))


def _method(comparison: SystemComparison) -> str:
    correction = comparison.correction
    corrected = (
        "not corrected for the number of pairs"
        if correction == "none"
        else f"corrected by {correction.title()}"
    )
    intervals = "with their 95 % bootstrap intervals"
    if comparison.systems[0].interval is None:
        intervals = f"({NO_INTERVAL})"
    return (
        f"Means of {comparison.segments} segments {intervals}; two-sided p-values of a paired "
        f"{comparison.test} test for each pair of systems, {corrected}; {comparison.resamples} "
        f"resamples, seed {comparison.seed}. A cluster ends where each system above has p < "
        f"{ALPHA} against each system below."
    )


def _as_json(
    comparisons: Mapping[str, SystemComparison],
    results: Mapping[str, Mapping[str, MetricResult]],
) -> dict[str, object]:
    first = next(iter(comparisons.values()))
    metrics = []
    for metric, comparison in comparisons.items():
        systems = [
            {
                "system": system.name,
                "mean_score": system.mean,
                "ci": system.interval and system.interval._asdict(),
                "rank": system.rank,
                "cluster": system.cluster,
                "report": results[metric][system.name].report.as_dict(),
            }
            for system in comparison.systems
        ]
        pairs = [
            {
                "better": better.name,
                "worse": worse.name,
                "difference": better.mean - worse.mean,
                "p": float(comparison.p_values[i, j]),
                "significant": bool(comparison.p_values[i, j] < ALPHA),
                "people_agree": share._asdict() if (share := comparison.agreement(i, j)) else None,
            }
            for (i, better), (j, worse) in itertools.combinations(enumerate(comparison.systems), 2)
        ]
        about = {"metric": metric, "signature": _signature(results[metric])}
        about |= {"agreement": _about(comparison)} if comparison.people else {}
        metrics.append({**about, "systems": systems, "pairs": pairs})
    settings = {
        name: getattr(first, name)
        for name in ("segments", "test", "correction", "resamples", "seed")
    }
    return settings | {"alpha": ALPHA, "metrics": metrics}


def _overview(comparisons: Mapping[str, SystemComparison]) -> list[list[str]]:
    """A row per system, in the order of the first metric."""
    first = next(iter(comparisons.values()))
    rows = {system.name: [system.name] for system in first.systems}
    head = ["system"]
    for metric, comparison in comparisons.items():
        head += [metric, "rank", "cluster"]
        for system in comparison.systems:
            between = ""
            if system.interval is not None:
                between = f" [{_shown(system.interval.low)}, {_shown(system.interval.high)}]"
            rows[system.name] += [
                f"{_shown(system.mean)}{between}",
                str(system.rank),
                str(system.cluster),
            ]
    return [head, *rows.values()]


def _p_value_grid(comparison: SystemComparison) -> Grid:
    return _triangle(comparison, lambda i, j: _shown(comparison.p_values[i, j]))


def _agreement_grid(comparison: SystemComparison) -> Grid:
    return _triangle(comparison, lambda i, j: percentages(comparison.agreement(i, j)))


def _triangle(comparison: SystemComparison, cell: Callable[[int, int], str]) -> Grid:
    """A cell for every two systems: rows are the better systems, columns the worse ones."""
    names = [system.name for system in comparison.systems]
    rows = [
        [name, *("" if j <= i else cell(i, j) for j in range(1, len(names)))]
        for i, name in enumerate(names[:-1])
    ]
    return _grid([["better than", *names[1:]], *rows])


def percentages(share: Share | None) -> str:
    """A share and its interval in whole per cent, without the sign; ``?`` for a difference larger
    than were seen."""
    if share is None:
        return "?"
    value, low, high = (f"{100 * part:.0f}" for part in share)
    return f"{value} [{low}, {high}]"


def _about(comparison: SystemComparison) -> str:
    if isinstance(comparison.people, AgreementCurve):
        return (
            comparison.people.about
            if comparison.calibrated
            else f"not said of fewer than {_FEWEST_SEGMENTS} segments"
        )
    return str(comparison.people)


def _flat(
    comparisons: Mapping[str, SystemComparison],
    results: Mapping[str, Mapping[str, MetricResult]],
) -> list[list[str]]:
    """A row per metric and system, with the p-values against each system in the order given."""
    names = list(next(iter(results.values())))
    p_names = [f"p {name}" for name in names]
    head = ["metric", "system", "mean", "low", "high", "rank", "cluster", *p_names, "signature"]
    table = [head]
    for metric, comparison in comparisons.items():
        places = {system.name: place for place, system in enumerate(comparison.systems)}
        for place, system in enumerate(comparison.systems):
            ends = (
                ("", "")
                if system.interval is None
                else map(_shown, (system.interval.low, system.interval.high))
            )
            numbers = (_shown(system.mean), *ends)
            p_values = (_shown(comparison.p_values[place, places[name]]) for name in names)
            ranks = (str(system.rank), str(system.cluster))
            signature = results[metric][system.name].signature
            table.append([metric, system.name, *numbers, *ranks, *p_values, signature])
    return table


def _signature(systems: Mapping[str, MetricResult]) -> str:
    """Of a metric, which is the same for all systems."""
    return next(iter(systems.values())).signature


def _shown(value: float) -> str:
    return decimals(value, 4)
