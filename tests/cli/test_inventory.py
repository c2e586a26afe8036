"""``mtmetrics list``, ``mtmetrics install`` and ``mtmetrics doctor``."""

import dataclasses
import json
import shutil
import socket
import sys
from collections.abc import Callable
from email.message import Message
from importlib import metadata
from pathlib import Path

import evaluate
import numpy as np
import pytest
from helpers import write

from mtmetrics import load
from mtmetrics._version import __version__
from mtmetrics.artifacts import presets
from mtmetrics.artifacts.presets import load_preset
from mtmetrics.cli.main import main
from mtmetrics.errors import InputError, MissingExtraError, install_command
from mtmetrics.integrations.metric_module import MetricModule
from mtmetrics.integrations.registration import install
from mtmetrics.layout import bundled_artifacts, metric_names
from mtmetrics.page.offers import offers
from mtmetrics.scorers import settings
from mtmetrics.scorers.available import find_problem
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.metric import METRICS, MetricEntry
from mtmetrics.scorers.plugins import load_plugin
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.side import Side
from mtmetrics.scorers.spec import MetricSpec


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
    for owner, names in (
        (socket.socket, ("connect", "connect_ex", "sendto")),
        (socket, ("getaddrinfo",)),
    ):
        for name in names:
            monkeypatch.setattr(owner, name, refuse)
    return tried


def test_doctor_tells_what_loads_without_a_network(
    mtmetrics, bundle, evaluate_cache, monkeypatch, tmp_path, no_sockets, tiny_encoder
):
    """A preset that is not downloaded is only noted; it loads as soon as its model is in the Hub's
    cache; maps count as well."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    for name, model, maps in (
        ("paper", "org/large", "tiny-maps"),
        ("maps", "tiny-encoder", "big-maps"),
    ):
        settings = f'[encoder]\nmodel = "{model}"\n[maps]\nartifact = "{maps}"\nkind = "clp"\n'
        write(tmp_path / "presets" / "xmoverscore" / f"{name}.toml", settings)
    words = {"src-mt": "tiny-encoder", "mt-ref": "org/large"}
    tables = [
        f'[{name}]\nwords = "{it}"\nlayer = 1\nsentences = "tiny-encoder"\n'
        for name, it in words.items()
    ]
    write(tmp_path / "presets" / "sentsim" / "paper.toml", "".join(tables))
    code, out, err = mtmetrics("doctor")
    found = {
        text.partition(": ")[0]: (state, text)
        for state, text in findings(out)
        if text.startswith("preset ")
    }
    assert (code, err) == (0, "")
    assert [(name, state) for name, (state, _) in found.items()] == [
        ("preset xmoverscore/maps, against sources", "note"),
        ("preset xmoverscore/mini, against sources", "ok"),
        ("preset xmoverscore/paper, against sources", "note"),
        ("preset sentsim/paper, against sources", "ok"),
        ("preset sentsim/paper, against references", "note"),
        ("preset fluency/maps, against sources", "note"),
        ("preset fluency/mini, against sources", "ok"),
        ("preset fluency/paper, against sources", "note"),
    ]
    assert (
        "does not load offline: the model 'org/large'"
        in found["preset xmoverscore/paper, against sources"][1]
    )
    unregistered = (
        "evaluate.load('xmoverscore'): this version is not registered; run 'mtmetrics install'"
    )
    assert ("note", unregistered) in findings(out)
    assert findings(out)[-1] == ("ok", "offline: HF_HUB_OFFLINE unset, HF_EVALUATE_OFFLINE unset")
    snapshot = tmp_path / "hub" / "models--org--large" / "snapshots" / "c0ffee"
    shutil.copytree(tiny_encoder, snapshot)
    write(snapshot.parents[1] / "refs" / "main", "c0ffee")
    install()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = findings(mtmetrics("doctor")[1])
    assert ("ok", "preset xmoverscore/paper, against sources: loads and scores offline") in found
    assert (
        "ok",
        "preset sentsim/paper, against sources or references: loads and scores offline",
    ) in found
    assert [
        state for state, text in found if "evaluate.load('xmoverscore'): registered (" in text
    ] == ["ok"]
    assert found[-1][0] == "note"
    assert "the command stays offline only with HF_HUB_OFFLINE" in found[-1][1]
    assert not no_sockets


def test_doctor_of_this_package(mtmetrics, evaluate_cache, monkeypatch, tmp_path, no_sockets):
    """All presets but those of the papers, and of COMET, score at once."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    found = [
        (state, text)
        for state, text in findings(mtmetrics("doctor")[1])
        if text.startswith("preset ")
    ]
    named = [(metric, name) for metric in METRICS for name in presets.preset_names(metric)]
    named += [("fluency", name) for name in presets.preset_names("xmoverscore")]
    expected = {
        f"preset {metric}/{name}": "note" if name == "paper" or metric == "comet" else "ok"
        for metric, name in named
    }
    assert {text.partition(",")[0]: state for state, text in found} == expected
    assert {"FAIL"}.isdisjoint(state for state, _ in found)
    assert not no_sockets


