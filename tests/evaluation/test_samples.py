"""Coefficients of samples given by counts, against samples written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtmetrics.evaluation import samples
from mtmetrics.evaluation.correlation import COEFFICIENTS
from mtmetrics.evaluation.samples import sample_correlations

_POINT = st.tuples(st.integers(-3, 3), st.integers(0, 4), st.lists(st.integers(0, 3), min_size=4, max_size=4))


@pytest.mark.parametrize("name", COEFFICIENTS)
@given(st.lists(_POINT, min_size=1, max_size=12))
def test_as_if_each_sample_were_written_out(name: str, points: list) -> None:
    x, y = (np.array([point[side] for point in points], dtype=float) for side in (0, 1))
    counts = np.array([point[2] for point in points], dtype=float).T
    found = sample_correlations(name, x, y, counts)
    for value, count in zip(found, counts.astype(int), strict=True):
        assert value == pytest.approx(
            COEFFICIENTS[name](np.repeat(x, count), np.repeat(y, count)).value, abs=1e-12, nan_ok=True
        )


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_portions_of_the_sign_matrix_and_offsets_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    x, y = generator.normal(size=(2, 40))
    counts = generator.integers(0, 3, size=(7, 40)).astype(float)
    whole = sample_correlations(name, x, y, counts)
    monkeypatch.setattr(samples, "_SIGNS_AT_ONCE", 100)
    assert sample_correlations(name, 1e4 + x, y * 1e-9, counts) == pytest.approx(whole, abs=1e-9)
