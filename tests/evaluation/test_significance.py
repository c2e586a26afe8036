"""Intervals and tests: of means, and of correlations (PERM-BOTH, Williams), against enumeration, scipy and R."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from mtmetrics.errors import InputError
from mtmetrics.evaluation import significance
from mtmetrics.evaluation.correlation import COEFFICIENTS, correlate, pearson
from mtmetrics.evaluation.significance import (
    bootstrap_correlations,
    bootstrap_interval,
    paired_bootstrap,
    paired_permutation,
    perm_both,
    williams,
    williams_test,
)


def test_agrees_with_scipy_on_a_skewed_sample() -> None:
    values = np.random.default_rng(0).exponential(size=300)
    ours = bootstrap_interval(values, resamples=20_000)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(1))
    assert ours[:2] == pytest.approx(tuple(theirs.confidence_interval), abs=0.005)
    assert ours.low < values.mean() < ours.high


def test_level_seed_and_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).normal(size=200)
    wide, narrow = bootstrap_interval(values), bootstrap_interval(values, level=0.5)
    assert wide.low < narrow.low < narrow.high < wide.high
    assert bootstrap_interval(values) == wide
    assert bootstrap_interval(values, seed=2) != wide
    monkeypatch.setattr(significance, "_DRAWN_AT_ONCE", 64)
    assert bootstrap_interval(values)[:2] == pytest.approx(wide[:2], abs=0.05)


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [[1.0]]])
def test_refuses_what_has_no_mean(values: list) -> None:
    assert bootstrap_interval([0.25])[:2] == (0.25, 0.25)
    with pytest.raises(InputError, match="values"):
        bootstrap_interval(values)


@pytest.mark.parametrize("level", [0, 1, 95, "95%"])
def test_refuses_an_impossible_level(level: object) -> None:
    with pytest.raises(InputError, match="level"):
        bootstrap_interval([1.0, 2.0], level=level)
    with pytest.raises(InputError, match="level"):
        bootstrap_correlations([[1.0, 2.0]], [1.0, 2.0], level=level)


def test_all_permutations_of_eight_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.random.default_rng(5).normal(size=(2, 8))
    a += 0.5
    settings = {"permutation_type": "samples", "alternative": "greater", "n_resamples": np.inf, "vectorized": False}
    exact = stats.permutation_test((a, b), lambda x, y: x.mean() - y.mean(), **settings).pvalue
    every = np.array(list(itertools.product([1.0, -1.0], repeat=8)))
    monkeypatch.setattr(significance, "sign_flips", lambda resamples, n, seed: [every])
    assert paired_permutation(a, b, resamples=256) == pytest.approx((256 * exact + 1) / 257, abs=1e-15)


def test_rounding_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    every = np.array(list(itertools.product([1.0, -1.0], repeat=3)))
    monkeypatch.setattr(significance, "sign_flips", lambda resamples, n, seed: [every])
    # 0.1 + 0.2 - 0.3 is 0 but for rounding; of the 8 sums of the three with signs, 5 are at least 0.
    assert paired_permutation([0.1, 0.2, 0.0], [0.0, 0.0, 0.3], resamples=8) == 6 / 9
    # Of the 27 resamples 10 have a negative lead; the 6 that hold each difference once have none.
    assert paired_bootstrap([0.1, 0.2, 0.0], [0.0, 0.0, 0.3], resamples=20_000) == pytest.approx(16 / 27, abs=0.015)


def test_paired_bootstrap_counts_the_resamples_without_a_lead() -> None:
    a, b = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 1.0])
    # Differences -1, 1, 2: of the 27 resamples those with two or three of -1 and at most a 2 beside them: 1 + 3 + 3.
    assert paired_bootstrap(a, b, resamples=20_000) == pytest.approx(7 / 27, abs=0.015)


@pytest.mark.parametrize("test", [paired_bootstrap, paired_permutation])
class TestPaired:
    def test_clear_lead_and_no_lead(self, test) -> None:
        a = np.random.default_rng(0).normal(size=100)
        b = a - 1 + 0.1 * np.sin(np.arange(100))
        assert test(a, b, resamples=99) == 0.01
        assert test(b, a, resamples=99) == 1.0
        assert test(a, a) == 1.0

    def test_seed_and_none(self, test) -> None:
        a, b = np.random.default_rng(1).normal(size=(2, 50))
        p = test(a, b)
        assert p == test(a, b)
        assert p != test(a, b, seed=1)
        assert p == test([*a, None, 9.0], [*b, 5.0, None])

    def test_refusals(self, test) -> None:
        with pytest.raises(InputError, match="nothing to compare"):
            test([None], [1.0])
        with pytest.raises(InputError, match="scores of B hold 1 values that are not finite, the first at index 1"):
            test([1.0, 2.0], [1.0, math.nan])
        with pytest.raises(InputError, match="resamples"):
            test([1.0, 2.0], [1.0, 1.0], resamples=0)

    def test_equally_good_systems_are_told_apart_in_one_of_twenty_cases(self, test) -> None:
        a, b = np.random.default_rng(3).normal(size=(2, 2000, 100))
        found = [test(x, y, resamples=199, seed=seed) for seed, (x, y) in enumerate(zip(a, b, strict=True))]
        assert np.mean(np.array(found) <= 0.05) == pytest.approx(0.05, abs=0.01)


# Correlations by resampling.


def _metrics(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of a better and a worse metric, on scales of their own, and judgements."""
    generator = np.random.default_rng(seed)
    human = generator.normal(size=n)
    return 5 + human + generator.normal(size=n), 100 * (human + 1.3 * generator.normal(size=n)), human


