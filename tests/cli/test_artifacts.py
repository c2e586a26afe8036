"""``mtmetrics artifacts`` on a small catalog of tiny models, and of published maps on a loopback
server."""

import functools
import json
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import refused, write

from mtmetrics.errors import ArtifactError
from mtmetrics.io.checksums import git_blob_sha1
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import load_map
from mtmetrics.models.token_encoder import TokenEncoder


def test_list(mtmetrics, bundle):
    code, out, err = mtmetrics("artifacts", "list", "--format", "json")
    assert (code, err) == (0, "")
    rows = {row["name"]: row for row in json.loads(out)["artifacts"]}
    assert list(rows) == ["tiny-encoder", "tiny-lm", "tiny-maps", "big-maps"]
    size = sum(path.stat().st_size for path in (bundle / "tiny-lm").iterdir())
    place = {"repository": "org/tiny-lm", "revision": "v1.0.0", "origin": None, "mirror": None}
    about = {"name": "tiny-lm", "kind": "language-model", "bundled": True}
    assert rows["tiny-lm"] == place | about | {
        "files": len(list((bundle / "tiny-lm").iterdir())),
        "bytes": size,
    }
    assert rows["big-maps"]["bytes"] is None
    lines = mtmetrics("artifacts", "list")[1].splitlines()
    assert lines[0].split() == ["NAME", "KIND", "WHERE", "FILES", "MB"]
    assert lines[-1].split() == ["big-maps", "maps", "org/big-maps@v1.0.0", "1", "-"]


def test_verify_names_every_problem(mtmetrics, bundle):
    code, out, _ = mtmetrics("artifacts", "verify")
    assert (code, [line.split(":")[0] for line in out.splitlines()]) == (
        0,
        ["tiny-encoder", "tiny-lm", "tiny-maps"],
    )
    code, out, _ = mtmetrics("artifacts", "verify", "tiny-lm", "--format", "json")
    assert (code, json.loads(out)) == (0, {"whole": True, "problems": {"tiny-lm": []}})
    weights = bundle / "tiny-encoder" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    (bundle / "tiny-encoder" / "extra").write_text("")
    (bundle / "tiny-lm" / "config.json").unlink()
    code, out, _ = mtmetrics("artifacts", "verify")
    assert code == 1
    assert out.splitlines()[:3] == [
        "tiny-encoder/extra: not in the catalog",
        "tiny-encoder/model.safetensors: damaged, its sha256 is not the catalog's",
        "tiny-lm/config.json: missing",
    ]
    code, out, _ = mtmetrics("artifacts", "verify", "--format", "json")
    assert (code, json.loads(out)["whole"]) == (1, False)
    assert mtmetrics("artifacts", "verify", "tiny-maps")[0] == 0


def test_verify_folders_elsewhere(mtmetrics, bundle, tmp_path):
    pulled = tmp_path / "pulled"
    for name in ("tiny-lm", "tiny-maps"):
        shutil.copytree(bundle / name, pulled / name)
    (pulled / "something-else").mkdir()
    for name, expected in (("tiny-maps", 0), ("big-maps", 1)):
        assert (
            mtmetrics("artifacts", "verify", name, "--folder", pulled / "tiny-maps")[0] == expected
        )
    code, out, _ = mtmetrics("artifacts", "verify", pulled)
    assert (code, [line.split(":")[0] for line in out.splitlines()]) == (
        0,
        ["tiny-lm", "tiny-maps"],
    )
    (pulled / "tiny-lm" / "config.json").unlink()
    assert (
        mtmetrics("artifacts", "verify", pulled)[1]
        == f"tiny-lm/config.json: missing\n{out.splitlines()[1]}\n"
    )
    # The whole one must not stand for the other.
    for names in ((pulled, "tiny-lm"), ("tiny-lm", pulled)):
        refused(mtmetrics("artifacts", "verify", *names), "mtmetrics: tiny-lm: in two folders, ")
    message = "holds no folder that is named like an artifact; there are: tiny-encoder, "
    refused(mtmetrics("artifacts", "verify", pulled / "tiny-maps"), message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nope"],
            "unknown artifact 'nope'; there are: tiny-encoder, tiny-lm, tiny-maps, big-maps",
        ),
        (["big-maps"], "artifact 'big-maps' is not bundled; pass --folder DIR"),
        (["--folder", "."], "--folder holds one artifact; pass its NAME with it, got 0 names"),
        (["tiny-lm", "--folder", "nowhere"], "--folder nowhere: no such folder"),
    ],
)
def test_verify_bad_usage(mtmetrics, bundle, arguments, message):
    refused(mtmetrics("artifacts", "verify", *arguments), f"mtmetrics: {message}")


