"""Curves of a number over layers, or over something else that is counted."""

import pytest

from mtmetrics.evaluation.curves import draw_curves, save_curves


def test_curves(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    lines = {"score": {0: 0.1, 1: 0.3, 2: 0.2}, "part": {0: 0.0, 1: float("nan"), 2: 0.4}}
    [axes] = draw_curves(lines, title="T", x_label="layer", y_label="r").axes
    assert axes.lines[0].get_ydata().tolist() == [0.1, 0.3, 0.2]
    assert axes.get_xticks().tolist() == [0, 1, 2]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["score", "part"]
    save_curves(lines, tmp_path / "c.png", title="T", x_label="layer", y_label="r")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_noise_does_not_fill_a_plot() -> None:
    lines = {"r": {0: 0.500, 1: 0.501}}
    [axes] = draw_curves(lines, title="T", x_label="round", y_label="r", least_span=0.2).axes
    assert axes.get_ylim() == pytest.approx((0.4005, 0.6005))
    [axes] = draw_curves({"r": {0: 0.1, 1: 0.9}}, title="T", x_label="round", y_label="r", least_span=0.2).axes
    assert axes.get_ylim()[0] < 0.1
    assert axes.get_ylim()[1] > 0.9
