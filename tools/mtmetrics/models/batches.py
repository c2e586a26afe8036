"""Batches of texts of similar length, run through a network on one or several devices.

`length_batches` makes batches with little padding. `BatchRunner` runs them, and halves a batch that
does not fit into memory until it fits.
"""

import copy
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.checks import warn
from mtmetrics.errors import MTMetricsError
from mtmetrics.models.progress import report_progress

if TYPE_CHECKING:
    import torch

    # A function (network, ids, mask, indices) that computes one batch and stores the results. `ids`
    # and `mask` are (B, T); `indices` are the B positions of these rows in the input.
    Compute = Callable[[Any, torch.Tensor, torch.Tensor, list[int]], None]
    Replica = tuple[Any, torch.device]  # a copy of the network, and its device

Rows = Sequence[Sequence[int] | np.ndarray]
_MAX_PADDED_RATIO = 1.05  # tokens with padding / tokens without
# Parts of the messages of the plain RuntimeErrors that torch raises when memory runs out: on MPS, on
# the CPU (Linux and Windows), and on CUDA outside of torch's allocator.
_OUT_OF_MEMORY = (
    "MPS backend out of memory",
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


def length_batches(lengths: Sequence[int], batch_tokens: Callable[[], int]) -> Generator[list[int]]:
    """Yields batches of text indices, longest texts first, with at most 5 % padding.

    Empty texts are skipped.

    Args:
        lengths: number of tokens of each text.
        batch_tokens: returns the highest number of tokens in a batch, padding included. A longer
            text is a batch by itself. This is a function because the number falls when memory runs
            out.
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
            is_full = padded > batch_tokens() or padded > _MAX_PADDED_RATIO * (tokens + length)
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
    """Moves a network to the first device and copies it to the others. Returns one per device.

    Args:
        name: name of the model in error messages.
        network: the network; it is not copied for the first device.
        devices: at least one device.

    Raises:
        MTMetricsError: the network does not fit into the memory of a device.
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

    Several devices share one queue of batches. Each device has a thread and a copy of the network.
    A batch that does not fit into memory is halved until it fits; all later batches and calls keep
    the smaller size. Calls of `run` must not overlap, because they use the same copies.

    Args:
        name: name of the model in error messages.
        networks: one copy of the network per device, see `replicate`.
        devices: device of each copy.
        batch_tokens: highest number of tokens in a batch at first, padding included.
        pad: token id that fills up shorter rows.

    Attributes:
        batch_tokens: highest number of tokens in a batch, padding included; falls when memory runs
            out.
        replicas: each copy with its device. A caller may put a wrapper in place of a copy.
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
        # Guards the queue of batches and `batch_tokens`, on which the next batch depends.
        self._lock = threading.Lock()

    def run(self, rows: Rows, compute: "Compute") -> int:
        """Runs all rows that are not empty through the network, in no particular order.

        Args:
            rows: token ids of each text.
            compute: function (network, ids, mask, indices) that computes a batch and stores the
                results. `ids` are (B, T) on the network's device, `mask` is (B, T) with 1 at real
                tokens, and `indices` are the numbers of the B rows. It is called in inference mode;
                with several devices, calls run at the same time. If memory runs out in a call, the
                rows come again in smaller batches; their results must then replace the earlier
                ones.

        Returns:
            The number of computed tokens, padding included.

        Raises:
            MTMetricsError: a row does not fit into memory even alone.
        """
        batches = length_batches([len(row) for row in rows], lambda: self.batch_tokens)

        def next_batch() -> list[int] | None:
            with self._lock:
                return next(batches, None)

        def run_batches(replica: "Replica") -> int:
            padded_tokens = 0
            while batch := next_batch():
                padded_tokens += self._run_batch(replica, rows, batch, compute)
            return padded_tokens

        if len(self.replicas) == 1:
            return run_batches(self.replicas[0])
        with ThreadPoolExecutor(len(self.replicas)) as pool:
            try:
                futures = [pool.submit(run_batches, replica) for replica in self.replicas]
                return sum(future.result() for future in as_completed(futures))
            finally:
                with self._lock:
                    batches.close()  # after an error or Ctrl-C, other devices only finish their batch

    def _run_batch(
        self, replica: "Replica", rows: Rows, batch: list[int], compute: "Compute"
    ) -> int:
        """Runs a batch, split into parts if it is too large. Returns the number of tokens with
        padding."""
        _, device = replica
        pending_parts = [batch]
        padded_tokens = 0
        while pending_parts:
            part = pending_parts.pop()
            width = max(len(rows[index]) for index in part)
            size = width * len(part)
            is_within_limit = len(part) == 1 or size <= self.batch_tokens
            if is_within_limit and self._try_part(replica, rows, part, compute):
                padded_tokens += size
                report_progress("texts", len(part))
                continue
            if is_within_limit:
                self._lower_limit(device, len(part), width)
            middle = (len(part) + 1) // 2
            pending_parts += [part[middle:], part[:middle]]
        return padded_tokens

    def _try_part(
        self, replica: "Replica", rows: Rows, part: list[int], compute: "Compute"
    ) -> bool:
        """Computes some rows together. Returns False if memory ran out.

        The exception ends here: its traceback would keep the tensors that filled the memory.
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

    def _lower_limit(self, device: "torch.device", row_count: int, width: int) -> None:
        """Frees memory and lowers `batch_tokens`, after rows padded to `width` did not fit.

        Warns once per size.

        Raises:
            MTMetricsError: it was a single row, which cannot be split.
        """
        if row_count == 1:
            raise MTMetricsError(
                f"{self._name}: a text of {width} tokens does not fit into the memory of "
                f"{device} even alone; split the text, free memory there, or pass another device"
            )
        _free_memory(device)
        size = width * row_count
        half = size // 2
        with self._lock:
            is_lower = half < self.batch_tokens
            self.batch_tokens = min(self.batch_tokens, half)
        if is_lower:
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
