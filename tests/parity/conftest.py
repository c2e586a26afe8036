"""Prints how many golden cases ran, passed and were listed."""

from collections.abc import Iterator

import pytest
from goldens import FULL, LISTED, PART, SKIPPED, TALLY


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
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
