"""What the buttons of a demo do, without the page around them."""

import numpy as np
import pytest

import mtmetrics.integrations.demo as demo
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.evaluation.heatmap import draw_alignment
from mtmetrics.evaluation.significance import bootstrap_interval
from mtmetrics.integrations.demo import DemoBackend
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.xmoverscore import XMoverScore

ROWS = [["Das Haus ist klein.", "the house is small."], ["ich sehe die Katze", "i see the cat"], ["der Hund", " "]]


@pytest.fixture
def backend() -> DemoBackend:
    return DemoBackend("xmoverscore")


@pytest.fixture
def scored(backend, tiny_preset):
    return backend.score(ROWS, "de-en", str(tiny_preset))


def test_rows_of_text(backend):
    assert backend.rows_of_text("a\n\nb\n\n", "c\r\nd\ne") == [["a", "c"], ["", "d"], ["b", "e"]]
    # Only line feeds separate segments, as in files.
    assert backend.rows_of_text("a\u2028b", "c\x0bd") == [["a\u2028b", "c\x0bd"]]
    for first, second, message in [
        ("a\nb", "c", "translation has 1 segments but source has 2"),
        (" \n", "", "source: empty"),
        ("a", "", "translation has 0 segments"),
    ]:
        with pytest.raises(InputError, match=message):
            backend.rows_of_text(first, second)
    with pytest.raises(InputError, match="reference: empty"):
        DemoBackend("xmoverscore", ("reference", "translation")).rows_of_text("", "")


def test_rows_of_files(backend, tmp_path):
    table, lines = tmp_path / "rows.tsv", tmp_path / "rows.jsonl"
    table.write_text("a\tb\tmore\nc\t\n")
    lines.write_text('{"translation": "b", "source": "a"}\n')
    assert backend.rows_of_file(str(table)) == [["a", "b"], ["c", ""]]
    assert backend.rows_of_file(str(lines)) == [["a", "b"]]
    table.write_text("a\tb\nonly one\n")
    with pytest.raises(InputError, match=r"^rows\.tsv, line 2: 1 column"):
        backend.rows_of_file(str(table))
    table.write_text("")
    with pytest.raises(InputError, match=r"^rows\.tsv: empty"):
        backend.rows_of_file(str(table))
    with pytest.raises(InputError, match="no file"):
        backend.rows_of_file(None)


def test_bounds(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "MAX_ROWS", 2)
    table = tmp_path / "rows.tsv"
    # The third row is one too many; what follows is not read.
    table.write_text("a\tb\n" * 3 + "damaged\n")
    message = "more than 2 rows or 4 MB, .*mtmetrics score"
    with pytest.raises(InputError, match=message):
        backend.rows_of_file(str(table))
    with pytest.raises(InputError, match=message):
        backend.rows_of_text("a\nb\nc", "d\ne\nf")
    assert len(backend.rows_of_text("a\nb", "c\nd")) == 2
    monkeypatch.setattr(demo, "MAX_BYTES", 10)
    assert backend.rows_of_text("abcde", "fghij")
    with pytest.raises(InputError, match="more than"):
        backend.rows_of_text("abcde", "fghijk")


def test_scores_are_those_of_the_scorer(scored, tiny_preset):
    scorer = XMoverScore.from_preset(str(tiny_preset), lang_pair="de-en")
    with pytest.warns(UserWarning, match="1 blank"):
        expected = scorer.score(*map(list, zip(*ROWS, strict=True)))
    np.testing.assert_allclose(scored.result.segments, expected.segments, atol=1e-6)
    assert scored.result.signature == expected.signature
    assert scored.result.report == expected.report
    assert scored.interval == bootstrap_interval(scored.result.segments)


def test_models_are_loaded_once(backend, tiny_preset, monkeypatch):
    loads = []
    real = demo.load_scorer
    monkeypatch.setattr(demo, "load_scorer", lambda *a, **k: loads.append(k["lang_pair"]) or real(*a, **k))
    first = backend.score(ROWS, "de-en", str(tiny_preset))
    backend.draw(backend.score(ROWS, " de-en ", str(tiny_preset)), 1)
    backend.score(ROWS, "fi-en", str(tiny_preset))
    assert loads == ["de-en", "fi-en"]
    assert first.lang_pair == "de-en"
    assert len({id(value) for value in backend._pool._loaded.values()}) == 2


def test_progress_is_reported(backend, tiny_preset):
    reports = []
    backend.score(ROWS * 20, "de-en", str(tiny_preset), lambda done, total: reports.append((done, total)))
    assert reports == [(0, 60), (32, 60)]


def test_heatmap_of_a_segment(backend, scored, tiny_preset):
    [alignment] = XMoverScore.from_preset(str(tiny_preset), lang_pair="de-en").align(*[[text] for text in ROWS[1]])
    figure = draw_alignment(alignment, f"Segment 2: score {scored.result.segments[1]:.4f}")
    figure.canvas.draw()
    image, advice = backend.draw(scored, 2)
    assert np.array_equal(image, np.asarray(figure.canvas.buffer_rgba())[..., :3])
    assert advice == ""
    assert backend.draw(scored, 3)[0].shape[0] < image.shape[0]
    for number in (0, 4):
        with pytest.raises(InputError, match=f"segment {number}: there are 3"):
            backend.draw(scored, number)


def test_metrics_that_match_no_words_have_no_heatmap(backend, scored, monkeypatch):
    monkeypatch.setattr("mtmetrics.scorers.xmoverscore.XMoverScore.cells", Scorer.cells)
    assert backend.draw(scored, 1) is None


def test_table_and_summary(scored):
    table = demo._table(scored, ("source", "translation"))
    assert list(table.data.columns) == ["segment", "score", "source", "translation", "mover", "lm"]
    assert table.data["score"].tolist() == scored.result.segments.tolist()
    assert table.data["segment"].tolist() == [1, 2, 3]
    assert f">{scored.result.segments[0]:.4f}<" in table.to_html()
    summary = demo._summary(scored)
    assert f"System score: {scored.result.system:.4f}" in summary
    assert f"interval {scored.interval.low:.4f} to {scored.interval.high:.4f}" in summary
    assert "of 3 segments: 1 blank" in summary


def test_one_segment_has_no_interval(backend, tiny_preset):
    summary = demo._summary(backend.score(ROWS[:1], "de-en", str(tiny_preset)))
    assert "mean of 1 segment" in summary
    assert "interval" not in summary


def test_errors_pass_through(backend, tiny_preset):
    with pytest.raises(InputError, match="language pair 'deen'"):
        backend.score(ROWS, "deen", str(tiny_preset))
    with pytest.raises(ArtifactError, match="et-en"):
        backend.score(ROWS, "et-en", str(tiny_preset))
