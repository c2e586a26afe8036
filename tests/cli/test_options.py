"""Options of several commands, by way of ``mtmetrics score``."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import write

Score = Callable[..., tuple[int, str, str]]


@pytest.fixture
def score(mtmetrics: Score, tiny_preset: Path, tmp_path: Path) -> Score:
    rows = "Das Haus ist klein.\tthe house is small.\nIch sehe die Katze.\ti see a tree.\n"
    file = write(tmp_path / "rows.tsv", rows)
    return lambda *argv: mtmetrics("score", "--preset", tiny_preset, "--lp", "de-en", "--parts", *argv, file)


def test_embedding_cache_and_devices_change_no_score(score: Score, tmp_path: Path) -> None:
    cache = ("--embedding-cache", tmp_path / "cache")
    plain, written, read = (score("--device", "cpu", *argv) for argv in ((), cache, cache))
    assert plain[0] == 0
    assert plain == written == read
    assert score("--device", "cpu,cpu")[0] == 0
    # A damaged file is one line.
    [path] = (tmp_path / "cache").iterdir()
    path.write_bytes(path.read_bytes()[:5000])
    code, out, err = score(*cache)
    assert (code, out) == (1, "")
    assert err.startswith(f"mtmetrics: embedding cache {path}: damaged (")
    assert err.endswith("; delete this file and run again\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize("device", ["cuda:99", "99", "cpu,abacus", "cpu,"])
def test_a_device_that_is_not_there_is_bad_usage(score: Score, device: str) -> None:
    code, _, err = score("--device", device)
    assert code == 2
    assert "cannot be used here" in err
