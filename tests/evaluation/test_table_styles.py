"""Tables as text."""

import csv
import io

from mtmetrics.evaluation.correlation import Correlation
from mtmetrics.evaluation.table_styles import STYLES, Marked, latex_text, rounded

TABLE = [["metric", "de-en"], ["a|b_c, d", Marked("0.500", bold=True)], ["e\n f", Marked("0.499", tied=True)]]


def test_markdown() -> None:
    assert STYLES["markdown"](TABLE, [1]).splitlines() == [
        "| metric | de-en |",
        "|---|---:|",
        "| a\\|b_c, d | **0.500** |",
        "| e f | 0.499 † |",
    ]


def test_latex_rows_that_begin_like_an_argument() -> None:
    assert STYLES["latex"]([["a"], ["[b]"], ["*"]], []).splitlines()[4:6] == [r"{}[b] \\", r"{}* \\"]


def test_latex() -> None:
    lines = STYLES["latex"](TABLE, [1]).splitlines()
    assert lines[0] == r"\begin{tabular}{lr}"
    assert lines[4] == r"a\textbar{}b\_c, d & \textbf{0.500} \\"
    assert lines[5] == r"e f & 0.499$^{\dagger}$ \\"
    assert lines[-1] == r"\end{tabular}"
    assert latex_text("100 % of {a} \\ b~^") == r"100 \% of \{a\} \textbackslash{} b\textasciitilde{}\textasciicircum{}"


def test_separated_values_hold_numbers_without_marks() -> None:
    rows = list(csv.reader(io.StringIO(STYLES["csv"](TABLE, [1]))))
    assert rows == [["metric", "de-en"], ["a|b_c, d", "0.500"], ["e f", "0.499"]]
    assert STYLES["tsv"](TABLE, [1]).splitlines()[2] == "e f\t0.499"


def test_numbers() -> None:
    assert rounded(Correlation(0.12345)) == "0.123"
    assert rounded(Correlation(-0.0001)) == "0.000"
    assert rounded(Correlation(float("nan"), "constant")) == "nan"
    assert rounded(None) == "nan"
