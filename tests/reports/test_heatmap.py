"""Heatmaps: what is written where, in which size and with which fonts."""

import itertools
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import matplotlib
import numpy as np
import pytest

from mtmetrics.errors import MTMetricsError
from mtmetrics.matching.plan import Alignment
from mtmetrics.models.text_units import spans_of
from mtmetrics.reports import figures
from mtmetrics.reports.figures import save_figure
from mtmetrics.reports.heatmap import draw_alignment, segment_title


def aligned(source, prediction, mass, values, cells="cost", unrelated=2.0):
    """Special tokens are in brackets."""
    spans = [
        spans_of([(0, 0) if word.startswith("[") else (0, len(word)) for word in words])
        for words in (source, prediction)
    ]
    return Alignment(source, prediction, np.array(mass), np.array(values), cells, *spans, unrelated)


SHORT = aligned(
    ["[CLS]", "Haus", "klein"],
    ["[CLS]", "the", "house", "small"],
    [[0.3, 0.03, 0.0, 0.0], [0.0, 0.08, 0.25, 0.0], [0.0, 0.0, 0.0, 0.34]],
    [[0.11, 0.12, 0.13, 0.14], [0.21, 0.22, 0.23, 0.24], [0.31, 0.32, 0.33, -1e-9]],
)


def straight(words: int) -> Alignment:
    """Words moved to themselves."""
    labels = [f"word{number}" for number in range(words)]
    return aligned(labels, labels, np.eye(words) / words, np.full((words, words), 0.5))


def squares(figure):
    """(column, row) of each drawn square -> its side, and its colour."""
    [drawn] = figure.axes[0].collections
    found = {}
    for path, colour in zip(drawn.get_paths(), drawn.get_facecolors(), strict=True):
        box = path.get_extents()
        found[round((box.x0 + box.x1) / 2), round((box.y0 + box.y1) / 2)] = (box.width, colour)
    return found


def test_special_tokens_are_left_out_unless_asked_for():
    axes = draw_alignment(SHORT).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == SHORT.source[1:]
    assert [label.get_text() for label in axes.get_xticklabels()] == SHORT.prediction[1:]
    axes = draw_alignment(SHORT, special_tokens=True).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == SHORT.source
    assert [label.get_text() for label in axes.get_xticklabels()] == SHORT.prediction
    assert [label.get_color() for label in axes.get_yticklabels()] == [
        "#7b8794",
        "#1f2933",
        "#1f2933",
    ]


def test_area_is_mass_and_colour_is_cost():
    found = squares(draw_alignment(SHORT))
    assert set(found) == {(0, 0), (1, 0), (2, 1)}  # where mass moves
    areas = {place: side**2 / found[2, 1][0] ** 2 for place, (side, _) in found.items()}
    assert areas == pytest.approx({(0, 0): 0.08 / 0.34, (1, 0): 0.25 / 0.34, (2, 1): 1.0})
    scale = matplotlib.colormaps["RdYlBu_r"]
    for (column, row), (_, colour) in found.items():
        value = max(SHORT.values[row + 1, column + 1], 0.0) / SHORT.unrelated
        assert colour == pytest.approx(scale(value), abs=0.01)


@pytest.mark.parametrize(
    ("cells", "colours", "name"),
    [("cosine", "RdYlBu", "cosine"), ("attention", "Blues", "attention")],
)
def test_colours_of_other_values(cells, colours, name):
    figure = draw_alignment(aligned(["a"], ["b"], [[1.0]], [[0.75]], cells, 1.0))
    assert squares(figure)[0, 0][1] == pytest.approx(matplotlib.colormaps[colours](0.75), abs=0.01)
    assert figure.axes[1].get_ylabel() == name
    assert ("0.750" in figure.texts[-1].get_text()) == (
        cells == "cosine"
    )  # a sum of attention says nothing


