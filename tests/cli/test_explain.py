"""``mtmetrics explain`` in process: what is printed, what is drawn, and what is refused."""

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import write

from mtmetrics.checks import InputReport
from mtmetrics.errors import install_command
from mtmetrics.matching.word_errors import faults_as_dicts
from mtmetrics.scorers.xmoverscore import XMoverScore

SOURCES = ["Das Haus ist klein.", "ich sehe die Katze", " ", "der Hund schläft"]
PREDICTIONS = ["the house is small.", "i see the cat", "a tree", "the dog sleeps"]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def rows(tmp_path: Path) -> str:
    lines = (f"{s}\t{p}\n" for s, p in zip(SOURCES, PREDICTIONS, strict=True))
    return str(write(tmp_path / "rows.tsv", "".join(lines)))


@pytest.fixture
def call(tiny_preset: Path, rows: str, mtmetrics):
    given = ("explain", "--preset", tiny_preset, "--lp", "de-en")
    return lambda *argv: mtmetrics(*given, *(rows if word == "ROWS" else word for word in argv))


@pytest.fixture
def expected(tiny_preset: Path) -> list[dict]:
    scorer = XMoverScore.load(str(tiny_preset), lang_pair="de-en")
    with pytest.warns(UserWarning, match="1 blank"):
        result = scorer.score(PREDICTIONS, sources=SOURCES)
    alignments = scorer.align(PREDICTIONS, sources=SOURCES)
    return [
        {
            "segment": index + 1,
            "source": SOURCES[index],
            "prediction": PREDICTIONS[index],
            "score": result.segments[index],
            "parts": {name: values[index] for name, values in result.parts.items()},
            "alignment": alignment.as_dict(),
            "faults": faults_as_dicts(PREDICTIONS[index], faults),
        }
        for index, (alignment, faults) in enumerate(
            zip(alignments, scorer.faults(PREDICTIONS, alignments), strict=True)
        )
    ]


def assert_same(segment: dict, wanted: dict) -> None:
    """Batches differ, so numbers may differ in their last digits."""
    assert segment.keys() == wanted.keys()
    for name in ("segment", "source", "prediction"):
        assert segment[name] == wanted[name]
    for name in ("score", "parts"):
        assert segment[name] == pytest.approx(wanted[name], abs=1e-5)
    for name in ("cells", "source", "prediction"):
        assert segment["alignment"][name] == wanted["alignment"][name]
    for fault, expected in zip(segment["faults"], wanted["faults"], strict=True):
        assert fault == pytest.approx(expected, abs=1e-5)
    for name in ("mass", "values"):
        np.testing.assert_allclose(segment["alignment"][name], wanted["alignment"][name], atol=1e-5)


def test_json_holds_what_the_scorer_says(call, expected):
    code, out, err = call("ROWS")
    document = json.loads(out)
    assert code == 0
    for segment, wanted in zip(document["segments"], expected, strict=True):
        assert_same(segment, wanted)
    assert document["signature"].startswith("xmoverscore|lp:de-en|")
    assert document["report"] == InputReport(4, blank=1).as_dict()
    nothing = {name: [] for name in ("source", "prediction", "mass", "values")}
    assert document["segments"][2]["alignment"] == nothing | {"cells": "cost", "total": 0.0}
    # The distance is what the score was made of.
    first = document["segments"][0]
    assert first["parts"]["mover"] == pytest.approx(1 - first["alignment"]["total"], abs=1e-5)
    assert err.count("warning") == 1
    # A segment per line, for people to read.
    assert out.count("\n") < 20


def test_json_lines_and_a_choice_of_segments(call, expected):
    code, out, err = call("--format", "jsonl", "--segments", "4, 1-2", "ROWS")
    *segments, last = map(json.loads, out.splitlines())
    assert code == 0
    assert [segment["segment"] for segment in segments] == [1, 2, 4]
    for segment in segments:
        assert_same(segment, expected[segment["segment"] - 1])
    assert list(last) == ["signature", "report"]
    assert last["report"]["segments"] == 3
    assert err == ""


