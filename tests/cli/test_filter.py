"""``mtmetrics filter``: what is kept, formats; scores are minus the length of the target, so they
can be counted."""

import datetime
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow
import pytest
from helpers import write, write_jsonl
from pyarrow import parquet

from mtmetrics.choosing.parallel_text import CHECKS
from mtmetrics.scorers.registry import load_scorer

Run = Callable[..., tuple[int, str, str]]


ROWS = [
    ("Das Haus ist klein.", "The house is small."),
    ("", "Nothing stands on the other side."),
    ("Der Hund schläft heute nicht.", "The dog does not sleep today."),
    ("Der Hund schläft heute nicht!", "the dog does not sleep today"),
    ("Ich sehe die kleine Katze.", "I see the cat."),
    ("Ein Baum steht dort.", "There stands a tree, as you see."),
]


# Scores of the four pairs that pass: -19, -29, -14, -32; the best half are the first and the third
# of them.
KEPT = [(*ROWS[0], -19.0), (*ROWS[4], -14.0)]


@pytest.fixture
def run(mtmetrics: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "pairs.tsv", "".join(f"{source}\t{target}\n" for source, target in ROWS))
    write(tmp_path / "s.de", "".join(f"{source}\n" for source, _ in ROWS))
    write(tmp_path / "t.en", "".join(f"{target}\n" for _, target in ROWS))
    rows = [
        {"id": number, "source": source, "target": target}
        for number, (source, target) in enumerate(ROWS)
    ]
    write_jsonl(tmp_path / "pairs.jsonl", rows)
    parquet.write_table(pyarrow.Table.from_pylist(rows), "pairs.parquet")
    return lambda *argv: mtmetrics(
        "filter", "--metric", "prediction_length", "--lp", "de-en", *argv
    )


def test_all_ways_in_and_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    tsv = "".join(f"{source}\t{target}\t{score!r}\n" for source, target, score in KEPT)
    for argv in (["pairs.tsv"], ["-s", "s.de", "-t", "t.en"], ["-"]):
        monkeypatch.setattr(
            "sys.stdin", io.TextIOWrapper(io.BytesIO(Path("pairs.tsv").read_bytes()))
        )
        code, out, err = run("--top", "0.5", *argv)
        assert (code, out) == (0, tsv)
        assert "6 pairs, 1 blank, 1 repeated, 4 scored, 2 kept (lowest score -19)" in err
    named = [
        {"id": number, "source": s, "target": t, "score": score}
        for number, (s, t, score) in zip((0, 4), KEPT, strict=True)
    ]
    for source in ("pairs.jsonl", "pairs.parquet"):
        assert run("--top", "0.5", source, "--out", "kept.jsonl")[:2] == (0, "")
        assert [
            json.loads(line) for line in Path("kept.jsonl").read_text("utf-8").splitlines()
        ] == named
        assert run("--threshold", "-19", source, "--out", "kept.parquet")[0] == 0
        assert parquet.read_table("kept.parquet").to_pylist() == named


PASSING = [
    ("Das Haus ist klein.", "The house is small."),
    ("Sie hat keine Zeit.", "She has no time."),
]


def test_sides_and_columns_stay_in_their_places(run: Run) -> None:
    """Of rows whose keys are in another order, or are missing, and of a column that a row has
    first."""
    (one, first), (two, second) = PASSING
    rows = [
        {"source": one, "target": first},
        {"target": second, "id": 7, "source": two, "tags": ["a"]},
    ]
    write_jsonl(Path("keys.jsonl"), rows)
    code, out, _ = run("--top", "1", "keys.jsonl")
    cells = [("source", "target", "id", "tags", "score"), (one, first, "", "", "-19.0")]
    cells += [(two, second, "7", '["a"]', "-16.0")]
    assert (code, out) == (0, "".join("\t".join(row) + "\n" for row in cells))
    write(Path("kept.tsv"), out)
    assert run("--top", "1", "kept.tsv", "--column", "again", "--out", "again.jsonl")[0] == 0
    again = [json.loads(line) for line in Path("again.jsonl").read_text("utf-8").splitlines()]
    assert [(row["source"], row["target"], row["id"], row["again"]) for row in again] == [
        (one, first, "", -19),
        (two, second, "7", -16),
    ]


