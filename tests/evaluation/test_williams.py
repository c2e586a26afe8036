"""Williams' test against R's cocor, exact fractions and its own null distribution."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import pearson
from mtmetrics.evaluation.williams import williams, williams_test


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


def test_p_value_that_cocor_prints() -> None:
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
    human = np.random.default_rng(1).normal(size=30)
    other = human + np.random.default_rng(2).normal(size=30)
    assert williams_test(human, other, human).value < 1e-6
    assert williams_test(other, human, human).value > 1 - 1e-6
    # No spread is left where the judgements are the difference of two unrelated metrics.
    assert williams(math.sqrt(0.5), -math.sqrt(0.5), 0.0, 10).value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3])
def test_too_few_segments(n: int) -> None:
    result = williams_test(np.arange(n), np.arange(n) ** 2, np.sqrt(np.arange(n)))
    assert math.isnan(result.value)
    assert result.reason == f"Williams' test needs at least 4 segments, there are {n}"
    assert 0 < williams(0.9, 0.5, 0.6, 4).value < 0.5


def test_what_is_not_defined_has_a_reason() -> None:
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


def test_equally_good_metrics_are_told_apart_in_one_of_twenty_cases() -> None:
    human, a, b = np.random.default_rng(7).normal(size=(3, 4000, 60))
    columns = [human, human + a, human + b]
    human, a, b = ((column - column.mean(1, keepdims=True)) / column.std(1, keepdims=True) for column in columns)
    correlations = zip(*(np.mean(x * y, axis=1) for x, y in ((human, a), (human, b), (a, b))), strict=True)
    rejected = [williams(*found, 60).value <= 0.05 for found in correlations]
    assert np.mean(rejected) == pytest.approx(0.05, abs=0.01)
