"""Tables as text."""

import csv

import pytest

from mtmetrics.evaluation.tables import RENDERERS, latex, latex_text, markdown

TABLE = [["system", "score"], ["a|b_1", "0.5"], ["two\nlines\tand tab", '50 %, "x"']]


def test_markdown_escapes_bars_and_aligns_numbers() -> None:
    assert markdown(TABLE, [1]).splitlines() == [
        "| system | score |",
        "|---|---:|",
        r"| a\|b_1 | 0.5 |",
        '| two lines and tab | 50 %, "x" |',
    ]


def test_latex_is_a_tabular_with_escaped_cells() -> None:
    assert latex(TABLE, [1]).splitlines() == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"system & score \\",
        r"\midrule",
        r"a\textbar{}b\_1 & 0.5 \\",
        r'two lines and tab & 50 \%, "x" \\',
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert latex_text(r"\{~}") == r"\textbackslash{}\{\textasciitilde{}\}"


@pytest.mark.parametrize(("style", "dialect"), [("tsv", "excel-tab"), ("csv", "excel")])
def test_separated_values_are_read_back(style: str, dialect: str) -> None:
    lines = RENDERERS[style](TABLE, [1]).splitlines()
    # A tab-separated row is plain: nothing is quoted.
    quoting = csv.QUOTE_NONE if style == "tsv" else csv.QUOTE_MINIMAL
    assert list(csv.reader(lines, dialect, quoting=quoting)) == [[" ".join(cell.split()) for cell in row] for row in TABLE]