def test_doctor_names_all_that_is_wrong(mtmetrics, bundle, evaluate_cache, monkeypatch):
    """Damaged models, requirements that are not met, a package that cannot be imported; a missing
    extra is noted."""
    weights = bundle / "tiny-lm" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    monkeypatch.setitem(sys.modules, "evaluate", None)
    about = Message()
    needed = ["numpy>=2.0", "torch>=999", "no-such-package>=1"]
    extras = [
        'no-such-toy>=2; extra == "app"',
        'numpy; extra == "plot"',
        'mtmetrics[app,plot]; extra == "most"',
    ]
    extras += ['mtmetrics[most]; extra == "all"', 'mtmetrics[all]; extra == "most"']
    for line in needed + extras:
        about["Requires-Dist"] = line
    for extra in ("app", "plot", "most", "all"):
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
        "preset fluency/mini, against sources: does not load offline: ",
        "module cache: a package cannot be imported",
    ]
    failed = [text for state, text in found if state == "FAIL"]
    assert [
        text.startswith(beginning) for text, beginning in zip(failed, expected, strict=True)
    ] == [True] * 6
    assert ("ok", f"mtmetrics {__version__}") in found
    assert ("ok", f"package numpy {np.__version__}") in found
    for extra in ("app", "most", "all"):
        assert (
            "note",
            f"extra {extra}: lacks no-such-toy>=2 (absent); {install_command(extra)}",
        ) in found
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
    found = {
        row["preset"]: row
        for row in json.loads(mtmetrics("list", "comet", "--format", "json")[1])["metrics"]
    }
    kiwi = found["wmt22-cometkiwi-da"]
    assert (kiwi["licences"], kiwi["megabytes"]) == (["gated, CC BY-NC-SA 4.0"], None)
    assert kiwi["needs"] == ["Unbabel/wmt22-cometkiwi-da"]
    assert mtmetrics("list", "bleurt")[0] == 2


def test_a_network_whose_encoder_is_absent_does_not_work(tmp_path: Path) -> None:
    network = tmp_path / "network"
    shutil.copytree(bundled_artifacts() / "esim-mini", network)
    config = json.loads((network / "config.json").read_text("utf-8"))
    (network / "config.json").write_text(
        json.dumps(config | {"encoder": "absent-encoder"}), "utf-8"
    )
    (tmp_path / "preset.toml").write_text(
        'metric = "esim"\n[regressors.source]\nmodel = "network"\n', "utf-8"
    )
    preset = load_preset("esim", str(tmp_path))
    problem = find_problem(METRICS["esim"], preset, Side.SOURCE)
    assert problem is not None
    assert problem.summary == "lacks absent-encoder"


def test_the_command_reports_and_can_be_repeated(evaluate_cache, capsys):
    assert main(["install"]) == 0
    first = capsys.readouterr().out
    written = {path: path.stat().st_mtime_ns for path in evaluate_cache.rglob("*.py")}
    assert main(["install", *metric_names()]) == 0
    second = capsys.readouterr().out
    count, step = (
        len(metric_names()),
        f'now in Python: evaluate.load("{metric_names()[0]}", "mini")\n',
    )
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
        f"the module cache of evaluate, {tmp_path / 'file' / 'cache'}, cannot be used (Not a "
        "directory); set HF_MODULES_CACHE" in error
    )


