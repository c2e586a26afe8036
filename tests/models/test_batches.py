"""Batches that do not fit into memory, and several devices."""

import signal
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mtmetrics.errors import MTMetricsError
from mtmetrics.models.batches import BatchRunner, is_out_of_memory, replicate
from mtmetrics.models.token_encoder import TokenEncoder

CPU = torch.device("cpu")
ON_CPU = (
    "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: {}: you tried to "
    "allocate 9 bytes."
)
TEXTS = [
    "the house is small",
    "the dog",
    "",
    "the dog sleeps and sleeps and sleeps",
    "a tree",
    "i see the cat and the tree",
    "the dog",
]


class Limited:
    """A network that has room for so many padded tokens; remembers the sizes that it was asked
    for."""

    def __init__(
        self,
        limit: int,
        network: Callable[..., Any] | None = None,
        error: BaseException | None = None,
    ) -> None:
        self.limit, self.network = limit, network
        self.error = error or torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 20.00 MiB."
        )
        self.sizes: list[int] = []

    def __call__(self, *layers: Any, **inputs: torch.Tensor) -> Any:
        size = inputs["input_ids"].numel()
        self.sizes.append(size)
        if size > self.limit:
            raise self.error
        return self.network(*layers, **inputs) if self.network else inputs["input_ids"]

    @property
    def failures(self) -> int:
        return sum(size > self.limit for size in self.sizes)


def sums(runner: BatchRunner, rows: Sequence[Sequence[int]]) -> list[int]:
    """The sum of each row, by way of the runner; fails where a row is computed twice."""
    found: dict[int, int] = {}

    def compute(network: Any, batch: torch.Tensor, mask: torch.Tensor, numbers: list[int]) -> None:
        values = (network(input_ids=batch) * mask).sum(1).tolist()
        assert not found.keys() & set(numbers)
        found.update(zip(numbers, values, strict=True))

    runner.run(rows, compute)
    return [found.get(number, 0) for number in range(len(rows))]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError(
            "MPS backend out of memory (MPS allocated: 9 GB, other allocations: 1 KB, max "
            "allowed: 9 GB)."
        ),
        RuntimeError(ON_CPU.format("can't allocate memory")),
        RuntimeError(ON_CPU.format("not enough memory")),
        RuntimeError(
            "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"
        ),
        MemoryError(),
    ],
)
def test_a_batch_that_does_not_fit_is_halved(error: BaseException) -> None:
    network = Limited(10, error=error)
    runner = BatchRunner("encoder x", [network], [CPU], 64)
    rows = [[number] * 4 for number in range(16)]
    with pytest.warns(UserWarning, match="going on with") as caught:
        assert sums(runner, rows) == [4 * number for number in range(16)]
    message = (
        "encoder x: a batch of {} tokens does not fit into the memory of cpu; going on with {}"
    )
    assert [str(warning.message) for warning in caught] == [
        message.format(size, size // 2) for size in (64, 32, 16)
    ]
    # 64, 32 and 16 fail once each; everything else then comes in batches of 8.
    assert network.sizes == [64, 32, 16, *[8] * 8]
    assert sums(runner, rows) == [4 * number for number in range(16)]
    assert network.failures == 3


def test_what_torch_really_raises_is_recognised() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**58, dtype=torch.uint8)
    assert is_out_of_memory(raised.value)


