"""Runs a network over texts in batches: on one or several devices, and with whatever memory they have."""

import contextlib
import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any, Literal

from mtmetrics.errors import MTMetricsError
from mtmetrics.inputs import warn

if TYPE_CHECKING:
    import torch

    Compute = Callable[[Any, torch.Tensor, torch.Tensor, list[int]], None]
    Replica = tuple[Any, torch.device]
    Rows = Sequence[Sequence[int]]

_MOST_PADDING = 1.05
# What torch raises as plain RuntimeError: on MPS, on the CPU (Linux and Windows), and where CUDA runs out beside
# torch's own allocator.
_OUT_OF_MEMORY = (
    "MPS backend out of memory",
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


# ``texts`` that a network has read, ``segments`` that a metric has scored; and how many.
Listener = Callable[[Literal["texts", "segments"], int], None]
_listeners: list[Listener] = []


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tells the listener of all work that is done until the block ends, in any thread."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(what: Literal["texts", "segments"], count: int) -> None:
    """Tells every listener that so much more is done."""
    for listener in _listeners:
        listener(what, count)


def length_batches(lengths: Sequence[int], batch_tokens: Callable[[], int]) -> Iterator[list[int]]:
    """Yields the numbers of texts that have tokens, longest first, in batches that hold at most 5 % padding.

    Args:
        lengths: tokens of each text.
        batch_tokens: tells the largest padded size of a batch, except that a single text may be longer; asked while
            batches are made, since the answer becomes smaller where memory runs out.
    """
    batch: list[int] = []
    real = 0
    for number in sorted(range(len(lengths)), key=lambda item: -lengths[item]):
        padded = lengths[batch[0]] * (len(batch) + 1) if batch else 0
        if batch and (padded > batch_tokens() or padded > _MOST_PADDING * (real + lengths[number])):
            yield batch
            batch, real = [], 0
        if lengths[number]:
            batch.append(number)
            real += lengths[number]
    if batch:
        yield batch


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on a device or on the machine."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _OUT_OF_MEMORY)


def replicate(name: str, network: Any, devices: "Sequence[torch.device]") -> list[Any]:
    """The network on each of the devices: itself on the first, copies on the others.

    Raises:
        MTMetricsError: the memory of a device does not suffice; `name` says of what model.
    """
    try:
        copies = [copy.deepcopy(network).to(device) for device in devices[1:]]
        return [network.to(devices[0]), *copies]
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        what = f"{name} does not fit into the memory of {', '.join(map(str, devices))}"
        raise MTMetricsError(f"{what}; free memory there, or pass another device") from error


class BatchRunner:
    """Runs rows of token ids through a network, in batches of like length.

    Several devices take batch after batch from the same supply, each in a thread of its own with its own copy of the
    network. A batch that does not fit into memory is halved until it does, and the smaller size is kept for all later
    batches and calls.

    Args:
        name: what messages call the model.
        networks: one callable per device.
        devices: where they are.
        batch_tokens: padded tokens per batch.
        pad: token id that fills up shorter rows.
    """

    def __init__(
        self, name: str, networks: Sequence[Any], devices: "Sequence[torch.device]", batch_tokens: int, pad: int = 0
    ) -> None:
        self.batch_tokens = batch_tokens
        self.replicas = list(zip(networks, devices, strict=True))
        self._name = name
        self._pad = pad
        self._lock = threading.Lock()

    def run(self, rows: "Rows", compute: "Compute") -> int:
        """Computes all rows of token ids that are not empty, in any order.

        Args:
            rows: token ids of each text.
            compute: called in inference mode with a network, a (batch, tokens) tensor of ids on its device, an equal
                mask with 1 at real tokens, and the numbers of the batch's rows; it keeps the results. Calls for
                different rows may run at the same time.

        Returns:
            Padded tokens that were computed.

        Raises:
            MTMetricsError: one row alone does not fit into memory.
        """
        batches = length_batches([len(row) for row in rows], lambda: self.batch_tokens)
        stopped = threading.Event()

        def work(replica: "Replica") -> int:
            supply = self._supply(batches, stopped)
            return sum(self._run_batch(replica, rows, numbers, compute) for numbers in supply)

        if len(self.replicas) == 1:
            return work(self.replicas[0])
        with ThreadPoolExecutor(len(self.replicas)) as pool:
            working = [pool.submit(work, replica) for replica in self.replicas]
            try:
                return sum(future.result() for future in as_completed(working))
            finally:
                stopped.set()  # after an error or Ctrl-C: the other devices finish the batch that they are at

    def _supply(self, batches: Iterator[list[int]], stopped: threading.Event) -> Iterator[list[int]]:
        while not stopped.is_set():
            with self._lock:
                numbers = next(batches, None)
            if numbers is None:
                return
            yield numbers

    def _run_batch(self, replica: "Replica", rows: "Rows", batch: list[int], compute: "Compute") -> int:
        import torch

        network, device = replica
        pending, computed = [batch], 0
        while pending:
            numbers = pending.pop()
            width = max(len(rows[number]) for number in numbers)
            if len(numbers) == 1 or width * len(numbers) <= self.batch_tokens:
                try:
                    with torch.inference_mode():
                        compute(network, *self._padded([rows[number] for number in numbers], width, device), numbers)
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error):
                        raise
                else:
                    computed += width * len(numbers)
                    tell("texts", len(numbers))
                    continue
                # Not inside `except`: there the traceback would still hold the tensors that filled the memory.
                self._shrink(device, numbers, width)
            half = (len(numbers) + 1) // 2
            pending += [numbers[half:], numbers[:half]]
        return computed

    def _padded(self, rows: "Rows", width: int, device: "torch.device") -> "tuple[torch.Tensor, torch.Tensor]":
        import torch

        batch = torch.full((len(rows), width), self._pad, dtype=torch.long)
        mask = torch.zeros_like(batch)
        for position, row in enumerate(rows):
            batch[position, : len(row)] = torch.as_tensor(row)
            mask[position, : len(row)] = 1
        return batch.to(device), mask.to(device)

    def _shrink(self, device: "torch.device", numbers: list[int], width: int) -> None:
        import torch

        if len(numbers) == 1:
            raise MTMetricsError(
                f"{self._name}: a text of {width} tokens does not fit into the memory of {device} even alone; "
                "split the text, free memory there, or pass another device"
            )
        backend = getattr(torch, device.type, None)
        if hasattr(backend, "empty_cache"):
            backend.empty_cache()
        padded = width * len(numbers)
        with self._lock:
            smaller = padded // 2 < self.batch_tokens
            self.batch_tokens = min(self.batch_tokens, padded // 2)
        if smaller:
            what = f"{self._name}: a batch of {padded} tokens does not fit into the memory of {device}"
            warn(f"{what}; going on with {padded // 2}")
