"""The columns of the input that a metric compares: sources or references, in parallel files, TSV, JSON
Lines and Parquet."""

import argparse
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from helpers import refused, write, write_jsonl
from pyarrow import parquet

from mtmetrics.cli.options import add_metric_options, add_row_options, single_metric
from mtmetrics.cli.rows import open_rows
from mtmetrics.errors import InputError


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of all kinds with the source s, the predictions p and q, and the references r and R, in
    the working directory."""
    monkeypatch.chdir(tmp_path)
    rows = [{"source": f"s{n}", "translation": f"p{n}", "reference": f"r{n}"} for n in (1, 2)]
    contents = {name: f"{name}1\n{name}2\n" for name in "spqrR"} | {
        "two.tsv": "x1\tp1\nx2\tp2\n",
        "three.tsv": "s1\tp1\tr1\ns2\tp2\tr2\n",
        "header.tsv": "Ref\tMT\nr1\tp1\nr2\tp2\n",
        "all.tsv": "id\tmt\tsrc\tref\n1\tp1\ts1\tr1\n2\tp2\ts2\tr2\n",
        "all.csv": 'id,mt,src,ref\n1,"p1, ""p""\t",s1,"r\n1"\n2,p2,s2,r2\n',
        "half.tsv": "source\tDas Haus\nx\ty\n",
        "twice.tsv": "source\tmt\ttranslation\nx\ty\tz\n",
        "six.tsv": "a\tb\tc\td\te\tf\n",
        "nul.tsv": "a\tb\na\tb\0\n",
        "nul.jsonl": '{"source": "a", "translation": "\\u0000"}\n',
        "keys.jsonl": '{"src": "a", "english": "b"}\n',
    }
    for name, content in contents.items():
        write(Path(name), content)
    write_jsonl(
        Path("comet.jsonl"), ({"src": f"s{n}", "mt": f"p{n}", "ref": f"r{n}"} for n in (1, 2))
    )
    write_jsonl(Path("both.jsonl"), rows)
    write_jsonl(Path("source.jsonl"), (row | {"reference": None} for row in rows))
    parquet.write_table(pyarrow.Table.from_pylist(rows), "both.parquet")


PRESETS = dict.fromkeys(
    ("xmoverscore", "bertr", "bilstm", "distilscore", "sentsim", "bleu"), "mini"
)


def read(metric: str, *argv: str, **options: str | None) -> tuple[list[str], list[list], list]:
    parser = argparse.ArgumentParser()
    add_row_options(parser)
    add_metric_options(parser)
    asked = [f"--{name}={value}" for name, value in options.items()]
    args = parser.parse_args([*argv, "--metric", metric, "--preset", PRESETS[metric], *asked])
    inputs = open_rows(args, [single_metric(args)])
    return inputs.systems, list(inputs.rows), inputs.sides


REFERENCE = {"against": "reference"}
SOURCE = {"against": "source"}


@pytest.mark.parametrize(
    ("metric", "argv", "options", "first", "compared"),
    [
        ("xmoverscore", ["-s", "s", "-r", "r", "-t", "p"], {}, ["s1", "p1"], SOURCE),
        ("xmoverscore", ["three.tsv"], {}, ["s1", "p1"], SOURCE),
        ("xmoverscore", ["both.jsonl"], {}, ["s1", "p1"], SOURCE),
        ("bertr", ["-r", "r", "-t", "p", "q"], {}, ["r1", "p1", "q1"], REFERENCE),
        ("bertr", ["-r", "r", "R", "-t", "p", "q"], {}, [["r1", "R1"], "p1", "q1"], REFERENCE),
        ("bertr", ["-s", "s", "-t", "p"], {}, ["s1", "p1"], SOURCE),
        ("bertr", ["two.tsv"], REFERENCE, ["x1", "p1"], REFERENCE),
        ("bertr", ["header.tsv"], {}, ["r1", "p1"], REFERENCE),
        ("xmoverscore", ["all.tsv"], {}, ["s1", "p1"], SOURCE),
        ("bertr", ["all.csv"], {}, ["r\n1", 'p1, "p"\t'], REFERENCE),
        ("bertr", ["comet.jsonl"], {}, ["r1", "p1"], REFERENCE),
        ("bertr", ["comet.jsonl"], SOURCE, ["s1", "p1"], SOURCE),
        # A preset may say what it compares with.
        ("bilstm", ["two.tsv"], {}, ["x1", "p1"], REFERENCE),
        ("bertr", ["three.tsv"], {}, ["r1", "p1"], REFERENCE),
        ("bertr", ["three.tsv"], SOURCE, ["s1", "p1"], SOURCE),
        ("bertr", ["both.parquet"], {}, ["r1", "p1"], REFERENCE),
        ("bertr", ["source.jsonl"], {}, ["s1", "p1"], SOURCE),
        ("sentsim", ["two.tsv"], SOURCE, ["x1", "p1"], SOURCE),
        ("sentsim", ["two.tsv"], {"setting": "mt-ref"}, ["x1", "p1"], REFERENCE),
        ("sentsim", ["three.tsv"], {"setting": "mt-ref"}, ["r1", "p1"], REFERENCE),
        ("sentsim", ["source.jsonl"], {}, ["s1", "p1"], SOURCE),
    ],
)
def test_columns(
    files: None, metric: str, argv: list[str], options: dict, first: list, compared: dict
) -> None:
    _, rows, sides = read(metric, *argv, **options)
    assert len(rows) == 2
    assert rows[0] == first
    assert sides == [compared["against"]]


@pytest.mark.parametrize(
    ("metric", "argv", "options", "message"),
    [
        (
            "sentsim",
            ["-s", "s", "-r", "r", "-t", "p"],
            {},
            "both .* are given: pass against=.source.",
        ),
        (
            "sentsim",
            ["source.jsonl"],
            {"setting": "mt-ref"},
            "compares with references; pass references",
        ),
        (
            "xmoverscore",
            ["-r", "r", "-t", "p"],
            {},
            "xmoverscore compares predictions with sources",
        ),
        (
            "bertr",
            ["both.jsonl"],
            {"against": "both"},
            "bertr compares with sources or references only, not with both",
        ),
        (
            "bertr",
            ["two.tsv"],
            {},
            "two ways for bertr: pass --against source .* or --against reference",
        ),
        ("xmoverscore", ["half.tsv"], {}, "line 1: 'source TAB Das Haus' looks like half a header"),
        ("xmoverscore", ["twice.tsv"], {}, "'mt', 'translation' both name the translation"),
        (
            "xmoverscore",
            ["six.tsv"],
            {},
            r"line 1: 6 column\(s\), but source TAB translation TAB reference",
        ),
        (
            "xmoverscore",
            ["keys.jsonl"],
            {},
            "no translation; the first row has src, english; what is read is source",
        ),
        ("xmoverscore", ["nul.tsv"], {}, "line 2: holds a NUL byte"),
        ("xmoverscore", ["nul.jsonl"], {}, "line 1: 'translation' holds a NUL character"),
        ("bertr", ["two.tsv", "-r", "r"], {}, "either one FILE or"),
        ("bertr", ["-t", "p"], {}, "nothing to score"),
    ],
)
def test_refusals(files: None, metric: str, argv: list[str], options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(metric, *argv, **options)


# Three rows, as several programs write them.
ROWS = [('"Ja", sagte er.', '"Yes", he said.', "r1"), ('"Wer?"', '"Who?"', "r2"), (" ", "", "r3")]
NAMES = ("src", "mt", "ref")


def as_cells(separator: str, special: str, *, quote_all: bool = False) -> str:
    def cell(text: str) -> str:
        return (
            '"' + text.replace('"', '""') + '"' if quote_all or set(text) & set(special) else text
        )

    return "".join(separator.join(map(cell, row)) + "\n" for row in (NAMES, *ROWS)) + "\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.tsv", as_cells("\t", '"\t')),
        ("rows.tsv", as_cells("\t", "", quote_all=True)),
        ("rows.tsv", as_cells("\t", "")),
        ("rows.csv", as_cells(",", '",')),
        ("rows.csv", as_cells(",", "", quote_all=True)),
        ("rows.csv", as_cells("\t", '"\t')),
        ("rows.tsv", as_cells(",", '",')),
        (
            "rows.jsonl",
            "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in ROWS) + "\n",
        ),
        ("rows.tsv", "".join("\t".join(row) + "\n" for row in ROWS)),
        ("-", as_cells("\t", '"\t')),
    ],
)
def test_one_rule_for_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("x" + name), text)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    path = name if name == "-" else "x" + name
    assert read("xmoverscore", path)[1] == [list(row[:2]) for row in ROWS]


def test_systems_in_one_file_are_named_as_elsewhere(tmp_path: Path, mtmetrics: Callable) -> None:
    rows = [{"src": "das Haus", "outputs": {"a": "the house", "b": "house"}}] * 3
    path = write_jsonl(tmp_path / "systems.jsonl", rows)
    code, out, _ = mtmetrics(
        "compare", path, "--metric", "prediction_length", "--resamples", "100", "--format", "json"
    )
    assert code == 0
    assert [system["system"] for system in json.loads(out)["metrics"][0]["systems"]] == ["b", "a"]


def test_scores_against_references(files: None, tiny_encoder: Path, mtmetrics: Callable) -> None:
    write(Path("preset.toml"), f'[encoder]\nmodel = "{tiny_encoder}"\n')
    bertr = ("--metric", "bertr", "--preset", ".")
    code, out, _ = mtmetrics("score", *bertr, "-r", "r", "R", "-t", "p", "r")
    systems = json.loads(out)["systems"]
    assert (code, systems[1]["scores"]) == (0, pytest.approx([1.0, 1.0]))
    assert systems[0]["mean_score"] < 1.0
    refused(mtmetrics("score", *bertr, "--ngram", "2", "three.tsv"), "bertr has no option 'ngram'")
