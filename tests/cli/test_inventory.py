"""``mtmetrics list``, ``mtmetrics install`` and ``mtmetrics doctor``."""

import json
import shutil
import socket
import sys
from collections.abc import Callable
from email.message import Message
from importlib import metadata

import evaluate
import numpy as np
import pytest
from helpers import write

from mtmetrics._version import __version__
from mtmetrics.artifacts import presets
from mtmetrics.cli.main import main
from mtmetrics.errors import install_command
from mtmetrics.integrations.registration import install
from mtmetrics.layout import bundled_artifacts, metric_names
from mtmetrics.scorers.metric import METRICS


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
    assert "does not load offline: the model 'org/large'" in found["preset xmoverscore/paper, against sources"][1]
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


def test_list_says_what_works_here(mtmetrics: Callable) -> None:
    code, out, _ = mtmetrics("list", "xmoverscore", "esim", "uscore", "--format", "tsv")
    rows = {tuple(line.split("\t")[:2]): line.split("\t")[2:] for line in out.splitlines()}
    assert code == 0
    compared, languages, offline, needs, size, licence = rows["xmoverscore", "mini"]
    assert (compared, offline, needs) == ("source", "yes", "mini-encoder mini-lm-en")
    folders = [bundled_artifacts() / name for name in needs.split()]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    assert float(size) == pytest.approx(sum(file.stat().st_size for file in files) / 1e6, abs=0.05)
    assert licence == "mixed-training-data"
    assert languages.endswith("zh")
    assert rows["uscore", "mini"][1].endswith("zh \N{RIGHTWARDS ARROW} en")
    assert rows["esim", "mini"][::2] == ["source or reference", "yes", rows["esim", "mini"][4]]
    assert rows["esim", "mini"][3] == "esim-mini mini-encoder"
    assert rows["esim", "paper"][2].startswith("no: names no model")
    found = {row["preset"]: row for row in json.loads(mtmetrics("list", "comet", "--format", "json")[1])["metrics"]}
    kiwi = found["wmt22-cometkiwi-da"]
    assert (kiwi["licences"], kiwi["megabytes"]) == (["gated, CC BY-NC-SA 4.0"], None)
    assert kiwi["needs"] == ["Unbabel/wmt22-cometkiwi-da"]
    assert mtmetrics("list", "bleurt")[0] == 2


def test_the_command_reports_and_can_be_repeated(evaluate_cache, capsys):
    assert main(["install"]) == 0
    first = capsys.readouterr().out
    written = {path: path.stat().st_mtime_ns for path in evaluate_cache.rglob("*.py")}
    assert main(["install", *metric_names()]) == 0
    second = capsys.readouterr().out
    count, step = len(metric_names()), f'now in Python: evaluate.load("{metric_names()[0]}", "mini")\n'
    assert first == f"{count} metrics registered; {step}"
    assert second == f"0 metrics registered, {count} were registered already; {step}"
    assert {path: path.stat().st_mtime_ns for path in evaluate_cache.rglob("*.py")} == written


def test_errors_are_one_line(evaluate_cache, tmp_path, monkeypatch, capsys):
    assert main(["install", "xmover"]) == 2
    assert capsys.readouterr().err.startswith("mtmetrics: unknown metric 'xmover'; there are: ")
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", tmp_path / "file" / "cache")
    assert main(["install"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert (
        f"the module cache of evaluate, {tmp_path / 'file' / 'cache'}, cannot be used (Not a directory); set "
        "HF_MODULES_CACHE" in error
    )
