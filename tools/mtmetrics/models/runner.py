"""Runs a network over texts: on one or several devices, up to a layer, in batches, with whatever
memory there is."""

import contextlib
import copy
import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mtmetrics.checks import choice, warn
from mtmetrics.errors import InputError, MTMetricsError

if TYPE_CHECKING:
    import torch

    Compute = Callable[[Any, torch.Tensor, torch.Tensor, list[int]], None]
    Replica = tuple[Any, torch.device]
    Rows = Sequence[Sequence[int]]

DTYPES = ("float32", "bfloat16", "float16")
Devices = int | str | Sequence[int | str]
_MOST_PADDING = 1.05
# What torch raises as plain RuntimeError: on MPS, on the CPU (Linux and Windows), and where CUDA
# runs out beside torch's own allocator.
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


def setting(default: Any, text: str, usage: str = "") -> Any:
    """A field of `Running`, its help, and what help calls its value."""
    return dataclasses.field(default=default, metadata={"help": text, "usage": usage})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Running:
    """How models are run: keywords of whatever loads one.

    The options of the command line and the documentation of ``evaluate.load`` come from the fields.
    Devices and number formats are those of `pick_devices` and `pick_dtype`."""

    device: Devices = setting(
        "auto", "auto, cpu, cuda, cuda:1 or 1, mps; several share the work: 0,1", "NAME,..."
    )
    dtype: str = setting(
        "float32",
        (
            "float32, bfloat16, float16, or auto: bfloat16 where the device computes it natively, "
            "else float32"
        ),
        "DTYPE",
    )
    batch_tokens: int = setting(4096, "padded tokens per encoder batch")
    embedding_cache: str | Path | None = setting(
        None, "keep encoded texts in this folder, for later runs with the same encoder", "DIR"
    )
    local_files_only: bool = setting(False, "never ask the Hub")


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tells the listener of all work that is done until the block ends, in any thread."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def report_progress(what: Literal["texts", "segments"], count: int) -> None:
    """Tells every listener that so much more is done."""
    for listener in _listeners:
        listener(what, count)


def pick_devices(device: Devices) -> "list[torch.device]":
    """The torch devices of what `pick_device` takes, a list or tuple of that, or names joined by
    commas, such as ``"cuda:0,cuda:1"``; a device that is named twice is there twice. `InputError`
    where none is named."""
    named: Sequence[Any] = [device]
    if isinstance(device, str):
        named = device.split(",")
    elif isinstance(device, list | tuple):
        named = device
    if not named:
        raise InputError(
            f"device {device!r}: names no device; try 'auto' or 'cpu'", option="device"
        )
    return [pick_device(name) for name in named]


def pick_device(device: int | str) -> "torch.device":
    """The torch device of that name; `InputError` where this machine has none.

    Args:
        device: ``"auto"`` (CUDA, then MPS, then CPU), a name of torch, or the number of a CUDA
            device, also in digits.
    """
    import torch

    name = str(device).strip()
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(f"cuda:{name}" if name.isdecimal() else name)
        torch.zeros(1, device=chosen).cpu()
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        cuda = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
        here = ", ".join(["cpu", *cuda, *(["mps"] if torch.backends.mps.is_available() else [])])
        raise InputError(
            f"device {device!r} cannot be used here ({reason}); this machine has {here}",
            option="device",
        ) from None
    return chosen


def pick_dtype(name: str, device: Devices) -> str:
    """One of `DTYPES`, checked; of ``"auto"`` what suits the devices: ``"bfloat16"`` where all of
    them compute it natively (CUDA from Ampere, CPUs with AMX or AVX512-BF16), else
    ``"float32"``."""
    if choice("dtype", name, (*DTYPES, "auto")) != "auto":
        return name
    return "bfloat16" if all(map(_computes_bfloat16, pick_devices(device))) else "float32"


def _computes_bfloat16(device: "torch.device") -> bool:
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type != "cpu" or not hasattr(torch.cpu, "get_capabilities"):  # as before torch 2.10
        return False
    able = torch.cpu.get_capabilities()
    return bool(able.get("amx_bf16") or able.get("avx512_bf16"))


def torch_dtype(name: str) -> "torch.dtype":
    import torch

    return getattr(torch, choice("dtype", name, DTYPES))


def dtype_name(dtype: str) -> str:
    """A number format in short."""
    return {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}[dtype]