def test_a_header_is_known_and_written(run: Run, mtmetrics: Run) -> None:
    (one, first), (two, second) = PASSING
    write(Path("headed.tsv"), f"id\tsource\ttranslation\n1\t{one}\t{first}\n2\t{two}\t{second}\n\n")
    expected = (
        f"source\ttranslation\tid\tscore\n{one}\t{first}\t1\t-19.0\n{two}\t{second}\t2\t-16.0\n"
    )
    assert run("--top", "1", "headed.tsv")[:2] == (0, expected)
    write(Path("comet.csv"), f"mt,src\n{first},{one}\n")
    assert run("--top", "1", "comet.csv", "--out", "kept.tsv")[0] == 0
    scored = [
        mtmetrics("score", "--metric", "prediction_length", name)[1]
        for name in ("kept.tsv", "comet.csv")
    ]
    assert [json.loads(out)["scores"] for out in scored] == [[-19.0]] * 2
    write(Path("names.tsv"), f"de\ten\n{one}\t{first}\n")
    code, _, err = run("--skip", "language", "--top", "1", "names.tsv")
    assert code == 0
    assert "names.tsv, line 1: 'de TAB en' is read as texts" in err


def test_quoted_cells_are_read_as_those_of_csv(run: Run) -> None:
    pairs = [('"Ja", sagte sie.', '"Yes", she said.'), ('"Wer?"', '"Who?"')]
    quoted = [
        [f'"{text}"'.replace('"', '""')[1:-1] if "," in text else text for text in pair]
        for pair in pairs
    ]
    write(
        Path("quoted.tsv"), "source\ttarget\n" + "".join("\t".join(pair) + "\n" for pair in quoted)
    )
    assert run("--skip", "language", "--top", "1", "quoted.tsv", "--out", "kept.jsonl")[0] == 0
    kept = [json.loads(line) for line in Path("kept.jsonl").read_text("utf-8").splitlines()]
    assert [(row["source"], row["target"]) for row in kept] == pairs


def test_parquet_keeps_all_columns_and_values(run: Run) -> None:
    count = 10_500
    rows = [
        {"source": f"Haus {n}", "target": f"house {n}", "w": 1, "x": None} for n in range(count)
    ]
    rows += [{"source": "Hund", "target": "dog", "w": 0.5, "x": "late", "more": [1]}]
    write_jsonl(Path("long.jsonl"), rows)
    call = ("--skip", "language+numbers+repeated", "--top", "1")
    assert run(*call, "long.jsonl", "--out", "kept.parquet")[0] == 0
    kept = parquet.read_table("kept.parquet")
    assert kept.column_names == ["source", "target", "w", "x", "more", "score"]
    assert kept.slice(0, 1).to_pylist() == [rows[0] | {"more": None, "score": -7.0}]
    assert kept.slice(count).to_pylist() == [rows[-1] | {"score": -3.0}]
    typed = {
        "source": ["Hund"],
        "translation": ["dog"],
        "day": [datetime.date(2026, 1, 2)],
        "n": [2**63],
    }
    table = pyarrow.table(typed, schema=pyarrow.schema([
        ("source", pyarrow.string()), ("translation", pyarrow.large_string()), ("day", pyarrow.date32()),
        ("n", pyarrow.uint64()),
    ]))  # fmt: skip
    parquet.write_table(table, "typed.parquet")
    assert run(*call, "typed.parquet", "--out", "kept.parquet")[0] == 0
    assert parquet.read_table("kept.parquet").drop_columns("score").equals(table)


def test_further_columns_stay_and_tokens_are_counted(run: Run) -> None:
    write(
        Path("more.tsv"),
        "".join(f"{source}\t{target}\tx{place}\n" for place, (source, target) in enumerate(ROWS)),
    )
    # "I see the cat." has 5 tokens and "The house is small." has 5.
    for tokens, places in ((9, [4]), (10, [0, 4]), (16, [0, 4])):
        out = run("--tokens", str(tokens), "more.tsv")[1]
        assert [line.split("\t")[2] for line in out.splitlines()] == [
            f"x{place}" for place in places
        ]


def test_the_report(run: Run) -> None:
    run("--top", "0.5", "pairs.tsv", "--out", "kept.tsv", "--report", "report.json")
    report = json.loads(Path("report.json").read_text("utf-8"))
    assert {name: entry["pairs"] for name, entry in report["removed"].items()} == dict.fromkeys(
        CHECKS, 0
    ) | {
        "blank": 1,
        "repeated": 1,
    }
    assert report["removed"]["repeated"]["examples"] == [
        {"row": 4, "source": ROWS[3][0], "target": ROWS[3][1]}
    ]
    assert [example["row"] for example in report["below"]["examples"]] == [3, 6]
    assert report["below"]["examples"][0]["score"] == -29
    assert report["kept"] == {"pairs": 2, "lowest_score": -19, "mean_score": -16.5}
    assert (
        report["metrics"]["prediction_length"]["signature"]
        == load_scorer("prediction_length").signature
    )


