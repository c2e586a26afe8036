"""Options of several commands, by way of ``mtmetrics score``."""

from pathlib import Path

import pytest

from mtmetrics.cli.main import main


def score(preset: Path, folder: Path, *argv: str) -> int:
    rows = folder / "rows.tsv"
    rows.write_text("Das Haus ist klein.\tthe house is small.\nIch sehe die Katze.\ti see a tree.\n", encoding="utf-8")
    return main(["score", "--preset", str(preset), "--lp", "de-en", "--parts", *argv, str(rows)])


def test_embedding_cache_and_devices_change_no_score(
    tiny_preset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = []
    for argv in ([], ["--embedding-cache", str(tmp_path / "cache")], ["--embedding-cache", str(tmp_path / "cache")]):
        assert score(tiny_preset, tmp_path, "--device", "cpu", *argv) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert score(tiny_preset, tmp_path, "--device", "cpu,cpu") == 0


def test_a_damaged_embedding_cache_is_one_line(
    tiny_preset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = ["--embedding-cache", str(tmp_path / "cache")]
    assert score(tiny_preset, tmp_path, *cache) == 0
    (path,) = (tmp_path / "cache").iterdir()
    path.write_bytes(path.read_bytes()[:5000])
    capsys.readouterr()
    assert score(tiny_preset, tmp_path, *cache) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"mtmetrics: embedding cache {path}: damaged (")
    assert output.err.endswith("; delete this file and run again\n")
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("device", ["cuda:99", "99", "cpu,abacus", "cpu,"])
def test_a_device_that_is_not_there_is_bad_usage(
    tiny_preset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], device: str
) -> None:
    assert score(tiny_preset, tmp_path, "--device", device) == 2
    assert "cannot be used here" in capsys.readouterr().err
