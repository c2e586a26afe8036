"""Reports in every style: grids, numbers, signatures."""

import csv
import dataclasses

import pytest

from mtmetrics.reports.styles import (
    STYLES,
    Grid,
    Marked,
    Report,
    correlation_text,
    latex_text,
    terminal,
)
from mtmetrics.statistics.correlation import Correlation

TABLE = [
    ["metric", "de-en"],
    ["a|b_c, d", Marked("0.500", bold=True)],
    ["e\n f", Marked("0.499", tied=True)],
]

WIDE = [
    ["metric", "system", "mean", "95 % interval", "segments"],
    [
        "xmoverscore:mini",
        "a-system-name.of.something",
        "-0.4521",
        Marked("[-0.4412, 0.4622]", True, True),
        "1,000",
    ],
    ["bertr", "系统甲", "-0.1", "0.1", "77777"],
]


def test_a_report_in_every_style() -> None:
    wide, narrow = [["a", "b"], ["x", "1"]], [["a"], ["x"]]
    report = Report(
        {"a": "x"},
        [Grid(wide, (1,)), "A note | of\n1 %."],
        [Grid(narrow), "Short."],
        [["flat"], ["y"]],
    )
    assert report.render("csv") == "flat\ny"
    assert report.render("tsv") == "flat\ny"
    assert report.render("markdown") == "| a | b |\n|---|---:|\n| x | 1 |\n\nA note | of 1 %."
    assert report.render("latex").endswith("\n\n\\noindent A note \\textbar{} of 1 \\%.")
    assert (
        dataclasses.replace(report, comments=True)
        .render("latex")
        .endswith("\n\n% A note | of 1 %.")
    )
    lines = report.render("table").split("\n")
    assert (lines[0], lines[2:]) == ("a", ["x", "", "Short."])
    plain = dataclasses.replace(report, terminal=(), flat=())
    assert (plain.render("tsv"), "b" in plain.render("table")) == ("a\tb\nx\t1", True)


def test_styles() -> None:
    shown = {
        style: STYLES[style](TABLE, [1]).splitlines()
        for style in ("markdown", "latex", "csv", "tsv")
    }
    assert shown["markdown"][1:] == [
        "|---|---:|",
        "| a\\|b_c, d | **0.500** |",
        "| e f | 0.499 † |",
    ]
    assert (shown["latex"][0], shown["latex"][-1]) == (r"\begin{tabular}{lr}", r"\end{tabular}")
    assert shown["latex"][4:6] == [
        r"a\textbar{}b\_c, d & \textbf{0.500} \\",
        r"e f & 0.499$^{\dagger}$ \\",
    ]
    # At the beginning of a row these would be an argument of the line end before it.
    assert STYLES["latex"]([["a"], ["[b]"], ["*"]], []).splitlines()[4:6] == [
        r"{}[b] \\",
        r"{}* \\",
    ]
    assert (
        latex_text("100 % of {a} \\ b~^")
        == r"100 \% of \{a\} \textbackslash{} b\textasciitilde{}\textasciicircum{}"
    )
    # Numbers without marks.
    assert [*csv.reader(shown["csv"])] == [
        ["metric", "de-en"],
        ["a|b_c, d", "0.500"],
        ["e f", "0.499"],
    ]
    assert shown["tsv"][2] == "e f\t0.499"
    for value, text in ((0.12345, "0.123"), (-0.0001, "0.000")):
        assert correlation_text(Correlation(value)) == text
    assert correlation_text(Correlation(float("nan"), "constant")) == "nan"


@pytest.mark.parametrize("width", [10, 59, 60, 61, 71, 80, 120])
def test_no_number_is_cut_or_broken_at_any_width(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    text = terminal(WIDE, range(2, 5))
    assert all(word in text.split() for word in ("-0.4521", "[-0.4412,", "1,000", "77777"))
    assert "\x1b" not in text
    assert width < 80 or max(map(len, text.splitlines())) <= width
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[1m" in terminal(WIDE, range(2, 5))


def test_a_pipe_gets_no_colour_and_whole_lines() -> None:
    lines = terminal(WIDE, range(2, 5)).splitlines()
    assert len(lines) == 4
    assert "a-system-name.of.something" in lines[2]
    assert "\x1b" not in "".join(lines)
