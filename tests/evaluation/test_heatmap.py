"""Heatmaps: what is written where, in which size and with which fonts."""

import itertools
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import matplotlib
import numpy as np
import pytest

from mtmetrics.errors import MTMetricsError
from mtmetrics.evaluation import figures
from mtmetrics.evaluation.figures import save_figure
from mtmetrics.evaluation.heatmap import draw_alignment
from mtmetrics.matching.plan import Alignment

SHORT = Alignment(
    ["[CLS]", "Haus", "klein"],
    ["[CLS]", "the", "house", "small"],
    np.array([[0.3, 0.03, 0.0, 0.0], [0.0, 0.17, 0.17, 0.0], [0.0, 0.0, 0.0, 0.33]]),
    np.array([[0.11, 0.12, 0.13, 0.14], [0.21, 0.22, 0.23, 0.24], [0.31, 0.32, 0.33, -1e-9]]),
)


def straight(words: int) -> Alignment:
    """Words moved to themselves."""
    labels = [f"word{number}" for number in range(words)]
    return Alignment(labels, labels, np.eye(words) / words, np.full((words, words), 0.5))


def test_labels_are_the_words_and_noticeable_cells_show_their_cost():
    axes = draw_alignment(SHORT).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == SHORT.source
    assert [label.get_text() for label in axes.get_xticklabels()] == SHORT.prediction
    assert [label.get_color() for label in axes.get_yticklabels()] == ["#7b8794", "#1f2933", "#1f2933"]
    costs = {tuple(map(int, text.get_position())): text.get_text() for text in axes.texts[1:]}
    # Column, row; the share 0.03 / 0.33 is too small.
    assert costs == {(0, 0): "0.11", (1, 1): "0.22", (2, 1): "0.23", (3, 2): "0.00"}


def test_colours_are_shares_of_the_rows():
    image = draw_alignment(SHORT).axes[0].images[0]
    np.testing.assert_allclose(image.get_array(), SHORT.flow / SHORT.flow.sum(1, keepdims=True))
    assert image.get_clim() == (0.0, 1.0)
    # Partial transport may leave a row without mass.
    flow = np.array([[0.5, 0.0], [0.0, 0.0]])
    image = draw_alignment(Alignment(["a", "b"], ["c", "d"], flow, np.ones((2, 2)))).axes[0].images[0]
    assert image.get_array().tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_most_of_a_column_is_noticeable_however_long_the_row():
    words = [str(number) for number in range(20)]
    axes = draw_alignment(Alignment(["ja"], words, np.full((1, 20), 0.05), np.full((1, 20), 0.25))).axes[0]
    assert [text.get_text() for text in axes.texts[1:]] == ["0.25"] * 20


@pytest.mark.parametrize("words", [5, 30, 90])
def test_size_follows_the_number_of_words(words):
    figure = draw_alignment(straight(words), "A title")
    axes = figure.axes[0]
    box = axes.get_window_extent()
    cell = box.width / words
    assert box.height / words == pytest.approx(cell)
    assert cell >= 13 / 72 * figure.dpi - 1e-6
    assert all(label.get_fontsize() >= 8 for label in axes.get_yticklabels())
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert not any(one.overlaps(other) for one, other in itertools.pairwise(boxes))
    whole = figure.get_tightbbox().transformed(figure.dpi_scale_trans)
    assert min(whole.xmin, whole.ymin) >= 0
    assert (whole.max <= figure.bbox.max).all()
    assert bool(axes.texts[1:]) == (words < 60)


def test_very_long_texts_stay_within_bounds():
    words = [str(number) for number in range(300)]
    figure = draw_alignment(Alignment(["a"], words, np.full((1, 300), 1 / 300), np.ones((1, 300))))
    assert 36 < figure.get_size_inches()[0] < 40


def test_long_words_are_cut_and_slanted():
    word = "Donaudampfschifffahrtsgesellschaft"
    axes = draw_alignment(Alignment(["a"], [word], np.ones((1, 1)), np.ones((1, 1)))).axes[0]
    [label] = axes.get_xticklabels()
    assert label.get_text() == "Donaudampfsc…esellschaft"
    assert axes.xaxis.get_major_ticks()[0].label2.get_rotation() == 45


def test_dollars_are_no_formula():
    figure = draw_alignment(Alignment(["$a$", "$"], ["a_b", "^"], np.eye(2) / 2, np.ones((2, 2))), "costs $5 or $6_")
    figure.canvas.draw()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["$a$", "$"]


def test_nothing_to_align():
    figure = draw_alignment(Alignment([], ["a"], np.zeros((0, 1)), np.zeros((0, 1))), "Segment 2")
    assert [text.get_text() for text in figure.texts] == ["Segment 2", "Nothing to align: one side has no words."]
    figure.canvas.draw()


def test_title_names_and_distance():
    figure = draw_alignment(SHORT, "Segment 1", names=("reference", "output"))
    assert figure.texts[0].get_text() == "Segment 1"
    assert figure.texts[1].get_text().startswith(f"Distance in all: {SHORT.distance:.3f}\n")
    assert figure.axes[0].texts[0].get_text() == "output →\nreference ↓"
    assert figure.axes[1].get_ylabel() == "share of the row's mass"


def test_missing_glyphs_are_named_once_and_replaced(monkeypatch):
    monkeypatch.setattr(figures, "_fallbacks", lambda wanted: (("DejaVu Sans",), wanted & {"中"}))
    monkeypatch.setattr(figures, "_named", set())
    alignment = Alignment(["中"], ["中a"], np.ones((1, 1)), np.ones((1, 1)))
    with pytest.warns(UserWarning, match=r"no font here has the characters 中 \(U\+4E2D\)") as caught:
        draw_alignment(alignment)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = draw_alignment(alignment)
        figure.canvas.draw()
        draw_alignment(SHORT, "Ein Titel, и заголовок").canvas.draw()
    for axis, label in (("y", "�"), ("x", "�a")):
        assert [text.get_text() for text in getattr(figure.axes[0], f"get_{axis}ticklabels")()] == [label]


def test_settings_of_the_process_are_neither_used_nor_changed(tmp_path):
    before = matplotlib.rcParams.copy()
    save_figure(draw_alignment(SHORT), tmp_path / "one.png")
    assert matplotlib.rcParams.copy() == before
    with matplotlib.rc_context({"font.family": "serif", "font.weight": "bold"}):
        label = draw_alignment(SHORT).axes[0].get_yticklabels()[1]
    assert label.get_fontfamily() == ["DejaVu Sans"]
    assert label.get_fontweight() == "normal"


def test_threads_draw_the_same(tmp_path):
    def draw(name):
        save_figure(draw_alignment(SHORT, "中文"), tmp_path / f"{name}.png")
        return (tmp_path / f"{name}.png").read_bytes()

    expected = draw("alone")
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(draw, range(6))) == {expected}


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MTMetricsError, match=r"a heatmap needs matplotlib; pip install .*\[plot\]'"):
        draw_alignment(SHORT)