def test_a_catalog_that_cannot_be_read(mtmetrics, bundle):
    (bundle / "catalog.toml").write_text("[tiny-lm\n")
    refused(mtmetrics("artifacts", "list"), "catalog.toml: the artifact catalog cannot be read", 1)


NAME = "xmoverscore-published"


FILES = [
    f"layer-{layer}/{pair}.{kind}.safetensors"
    for layer, pair in ((3, "de-en"), (3, "en-ru"), (2, "de-en"))
    for kind in ("clp", "umd")
]


@pytest.fixture
def run(mtmetrics):
    return functools.partial(mtmetrics, "artifacts")


@pytest.fixture
def model(tiny_encoder, tmp_path):
    return shutil.copytree(tiny_encoder, tmp_path / "models" / "bert-base-multilingual-cased")


def files_in(folder):
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def test_pull_then_offline(run, published, model, tmp_path, monkeypatch):
    folder = tmp_path / "assets" / "mtmetrics" / NAME / "c0ffee"
    code, out, err = run("pull", NAME)
    assert (code, err) == (0, "")
    assert json.loads(out) == {NAME: {"folder": str(folder), "fetched": FILES, "present": []}}
    assert files_in(folder) == sorted(FILES)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    code, out, _ = run("pull", NAME)
    assert (code, json.loads(out)) == (
        0,
        {NAME: {"folder": str(folder), "fetched": [], "present": FILES}},
    )
    assert len(published.requests) == len(FILES)
    assert load_map(NAME, "de-en", "umd", TokenEncoder(model, layer=2)).kind == "umd"
    (folder / FILES[0]).write_bytes(b"damaged")
    refused(
        run("pull", NAME),
        f"damaged at {folder / FILES[0]}; the network was not asked (HF_HUB_OFFLINE or",
        1,
    )


def test_pull_pairs_into_a_folder(run, published, model, tmp_path):
    out = tmp_path / "maps"
    assert (
        json.loads(run("pull", NAME, "--lp", "en-ru", "--out", out)[1])[NAME]["fetched"]
        == FILES[2:4]
    )
    assert files_in(out) == FILES[2:4]
    assert not (tmp_path / "assets").exists()
    assert load_map(out, "en-ru", "clp", TokenEncoder(model)).kind == "clp"
    Remapping("clp", (np.eye(16),)).save(out / FILES[2])
    found = (
        f"{out / FILES[2]} exists already and is not the published map, or damaged; remove it or "
        "choose"
    )
    refused(run("pull", NAME, "--out", out), found)
    assert files_in(out) == FILES[2:4]


