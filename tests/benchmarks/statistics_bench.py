"""Measures the statistics of meta-evaluation: ``statistics_bench.py [--repeats N] [--json OUT]``.

1,000 bootstrap resamples of 560 segments x 10 metrics and 1,000 permutations of two metrics, for
each coefficient and for means over items, on made-up scores. Each should take under 2 s on one
core: run it with ``OMP_NUM_THREADS=1``. The same bootstrap, one coefficient at a time, stands
beside it. Exit code 0 whatever the numbers say: a busy machine is no failure."""

import sys
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from measure import Report, alternating, machine, options

from mtmetrics.statistics.correlation import (
    COEFFICIENTS,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from mtmetrics.statistics.significance import (
    CorrelationInterval,
    bootstrap_correlation,
    bootstrap_p_values,
    perm_both,
    permutation_p_values,
)

_SEGMENTS, _METRICS, _SYSTEMS, _RESAMPLES = 560, 10, 10, 1000


def made_scores() -> tuple[np.ndarray, np.ndarray]:
    """Scores (10, 560) of metrics that agree less and less with the judgements (560,), which hold
    ties."""
    generator = np.random.default_rng(0)
    human = np.round(generator.normal(size=_SEGMENTS), 1)
    noise = np.sqrt(np.arange(1, _METRICS + 1))[:, None]
    return human + noise * generator.normal(size=(_METRICS, _SEGMENTS)), human


def plain_bootstrap(
    scores: np.ndarray, human: np.ndarray, name: str, resamples: int
) -> list[list[float]]:
    """Each resample written out, each coefficient computed by itself."""
    generator = np.random.default_rng(0)
    drawn = [generator.integers(len(human), size=len(human)) for _ in range(resamples)]
    return [
        [COEFFICIENTS[name](column[rows], human[rows]).value for rows in drawn] for column in scores
    ]


def bootstraps(scores: np.ndarray, human: np.ndarray, name: str) -> list[CorrelationInterval]:
    """The intervals of all metrics."""
    return [bootstrap_correlation(column, human, coefficient=name) for column in scores]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all measurements."""
    parser = options(__doc__)
    parser.add_argument(
        "--repeats", type=int, default=3, help="of each measurement (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    scores, human = made_scores()
    two = scores[:2]
    items, systems = np.divmod(np.arange(_SEGMENTS), _SYSTEMS)
    report = Report()
    print(f"{_RESAMPLES} resamples, {_SEGMENTS} segments; {machine()}")
    contenders: dict[str, Callable[[], object]] = {}
    for name in COEFFICIENTS:
        permuted = partial(perm_both, *two, human, coefficient=name)
        contenders |= {
            f"bootstrap of {_METRICS} metrics, {name}": partial(bootstraps, scores, human, name),
            f"PERM-BOTH, {name}": permuted,
            f"PERM-BOTH, mean over items, {name}": partial(permuted, groups=items),
        }
    soft = f"soft pairwise accuracy, {_SYSTEMS} systems"
    contenders |= {
        "paired bootstrap of two systems": partial(bootstrap_p_values, two, [(0, 1)]),
        "paired permutation of two systems": partial(permutation_p_values, two, [(0, 1)]),
        soft: partial(soft_pairwise_accuracy, scores[0], human, items, systems),
        "tie-calibrated accuracy": partial(tie_calibrated_accuracy, scores[0], human, items),
    }
    for name, seconds in alternating(contenders, args.repeats).items():
        report.add(name, seconds, "s", "<= 2")
    # A tenth of the resamples: each round of the loop costs the same.
    plain = {
        name: partial(plain_bootstrap, scores, human, name, _RESAMPLES // 10)
        for name in COEFFICIENTS
    }
    for name, seconds in alternating(plain, repeats=1, warm_up=False).items():
        report.add(f"the same bootstrap, one coefficient at a time: {name}", 10 * seconds, "s")
    report.finish(args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
