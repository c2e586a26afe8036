"""The papers' tables: metrics as rows, language pairs as columns, and a paper's numbers beside
ours."""

import csv
import dataclasses
import io

import numpy as np
import pytest
from helpers import judged

from mtmetrics.checks import InputReport
from mtmetrics.errors import InputError
from mtmetrics.reports.agreement import (
    PEARSON,
    Measure,
    MetricCell,
    MetricRow,
    MetricTable,
    metric_table,
    remarks,
)
from mtmetrics.reports.agreement_report import (
    chosen_layers,
    joined_signature,
    mean_intervals,
    report_files,
    report_layers,
    report_metrics,
)
from mtmetrics.reports.metric_runs import Entry, RowScores
from mtmetrics.reports.recipes import Recipe, RecipeRow
from mtmetrics.scorers.results import MetricResult
from mtmetrics.scorers.spec import MetricSpec
from mtmetrics.statistics.correlation import Correlation
from mtmetrics.statistics.significance import CorrelationInterval

HUMAN = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
COLUMNS = [judged(HUMAN, f"{pair}.jsonl", pair) for pair in ("de-en", "fi-en")]
UP, NEARLY, DOWN = (
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.5],
    [1.0, 2.0, 3.0, 4.0, 6.0, 5.0],
    [6.0, 5.0, 4.0, 3.0, 2.0, 1.0],
)


def rows(last: RowScores) -> list[RowScores]:
    signatures = ["bertr|lp:de-en|v:1", "bertr|lp:fi-en|v:1"]
    bertr = RowScores(Entry("bertr:mini", MetricSpec("bertr", "mini")), [UP, NEARLY], signatures)
    return [bertr, RowScores(Entry("given", column="given"), [NEARLY, UP]), last]


@pytest.fixture
def table() -> MetricTable:
    return metric_table(
        rows(RowScores(Entry("esim"), [], problem="no such model")),
        COLUMNS,
        PEARSON,
        test="williams",
    )


def test_markdown(table) -> None:
    lines = report_metrics(table, {}).render("markdown").splitlines()
    assert lines[0] == "| metric | de-en | fi-en | average |"
    assert lines[2].startswith("| bertr:mini | **0.9")
    assert lines[3].startswith("| given | 0.943")
    assert lines[4] == "| esim |  |  |  |"
    assert "Williams' test, p ≥ 0.05" in lines[6]
    assert "Not run: esim: no such model" in lines
    assert "bertr:mini: bertr|lp:de-en,fi-en|v:1" in lines


def test_json(table) -> None:
    shown = report_metrics(table, {"field": "translation"}).document
    about = {
        "field": "translation",
        "coefficient": "pearson",
        "group": "none",
        "significance": "williams",
    }
    assert shown == shown | about
    assert shown["columns"][1] == {"file": "fi-en.jsonl", "lp": "fi-en", "n": 6}
    first, given, missing = shown["rows"]
    assert first["metric"] == "bertr:mini"
    assert first["values"][0]["best"] is True
    assert first["average"] == pytest.approx(np.mean([value["value"] for value in first["values"]]))
    assert given["column"] == "given"
    assert given["values"][0]["p"] == pytest.approx(table.rows[1].cells[0].p_value.value)
    assert missing == {"title": "esim", "problem": "no such model"}


def test_separated_values_and_latex(table) -> None:
    head, bertr, given, esim = csv.reader(io.StringIO(report_metrics(table, {}).render("csv")))
    assert head == ["metric", "de-en", "fi-en", "average", "signature", "problem"]
    assert bertr[-2:] == ["bertr|lp:de-en,fi-en|v:1", ""]
    assert given[1] == "0.943"
    assert esim == ["esim", "", "", "", "", "no such model"]
    text = report_metrics(table, {}).render("latex")
    assert text.startswith(r"\begin{tabular}{lrrr}")
    assert r"\noindent bertr:mini: bertr\textbar{}lp:de-en,fi-en" in text
    assert "†" not in text


def test_intervals_and_undefined_values() -> None:
    flat = RowScores(Entry("flat"), [[1.0] * 6, [1.0] * 6])
    table = metric_table(rows(flat), COLUMNS, Measure("spearman"), intervals=True)
    lines = report_metrics(table, {}).render("markdown").splitlines()
    assert "[" in lines[2]
    assert lines[4] == "| flat | nan | nan | nan |"
    shown = report_metrics(table, {}).document
    assert set(shown["rows"][0]["values"][0]["ci"]) == {"low", "high", "level", "resamples", "seed"}
    assert shown["rows"][2]["values"][0] == {
        "value": None,
        "best": False,
        "undefined": "the scores are constant",
    }


