"""The files of a folder or a Space that are published, and those that never are; the push itself is tested in
``tests/hub``."""

import runpy
import shutil
import subprocess
import tomllib
import unittest.mock
import zipfile
from pathlib import Path

import httpx2
import pytest
from huggingface_hub.errors import HfHubHTTPError

from mtmetrics.artifacts import publish
from mtmetrics.artifacts.catalog import catalog
from mtmetrics.artifacts.publish import (
    artifact_folder,
    artifact_kind,
    artifact_publication,
    build_wheel,
    published_files,
    space_publication,
)
from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.layout import bundled_artifacts


def test_kinds_are_those_of_the_catalog() -> None:
    for name, entry in catalog().items():
        if entry.bundled:
            assert artifact_kind(artifact_folder(name)) == entry.kind


def test_an_mbart_is_a_translation_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["MBartForConditionalGeneration"]}')
    assert artifact_kind(tmp_path) == "translation-model"


def test_a_configuration_may_name_no_architecture(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": null}')
    assert artifact_kind(tmp_path) == "encoder"


def test_work_and_hidden_files_stay_here(tmp_path: Path) -> None:
    private = ("work/mined.tsv", "part/work/x", ".git/config", ".token", "__pycache__/a.pyc")
    for file in ("a.json", "part/model.safetensors", *private):
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
    with pytest.raises(
        ArtifactError, match=r"artifact: b\.json: links to files elsewhere are not published"
    ):
        published_files(folder)


def test_formats_that_run_code_are_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(bundled_artifacts() / "mini-lm-en", tmp_path / "lm")
    assert artifact_publication(folder, "org").repository == "org/lm"
    (folder / "pytorch_model.bin").write_bytes(b"")
    (folder / "old.PKL").write_bytes(b"")
    message = r"old\.PKL, pytorch_model\.bin: formats that may run code are not published"
    with pytest.raises(ArtifactError, match=message):
        artifact_publication(folder, "org")


def test_what_is_no_artifact(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match="nowhere: neither a folder nor a bundled artifact; those are: mini-encoder, ",
    ):
        artifact_folder("nowhere")
    with pytest.raises(ArtifactError, match="so it is no artifact"):
        artifact_kind(tmp_path)


def test_only_a_wheel_of_this_package(tmp_path: Path) -> None:
    other = tmp_path / "other-1.0-py3-none-any.whl"
    other.write_bytes(b"")
    for wheel in (other, tmp_path / "mtmetrics-1.1.0-py3-none-any.whl"):
        with pytest.raises(InputError, match="a wheel of this package"):
            space_publication("xmoverscore", "org", wheel, tmp_path)


def test_a_wheel_that_cannot_be_read(tmp_path: Path) -> None:
    wheel = tmp_path / "mtmetrics-1.1.0-py3-none-any.whl"
    wheel.write_bytes(b"no archive")
    with pytest.raises(InputError, match="cannot be unpacked"):
        space_publication("xmoverscore", "org", wheel, tmp_path)


def test_evaluate_is_told_where_the_package_is(tmp_path: Path) -> None:
    from evaluate.loading import get_imports

    wheel = tmp_path / "mtmetrics-1.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("mtmetrics/__init__.py", "")
    url = "git+https://git.example.org/mtmetrics@v1.1.0"
    for package_url, told in ((None, "mtmetrics"), (url, url)):
        script = space_publication("xmoverscore", "org", wheel, tmp_path, package_url).files[
            "xmoverscore.py"
        ]
        assert ("library", "mtmetrics", told, None) in [
            (*found, None)[:4] for found in get_imports(str(script))
        ]
    with pytest.raises(InputError, match="without spaces"):
        space_publication("xmoverscore", "org", wheel, tmp_path, "my package")


def test_a_space_refuses_a_package_that_is_older_than_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "mtmetrics-1.10.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("mtmetrics/__init__.py", "")
    url = "git+https://git.example.org/mtmetrics@v1.10.0"
    for package_url, advice in (
        (url, f"pip install --upgrade {url}"),
        (None, "install that version or a newer one"),
    ):
        script = space_publication("xmoverscore", "org", wheel, tmp_path, package_url).files[
            "xmoverscore.py"
        ]
        for version in ("1.10.0", "2.0.0rc1"):
            monkeypatch.setattr("mtmetrics.__version__", version)
            assert runpy.run_path(str(script))["XMoverScore"].metric_name == "xmoverscore"
        monkeypatch.setattr("mtmetrics.__version__", "1.9.3")
        with pytest.raises(ImportError) as refused:
            runpy.run_path(str(script))
        told = f"mtmetrics 1.9.3 is installed, and this metric was made with 1.10.0; {advice}"
        assert str(refused.value) == told


def test_a_space_carries_no_models(tmp_path: Path) -> None:
    wheel = tmp_path / "mtmetrics-1.1.0-py3-none-any.whl"
    own = bundled_artifacts() / "catalog.toml"
    held = {
        "__init__.py": "",
        "hub_artifacts/catalog.toml": own.read_text(),
        "hub_artifacts/m/model.safetensors": "x",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in held.items():
            archive.writestr(f"mtmetrics/{path}", content)
    files = space_publication("xmoverscore", "org", wheel, tmp_path / "scratch").files
    assert {path for path in files if "/" in path} == {
        "mtmetrics/__init__.py",
        "mtmetrics/hub_artifacts/catalog.toml",
    }
    there = tomllib.loads(files["mtmetrics/hub_artifacts/catalog.toml"].read_text())
    here = tomllib.loads(own.read_text())
    assert there.keys() == here.keys()
    for name, entry in there.items():
        assert entry.get("files") == here[name].get("files")
        assert not entry["bundled"]
        assert {entry[key].split("/")[0] for key in ("repository", "mirror") if key in entry} == {
            "org"
        }


def test_a_wheel_needs_sources_and_a_build_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {}

    def failing(
        command: list[str], env: dict[str, str], **_: object
    ) -> subprocess.CompletedProcess:
        tree = Path(command[-1])
        files = {path.name for path in tree.iterdir()}
        seen.update(
            epoch=env["SOURCE_DATE_EPOCH"], files=files, stale=list(tree.rglob("*.egg-info"))
        )
        return subprocess.CompletedProcess(command, 1, "", "no setuptools\n")

    monkeypatch.setattr(publish.subprocess, "run", failing)
    with pytest.raises(
        MTMetricsError, match="the wheel cannot be built: no setuptools; pass --wheel FILE"
    ):
        build_wheel(tmp_path / "scratch")
    assert seen["files"] == set(publish._SOURCES)
    assert seen["stale"] == []
    assert int(seen["epoch"]) > 0
    monkeypatch.setattr(publish, "source_tree", lambda: None)
    with pytest.raises(InputError, match="installed without its sources"):
        build_wheel(tmp_path / "other")


@pytest.mark.parametrize("status", [409, 412])
def test_what_collides_with_another_push_is_tried_again(status: int) -> None:
    answer = httpx2.Response(status, request=httpx2.Request("POST", "http://127.0.0.1/api"))
    collision = HfHubHTTPError("x", response=answer)

    def attempts(failures: int) -> str:
        return publish._repeated(
            "org/x", unittest.mock.Mock(side_effect=[*[collision] * failures, "done"])
        )

    assert attempts(publish._ATTEMPTS - 1) == "done"
    with pytest.raises(ArtifactError, match="org/x: others kept changing it meanwhile; try again"):
        attempts(publish._ATTEMPTS)
    answer.status_code = 500
    with pytest.raises(HfHubHTTPError):
        attempts(1)


@pytest.mark.parametrize(
    ("tags", "version", "following"),
    [
        ([], "1.1.0", "v1.1.0"),
        ([], "0.3.0", "v1.0.0"),
        (["v1.0.4"], "1.1.0.dev1", "v1.1.0"),
        (["v1.1.0", "v1.1.1"], "1.1.0", "v1.1.2"),
        (["v2.0.0"], "1.1.0", "v2.0.1"),
    ],
)
def test_versions_count_up(
    monkeypatch: pytest.MonkeyPatch, tags: list[str], version: str, following: str
) -> None:
    monkeypatch.setattr(publish, "__version__", version)
    assert publish._next_tag(dict.fromkeys(tags, "c0ffee")) == following
