"""The order of places, and which repository and revision a name means on the Hub."""

from pathlib import Path

import pytest

from mtmetrics.artifacts import catalog as catalog_module
from mtmetrics.artifacts import resolve
from mtmetrics.artifacts.models import model_folder
from mtmetrics.artifacts.presets import load_preset
from mtmetrics.artifacts.resolve import HubSource, hub_source, is_on_hub, local_folder
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
    for module in (resolve, catalog_module):
        monkeypatch.setattr(module, "bundled_artifacts", lambda: found["bundled"])
    (found["bundled"] / "catalog.toml").write_text(CATALOG)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    return found


def put(place: Path, name: str, file: str, content: str = "") -> Path:
    (place / name).mkdir(exist_ok=True)
    (place / name / file).write_text(content)
    return place / name


def test_the_order_of_places(places: dict[str, Path]) -> None:
    bundled = put(places["bundled"], "model", "config.json")
    assert model_folder("model") == bundled
    own = put(places["own"], "model", "config.json")
    assert model_folder("model") == own
    # A folder that holds something else is no obstacle where another place has the artifact.
    here = put(places["here"], "model", "notes.txt")
    assert model_folder("model") == own
    (here / "config.json").write_text("")
    assert model_folder("model") == Path("model")
    assert local_folder("model", "preset.toml") is None


def test_presets_come_from_the_same_places(places: dict[str, Path]) -> None:
    put(places["own"], "mine", "preset.toml", 'metric = "bertr"\n')
    assert load_preset("bertr", "mine").folder == places["own"] / "mine"
    with pytest.raises(ArtifactError, match="a preset for metric 'bertr', not 'sentsim'"):
        load_preset("sentsim", "mine")
    with pytest.raises(InputError, match="unknown preset 'yours' for metric bertr"):
        load_preset("bertr", "yours")
    with pytest.raises(
        ArtifactError, match=r"the Hub repository org/thing \(revision v1.2.0\): not whole in the cache"
    ):
        load_preset("bertr", "thing", local_files_only=True)
    with pytest.raises(
        ArtifactError, match=r"the Hub repository someone/uscore-de \(revision main\): not whole in the cache"
    ):
        load_preset("bertr", "someone/uscore-de", local_files_only=True)


def test_the_message_names_every_place(places: dict[str, Path]) -> None:
    with pytest.raises(ArtifactError) as caught:
        model_folder("someone/model", revision="v3", local_files_only=True)
    message = str(caught.value)
    for part in (
        "as a folder",
        f"in {places['own']} (MTMETRICS_ARTIFACTS)",
        "as a bundled artifact",
        "someone/model (revision v3)",
    ):
        assert part in message


def test_repositories_and_revisions(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub_source("thing") == HubSource("org/thing", "v1.2.0", {"preset.toml": "00"})
    assert hub_source("thing", "v1.2.0").files
    # Nothing is known of the files of another revision.
    assert hub_source("thing", "main") == HubSource("org/thing", "main", {})
    assert hub_source("someone/model") == HubSource("someone/model", None, {})
    monkeypatch.setenv("MTMETRICS_NAMESPACE", "mirror")
    assert hub_source("thing") == HubSource("mirror/thing", "v1.2.0", {"preset.toml": "00"})
    assert hub_source("thing", namespace="other").repository == "other/thing"
    assert hub_source("someone/model").repository == "someone/model"


def test_what_is_worth_asking_the_hub_for(places: dict[str, Path]) -> None:
    assert is_on_hub("thing", "preset")
    assert not is_on_hub("thing", "maps")
    assert not is_on_hub("elsewhere", "maps")
    assert is_on_hub("someone/model", "preset")
    (places["here"] / "someone" / "model").mkdir(parents=True)
    for name in ("someone/model", "plain", "/tmp/x", "./x", "a/b/c", ""):
        assert not is_on_hub(name, "preset"), name
