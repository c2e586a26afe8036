"""``mtmetrics artifacts pull`` and ``import``, against a loopback server."""

import json
import shutil
import time

import numpy as np
import pytest

from mtmetrics.artifacts.files import git_blob_sha1
from mtmetrics.cli.main import main
from mtmetrics.errors import ArtifactError
from mtmetrics.maps.files import load_map
from mtmetrics.maps.remapping import Remapping
from mtmetrics.models.token_encoder import TokenEncoder

NAME = "xmoverscore-published"
FILES = [
    f"layer-{layer}/{pair}.{kind}.safetensors"
    for layer, pair in ((3, "de-en"), (3, "en-ru"), (2, "de-en"))
    for kind in ("clp", "umd")
]


@pytest.fixture
def run(capsys):
    def called(*arguments):
        capsys.readouterr()
        code = main(["artifacts", *map(str, arguments)])
        output = capsys.readouterr()
        return code, output.out, output.err

    return called


@pytest.fixture
def model(tiny_encoder, tmp_path):
    return shutil.copytree(tiny_encoder, tmp_path / "models" / "bert-base-multilingual-cased")


def files_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_pull_then_offline(run, published, model, tmp_path, monkeypatch):
    folder = tmp_path / "assets" / "mtmetrics" / NAME / "c0ffee"
    code, out, err = run("pull", NAME)
    assert (code, err) == (0, "")
    assert json.loads(out) == {NAME: {"folder": str(folder), "fetched": FILES, "present": []}}
    assert files_in(folder) == sorted(FILES)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    code, out, _ = run("pull", NAME)
    assert (code, json.loads(out)) == (0, {NAME: {"folder": str(folder), "fetched": [], "present": FILES}})
    assert len(published.requests) == len(FILES)
    assert load_map(NAME, "de-en", "umd", TokenEncoder(model, layer=2)).kind == "umd"
    (folder / FILES[0]).write_bytes(b"damaged")
    code, _, err = run("pull", NAME)
    assert code == 1
    assert err == f"mtmetrics: {NAME}: 1 of 6 maps are not in {folder}, and HF_HUB_OFFLINE forbids to fetch them\n"


def test_pull_pairs_into_a_folder(run, published, model, tmp_path):
    out = tmp_path / "maps"
    assert json.loads(run("pull", NAME, "--lp", "en-ru", "--out", out)[1])[NAME]["fetched"] == FILES[2:4]
    assert files_in(out) == FILES[2:4]
    assert not (tmp_path / "assets").exists()
    assert load_map(out, "en-ru", "clp", TokenEncoder(model)).kind == "clp"
    Remapping("clp", (np.eye(16),)).save(out / FILES[2])
    code, _, err = run("pull", NAME, "--out", out)
    assert code == 2
    assert f"{out / FILES[2]} exists already and is not the published map, or damaged; remove it or choose" in err
    assert files_in(out) == FILES[2:4]


def test_a_pull_that_fails_goes_on_where_it_stopped(run, published, tmp_path):
    published.faults = ["", "", "tampered"]
    code, out, err = run("pull", NAME)
    assert (code, out) == (1, "")
    assert "un-v1.en-ru.2k.3.BAM: the answer is damaged or not the file" in err
    assert err.count("\n") == 1
    done = json.loads(run("pull", NAME)[1])[NAME]
    assert (done["present"], done["fetched"]) == (FILES[:2], FILES[2:])
    assert len(published.requests) == 3 + 4


