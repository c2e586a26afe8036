"""Intervals and tests: of means, and of correlations (PERM-BOTH, Williams), against enumeration,
scipy and R."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from mtmetrics.errors import InputError
from mtmetrics.statistics import significance
from mtmetrics.statistics.correlation import COEFFICIENTS, correlate, pearson
from mtmetrics.statistics.significance import (
    bootstrap_correlation,
    bootstrap_interval,
    bootstrap_p_values,
    perm_both,
    permutation_p_values,
    sample_correlations,
    williams,
    williams_test,
)


def _all_signs(monkeypatch: pytest.MonkeyPatch, n: int) -> np.ndarray:
    """Makes tests draw each of the 2^n permutations once."""
    every = np.array(list(itertools.product([1.0, -1.0], repeat=n)))
    monkeypatch.setattr(
        significance, "sign_flips", lambda resamples, n, seed: [every[:50], every[50:]]
    )
    return every


def paired_bootstrap(a: list[float], b: list[float], **options: int) -> float:
    """The p-value of two systems, by their scores of the same segments."""
    [p_value] = bootstrap_p_values(np.array([a, b]), [(0, 1)], **options)
    return p_value


def paired_permutation(a: list[float], b: list[float], **options: int) -> float:
    """The p-value of two systems, by their scores of the same segments."""
    [p_value] = permutation_p_values(np.array([a, b]), [(0, 1)], **options)
    return p_value


def test_intervals_of_means(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).exponential(size=300)
    ours = bootstrap_interval(values, resamples=5000)
    theirs = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=5000, random_state=1
    )
    assert ours[:2] == pytest.approx(tuple(theirs.confidence_interval), abs=0.01)
    assert (
        bootstrap_interval(values, resamples=5000)
        == ours
        != bootstrap_interval(values, resamples=5000, seed=2)
    )
    # More values than are drawn at a time.
    many = np.random.default_rng(4).normal(size=2000)
    spread = 1.96 * many.std() / np.sqrt(len(many))
    expected = (many.mean() - spread, many.mean() + spread)
    assert bootstrap_interval(many, resamples=5000)[:2] == pytest.approx(expected, abs=0.005)
    for impossible in ([], [1.0, np.nan], [[1.0]]):
        with pytest.raises(InputError, match="values"):
            bootstrap_interval(impossible)


def test_all_permutations_of_eight_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.random.default_rng(5).normal(size=(2, 8))
    a += 0.5
    settings = {
        "permutation_type": "samples",
        "alternative": "greater",
        "n_resamples": np.inf,
        "vectorized": False,
    }
    exact = stats.permutation_test((a, b), lambda x, y: x.mean() - y.mean(), **settings).pvalue
    _all_signs(monkeypatch, 8)
    assert paired_permutation(a, b, resamples=256) == pytest.approx(
        (256 * exact + 1) / 257, abs=1e-15
    )


def test_rounding_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _all_signs(monkeypatch, 3)
    # 0.1 + 0.2 - 0.3 is 0 but for rounding; of the 8 sums of the three with signs, 5 are at least
    # 0.
    assert paired_permutation([0.1, 0.2, 0.0], [0.0, 0.0, 0.3], resamples=8) == 6 / 9
    # Of the 27 resamples 10 have a negative lead; the 6 that hold each difference once have none.
    assert paired_bootstrap([0.1, 0.2, 0.0], [0.0, 0.0, 0.3], resamples=20_000) == pytest.approx(
        16 / 27, abs=0.015
    )
    # Differences -1, 1, 2: of the 27 resamples those with two or three of -1 and at most a 2 beside
    # them: 1 + 3 + 3.
    assert paired_bootstrap([1, 2, 3], [2, 1, 1], resamples=20_000) == pytest.approx(
        7 / 27, abs=0.015
    )


@pytest.mark.parametrize("test", [paired_bootstrap, paired_permutation])
def test_paired_tests(test) -> None:
    a = np.random.default_rng(0).normal(size=100)
    b = a - 1 + 0.1 * np.sin(np.arange(100))
    assert (test(a, b, resamples=99), test(b, a, resamples=99), test(a, a)) == (0.01, 1.0, 1.0)
    a, b = np.random.default_rng(1).normal(size=(2, 50))
    assert test(a, b) != test(a, b, seed=1)
    with pytest.raises(InputError, match="resamples"):
        test(a, b, resamples=0)
    # Equally good systems are told apart in one of twenty cases.
    a, b = np.random.default_rng(3).normal(size=(2, 800, 100))
    found = [
        test(x, y, resamples=99, seed=seed) for seed, (x, y) in enumerate(zip(a, b, strict=True))
    ]
    assert np.mean(np.array(found) <= 0.05) == pytest.approx(0.05, abs=0.02)


# Correlations by resampling.


def _metrics(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of a better and a worse metric, on scales of their own, and judgements."""
    generator = np.random.default_rng(seed)
    human = generator.normal(size=n)
    return (
        5 + human + generator.normal(size=n),
        100 * (human + 1.3 * generator.normal(size=n)),
        human,
    )


