"""``mtmetrics artifacts`` and ``mtmetrics doctor`` on a small catalog of tiny models."""

import hashlib
import json
import shutil
import socket
import sys
from email.message import Message
from importlib import metadata

import numpy as np
import pytest
from helpers import refused, write

from mtmetrics import layout
from mtmetrics._version import __version__
from mtmetrics.artifacts import presets
from mtmetrics.artifacts.catalog import CatalogEntry, entry_toml
from mtmetrics.errors import install_command
from mtmetrics.integrations.registration import install
from mtmetrics.matching.remapping import Remapping
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.metric import METRICS


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
    shutil.copytree(layout.metric_scripts(), package / "metric_scripts")
    settings = '[encoder]\nmodel = "tiny-encoder"\n[maps]\nartifact = "tiny-maps"\nkind = "clp"\n'
    settings += '[language_models.en]\nmodel = "tiny-lm"\n'
    write(tmp_path / "presets" / "xmoverscore" / "mini.toml", settings)
    monkeypatch.setattr(layout, "_PACKAGE", package)
    monkeypatch.setattr(presets, "_FOLDER", tmp_path / "presets")
    return artifacts


def test_list(mtmetrics, bundle):
    code, out, err = mtmetrics("artifacts", "list", "--format", "json")
    assert (code, err) == (0, "")
    rows = {row["name"]: row for row in json.loads(out)["artifacts"]}
    assert list(rows) == ["tiny-encoder", "tiny-lm", "tiny-maps", "big-maps"]
    size = sum(path.stat().st_size for path in (bundle / "tiny-lm").iterdir())
    place = {"repository": "org/tiny-lm", "revision": "v1.0.0", "origin": None, "mirror": None}
    about = {"name": "tiny-lm", "kind": "language-model", "bundled": True}
    assert rows["tiny-lm"] == place | about | {"files": len(list((bundle / "tiny-lm").iterdir())), "bytes": size}
    assert rows["big-maps"]["bytes"] is None
    lines = mtmetrics("artifacts", "list")[1].splitlines()
    assert lines[0].split() == ["NAME", "KIND", "WHERE", "FILES", "MB"]
    assert lines[-1].split() == ["big-maps", "maps", "org/big-maps@v1.0.0", "1", "-"]


def test_verify_names_every_problem(mtmetrics, bundle):
    code, out, _ = mtmetrics("artifacts", "verify")
    assert (code, [line.split(":")[0] for line in out.splitlines()]) == (0, ["tiny-encoder", "tiny-lm", "tiny-maps"])
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
        assert mtmetrics("artifacts", "verify", name, "--folder", pulled / "tiny-maps")[0] == expected
    code, out, _ = mtmetrics("artifacts", "verify", pulled)
    assert (code, [line.split(":")[0] for line in out.splitlines()]) == (0, ["tiny-lm", "tiny-maps"])
    (pulled / "tiny-lm" / "config.json").unlink()
    assert mtmetrics("artifacts", "verify", pulled)[1] == f"tiny-lm/config.json: missing\n{out.splitlines()[1]}\n"
    message = "holds no folder that is named like an artifact; there are: tiny-encoder, "
    refused(mtmetrics("artifacts", "verify", pulled / "tiny-maps"), message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "unknown artifact 'nope'; there are: tiny-encoder, tiny-lm, tiny-maps, big-maps"),
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


def findings(out):
    return [(line[:4].strip(), line[6:]) for line in out.splitlines()]


@pytest.fixture
def no_sockets(monkeypatch):
    """Refuses all that would reach a network, and lists what was tried."""
    tried = []

    def refuse(*arguments, **_):
        tried.append(arguments)
        raise OSError("no network")

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("HF_EVALUATE_OFFLINE", raising=False)
    for owner, names in ((socket.socket, ("connect", "connect_ex", "sendto")), (socket, ("getaddrinfo",))):
        for name in names:
            monkeypatch.setattr(owner, name, refuse)
    return tried


