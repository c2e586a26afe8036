"""Spaces: what they refuse; the push itself is tested in ``tests/hub``."""

import subprocess
from pathlib import Path

import pytest

from mtmetrics.artifacts import space
from mtmetrics.artifacts.space import build_wheel, space_publication
from mtmetrics.errors import InputError, MTMetricsError


def test_only_a_wheel_of_this_package(tmp_path: Path) -> None:
    other = tmp_path / "other-1.0-py3-none-any.whl"
    other.write_bytes(b"")
    for wheel in (other, tmp_path / "mtmetrics-1.1.0-py3-none-any.whl"):
        with pytest.raises(InputError, match="a wheel of this package"):
            space_publication("xmoverscore", "org", wheel, tmp_path)


def test_a_wheel_needs_sources_and_a_build_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def failing(command: list[str], env: dict[str, str], **_: object) -> subprocess.CompletedProcess:
        tree = Path(command[-1])
        seen.update(
            epoch=env["SOURCE_DATE_EPOCH"],
            files={path.name for path in tree.iterdir()},
            stale=list(tree.rglob("*.egg-info")),
        )
        return subprocess.CompletedProcess(command, 1, "", "no setuptools\n")

    monkeypatch.setattr(space.subprocess, "run", failing)
    with pytest.raises(MTMetricsError, match="the wheel cannot be built: no setuptools; pass --wheel FILE"):
        build_wheel(tmp_path / "scratch")
    assert seen["files"] == set(space._SOURCES)
    assert seen["stale"] == []
    assert int(seen["epoch"]) > 0
    monkeypatch.setattr(space, "source_tree", lambda: None)
    with pytest.raises(InputError, match="installed without its sources"):
        build_wheel(tmp_path / "other")
