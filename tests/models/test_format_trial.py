"""The trial of number formats, and its cache."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from mtmetrics.errors import ArtifactError
from mtmetrics.models import format_trial as module
from mtmetrics.models.format_trial import FormatTrial, format_trial

MEASURED = FormatTrial(3.0, 2.0)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """An empty cache folder of the machine, and trials of a set result: the list grows with
    each."""
    measured: list[str] = []

    def measure() -> FormatTrial:
        measured.append("measured")
        return MEASURED

    def folder(group: str, name: str) -> Path:
        path = tmp_path / group / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    monkeypatch.setattr(module, "_measure", measure)
    monkeypatch.setattr(module, "assets_folder", folder)
    format_trial.cache_clear()
    yield measured
    format_trial.cache_clear()


def stored(tmp_path: Path) -> list[Path]:
    return [*tmp_path.rglob("trial.json")]


def test_one_trial_per_process_and_per_machine(runs: list[str], tmp_path: Path) -> None:
    assert format_trial() == format_trial() == MEASURED
    assert len(runs) == 1
    format_trial.cache_clear()  # as in another process
    assert format_trial() == MEASURED
    assert len(runs) == 1
    assert len(stored(tmp_path)) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[]", b'{"float32": 1}', b'{"float32": 0, "bfloat16": 1}',
     b'{"float32": "fast", "bfloat16": 1}', b'{"float32": NaN, "bfloat16": 1}'],
)  # fmt: skip
def test_a_damaged_cache_is_measured_again_and_mended(
    runs: list[str], tmp_path: Path, content: bytes
) -> None:
    format_trial()
    [path] = stored(tmp_path)
    path.write_bytes(content)
    format_trial.cache_clear()
    assert format_trial() == MEASURED
    assert len(runs) == 2
    assert json.loads(path.read_bytes()) == MEASURED._asdict()


def other_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "99.0")


def other_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": "new"}, raising=False)


def other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 99)


@pytest.mark.parametrize("change", [other_torch, other_processor, other_threads])
def test_another_processor_or_torch_has_a_trial_of_its_own(
    runs: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[pytest.MonkeyPatch], None],
) -> None:
    format_trial()
    change(monkeypatch)
    format_trial.cache_clear()
    format_trial()
    assert len(runs) == len(stored(tmp_path)) == 2


@pytest.mark.parametrize("error", [ArtifactError("none"), PermissionError("read-only")])
def test_without_a_cache_folder_it_is_measured(
    runs: list[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def no_folder(*_: object) -> Path:
        raise error

    monkeypatch.setattr(module, "assets_folder", no_folder)
    assert format_trial() == MEASURED
    assert len(runs) == 1


def test_ties_go_to_float32_and_are_not_warned_of() -> None:
    for bfloat16, favours, refutes in ((0.5, True, False), (0.95, False, False), (2, False, True)):
        trial = FormatTrial(1.0, bfloat16)
        assert (trial.favours_bfloat16, trial.rules_out_bfloat16) == (favours, refutes)


def test_a_clock_that_is_too_coarse_ends_in_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "process_time", lambda: 0.0)
    trial = module._measure()
    assert trial.speedup == 1
    assert not trial.favours_bfloat16
    assert not trial.rules_out_bfloat16


def test_a_real_trial_measures_both_and_leaves_random_numbers_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    trial = module._measure()
    assert torch.equal(torch.rand(3), expected)
    assert all(0 < seconds < 60 for seconds in trial)
