"""Fixtures of the tests of artifacts."""

from pathlib import Path

import pytest

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
    for module in ("catalog", "places"):
        monkeypatch.setattr(
            f"mtmetrics.artifacts.{module}.bundled_artifacts", lambda: found["bundled"]
        )
    (found["bundled"] / "catalog.toml").write_text(CATALOG)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    return found
