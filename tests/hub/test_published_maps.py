"""The authors' maps as a repository: made, pushed, taken one file at a time; the authors' own where
that fails."""

import shutil
from pathlib import Path

import pytest
from conftest import authors_catalog
from hub_client import Client
from loopback import LoopbackHub

PROGRAM = """
import os, sys, warnings
from pathlib import Path
import mtmetrics.layout
from mtmetrics.cli.main import main
from mtmetrics.matching.remapping_files import load_map
from mtmetrics.models.token_encoder import TokenEncoder
import mtmetrics.matching.remapping_files as files

mtmetrics.layout._PACKAGE = Path(sys.argv[1])
model = sys.argv[2]

def show(place, artifact="xmoverscore-published", **options):
    found = load_map(artifact, "de-en", "clp", TokenEncoder(model, layer=3), **options)
    print(place, found.fingerprint, flush=True)

for number, step in enumerate(sys.argv[3:]):
    command, _, rest = step.partition(" ")
    if command == "main":
        print("exit", main(rest.split()), flush=True)
    else:
        show(rest or "authors", *([command] if "/" in command else []), local_files_only=rest == "cache")
"""


@pytest.fixture
def model(tiny_encoder, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_encoder, tmp_path / "models" / "bert-base-multilingual-cased")


def test_maps_are_published_and_pulled(hub: LoopbackHub, origin, model, tmp_path) -> None:
    package = tmp_path / "package" / "mtmetrics"
    authors_catalog(origin, package / "hub_artifacts", 'mirror = "nobody/xmoverscore-maps"\n')
    out = tmp_path / "xmoverscore-maps"

    def run(home: str, *steps: str) -> tuple[list[str], str]:
        argv = (str(package), str(model), *steps)
        process = Client(hub, tmp_path / home).start(PROGRAM, *argv, MTMETRICS_NAMESPACE="org")
        code = process.wait()
        lines, messages = process.outputs()
        assert code == 0, messages
        return [
            line
            for line in lines.splitlines()
            if line.startswith(("exit", "authors", "hub", "cache"))
        ], messages

    make = f"main artifacts import-published --out {out}"
    push = (
        f"main artifacts push {out} --namespace org --execute --catalog "
        f"{tmp_path / 'recorded.toml'}"
    )
    before, said = run("first", "load")
    assert "fetched the published map europarl-v7.de-en.2k.3.BAM" in said
    assert (
        "not from the Hub (layer-3/de-en.clp.safetensors of the Hub repository org/xmoverscore-maps"
        in said
    )
    assert run("second", make, push)[0] == ["exit 0", "exit 0"]
    asked = len(origin.requests)
    assert "layer-3/en-ru.umd.safetensors" in hub["org/xmoverscore-maps"].files()
    card = hub["org/xmoverscore-maps"].files()["README.md"].decode()
    assert "| 3 | `clp` | de-en en-ru |" in card
    assert "Apache-2.0" in card
    # Made again, nothing is fetched, and nothing is new to push.
    assert run("second", make)[0] == ["exit 0"]
    after, said = run("third", "load hub", "load cache", "org/xmoverscore-maps hub")
    assert [line.split()[0] for line in after] == ["hub", "cache", "hub"]
    assert {line.split()[1] for line in (*before, *after)} == {before[0].split()[1]}
    assert "fetched the published map" not in said
    assert len(origin.requests) == asked
    # Another map of that name is not taken.
    shutil.copyfile(out / "layer-3/en-ru.clp.safetensors", out / "layer-3/de-en.clp.safetensors")
    assert run("second", push)[0] == ["exit 0"]
    again, said = run("fourth", "load")
    assert again == before
    assert (
        "of the Hub repository org/xmoverscore-maps (revision main) is not the map that is made of"
        in said
    )