@pytest.mark.parametrize("groups", [None, [0, 0, 0, 1, 1, 2, 2]])
@pytest.mark.parametrize("name", COEFFICIENTS)
def test_perm_both_of_all_permutations(
    name: str, groups: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, human = _metrics(7, seed=3)
    b[-1] = b[-2]  # in some permutations the last group is tied on one side
    every = _all_signs(monkeypatch, 7)
    found = perm_both(a, b, human, coefficient=name, groups=groups, resamples=len(every)).value
    a, b = stats.zscore(a), stats.zscore(b)

    def lead(swapped: np.ndarray) -> float:
        first, second = np.where(swapped, b, a), np.where(swapped, a, b)
        return (
            correlate(name, first, human, groups=groups).value
            - correlate(name, second, human, groups=groups).value
        )

    leads = np.array([lead(signs < 0) for signs in every])
    assert found == (1 + np.sum(leads >= lead(every[0] < 0) - 1e-9)) / (len(every) + 1)


def test_perm_both_direction_scale_seed_and_smallest_value() -> None:
    human = np.random.default_rng(0).normal(size=200)
    good, bad = human + 0.1 * np.sin(np.arange(200)), np.random.default_rng(1).normal(size=200)
    assert perm_both(good, bad, human, resamples=199).value == 1 / 200
    assert perm_both(bad, good, human, resamples=199).value == 1.0
    a, b, human = _metrics(80)
    assert (
        perm_both(0.01 * a - 7, b, human)
        == perm_both(a, b, human)
        != perm_both(a, b, human, seed=1)
    )
    assert perm_both(a, 3 * a + 1, human, coefficient="kendall-b", resamples=99).value == 1.0


def test_perm_both_that_is_not_defined_has_a_reason() -> None:
    a, b, human = _metrics(6)
    assert perm_both(np.ones(6), b, human).reason == "the scores of A are constant"
    assert (
        "scores of B hold 1 values that are not finite"
        in perm_both(a, [*b[:5], math.nan], human).reason
    )
    alone = perm_both(a, b, human, groups=list(range(6)))
    assert (alone.known, alone.reason) == (
        None,
        "the correlation of a metric with people is undefined in each group",
    )
    # Segments with a missing value are left out.
    whole = perm_both(a[:4], b[:4], human[:4])
    assert perm_both([*a[:4], None, 1.0], b, [*human[:5], None]) == whole._replace(left_out=2)
    for options in ({"coefficient": "tau"}, {"resamples": 0}):
        with pytest.raises(InputError, match=next(iter(options))):
            perm_both(a, b, human, **options)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_intervals_of_correlations_agree_with_scipy(name: str) -> None:
    scores, _, human = _metrics(40)
    coefficient = COEFFICIENTS[name]
    ours = bootstrap_correlation(scores, human, coefficient=name, resamples=2000)
    settings = {"paired": True, "vectorized": False, "method": "percentile", "random_state": 5}
    theirs = stats.bootstrap(
        (scores, human), lambda x, y: coefficient(x, y).value, n_resamples=300, **settings
    )
    assert ours[:2] == pytest.approx(tuple(theirs.confidence_interval), abs=0.06)
    assert ours.low < coefficient(scores, human).value < ours.high
    assert ours[2:] == (0.95, 2000, significance.SEED, None, 0, 0)


def test_intervals_of_correlations_that_are_partly_undefined() -> None:
    a, _, human = _metrics(12)
    assert bootstrap_correlation(2 * a, human)[:2] == pytest.approx(
        bootstrap_correlation(a, human)[:2], abs=1e-12
    )
    assert bootstrap_correlation(a, human, seed=1) != bootstrap_correlation(a, human)
    flat = bootstrap_correlation(np.ones(12), human)
    assert (math.isnan(flat.low), flat.reason) == (True, "the scores are constant")
    assert "not finite" in bootstrap_correlation([math.nan, *a[1:]], human).reason
    assert bootstrap_correlation([None, *a[1:]], human) == bootstrap_correlation(
        a[1:], human[1:]
    )._replace(left_out=1)
    interval = bootstrap_correlation([1.0, 2.0, 3.0], [1.0, 3.0, 2.0], resamples=9000)
    # Three draws of one segment: 3 / 27.
    assert interval.undefined / 9000 == pytest.approx(1 / 9, abs=0.015)
    assert -1 <= interval.low < interval.high <= 1


# Samples given by counts, against samples written out.

_POINT = st.tuples(
    st.integers(-3, 3), st.integers(0, 4), st.lists(st.integers(0, 3), min_size=4, max_size=4)
)


@given(st.sampled_from([*COEFFICIENTS]), st.lists(_POINT, min_size=1, max_size=12))
def test_as_if_each_sample_were_written_out(name: str, points: list) -> None:
    x, y = (np.array([point[side] for point in points], dtype=float) for side in (0, 1))
    counts = np.array([point[2] for point in points], dtype=float).T
    found = sample_correlations(name, x, y, counts)
    for value, count in zip(found, counts.astype(int), strict=True):
        expected = COEFFICIENTS[name](np.repeat(x, count), np.repeat(y, count)).value
        assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_offsets_and_scales_change_nothing(name: str) -> None:
    generator = np.random.default_rng(1)
    x, y = generator.normal(size=(2, 40))
    counts = generator.integers(0, 3, size=(7, 40)).astype(float)
    whole = sample_correlations(name, x, y, counts)
    assert sample_correlations(name, 1e4 + x, y * 1e-9, counts) == pytest.approx(whole, abs=1e-9)


# Williams' test.


@pytest.mark.parametrize(
    ("r12", "r13", "r23", "n", "t"),
    # Printed by R's cocor 1.1 as "williams1959", from correlations with more digits than it prints.
    [
        (-0.1741, 0.2015, 0.3734, 646, -9.0340),
        (0.5447, 0.8, 0.0729, 70, -2.8114),
        (0.8066, 0.2383, 0.2255, 177, 9.3823),
    ],
)
def test_statistics_that_cocor_prints(r12: float, r13: float, r23: float, n: int, t: float) -> None:
    p, other = williams(r12, r13, r23, n).value, williams(r13, r12, r23, n).value
    assert (stats.t.isf(p, n - 3) if t > 0 else -stats.t.isf(other, n - 3)) == pytest.approx(
        t, abs=2e-3
    )
    assert p + other == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("r12", "r13", "r23", "n"),
    [("3/5", "2/5", "1/2", 100), ("1/3", "-1/4", "1/5", 12), ("9/10", "8/9", "7/8", 560)],
)
def test_exact_fractions_and_an_integrated_tail(r12: str, r13: str, r23: str, n: int) -> None:
    a, b, c = Fraction(r12), Fraction(r13), Fraction(r23)
    # The determinant of the correlation matrix by cofactors, Steiger's (1980) form of the
    # statistic, squared.
    determinant = (1 - c * c) - a * (a - c * b) + b * (a * c - b)
    average = (a + b) / 2
    squared = (
        (a - b) ** 2
        * (n - 1)
        * (1 + c)
        / (2 * determinant * Fraction(n - 1, n - 3) + average**2 * (1 - c) ** 3)
    )
    freedom = n - 3
    height = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(
        freedom * math.pi
    )
    density = lambda t: height * (1 + t * t / freedom) ** (-(freedom + 1) / 2)  # noqa: E731
    tail, _ = integrate.quad(density, math.sqrt(squared), math.inf, epsabs=1e-14)
    assert williams(float(a), float(b), float(c), n).value == pytest.approx(tail, rel=1e-7)