def test_doctor_tells_what_loads_without_a_network(
    mtmetrics, bundle, evaluate_cache, monkeypatch, tmp_path, no_sockets, tiny_encoder
):
    """A preset that is not downloaded is only noted; it loads as soon as its model is in the Hub's cache; maps count as
    well."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    for name, model, maps in (("paper", "org/large", "tiny-maps"), ("maps", "tiny-encoder", "big-maps")):
        settings = f'[encoder]\nmodel = "{model}"\n[maps]\nartifact = "{maps}"\nkind = "clp"\n'
        write(presets._FOLDER / "xmoverscore" / f"{name}.toml", settings)
    words = {"src-mt": "tiny-encoder", "mt-ref": "org/large"}
    tables = [f'[{name}]\nwords = "{it}"\nlayer = 1\nsentences = "tiny-encoder"\n' for name, it in words.items()]
    write(presets._FOLDER / "sentsim" / "paper.toml", "".join(tables))
    code, out, err = mtmetrics("doctor")
    found = {text.partition(": ")[0]: (state, text) for state, text in findings(out) if text.startswith("preset ")}
    assert (code, err) == (0, "")
    assert [(name, state) for name, (state, _) in found.items()] == [
        ("preset xmoverscore/maps, against sources", "note"),
        ("preset xmoverscore/mini, against sources", "ok"),
        ("preset xmoverscore/paper, against sources", "note"),
        ("preset sentsim/paper, against sources", "ok"),
        ("preset sentsim/paper, against references", "note"),
    ]
    assert "does not load offline: model 'org/large'" in found["preset xmoverscore/paper, against sources"][1]
    unregistered = "evaluate.load('xmoverscore'): this version is not registered; run 'mtmetrics install'"
    assert ("note", unregistered) in findings(out)
    assert findings(out)[-1] == ("ok", "offline: HF_HUB_OFFLINE unset, HF_EVALUATE_OFFLINE unset")
    snapshot = tmp_path / "hub" / "models--org--large" / "snapshots" / "c0ffee"
    shutil.copytree(tiny_encoder, snapshot)
    write(snapshot.parents[1] / "refs" / "main", "c0ffee")
    install()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = findings(mtmetrics("doctor")[1])
    assert ("ok", "preset xmoverscore/paper, against sources: loads and scores offline") in found
    assert ("ok", "preset sentsim/paper, against sources or references: loads and scores offline") in found
    assert [state for state, text in found if "evaluate.load('xmoverscore'): registered (" in text] == ["ok"]
    assert found[-1][0] == "note"
    assert not no_sockets


def test_doctor_of_this_package(mtmetrics, evaluate_cache, monkeypatch, tmp_path, no_sockets):
    """All presets but those of the papers, and of COMET, score at once."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    found = [(state, text) for state, text in findings(mtmetrics("doctor")[1]) if text.startswith("preset ")]
    named = [(metric, name) for metric in METRICS for name in presets.preset_names(metric)]
    expected = {
        f"preset {metric}/{name}": "note" if name == "paper" or metric == "comet" else "ok" for metric, name in named
    }
    assert {text.partition(",")[0]: state for state, text in found} == expected
    assert {"FAIL"}.isdisjoint(state for state, _ in found)
    assert not no_sockets


def test_doctor_names_all_that_is_wrong(mtmetrics, bundle, evaluate_cache, monkeypatch):
    """Damaged models, requirements that are not met, a package that cannot be imported; a missing extra is noted."""
    weights = bundle / "tiny-lm" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    monkeypatch.setitem(sys.modules, "evaluate", None)
    about = Message()
    needed = ["numpy>=2.0", "torch>=999", "no-such-package>=1"]
    extras = ['no-such-toy>=2; extra == "app"', 'numpy; extra == "plot"', 'mtmetrics[app]; extra == "all"']
    for line in needed + extras:
        about["Requires-Dist"] = line
    for extra in ("app", "plot", "all"):
        about["Provides-Extra"] = extra
    monkeypatch.setattr(metadata, "metadata", lambda name: about)
    code, out, _ = mtmetrics("doctor")
    found = findings(out)
    assert code == 1
    expected = [
        f"package torch>=999 (found {metadata.version('torch')})",
        "package no-such-package>=1 (absent)",
        "artifact tiny-lm: tiny-lm/model.safetensors: damaged, its sha256 is not the catalog's",
        "preset xmoverscore/mini, against sources: does not load offline: ",
        "module cache: a package cannot be imported",
    ]
    failed = [text for state, text in found if state == "FAIL"]
    assert [text.startswith(beginning) for text, beginning in zip(failed, expected, strict=True)] == [True] * 5
    assert ("ok", f"mtmetrics {__version__}") in found
    assert ("ok", f"package numpy {np.__version__}") in found
    assert ("note", f"extra app: lacks no-such-toy>=2 (absent); {install_command('app')}") in found
    assert ("ok", "extra plot: installed") in found
    assert found[-1][1].startswith("offline: ")
