"""Contents of the plots, and agreement as a function of the weights of parts."""

import csv
import itertools
import math

import numpy as np
import pytest

from mtmetrics.reports.plots import (
    Bar,
    best_weights,
    draw_bars,
    draw_curves,
    draw_scatter,
    draw_weights,
    mean_grid,
    report_weights,
    simplex,
    weight_grid,
)
from mtmetrics.statistics.correlation import COEFFICIENTS, pearson

SPREAD = np.linspace(-1.0, 1.0, 21)
HUMAN = [0.0, 1.0, 2.0, 3.0]


def test_scatter_has_a_panel_per_file_and_metric_with_r_and_line() -> None:
    noisy = 2.0 * SPREAD + np.random.default_rng(0).normal(size=21)
    flat = {"de-en": (np.zeros(21), SPREAD), "fi-en": (noisy, -SPREAD)}
    figure = draw_scatter({pair: {"first": (noisy, SPREAD), "flat": flat[pair]} for pair in flat})
    assert len(figure.axes) == 4
    first, flat = figure.axes[:2]
    r = pearson(noisy, SPREAD).value
    assert first.get_title(loc="left").split("\n") == ["first", "de-en", f"r = {r:.3f}, n = 21"]
    assert first.collections[0].get_offsets().tolist() == np.stack([SPREAD, noisy], axis=1).tolist()
    x, y = first.lines[0].get_data()
    slope = r * noisy.std() / SPREAD.std()
    assert (y[1] - y[0]) / (x[1] - x[0]) == pytest.approx(slope)
    assert flat.get_title(loc="left").endswith("r not defined, n = 21")
    assert not flat.lines
    assert [axes.get_xlabel() for axes in figure.axes] == [
        "",
        "",
        "human judgement",
        "human judgement",
    ]
    assert [axes.get_ylabel() for axes in figure.axes] == ["score", "", "score", ""]
    # What is missing is left out, a long name cut, or on two lines where it has options.
    [axes] = draw_scatter(
        {"de-en": {"m" * 100: ([1.0, None, 2.0, 4.0], [1.0, 2.0, None, 3.0])}}
    ).axes
    assert len(axes.collections[0].get_offsets()) == 2
    name, _, found = axes.get_title(loc="left").split("\n")
    assert (len(name), "…" in name, found) == (36, True, "r = 1.000, n = 2")
    metric = "sentsim:mini:against=reference,combine=wmd"
    [axes] = draw_scatter({"de-en": {metric: (SPREAD, SPREAD)}}).axes
    assert axes.get_title(loc="left").split("\n")[:2] == [
        "sentsim:mini:",
        "against=reference,combine=wmd",
    ]


