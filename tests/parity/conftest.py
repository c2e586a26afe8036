"""Prints how many golden cases ran, passed and were listed."""

from collections.abc import Iterator

import pytest
from goldens import FOLDER, LISTED, TALLY


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    yield
    if not TALLY:
        return
    terminalreporter.section(f"parity with {FOLDER}")
    for kind in sorted({kind for kind, _ in TALLY}):
        ran, passed, listed = (TALLY[kind, outcome] for outcome in ("ran", "passed", "listed"))
        terminalreporter.line(f"{kind}: {ran} cases ran, {passed} passed, {listed} listed as not reproduced")
    for name, reason in LISTED.items():
        terminalreporter.line(f"  listed: {name}: {reason}")
