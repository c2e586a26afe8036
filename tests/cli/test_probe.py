"""``mtmetrics probe`` in process: both probes, ways in, formats, plots, errors."""

import json
from pathlib import Path

import pytest
from helpers import refused, write

from mtmetrics.probes.probing import random_order
from mtmetrics.scorers.registry import load_scorer

SOURCES = [
    "das haus ist klein",
    "der hund schläft nicht",
    "ich sehe die katze",
    "ein baum steht dort",
]
REFERENCES = ["the house is small", "the dog sleeps not", "i see the cat", "a tree stands there"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    rows = list(zip(SOURCES, REFERENCES, strict=True))
    contents = {
        "src": SOURCES,
        "ref": REFERENCES,
        "own": [f"{reference} there" for reference in REFERENCES],
        "rows.tsv": [f"{source}\t{reference}" for source, reference in rows],
        "judged.jsonl": [
            json.dumps({"source": s, "reference": r, "human": n}) for s, r in rows for n in (1, 2)
        ],
        "parallel.jsonl": [json.dumps({"source": s, "target": r, "origin": "x"}) for s, r in rows],
        "words.tsv": ["das\tthe", "haus\thouse", "ist\tis", "klein\tsmall"],
        "empty": [],
    }
    return {
        name: str(write(tmp_path / name, "".join(f"{line}\n" for line in it)))
        for name, it in contents.items()
    }


@pytest.fixture
def probe(tiny_preset: Path, mtmetrics):
    return lambda *argv: mtmetrics(
        "probe", *argv, "--preset", tiny_preset, "--lp", "de-en", "--device", "cpu"
    )


def test_preference(probe, files, tiny_preset):
    given = [
        "-s",
        files["src"],
        "-r",
        files["ref"],
        "-t",
        files["own"],
        "--word-pairs",
        files["words.tsv"],
    ]
    code, out, err = probe("preference", *given)
    assert code == 0
    shown = json.loads(out)
    assert shown["coverage"] == 4 / 16
    assert "25.0% of the words of the sources have a translation" in err
    assert [each["modification"] for each in shown["preferences"]] == [
        "random order",
        "word by word",
        files["own"],
    ]
    scorer = load_scorer("xmoverscore", preset=str(tiny_preset), lang_pair="de-en")
    plain = scorer.score(REFERENCES, sources=SOURCES).segments
    modified = [
        [random_order(text, 1) for text in REFERENCES],
        ["the house is small", *SOURCES[1:]],
        [f"{text} there" for text in REFERENCES],
    ]
    for texts, each in zip(modified, shown["preferences"], strict=True):
        expected = scorer.score(texts, sources=SOURCES).segments - plain
        assert each["differences"] == pytest.approx(expected, abs=2e-6)
        assert each["preferred"] == sum(d > 1e-6 for d in expected) / 4
    assert shown["preferences"][1]["differences"][0] == 0.0
    assert shown["signature"] == scorer.signature
    assert shown["report"]["segments"] == 16


def test_words_of_parallel_text_translate_too(probe, files, tiny_encoder, monkeypatch):
    asked = []

    def align(pairs, aligner, languages, *, wrap):
        asked.append((pairs[0], aligner.name))
        return [("das", "the"), ("das", "that"), ("das", "that"), ("ist", "is")]

    monkeypatch.setattr("mtmetrics.cli.probe.words_from_sentences", align)
    words = ("--parallel", files["parallel.jsonl"], "--aligner", str(tiny_encoder))
    mined, both = (
        json.loads(probe("preference", files["rows.tsv"], *words, *more)[1])
        for more in ([], ["--word-pairs", files["words.tsv"]])
    )
    assert (mined["coverage"], both["coverage"]) == (2 / 16, 4 / 16)
    assert asked[0] == ((SOURCES[0].split(), REFERENCES[0].split()), str(tiny_encoder))


def test_robustness(probe, files):
    code, out, _ = probe("robustness", files["rows.tsv"], "--parts")
    assert code == 0
    shown = json.loads(out)
    assert (shown["sentences"], shown["report"]["segments"]) == (
        4,
        4 * (1 + len({c["change"] for c in shown["changes"]})),
    )
    assert {change["measure"] for change in shown["changes"]} == {"score", "mover", "lm"}
    assert {"another word", "a word less", "negation"} <= {
        change["change"] for change in shown["changes"]
    }
    table = probe("robustness", files["rows.tsv"], "--format", "table")[1]
    assert "95 % interval" in table
    assert shown["signature"] in table


def test_ways_in_are_the_same_and_repeated_rows_count_once(probe, files):
    expected = probe("preference", "-s", files["src"], "-r", files["ref"])[1]
    for name in ("rows.tsv", "judged.jsonl", "parallel.jsonl"):
        assert probe("preference", files[name])[1] == expected


@pytest.mark.parametrize(
    ("argv", "head"),
    [
        (["preference"], "| modification | measure | n | "),
        (["matching", "--at", "2", "1"], "| measure | P@1 | P@2 |"),
    ],
)
def test_parts_tables_and_drawing(probe, files, tmp_path, argv, head):
    plot = tmp_path / "p.png"
    code, out, _ = probe(
        argv[0], files["rows.tsv"], *argv[1:], "--parts", "--format", "markdown", "--plot", plot
    )
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith(head)
    column = lines[0].split(" | ").index("measure") if argv == ["preference"] else 0
    assert [line.split(" | ")[column].removeprefix("| ") for line in lines[2:]] == [
        "score",
        "mover",
        "lm",
    ]
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_matching(probe, files, tiny_encoder):
    code, out, _ = probe("matching", files["judged.jsonl"], "--candidates", "3", "--at", "1", "2")
    shown = json.loads(out)
    assert code == 0
    assert (
        shown["sentences"],
        shown["candidates"],
        shown["nearest"],
        shown["report"]["segments"],
    ) == (4, 3, None, 12)
    assert list(shown["precision"]) == ["score"]
    assert 0 <= shown["precision"]["score"]["1"] <= shown["precision"]["score"]["2"] <= 1
    by_vectors = ["--nearest", str(tiny_encoder)]
    few, drawn, nearest = (
        json.loads(probe("matching", files["rows.tsv"], "--at", "1", *more)[1])
        for more in (["--candidates", "3", *by_vectors], [], by_vectors)
    )
    assert few["nearest"] == str(tiny_encoder)
    assert drawn["precision"] == nearest["precision"]


def test_fewer_sentences_than_asked_are_named(probe, files):
    code, out, err = probe("preference", files["rows.tsv"], "--sentences", "500")
    count = json.loads(out)["sentences"]
    assert (code, f"--sentences 500: the text has only {count} sentence pairs" in err) == (0, True)


def test_sentences_are_drawn_by_seed_and_baselines_have_no_preset(probe, files):
    one, same, other = (
        json.loads(probe("preference", files["rows.tsv"], "--sentences", "2", "--seed", seed)[1])
        for seed in ("1", "1", "4")
    )
    assert len(one["preferences"][0]["differences"]) == 2
    assert one == same != other
    code, out, _ = probe("matching", files["rows.tsv"], "--metric", "chrf", "--at", "1")
    assert (code, json.loads(out)["preset"]) == (0, None)
    assert json.loads(out)["signature"].startswith("chrf|nrefs:1|")


def test_tables_with_a_header_and_quotes_are_read(probe, files, tmp_path):
    expected = json.loads(probe("matching", files["rows.tsv"], "--at", "1")[1])
    rows = list(enumerate(zip(SOURCES, REFERENCES, strict=True)))
    contents = {
        "headed.tsv": "id\tsource\ttranslation\n"
        + "".join(f"{n}\t{s}\t{r}\n" for n, (s, r) in rows)
        + "\n",
        "quoted.tsv": '"ref"\t"src"\n' + "".join(f'"{r}"\t"{s}"\n' for _, (s, r) in rows),
        "rows.csv": "mt,reference,source\n" + "".join(f"x,{r},{s}\n" for _, (s, r) in rows),
        "rows.jsonl": "".join(json.dumps({"src": s, "mt": r}) + "\n" for _, (s, r) in rows),
    }
    for name, text in contents.items():
        assert (
            json.loads(probe("matching", write(tmp_path / name, text), "--at", "1")[1]) == expected
        )
    ragged = write(tmp_path / "ragged.tsv", "das haus\tthe house\nder hund\tthe\tdog\n")
    refused(probe("matching", ragged), "ragged.tsv, line 2: 3 column(s), but line 1 has 2")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["preference"], "pass either one FILE or -s SOURCES and -r REFERENCES"),
        (["preference", "rows.tsv", "-r", "ref"], "pass either one FILE or -s"),
        (["preference", "rows.tsv", "-t", "own"], "(-t needs the latter)"),
        (["preference", "empty"], "empty; there are no sentence pairs"),
        (["preference", "none.tsv"], "none.tsv: no such file"),
        (["preference", "words.tsv", "--word-pairs", "empty"], "empty; there are no word pairs"),
        (["preference", "rows.tsv", "--metric", "chrf"], "use a reference-free one"),
        (["preference", "rows.tsv", "--sentences", "0"], "--sentences 0"),
        (["preference", "rows.tsv", "--plot", "plot.gif"], "must end in .png, .svg, .pdf"),
        (["matching", "rows.tsv", "--plot", "no/plot.png"], "there is no folder no"),
        (["matching", "rows.tsv", "--sentences", "1", "--at", "1"], "cutoff 1: among 1 candidates"),
        (["matching", "rows.tsv", "--candidates", "0"], "candidates 0"),
        (["matching", "-s", "src", "-r", "empty"], "empty ends after 0 lines"),
    ],
)
def test_bad_input_ends_in_one_line(probe, files, argv, message):
    refused(probe(*(files.get(word, word) for word in argv)), message)
