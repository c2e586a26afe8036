"""Loopback Hubs: an empty one, and one that holds everything this package publishes."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_client import Client
from loopback import LoopbackHub, serving

from mtmetrics.layout import COMPARE, metric_names


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with serving() as server:
        yield server


@pytest.fixture
def client(hub: LoopbackHub, tmp_path: Path) -> Client:
    return Client(hub, tmp_path / "home")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file named like a wheel of this package; nothing here installs it."""
    path = tmp_path_factory.mktemp("wheel") / "mtmetrics-2.0.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("mtmetrics/__init__.py"), "")
    return path


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Iterator[LoopbackHub]:
    """A Hub with every bundled artifact and every Space, pushed by the command line after a dry
    run."""
    folder = tmp_path_factory.mktemp("published")
    artifacts = [
        "artifacts",
        "push",
        "--all",
        "--namespace",
        "org",
        "--catalog",
        folder / "catalog.toml",
    ]
    spaces = ["space", "push", *metric_names(), COMPARE, "--namespace", "org", "--wheel", wheel]
    with serving() as server:
        server.catalog = folder / "catalog.toml"
        user = Client(server, folder / "home")
        server.dry_run = user.commands(artifacts, spaces)
        server.after_dry_run = len(server.repositories)
        server.pushes = user.commands([*artifacts, "--execute"], [*spaces, "--execute"])
        yield server