def test_an_interrupt_leaves_nothing_half(run, published, tmp_path):
    published.faults = ["", "interrupt"]
    start = time.perf_counter()
    code, out, err = run("pull", NAME)
    assert (code, out, err) == (130, "", "mtmetrics: interrupted\n")
    assert time.perf_counter() - start < 5
    assert [name.split("/", 3)[3] for name in files_in(tmp_path / "assets")] == FILES[:1]
    assert run("pull", NAME)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], f"unknown artifact 'nope'; there are: {NAME}, small, on-hub"),
        ([], "pass the NAMEs of artifacts, or --all"),
        (["small", "--all"], "pass the NAMEs of artifacts, or --all"),
        ([NAME, "on-hub", "--lp", "de-en"], "--lp: only for published maps, which on-hub does not hold"),
        ([NAME, "--lp", "de-en", "de-fr"], f"--lp de-fr: {NAME} has no map for it; it has: de-en, en-ru"),
    ],
)
def test_pull_bad_usage(run, published, tmp_path, arguments, message):
    with open(tmp_path / "catalog" / "catalog.toml", "a") as stream:
        for name, bundled in (("small", "true"), ("on-hub", "false")):
            stream.write(
                f'[{name}]\nkind = "maps"\nrepository = "org/{name}"\nrevision = "main"\nbundled = {bundled}\n'
            )
    assert run("pull", *arguments) == (2, "", f"mtmetrics: {message}\n")
    assert published.requests == []


def test_list_and_verify_the_originals(run, published, tmp_path):
    [row] = json.loads(run("list", "--format", "json")[1])["artifacts"]
    origin = {"url": published.url, "commit": "c0ffee", "licence": "Apache-2.0"}
    assert (row["origin"], row["repository"], row["files"], row["bytes"]) == (origin, None, 6, None)
    assert run("list")[1].splitlines()[1].split() == [NAME, "maps", f"{published.url}@c0ffee", "6", "-"]
    for path, data in published.files.items():
        file = tmp_path / path.removeprefix("/c0ffee/").replace("mapping", "raw/mapping")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    assert run("verify", NAME, "--folder", tmp_path / "raw")[0] == 0
    file.write_bytes(b"x")
    assert "damaged, its git blob hash is not the catalog's" in run("verify", NAME, "--folder", tmp_path / "raw")[1]


@pytest.fixture
def originals(published, tmp_path):
    """The files of layer 3 under the names that the authors gave them."""
    files = []
    for path, data in published.files.items():
        if path.endswith((".3.BAM", ".3.GBDD")):
            files.append(tmp_path / path.rsplit("/", 1)[1])
            files[-1].write_bytes(data)
    return files


def test_import_by_name(run, originals, published, model, tmp_path):
    code, out, err = run("import", *originals, "--out", tmp_path / "maps")
    assert (code, err) == (0, "")
    assert files_in(tmp_path / "maps") == sorted(name.removeprefix("layer-3/") for name in FILES[:4])
    first = json.loads(out)[0]
    assert first["file"] == str(tmp_path / "maps" / "de-en.clp.safetensors")
    assert first["from"] == str(originals[0])
    assert (first["layer"], first["git_blob"]) == ("3", git_blob_sha1(originals[0].read_bytes()))
    vectors = np.eye(16, dtype=np.float32)
    for kind, original in zip(("clp", "umd"), originals, strict=False):
        array = np.load(original)
        expected = array if kind == "clp" else vectors - np.outer(array, array)
        found = load_map(tmp_path / "maps", "de-en", kind, TokenEncoder(model)).apply(vectors)
        assert found == pytest.approx(expected, abs=1e-6)
    assert published.requests == []


def test_import_binds_to_a_copy_of_the_model(run, originals, published, tiny_encoder, tmp_path):
    encoder = TokenEncoder(tiny_encoder)
    code, _, _ = run("import", originals[0], "--encoder", tiny_encoder, "--out", tmp_path / "raw")
    assert code == 0
    remapping = load_map(tmp_path / "raw", "de-en", "clp", encoder)
    assert (remapping.meta["encoder"], remapping.meta["encoder_fingerprint"]) == ("tiny-encoder", encoder.fingerprint)
    assert remapping.meta["origin"] == published.url
    advice = "'mtmetrics artifacts import .* --encoder FOLDER --out DIR' binds the map to it"
    with pytest.raises(ArtifactError, match=advice):
        load_map(NAME, "de-en", "clp", encoder)
    # What that advice does with the converted map in the cache.
    cached = next((tmp_path / "assets").rglob("*.safetensors"))
    assert run("import", cached, "--encoder", tiny_encoder, "--out", tmp_path / "bound")[0] == 0
    assert load_map(tmp_path / "bound", "de-en", "clp", encoder).meta == remapping.meta