def test_a_pull_that_fails_goes_on_where_it_stopped(run, published, tmp_path):
    published.faults = ["", "", "tampered"]
    refused(run("pull", NAME), "un-v1.en-ru.2k.3.BAM: the answer is damaged or not the file", 1)
    published.faults = ["interrupt"]
    start = time.perf_counter()
    refused(run("pull", NAME), "mtmetrics: interrupted\n", 130)
    assert time.perf_counter() - start < 5
    assert [name.split("/", 3)[3] for name in files_in(tmp_path / "assets")] == FILES[:2]
    done = json.loads(run("pull", NAME)[1])[NAME]
    assert (done["present"], done["fetched"]) == (FILES[:2], FILES[2:])
    assert len(published.requests) == 3 + 1 + 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], f"unknown artifact 'nope'; there are: {NAME}, small, on-hub"),
        ([], "pass the NAMEs of artifacts, or --all"),
        (["small", "--all"], "pass the NAMEs of artifacts, or --all"),
        (
            [NAME, "on-hub", "--lp", "de-en"],
            "--lp: only for published maps, which on-hub does not hold",
        ),
        (
            [NAME, "--lp", "de-en", "de-fr"],
            f"--lp de-fr: {NAME} has no map for it; it has: de-en, en-ru",
        ),
        (
            [NAME, "--namespace", "org"],
            f"--namespace has no effect on published maps ({NAME}); pull them without it",
        ),
        (
            [NAME, "on-hub", "--namespace", "org"],
            f"--namespace has no effect on published maps ({NAME}); pull them without it",
        ),
    ],
)
def test_pull_bad_usage(run, published, tmp_path, arguments, message):
    with open(tmp_path / "catalog" / "catalog.toml", "a") as stream:
        for name, bundled in (("small", "true"), ("on-hub", "false")):
            about = (
                f'kind = "maps"\nrepository = "org/{name}"\nrevision = "main"\nbundled = '
                f"{bundled}\n"
            )
            stream.write(f"[{name}]\n{about}")
    refused(run("pull", *arguments), f"mtmetrics: {message}\n")
    assert published.requests == []


def test_list_and_verify_the_originals(run, published, tmp_path):
    [row] = json.loads(run("list", "--format", "json")[1])["artifacts"]
    origin = {"url": published.url, "commit": "c0ffee", "licence": "Apache-2.0"}
    assert (row["origin"], row["repository"], row["files"], row["bytes"]) == (origin, None, 6, None)
    assert run("list")[1].splitlines()[-1].split() == [
        NAME,
        "maps",
        f"{published.url}@c0ffee",
        "6",
        "-",
    ]
    for path, data in published.files.items():
        file = write(
            tmp_path / path.removeprefix("/c0ffee/").replace("mapping", "raw/mapping"), data
        )
    assert run("verify", NAME, "--folder", tmp_path / "raw")[0] == 0
    file.write_bytes(b"x")
    assert (
        "damaged, its git blob hash is not the catalog's"
        in run("verify", NAME, "--folder", tmp_path / "raw")[1]
    )


@pytest.fixture
def originals(published, tmp_path, monkeypatch):
    """The files of layer 3 under the names that the authors gave them, in the working directory."""
    monkeypatch.chdir(tmp_path)
    named = {path.rsplit("/", 1)[1]: data for path, data in published.files.items()}
    return [write(Path(name), data) for name, data in named.items() if ".2k.3." in name]


def test_import_by_name(run, originals, published, model):
    code, out, err = run("import", *originals, "--out", "maps")
    assert (code, err) == (0, "")
    assert files_in(Path("maps")) == sorted(name.removeprefix("layer-3/") for name in FILES[:4])
    first = json.loads(out)[0]
    assert (first["file"], first["from"]) == ("maps/de-en.clp.safetensors", str(originals[0]))
    assert (first["layer"], first["git_blob"]) == ("3", git_blob_sha1(originals[0].read_bytes()))
    found = load_map("maps", "de-en", "clp", TokenEncoder(model)).apply(
        np.eye(16, dtype=np.float32)
    )
    assert found == pytest.approx(np.load(originals[0]), abs=1e-6)
    assert published.requests == []


