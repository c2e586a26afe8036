"""Agreement as a function of the weights of parts."""

import csv
import itertools
import json
import math

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import COEFFICIENTS, pearson
from mtmetrics.evaluation.plots import best_weights, draw_weights, mean_grid, render_weights, simplex, weight_grid

HUMAN = [0.0, 1.0, 2.0, 3.0]
DRAWN = np.linspace(-1.0, 1.0, 21)


def test_the_points_are_all_ways_to_share_one() -> None:
    assert simplex(3, 2).tolist() == [[1, 0, 0], [0.5, 0, 0.5], [0, 0, 1], [0.5, 0.5, 0], [0, 0.5, 0.5], [0, 1, 0]]
    for k, steps in itertools.product((2, 3, 4), (1, 5)):
        points = simplex(k, steps)
        assert len({tuple(point) for point in points.tolist()}) == len(points) == math.comb(steps + k - 1, k - 1)
        assert points.min() == 0.0
        assert points.sum(1) == pytest.approx(1.0)


def test_two_parts_by_hand() -> None:
    """Each part is right about one half of the segments; their sum is right about all."""
    grid = weight_grid({"left": np.array([0.0, 1.0, 0.0, 1.0]), "right": np.array([0.0, 0.0, 2.0, 2.0])}, HUMAN, 2)
    assert grid.points.tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
    expected = [1 / math.sqrt(5), 1.0, 2 / math.sqrt(5)]
    assert [correlation.value for correlation in grid.correlations] == pytest.approx(expected)
    assert grid.best == 1


def test_every_point_is_the_correlation_of_the_weighted_sum() -> None:
    generator = np.random.default_rng(0)
    parts = dict(zip("abc", generator.normal(size=(3, 30)), strict=True))
    human = [None, *generator.normal(size=29).tolist()]
    grid = weight_grid(parts, human, 4, coefficient="spearman")
    for (a, b, c), found in zip(grid.points, grid.correlations, strict=True):
        assert found == COEFFICIENTS["spearman"](a * parts["a"] + b * parts["b"] + c * parts["c"], human)
    assert {found.left_out for found in grid.correlations} == {1}
    # All weight on one part is that part.
    assert weight_grid({"a": parts["a"], "b": parts["b"]}, human, 1).correlations[0] == pearson(parts["a"], human)


def test_a_constant_part_is_undefined_alone_and_best_elsewhere() -> None:
    grid = weight_grid({"flat": np.ones(4), "good": np.array(HUMAN)}, HUMAN, 1)
    assert grid.correlations[0].reason == "the scores are constant"
    assert grid.best == 1
    assert weight_grid({"flat": np.ones(4), "flat too": np.ones(4)}, HUMAN, 1).best is None


def test_the_mean_over_files_decides() -> None:
    rising, falling = np.array(HUMAN), np.array([3.0, 1.0, 2.0, 0.0])
    first = weight_grid({"a": rising, "b": falling}, HUMAN, 1)
    second = weight_grid({"a": falling, "b": rising}, HUMAN, 1)
    third = weight_grid({"a": falling, "b": np.array([0.0, 2.0, 1.0, 3.0])}, HUMAN, 1)
    whole = mean_grid({"first": first, "second": second, "third": third})
    expected = [np.mean([grid.correlations[i].value for grid in (first, second, third)]) for i in range(2)]
    assert [correlation.value for correlation in whole.correlations] == pytest.approx(expected)
    assert (first.best, whole.best) == (0, 1)


@pytest.mark.parametrize(
    ("parts", "options", "message"),
    [
        ({"a": HUMAN}, {}, "parts: a given; weights need at least two"),
        ({"a": HUMAN, "b": HUMAN}, {"steps": 0}, "steps 0"),
        ({"a": HUMAN, "b": HUMAN}, {"coefficient": "darr"}, "coefficient 'darr'"),
    ],
)
def test_refusals(parts: dict, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        weight_grid(parts, HUMAN, **options)


def test_reports() -> None:
    grid = weight_grid({"flat": np.ones(4), "good": np.array(HUMAN)}, HUMAN, 2)
    shown = json.loads(render_weights({"de-en": grid}, {"metric": "m"}, "json"))
    assert shown["metric"] == "m"
    assert shown["parts"] == ["flat", "good"]
    assert shown["grid"][0] == {"weights": {"flat": 1.0, "good": 0.0}, "correlations": {"de-en": None, "mean": None}}
    assert shown["best"]["weights"] == {"flat": 0.5, "good": 0.5}
    assert shown["best"]["correlations"]["mean"] == pytest.approx(1.0)
    rows = list(csv.reader(render_weights({"de-en": grid}, {}, "csv").splitlines()))
    assert rows == [
        ["flat", "good", "de-en", "mean"],
        ["1", "0", "nan", "nan"],
        ["0.5", "0.5", "1.000", "1.000"],
        ["0", "1", "1.000", "1.000"],
    ]
    assert best_weights(grid) == "best weights: flat 0.5, good 0.5 (1.000)"
    assert "no weights are best" in best_weights(weight_grid({"a": np.ones(4), "b": np.ones(4)}, HUMAN, 1))


def test_three_weights_make_a_triangle_with_the_best_cell_framed() -> None:
    generator = np.random.default_rng(1)
    shares = {"wmd": 1.0, "pseudo": 2.0, "lm": 1.0}
    grid = weight_grid({name: share * DRAWN + generator.normal(size=21) for name, share in shares.items()}, DRAWN, 4)
    figure = draw_weights(grid, title="uscore", label="Pearson's r")
    axes, bar = figure.axes
    cells = axes.images[0].get_array()
    assert cells.shape == (5, 5)
    assert np.ma.count(np.ma.masked_invalid(cells)) == 15
    for (_, pseudo, lm), correlation in zip(grid.points, grid.correlations, strict=True):
        assert cells[round(4 * lm), round(4 * pseudo)] == correlation.value
    labels = [axes.get_xlabel(), axes.get_ylabel(), bar.get_ylabel()]
    assert labels == ["weight of pseudo", "weight of lm", "Pearson's r"]
    assert axes.get_title(loc="left") == "uscore\nweight of wmd: what is left of 1"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "0.25", "0.5", "0.75", "1"]
    (frame,) = [patch for patch in axes.patches if not patch.get_fill()]
    _, pseudo, lm = grid.points[grid.best]
    assert (frame.get_x() + 0.5, frame.get_y() + 0.5) == (4 * pseudo, 4 * lm)
    assert len(axes.texts) == 15


def test_fine_grids_have_no_numbers() -> None:
    grid = weight_grid({name: DRAWN + i for i, name in enumerate("abc")}, DRAWN, 20)
    axes = draw_weights(grid, title="", label="r").axes[0]
    assert not axes.texts
    assert len(axes.get_xticks()) == 11


def test_two_weights_make_a_line() -> None:
    grid = weight_grid({"mover": DRAWN, "lm": np.cos(DRAWN)}, DRAWN, 5)
    figure = draw_weights(grid, title="xmoverscore", label="r")
    (axes,) = figure.axes
    x, y = axes.lines[0].get_data()
    assert x == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert y == pytest.approx([correlation.value for correlation in grid.correlations], nan_ok=True)
    assert axes.collections[0].get_offsets().tolist() == [[0.0, 1.0]]
    assert axes.get_xlabel() == "weight of lm"
