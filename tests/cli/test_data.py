"""``mtmetrics data``: sets on a loopback server, and a test set of mt-metrics-eval."""

import functools
import hashlib
import json
import os
import pickle

import pytest
from helpers import refused

from mtmetrics.io.checksums import git_blob_sha1
from mtmetrics.judgements.eval_set import EvalSet
from mtmetrics.judgements.judged import read_judged
from mtmetrics.judgements.public_sets import datasets

FILES = {
    "a.tsv": b"lp\tsource\ttranslation\thuman\n",
    "b.tsv": b"lp\tsource\ttranslation\thuman\nde-en\ta\tb\t1\n",
}
SUMS = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
ALL = "".join(f"{SUMS[name]}  {name}\n" for name in FILES)


@pytest.fixture
def run(mtmetrics):
    return functools.partial(mtmetrics, "data")


@pytest.fixture
def served(origin, tmp_path, monkeypatch):
    """A registry with one set of two files, of which the checksum of the first is known, and an
    empty cache."""
    origin.files = {f"/c0ffee/{name}": data for name, data in FILES.items()}
    path = tmp_path / "datasets.toml"
    known = f'"a.tsv" = {{ url = "{origin.url}/c0ffee/a.tsv", sha256 = "{SUMS["a.tsv"]}" }}\n'
    unknown = f'"b.tsv" = {{ url = "{origin.url}/c0ffee/b.tsv" }}\n'
    path.write_text(
        f'[small]\nwhat = "two files"\nlicence = "CC0"\n[small.files]\n{known}{unknown}'
    )
    monkeypatch.setattr("mtmetrics.judgements.public_sets.REGISTRY", path)
    monkeypatch.setattr("huggingface_hub.utils._cache_assets.HF_ASSETS_CACHE", tmp_path / "assets")
    return origin


def test_list(run, served):
    code, out, err = run("list")
    assert (code, err) == (0, "")
    header, _, row = out.splitlines()
    assert header.split() == ["NAME", "FILES", "WITH", "CHECKSUM", "LICENCE", "WHAT"]
    assert row.split() == ["small", "2", "1", "CC0", "two", "files"]
    [shown] = json.loads(run("list", "--format", "json")[1])["data"]
    assert shown["urls"] == [f"{served.url}/c0ffee/{name}" for name in FILES]


def test_pull_then_offline(run, served, tmp_path, monkeypatch):
    folder = tmp_path / "assets" / "mtmetrics" / "data" / "small"
    code, out, err = run("pull", "small")
    done = {"folder": str(folder), "fetched": ["a.tsv", "b.tsv"], "present": []}
    assert (code, json.loads(out)) == (0, {"small": done})
    recorded = f"that of what came is recorded in {folder / 'SHA256SUMS'}"
    assert err == f"mtmetrics: warning: small: no checksum was known for b.tsv; {recorded}\n"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES | {
        "SHA256SUMS": ALL.encode()
    }
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    code, out, err = run("pull", "small")
    assert (code, err, json.loads(out)["small"]["present"]) == (0, "", ["a.tsv", "b.tsv"])
    assert len(served.requests) == 2
    (folder / "b.tsv").unlink()
    refused(
        run("pull", "small"),
        f"small: b.tsv is not in {folder}, and HF_HUB_OFFLINE forbids to fetch it\n",
        1,
    )
    refused(run("pull", "wmt98"), "data 'wmt98': must be one of small\n")


def test_nothing_is_pulled_before_all_names_are_checked(run, served):
    refused(run("pull", "small", "wmt98"), "data 'wmt98': must be one of small\n")
    assert served.requests == []


def test_a_second_download_must_be_the_first_again(run, served, tmp_path):
    folder = tmp_path / "mine" / "small"
    assert run("pull", "small", "--out", tmp_path / "mine")[0] == 0
    (folder / "b.tsv").unlink()
    served.faults = ["tampered"]
    refused(
        run("pull", "small", "--out", tmp_path / "mine"),
        f"expected {SUMS['b.tsv']}; nothing was kept",
        1,
    )
    assert sorted(path.name for path in folder.iterdir()) == ["SHA256SUMS", "a.tsv"]
    code, out, err = run("pull", "small", "--out", tmp_path / "mine")
    assert (code, err, json.loads(out)["small"]["fetched"]) == (0, "", ["b.tsv"])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a.tsv", "it is damaged or another one"),
        ("b.tsv", "its checksum is not known"),
        ("SHA256SUMS", "line 1: a sha256"),
    ],
)
def test_files_of_others_are_left_alone(run, served, tmp_path, name, why):
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / name).write_text("mine\n")
    result = run("pull", "small", "--out", tmp_path)
    refused(result, why)
    assert str(tmp_path / "small" / name) in result[2]
    assert served.requests == []
    assert (tmp_path / "small" / name).read_text() == "mine\n"


