"""Measures mining by Word Mover's Distance: ``mining_bench.py [--source-text FILE --target-text FILE] [--sizes N,N]
[--json OUT]``.

Each size runs in a process of its own with the bundled encoder: 20 candidates per source, the best 5 % of pairs, after
one remapping where a map is given. Seconds are those of the processor. The files hold one prepared sentence per line;
without files the sentences are made up, of which no two resemble each other, so that bounds rule out less. Exit code 0
whatever the numbers say: a busy machine is no failure.
"""

import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measure import Report, machine, options, probe
from workload import made_sentences

from mtmetrics.layout import bundled_artifacts
from mtmetrics.mining.neighbours import inverted_file_size

_LARGE = 4_000_000


def measure(report: Report, size: int, found: dict[str, Any]) -> None:
    """One size."""
    what, seconds, counts = f"{size} x {size}", found["seconds"], found["counts"]
    report.add(f"{what}: encoding", seconds["encoding"], "s")
    report.add(f"{what}: mining", seconds["mining"], "s")
    report.add(f"{what}: of it, candidates", seconds["candidates"], "s")
    report.add(f"{what}: of it, bounds and transport", seconds["transport"], "s")
    report.add(f"{what}: share of the neighbours that an inverted file finds", found["recall"])
    report.add(f"{what}: peak memory", found["peak"], "MiB")
    above = found["peak"] - found["before"]
    report.add(f"{what}: peak memory above the models / word vectors", above / _vectors_mib(found), "x")
    sentences = counts["sources"] + counts["targets"]
    report.add(f"{what}: encodings per sentence", found["encoded"] / sentences, "", "<= 1")
    skipped = counts["skipped"] / (counts["skipped"] + counts["solved"])
    report.add(f"{what}: share of transports ruled out", skipped, "", ">= 0.8")
    if "same_pairs" in found:
        report.add(f"{what}: same pairs as by solving all", found["same_pairs"], "", ">= 1")
        report.add(f"{what}: transport, all solved", seconds["transport, all"], "s")


def _vectors_mib(found: dict[str, Any]) -> float:
    return found["tokens"] * 256 * 4 / 2**20


def growth(report: Report, found: dict[int, dict[str, Any]]) -> None:
    """How time grows between the smallest and the largest size, and what that means for the paper's four million."""
    small, large = min(found), max(found)
    steps = math.log(large / small)
    total = {size: row["seconds"]["encoding"] + row["seconds"]["mining"] for size, row in found.items()}
    for what, value in (
        ("encoding and mining", math.log(total[large] / total[small])),
        ("candidates", math.log(found[large]["seconds"]["candidates"] / found[small]["seconds"]["candidates"])),
    ):
        report.add(f"growth exponent of {what}, {small} to {large}", value / steps)
    seconds = found[large]["seconds"]
    hours = {
        "encoding": seconds["encoding"] * _LARGE / large / 3600,
        "bounds and transport": seconds["transport"] * _LARGE / large / 3600,
        "candidates by inverted file": _inverted_seconds(seconds, large) / 3600,
    }
    for what, value in {**hours, "together": sum(hours.values())}.items():
        report.add(f"estimate for {_LARGE} x {_LARGE}: {what}", value, "h")
    vectors = _vectors_mib(found[large]) * _LARGE / large / 1024
    report.add(f"estimate for {_LARGE}: word vectors of both sides", vectors, "GiB")


def _inverted_seconds(seconds: dict[str, float], size: int) -> float:
    """Seconds of an inverted file at the large size, which grow with the comparisons of two vectors."""

    def comparisons(rows: int) -> tuple[float, float]:
        lists, probes = inverted_file_size(rows)
        return lists * min(rows, 64 * lists), rows * (lists + probes * rows / lists)

    steps = [large / small for large, small in zip(comparisons(_LARGE), comparisons(size), strict=True)]
    return steps[0] * seconds["inverted file, building"] + steps[1] * seconds["inverted file, search"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all measurements."""
    parser = options(__doc__)
    parser.add_argument("--source-text", metavar="FILE", help="sentences of the source language, else made-up ones")
    parser.add_argument("--target-text", metavar="FILE", help="sentences of the target language, else made-up ones")
    parser.add_argument("--map", metavar="FILE", help="map of the source side")
    sizes = "5000,10000,20000,40000"
    parser.add_argument("--sizes", default=sizes, metavar="N,N", help="sentences a side (default: %(default)s)")
    args = parser.parse_args(argv)
    sizes = sorted(int(size) for size in args.sizes.split(","))
    report, found = Report(), {}
    print(f"mini-encoder; text from {args.source_text or 'a seeded generator'}; {machine()}")
    with tempfile.TemporaryDirectory() as temporary:
        paths = [args.source_text, args.target_text]
        for side, path in enumerate(paths):
            if path is None:
                paths[side] = str(Path(temporary, f"{side}.txt"))
                Path(paths[side]).write_text("\n".join(made_sentences(sizes[-1], seed=side)), encoding="utf-8")
        for size in sizes:
            arguments = [*paths, size, bundled_artifacts() / "mini-encoder", *(["--map", args.map] if args.map else [])]
            row = probe("mining_probe.py", *arguments, *(["--unpruned"] if size == sizes[0] else []))
            if row is None:  # the sizes before it are not lost
                break
            found[size] = row
            measure(report, size, row)
    if len(found) > 1:
        growth(report, found)
    report.finish(args.json, source=args.source_text, target=args.target_text, map=args.map)
    return 0


if __name__ == "__main__":
    sys.exit(main())
