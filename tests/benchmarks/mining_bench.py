"""Measures mining by Word Mover's Distance: ``mining_bench.py [--source-text FILE --target-text FILE] [--sizes N,N] [--json OUT]``.

Each size runs in a process of its own with the bundled encoder: 20 candidates per source, the best 5 % of pairs, after one remapping where
a map is given. The files hold one prepared sentence per line; without files the sentences are made up. Exit code 0 whatever the numbers
say: a busy machine is no failure.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measure import Report, machine
from workload import made_sentences

from mtmetrics.layout import bundled_artifacts

_HERE = Path(__file__).parent
_LARGE = 4_000_000


def probe(arguments: Sequence[object]) -> dict[str, Any]:
    """What `mining_probe.py` prints."""
    command = [sys.executable, str(_HERE / "mining_probe.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"mining_probe.py failed:\n{done.stderr}")
    return json.loads(done.stdout)


def measure(report: Report, size: int, found: dict[str, Any]) -> None:
    """One size."""
    what, seconds, counts = f"{size} x {size}", found["seconds"], found["counts"]
    report.add(f"{what}: encoding", seconds["encoding"], "s")
    report.add(f"{what}: mining", seconds["mining"], "s")
    report.add(f"{what}: of it, candidates", seconds["candidates"], "s")
    report.add(f"{what}: of it, bounds and transport", seconds["transport"], "s")
    report.add(f"{what}: candidates by inverted file instead", seconds["candidates, inverted file"], "s")
    report.add(f"{what}: share of the neighbours that it finds", found["recall"], "")
    report.add(f"{what}: peak memory", found["peak"], "MiB")
    report.add(f"{what}: peak memory above the models / word vectors", (found["peak"] - found["before"]) / _vectors_mib(found), "x")
    report.add(f"{what}: encodings per sentence", found["encoded"] / (counts["sources"] + counts["targets"]), "", at_most=1)
    report.add(f"{what}: share of transports ruled out", counts["skipped"] / (counts["skipped"] + counts["solved"]), "", at_least=0.8)
    if "same_pairs" in found:
        report.add(f"{what}: same pairs as by solving all", found["same_pairs"], "", at_least=1)
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
        report.add(f"growth exponent of {what}, {small} to {large}", value / steps, "")
    seconds = found[large]["seconds"]
    linear = (seconds["encoding"] + seconds["transport"]) * _LARGE / large
    inverted = _extrapolated({size: row["seconds"]["candidates, inverted file"] for size, row in found.items()})
    hours = {"encoding and transport": linear / 3600, "candidates, inverted file": inverted / 3600}
    for what, value in {**hours, "together": sum(hours.values())}.items():
        report.add(f"estimate for {_LARGE} x {_LARGE}: {what}", value, "h")
    report.add(f"estimate for {_LARGE}: word vectors of both sides", _vectors_mib(found[large]) * _LARGE / large / 1024, "GiB")


def _extrapolated(seconds: dict[int, float]) -> float:
    """Seconds at the large size, from a linear part (re-ranking) and a quadratic one (search) through the smallest and largest size."""
    small, large = min(seconds), max(seconds)
    each = {size: value / size for size, value in seconds.items()}
    quadratic = max((each[large] - each[small]) / (large - small), 0.0)
    return (each[small] - quadratic * small) * _LARGE + quadratic * _LARGE**2


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source-text", metavar="FILE", help="sentences of the source language, else made-up ones")
    parser.add_argument("--target-text", metavar="FILE", help="sentences of the target language, else made-up ones")
    parser.add_argument("--map", metavar="FILE", help="map of the source side")
    parser.add_argument("--sizes", default="5000,10000,20000,40000", metavar="N,N", help="sentences a side (default: %(default)s)")
    parser.add_argument("--json", metavar="OUT", help="write the numbers here too")
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
            found[size] = probe([*arguments, *(["--unpruned"] if size == sizes[0] else [])])
            measure(report, size, found[size])
    if len(sizes) > 1:
        growth(report, found)
    report.finish(args.json, source=args.source_text, target=args.target_text, map=args.map)
    return 0


if __name__ == "__main__":
    sys.exit(main())