def test_other_ways_in(call, expected, tmp_path, monkeypatch):
    source, target = (
        write(tmp_path / name, "\n".join(lines) + "\n")
        for name, lines in (("s", SOURCES), ("t", PREDICTIONS))
    )
    code, out, _ = call("-s", source, "-t", target, "--segments", "2")
    assert code == 0
    assert_same(json.loads(out)["segments"][0], expected[1])
    # The second line is not read at all, so that it cannot be wrong.
    damaged = f"{SOURCES[0]}\t{PREDICTIONS[0]}\n\xff".encode("latin-1")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(damaged)))
    code, out, _ = call("--segments", "1", "-")
    assert code == 0
    assert_same(json.loads(out)["segments"][0], expected[0])


def test_heatmaps(call, tmp_path):
    folder = tmp_path / "new" / "plots"
    code, out, _ = call("--plot", str(folder), "--segments", "2-3", "ROWS")
    assert (code, len(json.loads(out)["segments"])) == (0, 2)
    assert sorted(path.name for path in folder.iterdir()) == [
        "segment-0002.png",
        "segment-0003.png",
    ]
    assert all(path.read_bytes().startswith(PNG) for path in folder.iterdir())


def test_nothing_is_overwritten_unasked(call, tmp_path):
    kept = tmp_path / "segment-0002.png"
    kept.write_bytes(b"mine")
    code, out, err = call("--plot", str(tmp_path), "ROWS")
    assert (code, out) == (2, "")
    assert "segment-0002.png exists already; pass --overwrite" in err
    assert kept.read_bytes() == b"mine"
    assert not (tmp_path / "segment-0001.png").exists()
    assert call("--plot", str(tmp_path), "--overwrite", "ROWS")[0] == 0
    assert kept.read_bytes().startswith(PNG)


def test_many_heatmaps_only_when_asked_for(call, tmp_path):
    many = write(tmp_path / "many.tsv", "Das Haus\tthe house\n" * 101)
    plots = tmp_path / "plots"
    code, _, err = call("--plot", plots, many)
    assert code == 2
    advice = "choose some with --segments, such as 1-100"
    assert f"--plot: 101 segments are many heatmaps; {advice}" in err
    assert not plots.exists()
    assert call("--plot", plots, "--segments", "1-4", many)[0] == 0


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["ROWS", "--segments", "0"], 2, "--segments '0': '0' is no number or range"),
        (["ROWS", "--segments", "3-2"], 2, "'3-2' is no number or range"),
        (["ROWS", "--segments", "1,,2"], 2, "'' is no number or range"),
        (["ROWS", "--segments", "2,5-7"], 2, "there is no segment 7; "),
        (["none.tsv"], 2, "none.tsv: no such file"),
        (["ROWS", "--segments", "1-999999999999"], 2, "there is no segment 999999999999"),
        (["ROWS", "--segments", "1-2-3"], 2, "'1-2-3' is no number or range"),
        ([], 2, "nothing to score"),
        (
            ["-s", "a", "-t", "b", "c"],
            2,
            "explain takes the translations of one system, got 2 files",
        ),
        (["ROWS", "--preset", "huge"], 2, "unknown preset 'huge'"),
        (["ROWS", "--plot", "ROWS"], 2, "is the input FILE, which it would replace"),
        (["ROWS", "--plot", "/dev/null/folder"], 1, "cannot make the folder"),
    ],
)
def test_bad_usage_is_one_line(call, argv, code, message):
    got, out, err = call(*argv)
    assert (got, out) == (code, "")
    assert message in err
    assert err.startswith("mtmetrics: ")
    assert err.count("\n") == 1