def test_a_weighted_sum_writes_its_parts(run: Run) -> None:
    argv = [
        "--metric",
        "source_length",
        "--mix",
        "source_length=0.5",
        "--top",
        "1",
        "pairs.jsonl",
        "--out",
        "k.jsonl",
    ]
    assert run(*argv)[0] == 0
    first = json.loads(Path("k.jsonl").read_text("utf-8").splitlines()[0])
    assert (first["prediction_length"], first["source_length"], first["score"]) == (-19, -19, -28.5)


def test_a_long_file_is_scored_in_chunks_and_twice_the_same(run: Run) -> None:
    lines = [
        f"Haus {'a' * (number % 50)} {number}\thouse {'a' * (number % 50)} {number}"
        for number in range(2500)
    ]
    write(Path("long.tsv"), "\n".join(lines) + "\n")
    outputs = [run("--skip", "language+repeated", "--top", "0.1", "long.tsv")[1] for _ in range(2)]
    assert outputs[0] == outputs[1]
    kept = [line.rpartition("\t") for line in outputs[0].splitlines()]
    assert len(kept) == 250
    expected = sorted(lines, key=lambda line: len(line.partition("\t")[2]))[:250]
    assert {line for line, _, _ in kept} == set(expected)
    assert [lines.index(line) for line, _, _ in kept] == sorted(
        lines.index(line) for line, _, _ in kept
    )


def test_a_real_metric_keeps_the_scores_of_the_scorer(
    mtmetrics: Run, tiny_preset: Path, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "pairs.tsv", "".join(f"{source}\t{target}\n" for source, target in ROWS)
    )
    code, out, _ = mtmetrics(
        "filter", "--preset", tiny_preset, "--lp", "de-en", path, "--top", "1", "--dtype", "float32"
    )
    kept = [line.split("\t") for line in out.splitlines()]
    scorer = load_scorer("xmoverscore", str(tiny_preset), lang_pair="de-en")
    scores = scorer.score([row[1] for row in kept], sources=[row[0] for row in kept]).segments
    assert code == 0
    assert [float(row[2]) for row in kept] == pytest.approx(scores.tolist(), abs=1e-6)


def in_process(
    make_worker: Callable, path: str, out: str, *, block_rows: int, **_: object
) -> Iterator[dict]:
    """Does what the engine does with a JSON Lines file, without a cluster; the last block is
    finished first."""
    worker = make_worker()
    rows = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
    Path(out).mkdir(parents=True, exist_ok=True)
    for first in reversed(range(0, len(rows), block_rows)):
        block = [row | {"file": path, "segment": number + 1} for number, row in enumerate(rows)][
            first:
        ][:block_rows]
        table, summary = worker(pyarrow.Table.from_pylist(block))
        parquet.write_table(table, f"{out}/part-00000-{first:012}.parquet")
        yield summary | {"file": 0, "first": first, "bad": 0}