def test_import_binds_to_a_copy_of_the_model(run, originals, published, tiny_encoder, tmp_path):
    encoder = TokenEncoder(tiny_encoder)
    assert run("import", originals[0], "--encoder", tiny_encoder, "--out", "raw")[0] == 0
    remapping = load_map("raw", "de-en", "clp", encoder)
    assert (remapping.meta["encoder"], remapping.meta["encoder_fingerprint"]) == (
        "tiny-encoder",
        encoder.fingerprint,
    )
    advice = "'mtmetrics artifacts import .* --encoder FOLDER --out DIR' binds the map to it"
    with pytest.raises(ArtifactError, match=advice):
        load_map(NAME, "de-en", "clp", encoder)
    # What that advice does with the converted map in the cache.
    cached = next((tmp_path / "assets").rglob("*.safetensors"))
    assert run("import", cached, "--encoder", tiny_encoder, "--out", "bound")[0] == 0
    assert load_map("bound", "de-en", "clp", encoder).meta == remapping.meta
    # A file with a name of its own.
    with open("own.BAM", "wb") as stream:
        np.save(stream, np.eye(16, dtype=np.float32))
    call = ("import", "own.BAM", "--encoder", tiny_encoder, "--layer", 2, "--lp", "fi-en")
    assert run(*call, "--out", "own")[0] == 0
    assert (
        load_map("own", "fi-en", "clp", TokenEncoder(tiny_encoder, layer=2)).meta["lp"] == "fi-en"
    )
    refused(run(*call, "--out", "own"), "exists already; pass --overwrite or another --out")
    assert run(*call, "--out", "own", "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["bad.BAM"], 2, "so --layer N and --lp XX-YY and --encoder MODEL must be given"),
        (
            ["bad.BAM", "--layer", 3, "--lp", "fi-en", "--encoder", "ENCODER"],
            1,
            "bad.BAM: not a whole numpy file",
        ),
        (
            ["wide.fi-en.2k.3.BAM", "--encoder", "ENCODER"],
            2,
            "for vectors of 8 numbers, but --encoder ENCODER gives 16",
        ),
        (["none.BAM"], 2, "none.BAM: cannot be read (No such file or directory)"),
        (
            ["--layer", 4, "--encoder", "ENCODER"],
            2,
            "for layer 4, but --encoder ENCODER has the layers 0 to 3",
        ),
        (["--layer", -1], 2, "--layer -1: must be a whole number of at least 0"),
        (["--lp", "deen"], 2, "language pair 'deen'"),
        (["--encoder", "no/such-model"], 1, "model 'no/such-model'"),
        (
            ["copy/europarl-v7.de-en.2k.3.BAM"],
            2,
            "would both become OUT/de-en.clp.safetensors; import them into separate",
        ),
    ],
)
def test_import_refusals_write_nothing(
    run, originals, tiny_encoder, monkeypatch, options, code, message
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    Path("bad.BAM").write_bytes(b"bad")
    with open("wide.fi-en.2k.3.BAM", "wb") as stream:
        np.save(stream, np.eye(8, dtype=np.float32))
    write(Path("copy", originals[0].name), originals[0].read_bytes())
    options = [tiny_encoder if option == "ENCODER" else option for option in options]
    result = run("import", originals[0], *options, "--out", "OUT")
    refused(result, message.replace("ENCODER", str(tiny_encoder)), code)
    assert not Path("OUT").exists()


def test_compositions_are_made_of_the_published_steps(run, published, model):
    assert run("pull", NAME)[0] == 0
    encoder = TokenEncoder(model, layer=3)
    steps = {kind: load_map(NAME, "de-en", kind, encoder) for kind in ("clp", "umd")}
    vectors = np.random.default_rng(0).normal(size=(4, encoder.dim)).astype(np.float32)
    for kind in ("clp+umd", "umd+clp"):
        first, second = kind.split("+")
        found = load_map(NAME, "de-en", kind, encoder)
        assert (found.kind, found.meta["lp"]) == (kind, "de-en")
        expected = steps[second].apply(steps[first].apply(vectors))
        assert found.apply(vectors) == pytest.approx(expected, abs=1e-5)
    assert not np.allclose(
        load_map(NAME, "de-en", "clp+umd", encoder).apply(vectors), found.apply(vectors)
    )
    with pytest.raises(ArtifactError, match=r"no clp\+umd map for language pair fi-en"):
        load_map(NAME, "fi-en", "clp+umd", encoder)