def test_williams_on_scores() -> None:
    generator = np.random.default_rng(2)
    human, a, b = generator.normal(size=(3, 50))
    a, b = human + a, human + 2 * b
    expected = williams(pearson(human, a).value, pearson(human, b).value, pearson(a, b).value, 50)
    assert williams_test(a, b, human) == expected
    assert williams_test([*a, None, 1.0], [*b, 5.0, 7.0], [*human, 2.0, None]) == expected._replace(
        left_out=2
    )
    # Metrics that agree fully cannot be told apart; a perfect one is better than all.
    assert williams_test(a, 2 * a + 1, human).value == 0.5
    assert williams_test(human, b, human).value < 1e-6
    assert williams_test(b, human, human).value > 1 - 1e-6
    # No spread is left where the judgements are the difference of two unrelated metrics.
    assert williams(math.sqrt(0.5), -math.sqrt(0.5), 0.0, 10).value == pytest.approx(0.0, abs=1e-12)


def test_williams_that_is_not_defined_has_a_reason() -> None:
    varied = [1.0, 2.0, 4.0, 3.0]
    assert williams_test([1.0] * 4, varied, varied).reason == "the scores of A are constant"
    assert "scores of B hold 1" in williams_test(varied, [*varied[:3], math.nan], varied).reason
    assert (
        "exact opposites"
        in williams_test(varied, [-value for value in varied], [1.0, 2.0, 3.0, 0.0]).reason
    )
    few = williams_test(varied[:3], [1.0, 4.0, 2.0], [2.0, 1.0, 5.0])
    assert (few.known, few.reason) == (
        None,
        "Williams' test needs at least 4 segments, there are 3",
    )
    assert 0 < williams(0.9, 0.5, 0.6, 4).value < 0.5