def test_systems_show_their_accuracy_and_one_file_needs_no_average() -> None:
    columns = [judged(HUMAN, level="system", system=list("abcdef"))]
    table = metric_table(
        [RowScores(Entry("a"), [UP]), RowScores(Entry("b"), [DOWN])], columns, PEARSON
    )
    lines = report_metrics(table, {}).render("markdown").splitlines()
    assert lines[0] == "| metric | de-en | accuracy |"
    assert lines[2].endswith("| 1.000 |")
    assert report_metrics(table, {}).document["rows"][1]["accuracy"] == 0.0


def test_a_papers_numbers_stand_beside_ours(table) -> None:
    papers = [
        RecipeRow("BERTR", {"de-en": 0.5, "fi-en": 0.7, "cs-en": 0.9}, 0.7, metric="bertr"),
        RecipeRow("given", {"de-en": 0.4}, None, column="given"),
        RecipeRow("ESIM", {}, None, metric="esim"),
    ]
    recipe = Recipe(
        "t", "Table T", "Someone, 2020", "segment", ["cs-en", "de-en", "fi-en"], papers, "A note."
    )
    head, bertr, given, esim = csv.reader(
        io.StringIO(report_metrics(table, {}, recipe).render("csv"))
    )
    published = ["average published", "difference", "cs-en published", "average of all published"]
    assert head[:-2] == [
        "metric",
        "de-en",
        "de-en published",
        "fi-en",
        "fi-en published",
        "average",
        *published,
    ]
    assert (bertr[2], bertr[4], bertr[6], bertr[8:10]) == (
        "0.500",
        "0.700",
        "0.600",
        ["0.900", "0.700"],
    )
    assert float(bertr[7]) == pytest.approx(float(bertr[5]) - 0.6, abs=0.0011)
    assert (given[2], given[4], given[6:10]) == ("0.400", "", ["", "", "", ""])
    assert esim[1:9] == [""] * 8
    lines = report_metrics(table, {}, recipe).render("markdown").splitlines()
    assert "Published: Table T. Someone, 2020" in lines
    assert "A note." in lines
    shown = report_metrics(table, {}, recipe).document
    assert shown["recipe"]["name"] == "t"
    assert shown["rows"][0]["published"] == {"de-en": 0.5, "fi-en": 0.7, "cs-en": 0.9}


def test_signatures_of_several_files_are_joined() -> None:
    joined = joined_signature(["m|lp:de-en|map:clp#1|v:1", "m|lp:fi-en|map:clp#2|v:1"])
    assert joined == "m|lp:de-en,fi-en|map:clp#1,clp#2|v:1"
    assert joined_signature(["m|v:1", "m|v:1"]) == "m|v:1"
    assert joined_signature(["m|lm:none|v:1", "m|v:1"]) == "m|lm:none|v:1 m|v:1"
    assert joined_signature([]) == ""


# One metric: a row per file.

LENGTHS = np.array([1.0, 2.0, 3.0, 4.0])


def lengths(
    *humans: list[float | None], parts: bool = True
) -> tuple[MetricTable, list[MetricResult]]:
    """A metric that says 1, 2, 3, 4, its negation, and a part that is the same for all, on each
    file."""
    columns = {"score": LENGTHS, "negated": -LENGTHS, "flat": np.zeros(4)}
    names = zip(("set.jsonl", "b|c.jsonl"), ("de-en", "fi-en"), humans, strict=False)
    files = [judged(human, file, pair) for file, pair, human in names]
    rows = [
        RowScores(Entry(name, MetricSpec("m"), part=name), [values.tolist() for _ in files])
        for name, values in columns.items()
        if parts or name == "score"
    ]
    blank = np.array([False, False, False, True])
    parted = {name: columns[name] for name in ("negated", "flat")}
    result = MetricResult(LENGTHS, parted, blank, InputReport(4), "l|v:0")
    return metric_table(rows, files, PEARSON), [result for _ in files]


TWO = [2.0, 1.0, 4.0, 3.0], [1.0, 2.0, 3.0, 4.0]


def test_files_as_json_hold_full_precision_and_reasons() -> None:
    table, results = lengths(*TWO)
    shown = report_files(table, results, {"metric": "length"}).document
    first, second = shown["files"]
    assert shown["metric"] == "length"
    assert (first["file"], first["lp"], first["n"], first["signature"]) == (
        "set.jsonl",
        "de-en",
        4,
        "l|v:0",
    )
    assert first["pearson"] == {
        "score": pytest.approx(0.6, abs=1e-12),
        "negated": pytest.approx(-0.6),
        "flat": None,
    }
    assert first["pearson"]["score"] == table.rows[0].cells[0].correlation.value
    assert first["undefined"] == {"flat": "the scores are constant"}
    assert first["range"] == {
        "score": (1.0, 3.0),
        "negated": (-3.0, -1.0),
        "flat": (0.0, 0.0),
    }  # of what is not blank
    assert first["report"]["segments"] == 4
    assert second["pearson"]["score"] == pytest.approx(1.0)
    assert shown["mean"]["pearson"]["score"] == pytest.approx(0.8)
    assert shown["mean"]["undefined"] == {"flat": "undefined for de-en (file 1), fi-en (file 2)"}
    score = report_files(*lengths(*TWO, parts=False), {}).document["files"][0]
    assert (list(score["pearson"]), list(score["range"]), "undefined" in score) == (
        ["score"],
        ["score"],
        False,
    )