@pytest.mark.parametrize("groups", [None, [0, 0, 0, 1, 1, 1, 2, 2]])
@pytest.mark.parametrize("name", COEFFICIENTS)
def test_perm_both_of_all_permutations(name: str, groups: list[int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, human = _metrics(8, seed=3)
    b[-1] = b[-2]  # in some permutations the last group is tied on one side
    every = np.array(list(itertools.product([1.0, -1.0], repeat=8)))
    monkeypatch.setattr(significance, "sign_flips", lambda resamples, n, seed: [every[:100], every[100:]])
    found = perm_both(a, b, human, coefficient=name, groups=groups, resamples=len(every)).value
    a, b = stats.zscore(a), stats.zscore(b)

    def lead(swapped: np.ndarray) -> float:
        first, second = np.where(swapped, b, a), np.where(swapped, a, b)
        return correlate(name, first, human, groups=groups).value - correlate(name, second, human, groups=groups).value

    leads = np.array([lead(signs < 0) for signs in every])
    assert found == (1 + np.sum(leads >= lead(every[0] < 0) - 1e-9)) / (len(every) + 1)


def test_draws_come_near_to_all_permutations() -> None:
    a, b, human = _metrics(10, seed=0)
    every = np.array(list(itertools.product([False, True], repeat=10)))
    x, y = stats.zscore(a), stats.zscore(b)
    leads = [np.corrcoef(np.where(s, y, x), human)[0, 1] - np.corrcoef(np.where(s, x, y), human)[0, 1] for s in every]
    exact = np.mean(np.array(leads) >= leads[0] - 1e-12)
    assert 0.05 < exact < 0.95
    assert perm_both(a, b, human, resamples=20_000).value == pytest.approx(exact, abs=0.015)


def test_perm_both_direction_scale_seed_and_smallest_value() -> None:
    human = np.random.default_rng(0).normal(size=200)
    good, bad = human + 0.1 * np.sin(np.arange(200)), np.random.default_rng(1).normal(size=200)
    assert perm_both(good, bad, human, resamples=199).value == 1 / 200
    assert perm_both(bad, good, human, resamples=199).value == 1.0
    a, b, human = _metrics(80)
    p = perm_both(a, b, human)
    assert p == perm_both(0.01 * a - 7, b, human)
    assert p != perm_both(a, b, human, seed=1)


def test_equal_metrics_cannot_be_told_apart() -> None:
    a, _, human = _metrics(30)
    assert perm_both(a, a, human).value == 1.0
    assert perm_both(a, 3 * a + 1, human, coefficient="kendall-b").value == 1.0


def test_perm_both_leaves_out_segments_with_none() -> None:
    a, b, human = _metrics(20)
    whole = perm_both(a[:18], b[:18], human[:18])
    assert perm_both([*a[:18], None, 1.0], b, [*human[:19], None]) == whole._replace(left_out=2)


def test_perm_both_that_is_not_defined_has_a_reason() -> None:
    a, b, human = _metrics(6)
    assert perm_both(np.ones(6), b, human).reason == "the scores of A are constant"
    assert "scores of B hold 1 values that are not finite" in perm_both(a, [*b[:5], math.nan], human).reason
    alone = perm_both(a, b, human, groups=list(range(6)))
    assert math.isnan(alone.value)
    assert alone.reason == "the correlation of a metric with people is undefined in each group"
    with pytest.raises(InputError, match="coefficient"):
        perm_both(a, b, human, coefficient="tau")
    with pytest.raises(InputError, match="resamples"):
        perm_both(a, b, human, resamples=0)


def test_perm_both_tells_equally_good_metrics_apart_in_one_of_twenty_cases() -> None:
    generator = np.random.default_rng(11)
    human, a, b = generator.normal(size=(3, 2000, 40))
    cases = enumerate(zip(human, a, b, strict=True))
    found = [perm_both(h + x, h + y, h, resamples=199, seed=seed).value for seed, (h, x, y) in cases]
    assert np.mean(np.array(found) <= 0.05) == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_intervals_agree_with_scipy(name: str) -> None:
    a, b, human = _metrics(60)
    ours = bootstrap_correlations([a, b], human, coefficient=name, resamples=4000, level=0.9)
    for scores, interval in zip((a, b), ours, strict=True):
        settings = {"paired": True, "vectorized": False, "method": "percentile", "confidence_level": 0.9}
        theirs = stats.bootstrap(
            (scores, human),
            lambda x, y: COEFFICIENTS[name](x, y).value,
            n_resamples=500,
            rng=np.random.default_rng(5),
            **settings,
        ).confidence_interval
        assert interval[:2] == pytest.approx(tuple(theirs), abs=0.03)
        assert interval.low < COEFFICIENTS[name](scores, human).value < interval.high
        assert (interval.level, interval.resamples, interval.undefined, interval.reason) == (0.9, 4000, 0, None)


def test_metrics_share_the_resamples() -> None:
    a, b, human = _metrics(40)
    same = bootstrap_correlations([a, 2 * a, b], human)
    assert same[0][:2] == pytest.approx(same[1][:2], abs=1e-12)
    assert same[2] == bootstrap_correlations([b], human)[0]
    assert bootstrap_correlations(np.array([a, b]), human, seed=1)[0] != same[0]


def test_an_undefined_metric_has_its_reason_and_harms_no_other() -> None:
    a, _, human = _metrics(12)
    found = bootstrap_correlations([np.ones(12), a, [math.nan, *a[1:]]], human)
    assert [interval.reason for interval in found[:2]] == ["the scores are constant", None]
    assert math.isnan(found[0].low)
    assert "not finite" in found[2].reason
    assert found[1] == bootstrap_correlations([a], human)[0]
    assert "there are 0" in bootstrap_correlations([[None, None]], [1.0, 2.0])[0].reason


def test_resamples_without_spread_are_counted() -> None:
    interval = bootstrap_correlations([[1.0, 2.0, 3.0]], [1.0, 3.0, 2.0], resamples=9000)[0]
    # Three draws of one segment: 3 / 27.
    assert interval.undefined / 9000 == pytest.approx(1 / 9, abs=0.015)
    assert -1 <= interval.low < interval.high <= 1


def test_a_segment_that_one_metric_lacks_is_left_out_for_all() -> None:
    a, b, human = _metrics(20)
    found = bootstrap_correlations([[None, *a[1:]], b], human)
    assert found[1] == bootstrap_correlations([b[1:]], human[1:])[0]._replace(left_out=1)


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
    p = williams(r12, r13, r23, n).value
    found = stats.t.isf(p, n - 3) if t > 0 else -stats.t.isf(williams(r13, r12, r23, n).value, n - 3)
    assert found == pytest.approx(t, abs=2e-3)
    assert p + williams(r13, r12, r23, n).value == pytest.approx(1.0)
    # The two-sided p-value that it prints.
    assert 2 * williams(0.8, 0.5447, 0.0729, 70).value == pytest.approx(0.0065, abs=5e-5)


@pytest.mark.parametrize(
    ("r12", "r13", "r23", "n"), [("3/5", "2/5", "1/2", 100), ("1/3", "-1/4", "1/5", 12), ("9/10", "8/9", "7/8", 560)]
)
def test_exact_fractions_and_an_integrated_tail(r12: str, r13: str, r23: str, n: int) -> None:
    a, b, c = Fraction(r12), Fraction(r13), Fraction(r23)
    # The determinant of the correlation matrix by cofactors, Steiger's (1980) form of the statistic, squared.
    determinant = (1 - c * c) - a * (a - c * b) + b * (a * c - b)
    average = (a + b) / 2
    squared = (a - b) ** 2 * (n - 1) * (1 + c) / (2 * determinant * Fraction(n - 1, n - 3) + average**2 * (1 - c) ** 3)
    freedom = n - 3
    height = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    tail, _ = integrate.quad(
        lambda t: height * (1 + t * t / freedom) ** (-(freedom + 1) / 2), math.sqrt(squared), math.inf, epsabs=1e-14
    )
    assert williams(float(a), float(b), float(c), n).value == pytest.approx(tail, rel=1e-7)


def test_scores_and_correlations_give_one_answer() -> None:
    generator = np.random.default_rng(2)
    human = generator.normal(size=50)
    a, b = human + generator.normal(size=50), human + 2 * generator.normal(size=50)
    expected = williams(pearson(human, a).value, pearson(human, b).value, pearson(a, b).value, 50)
    assert williams_test(a, b, human) == expected
    assert williams_test([*a, None, 1.0], [*b, 5.0, 7.0], [*human, 2.0, None]) == expected._replace(left_out=2)


def test_metrics_that_agree_fully_cannot_be_told_apart() -> None:
    human = np.random.default_rng(1).normal(size=30)
    scores = human + np.random.default_rng(2).normal(size=30)
    assert williams_test(scores, scores, human).value == 0.5
    assert williams_test(scores, 2 * scores + 1, human).value == 0.5


def test_a_perfect_metric() -> None:
    human, other = (np.random.default_rng(seed).normal(size=30) for seed in (1, 2))
    assert williams_test(human, human + other, human).value < 1e-6
    assert williams_test(human + other, human, human).value > 1 - 1e-6
    # No spread is left where the judgements are the difference of two unrelated metrics.
    assert williams(math.sqrt(0.5), -math.sqrt(0.5), 0.0, 10).value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3])
