"""PERM-BOTH against exhaustive enumeration, intervals of correlations against scipy."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from mtmetrics.errors import InputError
from mtmetrics.evaluation import resampling
from mtmetrics.evaluation.correlation import COEFFICIENTS
from mtmetrics.evaluation.grouping import correlate
from mtmetrics.evaluation.resampling import bootstrap_correlations, perm_both


def _metrics(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of a better and a worse metric, on scales of their own, and judgements."""
    generator = np.random.default_rng(seed)
    human = generator.normal(size=n)
    return 5 + human + generator.normal(size=n), 100 * (human + 1.3 * generator.normal(size=n)), human


@pytest.mark.parametrize("groups", [None, [0, 0, 0, 1, 1, 1, 2, 2]])
@pytest.mark.parametrize("name", COEFFICIENTS)
def test_all_permutations_of_eight_segments(
    name: str, groups: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, human = _metrics(8, seed=3)
    b[-1] = b[-2]  # in some permutations the last group is tied on one side
    every = np.array(list(itertools.product([1.0, -1.0], repeat=8)))
    monkeypatch.setattr(resampling, "sign_flips", lambda resamples, n, seed: [every[:100], every[100:]])
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


def test_direction_scale_seed_and_smallest_value() -> None:
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


def test_none_leaves_a_segment_out() -> None:
    a, b, human = _metrics(20)
    whole = perm_both(a[:18], b[:18], human[:18])
    assert perm_both([*a[:18], None, 1.0], b, [*human[:19], None]) == whole._replace(left_out=2)


def test_what_is_not_defined_has_a_reason() -> None:
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


def test_equally_good_metrics_are_told_apart_in_one_of_twenty_cases() -> None:
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
        theirs = stats.bootstrap(
            (scores, human),
            lambda x, y: COEFFICIENTS[name](x, y).value,
            paired=True,
            vectorized=False,
            method="percentile",
            confidence_level=0.9,
            n_resamples=500,
            rng=np.random.default_rng(5),
        ).confidence_interval
        assert (interval.low, interval.high) == (
            pytest.approx(theirs.low, abs=0.03),
            pytest.approx(theirs.high, abs=0.03),
        )
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


def test_impossible_levels_are_refused() -> None:
    with pytest.raises(InputError, match="level"):
        bootstrap_correlations([[1.0, 2.0]], [1.0, 2.0], level=95)