def test_blocks_of_an_engine_give_what_one_process_gives(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtmetrics.cli.ray.map_blocks", in_process)
    monkeypatch.setattr(
        "mtmetrics.cli.filter.column_names", lambda path: ["id", "source", "target"]
    )
    more = ["--metric", "source_length", "--report", "report.json", "pairs.jsonl"]
    for criterion in (["--top", "0.5"], ["--threshold", "-60"], ["--tokens", "12"]):
        assert run(*criterion, *more, "--out", "kept.jsonl")[0] == 0
        expected = [json.loads(line) for line in Path("kept.jsonl").read_text("utf-8").splitlines()]
        whole = json.loads(Path("report.json").read_text("utf-8"))
        # The near duplicate and its twin are in different blocks.
        assert (
            run(*criterion, *more, "--engine", "ray", "--block-rows", "3", "--out", "kept")[0] == 0
        )
        rows = parquet.read_table("kept").to_pylist()
        assert [row.pop("segment") - 1 for row in rows] == [row["id"] for row in rows]
        assert [row.pop("file") for row in rows] == ["pairs.jsonl"] * len(rows)
        assert rows == expected
        report = json.loads(Path("report.json").read_text("utf-8"))
        assert report.pop("bad") == 0
        for entry in (report["below"], *report["removed"].values()):
            assert all(example.pop("file") == "pairs.jsonl" for example in entry["examples"])
        # The cluster scores near duplicates, which are found when all blocks are there.
        for about in (*report["metrics"].values(), *whole["metrics"].values()):
            del about["report"]
        assert report == whole


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["pairs.tsv"], "pass one of --threshold SCORE, --top SHARE or --tokens NUMBER"),
        (["pairs.tsv", "--top", "0.5", "--tokens", "3"], "top and tokens say which pairs to keep"),
        (["pairs.tsv", "--top", "1.5"], "top 1.5: must be above 0 and at most 1"),
        (["--top", "1"], "nothing to filter: pass one FILE"),
        (["pairs.tsv", "-s", "a", "-t", "b", "--top", "1"], "pass either one FILE or -s and -t"),
        (["none.tsv", "--top", "1"], "none.tsv: no such file"),
        (["empty.tsv", "--top", "1"], "empty.tsv: empty; there is nothing to filter"),
        (["-", "--top", "1"], "standard input, line 2: 1 column(s), but line 1 has 2"),
        (
            ["pairs.tsv", "--top", "1", "--out", "kept.txt"],
            "must end in one of .tsv, .jsonl, .parquet",
        ),
        (["pairs.tsv", "--top", "1", "--out", "no/kept.tsv"], "there is no folder no"),
        (["pairs.jsonl", "--top", "1", "--column", "id"], "has a column 'id' already"),
        (
            ["tab.jsonl", "--top", "1"],
            "tab.jsonl, line 1, column 'source': 'Das Haus\\tist klein.' holds a tab",
        ),
        (
            ["key.jsonl", "--top", "1"],
            "key.jsonl, line 2: the name of a column: 'a\\tb' holds a tab",
        ),
        (
            ["big.jsonl", "--top", "1", "--out", "kept.parquet"],
            "big.jsonl, line 2: column 'n': 184",
        ),
        (
            ["mixed.jsonl", "--top", "1", "--out", "kept.parquet"],
            "line 2: column 'n' holds a text ('x'), but a number",
        ),
        (["bytes.parquet", "--top", "1", "--out", "kept.jsonl"], "column 'b': JSON has no bytes"),
        (["ragged.tsv", "--top", "1"], "ragged.tsv, line 2: 3 column(s), but line 1 has 2"),
        (
            ["ragged.csv", "--top", "1"],
            "ragged.csv, line 3: 1 field(s), but the header has 2: source, target",
        ),
        (["late.jsonl", "--top", "1"], "has a column 'score' already"),
        (
            ["half.tsv", "--top", "1"],
            "half.tsv, line 1: 'source TAB Das Haus' looks like half a header",
        ),
        (
            ["pairs.tsv", "--top", "1", "--mix", "bertr=2"],
            "weight of 'bertr': there is no such score",
        ),
        (["pairs.tsv", "--top", "1", "--mix", "prediction_length"], "NAME=WEIGHT is needed"),
        (
            ["pairs.tsv", "--top", "1", "--metric", "chrf"],
            "metric chrf: chrf compares predictions with references",
        ),
    ],
)
def test_bad_calls(
    run: Run, argv: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(Path("empty.tsv"), b"")
    write_jsonl(
        Path("tab.jsonl"), [{"source": "Das Haus\tist klein.", "target": "The house is small."}]
    )
    pair = {"source": "Das Haus", "target": "the house"}
    for name, more in {
        "key": {"a\tb": 1},
        "big": {"n": 2**64},
        "late": {"score": 1},
        "mixed": {"n": "x"},
    }.items():
        write_jsonl(Path(f"{name}.jsonl"), [pair | {"n": 1}, pair | more])
    parquet.write_table(pyarrow.Table.from_pylist([pair | {"b": b"x"}]), "bytes.parquet")
    write(Path("ragged.tsv"), "Das Haus\tthe house\nein Hund\ta\tdog\n")
    write(Path("ragged.csv"), "source,target\nDas Haus,the house\nein Hund\n")
    write(Path("half.tsv"), "source\tDas Haus\nein Hund\ta dog\n")
    if "empty" not in message:  # refused before anything is scored
        monkeypatch.setattr("mtmetrics.cli.filter.scan", None)
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(b"das Haus\tthe house\nder Hund\n"))
    )
    code, out, err = run(*argv)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("mtmetrics: ")
    assert not list(Path.cwd().glob("*kept*"))
