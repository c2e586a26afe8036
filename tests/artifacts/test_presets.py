"""Which presets a metric has."""

from pathlib import Path

import pytest

from mtmetrics.artifacts import presets
from mtmetrics.artifacts.catalog import CatalogEntry


def test_presets_belong_to_the_metric_that_they_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bilstm-attention-x"
    folder.mkdir()
    (folder / "preset.toml").write_text('metric = "bilstm_attention"\n')
    entry = CatalogEntry(folder.name, "preset", "org/x", "main", True, {}, None)
    monkeypatch.setattr(presets, "catalog", lambda: {folder.name: entry})
    monkeypatch.setattr(presets, "local_folder", lambda name, *_: tmp_path / name)
    assert presets.preset_names("bilstm_attention") == ["bilstm-attention-x", "mini", "paper"]
    assert presets.preset_names("bilstm") == ["mini", "paper"]