def test_without_matplotlib(call, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = call("--plot", str(tmp_path / "plots"), "ROWS")
    assert code == 1
    assert err == f"mtmetrics: --plot needs matplotlib; {install_command('plot')}\n"


def test_a_metric_without_alignments_leaves_nothing_behind(mtmetrics, rows, tiny_encoder, tmp_path):
    given = ("--metric", "distilscore", "--against", "source", "--encoder", tiny_encoder)
    code, out, err = mtmetrics("explain", *given, "--plot", tmp_path / "plots", rows)
    assert (code, out) == (2, "")
    assert "alignments: this metric compares whole texts" in err
    assert not (tmp_path / "plots").exists()


def test_the_worst_come_first(call, expected, tmp_path):
    code, out, _ = call("--worst", "2", "--format", "jsonl", "--plot", tmp_path / "plots", "ROWS")
    *segments, last = map(json.loads, out.splitlines())
    order = sorted(expected, key=lambda segment: segment["score"])[:2]
    assert (code, last["report"]["segments"]) == (0, 4)
    assert [segment["segment"] for segment in segments] == [segment["segment"] for segment in order]
    drawn = {f"segment-{segment['segment']:04d}.png" for segment in order}
    assert {path.name for path in (tmp_path / "plots").iterdir()} == drawn
    with pytest.raises(SystemExit, match="2"):
        call("--worst", "2", "--segments", "1", "ROWS")


@pytest.mark.parametrize(
    ("segments", "drawn"),
    [("2", ["map.svg"]), ("1-2", ["map-0001.svg", "map-0002.svg"])],
    ids=["one", "several"],
)
def test_the_ending_of_a_file_is_its_format(call, tmp_path, segments, drawn):
    folder = tmp_path / "new"
    assert call("--plot", folder / "map.svg", "--segments", segments, "ROWS")[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == drawn
    assert all("<svg" in path.read_text(encoding="utf-8") for path in folder.iterdir())


@pytest.mark.parametrize(
    ("no_color", "mark"), [(False, "\x1b[97;41mcat\x1b[0m"), (True, "[[cat]]")]
)
def test_text_marks_the_words_at_fault(call, monkeypatch, no_color, mark):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("mtmetrics.cli.explain.level", lambda severity: 2)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    code, out, _ = call("--segments", "2", "ROWS")
    assert code == 0
    assert out.startswith("Segment 2: score ")
    assert "source         ich sehe die Katze\n" in out
    assert mark in out
    assert re.search(r"^cost +i ← \w+ \d\.\d\d, see ← \w+ \d\.\d\d", out, re.MULTILINE)
    assert ("\x1b" in out) is not no_color
    assert "\nmost at fault  " in out
    assert "xmoverscore|lp:de-en|" in out


def test_words_are_marked_by_their_severity(call, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, _ = call("--segments", "2", "--format", "json", "ROWS")
    [segment] = json.loads(out)["segments"]
    severities = {fault["text"]: fault["severity"] for fault in segment["faults"]}
    worst, *_, best = sorted(severities, key=severities.get, reverse=True)
    assert 1 >= severities[worst] > severities[best] >= 0
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    # Between the two severities lies the bound, so that one of the words is wrong and the other one
    # right.
    bound = (severities[worst] + severities[best]) / 2
    monkeypatch.setattr("mtmetrics.matching.word_errors.LEVELS", (bound, bound))
    code, out, _ = call("--segments", "2", "ROWS")
    assert (code, f"[[{worst}]]" in out, f"[[{best}]]" in out) == (0, True, False)


def test_what_speaks_against_pictures_is_said_before_the_worst_are_scored(
    call, tmp_path, monkeypatch
):
    monkeypatch.setattr(XMoverScore, "compute", None)  # nothing is scored
    (tmp_path / "segment-0003.png").write_text("")
    code, _, err = call("--worst", "2", "--plot", tmp_path, "ROWS")
    assert (code, "segment-0003.png exists already" in err) == (2, True)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = call("--worst", "2", "--plot", tmp_path / "new", "ROWS")
    assert (code, install_command("plot") in err) == (1, True)


def test_words_keep_their_marks(mtmetrics, tmp_path):
    words = ["किताब", "पढ़ना", "Cliche\u0301", "com\u00admittee"]
    path = write(tmp_path / "rows.tsv", f"a b\t{' '.join(words)}\n")
    code, out, _ = mtmetrics(
        "explain", "--metric", "xmoverscore", "--preset", "mini", "--lp", "de-ne", path
    )
    [segment] = json.loads(out)["segments"]
    assert (code, [fault["text"] for fault in segment["faults"]]) == (0, words)
    assert "Cliche\u0301" in segment["alignment"]["prediction"]
