"""Everything this package publishes, through the real client: dry run, push, second push, changes,
two at once, an interruption."""

import json
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from hub_client import COMMANDS, Client, Process, as_steps, finished
from loopback import LoopbackHub

from mtmetrics.artifacts.catalog import catalog
from mtmetrics.io.checksums import sha256_file
from mtmetrics.layout import COMPARE, bundled_artifacts, metric_names, metric_scripts

WRITES = ("POST", "PUT", "DELETE")


def writes(hub: LoopbackHub) -> list[str]:
    return [request for request in hub.requests if request.startswith(WRITES)]


def bundled() -> list[str]:
    return [name for name, entry in catalog().items() if entry.bundled]


def test_every_artifact_and_every_space_is_pushed(published):
    for code, out, err in published.dry_run:
        assert code == 0, err
        assert "create, " in out
        assert "nothing was sent; --execute does it" in err
    assert published.after_dry_run == 0
    assert [code for code, _, _ in published.pushes] == [0, 0]
    recorded = tomllib.loads(published.catalog.read_text(encoding="utf-8"))
    assert list(recorded) == bundled()
    for name in bundled():
        own = bundled_artifacts() / name
        files = {
            path.relative_to(own).as_posix(): path.read_bytes()
            for path in own.rglob("*")
            if path.is_file()
        }
        there = published[f"org/{name}"].files("v2.0.0")
        assert there == files | {".gitattributes": there[".gitattributes"]}
        assert (recorded[name]["repository"], recorded[name]["revision"]) == (
            f"org/{name}",
            "v2.0.0",
        )
        assert recorded[name]["files"] == catalog()[name].files
    for name in (*metric_names(), COMPARE):
        files = published[f"spaces/org/{name}"].files("v2.0.0")
        own = [path.name for path in (metric_scripts() / name).iterdir() if path.is_file()]
        assert set(files) == {*own, "mtmetrics/__init__.py", ".gitattributes"}
        for file in ("app.py", "requirements.txt"):
            assert files[file] == (metric_scripts() / name / file).read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A preset that a user made, with work of its own that is nobody's business."""
    made = tmp_path / "my-uscore"
    shutil.copytree(bundled_artifacts() / "mini-lm-en", made / "lm")
    (made / "lm" / "README.md").rename(made / "README.md")
    (made / "preset.toml").write_text('metric = "uscore"\n')
    (made / "work").mkdir()
    (made / "work" / "mined.tsv").write_text("private\ttext\n")
    return made


def test_only_what_changed_is_sent(client, hub, folder, tmp_path):
    push = ["artifacts", "push", folder, "--namespace", "org", "--private", "--execute"]
    shown = [*push, "--format", "json"]
    [(code, out, err), second] = client.commands(shown, shown)
    assert code == 0
    repository = hub["org/my-uscore"]
    assert repository.private
    assert "work/mined.tsv" not in repository.files()
    assert "lm/model.safetensors" in repository.files()
    assert (
        'kind = "preset"\nrepository = "org/my-uscore"\nrevision = "v2.0.0"\nbundled = false' in err
    )
    assert "hf_test" not in out + err
    first = len(json.loads(out)["changes"])
    assert first == 10
    assert json.loads(second[1]) == json.loads(out) | {"changes": [], "bytes": 0}
    assert len(repository.commits) == 2  # the Hub's own, and ours
    hub.requests.clear()
    (folder / "preset.toml").write_text('metric = "uscore"\ndescription = "changed"\n')
    (folder / "lm" / "training.json").unlink()
    [(_, out, _), (code, again, _)] = client.commands(
        [*push, "--catalog", tmp_path / "catalog.toml"], push
    )
    assert out.splitlines()[0] == "org/my-uscore (model, 9 files, v2.0.1): update, 0.0 MB to send"
    size = len(repository.files("v2.0.0")["lm/training.json"])
    assert out.splitlines()[1:] == [f"  - lm/training.json  {size}", "  ~ preset.toml  42"]
    assert (code, again.splitlines()) == (
        0,
        ["org/my-uscore (model, 9 files, v2.0.1): nothing to do, 0.0 MB to send"],
    )
    assert [request.split("/")[-2] for request in writes(hub)] == ["preupload", "commit", "tag"]
    assert "lm/training.json" not in repository.files("v2.0.1")
    assert (
        tomllib.loads((tmp_path / "catalog.toml").read_text())["my-uscore"]["revision"] == "v2.0.1"
    )


def start_push(client: Client, folder: Path, catalog_file: Path) -> Process:
    push = ["artifacts", "push", folder, "--namespace", "org", "--execute", "--format", "json"]
    return client.start(COMMANDS, as_steps([*push, "--catalog", catalog_file]))


def test_an_interrupted_upload_leaves_nothing_and_goes_on(client, hub, folder, tmp_path):
    hub.stall = f"/lfs/{sha256_file(folder / 'lm' / 'model.safetensors')}"
    process = start_push(client, folder, tmp_path / "catalog.toml")
    assert hub.stalled.wait(60)
    process.kill()
    assert list(hub["org/my-uscore"].files()) == [".gitattributes"]
    assert not (tmp_path / "catalog.toml").exists()
    hub.stall = None
    # Two at once: one finishes it, the other finds nothing to do or tries again.
    rivals = [
        start_push(client, folder, tmp_path / f"catalog-{number}.toml") for number in range(2)
    ]
    assert [json.loads(finished(process))[0] for process in rivals] == [0, 0]
    repository = hub["org/my-uscore"]
    assert len(repository.commits) == 2
    assert repository.tags == {"v2.0.0": repository.branches["main"]}
    assert len(repository.files()) == 11
    assert (tmp_path / "catalog-0.toml").read_text() == (tmp_path / "catalog-1.toml").read_text()


def test_refusals(client, hub, folder):
    asked = {"hf_wrong": "org", "": "org", "hf_test": "others"}
    push = ["artifacts", "push", str(folder), "--execute", "--namespace"]
    steps = (
        {"arguments": [*push, name], "environment": {"HF_TOKEN": token}}
        for token, name in asked.items()
    )
    results = client.commands(*steps)
    assert [code for code, _, _ in results] == [1, 1, 1]
    unknown = (
        "the Hub refused (401): it does not know the token, or there is none; log in by 'hf "
        "auth login'"
    )
    assert unknown in results[0][2]
    assert unknown in results[1][2]
    assert "others/my-uscore: the Hub refused (403): the token may not write there" in results[2][2]
    assert all("hf_wrong" not in err and err.count("\n") == 1 for _, _, err in results)
    assert hub.repositories == {}


def test_an_incomplete_card_is_refused_before_the_hub_is_asked(folder, capsys, monkeypatch):
    from mtmetrics.cli.main import main

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")
    assert main(["artifacts", "push", str(folder), "--namespace", "org"]) == 1
    assert "language is missing; tags is missing" in capsys.readouterr().err
