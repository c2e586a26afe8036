"""Scores of other tools: read in the layouts that these write, found by system and segment, and
never guessed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mtmetrics.errors import InputError
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.stored import read_scores

TWO = "a\t1\na\t2.5\nb\t-3\nb\t4e-1\n"
COMET = {
    "out/a.txt": [{"src": "x", "mt": "y", "COMET": 1.0}, {"src": "x", "mt": "y", "COMET": 2.5}],
    "out/b.txt": [{"src": "x", "mt": "y", "COMET": -3}, {"src": "x", "mt": "y", "COMET": 0.4}],
}
ROWS = [("b", 2, 0.4), ("a", 1, 1), ("a", 2, 2.5), ("b", 1, -3)]
LAYOUTS = {
    "newstest.seg.score": TWO,
    "scores.tsv": "system\tsegment\tscore\n" + "".join(f"{s}\t{n}\t{v}\n" for s, n, v in ROWS),
    "scores.csv": "score,system,segment\n" + "".join(f"{v},{s},{n}\n" for s, n, v in ROWS),
    "scores.jsonl": "".join(
        json.dumps({"system": s, "segment": n, "score": v}) + "\n" for s, n, v in ROWS
    ),
    "comet.json": json.dumps(COMET),
    "ours.json": json.dumps(
        {"systems": [{"name": "a", "scores": [1, 2.5]}, {"name": "b", "scores": [-3, 0.4]}]}
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(LAYOUTS[name])
    scorer = load_scorer("scores", str(tmp_path / name), lang_pair="de-en")
    found = scorer.score_systems({"b": ["one", " "], "a": ["one", "two"]}, sources=["eins", "zwei"])
    assert found["a"].segments.tolist() == [1.0, 2.5]
    assert found["b"].segments.tolist() == [-3.0, 0.4]
    assert found["b"].report.blank == 1
    assert found["a"].signature.startswith(f"scores|file:{name}#")
    turned = load_scorer("scores", str(tmp_path / name), lower_is_better=True, against="reference")
    assert turned.score_systems({"a": ["one", "two"]}, references=[["r", "s"], ["t"]])[
        "a"
    ].segments.tolist() == [-1.0, -2.5]
    assert "|turned:yes|" in turned.signature


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "ids.jsonl",
            "".join(json.dumps({"seg_id": n, "system": s, "score": v}) + "\n" for s, n, v in ROWS),
        ),
        (
            "zero.jsonl",
            "".join(json.dumps({"id": n - 1, "sys": s, "score": v}) + "\n" for s, n, v in ROWS),
        ),
        ("index.csv", "score,system,Index\n" + "".join(f"{v},{s},{n - 1}\n" for s, n, v in ROWS)),
        (
            "floats.tsv",
            "system\tsegment\tscore\n" + "".join(f"{s}\t{n}.0\t{v}\n" for s, n, v in ROWS) + "\n\n",
        ),
        (
            "quoted.tsv",
            '"system"\t"segment"\t"score"\n' + "".join(f'"{s}"\t{n}\t{v}\n' for s, n, v in ROWS),
        ),
        ("commas.tsv", "system,segment,score\n" + "".join(f"{s},{n},{v}\n" for s, n, v in ROWS)),
        ("blank.seg.score", TWO + "\n\n"),
        ("ROWS.JSONL", LAYOUTS["scores.jsonl"]),
    ],
)
def test_segments_are_found_by_their_number(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_scores(tmp_path / name) == {"a": [1.0, 2.5], "b": [-3.0, 0.4]}


def test_an_index_of_pandas_numbers_the_segments(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(",score,mt\n1,0.25,b\n0,0.5,a\n")
    assert read_scores(tmp_path / "x.csv") == {"": [0.5, 0.25]}


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_what_score_wrote_is_read_back(
    tmp_path: Path, mtmetrics, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("src", "eins\nzwei\n"), ('a, "b".en', "one\ntwo\n"), ("c", "x\ny y\n")):
        Path(name).write_text(text)
    call = ("-s", "src", "-t", 'a, "b".en', "c", "--metric")
    assert mtmetrics("score", *call, "prediction_length", "--out", f"scores.{form}")[0] == 0
    code, out, _ = mtmetrics("score", *call, f"scores:scores.{form}", "--format", "json")
    assert code == 0
    found = {system["name"]: system["scores"] for system in json.loads(out)["systems"]}
    assert found == {'a, "b"': [-3.0, -3.0], "c": [-1.0, -3.0]}


def test_several_metrics_with_parts_are_read_back_by_their_column(
    tmp_path: Path, mtmetrics, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.tsv").write_text("Das Haus\tthe house\nein Hund\t \n")
    metrics = ("--metric", "prediction_length", "--metric", "source_length")
    for form in ("csv", "tsv", "jsonl", "parquet"):
        call = ("rows.tsv", *metrics, "--degenerate", "keep", "--out", f"scores.{form}")
        assert mtmetrics("score", *call)[0] == 0
        assert read_scores(Path(f"scores.{form}"), "source_length") == {"rows.tsv": [-8.0, -1000.0]}
    code, _, err = mtmetrics(
        "score", "rows.tsv", "--against", "source", "--metric", "scores:scores.tsv"
    )
    assert code == 2
    assert (
        "no score or COMET; there are: system, segment, prediction_length, source_length, unusual"
        in err
    )


def test_a_system_that_the_format_cannot_name_is_refused_first(
    tmp_path: Path, mtmetrics, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("src", "a\tb"):
        Path(name).write_text("x\n")
    monkeypatch.setattr("mtmetrics.scorers.registry.load_scorer", None)
    code, _, err = mtmetrics(
        "score", "-s", "src", "-t", "a\tb", "--metric", "prediction_length", "--format", "tsv"
    )
    assert code == 2
    assert "a system, column 'system': 'a\\tb' holds a tab" in err


def test_one_system_needs_no_name_and_chunks_go_on_where_they_were(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("".join(f"{number / 8}\n" for number in range(1500)))
    scorer = load_scorer("scores", str(tmp_path / "plain"))
    for _ in range(2):
        assert scorer.score(["y"] * 1500, sources=["x"] * 1500).segments.tolist() == [
            number / 8 for number in range(1500)
        ]


def test_a_segment_is_blank_where_all_its_references_are(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("1\n2\n3\n")
    result = load_scorer("scores", str(tmp_path / "plain"), against="reference").score(
        ["x", "y", "z"], references=[[" ", "r"], [" ", ""], ["r", "s"]]
    )
    assert result.segments.tolist() == [1.0, 2.0, 3.0]
    assert result.empty.tolist() == [False, True, False]
    with pytest.raises(
        InputError, match="scores compares with sources or references only, not with both"
    ):
        load_scorer("scores", str(tmp_path / "plain"), against="both")


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "x", "empty; there are no scores"),
        (
            "system,score\na,1,2\n",
            "x.csv",
            r"line 2: 3 field\(s\), but the header has 2: system, score",
        ),
        ("1\nx\n", "x", "line 2: a finite number is needed, got 'x'"),
        ("1\nnan\n", "x", "line 2: a finite number is needed"),
        ("a\tb\tc\n", "x", "line 1: one number, or system TAB number, is needed on each line"),
        ("a\t1\na\t2\nb\t1\n", "x", "1 scores of b, up to segment 1, where 2 are needed"),
        (
            '{"score": 1, "segment": 2}\n',
            "x.jsonl",
            "1 scores of a system, up to segment 2, where 1 are needed",
        ),
        (
            '{"score": 1, "segment": 1}\n{"score": 1}\n',
            "x.jsonl",
            "line 2: the segment null is no whole number",
        ),
        ('{"score": 1, "segment": "x"}\n', "x.jsonl", "line 1: the segment 'x' is no whole number"),
        (
            '{"score": 1, "system": "a"}\n',
            "x.jsonl",
            "line 1: no column is known to number the segments",
        ),
        (
            '{"score": 1, "name": "seg-1"}\n',
            "x.jsonl",
            "no column is known.*'score', 'name'; call it segment",
        ),
        ("score\tdoc\n1\t7\n", "x.tsv", "line 2: no column is known to number the segments"),
        (
            "system,id,score\na,0,1\na,1,1\nb,1,1\nb,2,1\n",
            "x.csv",
            "of a, up to segment 1.*begin with 0, those",
        ),
        (
            "id,score\n5,1\n6,1\n",
            "x.csv",
            "up to segment 6, where 2.*numbered from 1, or all from 0",
        ),
        ("1\n\n2\n", "x", "line 2: one number, or system TAB number, is needed"),
        (
            '{"score": 1, "segment": 1}\n' * 2,
            "x.jsonl",
            "line 2: segment 1 of the system comes twice",
        ),
        (
            '{"BLEURT": 1}\n',
            "x.jsonl",
            "line 1: no score or COMET; there are: BLEURT; pass key=NAME",
        ),
        ('{"name": "BLEU", "score": 31.2}', "x.json", "scores of segments are needed"),
        ("[1.5]", "x.json", "scores of segments are needed"),
        ("{", "x.json", "no JSON"),
        ('{"systems": null}', "x.json", "scores of segments are needed"),
        ('{"systems": ["a"]}', "x.json", "a finite number is needed, got 'a'"),
        ('{"scores": 5}', "x.json", "scores of segments are needed"),
        (f'{{"scores": [1{"0" * 400}]}}', "x.json", "score 1: a finite number is needed"),
        ("\n0.5\n", "x", "line 1: one number, or system TAB number, is needed on each line"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, text: str, name: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        load_scorer("scores", str(tmp_path / name))


def test_what_sacrebleu_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its command, run here: scores of segments are read, with its signature or without; those of
    systems are not."""
    pytest.importorskip("sacrebleu", reason="needs the extra 'baselines'")
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("ref", "The house is small.\nNo.\n"),
        ("a", "A home is small.\nNo.\n"),
        ("b", "x\ny\n"),
    ):
        Path(name).write_text(text)

    def written(*options: str, metric: str = "chrf") -> str:
        call = [sys.executable, "-m", "sacrebleu", "ref", "-m", metric, *options]
        Path("out").write_bytes(subprocess.run(call, capture_output=True, check=True).stdout)
        Path("out.json").write_bytes(Path("out").read_bytes())
        return "out"

    sentences = ("--sentence-level", "-w", "3", "-i", "a")
    bare = read_scores(Path(written(*sentences, "--score-only")))
    assert read_scores(Path(written(*sentences))) == bare
    assert (bare[""][1], 0 < bare[""][0] < 100) == (100.0, True)
    # BLEU has details behind its score.
    bare = read_scores(Path(written(*sentences, "--score-only", metric="bleu")))
    assert read_scores(Path(written(*sentences, metric="bleu"))) == bare
    for options in (("-i", "a"), ("-i", "a", "-m", "chrf", "bleu"), ("-i", "a", "b")):
        written(*options)
        with pytest.raises(
            InputError, match=r"out.json: sacrebleu's scores of whole systems.*--sentence-level"
        ):
            read_scores(Path("out.json"))


