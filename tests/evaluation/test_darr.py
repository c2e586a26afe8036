"""WMT's agreement with relative rankings from direct assessments."""

import itertools
import math

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.darr import darr_kendall


def test_worked_out_by_hand() -> None:
    scores = [0.9, 0.5, 0.5, 0.1, 0.3, 0.2]
    people = [90.0, 65.0, 40.0, 64.9, 20.0, 80.0]
    items = ["s", "s", "s", "s", "t", "t"]
    # s: 90 over 65, 40 and 64.9: concordant thrice; 65 over 40: tied by the metric, so discordant; 65, 64.9 and 64.9,
    # 40 are too close.
    # t: 80 over 20: discordant. (3 - 2) / 5
    assert darr_kendall(scores, people, items).value == pytest.approx(0.2)
    # 64.9 over 40 counts from a threshold of 24.9 down, and is discordant.
    assert darr_kendall(scores, people, items, threshold=24.5).value == pytest.approx(0.0)


def test_the_threshold_itself_is_far_enough() -> None:
    assert darr_kendall([0.1, 0.2], [50.0, 75.0], ["s", "s"]).value == 1.0


def test_against_counting_pair_by_pair() -> None:
    generator = np.random.default_rng(3)
    items = generator.integers(0, 40, 300)
    people = generator.integers(0, 101, 300).astype(float)
    scores = np.round(people / 100 + generator.normal(0, 0.4, 300), 1)
    concordant = discordant = 0
    for i, j in itertools.combinations(range(300), 2):
        if items[i] == items[j] and abs(people[i] - people[j]) >= 25:
            better, worse = (i, j) if people[i] > people[j] else (j, i)
            concordant += scores[better] > scores[worse]
            discordant += scores[better] <= scores[worse]
    expected = (concordant - discordant) / (concordant + discordant)
    assert darr_kendall(scores, people, items).value == pytest.approx(expected, abs=1e-15)


def test_what_is_not_defined_has_a_reason() -> None:
    alone = darr_kendall([0.1, 0.2, None], [0.0, 100.0, 50.0], ["s", "t", "s"])
    assert math.isnan(alone.value)
    assert alone.reason == "no two translations of one item were judged at least 25 points apart"
    assert alone.left_out == 1
    assert "not finite" in darr_kendall([0.1, math.nan], [0.0, 100.0], ["s", "s"]).reason


@pytest.mark.parametrize("threshold", [0, -25, math.nan])
def test_impossible_thresholds_are_refused(threshold: float) -> None:
    with pytest.raises(InputError, match="threshold"):
        darr_kendall([0.1, 0.2], [0.0, 100.0], ["s", "s"], threshold)
