"""The bootstrap interval of a mean, and tests of the difference of two means."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from mtmetrics.errors import InputError
from mtmetrics.evaluation import significance
from mtmetrics.evaluation.significance import bootstrap_interval, paired_bootstrap, paired_permutation


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


def test_one_value_is_certain() -> None:
    assert bootstrap_interval([0.25])[:2] == (0.25, 0.25)


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [[1.0]]])
def test_refuses_what_has_no_mean(values: list) -> None:
    with pytest.raises(InputError, match="values"):
        bootstrap_interval(values)


@pytest.mark.parametrize("level", [0, 1, 95, "95%"])
def test_refuses_an_impossible_level(level: object) -> None:
    with pytest.raises(InputError, match="level"):
        bootstrap_interval([1.0, 2.0], level=level)


def test_all_permutations_of_eight_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.random.default_rng(5).normal(size=(2, 8))
    a += 0.5
    exact = stats.permutation_test(
        (a, b),
        lambda x, y: x.mean() - y.mean(),
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
        vectorized=False,
    ).pvalue
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
