"""Which columns of the input a metric compares: sources or references, in parallel files, TSV, JSON Lines and
Parquet."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from mtmetrics.cli.io import input_rows
from mtmetrics.cli.options import add_metric_options, add_row_options
from mtmetrics.errors import InputError


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of all kinds with the source s, the predictions p and q, and the references r and R, in the working
    directory."""
    monkeypatch.chdir(tmp_path)
    for name in "spqrR":
        Path(name).write_text(f"{name}1\n{name}2\n")
    Path("two.tsv").write_text("x1\tp1\nx2\tp2\n")
    Path("three.tsv").write_text("s1\tp1\tr1\ns2\tp2\tr2\n")
    rows = [{"source": f"s{n}", "translation": f"p{n}", "reference": f"r{n}"} for n in (1, 2)]
    Path("header.tsv").write_text("Ref\tMT\nr1\tp1\nr2\tp2\n")
    Path("all.tsv").write_text("id\tmt\tsrc\tref\n1\tp1\ts1\tr1\n2\tp2\ts2\tr2\n")
    Path("half.tsv").write_text("source\tDas Haus\nx\ty\n")
    Path("twice.tsv").write_text("source\tmt\ttranslation\nx\ty\tz\n")
    Path("six.tsv").write_text("a\tb\tc\td\te\tf\n")
    Path("uneven.tsv").write_text("a\tb\na\tb\tc\n")
    Path("nul.tsv").write_text("a\tb\na\tb\0\n")
    Path("nul.jsonl").write_text('{"source": "a", "translation": "\\u0000"}\n')
    Path("keys.jsonl").write_text('{"src": "a", "english": "b"}\n')
    Path("long").write_text("p1\np2\np3\n")
    comet = [{"src": f"s{n}", "mt": f"p{n}", "ref": f"r{n}"} for n in (1, 2)]
    Path("comet.jsonl").write_text("".join(json.dumps(row) + "\n" for row in comet))
    Path("both.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("source.jsonl").write_text("".join(json.dumps(row | {"reference": None}) + "\n" for row in rows))
    parquet.write_table(pyarrow.Table.from_pylist(rows), "both.parquet")


PRESETS = {"esim": "esim-mini-qe"} | dict.fromkeys(("xmoverscore", "bertr", "distilscore", "sentsim", "bleu"), "mini")


def read(metric: str, *argv: str, **options: str | None) -> tuple[list[str], list[list], dict]:
    parser = argparse.ArgumentParser()
    add_row_options(parser)
    add_metric_options(parser)
    asked = [f"--{name}={value}" for name, value in options.items()]
    names, rows, compared = input_rows(
        parser.parse_args([*argv, "--metric", metric, "--preset", PRESETS[metric], *asked])
    )
    return names, list(rows), compared


REFERENCE = {"against": "reference"}
SOURCE = {"against": "source"}


@pytest.mark.parametrize(
    ("metric", "argv", "options", "first", "compared"),
    [
        ("xmoverscore", ["-s", "s", "-t", "p"], {}, ["s1", "p1"], {}),
        ("xmoverscore", ["-s", "s", "-r", "r", "-t", "p"], {}, ["s1", "p1"], {}),
        ("xmoverscore", ["three.tsv"], {}, ["s1", "p1"], {}),
        ("xmoverscore", ["both.jsonl"], {}, ["s1", "p1"], {}),
        ("bertr", ["-r", "r", "-t", "p", "q"], {}, ["r1", "p1", "q1"], REFERENCE),
        ("bertr", ["-r", "r", "R", "-t", "p", "q"], {}, [["r1", "R1"], "p1", "q1"], REFERENCE),
        ("bertr", ["-s", "s", "-t", "p"], {}, ["s1", "p1"], {"against": "source"}),
        ("bertr", ["two.tsv"], REFERENCE, ["x1", "p1"], REFERENCE),
        ("bertr", ["two.tsv"], SOURCE, ["x1", "p1"], SOURCE),
        ("bertr", ["header.tsv"], {}, ["r1", "p1"], REFERENCE),
        ("xmoverscore", ["all.tsv"], {}, ["s1", "p1"], {}),
        ("bertr", ["comet.jsonl"], {}, ["r1", "p1"], REFERENCE),
        ("bertr", ["comet.jsonl"], SOURCE, ["s1", "p1"], SOURCE),
        # A preset may say what it compares with.
        ("esim", ["two.tsv"], {}, ["x1", "p1"], SOURCE),
        ("bertr", ["three.tsv"], {}, ["r1", "p1"], REFERENCE),
        ("bertr", ["three.tsv"], {"against": "source"}, ["s1", "p1"], {"against": "source"}),
        ("bertr", ["both.parquet"], {}, ["r1", "p1"], REFERENCE),
        ("bertr", ["source.jsonl"], {}, ["s1", "p1"], {"against": "source"}),
        ("distilscore", ["two.tsv"], {"against": "reference"}, ["x1", "p1"], REFERENCE),
        ("sentsim", ["two.tsv"], SOURCE, ["x1", "p1"], {"setting": "src-mt"}),
        ("sentsim", ["two.tsv"], {"setting": "mt-ref"}, ["x1", "p1"], {"setting": "mt-ref"}),
        ("sentsim", ["three.tsv"], {"setting": "mt-ref"}, ["r1", "p1"], {"setting": "mt-ref"}),
        ("sentsim", ["source.jsonl"], {}, ["s1", "p1"], {"setting": "src-mt"}),
    ],
)
def test_columns(files: None, metric: str, argv: list[str], options: dict, first: list, compared: dict) -> None:
    _, rows, found = read(metric, *argv, **options)
    assert len(rows) == 2
    assert rows[0] == first
    assert found == compared


@pytest.mark.parametrize(
    ("metric", "argv", "options", "message"),
    [
        ("sentsim", ["-s", "s", "-r", "r", "-t", "p"], {}, "both .* are given: pass setting='src-mt'"),
        ("sentsim", ["three.tsv"], {}, "both sources and references are given"),
        ("sentsim", ["source.jsonl"], {"setting": "mt-ref"}, "compares with references; pass references"),
        ("xmoverscore", ["-r", "r", "-t", "p"], {}, "xmoverscore compares predictions with sources"),
        ("bertr", ["both.jsonl"], {"against": "both"}, "against 'both'"),
        ("bleu", ["two.tsv"], {}, "metric 'bleu'"),
        ("bertr", ["two.tsv"], {}, "two ways for bertr: pass --against source .* or --against reference"),
        ("sentsim", ["two.tsv"], {}, "two ways for sentsim: pass --against source .* or --against reference"),
        ("xmoverscore", ["half.tsv"], {}, "line 1: 'source TAB Das Haus' looks like half a header"),
        ("xmoverscore", ["twice.tsv"], {}, "'mt', 'translation' both name the translation"),
        ("xmoverscore", ["six.tsv"], {}, r"line 1: 6 column\(s\), but source TAB translation TAB reference"),
        ("xmoverscore", ["uneven.tsv"], {}, r"line 2: 3 column\(s\), but line 1 has 2"),
        ("xmoverscore", ["keys.jsonl"], {}, "no translation; the first row has src, english; what is read is source"),
        ("xmoverscore", ["nul.tsv"], {}, "line 2: holds a NUL byte"),
        ("xmoverscore", ["nul.jsonl"], {}, "line 1: 'translation' holds a NUL character"),
        ("xmoverscore", ["-s", "s", "-t", "long"], {}, r"long has 3 line\(s\), s has 2"),
        ("bertr", ["two.tsv", "-r", "r"], {}, "either one FILE or"),
        ("bertr", ["-t", "p"], {}, "nothing to score"),
        ("bertr", ["none.parquet"], {}, "none.parquet: no such file"),
    ],
)
def test_refusals(files: None, metric: str, argv: list[str], options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(metric, *argv, **options)


def test_scores_against_references(files: None, tiny_encoder: Path, mtmetrics: Callable) -> None:
    Path("preset.toml").write_text(f'[encoder]\nmodel = "{tiny_encoder}"\n')
    bertr = ("--metric", "bertr", "--preset", ".")
    code, out, _ = mtmetrics("score", *bertr, "-r", "r", "R", "-t", "p", "r")
    systems = json.loads(out)["systems"]
    assert code == 0
    assert systems[1]["scores"] == pytest.approx([1.0, 1.0])
    assert systems[0]["mean_score"] < 1.0
    for argv, message in (
        (["score", *bertr, "--ngram", "2", "three.tsv"], "bertr has no option 'ngram'"),
        (["explain", *bertr, "three.tsv"], "nothing to align"),
    ):
        code, _, err = mtmetrics(*argv)
        assert code == 2
        assert message in err
