"""Scores made-up lines as ``mtmetrics score`` does and prints the memory as JSON: ``memory_probe.py
ENCODER LINES WORKERS``."""

import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from workload import made_pairs

from mtmetrics.cli.process import return_large_blocks
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.results import column_batches, join_systems
from mtmetrics.scorers.xmoverscore import XMoverScore

_BLOCK = 500


def peak_mib() -> float:
    """Highest resident memory of this process so far."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike ru_maxrss it does not start from the peak of the process that started this one.
        kib = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(kib.split()[1]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def rows(lines: int) -> Iterator[tuple[str, str]]:
    """Yields `lines` different pairs without holding them all."""
    for first in range(0, lines, _BLOCK):
        yield from zip(*made_pairs(min(_BLOCK, lines - first), seed=first), strict=True)


def main() -> None:
    """Prints peak memory before and after scoring, and the size of the result."""
    folder, lines, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    return_large_blocks()
    scorer = XMoverScore(TokenEncoder(folder, device="cpu"), workers=workers)
    before = peak_mib()
    batches = (
        Batch({"": predictions}, sources=sources)
        for sources, predictions in column_batches(rows(lines))
    )
    [result] = join_systems(scorer.score_batches(batches))
    size = result.segments.nbytes + sum(part.nbytes for part in result.parts.values())
    print(
        json.dumps({"lines": lines, "before": before, "peak": peak_mib(), "result": size / 2**20})
    )


if __name__ == "__main__":
    main()
