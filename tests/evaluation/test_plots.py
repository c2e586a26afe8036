"""What the plots show."""

import numpy as np
import pytest

from mtmetrics.evaluation.correlation import pearson
from mtmetrics.evaluation.plots import Bar, draw_bars, draw_curves, draw_preferences, draw_scatter
from mtmetrics.evaluation.probes import Preference

HUMAN = np.linspace(-1.0, 1.0, 21)


def test_scatter_has_a_panel_per_file_and_metric_with_r_and_line() -> None:
    noisy = 2.0 * HUMAN + np.random.default_rng(0).normal(size=21)
    flat = {"de-en": (np.zeros(21), HUMAN), "fi-en": (noisy, -HUMAN)}
    figure = draw_scatter({pair: {"first": (noisy, HUMAN), "flat": flat[pair]} for pair in flat})
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
    looks = [(bar.get_facecolor(), bar.get_hatch()) for bar in figure.axes[0].patches]
    assert len(looks) == len(set(looks)) == 9


def test_groups_that_no_font_can_write_are_marked() -> None:
    with pytest.warns(UserWarning, match="U\\+12000"):
        figure = draw_bars({"a": [Bar(0.1)]}, ["𒀀-en"], title="", y_label="r")
    figure.canvas.draw()
    assert figure.axes[0].get_xticklabels()[0].get_text() == "�-en"


def test_curves_are_lines_with_gaps() -> None:
    lines = {"a": {0: 0.1, 1: np.nan, 2: 0.2}, "b": {0: 0.2, 1: 0.3, 2: 0.4}}
    [axes] = draw_curves(lines, title="T", x_label="layer", y_label="r").axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    assert axes.lines[0].get_ydata() == pytest.approx([0.1, np.nan, 0.2], nan_ok=True)
    assert axes.lines[1].get_ydata().tolist() == [0.2, 0.3, 0.4]
    assert axes.get_xticks().tolist() == [0, 1, 2]
    assert (axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()) == ("T", "layer", "r")


@pytest.mark.parametrize(("last", "expected"), [(0.501, (0.4005, 0.6005)), (0.9, (0.48, 0.92))])
def test_noise_does_not_fill_a_plot(last: float, expected: tuple[float, float]) -> None:
    lines = {"r": {0: 0.500, 1: last}}
    [axes] = draw_curves(lines, title="T", x_label="round", y_label="r", least_span=0.2).axes
    assert axes.get_ylim() == pytest.approx(expected)


def test_the_axis_of_curves_holds_their_intervals() -> None:
    intervals = {"r": {0: (0.40, 0.60), 1: (0.41, 0.62)}}
    [axes] = draw_curves({"r": {0: 0.50, 1: 0.51}}, title="T", x_label="layer", y_label="r", intervals=intervals).axes
    low, high = axes.get_ylim()
    assert low < 0.40
    assert high > 0.62
    assert len(axes.collections) == 1


def test_histograms_count_every_difference_but_0_on_its_side() -> None:
    found = [
        Preference(modification, measure, np.array(differences))
        for modification, differences in {"a": [-0.5, -0.1, 0.0, 0.3], "b": [0.0, 0.0, 0.0, 0.3]}.items()
        for measure in ("score", "lm")
    ]
    figure = draw_preferences(found, title="t")
    assert len(figure.axes) == 4
    first = figure.axes[0]
    assert first.get_title() == "a\n25.0% preferred, 25.0% equal"
    bars = [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in first.patches if bar.get_height()]
    assert sorted((x < 0, height) for x, _, height in bars) == [(False, 1), (True, 1), (True, 1)]
    # No bin holds both sides of 0.
    assert all(x >= -1e-12 or x + width <= 1e-12 for x, width, _ in bars)
    assert first.get_xlabel() == "d (score)"
    assert figure.axes[2].get_xlabel() == "d (lm)"
    assert all(float(tick).is_integer() for tick in first.get_yticks())
    # Without any preference there is still a panel.
    figure = draw_preferences([Preference("a", "score", np.zeros(3))], title="t")
    assert figure.axes[0].get_title() == "a\n0.0% preferred, 100.0% equal"