class Overlap(Scorer):
    """The share of the words of a translation that its source has, too: a metric without models."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options."""

        power: float = settings.option(1.0, "power of the share", preset="power", signed="pow")

    metric = "overlap"
    floor = 0.0

    def compute(self, batch: Batch) -> list[PartScores]:
        shares = [
            [
                len({*source.split()} & {*text.split()}) / len(text.split())
                for source, text in zip(batch.sources_or_references, texts, strict=True)
            ]
            for texts in batch.predictions
        ]
        return [
            PartScores.plain([share**self.settings.power for share in of_system])
            for of_system in shares
        ]


@pytest.fixture
def overlap(no_plugins, monkeypatch):
    """The metric among those of the package."""
    monkeypatch.setitem(METRICS, "overlap", MetricEntry("overlap", Overlap))


def verdicts(mtmetrics, name):
    """Preset and side -> whether a metric works here, by `list` and by `doctor`."""
    listed = {}
    for row in json.loads(mtmetrics("list", name, "--format", "json")[1])["metrics"]:
        for side in row["compares_with"]:
            listed[row["preset"], side] = side not in row["lacks"]
        assert (row["offline"] == "yes") == (row["lacks"] == {})
        assert row["offline"].startswith("no: ") == (len(row["lacks"]) == len(row["compares_with"]))
    told = {}
    for state, text in findings(mtmetrics("doctor")[1]):
        head, _, columns = text.partition(": ")[0].partition(", against ")
        if head in (f"metric {name}", *(f"preset {name}/{preset}" for preset, _ in listed)):
            for column in columns.split(" or "):
                told[
                    head.partition("/")[2], {"sources": "source", "references": "reference"}[column]
                ] = state == "ok"
    return listed, told


@pytest.mark.parametrize("preset", [None, "", "[score]\npower = 2.0\n"])
def test_a_metric_without_models_works_with_a_preset_and_without(
    preset, mtmetrics, bundle, overlap, evaluate_cache, tmp_path
):
    if preset is not None:
        write(tmp_path / "presets" / "overlap" / "paper.toml", preset)
    name = "" if preset is None else "paper"
    listed, told = verdicts(mtmetrics, "overlap")
    assert listed == told == {(name, "source"): True}
    scorer = load("overlap")
    assert scorer.score(["a b x y"], sources=["a b c d"]).segments.tolist() == [
        0.25 if preset else 0.5
    ]
    rows = write(tmp_path / "rows.jsonl", '{"source": "a b c d", "translation": "a b x y"}\n')
    code, out, err = mtmetrics("score", "--metric", "overlap", rows)
    assert (code, err, json.loads(out)["scores"]) == (0, "", [0.25 if preset else 0.5])
    folder = write(tmp_path / "cubes" / "preset.toml", "[score]\npower = 3.0\n").parent
    assert load("overlap", str(folder)).score(
        ["a b x y"], sources=["a b c d"]
    ).segments.tolist() == [0.125]
    for choice in (["--metric", f"overlap:{folder}"], ["--metric", "overlap", "--preset", folder]):
        assert json.loads(mtmetrics("score", *choice, rows)[1])["scores"] == [0.125]
    with pytest.raises(InputError, match="unknown preset 'large' for metric overlap"):
        load("overlap", "large")


@pytest.mark.parametrize("with_preset", [False, True])
def test_a_metric_without_models_that_cannot_be_made(
    with_preset, mtmetrics, bundle, overlap, evaluate_cache, monkeypatch, tmp_path
):
    """The inventory where a package that a metric needs is missing."""

    def refuse(self, *arguments, **options):
        raise MissingExtraError("overlap needs the package no-such-package")

    monkeypatch.setattr(Overlap, "__init__", refuse)
    if with_preset:
        write(tmp_path / "presets" / "overlap" / "paper.toml", "")
    listed, told = verdicts(mtmetrics, "overlap")
    assert listed == told == {("paper" if with_preset else "", "source"): False}
    assert "no-such-package" in mtmetrics("list", "overlap", "--format", "tsv")[1]


def test_it_is_an_evaluate_module_too(overlap, evaluate_cache):
    class OverlapModule(MetricModule):
        """Words that both have."""

        metric_name = "overlap"
        paper = "mathur-etal-2019-putting"
        examples = ">>> 1\n1"

    module = OverlapModule()
    module.download_and_prepare()
    assert module.compute(sources=["a b c d"], predictions=["a b x y"])["scores"] == [0.5]
    assert "None" not in module.inputs_description.partition("Returns")[0].partition("preset (")[0]


