"""What the plots show."""

from pathlib import Path

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import pearson
from mtmetrics.evaluation.curves import draw_curves
from mtmetrics.evaluation.figures import check_plot_file
from mtmetrics.evaluation.plots import Bar, draw_bars, draw_scatter, draw_weights, save_bars
from mtmetrics.evaluation.weights import weight_grid

HUMAN = np.linspace(-1.0, 1.0, 21)


def test_scatter_has_a_panel_per_file_and_metric_with_r_and_line() -> None:
    noisy = 2.0 * HUMAN + np.random.default_rng(0).normal(size=21)
    figure = draw_scatter(
        {
            "de-en": {"first": (noisy, HUMAN), "flat": (np.zeros(21), HUMAN)},
            "fi-en": {"first": (noisy, HUMAN), "flat": (noisy, -HUMAN)},
        }
    )
    assert len(figure.axes) == 4
    first, flat = figure.axes[:2]
    r = pearson(noisy, HUMAN).value
    assert first.get_title(loc="left").split("\n") == ["first", "de-en", f"r = {r:.3f}, n = 21"]
    assert first.collections[0].get_offsets().tolist() == np.stack([HUMAN, noisy], axis=1).tolist()
    x, y = first.lines[0].get_data()
    slope = r * noisy.std() / HUMAN.std()
    assert (y[1] - y[0]) / (x[1] - x[0]) == pytest.approx(slope)
    assert flat.get_title(loc="left").endswith("r not defined, n = 21")
    assert not flat.lines
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "human judgement", "human judgement"]
    assert [axes.get_ylabel() for axes in figure.axes] == ["score", "", "score", ""]


def test_scatter_leaves_out_what_is_missing_and_cuts_long_names() -> None:
    figure = draw_scatter({"de-en": {"m" * 100: ([1.0, None, 2.0, 4.0], [1.0, 2.0, None, 3.0])}})
    (axes,) = figure.axes
    assert len(axes.collections[0].get_offsets()) == 2
    name, _, found = axes.get_title(loc="left").split("\n")
    assert len(name) == 42
    assert "…" in name
    assert found == "r = 1.000, n = 2"


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
    ends = [sorted(point[1] for point in segment) for line in axes.collections for segment in line.get_segments()]
    assert np.array(ends) == pytest.approx(np.array([[0.4, 0.7], [-0.2, 0.1], [0.2, 0.35]]))
    assert [text.get_text().strip() for text in axes.texts] == ["n/a"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["de-en", "fi-en", "mean"]
    assert [label.get_text() for label in axes.get_legend().get_texts()] == ["one", "two"]
    assert (axes.get_title(loc="left"), axes.get_ylabel()) == ("A title", "r")


def test_more_metrics_than_colours_are_hatched() -> None:
    figure = draw_bars({f"m{i}": [Bar(0.1 * i)] for i in range(9)}, ["de-en"], title="", y_label="r")
    looks = [
        (bar.get_facecolor(), bar.get_hatch())
        for container in figure.axes[0].containers
        for bar in getattr(container, "patches", ())
    ]
    assert len(looks) == len(set(looks)) == 9


def test_three_weights_make_a_triangle_with_the_best_cell_framed() -> None:
    generator = np.random.default_rng(1)
    parts = {
        name: share * HUMAN + generator.normal(size=21) for name, share in (("wmd", 1.0), ("pseudo", 2.0), ("lm", 1.0))
    }
    grid = weight_grid(parts, HUMAN, 4)
    figure = draw_weights(grid, title="uscore", label="Pearson's r")
    axes, bar = figure.axes
    cells = axes.images[0].get_array()
    assert cells.shape == (5, 5)
    assert np.ma.count(np.ma.masked_invalid(cells)) == 15
    for (_, pseudo, lm), correlation in zip(grid.points, grid.correlations, strict=True):
        assert cells[round(4 * lm), round(4 * pseudo)] == correlation.value
    assert (axes.get_xlabel(), axes.get_ylabel(), bar.get_ylabel()) == (
        "weight of pseudo",
        "weight of lm",
        "Pearson's r",
    )
    assert axes.get_title(loc="left") == "uscore\nweight of wmd: what is left of 1"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "0.25", "0.5", "0.75", "1"]
    (frame,) = [patch for patch in axes.patches if not patch.get_fill()]
    _, pseudo, lm = grid.points[grid.best]
    assert (frame.get_x() + 0.5, frame.get_y() + 0.5) == (4 * pseudo, 4 * lm)
    assert len(axes.texts) == 15


def test_fine_grids_have_no_numbers() -> None:
    grid = weight_grid({name: HUMAN + i for i, name in enumerate("abc")}, HUMAN, 20)
    axes = draw_weights(grid, title="", label="r").axes[0]
    assert not axes.texts
    assert len(axes.get_xticks()) == 11


def test_two_weights_make_a_line() -> None:
    grid = weight_grid({"mover": HUMAN, "lm": np.cos(HUMAN)}, HUMAN, 5)
    figure = draw_weights(grid, title="xmoverscore", label="r")
    (axes,) = figure.axes
    x, y = axes.lines[0].get_data()
    assert x == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert y == pytest.approx([correlation.value for correlation in grid.correlations], nan_ok=True)
    assert axes.collections[0].get_offsets().tolist() == [[0.0, 1.0]]
    assert axes.get_xlabel() == "weight of lm"


def test_four_weights_cannot_be_drawn() -> None:
    grid = weight_grid(dict.fromkeys("abcd", HUMAN), HUMAN, 1)
    with pytest.raises(InputError, match="a, b, c, d given"):
        draw_weights(grid, title="", label="r")


def test_labels_are_no_formulas_and_have_fonts_with_their_characters(tmp_path: Path) -> None:
    figure = draw_bars({"$x_1$ 中": [Bar(0.1)], "b": [Bar(0.2)]}, ["zh-en"], title="", y_label="r")
    (first, _) = figure.axes[0].get_legend().get_texts()
    assert not first.get_parse_math()
    assert first.get_fontfamily()[0] == "DejaVu Sans"
    save_bars({"a": [Bar(0.1)]}, ["zh-en"], tmp_path / "bars.png", title="", y_label="r")
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")


def test_curves_are_lines_with_gaps() -> None:
    figure = draw_curves({"a": {1: 0.1, 2: np.nan}, "b": {1: 0.2, 2: 0.3}}, title="t", x_label="layer", y_label="r")
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.lines] == ["a", "b"]
    assert axes.lines[1].get_ydata().tolist() == [0.2, 0.3]
    assert axes.get_xticks().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("name", "message"), [("plot.pdf", "must end in .png"), ("none/plot.png", "there is no folder")]
)
def test_names_that_no_plot_can_have(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_plot_file(tmp_path / name)
