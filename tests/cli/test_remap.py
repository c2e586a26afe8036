"""``mtmetrics train maps``: what it writes is what it should have fitted, and what it refuses."""

import functools
import json
from pathlib import Path

import numpy as np
import pytest
from helpers import refused, write

from mtmetrics.errors import ArtifactError
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import load_map
from mtmetrics.mining.word_level import vectors_from_sentences, vectors_from_words
from mtmetrics.models.token_encoder import TokenEncoder

PAIRS = [("das haus ist klein", "the house is small"), ("ich sehe die katze", "i see the cat")]
PAIRS = [*PAIRS, ("der hund schläft", "the dog sleeps")] * 9


@pytest.fixture
def parallel(tmp_path: Path) -> str:
    rows = (
        f"{source} {number}\t{target} {number}\n" for number, (source, target) in enumerate(PAIRS)
    )
    return str(write(tmp_path / "pairs.tsv", "".join(rows)))


@pytest.fixture
def call(
    tiny_encoder: Path, parallel: str, tmp_path: Path, mtmetrics, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    return functools.partial(mtmetrics, "train", "maps", "--encoder", tiny_encoder, "--lp", "de-en")


def test_half_writes_the_numbers_that_it_names_in_half_the_size(call):
    options = ["--parallel", "pairs.tsv", "--map", "clp"]
    assert call(*options, "--out", "whole")[0] == 0
    code, out, _ = call(*options, "--out", "half", "--half")
    whole, half = (Path(folder, "de-en.clp.safetensors") for folder in ("whole", "half"))
    assert code == 0
    assert half.stat().st_size < whole.stat().st_size
    loaded = Remapping.load(half)
    assert json.loads(out)[0]["fingerprint"] == loaded.fingerprint
    np.testing.assert_allclose(loaded.source[0], Remapping.load(whole).source[0], atol=1e-3)


def test_maps_from_parallel_text(call, tiny_encoder):
    options = ["--layer", "2", "--align-layer", "1", "--map", "clp", "umd+clp"]
    code, out, _ = call("--parallel", "pairs.tsv", "--out", "maps", *options)
    assert (code, sorted(path.name for path in Path("maps").iterdir())) == (
        0,
        ["de-en.clp.safetensors", "de-en.umd+clp.safetensors"],
    )
    encoder, aligner = TokenEncoder(tiny_encoder, layer=2), TokenEncoder(tiny_encoder, layer=1)
    rows = [
        (f"{source} {number}", f"{target} {number}")
        for number, (source, target) in enumerate(PAIRS)
    ]
    source, target = vectors_from_sentences(rows, encoder, aligner)
    loaded = load_map("maps", "de-en", "clp", encoder)
    assert loaded.apply(source) == pytest.approx(
        Remapping.fit("clp", source, target).apply(source), abs=1e-3
    )
    assert json.loads(out)[0]["pairs"] == len(source) == int(loaded.meta["pairs"])
    assert (loaded.meta["corpus"], loaded.meta["sentences"]) == ("pairs.tsv", str(len(rows)))
    with pytest.raises(ArtifactError, match="layer 2, but the encoder in use is .* layer 1"):
        load_map("maps", "de-en", "clp", aligner)
    # They are kept unless something else is asked for.
    again = ("--parallel", "pairs.tsv", "--out", "maps")
    refused(call(*again), "de-en.clp.safetensors exists already; pass --overwrite")
    assert call(*again, "--overwrite")[0] == 0


def test_maps_of_sentences(call, tiny_encoder):
    assert call("--parallel", "pairs.tsv", "--level", "sentence", "--out", "maps")[0] == 0
    names = [f"de-en.sentence-{kind}.safetensors" for kind in ("clp", "umd")]
    assert sorted(path.name for path in Path("maps").iterdir()) == names
    encoder = TokenEncoder(tiny_encoder)
    rows = [[f"{pair[side]} {number}" for number, pair in enumerate(PAIRS)] for side in (0, 1)]
    source, target = ((tokens := encoder.encode(texts)).means()[tokens.index] for texts in rows)
    loaded = load_map("maps", "de-en", "umd", encoder, level="sentence")
    assert abs(loaded.source[0] @ Remapping.fit("umd", source, target).source[0]) == pytest.approx(
        1, abs=1e-4
    )
    assert loaded.meta["pairs"] == str(len(PAIRS))
    with pytest.raises(ArtifactError, match="no clp map"):
        load_map("maps", "de-en", "clp", encoder)


def test_maps_from_given_words(call, tiny_encoder):
    pairs = [("haus", "house"), ("hund", "dog"), ("katze", "cat"), ("\u200d", "nothing")]
    for count, problem in (
        (1, "1 pair(s) of vectors determine no map"),
        (2, "2 pairs of vectors for an encoder of"),
    ):
        write(
            Path("words.tsv"), "".join(f"{source}\t{target}\n" for source, target in pairs[:count])
        )
        code, _, err = call("--word-pairs", "words.tsv", "--map", "clp", "--out", "few")
        assert (code, problem in err) == (2 if count == 1 else 0, True)
    write(Path("words.tsv"), "".join(f"{source}\t{target}\n" for source, target in pairs))
    assert call("--word-pairs", "words.tsv", "--map", "umd", "--out", "maps")[0] == 0
    encoder = TokenEncoder(tiny_encoder)
    source, target = vectors_from_words(pairs, encoder)
    assert len(source) == 3
    loaded = load_map("maps", "de-en", "umd", encoder)
    assert abs(loaded.source[0] @ Remapping.fit("umd", source, target).source[0]) == pytest.approx(
        1, abs=1e-4
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--parallel", "none.tsv", "--out", "out"], "none.tsv: no such file"),
        (["--parallel", "none.tsv", "--out", "out/of/reach"], "none.tsv: no such file"),
        (["--parallel", "pairs.tsv", "--out", "out", "--map", "bam"], "--map 'bam'"),
        (["--parallel", "pairs.tsv", "--out", "out", "--sentences", "0"], "--sentences 0"),
        (["--parallel", "pairs.tsv", "--out", "out", "--layer", "9"], "layer 9"),
        (["--word-pairs", "empty.tsv", "--out", "out"], "empty; there are no word pairs"),
        (
            ["--word-pairs", "blank.tsv", "--out", "out"],
            "blank.tsv, line 2: a word and its translation are needed",
        ),
        (
            ["--word-pairs", "empty.tsv", "--out", "out", "--level", "sentence"],
            "--level sentence needs --parallel",
        ),
        (
            ["--word-pairs", "blank.tsv", "--out", "out", "--sentences", "5"],
            "--sentences has no effect with --word-pairs; leave it out",
        ),
        (
            ["--word-pairs", "blank.tsv", "--out", "out", "--exclude-origin", "wiki*"],
            "--exclude-origin has no effect with --word-pairs; leave it out",
        ),
        (
            ["--word-pairs", "blank.tsv", "--out", "out", "--align-layer", "0"],
            "--align-layer has no effect with --word-pairs; leave it out",
        ),
        (
            ["--word-pairs", "blank.tsv", "--out", "out", "--threshold", "0"],
            "--threshold has no effect with --word-pairs; leave it out",
        ),
        (
            ["--parallel", "pairs.tsv", "--out", "out", "--level=sentence", "--align-layer=1"],
            "--align-layer has no effect with --level sentence; leave it out",
        ),
        (
            ["--parallel", "pairs.tsv", "--out", "out", "--level=sentence", "--threshold=0.001"],
            "--threshold has no effect with --level sentence; leave it out",
        ),
    ],
)
def test_refusals_write_nothing(call, argv, message):
    Path("empty.tsv").write_text("")
    Path("blank.tsv").write_text("haus\thouse\nhund\t \n")
    refused(call(*argv), message)
    assert not Path("out").exists()


