"""Measures transport shared among worker processes: ``transport_bench.py [--pairs N] [--widths N,N]
[--repeats N] [--workers N] [--json OUT]``.

The encoder is a fake that costs nothing: the same 1,024 pairs of 22 tokens come again and again, as
chunks of the input. Contenders take turns: this process alone; as many separate processes as there
are workers, which share the pairs and are started together, so that they say what the machine can
do; and this process with its workers. Besides the clock counts the processors' time of all
processes of a contender, since others may run on the machine. Exit code 0 whatever the numbers say:
a busy machine is no failure."""

import dataclasses
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from measure import Report, machine, options

from mtmetrics.layout import bundled_artifacts
from mtmetrics.matching import workers as processes
from mtmetrics.matching.transport import begun_distances, optimal_flow
from mtmetrics.matching.workers import shared_empty
from mtmetrics.models.packed import PackedTokens

os.environ.update(
    processes._LEFT_OUT
)  # for all processes alike: torch takes long to load beside the solver
_TOKENS, _CHUNK = 22, 1024


def chunk(width: int) -> list[PackedTokens]:
    """Both sides of a chunk: random vectors, and the same with as much noise; where workers were
    started, they can read them, as those that scorers normalise."""
    rows = _CHUNK * _TOKENS
    vectors = np.random.default_rng(width).standard_normal((2, rows, width), dtype=np.float32)
    vectors[1] += vectors[0]
    ids = [np.zeros(_TOKENS, dtype=np.int64)] * _CHUNK
    every, whole = np.arange(_CHUNK), np.zeros(_CHUNK, dtype=bool)
    return [
        PackedTokens.of_tokens(side, ids, ids, every, whole).normalized(shared_empty)
        for side in vectors
    ]


def transport(sides: Sequence[PackedTokens], pairs: int, workers: int) -> float:
    """Sum of all distances; the chunk before is waited for when the next one is begun, as scorers
    do."""
    total, before = 0.0, None
    for first in range(0, pairs, _CHUNK):
        some = min(_CHUNK, pairs - first)
        now = [dataclasses.replace(side, index=side.index[:some]) for side in sides]
        begun = begun_distances(*now, "sqeuclidean", optimal_flow, workers)
        total += before().sum() if before is not None else 0.0
        before = begun
    return total + before().sum()


def _apart(barrier: Any, times: Any, width: int, pairs: int) -> None:
    sides = chunk(width)
    transport(sides, 100, 1)  # loads the solver
    barrier.wait()
    start, busy = time.monotonic(), time.process_time()
    transport(sides, pairs, 1)
    times.put((start, time.monotonic(), time.process_time() - busy))


def separate(width: int, pairs: int, workers: int) -> tuple[float, float]:
    """Seconds by the clock, and of the processors, of separate processes that share the pairs."""
    context = multiprocessing.get_context("spawn")
    barrier, times = context.Barrier(workers), context.Queue()
    arguments = [(barrier, times, width, pairs // workers) for _ in range(workers)]
    started = [context.Process(target=_apart, args=given) for given in arguments]
    for process in started:
        process.start()
    found = [times.get() for _ in started]
    for process in started:
        process.join()
    starts, ends, busy = zip(*found, strict=True)
    return max(ends) - min(starts), sum(busy)


def together(sides: Sequence[PackedTokens], pairs: int, workers: int) -> tuple[float, float]:
    """The same of this process and its workers."""
    clock = time.process_time if workers == 1 else _busy
    start, busy = time.monotonic(), clock()
    transport(sides, pairs, workers)
    return time.monotonic() - start, clock() - busy


def _busy() -> float:
    """Processor seconds of this process and its workers so far."""
    ticks = 0
    for pool in processes._pools.values():
        for number in list(pool.executor._processes):
            with open(f"/proc/{number}/stat", encoding="ascii") as file:
                ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def measure(report: Report, width: int, pairs: int, workers: int, repeats: int) -> None:
    """One width of vectors."""
    sides = chunk(width)
    alone, apart, ours = (
        "one process",
        f"{workers} separate processes",
        f"one process with {workers} workers",
    )
    processes._WORTH = 0
    transport(sides, 100, 1)  # loads the solver
    start = time.monotonic()
    while processes.pool_for(workers, _CHUNK) is None:
        time.sleep(0.01)
    shared = chunk(width)
    report.add(f"{width} wide: until the first worker is there", time.monotonic() - start, "s")
    seconds: dict[str, list[tuple[float, float]]] = {alone: [], apart: [], ours: []}
    for _ in range(repeats):
        seconds[alone].append(together(sides, pairs // workers, 1))
        seconds[apart].append(separate(width, pairs, workers))
        for _ in range(2):  # workers that ended for want of work start again
            transport(shared, 8 * _CHUNK, workers)
        seconds[ours].append(together(shared, pairs, workers))
    rates = {}
    for name, found in seconds.items():
        share = workers if name == alone else 1
        rates[name] = [
            pairs / share / statistics.median(values) for values in zip(*found, strict=True)
        ]
        for rate, what in zip(rates[name], ("by the clock", "per processor second"), strict=True):
            report.add(f"{width} wide, {name}: pairs a second {what}", rate)
    for number, (what, target) in enumerate((("", ">= 0.9"), (", per processor second", ""))):
        ratio = rates[ours][number] / rates[apart][number]
        report.add(
            f"{width} wide: {workers} workers / {workers} separate processes{what}",
            ratio,
            "x",
            target,
        )
    report.add(
        f"{width} wide: {workers} workers / one process", rates[ours][0] / rates[alone][0], "x"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all measurements."""
    configuration = (bundled_artifacts() / "mini-encoder" / "config.json").read_text(
        encoding="utf-8"
    )
    bundled = json.loads(configuration)["hidden_size"]
    parser = options(__doc__)
    parser.add_argument("--pairs", type=int, default=100_000, help="default: %(default)s")
    parser.add_argument(
        "--widths", default=f"{bundled},768", help="of the vectors (default: %(default)s)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--workers", type=int, default=2, help="default: %(default)s")
    args = parser.parse_args(argv)
    report = Report()
    print(f"{args.pairs} pairs of {_TOKENS} tokens, {args.repeats} repeats; {machine()}")
    for width in map(int, args.widths.split(",")):
        measure(report, width, args.pairs, args.workers, args.repeats)
    report.finish(args.json, pairs=args.pairs, workers=args.workers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
