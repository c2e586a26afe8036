"""Times contenders in turns and reports numbers beside what they should be."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def options(
    description: str, *, data: str | None = None, required: bool = False
) -> argparse.ArgumentParser:
    """A parser with what the benchmarks share: where the numbers go, and a file of judged segments
    where `data` says what is done without one."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    if data is not None:
        parser.add_argument(
            "--data", metavar="FILE", required=required, help=f"JSON Lines of judged segments{data}"
        )
    parser.add_argument("--json", metavar="OUT", help="write the numbers here too")
    return parser


class Report:
    """Collects rows and prints each at once."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, what: str, value: float, unit: str = "", target: str = "") -> None:
        """Adds a number, judged by its target, such as ``<= 1.05``."""
        sign, _, bound = target.partition(" ")
        met = (
            bool(value <= float(bound) if sign == "<=" else value >= float(bound))
            if target
            else None
        )
        self.rows.append(
            {"what": what, "value": float(value), "unit": unit, "target": target, "met": met}
        )
        verdict = {None: "", True: "met", False: "MISSED"}[met]
        print(f"{what:<68} {value:>11.4g} {unit:<6} {target:<9} {verdict}".rstrip(), flush=True)

    def finish(self, path: str | None, **about: object) -> None:
        """Prints what was missed, and writes all numbers as JSON if there is a path."""
        if path:
            document = {**about, "machine": machine(), "rows": self.rows}
            Path(path).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        missed = [row["what"] for row in self.rows if row["met"] is False]
        met = sum(row["met"] is True for row in self.rows)
        print(
            f"{met} targets met, {len(missed)} missed" + "".join(f"\n  {what}" for what in missed)
        )


def alternating(
    contenders: Mapping[str, Callable[[], object]],
    repeats: int,
    *,
    warm_up: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of each contender by the clock; they take turns, so that a busy moment hits
    them all."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for run in range(0 if warm_up else 1, repeats + 1):
        for name, call in contenders.items():
            start = clock()
            call()
            if run:  # the first turn warms up
                seconds[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def probe(script: str, *arguments: object) -> dict[str, Any] | None:
    """Returns the JSON that a script beside this one prints in a process of its own; None where it fails,
    after a message."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(
            f"{script} failed with code {done.returncode} (below 0: ended by that "
            f"signal)\n{done.stderr}"
        )
        return None
    return json.loads(done.stdout)


def machine() -> str:
    """Describes the machine of a measurement."""
    import torch

    return f"{os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}"
