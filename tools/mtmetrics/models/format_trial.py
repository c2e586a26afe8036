"""Measures whether this CPU runs a layer of an encoder faster in bfloat16 or in float32.

A CPU may have instructions for bfloat16 and still be slower with them, so only a trial can tell.
"""

import copy
import functools
import hashlib
import json
import platform
import time
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from mtmetrics.artifacts.download import assets_folder
from mtmetrics.errors import ArtifactError
from mtmetrics.io.atomic import write_json

# Sizes of a layer of `mini-encoder`, the encoder that the package brings along: width, attention
# heads, width of the feed-forward part.
_WIDTH, _HEADS, _INNER = 384, 12, 1536
_EPS = 1e-12
# Size of the batch that is computed.
_TEXTS, _TOKENS = 4, 32
_BUDGET = 0.04  # CPU seconds per thread; about 0.05 with the preparation
_MIN_ROUNDS, _MAX_ROUNDS = 3, 20
# A smaller difference may be noise of a busy machine. It would also hardly change the time of a whole
# run, of which the layers are only a part.
_MARGIN = 1.1
_LOCK_TIMEOUT = 5  # seconds to wait for the trial of another process


class FormatTrial(NamedTuple):
    """Result of a trial: CPU seconds that a layer takes, summed over all threads, the best of several
    rounds.

    Attributes:
        float32: seconds in float32.
        bfloat16: seconds in bfloat16.
    """

    float32: float
    bfloat16: float

    @property
    def speedup(self) -> float:
        """Speed of bfloat16 divided by the speed of float32; 1 if the trial took less than a tick of a
        coarse clock, as that of Windows is."""
        if min(self) == 0:
            return 1.0
        return self.float32 / self.bfloat16

    @property
    def favours_bfloat16(self) -> bool:
        """Whether bfloat16 is faster by a clear margin; a tie goes to float32."""
        return self.speedup >= _MARGIN

    @property
    def rules_out_bfloat16(self) -> bool:
        """Whether bfloat16 is slower by a clear margin."""
        return self.speedup * _MARGIN <= 1


@functools.cache
def format_trial() -> FormatTrial:
    """Returns the result of the trial on this machine.

    The trial runs once per CPU, version of torch and number of threads; its result is kept in the
    user's cache folder. A process measures for itself if it cannot use that folder, or if it waited
    in vain for the trial of another process.
    """
    try:
        path = assets_folder("number-formats", _machine_key()) / "trial.json"
        # Processes that start together get one answer, and do not disturb each other's clock.
        with FileLock(path.with_suffix(".lock"), timeout=_LOCK_TIMEOUT):
            trial = _read_trial(path)
            if trial is None:
                trial = _measure()
                write_json(path, trial._asdict())
            return trial
    except (ArtifactError, OSError, Timeout):
        return _measure()


def _machine_key() -> str:
    """Returns a hash of what the result depends on: CPU, torch, and number of threads.

    Before torch 2.10 CPUs on Linux differ only by their instruction set, such as AVX512.
    """
    import torch

    cpu: dict[str, object] = {"machine": platform.machine(), "name": platform.processor()}
    if hasattr(torch.cpu, "get_capabilities"):  # since torch 2.10
        cpu |= torch.cpu.get_capabilities()
    facts = [
        sorted(map(str, cpu.items())),
        torch.backends.cpu.get_cpu_capability(),
        torch.__version__,
        torch.get_num_threads(),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _read_trial(path: Path) -> FormatTrial | None:
    """Reads a result from a file. Returns None if the file is missing or damaged."""
    try:
        stored = json.loads(path.read_bytes())
        trial = FormatTrial(float(stored["float32"]), float(stored["bfloat16"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return trial if min(trial) > 0 else None


def _measure() -> FormatTrial:
    """Computes one layer in both formats alternately, for about 50 ms.

    It measures CPU time: the clock would also count other work on the machine.
    """
    import torch

    from mtmetrics.models.plain_networks import Block

    generator = torch.Generator().manual_seed(0)  # leaves the user's random numbers as they are
    float32_layer = Block(_WIDTH, _HEADS, _INNER, _EPS, is_gpt2=False).requires_grad_(False)
    for parameter in float32_layer.parameters():
        parameter.uniform_(-0.03, 0.03, generator=generator)
    float32_states = torch.empty(_TEXTS, _TOKENS, _WIDTH).uniform_(-1, 1, generator=generator)
    layers = {
        dtype: (copy.deepcopy(float32_layer).to(dtype), float32_states.to(dtype))
        for dtype in (torch.float32, torch.bfloat16)
    }
    best = dict.fromkeys(layers, float("inf"))
    with torch.inference_mode():
        for layer, states in layers.values():
            layer(states, None)  # without a mask; the first pass prepares kernels
        end = time.process_time() + _BUDGET * torch.get_num_threads()
        for round_number in range(_MAX_ROUNDS):
            if round_number >= _MIN_ROUNDS and time.process_time() > end:
                break
            for dtype, (layer, states) in layers.items():
                start = time.process_time()
                layer(states, None)
                best[dtype] = min(best[dtype], time.process_time() - start)
    return FormatTrial(best[torch.float32], best[torch.bfloat16])
