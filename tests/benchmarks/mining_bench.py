"""Measures mining by Word Mover's Distance: ``mining_bench.py [--lp XX-YY] [--source-text FILE
--target-text FILE] [--sizes N,N] [--json OUT]``.

Each size runs in a process of its own with the bundled encoder, once with all vectors in memory and
once with all in files: 20 candidates per source, the best 5 % of pairs, after one remapping where a
map is given. Seconds are those of the processor. The files hold one prepared sentence per line;
without files the sentences are made up, of which no two resemble each other, so that bounds rule
out less. Exit code 0 whatever the numbers say: a busy machine is no failure."""

import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import Report, machine, options, probe
from workload import made_sentences

from mtmetrics.layout import bundled_artifacts
from mtmetrics.mining.neighbours import SHARD, inverted_file_size

# The encoder whose words are mined, and its layer.
_ENCODER, _LAYER = "mini-encoder", 6
_LARGE = 4_000_000


def measure(report: Report, what: str, found: dict[str, Any]) -> None:
    """One run."""
    seconds, counts = found["seconds"], found["counts"]
    report.add(f"{what}: encoding", seconds["encoding"], "s")
    report.add(f"{what}: mining", seconds["mining"], "s")
    report.add(f"{what}: of it, candidates", seconds["candidates"], "s")
    report.add(f"{what}: of it, bounds and transport", seconds["transport"], "s")
    if "recall" in found:
        report.add(f"{what}: share of the neighbours that an inverted file finds", found["recall"])
        report.add(f"{what}: building an inverted file", seconds["inverted file, building"], "s")
        report.add(f"{what}: searching in it", seconds["inverted file, search"], "s")
    report.add(f"{what}: peak memory", found["peak"], "MiB")
    above = found["peak"] - found["before"]
    report.add(
        f"{what}: peak memory above the models / word vectors", above / _vectors_mib(found), "x"
    )
    sentences = counts["sources"] + counts["targets"]
    report.add(f"{what}: encodings per sentence", found["encoded"] / sentences, "", "<= 1")
    skipped = counts["skipped"] / (counts["skipped"] + counts["solved"])
    report.add(f"{what}: share of transports ruled out", skipped, "", ">= 0.8")
    if "same_pairs" in found:
        report.add(f"{what}: same pairs as by solving all", found["same_pairs"], "", ">= 1")
        report.add(f"{what}: transport, all solved", seconds["transport, all"], "s")


def _vectors_mib(found: dict[str, Any]) -> float:
    return found["tokens"] * found["dim"] * 4 / 2**20


def estimate(report: Report, found: dict[int, dict[str, Any]]) -> None:
    """How time grows between the smallest and the largest size, and what that means for the paper's
    four million."""
    small, large = min(found), max(found)
    total = {
        size: row["seconds"]["encoding"] + row["seconds"]["mining"] for size, row in found.items()
    }
    if small < large:
        exponent = math.log(total[large] / total[small]) / math.log(large / small)
        report.add(f"growth exponent of encoding and mining, {small} to {large}", exponent)
    seconds = found[large]["seconds"]
    hours = {
        "encoding": seconds["encoding"] * _LARGE / large / 3600,
        "bounds and transport": seconds["transport"] * _LARGE / large / 3600,
        "candidates by inverted file": _inverted_seconds(seconds, large) / 3600,
    }
    for what, value in {**hours, "together": sum(hours.values())}.items():
        report.add(f"estimate for {_LARGE} x {_LARGE}: {what}", value, "h on one core")
    vectors = _vectors_mib(found[large]) * _LARGE / large / 2048
    report.add(f"estimate for {_LARGE}: files of both sides", vectors, "GiB")


def _inverted_seconds(seconds: dict[str, float], size: int) -> float:
    """Seconds of inverted files at the large size, which grow with the comparisons of two
    vectors."""

    def comparisons(rows: int) -> np.ndarray:
        shards = math.ceil(rows / SHARD)
        shard = rows / shards
        lists, probes = inverted_file_size(round(shard))
        return shards * np.array(
            [lists * min(shard, 64 * lists), rows * (lists + probes * shard / lists)]
        )

    steps = comparisons(_LARGE) / comparisons(size)
    return (
        steps[0] * seconds["inverted file, building"] + steps[1] * seconds["inverted file, search"]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all measurements."""
    parser = options(__doc__)
    parser.add_argument("--lp", default="de-en", help="language pair (default: %(default)s)")
    parser.add_argument(
        "--source-text", metavar="FILE", help="sentences of the source language, else made-up ones"
    )
    parser.add_argument(
        "--target-text", metavar="FILE", help="sentences of the target language, else made-up ones"
    )
    parser.add_argument("--map", metavar="FILE", help="map of the source side")
    sizes = "5000,10000,20000,40000"
    parser.add_argument(
        "--sizes", default=sizes, metavar="N,N", help="sentences a side (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    sizes = sorted(int(size) for size in args.sizes.split(","))
    report, found = Report(), {}
    print(
        f"{_ENCODER}, layer {_LAYER}; text from {args.source_text or 'a seeded generator'}; "
        f"{machine()}"
    )
    with tempfile.TemporaryDirectory() as temporary:
        paths = [args.source_text, args.target_text]
        for side, path in enumerate(paths):
            if path is None:
                paths[side] = str(Path(temporary, f"{side}.txt"))
                Path(paths[side]).write_text(
                    "\n".join(made_sentences(sizes[-1], seed=side)), encoding="utf-8"
                )
        for size in sizes:
            arguments = [*paths, size, bundled_artifacts() / _ENCODER, _LAYER, args.lp]
            arguments += ["--map", args.map] if args.map else []
            others = ["--unpruned", "--inverted"] if size == sizes[0] else ["--inverted"]
            runs = [
                probe("mining_probe.py", *arguments, *options) for options in (others, ["--files"])
            ]
            if None in runs:  # the sizes before it are not lost
                break
            found[size] = runs[0]
            for what, run in zip(
                (f"{size} x {size}", f"{size} x {size} in files"), runs, strict=True
            ):
                measure(report, what, run)
            same = len(set(map(tuple, runs[0]["pairs"])) & set(map(tuple, runs[1]["pairs"])))
            report.add(f"{size} x {size}: pairs that both find", same / len(runs[0]["pairs"]))
    if found:
        estimate(report, found)
    report.finish(args.json, source=args.source_text, target=args.target_text, map=args.map)
    return 0


if __name__ == "__main__":
    sys.exit(main())
