"""The bootstrap interval of a mean."""

import numpy as np
import pytest
from scipy import stats

from mtmetrics.errors import InputError
from mtmetrics.evaluation import significance
from mtmetrics.evaluation.significance import bootstrap_interval


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
