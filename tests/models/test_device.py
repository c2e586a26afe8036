"""Names of devices."""

import pytest
import torch

from mtmetrics.errors import InputError
from mtmetrics.models.device import pick_device, pick_devices

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("device", "count"),
    [("cpu", 1), ("cpu,cpu", 2), (" cpu ,cpu,cpu ", 3), (["cpu"], 1), (("cpu", "cpu"), 2), (CPU, 1), ([CPU, "cpu"], 2)],
)
def test_one_or_several(device: object, count: int) -> None:
    assert pick_devices(device) == [CPU] * count


def test_auto_is_one_device() -> None:
    assert len(pick_devices("auto")) == 1
    assert pick_devices("auto,cpu") == [pick_device("auto"), CPU]


def test_numbers_are_cuda_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(torch, "zeros", lambda size, device: seen.append(device) or torch.empty(size))
    assert pick_devices([0, "1"]) == pick_devices("0, 1") == [torch.device("cuda:0"), torch.device("cuda:1")]
    assert pick_devices(2) == [torch.device("cuda:2")]
    assert len(seen) == 5


@pytest.mark.parametrize(
    "device",
    ["tpu9", "", "cpu,", "cpu;cpu", "meta", "cuda:99", 99, "99", -1, True, 1.5, None, ["cpu", None], ["cpu,cpu"]],
)
def test_what_is_not_there_is_refused(device: object) -> None:
    with pytest.raises(InputError, match=r"device .* cannot be used here \(.+\); this machine has cpu") as raised:
        pick_devices(device)
    assert "\n" not in str(raised.value)


def test_no_device_at_all() -> None:
    with pytest.raises(InputError, match=r"device \[\]: names no device"):
        pick_devices([])
