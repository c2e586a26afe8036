"""The order of places, and which repository and revision a name means on the Hub."""

from pathlib import Path

import httpx2
import pytest
from huggingface_hub import errors

from mtmetrics.artifacts.catalog import HubSource, hub_errors, hub_source, is_on_hub, local_folder
from mtmetrics.artifacts.models import model_folder
from mtmetrics.artifacts.presets import load_preset
from mtmetrics.errors import ArtifactError, InputError

CATALOG = """
[thing]
kind = "preset"
repository = "org/thing"
revision = "v1.2.0"
bundled = false
[thing.files]
"preset.toml" = "00"

[elsewhere]
kind = "maps"
bundled = false
[elsewhere.origin]
url = "https://example.org"
commit = "c0ffee"
licence = "MIT"
"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The three places on this machine; the first is the working directory."""
    found = {name: tmp_path / name for name in ("here", "own", "bundled")}
    for place in found.values():
        place.mkdir()
    monkeypatch.chdir(found["here"])
    monkeypatch.setenv("MTMETRICS_ARTIFACTS", str(found["own"]))
    monkeypatch.delenv("MTMETRICS_NAMESPACE", raising=False)
    monkeypatch.setattr("mtmetrics.artifacts.catalog.bundled_artifacts", lambda: found["bundled"])
    (found["bundled"] / "catalog.toml").write_text(CATALOG)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    return found


def put(place: Path, name: str, file: str, content: str = "") -> Path:
    (place / name).mkdir(exist_ok=True)
    (place / name / file).write_text(content)
    return place / name


def test_the_order_of_places(places):
    bundled = put(places["bundled"], "model", "config.json")
    put(places["bundled"], "model", "model.safetensors")
    assert model_folder("model") == bundled
    own = put(places["own"], "model", "config.json")
    put(places["own"], "model", "model.safetensors")
    assert model_folder("model") == own
    # A folder that holds something else is no obstacle where another place has the artifact.
    here = put(places["here"], "model", "notes.txt")
    assert model_folder("model") == own
    (here / "config.json").write_text("")
    (here / "model.safetensors").write_text("")
    assert model_folder("model") == Path("model")
    assert local_folder("model", "preset.toml") is None
    put(places["own"], "mine", "preset.toml", 'metric = "bertr"\n')
    assert load_preset("bertr", "mine").folder == places["own"] / "mine"


@pytest.mark.parametrize(
    ("metric", "preset", "kind", "message"),
    [
        ("sentsim", "mine", ArtifactError, "a preset for metric 'bertr', not 'sentsim'"),
        ("bertr", "yours", InputError, "unknown preset 'yours' for metric bertr"),
        ("bertr", "thing", ArtifactError, r"the Hub repository org/thing \(revision v1.2.0\): not whole in the cache"),
        ("bertr", "x/us", ArtifactError, r"the Hub repository x/us \(revision main\): not whole in the cache"),
    ],
)
def test_presets_that_cannot_be_had(places, metric, preset, kind, message):
    put(places["own"], "mine", "preset.toml", 'metric = "bertr"\n')
    with pytest.raises(kind, match=message):
        load_preset(metric, preset, local_files_only=True)


def test_the_message_names_every_place(places):
    with pytest.raises(ArtifactError) as caught:
        model_folder("someone/model", revision="v3", local_files_only=True)
    own = f"in {places['own']} (MTMETRICS_ARTIFACTS)"
    for part in ("as a folder", own, "as a bundled artifact", "someone/model (revision v3)"):
        assert part in str(caught.value)


def test_repositories_and_revisions(places, monkeypatch):
    assert hub_source("thing") == HubSource("org/thing", "v1.2.0", {"preset.toml": "00"})
    assert hub_source("thing", "v1.2.0").files
    # Nothing is known of the files of another revision.
    assert hub_source("thing", "main") == HubSource("org/thing", "main", {})
    assert hub_source("someone/model") == HubSource("someone/model", None, {})
    monkeypatch.setenv("MTMETRICS_NAMESPACE", "mirror")
    assert hub_source("thing") == HubSource("mirror/thing", "v1.2.0", {"preset.toml": "00"})
    assert hub_source("thing", namespace="other").repository == "other/thing"
    assert hub_source("someone/model").repository == "someone/model"


def test_what_is_worth_asking_the_hub_for(places):
    assert is_on_hub("thing", "preset")
    assert not is_on_hub("thing", "maps")
    assert not is_on_hub("elsewhere", "maps")
    assert is_on_hub("someone/model", "preset")
    (places["here"] / "someone" / "model").mkdir(parents=True)
    for name in ("someone/model", "plain", "/tmp/x", "./x", "a/b/c", ""):
        assert not is_on_hub(name, "preset"), name


REFUSED = httpx2.Response(500, request=httpx2.Request("GET", "http://127.0.0.1/api"))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (errors.HFValidationError("a/b/c"), "org/x: that is no valid name of a repository"),
        (errors.LocalTokenNotFoundError("hf_secret"), "org/x: no token for the Hub; log in by 'hf auth login'"),
        (errors.HfHubHTTPError("500\nmore", response=REFUSED), "org/x: the Hub refused (500): 500"),
        (httpx2.ConnectError("refused"), "org/x: the Hub at HUB could not be asked: ConnectError: refused"),
        (OSError(28, "No space left"), "org/x: OSError: [Errno 28] No space left"),
    ],
)
def test_what_the_client_raises_becomes_one_line(error, message):
    from huggingface_hub import constants

    with pytest.raises(ArtifactError) as caught, hub_errors("org/x"):
        raise error
    assert str(caught.value).startswith(message.replace("HUB", constants.ENDPOINT))
    assert "\n" not in str(caught.value)
    assert "hf_secret" not in str(caught.value)