def test_too_few_segments(n: int) -> None:
    result = williams_test(np.arange(n), np.arange(n) ** 2, np.sqrt(np.arange(n)))
    assert math.isnan(result.value)
    assert result.reason == f"Williams' test needs at least 4 segments, there are {n}"
    assert 0 < williams(0.9, 0.5, 0.6, 4).value < 0.5


def test_williams_that_is_not_defined_has_a_reason() -> None:
    varied = [1.0, 2.0, 4.0, 3.0]
    assert williams_test([1.0] * 4, varied, varied).reason == "the scores of A are constant"
    assert "scores of B hold 1" in williams_test(varied, [*varied[:3], math.nan], varied).reason
    assert "exact opposites" in williams_test(varied, [-value for value in varied], [1.0, 2.0, 3.0, 0.0]).reason


@pytest.mark.parametrize(
    ("r12", "r13", "r23", "message"), [(1.2, 0.0, 0.0, "r12"), (math.nan, 0, 0, "r12"), (0.9, -0.9, 0.9, "together")]
)
def test_impossible_correlations_are_refused(r12: float, r13: float, r23: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        williams(r12, r13, r23, 20)


def test_williams_tells_equally_good_metrics_apart_in_one_of_twenty_cases() -> None:
    human, a, b = np.random.default_rng(7).normal(size=(3, 4000, 60))
    columns = [human, human + a, human + b]
    human, a, b = ((column - column.mean(1, keepdims=True)) / column.std(1, keepdims=True) for column in columns)
    correlations = zip(*(np.mean(x * y, axis=1) for x, y in ((human, a), (human, b), (a, b))), strict=True)
    rejected = [williams(*found, 60).value <= 0.05 for found in correlations]
    assert np.mean(rejected) == pytest.approx(0.05, abs=0.01)
