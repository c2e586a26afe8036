"""``mtmetrics rerank``: ways in, what is written, tuning, expected utility."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import write, write_jsonl

Run = Callable[..., tuple[int, str, str]]


ROWS = [
    {"id": 7, "source": "das haus", "candidates": ["the house", "house", ""], "scores": [4, 0, 9]},
    {"id": 8, "source": "die katze", "candidates": ["cat", "the cat"], "scores": [0, 1]},
]


@pytest.fixture
def run(mtmetrics: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "nbest.jsonl", ROWS)
    write(tmp_path / "s.de", "das haus\ndie katze\n")
    write(tmp_path / "two.en", "the house\nhouse\ncat\nthe cat\n")
    write(tmp_path / "other.en", "dwelling\na house\na cat\n\n")
    write(tmp_path / "a.en", "the house\nthe cat\n")
    write(tmp_path / "b.en", "house\ncat\n")
    marked = (
        "0 ||| the house ||| LM0= -1 ||| 4\n0 ||| house ||| LM0= -2 ||| 0\n1 ||| cat ||| LM0= 3 "
        "||| -1e0\n"
    )
    write(tmp_path / "moses.txt", marked)
    return lambda *argv: mtmetrics("rerank", *argv)


@pytest.mark.parametrize(
    ("argv", "texts"),
    [
        (["nbest.jsonl"], ["house", "cat"]),
        (["nbest.jsonl", "--mix", "model=3"], ["the house", "cat"]),
        (
            ["nbest.jsonl", "--mix", "prediction_length=0.1", "--mix", "model=3"],
            ["the house", "the cat"],
        ),
        (["-s", "s.de", "-t", "two.en", "--nbest", "2"], ["house", "cat"]),
        (["-s", "s.de", "-t", "a.en", "b.en"], ["house", "cat"]),
        (["-s", "s.de", "-t", "two.en", "other.en", "--nbest", "2"], ["house", "cat"]),
        (["-s", "s.de", "-t", "moses.txt", "--mix", "model=2"], ["the house", "cat"]),
    ],
)
def test_ways_in(run: Run, argv: list[str], texts: list[str]) -> None:
    code, out, _ = run("--metric", "prediction_length", *argv)
    assert code == 0
    assert [json.loads(line)["translation"] for line in out.splitlines()] == texts
    code, out, _ = run("--metric", "prediction_length", *argv, "--out", "chosen.en")
    assert (code, Path("chosen.en").read_text()) == (0, "".join(f"{text}\n" for text in texts))


def test_bars_in_a_candidate_and_alignments_behind_the_score(run: Run) -> None:
    lines = [
        "0 ||| the ||| house ||| LM0= -1 ||| -1 ||| 0-0 1-1",
        "0 ||| the house here ||| LM0= -2 ||| 4 ||| 0-0",
        "1 ||| cat ||| LM0= 3 ||| 0 ||| ",
    ]
    write(Path("bars.txt"), "".join(f"{line}\n" for line in lines))
    call = ("-s", "s.de", "-t", "bars.txt", "--metric", "prediction_length")
    code, out, _ = run(*call)
    found = [json.loads(line) for line in out.splitlines()]
    assert (code, [row["translation"] for row in found]) == (0, ["the ||| house", "cat"])
    assert found[0]["scores"] == [-13.0, -14.0]
    assert json.loads(run(*call, "--mix", "model=1")[1].splitlines()[0])["score"] == -10.0
    write(Path("bars.txt"), lines[0] + "\n0 ||| a ||| b ||| c d ||| 5\n")
    code, _, err = run(*call)
    assert code == 2
    assert "bars.txt, line 2: 'c d' may be a part of the text or features" in err


def test_rows_of_the_output_and_the_report(run: Run) -> None:
    _, out, err = run("--metric", "prediction_length", "nbest.jsonl", "--report", "report.json")
    first = json.loads(out.splitlines()[0])
    expected = {
        "id": 7,
        "source": "das haus",
        "translation": "house",
        "index": 1,
        "score": -5,
        "scores": [-9, -5, None],
    }
    assert first == expected
    report = json.loads(Path("report.json").read_text())
    assert [report[name] for name in ("sources", "candidates", "blank", "changed")] == [2, 5, 1, 1]
    assert report["weights"] == {"prediction_length": 1, "model": 0}
    assert "2 sources with 5 candidates, 1 blank; 1 times not the first one is chosen" in err


def test_tuning_and_expected_utility_on_the_command_line(run: Run) -> None:
    development = [row | {"human": [1, 0, 0][: len(row["candidates"])]} for row in ROWS]
    write_jsonl(Path("dev.jsonl"), development)
    _, out, _ = run(
        "--metric",
        "prediction_length",
        "nbest.jsonl",
        "--tune",
        "dev.jsonl",
        "--report",
        "report.json",
    )
    assert [json.loads(line)["index"] for line in out.splitlines()] == [0, 0]
    report = json.loads(Path("report.json").read_text())
    assert report["tuned_on"] == {"file": "dev.jsonl", "lists": 2, "objective": "human"}
    assert min(report["weights"].values()) > 0
    _, out, err = run("--mbr", "-t", "two.en", "other.en", "--nbest", "2", "--format", "text")
    assert out.splitlines() == ["the house", "a cat"]
    assert "weights chrf=1" in err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "nothing to choose from: pass one FILE"),
        (["nbest.jsonl", "-t", "two.en"], "pass either one FILE or -t, "),
        (["two.en"], "two.en: JSON Lines are needed"),
        (["bad.jsonl"], "bad.jsonl, line 2: 'candidates' must be a list of strings"),
        (
            ["-s", "s.de", "-t", "two.en"],
            "two.en, line 1: NUMBER ||| TEXT ||| FEATURES ||| SCORE is needed",
        ),
        (
            ["-s", "s.de", "-t", "two.en", "--nbest", "3"],
            "not a multiple of --nbest 3; source 2 has 1",
        ),
        (
            ["-s", "s.de", "-t", "two.en", "--nbest", "0"],
            "--nbest 0: must be a whole number of at least 1",
        ),
        (
            ["-s", "s.de", "-t", "two.en", "--nbest", "1"],
            "s.de ends after 2 sources, but two.en goes on",
        ),
        (
            ["-s", "two.en", "-t", "two.en", "--nbest", "4"],
            "two.en ends after 1 sources, but two.en goes on",
        ),
        (["gap.txt"], "gap.txt: JSON Lines"),
        (["-s", "s.de", "-t", "gap.txt"], "candidates of source 2 stand where those of 1 should"),
        (["nbest.jsonl", "--mix", "modell=1"], "weights can be given to: prediction_length, model"),
        (["nbest.jsonl", "--mix", "model=1", "--tune", "nbest.jsonl"], "either given or chosen"),
        (
            ["nbest.jsonl", "--tune", "nbest.jsonl"],
            "list 1: neither judgements of all candidates (human) nor references",
        ),
    ],
)
def test_bad_calls(run: Run, argv: list[str], message: str) -> None:
    write_jsonl(Path("bad.jsonl"), [ROWS[0], {"source": "x", "candidates": "y"}])
    write(Path("gap.txt"), "0 ||| a ||| f ||| 1\n2 ||| b ||| f ||| 1\n")
    code, _, err = run("--metric", "prediction_length", *argv)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
