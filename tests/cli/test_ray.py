"""Arguments for workers on a cluster, which have working folders of their own."""

from pathlib import Path
from typing import Any

import pytest

from mtmetrics.choosing.parallel_text import Filtering
from mtmetrics.cli.ray import absolute_paths, absolute_preset
from mtmetrics.errors import InputError
from mtmetrics.scorers.spec import MetricSpec

Given = dict[str, Any]


def test_paths_hold_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("maps", "xmoverscore", "cpu", "de-en", "source", "clp"):
        Path(name).mkdir()
    given = {"metric": "xmoverscore", "preset": "mini", "maps": "maps", "layer": 4, "device": "cpu"}
    given |= {"local_files_only": True, "lang_pair": "de-en", "against": "source", "map": "clp"}
    assert absolute_paths(given) == given | {"maps": f"{tmp_path}/maps"}


def test_presets_hold_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mini", "made/de-en"):
        Path(name).mkdir(parents=True)
    names = [
        absolute_preset(MetricSpec("xmoverscore", preset), "de-en")
        for preset in ("mini", "made/{lp}", None)
    ]
    assert names == ["mini", f"{tmp_path}/made/de-en", None]


def test_filter_leaves_the_blocks_of_another_run(
    mtmetrics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtmetrics.cli.filter.column_names", lambda path: ["source", "target"])
    (tmp_path / "_run.json").write_text("{}")
    argv = ["pairs.jsonl", "--lp", "de-en", "--top", "1", "--engine", "ray", "--out", tmp_path]
    code, _, err = mtmetrics("filter", *argv, "--metric", "source_length")
    assert code == 2
    assert "holds the blocks of another run" in err


def test_filter_hands_over_paths(
    mtmetrics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Filtering, Given, Given]] = []

    def blocks(
        args: Any, engine: Any, make_worker: Any, texts: Any, settings: Given, out: str
    ) -> list[Given]:
        seen.append((make_worker.args[0], make_worker.args[2], settings))
        raise InputError("seen")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mtmetrics.cli.filter.run_blocks", blocks)
    monkeypatch.setattr("mtmetrics.cli.filter.column_names", lambda path: ["source", "target"])
    Path("presets/de-en").mkdir(parents=True)
    Path("idf").touch()
    argv = [
        "pairs.jsonl",
        "--lp",
        "de-en",
        "--top",
        "1",
        "--engine",
        "ray",
        "--out",
        "kept",
    ]
    assert mtmetrics("filter", *argv, "--metric", "xmoverscore:presets/{lp}:weights=idf")[0] == 2
    [(asked, pool, settings)] = seen
    [spec] = asked.specs.values()
    assert (spec.preset, dict(spec.options)["weights"]) == (
        f"{tmp_path}/presets/de-en",
        f"{tmp_path}/idf",
    )
    assert pool == settings["pool"]