def test_import_of_files_with_other_names(run, originals, published, tiny_encoder, tmp_path):
    own = tmp_path / "matrix.BAM"
    np.save(tmp_path / "matrix.npy", np.eye(16, dtype=np.float32))
    (tmp_path / "matrix.npy").rename(own)
    options = ["--encoder", tiny_encoder, "--layer", 2, "--lp", "fi-en", "--out", tmp_path / "maps"]
    assert run("import", own, *options)[0] == 0
    assert load_map(tmp_path / "maps", "fi-en", "clp", TokenEncoder(tiny_encoder, layer=2)).meta["lp"] == "fi-en"
    assert run("import", own, *options)[0] == 2
    assert run("import", own, *options, "--overwrite")[0] == 0
    # A published matrix is known by its content.
    originals[0].rename(tmp_path / "unnamed.BAM")
    assert json.loads(run("import", tmp_path / "unnamed.BAM", "--out", tmp_path / "more")[1])[0]["lp"] == "de-en"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            ["bad.BAM"],
            2,
            "bad.BAM: its name does not have the form CORPUS.XX-YY.2k.LAYER.BAM, so --layer N and --lp XX-YY and --enc",
        ),
        (["bad.BAM", "--layer", 3, "--lp", "fi-en", "--encoder", "ENCODER"], 1, "bad.BAM: not a whole numpy file"),
        (
            ["wide.fi-en.2k.3.BAM", "--encoder", "ENCODER"],
            2,
            "for vectors of 8 numbers, but --encoder ENCODER gives 16",
        ),
        (["none.BAM"], 2, "none.BAM: cannot be read (No such file or directory)"),
        (["--layer", 4, "--encoder", "ENCODER"], 2, "for layer 4, but --encoder ENCODER has the layers 0 to 3"),
        (["--layer", -1], 2, "--layer -1: must be a whole number of at least 0"),
        (["--lp", "deen"], 2, "language pair 'deen'"),
        (["--encoder", "no/such-model"], 1, "model 'no/such-model'"),
        (
            ["copy/europarl-v7.de-en.2k.3.BAM"],
            2,
            "would both become OUT/de-en.clp.safetensors; import them into separate folders",
        ),
        (["europarl-v7.de-en.2k.2.BAM"], 2, "would both become OUT/de-en.clp.safetensors"),
    ],
)
def test_import_refusals_write_nothing(
    run, originals, published, tiny_encoder, tmp_path, monkeypatch, options, code, message
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.BAM").write_bytes(b"bad")
    np.save(tmp_path / "wide.npy", np.eye(8, dtype=np.float32))
    (tmp_path / "wide.npy").rename(tmp_path / "wide.fi-en.2k.3.BAM")
    (tmp_path / "copy").mkdir()
    shutil.copy(originals[0], tmp_path / "copy")
    other = "europarl-v7.de-en.2k.2.BAM"
    (tmp_path / other).write_bytes(published.files[f"/c0ffee/mapping/layer-2/{other}"])
    options = [tiny_encoder if option == "ENCODER" else option for option in options]
    found, out, err = run("import", originals[0], *options, "--out", "OUT")
    assert (found, out) == (code, "")
    assert message.replace("ENCODER", str(tiny_encoder)) in err
    assert err.count("\n") == 1
    assert not (tmp_path / "OUT").exists()


def test_an_existing_map_stays(run, originals, tmp_path):
    target = tmp_path / "maps" / "de-en.umd.safetensors"
    target.parent.mkdir()
    target.write_text("mine")
    code, _, err = run("import", *originals, "--out", tmp_path / "maps")
    assert (code, target.read_text()) == (2, "mine")
    assert f"{target} exists already; pass --overwrite or another --out" in err
    assert files_in(tmp_path / "maps") == ["de-en.umd.safetensors"]
