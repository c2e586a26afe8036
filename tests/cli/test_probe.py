"""``mtmetrics probe`` in process: both probes, ways in, formats, plots, errors."""

import json
from pathlib import Path

import pytest

from mtmetrics.cli.main import main
from mtmetrics.evaluation.probes import random_order
from mtmetrics.scorers.registry import load_scorer

SOURCES = ["das haus ist klein", "der hund schläft nicht", "ich sehe die katze", "ein baum steht dort"]
REFERENCES = ["the house is small", "the dog sleeps not", "i see the cat", "a tree stands there"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    rows = list(zip(SOURCES, REFERENCES, strict=True))
    contents = {
        "src": "".join(f"{source}\n" for source in SOURCES),
        "ref": "".join(f"{reference}\n" for reference in REFERENCES),
        "own": "".join(f"{reference} there\n" for reference in REFERENCES),
        "rows.tsv": "".join(f"{source}\t{reference}\n" for source, reference in rows),
        "judged.jsonl": "".join(
            json.dumps({"source": s, "reference": r, "human": n}) + "\n" for s, r in rows for n in (1, 2)
        ),
        "parallel.jsonl": "".join(json.dumps({"source": s, "target": r, "origin": "x"}) + "\n" for s, r in rows),
        "words.tsv": "das\tthe\nhaus\thouse\nist\tis\nklein\tsmall\n",
        "empty": "",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: str(tmp_path / name) for name in contents}


@pytest.fixture
def probe(tiny_preset: Path, capsys: pytest.CaptureFixture[str]):
    def run(*argv: str) -> tuple[int, str, str]:
        code = main(["probe", *argv, "--preset", str(tiny_preset), "--lp", "de-en", "--device", "cpu"])
        output = capsys.readouterr()
        return code, output.out, output.err

    return run


def test_preference(probe, files, tiny_preset):
    code, out, err = probe(
        "preference", "-s", files["src"], "-r", files["ref"], "-t", files["own"], "--word-pairs", files["words.tsv"]
    )
    assert code == 0
    shown = json.loads(out)
    assert shown["coverage"] == 4 / 16
    assert "25.0% of the words of the sources have a translation" in err
    assert [each["modification"] for each in shown["preferences"]] == ["random order", "word by word", files["own"]]
    scorer = load_scorer("xmoverscore", preset=str(tiny_preset), lang_pair="de-en")
    plain = scorer.score(SOURCES, REFERENCES).segments
    modified = [
        [random_order(text, 1) for text in REFERENCES],
        ["the house is small", *SOURCES[1:]],
        [f"{text} there" for text in REFERENCES],
    ]
    for texts, each in zip(modified, shown["preferences"], strict=True):
        expected = scorer.score(SOURCES, texts).segments - plain
        assert each["differences"] == pytest.approx(expected, abs=2e-6)
        assert each["preferred"] == sum(d > 1e-6 for d in expected) / 4
    assert shown["preferences"][1]["differences"][0] == 0.0
    assert shown["signature"] == scorer.signature
    assert shown["report"]["segments"] == 16


def test_words_of_parallel_text_translate_too(probe, files, tiny_encoder, monkeypatch):
    asked = []

    def align(pairs, aligner, *, wrap):
        asked.append((pairs[0], aligner.name))
        return [("das", "the"), ("das", "that"), ("das", "that"), ("ist", "is")]

    monkeypatch.setattr("mtmetrics.mining.words.words_from_sentences", align)
    words = ("--parallel", files["parallel.jsonl"], "--aligner", str(tiny_encoder))
    mined, both = (
        json.loads(probe("preference", files["rows.tsv"], *words, *more)[1])
        for more in ([], ["--word-pairs", files["words.tsv"]])
    )
    assert (mined["coverage"], both["coverage"]) == (2 / 16, 4 / 16)
    assert asked[0] == ((SOURCES[0].split(), REFERENCES[0].split()), str(tiny_encoder))


def test_ways_in_are_the_same_and_repeated_rows_count_once(probe, files):
    expected = probe("preference", "-s", files["src"], "-r", files["ref"])[1]
    for name in ("rows.tsv", "judged.jsonl", "parallel.jsonl"):
        assert probe("preference", files[name])[1] == expected


def test_parts_tables_and_drawing(probe, files, tmp_path):
    code, out, _ = probe(
        "preference", files["rows.tsv"], "--parts", "--format", "markdown", "--plot", str(tmp_path / "p.png")
    )
    assert code == 0
    assert [line.split(" | ")[1] for line in out.splitlines()[2:]] == ["score", "mover", "lm"]
    options = ["--parts", "--format", "markdown", "--plot", str(tmp_path / "m.png")]
    code, out, _ = probe("matching", files["rows.tsv"], "--at", "2", "1", *options)
    assert code == 0
    assert out.splitlines()[0] == "| measure | P@1 | P@2 |"
    assert [line.split(" | ")[0] for line in out.splitlines()[2:]] == ["| score", "| mover", "| lm"]
    for name in ("p.png", "m.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_matching(probe, files, tiny_encoder):
    code, out, _ = probe("matching", files["judged.jsonl"], "--candidates", "3", "--at", "1", "2")
    shown = json.loads(out)
    assert code == 0
    assert (shown["sentences"], shown["candidates"], shown["nearest"], shown["report"]["segments"]) == (4, 3, None, 12)
    assert list(shown["precision"]) == ["score"]
    assert 0 <= shown["precision"]["score"]["1"] <= shown["precision"]["score"]["2"] <= 1
    nearest = json.loads(
        probe("matching", files["rows.tsv"], "--candidates", "3", "--at", "1", "--nearest", str(tiny_encoder))[1]
    )
    assert nearest["nearest"] == str(tiny_encoder)
    everything = [
        json.loads(probe("matching", files["rows.tsv"], "--at", "1", *more)[1])
        for more in ([], ["--nearest", str(tiny_encoder)])
    ]
    assert everything[0]["precision"] == everything[1]["precision"]


def test_sentences_are_drawn_by_seed(probe, files):
    one, same, other = (
        json.loads(probe("preference", files["rows.tsv"], "--sentences", "2", "--seed", seed)[1])["preferences"]
        for seed in ("1", "1", "4")
    )
    assert len(one[0]["differences"]) == 2
    assert one == same != other


def test_baselines_match_too_and_have_no_preset(probe, files):
    code, out, _ = probe("matching", files["rows.tsv"], "--metric", "chrf", "--at", "1")
    assert code == 0
    assert json.loads(out)["preset"] is None
    assert json.loads(out)["signature"].startswith("chrf|nrefs:1|")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["preference"], "pass either one FILE or -s SOURCES and -r REFERENCES"),
        (["preference", "rows.tsv", "-r", "ref"], "pass either one FILE or -s"),
        (["preference", "rows.tsv", "-t", "own"], "(-t needs the latter)"),
        (["preference", "-s", "src"], "pass either one FILE or -s"),
        (["preference", "empty"], "empty; there are no sentence pairs"),
        (["preference", "none.tsv"], "none.tsv: no such file"),
        (["preference", "words.tsv", "--word-pairs", "empty"], "empty; there are no word pairs"),
        (["preference", "rows.tsv", "--metric", "chrf"], "use a reference-free one"),
        (["preference", "rows.tsv", "--metric", "bleurt"], "metric 'bleurt'"),
        (["preference", "rows.tsv", "--sentences", "0"], "--sentences 0"),
        (["preference", "rows.tsv", "--plot", "plot.pdf"], "must end in .png"),
        (["matching", "rows.tsv", "--plot", "no/plot.png"], "there is no folder no"),
        (["matching", "rows.tsv", "--sentences", "1", "--at", "1"], "cutoff 1: among 1 candidates"),
        (["matching", "rows.tsv"], "cutoff 5: among 4 candidates"),
        (["matching", "rows.tsv", "--candidates", "0"], "candidates 0"),
        (["matching", "-s", "src", "-r", "empty"], "empty ends after 0 lines"),
    ],
)
def test_bad_input_ends_in_one_line(probe, files, argv, message):
    code, out, err = probe(*(files.get(word, word) for word in argv))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("argv", [[], ["preference", "--format", "tsv"], ["guess"]])
def test_bad_usage(argv, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["probe", *argv])
    assert stopped.value.code == 2