def test_other_errors_are_not_swallowed() -> None:
    network = Limited(10, error=RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        sums(BatchRunner("encoder x", [network], [CPU], 64), [[1] * 4] * 16)
    assert network.sizes == [64]


@pytest.mark.filterwarnings("ignore")
def test_a_text_that_does_not_fit_alone_is_named() -> None:
    message = (
        "encoder x: a text of 11 tokens does not fit into the memory of cpu even alone; split "
        "the text"
    )
    with pytest.raises(MTMetricsError, match=message):
        sums(BatchRunner("encoder x", [Limited(10)], [CPU], 64), [[1] * 3, [1] * 11, [1] * 11])


@pytest.mark.filterwarnings("ignore")
def test_memory_is_free_before_the_next_try(monkeypatch: pytest.MonkeyPatch) -> None:
    emptied: list[bool] = []
    tensors: list[weakref.ref[torch.Tensor]] = []
    monkeypatch.setattr(
        torch.cpu, "empty_cache", lambda: emptied.append(tensors[-1]() is None), raising=False
    )

    def network(input_ids: torch.Tensor) -> torch.Tensor:
        large = input_ids * 2
        tensors.append(weakref.ref(large))
        if len(tensors) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return large

    assert sums(BatchRunner("encoder x", [network], [CPU], 64), [[1, 2]] * 4) == [6] * 4
    assert emptied == [True]


@pytest.mark.filterwarnings("ignore")
def test_an_encoder_without_memory_computes_the_same(tiny_encoder: Path) -> None:
    encoder, small = TokenEncoder(tiny_encoder), TokenEncoder(tiny_encoder, batch_tokens=10)
    network = Limited(10, encoder._network._runner.replicas[0][0])
    encoder._network._runner.replicas = [(network, CPU)]
    assert encoder.encode(TEXTS).vectors == pytest.approx(small.encode(TEXTS).vectors, abs=5e-6)
    assert network.failures
    assert (encoder.counts.computed, encoder.counts.tokens) == (
        small.counts.computed,
        small.counts.tokens,
    )
    failures = network.failures
    encoder.encode([text + "s" for text in TEXTS])
    assert network.failures == failures


def test_a_model_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    network = torch.nn.Linear(2, 2)

    def full(device: torch.device) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(network, "to", full)
    with pytest.raises(
        MTMetricsError, match="encoder x does not fit into the memory of cpu; free memory there"
    ):
        replicate("encoder x", network, [CPU])


def meeting(networks: list[Callable[..., Any]]) -> tuple[list[Callable[..., Any]], list[int]]:
    """Networks that wait for each other before their first batch, and the counts of their
    batches."""
    barrier, counts = threading.Barrier(len(networks), timeout=20), [0] * len(networks)

    def met(number: int) -> Callable[..., Any]:
        def run(*layers: Any, **inputs: torch.Tensor) -> Any:
            if not counts[number]:
                barrier.wait()
            counts[number] += 1
            return networks[number](*layers, **inputs)

        return run

    return [met(number) for number in range(len(networks))], counts


@pytest.mark.parametrize("layer", [1, 3])
def test_two_copies_of_an_encoder_share_the_work(tiny_encoder: Path, layer: int) -> None:
    texts = [" ".join(["the dog sleeps"] * number) for number in range(1, 21)]
    alone = TokenEncoder(tiny_encoder, layer=layer, device="cpu", batch_tokens=64)
    encoder = TokenEncoder(tiny_encoder, layer=layer, device="cpu,cpu", batch_tokens=64)
    copies = [tap for tap, _ in encoder._network._runner.replicas]
    weights = [next(tap._network.parameters()) for tap in copies]
    assert weights[0].data_ptr() != weights[1].data_ptr()
    networks, counts = meeting(copies)
    encoder._network._runner.replicas = [(network, CPU) for network in networks]
    ours, theirs = encoder.encode(texts), alone.encode(texts)
    assert min(counts) > 0
    assert ours.vectors == pytest.approx(theirs.vectors, abs=1e-6)
    assert np.array_equal(ours.token_ids, theirs.token_ids)
    assert encoder.counts == alone.counts


@pytest.mark.filterwarnings("ignore")
def test_one_of_two_devices_runs_out_of_memory() -> None:
    networks, counts = meeting([Limited(100), Limited(10)])
    rows = [[number] * 4 for number in range(64)]
    assert sums(BatchRunner("encoder x", networks, [CPU, CPU], 32), rows) == [
        4 * number for number in range(64)
    ]
    assert min(counts) > 0


def test_an_error_on_one_device_stops_all() -> None:
    failed = threading.Event()

    def failing(input_ids: torch.Tensor) -> torch.Tensor:
        failed.set()
        raise ValueError("broken device")

    def slow(input_ids: torch.Tensor) -> torch.Tensor:
        failed.wait(20)
        time.sleep(0.005)
        return input_ids

    networks, counts = meeting([failing, slow])
    with pytest.raises(ValueError, match="broken device"):
        sums(BatchRunner("encoder x", networks, [CPU, CPU], 1), [[1]] * 2000)
    assert counts[0] == 1
    assert counts[1] < 1000


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_ctrl_c_stops_all_devices() -> None:
    def slow(input_ids: torch.Tensor) -> torch.Tensor:
        time.sleep(0.005)
        return input_ids

    def interrupting(input_ids: torch.Tensor) -> torch.Tensor:
        if counts[0] == 1:  # once: a second signal could arrive when the test is over
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return slow(input_ids)

    networks, counts = meeting([interrupting, slow])
    with pytest.raises(KeyboardInterrupt):
        sums(BatchRunner("encoder x", networks, [CPU, CPU], 1), [[1]] * 2000)
    assert sum(counts) < 1000
