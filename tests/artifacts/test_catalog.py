"""The catalog: checksums of what is bundled, and what verification finds."""

import dataclasses
import tomllib
from pathlib import Path

import pytest

from mtmetrics.artifacts import catalog as module
from mtmetrics.artifacts.catalog import (
    CatalogEntry,
    Origin,
    catalog,
    entry_toml,
    find_problems,
    update_catalog,
)
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.checksums import sha256_file
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
        assert list(find_problems(name)) == []
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
        list(find_problems("other"))
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
    assert list(find_problems("thing")) == [f"thing/{name}.bin: {damaged}" for name in "ab"]


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


def test_no_file_of_the_old_entry_is_left(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    old = dataclasses.replace(ENTRY, files={"b": "2", "old": "3"})
    text = entry_toml(old).replace('"old"', '# A comment.\n"old"')
    path.write_text(text)
    with pytest.raises(ArtifactError, match="the entry two cannot be replaced there .*comment"):
        update_catalog(path, ENTRY)
    assert path.read_text() == text


def test_an_entry_is_added(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    assert update_catalog(path, ENTRY)
    assert path.read_text() == entry_toml(ENTRY)
    three = dataclasses.replace(ENTRY, name="three.1")
    assert update_catalog(path, three)
    assert path.read_text() == f"{entry_toml(ENTRY)}\n{entry_toml(three)}"
    assert list(tomllib.loads(path.read_text())) == ["two", "three.1"]


def test_an_entry_is_read_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "bundled_artifacts", lambda: tmp_path)
    path = tmp_path / "catalog.toml"
    assert update_catalog(path, ENTRY)
    assert catalog() == {ENTRY.name: ENTRY}
    assert not update_catalog(path, ENTRY)
    # A change makes no second entry.
    changed = dataclasses.replace(ENTRY, files={"a/b": "22"})
    assert update_catalog(path, changed)
    assert catalog() == {ENTRY.name: changed}


def test_every_entry_with_a_repository_can_be_written() -> None:
    path = bundled_artifacts() / "catalog.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    for name, entry in catalog().items():
        if entry.repository:
            assert tomllib.loads(entry_toml(entry)) == {name: tables[name]}


def test_a_catalog_of_another_layout_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text('two = {kind = "encoder"}\n')
    with pytest.raises(ArtifactError, match="the entry two cannot be replaced there"):
        update_catalog(path, ENTRY)
    assert path.read_text() == 'two = {kind = "encoder"}\n'
