"""``mtmetrics remap``: what it writes is what it should have fitted, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

from mtmetrics.cli.main import main
from mtmetrics.errors import ArtifactError
from mtmetrics.maps.files import load_map
from mtmetrics.maps.remapping import Remapping
from mtmetrics.mining.words import vectors_from_sentences, vectors_from_words
from mtmetrics.models.token_encoder import TokenEncoder

PAIRS = [("das haus ist klein", "the house is small"), ("ich sehe die katze", "i see the cat")]
PAIRS = [*PAIRS, ("der hund schläft", "the dog sleeps")] * 9


@pytest.fixture
def parallel(tmp_path: Path) -> str:
    path = tmp_path / "pairs.tsv"
    rows = (f"{source} {number}\t{target} {number}\n" for number, (source, target) in enumerate(PAIRS))
    path.write_text("".join(rows), encoding="utf-8")
    return str(path)


def call(encoder: Path, *argv: str) -> int:
    return main(["remap", "--encoder", str(encoder), "--lp", "de-en", *argv])


def test_maps_from_parallel_text(tiny_encoder, parallel, tmp_path, capsys):
    out = tmp_path / "maps"
    options = ["--layer", "2", "--align-layer", "1", "--map", "clp", "umd+clp"]
    assert call(tiny_encoder, "--parallel", parallel, "--out", str(out), *options) == 0
    printed = json.loads(capsys.readouterr().out)
    assert sorted(path.name for path in out.iterdir()) == ["de-en.clp.safetensors", "de-en.umd+clp.safetensors"]
    encoder, aligner = TokenEncoder(tiny_encoder, layer=2), TokenEncoder(tiny_encoder, layer=1)
    rows = [(f"{source} {number}", f"{target} {number}") for number, (source, target) in enumerate(PAIRS)]
    source, target, _ = vectors_from_sentences(rows, encoder, aligner)
    loaded = load_map(out, "de-en", "clp", encoder)
    assert loaded.apply(source) == pytest.approx(Remapping.fit("clp", source, target).apply(source), abs=1e-3)
    assert printed[0]["pairs"] == len(source) == int(loaded.meta["pairs"])
    assert loaded.meta["corpus"].endswith("pairs.tsv")
    assert loaded.meta["sentences"] == str(len(rows))
    with pytest.raises(ArtifactError, match="layer 2, but the encoder in use is .* layer 1"):
        load_map(out, "de-en", "clp", aligner)


def test_maps_of_sentences(tiny_encoder, parallel, tmp_path, capsys):
    out = tmp_path / "maps"
    assert call(tiny_encoder, "--parallel", parallel, "--level", "sentence", "--out", str(out)) == 0
    names = [f"de-en.sentence-{kind}.safetensors" for kind in ("clp", "umd")]
    assert sorted(path.name for path in out.iterdir()) == names
    encoder = TokenEncoder(tiny_encoder)
    rows = [[f"{pair[side]} {number}" for number, pair in enumerate(PAIRS)] for side in (0, 1)]
    source, target = ((tokens := encoder.encode(texts)).means()[tokens.index] for texts in rows)
    loaded = load_map(out, "de-en", "umd", encoder, level="sentence")
    assert abs(loaded.source[0] @ Remapping.fit("umd", source, target).source[0]) == pytest.approx(1, abs=1e-4)
    assert loaded.meta["pairs"] == str(len(PAIRS))
    with pytest.raises(ArtifactError, match="no clp map"):
        load_map(out, "de-en", "clp", encoder)
    words = tmp_path / "words.tsv"
    words.write_text("haus\thouse\n")
    assert call(tiny_encoder, "--word-pairs", str(words), "--level", "sentence", "--out", str(out)) == 2
    assert "--level sentence needs --parallel" in capsys.readouterr().err


def test_maps_from_given_words(tiny_encoder, tmp_path):
    words = tmp_path / "words.tsv"
    words.write_text("haus\thouse\nhund\tdog\nkatze\tcat\n\tnothing\n")
    assert call(tiny_encoder, "--word-pairs", str(words), "--map", "umd", "--out", str(tmp_path / "maps")) == 0
    encoder = TokenEncoder(tiny_encoder)
    pairs = [("haus", "house"), ("hund", "dog"), ("katze", "cat"), ("", "nothing")]
    source, target, kept = vectors_from_words(pairs, encoder)
    assert kept.tolist() == [0, 1, 2]
    assert source[1] == pytest.approx(encoder.encode(["hund"]).vectors[1], abs=1e-6)
    loaded = load_map(tmp_path / "maps", "de-en", "umd", encoder)
    assert abs(loaded.source[0] @ Remapping.fit("umd", source, target).source[0]) == pytest.approx(1, abs=1e-4)


def test_too_few_pairs_are_refused_or_named(tiny_encoder, tmp_path, capsys):
    words, out = tmp_path / "words.tsv", str(tmp_path / "maps")
    words.write_text("haus\thouse\n")
    assert call(tiny_encoder, "--word-pairs", str(words), "--map", "clp", "--out", out) == 2
    assert "1 pair(s) of vectors determine no map" in capsys.readouterr().err
    words.write_text("haus\thouse\nhund\tdog\n")
    assert call(tiny_encoder, "--word-pairs", str(words), "--map", "clp", "--out", out) == 0
    assert "2 pairs of vectors for an encoder of width 16: fewer pairs than dimensions" in capsys.readouterr().err


def test_curve_prints_one_row_per_map_and_size(tiny_encoder, parallel, tmp_path, capsys):
    preset = tmp_path / "preset"
    preset.mkdir()
    (preset / "preset.toml").write_text(f'[encoder]\nmodel = "{tiny_encoder}"\n')
    data = tmp_path / "judged.jsonl"
    rows = [{"lp": "de-en", "source": s, "translation": t, "human": float(i)} for i, (s, t) in enumerate(PAIRS[:3])]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--curve", "10,20", "--data", str(data), "--preset", str(preset)]
    assert call(tiny_encoder, "--parallel", parallel, *options) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [" ".join(line[:2]) for line in lines[1:]] == ["none 0", "clp 10", "umd 10", "clp 20", "umd 20"]
    values = np.array([float(line[3]) for line in lines[1:]])
    assert (abs(values) <= 1).all()
    assert values[1] != values[0]


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["--parallel", "PAIRS"], 2, "--out DIR is needed"),
        (["--parallel", "none.tsv", "--out", "OUT"], 2, "none.tsv: no such file"),
        (["--parallel", "PAIRS", "--out", "OUT", "--map", "bam"], 2, "--map 'bam'"),
        (["--parallel", "PAIRS", "--out", "OUT", "--sentences", "0"], 2, "--sentences 0"),
        (["--parallel", "PAIRS", "--out", "OUT", "--layer", "9"], 2, "layer 9"),
        (["--parallel", "PAIRS", "--curve", "5"], 2, "--curve needs --parallel FILE and --data FILE"),
        (["--parallel", "PAIRS", "--curve", "five", "--data", "x"], 2, "--curve 'five'"),
        (["--parallel", "PAIRS", "--curve", "99", "--data", "x"], 2, "99 sentence pairs asked for, the files hold 27"),
        (["--parallel", "PAIRS", "--out", "PAIRS/maps"], 2, "cannot be made"),
        (["--word-pairs", "EMPTY", "--out", "OUT"], 2, "empty; there are no word pairs"),
    ],
)
def test_refusals_write_nothing(tiny_encoder, parallel, tmp_path, capsys, argv, code, message):
    (tmp_path / "empty.tsv").write_text("")
    out, empty = str(tmp_path / "out"), str(tmp_path / "empty.tsv")
    places = {"PAIRS": parallel, "PAIRS/maps": f"{parallel}/maps", "OUT": out, "EMPTY": empty}
    assert call(tiny_encoder, *(places.get(word, word) for word in argv)) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.glob("out/*"))


def test_an_existing_map_is_kept_unless_asked(tiny_encoder, parallel, tmp_path, capsys):
    out = str(tmp_path / "maps")
    assert call(tiny_encoder, "--parallel", parallel, "--out", out) == 0
    assert call(tiny_encoder, "--parallel", parallel, "--out", out) == 2
    assert "exists already; pass --overwrite" in capsys.readouterr().err
    assert call(tiny_encoder, "--parallel", parallel, "--out", out, "--overwrite") == 0