@pytest.mark.parametrize("name", ["xmoverscore", "sentsim", "fluency", "chrf"])
def test_list_doctor_and_page_agree(name, mtmetrics, bundle, evaluate_cache, monkeypatch, tmp_path):
    """Also where a preset works for one side only, or names no model."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    write(tmp_path / "presets" / "xmoverscore" / "paper.toml", '[encoder]\nmodel = "org/large"\n')
    write(tmp_path / "presets" / "xmoverscore" / "empty.toml", "")
    words = {"src-mt": "tiny-encoder", "mt-ref": "org/large"}
    tables = [
        f'[{name}]\nwords = "{it}"\nlayer = 1\nsentences = "tiny-encoder"\n'
        for name, it in words.items()
    ]
    write(tmp_path / "presets" / "sentsim" / "paper.toml", "".join(tables))
    offers.cache_clear()
    try:
        offered = {
            (offer.spec.preset or "", offer.side) for offer in offers() if offer.spec.metric == name
        }
    finally:
        offers.cache_clear()
    listed, told = verdicts(mtmetrics, name)
    assert listed == told
    assert name == "fluency" or {key for key, works in listed.items() if works} == offered
    expected = {
        "xmoverscore": {
            ("empty", "source"): False,
            ("mini", "source"): True,
            ("paper", "source"): False,
        },
        "sentsim": {("paper", "source"): True, ("paper", "reference"): False},
        "fluency": {
            ("empty", "source"): False,
            ("mini", "source"): True,
            ("paper", "source"): False,
        },
        "chrf": {("", "reference"): True},
    }
    assert listed == expected[name]


def test_a_plugin_that_raises_is_listed_with_its_reason(
    mtmetrics, no_plugins, evaluate_cache, monkeypatch, bundle
):
    text = "import mtmetrics\n\n\nclass Broken(mtmetrics.PluginMetric):\n    metric = 'broken'\n\n"
    write(
        Path("broken.py"), text + "    def open(self):\n        raise RuntimeError('no licence')\n"
    )
    monkeypatch.setenv("MTMETRICS_PLUGINS", str(Path("broken.py").resolve()))
    listed, told = verdicts(mtmetrics, "broken")
    assert listed == told == {("", "source"): False}
    assert "no licence" in mtmetrics("list", "broken", "--format", "tsv")[1]


def test_a_plugin_that_needs_a_language_pair_is_listed_as_usable(
    mtmetrics, no_plugins, bundle, tmp_path
):
    text = """
import mtmetrics


class Pairs(mtmetrics.PluginMetric):
    metric = "pairs"
    needs_pair = True

    def open(self):
        self.source, self.target = self.lang_pair.split("-")

    def segment_scores(self, predictions, **texts):
        return [len(text) for text in predictions]
"""
    load_plugin(write(tmp_path / "pairs.py", text))
    [row] = json.loads(mtmetrics("list", "pairs", "--format", "json")[1])["metrics"]
    assert row["offline"] == "yes"
    assert load("pairs", lang_pair="de-en").score(["ab"], sources=["x"]).system == 2


def test_a_plugin_takes_a_preset_and_needs_none(mtmetrics, no_plugins, bundle, tmp_path):
    text = """
import dataclasses

import mtmetrics


class Lengths(mtmetrics.PluginMetric):
    metric = "lengths"
    sides = ("source", "reference")

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(mtmetrics.Settings):
        factor: float = mtmetrics.option(1.0, "factor", preset="factor", signed="factor")

    def segment_scores(self, predictions, **texts):
        return [self.settings.factor * len(text) for text in predictions]
"""
    load_plugin(write(tmp_path / "lengths.py", text))
    score = {
        "score": "[score]\nfactor = 2.0\nagainst = 'reference'\n",
        "options": "[options]\nfactor = 2.0\n",
    }
    assert load("lengths", against="source").score(["abc"], sources=["x"]).segments.tolist() == [
        3.0
    ]
    for name, content in score.items():
        folder = write(tmp_path / name / "preset.toml", content).parent
        against = None if name == "score" else "reference"
        scorer = load("lengths", str(folder), against=against)
        assert scorer.score(["abc"], references=["x"]).segments.tolist() == [6.0]
        assert "|against:reference|factor:2.0|" in scorer.signature
        assert str(MetricSpec.parse(f"lengths:{folder}")) == f"lengths:{folder}"
