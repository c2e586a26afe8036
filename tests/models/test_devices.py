"""Names of devices and number formats."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import mtmetrics
from mtmetrics.errors import InputError
from mtmetrics.models import devices
from mtmetrics.models.devices import (
    number_format,
    pick_device,
    pick_devices,
    warn_of_slow_dtype,
)
from mtmetrics.models.format_trial import FormatTrial
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.registry import load_scorer

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("device", "count"),
    [
        ("cpu", 1),
        ("cpu,cpu", 2),
        (" cpu ,cpu,cpu ", 3),
        (["cpu"], 1),
        (("cpu", "cpu"), 2),
        (CPU, 1),
        ([CPU, "cpu"], 2),
    ],
)
def test_one_or_several(device: object, count: int) -> None:
    assert pick_devices(device) == [CPU] * count


def test_auto_is_one_device() -> None:
    assert len(pick_devices("auto")) == 1
    assert pick_devices("auto,cpu") == [pick_device("auto"), CPU]


def test_numbers_are_cuda_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(
        torch, "zeros", lambda size, device: seen.append(device) or torch.empty(size)
    )
    assert (
        pick_devices([0, "1"])
        == pick_devices("0, 1")
        == [torch.device("cuda:0"), torch.device("cuda:1")]
    )
    assert pick_devices(2) == [torch.device("cuda:2")]
    assert len(seen) == 5


@pytest.mark.parametrize(
    "device",
    [
        "tpu9",
        "",
        "cpu,",
        "cpu;cpu",
        "meta",
        "cuda:99",
        99,
        "99",
        -1,
        True,
        1.5,
        None,
        ["cpu", None],
        ["cpu,cpu"],
    ],
)
def test_what_is_not_there_is_refused(device: object) -> None:
    with pytest.raises(
        InputError, match=r"device .* cannot be used here \(.+\); this machine has cpu"
    ) as raised:
        pick_devices(device)
    assert "\n" not in str(raised.value)


def test_no_device_at_all() -> None:
    with pytest.raises(InputError, match=r"device \[\]: names no device"):
        pick_devices([])


NO_AMX: dict[str, bool] = {"avx512_bf16": True, "amx_bf16": False}


@pytest.fixture
def set_processor(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Makes the processor one with a set speed in bfloat16: capabilities, times as fast as float32
    -> the list of trials, which grows with each."""

    def set_it(speedup: float, capabilities: dict[str, bool] = NO_AMX) -> list[str]:
        trials: list[str] = []

        def trial() -> FormatTrial:
            trials.append("trial")
            return FormatTrial(float32=speedup, bfloat16=1.0)

        monkeypatch.setattr(devices, "format_trial", trial)
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
        return trials

    return set_it


@pytest.mark.parametrize(
    ("speedup", "expected"), [(2.0, "bf16"), (1.11, "bf16"), (1.05, "fp32"), (0.6, "fp32")]
)
def test_auto_is_the_clearly_faster_format_and_the_signature_says_so(
    tiny_preset: Path, set_processor: Callable[..., list[str]], speedup: float, expected: str
) -> None:
    set_processor(speedup)
    options = {"lang_pair": "de-en", "device": "cpu"}
    assert (
        f"|dtype:{expected}|"
        in mtmetrics.load("xmoverscore", str(tiny_preset), dtype="auto", **options).signature
    )
    assert "|dtype:fp32|" in mtmetrics.load("xmoverscore", str(tiny_preset), **options).signature


def test_amx_needs_no_trial(set_processor: Callable[..., list[str]]) -> None:
    trials = set_processor(0.1, {"amx_bf16": True})
    assert number_format("auto", "cpu").name == "bfloat16"
    warn_of_slow_dtype("bfloat16", "cpu")
    assert trials == []


def test_formats_that_the_user_names_need_no_trial_unless_it_is_bfloat16(
    set_processor: Callable[..., list[str]], recwarn: pytest.WarningsRecorder
) -> None:
    trials = set_processor(0.1)
    for name in ("float32", "float16"):
        assert number_format(name, "cpu") == (name, "")
        warn_of_slow_dtype(name, "cpu")
    assert (trials, list(recwarn)) == ([], [])