def test_files_as_tables() -> None:
    assert report_files(*lengths(*TWO), {}).render("tsv").splitlines() == [
        "file\tlp\tn\tscore\tnegated\tflat\tsignature",
        "set.jsonl\tde-en\t4\t0.600\t-0.600\tnan\tl|v:0",
        "b|c.jsonl\tfi-en\t4\t1.000\t-1.000\tnan\tl|v:0",
        "mean\t\t8\t0.800\t-0.800\tnan\t",
    ]
    assert report_files(*lengths(*TWO, parts=False), {}).render("markdown").splitlines() == [
        "| file | lp | n | score | signature |",
        "|---|---|---:|---:|---|",
        "| set.jsonl | de-en | 4 | 0.600 | l\\|v:0 |",
        "| b\\|c.jsonl | fi-en | 4 | 1.000 | l\\|v:0 |",
        "| mean |  | 8 | 0.800 |  |",
    ]
    table = report_files(*lengths([1, -1, -1, 1.0001]), {}).render("tsv")
    assert "0.000\t0.000" in table
    assert "-0.000" not in table


def test_files_with_few_or_constant_judgements() -> None:
    table, results = lengths([2, 1, None, 3])
    [file] = report_files(table, results, {}).document["files"]
    assert file["n"] == 3
    assert file["pearson"]["score"] == pytest.approx(np.corrcoef([1, 2, 4], [2, 1, 3])[0, 1])
    table, results = lengths([3, 3, 3, 3], parts=False)
    assert report_files(table, results, {}).document["mean"] == {
        "pearson": {"score": None},
        "undefined": {"score": "undefined for de-en (file 1)"},
    }
    assert remarks(table) == [
        "set.jsonl (de-en): no correlation for score: the human judgements are constant"
    ]


# One metric at several layers.


def study(a: float, b: float, *, parts: bool) -> MetricTable:
    rows = []
    for name, scale in (("score", 1.0), ("part", 0.5))[: 1 + parts]:
        values = [
            Correlation(scale * value, "constant" if np.isnan(value) else None)
            for value in (a, b, (a + b) / 2)
        ]
        rows.append(
            MetricRow(
                RowScores(Entry(name, part=name), []), [*map(MetricCell, values[:2])], values[2]
            )
        )
    return MetricTable([judged([1.0], file) for file in ("a", "b")], rows, PEARSON, "none")


def studies(*, parts: bool) -> dict[int, MetricTable]:
    return {1: study(0.2, 0.4, parts=parts), 2: study(0.5, float("nan"), parts=parts)}


def test_layers_of_the_user() -> None:
    assert chosen_layers("all", 3) == [0, 1, 2, 3]
    assert chosen_layers("3,1,1", 3) == [1, 3]
    for text in ("4", "-1", "one", ""):
        with pytest.raises(InputError, match="numbers from 0 to 3"):
            chosen_layers(text, 3)
    with pytest.raises(InputError, match="no choice of layer"):
        chosen_layers("all", None)


def test_layers() -> None:
    lines = report_layers(studies(parts=False), {}).render("tsv").splitlines()
    assert lines[0] == "measure\tlayer\ta (de-en)\tb (de-en)\tmean"
    assert lines[1:] == ["score\t1\t0.200\t0.400\t0.300", "score\t2\t0.500\tnan\tnan"]
    assert len(report_layers(studies(parts=True), {}).render("markdown").splitlines()) == 6
    document = report_layers(studies(parts=False), {"metric": "m"}).document
    means = [row["pearson"]["mean"] for row in document["layers"]]
    assert (document["metric"], means) == ("m", [0.30000000000000004, None])


def test_intervals_of_the_mean_over_files() -> None:
    def cell(low: float, high: float) -> MetricCell:
        return MetricCell(Correlation(0.5), interval=CorrelationInterval(low, high, 0.95, 9, 1))

    row = MetricRow(
        RowScores(Entry("score"), []), [cell(0.2, 0.9), cell(0.1, 0.8)], Correlation(0.5)
    )
    part = RowScores(Entry("part", part="part"), [])
    bare = dataclasses.replace(row, scored=part, cells=[row.cells[0], MetricCell(Correlation(0.5))])
    [(name, bounds)] = mean_intervals({3: MetricTable([], [row, bare], PEARSON, "none")}).items()
    assert (name, bounds[3]) == ("score", pytest.approx((0.5 - 0.25, 0.5 + 0.25)))


# Styles of tables.