def test_a_folder_that_cannot_be_made(call):
    refused(
        call("--parallel", "pairs.tsv", "--out", "pairs.tsv/maps"),
        "cannot make the folder pairs.tsv/maps",
        1,
    )


def test_maps_keep_the_name_of_their_pair_and_are_found_by_its_languages(call, tiny_encoder):
    assert (
        call(
            "--lp", "deu_Latn-eng_Latn", "--parallel", "pairs.tsv", "--map", "clp", "--out", "maps"
        )[0]
        == 0
    )
    assert [path.name for path in Path("maps").iterdir()] == ["deu_Latn-eng_Latn.clp.safetensors"]
    encoder = TokenEncoder(tiny_encoder)
    fingerprints = {
        load_map("maps", pair, "clp", encoder).fingerprint
        for pair in ("deu_Latn-eng_Latn", "de-en")
    }
    assert len(fingerprints) == 1
    with pytest.raises(ArtifactError, match="no clp map for language pair fr-en"):
        load_map("maps", "fr-en", "clp", encoder)


def test_fewer_sentences_than_asked_are_named(call):
    code, out, err = call(
        "--parallel", "pairs.tsv", "--out", "all", "--map", "clp", "--sentences", "50"
    )
    assert (code, json.loads(out)[0]["sentences"]) == (0, 27)
    assert "--sentences 50: the text has only 27 sentence pairs; all of them are taken" in err
    _, out, err = call(
        "--parallel", "pairs.tsv", "--out", "some", "--map", "clp", "--sentences", "20"
    )
    assert json.loads(out)[0]["sentences"] == 20
    assert "--sentences" not in err
    assert "--sentences" not in call("--parallel", "pairs.tsv", "--out", "usual", "--map", "clp")[2]