def test_the_reason_has_the_measured_speed(set_processor: Callable[..., list[str]]) -> None:
    set_processor(0.57)
    assert "0.6 times" in number_format("auto", "cpu,cpu").reason


@pytest.mark.parametrize(("speedup", "count"), [(0.14, 1), (0.95, 0), (1.7, 0)])
def test_bfloat16_that_is_slower_here_gives_one_warning(
    tiny_preset: Path,
    tiny_encoder: Path,
    set_processor: Callable[..., list[str]],
    speedup: float,
    count: int,
) -> None:
    set_processor(speedup)
    options = {"device": "cpu", "dtype": "bfloat16"}

    def scored() -> None:
        scorer = mtmetrics.load("xmoverscore", str(tiny_preset), lang_pair="de-en", **options)
        scorer.score(["the house is small"], sources=["das haus ist klein"])

    for use in (scored, lambda: TokenEncoder(str(tiny_encoder), **options)):
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            use()
        about = [str(warning.message) for warning in shown if "bfloat16" in str(warning.message)]
        assert len(about) == count
        assert all("7.1 times as long" in message for message in about)


@pytest.mark.parametrize(("speedup", "expected"), [(2.0, "bfloat16"), (0.5, "float32")])
def test_the_commands_say_what_was_chosen_and_why(
    tiny_preset: Path,
    tmp_path: Path,
    mtmetrics: Callable[..., tuple[int, str, str]],
    set_processor: Callable[..., list[str]],
    speedup: float,
    expected: str,
) -> None:
    set_processor(speedup)
    pairs, report = tmp_path / "pairs.tsv", tmp_path / "report.json"
    pairs.write_text("das haus\tthe house\nder hund\tthe dog\n", encoding="utf-8")
    metric = ["--preset", str(tiny_preset), "--lp", "de-en", "--device", "cpu", str(pairs)]
    code, _, err = mtmetrics("score", *metric, "--dtype", "auto")
    assert code == 0
    assert f"{expected}: bfloat16 has {speedup} times the speed of float32" in err
    assert "times the speed" not in mtmetrics("score", *metric, "--dtype", "auto", "-q")[2]
    assert "times the speed" not in mtmetrics("score", *metric)[2]
    rest = ["--top", "1", "--skip", "language", "--report", str(report)]
    assert mtmetrics("filter", *metric, *rest)[0] == 0
    chosen = json.loads(report.read_text("utf-8"))["number_format"]
    assert chosen["name"] == expected
    assert f"{speedup} times" in chosen["reason"]
    assert mtmetrics("filter", *metric, *rest, "--dtype", "float32")[0] == 0
    assert "number_format" not in json.loads(report.read_text("utf-8"))


def test_one_warning_of_a_command(
    tiny_preset: Path,
    tmp_path: Path,
    mtmetrics: Callable[..., tuple[int, str, str]],
    set_processor: Callable[..., list[str]],
) -> None:
    set_processor(0.5)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("das haus\tthe house\n", encoding="utf-8")
    metric = ["--preset", str(tiny_preset), "--lp", "de-en", "--device", "cpu", str(pairs)]
    for _ in range(2):
        code, _, err = mtmetrics("score", *metric, "--dtype", "bfloat16")
        assert (code, err.count("bfloat16")) == (0, 1)


def test_models_that_compute_nothing_need_no_trial(
    set_processor: Callable[..., list[str]],
) -> None:
    trials = set_processor(2.0)
    load_scorer("prediction_length", pool=ModelPool(dtype="auto"))
    assert trials == []
    assert ModelPool(dtype="auto").about() == {}


def test_auto_is_bfloat16_on_cuda_from_ampere_on_all_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "zeros", lambda size, device: torch.empty(size))
    monkeypatch.setattr(
        torch.cuda, "get_device_capability", lambda device: [(8, 0), (7, 5)][device.index]
    )
    assert [number_format("auto", device).name for device in ("0", "1", "0,1")] == [
        "bfloat16",
        "float32",
        "float32",
    ]
    assert number_format("float16", "1").name == "float16"
