"""Which of several systems is better, by one metric: intervals, paired tests, clusters of systems that cannot be told
apart."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.significance import SEED, Interval, bootstrap_interval, paired_bootstrap, paired_permutation
from mtmetrics.inputs import choice, positive

ALPHA = 0.05
TESTS: dict[str, Callable[..., float]] = {"permutation": paired_permutation, "bootstrap": paired_bootstrap}


@dataclasses.dataclass(frozen=True)
class SystemScore:
    """What a metric says of one system.

    Attributes:
        name: of the system.
        mean: of its segment scores.
        interval: 95 % bootstrap interval of the mean.
        rank: 1 + the number of systems with a higher mean; equal means share a rank.
        cluster: 1 for the best systems; those of one cluster cannot be told apart.
    """

    name: str
    mean: float
    interval: Interval
    rank: int
    cluster: int


@dataclasses.dataclass(frozen=True)
class SystemComparison:
    """What a metric says of k systems on one test set.

    Attributes:
        systems: highest mean first.
        p_values: (k, k) two-sided p-values of the differences of means, in the order of `systems`; symmetric, 1 on the
            diagonal.
        segments: number of segments.
        test: name of the test, one of `TESTS`.
        correction: how the p-values were corrected for the number of pairs, one of `CORRECTIONS`.
        resamples: of the tests and intervals.
        seed: of the draws.
    """

    systems: list[SystemScore]
    p_values: np.ndarray
    segments: int
    test: str
    correction: str
    resamples: int
    seed: int


def compare_systems(
    scores: Mapping[str, np.ndarray | Sequence[float]],
    *,
    test: str = "permutation",
    correction: str = "none",
    resamples: int = 1000,
    seed: int = SEED,
) -> SystemComparison:
    """Compares systems by the means of their segment scores, every two of them with a paired test.

    A difference is significant where its two-sided p-value is below 0.05. With ``"permutation"`` (approximate
    randomisation; Riezler and Maxwell, 2005) the scores of two systems are swapped at random, segment by segment; with
    ``"bootstrap"`` (Koehn, 2004) segments are drawn with replacement, which calls too much significant where there are
    few of them. Two systems with equal scores have p = 1.

    Args:
        scores: system -> its n segment scores, higher is better, on the same segments in the same order.
        test: ``"permutation"`` or ``"bootstrap"``.
        correction: ``"none"`` or ``"holm"``, for the number of pairs of systems.
        resamples: number of resamples for tests and intervals.
        seed: of the draws; the same seed gives the same result.

    Raises:
        InputError: fewer than 2 systems or 2 segments, unequal numbers of segments, scores that are not finite, or as
            `check_resampling`.
    """
    draws = TESTS[choice("test", test, list(TESTS))]
    correct = CORRECTIONS[choice("correction", correction, list(CORRECTIONS))]
    columns = _checked(scores)
    k = len(columns)
    check_resampling(k, correction=correction, resamples=resamples, seed=seed)
    pairs = list(itertools.combinations(range(k), 2))
    order = sorted(columns, key=lambda name: -columns[name].mean())
    means = np.array([columns[name].mean() for name in order])
    one_sided = np.array(
        [draws(columns[order[i]], columns[order[j]], resamples=resamples, seed=seed) for i, j in pairs]
    )
    p_values = np.ones((k, k))
    upper, lower = zip(*pairs, strict=True)
    # The better system of a pair is known only from the data, so that both directions count.
    p_values[upper, lower] = p_values[lower, upper] = correct(np.minimum(2 * one_sided, 1.0))
    systems = [
        SystemScore(
            name,
            float(mean),
            bootstrap_interval(columns[name], resamples=resamples, seed=seed),
            rank=1 + int((means > mean).sum()),
            cluster=cluster,
        )
        for name, mean, cluster in zip(order, means, clusters(p_values < ALPHA), strict=True)
    ]
    return SystemComparison(systems, p_values, len(columns[order[0]]), test, correction, resamples, seed)


def check_resampling(systems: int, *, correction: str, resamples: int, seed: int) -> None:
    """Refuses, before anything is scored, settings of `compare_systems` that lead nowhere.

    Raises:
        InputError: so few resamples that no difference of two systems could be significant, or an impossible seed.
    """
    pairs = systems * (systems - 1) // 2
    # The smallest two-sided p-value is 2 / (resamples + 1), and Holm's correction multiplies it by the number of pairs.
    enough = int(2 * (pairs if correction == "holm" else 1) / ALPHA)
    if positive("resamples", resamples) < enough:
        raise InputError(
            f"resamples {resamples}: too few for {pairs} pairs of systems with correction {correction!r}: no p-value could be below "
            f"{ALPHA}; at least {enough} are needed"
        )
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed {seed!r}: must be a whole number of at least 0")


def clusters(differ: np.ndarray) -> list[int]:
    """Groups ranked systems as WMT does: a cluster ends where every system above is significantly better than every
    system below.

    Two systems of one cluster may still differ significantly, with others between them that do not.

    Args:
        differ: (k, k) bool, whether two systems differ significantly; the best system comes first.

    Returns:
        The cluster of each system, 1 for the best ones.

    Example:
        >>> differ = np.zeros((3, 3), dtype=bool)
        >>> differ[0, 1] = differ[0, 2] = True
        >>> clusters(differ)
        [1, 2, 2]
    """
    ends = [differ[:place, place:].all() for place in range(1, len(differ))]
    return [1, *(1 + np.cumsum(ends)).tolist()]


def holm(p_values: np.ndarray) -> np.ndarray:
    """(m,) p-values corrected so that the chance of any false rejection among them stays below the level (Holm, 1979).

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


def _checked(scores: Mapping[str, np.ndarray | Sequence[float]]) -> dict[str, np.ndarray]:
    if len(scores) < 2:
        raise InputError(
            f"systems: {len(scores)} given ({', '.join(scores)}); at least two are needed for a comparison"
        )
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in scores.items()}
    first = next(iter(columns))
    for name, column in columns.items():
        if column.ndim != 1 or column.shape != columns[first].shape:
            raise InputError(
                f"{name} has scores of shape {column.shape}, but {first} of {columns[first].shape}; they must be parallel"
            )
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            raise InputError(
                f"{name}: {bad.size} scores are not finite, the first is that of segment {bad[0] + 1} ({column[bad[0]]})"
            )
    if len(columns[first]) < 2:
        raise InputError(f"segments: {len(columns[first])} given; at least two are needed for a comparison")
    return columns
