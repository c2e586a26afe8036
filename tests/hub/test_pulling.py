"""A pushed artifact is pulled, verified, loaded and used, by this package and by the libraries that
know the Hub."""

import json
import shutil
from pathlib import Path

import pytest
from hub_client import COMMANDS, Client, as_steps, finished
from loopback import LoopbackHub, Repository

from mtmetrics.artifacts.catalog import catalog
from mtmetrics.layout import bundled_artifacts

SCORES = """
import os, socket, sys
from pathlib import Path
import mtmetrics.layout
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.models.pool import ModelPool

def show(place, **options):
    scorer = load_scorer("xmoverscore", preset="mini", lang_pair="de-en", pool=ModelPool(device="cpu", **options))
    result = scorer.score(["The house is small."], sources=["Das Haus ist klein."])
    print(place, repr(result.system), result.signature)

def refuse(*_):
    raise AssertionError("the network was asked")

show("bundled")
mtmetrics.layout._PACKAGE = Path(sys.argv[1])  # a package that bundles nothing
show("hub")
socket.socket.connect = refuse
show("cache", local_files_only=True)
os.environ["MTMETRICS_ARTIFACTS"] = sys.argv[2]
os.environ["MTMETRICS_NAMESPACE"] = "nobody"
show("folder")
"""


SPACE = """
import sys
from pathlib import Path
import mtmetrics.layout
from mtmetrics.page.offers import offers, pull_models

mtmetrics.layout._PACKAGE = Path(sys.argv[1])
for metric in (None, "esim", "uscore"):
    if metric:
        pull_models(metric)
    offers.cache_clear()
    print(sorted({offer.spec.metric for offer in offers()} & {"bertr", "esim", "uscore"}))
"""


@pytest.fixture
def client(published: LoopbackHub, tmp_path: Path) -> Client:
    """A user without a token and with an empty cache."""
    return Client(published, tmp_path / "home")


@pytest.fixture
def bare_package(tmp_path: Path) -> Path:
    """A package folder with the catalog alone."""
    folder = tmp_path / "bare" / "mtmetrics"
    (folder / "hub_artifacts").mkdir(parents=True)
    shutil.copyfile(bundled_artifacts() / "catalog.toml", folder / "hub_artifacts" / "catalog.toml")
    return folder


def on_hub() -> list[str]:
    return [name for name, entry in catalog().items() if entry.repository]


def test_pull_verify_and_score(client, bare_package, tmp_path):
    out = tmp_path / "artifacts"
    pull = ["artifacts", "pull", "--all", "--namespace", "org"]
    steps = ([*pull, "--out", out], [*pull, "--out", out], ["artifacts", "verify", out], pull)
    into, again, verified, cached = client.commands(*steps, HF_TOKEN="")
    assert [code for code, _, _ in (into, again, verified, cached)] == [0, 0, 0, 0]
    assert list(json.loads(into[1])) == on_hub()
    for name, pulled in json.loads(into[1]).items():
        assert pulled["folder"] == str(out / name)
        assert (pulled["repository"], pulled["revision"]) == (f"org/{name}", "v2.0.0")
        assert pulled["fetched"] == sorted(catalog()[name].files)
    assert all(
        pulled["fetched"] == []
        for report in (again, cached)
        for pulled in json.loads(report[1]).values()
    )
    assert len(verified[1].splitlines()) == len(on_hub())
    assert not any(path.name.startswith(".") for path in out.rglob("*"))
    rows = client.run(
        SCORES, str(bare_package), str(out), HF_TOKEN="", MTMETRICS_NAMESPACE="org"
    ).splitlines()
    assert [row.split()[0] for row in rows] == ["bundled", "hub", "cache", "folder"]
    assert len({row.partition(" ")[2] for row in rows}) == 1


def test_a_space_fetches_its_models(client, bare_package):
    client.hub.requests.clear()
    rows = client.run(SPACE, str(bare_package), HF_TOKEN="", MTMETRICS_NAMESPACE="org").splitlines()
    # The network of ESIM comes with its encoder, and BERTR needs no other model.
    assert rows == ["[]", "['bertr', 'esim']", "['bertr', 'esim', 'uscore']"]
    fetched = {request.split("/")[2] for request in client.hub.requests if "/resolve/" in request}
    # Of UScore's presets, one needs a translation model, a map and adapters.
    assert {"mini-mbart-de-en", "mini-maps", "mini-contrastive"} <= fetched
    assert "bilstm-mini" not in fetched


def test_an_interrupted_download_goes_on_in_two_processes(client, published, tmp_path):
    published.stall = "model.safetensors"
    published.stalled.clear()
    pull = ["artifacts", "pull", "mini-lm-en", "--namespace", "org"]
    process = client.start(COMMANDS, as_steps(pull))
    assert published.stalled.wait(60)
    process.kill()
    published.stall = None
    [offline] = client.commands(pull, HF_HUB_OFFLINE="1")
    assert offline[0] == 1
    # Not whole in the cache; older clients give what is there, of which a file is found missing.
    assert "the Hub repository org/mini-lm-en (revision v2.0.0)" in offline[2]
    # Two at once, into one cache and one folder.
    both = [
        client.start(COMMANDS, as_steps(pull, [*pull, "--out", str(tmp_path / "out")]))
        for _ in range(2)
    ]
    assert [
        [json.loads(line)[0] for line in finished(process).splitlines()] for process in both
    ] == [[0, 0], [0, 0]]
    verified, again = client.commands(
        ["artifacts", "verify", str(tmp_path / "out")], pull, HF_HUB_OFFLINE="1"
    )
    assert (verified[0], again[0]) == (0, 0)
    assert json.loads(again[1])["mini-lm-en"]["fetched"] == []


