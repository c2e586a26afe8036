"""Tables on a terminal."""

import pytest

from mtmetrics.evaluation.table_styles import Marked, terminal

TABLE = [
    ["metric", "system", "mean", "95 % interval", "segments"],
    ["xmoverscore:mini", "a-system-name.of.something", "-0.4521", Marked("[-0.4412, 0.4622]", True, True), "1,000"],
    ["bertr", "系统甲", "-0.1", "0.1", "77777"],
]


@pytest.mark.parametrize("width", [10, 59, 60, 61, 71, 80, 120])
def test_no_number_is_cut_or_broken_at_any_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    text = terminal(TABLE, range(2, 5))
    assert all(word in text.split() for word in ("-0.4521", "[-0.4412,", "1,000", "77777"))
    assert "\x1b" not in text
    assert width < 80 or max(map(len, text.splitlines())) <= width
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[1m" in terminal(TABLE, range(2, 5))


def test_a_pipe_gets_no_colour_and_whole_lines() -> None:
    lines = terminal(TABLE, range(2, 5)).splitlines()
    assert len(lines) == 4
    assert "a-system-name.of.something" in lines[2]
    assert "\x1b" not in "".join(lines)
