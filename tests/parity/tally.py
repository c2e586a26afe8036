"""Counts the golden cases of a run, and prints how many ran, passed and were listed.

With pytest-xdist each process counts its own cases, and sends the counts to the one that prints.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FULL = Path(os.environ.get("MTMETRICS_GOLDENS") or Path(__file__).parents[3] / "shared" / "goldens")
PART = Path(__file__).parent / "data"
# Kind of golden file and outcome ("ran", "passed" or "listed") -> number of cases.
TALLY: Counter[tuple[str, str]] = Counter()
# Name of a case that is not reproduced -> reason.
LISTED: dict[str, str] = {}
# Patterns of golden files that are not here.
SKIPPED: list[str] = []

_KEY = "parity"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Sends the counts of a process of pytest-xdist."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        counts = [[kind, outcome, number] for (kind, outcome), number in TALLY.items()]
        output[_KEY] = {"counts": counts, "listed": LISTED, "skipped": SKIPPED}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Receives the counts of a process; one that died has sent none."""
    received = getattr(node, "workeroutput", {}).get(_KEY)
    if received is None:
        return
    for kind, outcome, number in received["counts"]:
        TALLY[kind, outcome] += number
    LISTED.update(received["listed"])
    SKIPPED.extend(received["skipped"])


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Prints the counts behind the summary of the tests."""
    yield
    if not TALLY:
        return
    terminalreporter.section(f"parity with {PART if SKIPPED else FULL}")
    if SKIPPED:
        where = f"MTMETRICS_GOLDENS names the folder of all golden files, {FULL} lacks"
        terminalreporter.line(f"SKIPPED: {where} {', '.join(dict.fromkeys(SKIPPED))}")
    for kind in sorted({kind for kind, _ in TALLY}):
        ran, passed, listed = (TALLY[kind, outcome] for outcome in ("ran", "passed", "listed"))
        terminalreporter.line(
            f"{kind}: {ran} cases ran, {passed} passed, {listed} listed as not reproduced"
        )
    for name, reason in LISTED.items():
        terminalreporter.line(f"  listed: {name}: {reason}")