def test_bars_stand_side_by_side_with_whiskers_and_gaps() -> None:
    bars = {
        "one": [Bar(0.5, 0.4, 0.7), Bar(np.nan), Bar(0.45)],
        "two": [Bar(-0.1, -0.2, 0.1), Bar(0.3, 0.2, 0.35), Bar(0.1)],
    }
    figure = draw_bars(bars, ["de-en", "fi-en", "mean"], title="A title", y_label="r")
    (axes,) = figure.axes
    one, two = axes.containers[0], axes.containers[2]
    assert [bar.get_height() for bar in one] == [0.5, 0.0, 0.45]
    assert [bar.get_height() for bar in two] == [-0.1, 0.3, 0.1]
    for left, right in zip(one, two, strict=True):
        assert left.get_x() + left.get_width() <= right.get_x()
    assert one[0].get_facecolor() != two[0].get_facecolor()
    ends = [
        sorted(point[1] for point in segment)
        for line in axes.collections
        for segment in line.get_segments()
    ]
    assert np.array(ends) == pytest.approx(np.array([[0.4, 0.7], [-0.2, 0.1], [0.2, 0.35]]))
    assert [text.get_text().strip() for text in axes.texts] == ["n/a"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["de-en", "fi-en", "mean"]
    assert [label.get_text() for label in axes.get_legend().get_texts()] == ["one", "two"]
    assert (axes.get_title(loc="left"), axes.get_ylabel()) == ("A title", "r")


def test_bars_of_more_metrics_than_colours_and_of_groups_that_no_font_can_write() -> None:
    with pytest.warns(UserWarning, match="U\\+12000"):
        figure = draw_bars(
            {f"m{i}": [Bar(0.1 * i)] for i in range(9)}, ["𒀀-en"], title="", y_label="r"
        )
    looks = [(bar.get_facecolor(), bar.get_hatch()) for bar in figure.axes[0].patches]
    assert len(looks) == len(set(looks)) == 9
    figure.canvas.draw()
    assert figure.axes[0].get_xticklabels()[0].get_text() == "�-en"


def test_curves_are_lines_with_gaps_and_intervals() -> None:
    lines = {"a": {0: 0.1, 1: np.nan, 2: 0.2}, "b": {0: 0.2, 1: 0.3, 2: 0.4}}
    axes_names = {"x_label": "layer", "y_label": "r"}
    [axes] = draw_curves(
        lines, title="T", **axes_names, intervals={"b": {0: (0.0, 0.3), 2: (0.3, 0.9)}}
    ).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    assert axes.lines[0].get_ydata() == pytest.approx([0.1, np.nan, 0.2], nan_ok=True)
    assert axes.lines[1].get_ydata().tolist() == [0.2, 0.3, 0.4]
    assert axes.get_xticks().tolist() == [0, 1, 2]
    assert (axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()) == ("T", "layer", "r")
    assert (len(axes.collections), axes.get_ylim()[0] < 0.0, axes.get_ylim()[1] > 0.9) == (
        1,
        True,
        True,
    )
    # Noise does not fill a plot.
    for last, expected in ((0.501, (0.4005, 0.6005)), (0.9, (0.48, 0.92))):
        [axes] = draw_curves(
            {"r": {0: 0.500, 1: last}}, title="T", **axes_names, least_span=0.2
        ).axes
        assert axes.get_ylim() == pytest.approx(expected)


# Weights.


def test_the_points_are_all_ways_to_share_one() -> None:
    assert simplex(3, 2).tolist() == [
        [1, 0, 0],
        [0.5, 0, 0.5],
        [0, 0, 1],
        [0.5, 0.5, 0],
        [0, 0.5, 0.5],
        [0, 1, 0],
    ]
    for k, steps in itertools.product((2, 3, 4), (1, 5)):
        points = simplex(k, steps)
        assert (
            len({tuple(point) for point in points.tolist()})
            == len(points)
            == math.comb(steps + k - 1, k - 1)
        )
        assert points.min() == 0.0
        assert points.sum(1) == pytest.approx(1.0)


def test_every_point_is_the_correlation_of_the_weighted_sum() -> None:
    generator = np.random.default_rng(0)
    parts = dict(zip("abc", generator.normal(size=(3, 30)), strict=True))
    human = [None, *generator.normal(size=29).tolist()]
    grid = weight_grid(parts, human, 4, coefficient="spearman")
    for (a, b, c), found in zip(grid.points, grid.correlations, strict=True):
        assert found == COEFFICIENTS["spearman"](
            a * parts["a"] + b * parts["b"] + c * parts["c"], human
        )
    assert {found.left_out for found in grid.correlations} == {1}
    # All weight on one part is that part.
    assert weight_grid({"a": parts["a"], "b": parts["b"]}, human, 1).correlations[0] == pearson(
        parts["a"], human
    )


def test_the_mean_over_files_decides() -> None:
    rising, falling = np.array(HUMAN), np.array([3.0, 1.0, 2.0, 0.0])
    first = weight_grid({"a": rising, "b": falling}, HUMAN, 1)
    second = weight_grid({"a": falling, "b": rising}, HUMAN, 1)
    third = weight_grid({"a": falling, "b": np.array([0.0, 2.0, 1.0, 3.0])}, HUMAN, 1)
    whole = mean_grid({"first": first, "second": second, "third": third})
    expected = [
        np.mean([grid.correlations[i].value for grid in (first, second, third)]) for i in range(2)
    ]
    assert [correlation.value for correlation in whole.correlations] == pytest.approx(expected)
    assert (first.best, whole.best) == (0, 1)


def test_reports() -> None:
    grid = weight_grid({"flat": np.ones(4), "good": np.array(HUMAN)}, HUMAN, 2)
    shown = report_weights({"de-en": grid}, {"metric": "m"}).document
    assert shown["metric"] == "m"
    assert shown["parts"] == ("flat", "good")
    assert shown["grid"][0] == {
        "weights": {"flat": 1.0, "good": 0.0},
        "correlations": {"de-en": None, "mean": None},
    }
    assert shown["best"]["weights"] == {"flat": 0.5, "good": 0.5}
    assert shown["best"]["correlations"]["mean"] == pytest.approx(1.0)
    rows = list(csv.reader(report_weights({"de-en": grid}, {}).render("csv").splitlines()))
    assert rows == [
        ["flat", "good", "de-en", "mean"],
        ["1", "0", "nan", "nan"],
        ["0.5", "0.5", "1.000", "1.000"],
        ["0", "1", "1.000", "1.000"],
    ]
    assert best_weights(grid) == "best weights: flat 0.5, good 0.5 (1.000)"
    assert "no weights are best" in best_weights(
        weight_grid({"a": np.ones(4), "b": np.ones(4)}, HUMAN, 1)
    )


def test_three_weights_make_a_triangle_with_the_best_cell_framed() -> None:
    generator = np.random.default_rng(1)
    shares = {"wmd": 1.0, "pseudo": 2.0, "lm": 1.0}
    grid = weight_grid(
        {name: share * SPREAD + generator.normal(size=21) for name, share in shares.items()},
        SPREAD,
        4,
    )
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
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "0",
        "0.25",
        "0.5",
        "0.75",
        "1",
    ]
    (frame,) = [patch for patch in axes.patches if not patch.get_fill()]
    _, pseudo, lm = grid.points[grid.best]
    assert (frame.get_x() + 0.5, frame.get_y() + 0.5) == (4 * pseudo, 4 * lm)
    assert len(axes.texts) == 15
    # Fine grids have no numbers.
    fine = weight_grid({name: SPREAD + i for i, name in enumerate("abc")}, SPREAD, 20)
    axes = draw_weights(fine, title="", label="r").axes[0]
    assert (len(axes.texts), len(axes.get_xticks())) == (0, 11)


def test_two_weights_make_a_line() -> None:
    grid = weight_grid({"mover": SPREAD, "lm": np.cos(SPREAD)}, SPREAD, 5)
    figure = draw_weights(grid, title="xmoverscore", label="r")
    (axes,) = figure.axes
    x, y = axes.lines[0].get_data()
    assert x == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert y == pytest.approx([correlation.value for correlation in grid.correlations], nan_ok=True)
    assert axes.collections[0].get_offsets().tolist() == [[0.0, 1.0]]
    assert axes.get_xlabel() == "weight of lm"
