"""``mtmetrics mine``: pairs and counts that it prints, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

from mtmetrics.cli.main import main
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import map_file_name, map_meta
from mtmetrics.mining.sides import encode_side
from mtmetrics.mining.word_level import mine_words
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.training.corpus import read_pairs

GERMAN = ["der hund schläft nicht in dem haus", "ich sehe die katze auf dem baum"]
GERMAN += ["das haus ist heute sehr groß", "ein baum steht dort bei dem haus"]
ENGLISH = ["the dog does not sleep in the house", "i can see the cat on the tree"]
ENGLISH += ["the house is very large today", "a tree is standing there by the house"]


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "de.txt", tmp_path / "en.txt"]
    for path, lines in zip(paths, (GERMAN, ENGLISH), strict=True):
        path.write_text("\n".join([*lines, lines[0], "", "1 2", ""]), encoding="utf-8")
    return ["--source-text", str(paths[0]), "--target-text", str(paths[1])]


def call(encoder: Path, texts: list[str], out: Path, *argv: str) -> int:
    return main(
        ["mine", "--lp", "de-en", "--encoder", str(encoder), "--out", str(out), *texts, *argv]
    )


def test_words_with_a_map(tiny_encoder, texts, tmp_path, capsys):
    encoder, maps = TokenEncoder(tiny_encoder), tmp_path / "maps"
    maps.mkdir()
    remapping = Remapping.fit(
        "umd", *np.random.default_rng(0).normal(size=(2, 30, 16)), map_meta(encoder, "de-en")
    )
    remapping.save(maps / map_file_name("de-en", "umd"))
    out = tmp_path / "pairs.jsonl"
    assert call(tiny_encoder, texts, out, "--share", "1", "--map", "umd", "--maps", str(maps)) == 0
    printed = json.loads(capsys.readouterr().out)
    removed = {"blank": 1, "repeated": 1, "too few tokens": 1}
    assert printed["source"] == printed["source"] | removed | {"lines": 7, "kept": 4, "drawn": 4}
    expected = mine_words(
        encode_side(GERMAN, encoder), encode_side(ENGLISH, encoder), remapping, share=1.0
    )
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["score"] for row in rows] == pytest.approx(expected.scores.tolist(), abs=1e-6)
    read, _ = read_pairs([out])
    assert [(pair.source, pair.target, pair.origin) for pair in read] == [
        (*pair, "mined") for pair in expected.pairs()
    ]
    assert printed["mined"] == expected.counts


def test_sentences_of_prepared_text(tiny_encoder, texts, tmp_path, capsys):
    out = tmp_path / "pairs.jsonl"
    assert (
        call(
            tiny_encoder,
            texts,
            out,
            "--level",
            "sentence",
            "--prepared",
            "--limit",
            "2",
            "--sentences",
            "6",
        )
        == 0
    )
    printed = json.loads(capsys.readouterr().out)
    assert printed["source"] == {"drawn": 6}
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--lp", "de-de"], "--lp de-de: two different languages are needed"),
        (["--lp", "en-de"], "de.txt: 4 of 4 sentences are 'de' according to py3langid, not 'en'"),
        (["--map", "umd"], "--map KIND and --maps PATH|NAME belong together"),
        (["--maps", "somewhere"], "--map KIND and --maps PATH|NAME belong together"),
        (["--limit", "5"], "--limit has no effect with --level word"),
        (["--level", "sentence", "--share", "0.5"], "--share has no effect with --level sentence"),
        (["--level", "sentence", "--map", "umd"], "--map has no effect with --level sentence"),
        (["--map", "bam", "--maps", "somewhere"], "--map 'bam'"),
        (["--prepared", "--source-text", "EMPTY"], "empty.txt: empty; there are no sentences"),
        (["--sentences", "0"], "--sentences 0"),
        (["--k", "0"], "--k 0"),
        (["--memory", "1G"], "'1G': give at least 2G"),
        (["--memory", "much"], "'much': give at least 2G"),
        (["--memory", "4G", "--engine", "ray"], "--memory has no effect with --engine"),
        (["--cpus-per-worker", "2"], "--cpus-per-worker has no effect without --engine"),
        (["--engine", "ray", "--device", "cuda"], "--engine ray gives each worker its device"),
        (["--share", "2"], "--share 2.0: must be above 0 and at most 1"),
        (
            ["--source-text", "-", "--target-text", "-"],
            "--source-text and --target-text: both are -",
        ),
        (["--encoder", "none"], "none"),
        (["--source-text", "none.txt"], "none.txt: no such file"),
        (["--out", "none/pairs.jsonl"], "--out none/pairs.jsonl: there is no folder none"),
    ],
)
def test_refusals(tiny_encoder, texts, tmp_path, capsys, argv, message):
    out, empty = tmp_path / "pairs.jsonl", tmp_path / "empty.txt"
    empty.write_text("\n")
    assert call(
        tiny_encoder, texts, out, *(str(empty) if word == "EMPTY" else word for word in argv)
    ) in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()