def test_what_is_not_as_the_catalog_says_is_refused(client, published):
    def pull(namespace: str) -> list[str]:
        return ["artifacts", "pull", "mini-lm-en", "--namespace", namespace]

    published.tampered = "model.safetensors"
    [(code, out, err)] = client.commands(pull("org"))
    published.tampered = None
    assert (code, out) == (1, "")
    damaged = (
        "model.safetensors of the Hub repository org/mini-lm-en (revision v2.0.0) is damaged or "
        "was changed: its "
    )
    assert damaged + "sha256 is" in err
    assert err.count("\n") == 1
    whole = published["org/mini-lm-en"]
    without = {
        path: content
        for path, content in whole.commits[whole.oid("main")].items()
        if path != "config.json"
    }
    for namespace, tag in (("untagged", "v0.9.0"), ("partial", "v2.0.0")):
        repository = Repository("models", f"{namespace}/mini-lm-en")
        repository.tags[tag] = repository.commit("main", without)
        published.repositories["models", repository.name] = repository
    again, untagged, partial, nobody = client.commands(
        *map(pull, ("org", "untagged", "partial", "nobody"))
    )
    # What was damaged did not stay in the cache.
    assert json.loads(again[1])["mini-lm-en"]["fetched"] == ["model.safetensors"]
    assert [code for code, _, _ in (untagged, partial, nobody)] == [1, 1, 1]
    assert "untagged/mini-lm-en (revision v2.0.0): the Hub has no such revision" in untagged[2]
    assert (
        "partial/mini-lm-en (revision v2.0.0) does not hold config.json, which the catalog lists"
        in partial[2]
    )
    assert "nobody/mini-lm-en (revision v2.0.0): the Hub has no such repository" in nobody[2]


LIBRARIES = """
from pathlib import Path
import evaluate
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer
from mtmetrics.artifacts.models import model_folder, pretrained
from mtmetrics.errors import ArtifactError
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.registry import load_scorer

def same(one, other):
    one, other = one.state_dict(), other.state_dict()
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)

tokenizer, encoder = pretrained("AutoModel", model_folder("org/mini-encoder"), torch.float32)
encoder.push_to_hub("org/auto")
tokenizer.push_to_hub("org/auto")
copy = AutoModel.from_pretrained("org/auto", dtype=torch.float32)
print("AutoModel:", same(encoder, copy), len(AutoTokenizer.from_pretrained("org/auto")))

sentences = SentenceTransformer("org/auto", device="cpu", model_kwargs={"dtype": torch.float32})
sentences.push_to_hub("org/sentences")
copy = SentenceTransformer("org/sentences", device="cpu")
print("SentenceTransformer:", same(sentences, copy), copy.encode(["the house"]).shape)

regressor, fingerprint = ModelPool().regressor("org/esim-mini")
regressor.save(Path("saved"))
copy, again = ModelPool().regressor("saved")
print("Regressor:", same(regressor, copy), fingerprint == again, regressor.architecture)

print("TokenEncoder:", TokenEncoder("org/mini-encoder").fingerprint == TokenEncoder("mini-encoder").fingerprint)
for name, revision in (("org/none", None), ("org/mini-encoder", "v9")):
    try:
        TokenEncoder(name, revision=revision)
    except ArtifactError as error:
        print("refused:", error)

texts = {"sources": ["Das Haus ist klein."], "predictions": ["The house is small."]}
result = evaluate.load("org/xmoverscore", "mini", device="cpu").compute(**texts, lang_pair="de-en")
own = load_scorer("xmoverscore", preset="mini", lang_pair="de-en").score(**texts)
print("evaluate:", abs(result["mean_score"] - own.system) < 1e-6, result["signature"] == own.signature)
"""


def test_what_other_libraries_make_of_it(client, published, tmp_path):
    """`AutoModel` and `SentenceTransformer` there and back, a regressor, and ``evaluate.load`` of a
    Space in an empty folder."""
    (tmp_path / "empty").mkdir()
    lines = [
        line for line in client.run(LIBRARIES, cwd=tmp_path / "empty").splitlines() if ": " in line
    ]
    auto, sentences, regressor, tokens, absent, unknown, metric = lines
    assert auto == "AutoModel: True 84000"
    assert sentences == "SentenceTransformer: True (1, 384)"
    assert regressor == "Regressor: True True esim"
    assert tokens == "TokenEncoder: True"
    assert absent.startswith(
        "refused: the model 'org/none' was not found as a folder, as a bundled artifact, in the "
        "cache"
    )
    assert "the Hub has no such repository" in absent
    assert (
        "the Hub repository org/mini-encoder (revision v9): the Hub has no such revision" in unknown
    )
    assert "model.safetensors" in published["org/sentences"].files()
    assert metric == "evaluate: True True"
    script = "GET /spaces/org/xmoverscore/resolve/main/xmoverscore.py"
    assert any(request.startswith(script) for request in published.requests)
