"""Which files of a folder are published, and what is never."""

import shutil
from pathlib import Path

import pytest

from mtmetrics.artifacts.catalog import catalog
from mtmetrics.artifacts.publishing import artifact_folder, artifact_kind, artifact_publication, published_files
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.layout import bundled_artifacts


def test_kinds_are_those_of_the_catalog() -> None:
    for name, entry in catalog().items():
        if entry.bundled:
            assert artifact_kind(artifact_folder(name)) == entry.kind


def test_work_and_hidden_files_stay_here(tmp_path: Path) -> None:
    for file in (
        "a.json",
        "part/model.safetensors",
        "work/mined.tsv",
        "part/work/x",
        ".git/config",
        ".token",
        "__pycache__/a.pyc",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("x")
    assert list(published_files(tmp_path)) == ["a.json", "part/model.safetensors"]


def test_links_to_files_elsewhere_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "artifact"
    folder.mkdir()
    (folder / "a.json").write_text("x")
    (folder / "same.json").symlink_to("a.json")
    assert list(published_files(folder)) == ["a.json", "same.json"]
    (folder / "b.json").symlink_to(tmp_path / "secret")
    with pytest.raises(ArtifactError, match=r"artifact: b\.json: links to files elsewhere are not published"):
        published_files(folder)


def test_formats_that_run_code_are_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(bundled_artifacts() / "mini-lm-en", tmp_path / "lm")
    assert artifact_publication(folder, "org").repository == "org/lm"
    (folder / "pytorch_model.bin").write_bytes(b"")
    (folder / "old.PKL").write_bytes(b"")
    with pytest.raises(
        ArtifactError, match=r"old\.PKL, pytorch_model\.bin: formats that may run code are not published"
    ):
        artifact_publication(folder, "org")


def test_what_is_no_artifact(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: neither a folder nor a bundled artifact; those are: mini-encoder, "):
        artifact_folder("nowhere")
    with pytest.raises(ArtifactError, match="so it is no artifact"):
        artifact_kind(tmp_path)
