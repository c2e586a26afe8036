"""The catalog: checksums of what is bundled, what verification finds, and what a name means on the
Hub."""

import dataclasses
import tomllib
from pathlib import Path

import httpx2
import pytest
from huggingface_hub import errors

from mtmetrics.artifacts import catalog as module
from mtmetrics.artifacts.catalog import (
    CatalogEntry,
    HubSource,
    Origin,
    catalog,
    entry_toml,
    hub_errors,
    hub_source,
    is_on_hub,
    update_catalog,
    verify,
)
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.atomic import sha256_file
from mtmetrics.layout import bundled_artifacts

WEIGHTS = {
    "mini-encoder": 56_000_000,
    "mini-lm-en": 8_000_000,
    "mini-mbart-de-en": 19_000_000,
    "esim-mini": 14_000_000,
}


def test_everything_bundled_is_in_the_catalog_and_whole() -> None:
    bundled = {name for name, entry in catalog().items() if entry.bundled}
    assert bundled == {path.name for path in bundled_artifacts().iterdir() if path.is_dir()}
    for name in bundled:
        assert list(verify(name)) == []
        assert (bundled_artifacts() / name / "README.md").is_file()


def test_sizes() -> None:
    files = [path for path in bundled_artifacts().rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 98_000_000
    for name, limit in WEIGHTS.items():
        assert (
            0
            < sum(
                path.stat().st_size for path in (bundled_artifacts() / name).glob("*.safetensors")
            )
            <= limit
        )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "bundled_artifacts", lambda: tmp_path)
    artifact = tmp_path / "thing"
    artifact.mkdir()
    (artifact / "a.bin").write_bytes(b"one")
    (artifact / "b.bin").write_bytes(b"two")
    head = (
        '[thing]\nkind = "maps"\nrepository = "x/thing"\nrevision = "main"\nbundled = '
        "true\n[thing.files]\n"
    )
    lines = [f'"{name}" = "{sha256_file(artifact / name)}"' for name in ("a.bin", "b.bin")]
    (tmp_path / "catalog.toml").write_text(head + "\n".join(lines))
    return tmp_path


def test_unknown_artifacts_and_a_broken_catalog(folder: Path) -> None:
    with pytest.raises(InputError, match="unknown artifact 'other'; there are: thing"):
        list(verify("other"))
    (folder / "catalog.toml").write_text("[thing]\nkind = 1\n")
    with pytest.raises(ArtifactError, match="cannot be read"):
        catalog()


def test_an_origin_instead_of_a_hub_repository(folder: Path) -> None:
    text = (
        (folder / "catalog.toml")
        .read_text()
        .replace('repository = "x/thing"\nrevision = "main"\n', "")
    )
    table = '\n[thing.origin]\nurl = "https://example.org/raw"\nlicence = "MIT"\n'
    (folder / "catalog.toml").write_text(text + table)
    with pytest.raises(ArtifactError, match="cannot be read .*commit"):
        catalog()
    (folder / "catalog.toml").write_text(text + table + 'commit = "c0ffee"\n')
    assert catalog()["thing"].origin == Origin("https://example.org/raw", "c0ffee", "MIT")
    # Its checksums are git blob hashes, which the sha256 of these files are not.
    damaged = "damaged, its git blob hash is not the catalog's"
    assert list(verify("thing")) == [f"thing/{name}.bin: {damaged}" for name in "ab"]


ENTRY = CatalogEntry("two", "encoder", "org/two", "v1.0.1", True, {"b": "22", "a/c d": "33"})


def test_an_entry_is_replaced_and_all_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    first = '[two-more]\nkind = "maps"\n\n[two-more.files]\n"a" = "0"\n'
    old = entry_toml(CatalogEntry("two", "encoder", "x/two", "main", True, {"a": "1", "b": "2"}))
    last = '# Of three.\n[three]\nkind = "maps"\n'
    path.write_text(f"{first}\n{old}\n{last}")
    assert update_catalog(path, ENTRY)
    assert path.read_text() == f"{first}\n{entry_toml(ENTRY)}\n{last}"
    assert not update_catalog(path, ENTRY)
    about = {"kind": "encoder", "repository": "org/two", "revision": "v1.0.1", "bundled": True}
    assert tomllib.loads(path.read_text())["two"] == about | {"files": ENTRY.files}


def test_an_entry_is_added(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    assert update_catalog(path, ENTRY)
    assert path.read_text() == entry_toml(ENTRY)
    three = dataclasses.replace(ENTRY, name="three.1")
    assert update_catalog(path, three)
    assert path.read_text() == f"{entry_toml(ENTRY)}\n{entry_toml(three)}"
    assert list(tomllib.loads(path.read_text())) == ["two", "three.1"]


def test_a_catalog_of_another_layout_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text('two = {kind = "encoder"}\n')
    with pytest.raises(ArtifactError, match="the entry two cannot be replaced there"):
        update_catalog(path, ENTRY)
    assert path.read_text() == 'two = {kind = "encoder"}\n'


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
        (
            errors.LocalTokenNotFoundError("hf_secret"),
            "org/x: no token for the Hub; log in by 'hf auth login'",
        ),
        (errors.HfHubHTTPError("500\nmore", response=REFUSED), "org/x: the Hub refused (500): 500"),
        (
            httpx2.ConnectError("refused"),
            "org/x: the Hub at HUB could not be asked: ConnectError: refused",
        ),
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
