"""What the buttons of a demo do, without the page around them."""

import numpy as np
import pytest

import mtmetrics.page.metric_demo as demo
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.page.metric_demo import DemoBackend, rows_of_file, rows_of_text
from mtmetrics.page.offers import MetricChoice
from mtmetrics.reports.metric_runs import MetricSpec
from mtmetrics.scorers.xmoverscore import XMoverScore
from mtmetrics.statistics.significance import bootstrap_interval

FIELDS = ("source", "translation")
ROWS = [["Das Haus ist klein.", "the house is small."], ["ich sehe die Katze", "i see the cat"], ["der Hund", " "]]


@pytest.fixture
def offer(tiny_preset) -> MetricChoice:
    return MetricChoice(MetricSpec("xmoverscore", str(tiny_preset)), "", "", "sources", "", "", True, ())


@pytest.fixture
def backend() -> DemoBackend:
    return DemoBackend()


@pytest.fixture
def scored(backend, offer):
    return backend.score(ROWS, "de-en", offer)


def test_rows_of_text():
    assert rows_of_text(FIELDS, ["a\n\nb\n\n", "c\r\nd\ne"]) == [["a", "c"], ["", "d"], ["b", "e"]]
    # Only line feeds separate segments, as in files.
    assert rows_of_text(FIELDS, ["a\u2028b", "c\x0bd"]) == [["a\u2028b", "c\x0bd"]]
    for first, second, message in [
        ("a\nb", "c", "translation has 1 segments but source has 2"),
        (" \n", "", "source: empty"),
        ("a", "", "translation has 0 segments"),
    ]:
        with pytest.raises(InputError, match=message):
            rows_of_text(FIELDS, [first, second])


def test_rows_of_files(tmp_path):
    table, lines = tmp_path / "rows.tsv", tmp_path / "rows.jsonl"
    table.write_text("a\tb\tmore\nc\t\n")
    lines.write_text('{"translation": "b", "source": "a"}\n')
    assert rows_of_file(FIELDS, str(table)) == [["a", "b"], ["c", ""]]
    assert rows_of_file(FIELDS, str(lines)) == [["a", "b"]]
    table.write_text("a\tb\nonly one\n")
    with pytest.raises(InputError, match=r"^rows\.tsv, line 2: 1 column"):
        rows_of_file(FIELDS, str(table))
    table.write_text("")
    with pytest.raises(InputError, match=r"^rows\.tsv: empty"):
        rows_of_file(FIELDS, str(table))
    with pytest.raises(InputError, match="no file"):
        rows_of_file(FIELDS, None)


def test_bounds(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "MAX_ROWS", 2)
    table = tmp_path / "rows.tsv"
    # The third row is one too many; what follows is not read.
    table.write_text("a\tb\n" * 3 + "damaged\n")
    message = "more than 2 rows or 4 MB, .*mtmetrics score"
    with pytest.raises(InputError, match=message):
        rows_of_file(FIELDS, str(table))
    monkeypatch.setattr(demo, "MAX_BYTES", 10)
    assert rows_of_text(FIELDS, ["abcde", "fghij"])
    with pytest.raises(InputError, match="more than"):
        rows_of_text(FIELDS, ["abcde", "fghijk"])
    with pytest.raises(InputError, match="more than"):
        rows_of_text(FIELDS, ["äöü", "日本"])  # twelve bytes


def test_scores_are_those_of_the_scorer(scored, tiny_preset):
    scorer = XMoverScore.from_preset(str(tiny_preset), lang_pair="de-en")
    with pytest.warns(UserWarning, match="1 blank"):
        expected = scorer.score(*map(list, zip(*ROWS, strict=True)))
    np.testing.assert_allclose(scored.result.segments, expected.segments, atol=1e-6)
    assert scored.result.signature == expected.signature
    assert scored.result.report == expected.report
    assert scored.interval == bootstrap_interval(scored.result.segments)


def test_models_are_loaded_once(backend, offer, monkeypatch):
    loads = []
    real = MetricSpec.load
    monkeypatch.setattr(MetricSpec, "load", lambda self, pool, pair: loads.append(pair) or real(self, pool, pair))
    reports = []
    backend.score(ROWS * 20, "de-en", offer, lambda done, total: reports.append((done, total)))
    backend.score(ROWS, " de-en ", offer)
    backend.score(ROWS, "fi-en", offer)
    assert loads == ["de-en", "fi-en"]
    assert len({id(value) for value in backend._pool._loaded.values()}) == 2
    assert reports == [(0, 60), (32, 60)]


def test_heatmap_of_a_segment(scored):
    assert f'alt="Segment 2: score {scored.result.segments[1]:.3f}, mover' in scored.draw(2)
    for number in (0, 4):
        with pytest.raises(InputError, match=f"segment {number}: there are 3"):
            scored.draw(number)


def test_table_and_summary(scored):
    table = demo._table(scored)
    assert list(table.data.columns) == ["segment", "score", "source", "translation", "mover", "lm"]
    assert table.data["score"].tolist() == scored.result.segments.tolist()
    assert table.data["segment"].tolist() == [1, 2, 3]
    assert f">{scored.result.segments[0]:.4f}<" in table.to_html()
    summary = demo._summary(scored)
    assert f"System score: {scored.result.system:.4f}" in summary
    assert f"interval {scored.interval.low:.4f} to {scored.interval.high:.4f}" in summary
    assert "of 3 segments: 1 blank" in summary


def test_one_segment_has_no_interval(backend, offer):
    summary = demo._summary(backend.score(ROWS[:1], "de-en", offer))
    assert "mean of 1 segment" in summary
    assert "interval" not in summary


def test_errors_pass_through(backend, offer):
    with pytest.raises(InputError, match="language pair 'deen'"):
        backend.score(ROWS, "deen", offer)
    with pytest.raises(ArtifactError, match="et-en"):
        backend.score(ROWS, "et-en", offer)
