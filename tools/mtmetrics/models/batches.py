"""Batches of texts of similar length, run through a network on one or several devices.

`length_batches` makes the batches, `BatchRunner` runs them. A batch that does not fit into memory is
halved until it does.
"""

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.checks import warn
from mtmetrics.errors import MTMetricsError
from mtmetrics.models.progress import report_progress

if TYPE_CHECKING:
    import torch

    # Called with a network, token ids and mask, both (batch, tokens), and the indices of the rows
    # that the batch holds.
    Compute = Callable[[Any, torch.Tensor, torch.Tensor, list[int]], None]
    Replica = tuple[Any, torch.device]  # a copy of the network, and the device that it is on

Rows = Sequence[Sequence[int] | np.ndarray]
_MOST_PADDING = 1.05
# Messages of plain RuntimeErrors of torch where memory runs out: on MPS, on the CPU (Linux and
# Windows), and on CUDA beside torch's own allocator.
_OUT_OF_MEMORY = (
    "MPS backend out of memory",
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


def length_batches(lengths: Sequence[int], batch_tokens: Callable[[], int]) -> Iterator[list[int]]:
    """Yields the indices of texts that have tokens, longest first, in batches with at most 5 %
    padding.

    Args:
        lengths: number of tokens of each text.
        batch_tokens: returns the largest padded size of a batch, except that a single text may be
            longer. It is called while batches are made, since the answer becomes smaller where
            memory runs out.
    """
    longest_first = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batch: list[int] = []
    tokens = 0
    for index in longest_first:
        length = lengths[index]
        if not length:
            break  # only empty texts follow
        if batch:
            padded = lengths[batch[0]] * (len(batch) + 1)
            is_full = padded > batch_tokens() or padded > _MOST_PADDING * (tokens + length)
            if is_full:
                yield batch
                batch, tokens = [], 0
        batch.append(index)
        tokens += length
    if batch:
        yield batch


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on a device or on the machine."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    message = str(error)
    return isinstance(error, RuntimeError) and any(text in message for text in _OUT_OF_MEMORY)


def replicate(
    name: str, network: "torch.nn.Module", devices: "Sequence[torch.device]"
) -> "list[torch.nn.Module]":
    """Returns the network on each of the devices: itself on the first, copies on the others.

    Args:
        name: what messages call the model.
        network: is moved to the first device.
        devices: one or several.

    Raises:
        MTMetricsError: the memory of a device does not suffice.
    """
    try:
        copies = [copy.deepcopy(network).to(device) for device in devices[1:]]
        return [network.to(devices[0]), *copies]
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        names = ", ".join(map(str, devices))
        raise MTMetricsError(
            f"{name} does not fit into the memory of {names}; free memory there, or pass another "
            "device"
        ) from error


class BatchRunner:
    """Runs rows of token ids through a network, in batches of similar length.

    Several devices take batch after batch from the same supply, each in a thread of its own with
    its own copy of the network. A batch that does not fit into memory is halved until it does, and
    the smaller size is kept for all later batches and calls.

    Args:
        name: what messages call the model.
        networks: one callable per device.
        devices: where they are.
        batch_tokens: padded tokens per batch.
        pad: token id that fills up shorter rows.

    Attributes:
        replicas: each network with its device.
    """

    def __init__(
        self,
        name: str,
        networks: Sequence[Any],
        devices: "Sequence[torch.device]",
        batch_tokens: int,
        pad: int = 0,
    ) -> None:
        self.batch_tokens = batch_tokens
        self.replicas: list[Replica] = list(zip(networks, devices, strict=True))
        self._name = name
        self._pad = pad
        self._lock = threading.Lock()

    def run(self, rows: Rows, compute: "Compute") -> int:
        """Computes all rows of token ids that are not empty, in any order.

        Args:
            rows: token ids of each text.
            compute: is called in inference mode with a network, a (batch, tokens) tensor of ids on
                its device, an equal mask with 1 at real tokens, and the indices of the batch's
                rows; it keeps the results. Calls for different rows may run at the same time.

        Returns:
            The number of padded tokens that were computed.

        Raises:
            MTMetricsError: one row alone does not fit into memory.
        """
        batches = length_batches([len(row) for row in rows], lambda: self.batch_tokens)
        stop = threading.Event()

        def next_batch() -> list[int] | None:
            if stop.is_set():
                return None
            with self._lock:
                return next(batches, None)

        def work(replica: "Replica") -> int:
            padded_tokens = 0
            while batch := next_batch():
                padded_tokens += self._run_batch(replica, rows, batch, compute)
            return padded_tokens

        if len(self.replicas) == 1:
            return work(self.replicas[0])
        with ThreadPoolExecutor(len(self.replicas)) as pool:
            try:
                workers = [pool.submit(work, replica) for replica in self.replicas]
                return sum(worker.result() for worker in as_completed(workers))
            finally:
                stop.set()  # after an error or Ctrl-C, other devices finish only their batch

    def _run_batch(
        self, replica: "Replica", rows: Rows, batch: list[int], compute: "Compute"
    ) -> int:
        """Computes a batch, in parts where it is too large. Returns the padded tokens."""
        waiting = [batch]
        padded_tokens = 0
        while waiting:
            part = waiting.pop()
            width = max(len(rows[index]) for index in part)
            size = width * len(part)
            if len(part) == 1 or size <= self.batch_tokens:
                if self._computes(replica, rows, part, compute):
                    padded_tokens += size
                    report_progress("texts", len(part))
                    continue
                self._shrink(replica[1], part, width)
            half = (len(part) + 1) // 2
            waiting += [part[half:], part[:half]]
        return padded_tokens

    def _computes(
        self, replica: "Replica", rows: Rows, part: list[int], compute: "Compute"
    ) -> bool:
        """Computes some rows together. Returns False where memory ran out.

        On return nothing refers to the traceback, which would hold the tensors that filled the
        memory.
        """
        import torch

        network, device = replica
        try:
            with torch.inference_mode():
                ids, mask = self._padded([rows[index] for index in part], device)
                compute(network, ids, mask, part)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return False
        return True

    def _padded(self, rows: Rows, device: "torch.device") -> "tuple[torch.Tensor, torch.Tensor]":
        """Returns the (rows, tokens) ids and mask of some rows on a device."""
        import torch

        width = max(len(row) for row in rows)
        ids = torch.full((len(rows), width), self._pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for position, row in enumerate(rows):
            ids[position, : len(row)] = torch.as_tensor(row)
            mask[position, : len(row)] = 1
        return ids.to(device), mask.to(device)

    def _shrink(self, device: "torch.device", part: list[int], width: int) -> None:
        """Makes batches smaller after rows of so many tokens did not fit; warns once per size.

        Raises:
            MTMetricsError: it was a single row.
        """
        if len(part) == 1:
            raise MTMetricsError(
                f"{self._name}: a text of {width} tokens does not fit into the memory of "
                f"{device} even alone; split the text, free memory there, or pass another device"
            )
        _free_memory(device)
        size = width * len(part)
        half = size // 2
        with self._lock:
            is_news = half < self.batch_tokens
            self.batch_tokens = min(self.batch_tokens, half)
        if is_news:
            warn(
                f"{self._name}: a batch of {size} tokens does not fit into the memory of {device}; "
                f"going on with {half}"
            )


def _free_memory(device: "torch.device") -> None:
    import torch

    backend = getattr(torch, device.type, None)
    empty_cache = getattr(backend, "empty_cache", None)
    if empty_cache is not None:
        empty_cache()