def test_what_does_not_fit_the_texts(tmp_path: Path) -> None:
    (tmp_path / "two").write_text(TWO)
    scorer = load_scorer("scores", str(tmp_path / "two"))
    for systems, message in (
        ({"c": ["x", "y"], "a": ["x", "y"]}, "two: no scores of 'c'; it holds: a, b"),
        ({"a": ["x"] * 3, "b": ["x"] * 3}, "holds 2 scores of a system, there are more segments"),
        ({"a": ["x"], "b": ["x"]}, "holds 2 scores of a system, for only 1 segments"),
    ):
        with pytest.raises(InputError, match=message):
            scorer.score_systems(systems, sources=["s"] * len(next(iter(systems.values()))))
    with pytest.raises(InputError, match="no such file; write scores:FILE"):
        load_scorer("scores")
    (tmp_path / "named.jsonl").write_text('{"BLEURT": 1}\n')
    assert (
        load_scorer("scores", str(tmp_path / "named.jsonl"), key="BLEURT")
        .score(["y"], sources=["x"])
        .system
        == 1.0
    )


def test_beside_a_metric_in_one_call(
    tmp_path: Path, mtmetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("src", "eins\nzwei\n"),
        ("a", "one\ntwo\n"),
        ("b", "x\ny\n"),
        ("x.seg.score", TWO),
    ):
        Path(name).write_text(text)
    metrics = ("--metric", "scores:x.seg.score", "--metric", "prediction_length")
    code, out, _ = mtmetrics("compare", "-s", "src", "-t", "a", "b", *metrics, "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert "scores:x.seg.score" in json.dumps(found)
    code, out, _ = mtmetrics("score", "-s", "src", "-t", "b", "--metric", "scores:x.seg.score")
    assert (code, json.loads(out)["scores"]) == (0, [-3.0, 0.4])
