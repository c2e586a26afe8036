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
from mtmetrics.cli.options import add_row_options
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
    Path("both.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("source.jsonl").write_text("".join(json.dumps(row | {"reference": None}) + "\n" for row in rows))
    parquet.write_table(pyarrow.Table.from_pylist(rows), "both.parquet")


def read(metric: str, *argv: str, **options: str | None) -> tuple[list[str], list[list], dict]:
    parser = argparse.ArgumentParser()
    add_row_options(parser)
    args = parser.parse_args(argv)
    for name, value in {"metric": metric, "against": None, "setting": None, **options}.items():
        setattr(args, name, value)
    names, rows, compared = input_rows(args)
    return names, list(rows), compared


REFERENCE = {"against": "reference"}


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
        ("bertr", ["two.tsv"], {}, ["x1", "p1"], REFERENCE),
        ("bertr", ["three.tsv"], {}, ["r1", "p1"], REFERENCE),
        ("bertr", ["three.tsv"], {"against": "source"}, ["s1", "p1"], {"against": "source"}),
        ("bertr", ["both.parquet"], {}, ["r1", "p1"], REFERENCE),
        ("bertr", ["source.jsonl"], {}, ["s1", "p1"], {"against": "source"}),
        ("distilscore", ["two.tsv"], {"against": "reference"}, ["x1", "p1"], REFERENCE),
        ("sentsim", ["two.tsv"], {}, ["x1", "p1"], {"setting": "src-mt"}),
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
        (["score", *bertr, "--ngram", "2", "two.tsv"], "bertr has no option 'ngram'"),
        (["explain", *bertr, "two.tsv"], "nothing to align"),
    ):
        code, _, err = mtmetrics(*argv)
        assert code == 2
        assert message in err
