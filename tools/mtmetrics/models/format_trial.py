"""Tries which number format a processor computes an encoder's layer faster in.

A processor may list instructions for bfloat16 and still be slower with them than in float32, so
that only a trial tells.
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

# A layer of the bundled encoder: width, attention heads, inner width.
_WIDTH, _HEADS, _INNER = 384, 12, 1536
_TEXTS, _TOKENS = 4, 32
_BUDGET = 0.04  # seconds of each thread; with the preparation it comes to about 0.05
_LEAST_TURNS, _MOST_TURNS = 3, 20
# Smaller differences are noise of a busy machine, and the layers are not all of the work.
_MARGIN = 1.1
_PATIENCE = 5  # seconds for which a trial in another process is waited for


class FormatTrial(NamedTuple):
    """Seconds of the processor that a layer of the bundled encoder takes, the best of several
    turns.

    Attributes:
        float32: seconds in float32.
        bfloat16: seconds in bfloat16.
    """

    float32: float
    bfloat16: float

    @property
    def speedup(self) -> float:
        """How many times as fast bfloat16 is as float32."""
        return self.float32 / self.bfloat16

    @property
    def favours_bfloat16(self) -> bool:
        """Whether bfloat16 is faster by a clear margin; a tie goes to float32."""
        return self.speedup >= _MARGIN

    @property
    def refutes_bfloat16(self) -> bool:
        """Whether bfloat16 is slower by a clear margin."""
        return self.speedup * _MARGIN <= 1


@functools.cache
def format_trial() -> FormatTrial:
    """Returns the trial of this machine's processor.

    It is made once per processor, version of torch and number of threads, and kept in the user's
    cache folder. Where that folder cannot be used, each process makes a trial of its own.
    """
    try:
        path = assets_folder("number-formats", _key()) / "trial.json"
        # Processes that start together come to one answer, and do not disturb each other's clock.
        with FileLock(path.with_suffix(".lock"), timeout=_PATIENCE):
            trial = _stored(path)
            if trial is None:
                trial = _measured()
                write_json(path, trial._asdict())
            return trial
    except (ArtifactError, OSError, Timeout):
        return _measured()


def _key() -> str:
    """Returns a name for all that the answer depends on: processor, torch, and threads."""
    import torch

    processor: dict[str, object] = {"machine": platform.machine(), "name": platform.processor()}
    if hasattr(torch.cpu, "get_capabilities"):  # since torch 2.10
        processor |= torch.cpu.get_capabilities()
    facts = [
        sorted(map(str, processor.items())),
        torch.backends.cpu.get_cpu_capability(),
        torch.__version__,
        torch.get_num_threads(),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _stored(path: Path) -> FormatTrial | None:
    """Returns the trial that a file holds; None where the file is missing or damaged."""
    try:
        stored = json.loads(path.read_bytes())
        trial = FormatTrial(float(stored["float32"]), float(stored["bfloat16"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return trial if min(trial) > 0 else None


def _measured() -> FormatTrial:
    """Computes one layer in both formats, in turns, for about 50 ms.

    Seconds are those of the processor. By the clock, other work on the machine would count, and
    more so for the longer of the two.
    """
    import torch

    from mtmetrics.models.plain_networks import Block

    generator = torch.Generator().manual_seed(0)  # leaves the user's random numbers as they are
    plain_layer = Block(_WIDTH, _HEADS, _INNER, 1e-12, causal=False).requires_grad_(False)
    for parameter in plain_layer.parameters():
        parameter.uniform_(-0.03, 0.03, generator=generator)
    plain_states = torch.empty(_TEXTS, _TOKENS, _WIDTH).uniform_(-1, 1, generator=generator)
    layers = {
        dtype: (copy.deepcopy(plain_layer).to(dtype), plain_states.to(dtype))
        for dtype in (torch.float32, torch.bfloat16)
    }
    best = dict.fromkeys(layers, float("inf"))
    with torch.inference_mode():
        for layer, states in layers.values():
            layer(states, None)  # the first pass prepares kernels
        end = time.process_time() + _BUDGET * torch.get_num_threads()
        for turn in range(_MOST_TURNS):
            if turn >= _LEAST_TURNS and time.process_time() > end:
                break
            for dtype, (layer, states) in layers.items():
                start = time.process_time()
                layer(states, None)
                best[dtype] = min(best[dtype], time.process_time() - start)
    return FormatTrial(best[torch.float32], best[torch.bfloat16])