def test_numbers_stand_where_they_fit_else_in_a_table():
    figure = draw_alignment(SHORT)
    numbers = {
        tuple(map(int, text.get_position())): text.get_text() for text in figure.axes[0].texts[1:]
    }
    assert numbers == {(1, 0): "0.23", (2, 1): "0.00"}
    long = draw_alignment(straight(60))
    assert long.axes[0].texts[1:] == []
    _, *blocks, _ = long.texts
    lines = [line for block in blocks for line in block.get_text().split("\n")]
    assert lines == [f"word{number} ← word{number} 0.50" for number in range(60)]
    # What partial transport left without mass.
    dropped = aligned(["a"] * 60, ["b", "c"], [[1 / 60, 0.0]] * 60, np.ones((60, 2)))
    assert [text.get_text() for text in draw_alignment(dropped).texts[1:-1]] == [
        "b ← a 1.00\nc ← –"
    ]


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
    boxes = [
        text.get_window_extent() for text in (*figure.texts, axes.xaxis.label) if text.get_text()
    ]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_very_long_texts_stay_within_bounds():
    words = [str(number) for number in range(300)]
    figure = draw_alignment(aligned(["a"], words, np.full((1, 300), 1 / 300), np.ones((1, 300))))
    assert 36 < figure.get_size_inches()[0] < 40


def test_long_words_are_cut_and_slanted():
    word = "Donaudampfschifffahrtsgesellschaft"
    axes = draw_alignment(aligned(["a"], [word], np.ones((1, 1)), np.ones((1, 1)))).axes[0]
    [label] = axes.get_xticklabels()
    assert label.get_text() == "Donaudampfsc…esellschaft"
    assert axes.xaxis.get_major_ticks()[0].label2.get_rotation() == 45


def test_dollars_are_no_formula():
    figure = draw_alignment(
        aligned(["$a$", "$"], ["a_b", "^"], np.eye(2) / 2, np.ones((2, 2))), "costs $5 or $6_"
    )
    figure.canvas.draw()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["$a$", "$"]


def test_nothing_to_align():
    figure = draw_alignment(Alignment.nothing("cosine"), "Segment 2")
    assert [text.get_text() for text in figure.texts] == [
        "Segment 2",
        "Nothing to align: one side has no words.",
    ]
    figure.canvas.draw()


def test_title_names_and_distance():
    figure = draw_alignment(SHORT, "Segment 1", names=("reference", "output"))
    assert figure.texts[0].get_text() == "Segment 1"
    assert (
        figure.texts[1].get_text()
        == f"Distance in all: {SHORT.total:.3f}. Colour: distance; size: mass"
    )
    assert figure.axes[0].texts[0].get_text() == "output →\nreference ↓"
    assert figure.axes[1].get_ylabel() == "distance"
    title = segment_title(3, -0.12345, {"mover": 0.5, "lm": -0.0001})
    assert title == "Segment 3: score -0.123, mover 0.500, lm 0.000"


def test_missing_glyphs_are_named_once_and_replaced(monkeypatch):
    monkeypatch.setattr(figures, "_families", list)
    monkeypatch.setattr(figures, "_named", set())
    alignment = aligned(["中"], ["中a"], np.ones((1, 1)), np.ones((1, 1)))
    with pytest.warns(
        UserWarning, match=r"no font here has the characters 中 \(U\+4E2D\)"
    ) as caught:
        draw_alignment(alignment)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = draw_alignment(alignment)
        figure.canvas.draw()
        draw_alignment(SHORT, "Ein Titel, и заголовок").canvas.draw()
    for axis, label in (("y", "�"), ("x", "�a")):
        assert [text.get_text() for text in getattr(figure.axes[0], f"get_{axis}ticklabels")()] == [
            label
        ]


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
    with pytest.raises(
        MTMetricsError, match=r"a heatmap needs matplotlib; pip install .*\[plot\]'"
    ):
        draw_alignment(SHORT)