def test_a_file_known_by_the_hash_of_git(run, served, tmp_path):
    path = tmp_path / "datasets.toml"
    known = (
        f'"b.tsv" = {{ url = "{served.url}/c0ffee/b.tsv", git_blob = '
        f'"{git_blob_sha1(FILES["b.tsv"])}" }}\n'
    )
    path.write_text(f'[small]\nwhat = "a file"\nlicence = "CC0"\n[small.files]\n{known}')
    served.faults = ["tampered"]
    refused(run("pull", "small", "--out", tmp_path), "with the git blob hash", 1)
    assert run("list")[1].splitlines()[2].split()[:3] == ["small", "1", "1"]
    for fetched in (["b.tsv"], []):
        code, out, err = run("pull", "small", "--out", tmp_path)
        assert (code, err, json.loads(out)["small"]["fetched"]) == (0, "", fetched)
    (tmp_path / "small" / "SHA256SUMS").unlink()
    assert json.loads(run("pull", "small", "--out", tmp_path)[1])["small"]["present"] == ["b.tsv"]
    (tmp_path / "small" / "b.tsv").write_text("mine\n")
    refused(
        run("pull", "small", "--out", tmp_path),
        "b.tsv exists already and it is damaged or another one",
    )


def test_files_below_one_address_lie_as_they_do_there(run, served, tmp_path):
    served.files = {"/c0ffee/sources/a.tsv": FILES["a.tsv"], "/c0ffee/b.tsv": FILES["b.tsv"]}
    known = (
        f'"sources/a.tsv" = {{ bytes = 27, sha256 = "{SUMS["a.tsv"]}" }}\n"c.tsv" = {{ url = '
        '"b.tsv", bytes = 39 }\n'
    )
    head = (
        f'[tree]\nwhat = "a folder"\nlicence = "CC0"\nbase = "{served.url}/c0ffee/"\n[tree.files]\n'
    )
    (tmp_path / "datasets.toml").write_text(head + known)
    tree = datasets()["tree"]
    assert (tree.size(tree.files), served.requests) == (66, [])
    code, out, _ = run("pull", "tree", "--out", tmp_path)
    assert (code, json.loads(out)["tree"]["fetched"]) == (0, ["sources/a.tsv", "c.tsv"])
    assert (tmp_path / "tree" / "sources" / "a.tsv").read_bytes() == FILES["a.tsv"]
    assert (tmp_path / "tree" / "c.tsv").read_bytes() == FILES["b.tsv"]
    assert json.loads(run("pull", "tree", "--out", tmp_path)[1])["tree"]["present"] == [
        "sources/a.tsv",
        "c.tsv",
    ]


def pickled(table, name, origin, tmp_path, data=None):
    """A registry with a pickle of judged segments, served as it is, or as other `data`."""
    whole = pickle.dumps(table, protocol=2)
    origin.files = {f"/c0ffee/{name}.pkl": whole if data is None else data}
    known = (
        f'sha256 = "{hashlib.sha256(origin.files[f"/c0ffee/{name}.pkl"]).hexdigest()}", pickled '
        "= true"
    )
    file = f'"de-en.jsonl" = {{ url = "{origin.url}/c0ffee/{name}.pkl", {known} }}\n'
    text = f'[cased]\nwhat = "a pickle"\nlicence = "none"\n[cased.files]\n{file}'
    (tmp_path / "datasets.toml").write_text(text, encoding="utf-8")


JUDGED = [["A small house.", "-0.5"], ["Hello.", 1]]
TABLE = {
    1: ["deen", "Hallo", "Hello", [], []],
    2: ["deen", "Ein kleines Häuschen.", "A little house.", JUDGED, JUDGED],
}


