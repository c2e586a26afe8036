"""Times contenders in turns and reports numbers beside what they should be."""

import argparse
import dataclasses
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path


def options(description: str, *, data: str | None = None, required: bool = False) -> argparse.ArgumentParser:
    """A parser with what the benchmarks share: where the numbers go, and a file of judged segments.

    Args:
        description: of the benchmark; its first line is shown.
        data: what happens without a file; None where there is none to read.
        required: the file must be given.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    if data is not None:
        parser.add_argument("--data", metavar="FILE", required=required, help=f"JSON Lines of judged segments{data}")
    parser.add_argument("--json", metavar="OUT", help="write the numbers here too")
    return parser


@dataclasses.dataclass(frozen=True)
class Row:
    """One measured number, and what it should be."""

    what: str
    value: float
    unit: str
    target: str = ""
    met: bool | None = None


class Report:
    """Collects rows and prints each at once."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(
        self, what: str, value: float, unit: str, *, at_most: float | None = None, at_least: float | None = None
    ) -> None:
        """Adds a number, judged if it has a bound."""
        target, met = "", None
        if at_most is not None:
            target, met = f"<= {at_most:g}", value <= at_most
        if at_least is not None:
            target, met = f">= {at_least:g}", value >= at_least
        row = Row(what, float(value), unit, target, None if met is None else bool(met))
        self.rows.append(row)
        verdict = {None: "", True: "met", False: "MISSED"}[row.met]
        print(f"{what:<68} {value:>11.4g} {unit:<6} {target:<9} {verdict}".rstrip(), flush=True)

    def finish(self, path: str | None, **about: object) -> None:
        """Prints what was missed, and writes all numbers as JSON if there is a path."""
        if path:
            rows = [dataclasses.asdict(row) for row in self.rows]
            Path(path).write_text(
                json.dumps({**about, "machine": machine(), "rows": rows}, indent=2) + "\n", encoding="utf-8"
            )
        missed = [row.what for row in self.rows if row.met is False]
        met = sum(row.met is True for row in self.rows)
        print(f"{met} targets met, {len(missed)} missed" + "".join(f"\n  {what}" for what in missed))


def alternating(
    contenders: Mapping[str, Callable[[], object]],
    repeats: int,
    *,
    warm_up: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of each contender by the clock; they take turns, so that a busy moment hits them all."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for run in range(0 if warm_up else 1, repeats + 1):
        for name, call in contenders.items():
            start = clock()
            call()
            if run:  # the first turn warms up
                seconds[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def machine() -> str:
    """What the numbers were measured on."""
    import torch

    return f"{os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}"