class TextCache:
    """Values of the texts that one model read most recently, up to a total size; without `size`
    texts are counted."""

    def __init__(self, limit: int, size: Callable[[Any], int] = lambda value: 1) -> None:
        self.limit = limit
        self.size = 0
        self._size_of = size
        self._values: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: Hashable, value: Any) -> None:
        size = self._size_of(value)
        if key in self._values or size > self.limit:
            return
        self._values[key] = value
        self.size += size
        while self.size > self.limit:
            self.size -= self._size_of(self._values.popitem(last=False)[1])

    def clear(self) -> None:
        """Forgets all texts."""
        self._values.clear()
        self.size = 0

    def values(
        self, keys: Sequence[Hashable], compute: Callable[[list[Any]], Iterable[Any]]
    ) -> list[Any]:
        """The values of texts; those that are not kept are computed in one call, each once."""
        found = {key: self.get(key) for key in keys}
        missing = [key for key, value in found.items() if value is None]
        if missing:
            found |= zip(missing, compute(missing), strict=True)
        for key, value in found.items():
            self.put(key, value)
        return [found[key] for key in keys]


def length_batches(lengths: Sequence[int], batch_tokens: Callable[[], int]) -> Iterator[list[int]]:
    """Yields the numbers of texts that have tokens, longest first, in batches that hold at most 5 %
    padding.

    Args:
        lengths: tokens of each text.
        batch_tokens: tells the largest padded size of a batch, except that a single text may be
            longer; asked while batches are made, since the answer becomes smaller where memory runs
            out.
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

    Several devices take batch after batch from the same supply, each in a thread of its own with
    its own copy of the network. A batch that does not fit into memory is halved until it does, and
    the smaller size is kept for all later batches and calls.

    Args:
        name: what messages call the model.
        networks: one callable per device.
        devices: where they are.
        batch_tokens: padded tokens per batch.
        pad: token id that fills up shorter rows.
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
        self.replicas = list(zip(networks, devices, strict=True))
        self._name = name
        self._pad = pad
        self._lock = threading.Lock()

    def run(self, rows: "Rows", compute: "Compute") -> int:
        """Computes all rows of token ids that are not empty, in any order.

        Args:
            rows: token ids of each text.
            compute: called in inference mode with a network, a (batch, tokens) tensor of ids on its
                device, an equal mask with 1 at real tokens, and the numbers of the batch's rows; it
                keeps the results. Calls for different rows may run at the same time.

        Returns:
            Padded tokens that were computed.

        Raises:
            MTMetricsError: one row alone does not fit into memory.
        """
        batches = length_batches([len(row) for row in rows], lambda: self.batch_tokens)
        stopped = threading.Event()

        def supply() -> Iterator[list[int]]:
            while not stopped.is_set():
                with self._lock:
                    numbers = next(batches, None)
                if numbers is None:
                    return
                yield numbers

        def work(replica: "Replica") -> int:
            return sum(self._run_batch(replica, rows, numbers, compute) for numbers in supply())

        if len(self.replicas) == 1:
            return work(self.replicas[0])
        with ThreadPoolExecutor(len(self.replicas)) as pool:
            try:
                working = [pool.submit(work, replica) for replica in self.replicas]
                return sum(future.result() for future in as_completed(working))
            finally:
                stopped.set()  # after an error or Ctrl-C: the other devices finish the batch that they are at

    def _run_batch(
        self, replica: "Replica", rows: "Rows", whole: list[int], compute: "Compute"
    ) -> int:
        import torch

        network, device = replica
        pending, computed = [whole], 0
        while pending:
            numbers = pending.pop()
            width = max(len(rows[number]) for number in numbers)
            if len(numbers) == 1 or width * len(numbers) <= self.batch_tokens:
                try:
                    with torch.inference_mode():
                        compute(
                            network,
                            *self._padded([rows[number] for number in numbers], width, device),
                            numbers,
                        )
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error):
                        raise
                else:
                    computed += width * len(numbers)
                    report_progress("texts", len(numbers))
                    continue
                # Not inside `except`: there the traceback would still hold the tensors that filled
                # the memory.
                self._shrink(device, numbers, width)
            half = (len(numbers) + 1) // 2
            pending += [numbers[half:], numbers[:half]]
        return computed

    def _padded(
        self, rows: "Rows", width: int, device: "torch.device"
    ) -> "tuple[torch.Tensor, torch.Tensor]":
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
                f"{self._name}: a text of {width} tokens does not fit into the memory of "
                f"{device} even alone; split the text, free memory there, or pass another device"
            )
        empty_cache = getattr(getattr(torch, device.type, None), "empty_cache", None)
        if empty_cache is not None:
            empty_cache()
        padded = width * len(numbers)
        with self._lock:
            smaller = padded // 2 < self.batch_tokens
            self.batch_tokens = min(self.batch_tokens, padded // 2)
        if smaller:
            what = (
                f"{self._name}: a batch of {padded} tokens does not fit into the memory of {device}"
            )
            warn(f"{what}; going on with {padded // 2}")