def test_a_pickle_becomes_json_lines(run, served, mtmetrics, tmp_path):
    pickled(TABLE, "deen", served, tmp_path)
    code, out, err = run("pull", "cased", "--out", tmp_path)
    assert (code, err, json.loads(out)["cased"]["fetched"]) == (0, "", ["de-en.jsonl"])
    assert sorted(path.name for path in (tmp_path / "cased").iterdir()) == [
        "SHA256SUMS",
        "de-en.jsonl",
    ]
    [judged] = read_judged(tmp_path / "cased")
    assert (judged.lang_pair, judged.sources) == ("de-en", ["Ein kleines Häuschen."] * 2)
    assert judged.judgements["human"].tolist() == [-0.5, 1.0]
    assert json.loads(run("pull", "cased", "--out", tmp_path)[1])["cased"]["present"] == [
        "de-en.jsonl"
    ]
    assert len(served.requests) == 1


class Runs:
    """Code that a pickle must not run."""

    def __reduce__(self):
        return os.mkdir, ("made-by-a-pickle",)


@pytest.mark.parametrize(
    ("table", "kept", "message"),
    [
        (TABLE, slice(0, -20), "no table of judged segments"),
        (TABLE, slice(0, 0), "no table of judged segments"),
        (
            {1: Runs()},
            slice(None),
            "it names posix.mkdir, and only texts, numbers and tables of them are read",
        ),
    ],
)
def test_a_pickle_that_is_damaged_or_names_code_is_refused(
    run, served, tmp_path, monkeypatch, table, kept, message
):
    monkeypatch.chdir(tmp_path)
    pickled(table, "deen", served, tmp_path, pickle.dumps(table, protocol=2)[kept])
    refused(run("pull", "cased", "--out", tmp_path), message, 1)
    assert list((tmp_path / "cased").glob("*.jsonl")) == []
    assert not (tmp_path / "made-by-a-pickle").exists()
    assert list((tmp_path / "cased").glob("*.pkl")) == []


def test_score_by_sources(run, mtmetrics, tiny_preset, wmt99):
    score = ("score", wmt99, "--name", "XM", "--preset", tiny_preset, "--lp", "de-en")
    code, out, _ = run(*score)
    assert code == 0
    [row] = json.loads(out)
    folder = wmt99 / "metric-scores" / "de-en"
    assert row["files"] == [str(folder / f"XM-src.{level}.score") for level in ("seg", "sys")]
    assert row["signature"].startswith("xmoverscore|")
    pair = EvalSet.read(wmt99, "de-en")
    written = pair.metric_scores()["XM-src"]
    assert written.keys() == pair.outputs.keys() == row["systems"].keys()
    assert row["systems"] == pytest.approx(
        {system: sum(values) / 2 for system, values in written.items()}
    )
    # What is written is what `score` gives for the same lines.
    texts = (wmt99 / "sources" / "de-en.txt", wmt99 / "system-outputs" / "de-en" / "A.txt")
    target = wmt99 / "x.json"
    options = ("--lp", "de-en", "--preset", tiny_preset, "--full-precision", "--out", target)
    assert mtmetrics("score", "-s", texts[0], "-t", texts[1], *options)[0] == 0
    assert written["A"] == json.loads(target.read_text())["scores"]
    refused(run(*score), "XM-src.seg.score exists already; choose another name or pass --overwrite")
    assert run(*score, "--overwrite")[0] == 0
    # Another name of the same languages is no second pair.
    code, out, _ = run(*score, "deu-eng", "--overwrite")
    assert (code, [row["lang_pair"] for row in json.loads(out)]) == (0, ["de-en"])


def test_score_by_a_reference(run, wmt99):
    score = (
        "score",
        wmt99,
        "--name",
        "SS",
        "--metric",
        "sentsim",
        "--preset",
        "mini",
        "--lp",
        "de-en",
    )
    refused(run(*score), "both sources and references are given")
    code, out, _ = run(*score, "--setting", "mt-ref", "--reference", "refB")
    assert code == 0
    assert json.loads(out)[0]["systems"].keys() == {"A", "B.0", "refA"}
    assert EvalSet.read(wmt99, "de-en").metric_scores().keys() == {"SS-refB", "chrF-refA"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lp", "ru-en"], "no language pair ru-en; there are: de-en, en-fi"),
        (["--metric", "guess"], "metric 'guess': must be one of"),
        (
            ["--lp", "de-en", "--reference", "refB"],
            "--reference refB: xmoverscore compares with the sources here",
        ),
        (["--lp", "de-en", "--reference", "refC"], "no reference 'refC' for de-en"),
    ],
)
def test_score_is_refused_before_anything_is_loaded(run, wmt99, arguments, message):
    refused(
        run("score", wmt99, "--name", "XM", "--preset", "none-of-that-name", *arguments), message
    )
