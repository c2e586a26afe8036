"""Names of devices and number formats."""

from pathlib import Path

import pytest
import torch

import mtmetrics
from mtmetrics.errors import InputError
from mtmetrics.models.devices import pick_device, pick_devices, pick_dtype

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


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"amx_bf16": True}, "bf16"),
        ({"avx512_bf16": True}, "bf16"),
        ({"avx512_f": True, "amx_bf16": False}, "fp32"),
    ],
)
def test_auto_is_the_format_that_the_cpu_computes_natively_and_the_signature_says_so(
    tiny_preset: Path, monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, bool], expected: str
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    options = {"lang_pair": "de-en", "device": "cpu"}
    assert (
        f"|dtype:{expected}|"
        in mtmetrics.load("xmoverscore", str(tiny_preset), dtype="auto", **options).signature
    )
    assert "|dtype:fp32|" in mtmetrics.load("xmoverscore", str(tiny_preset), **options).signature


def test_auto_is_bfloat16_on_cuda_from_ampere_on_all_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "zeros", lambda size, device: torch.empty(size))
    monkeypatch.setattr(
        torch.cuda, "get_device_capability", lambda device: [(8, 0), (7, 5)][device.index]
    )
    assert [pick_dtype("auto", device) for device in ("0", "1", "0,1")] == [
        "bfloat16",
        "float32",
        "float32",
    ]
    assert pick_dtype("float16", "1") == "float16"
