"""The papers' tables: metrics as rows, language pairs as columns, and a paper's numbers beside ours."""

import csv
import io
import json

import numpy as np
import pytest

from mtmetrics.evaluation.measure import PEARSON, Judgements, Measure
from mtmetrics.evaluation.metric_report import joined_signature, render_metrics
from mtmetrics.evaluation.metric_table import MetricTable, metric_table
from mtmetrics.evaluation.recipes import Recipe, RecipeRow
from mtmetrics.evaluation.scored import Entry, Scored
from mtmetrics.evaluation.specs import MetricSpec

HUMAN = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
COLUMNS = [Judgements(f"{pair}.jsonl", pair, np.arange(6), HUMAN, ["i"] * 6, [None] * 6) for pair in ("de-en", "fi-en")]
UP, NEARLY, DOWN = [1.0, 2.0, 3.0, 4.0, 5.0, 6.5], [1.0, 2.0, 3.0, 4.0, 6.0, 5.0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]


def rows(last: Scored) -> list[Scored]:
    return [
        Scored(
            Entry("bertr:mini", MetricSpec("bertr", "mini")), [UP, NEARLY], ["bertr|lp:de-en|v:1", "bertr|lp:fi-en|v:1"]
        ),
        Scored(Entry("given", column="given"), [NEARLY, UP]),
        last,
    ]


@pytest.fixture
def table() -> MetricTable:
    return metric_table(rows(Scored(Entry("esim"), [], problem="no such model")), COLUMNS, PEARSON, test="williams")


def test_markdown(table) -> None:
    lines = render_metrics(table, {}, "markdown").splitlines()
    assert lines[0] == "| metric | de-en | fi-en | average |"
    assert lines[2].startswith("| bertr:mini | **0.9")
    assert lines[3].startswith("| given | 0.943")
    assert lines[4] == "| esim |  |  |  |"
    assert "Williams' test, p ≥ 0.05" in lines[6]
    assert "Not run: esim: no such model" in lines
    assert "bertr:mini: bertr|lp:de-en,fi-en|v:1" in lines


def test_json(table) -> None:
    shown = json.loads(render_metrics(table, {"field": "translation"}, "json"))
    assert (shown["field"], shown["coefficient"], shown["group"], shown["significance"]) == (
        "translation",
        "pearson",
        "none",
        "williams",
    )
    assert shown["columns"][1] == {"file": "fi-en.jsonl", "lp": "fi-en", "n": 6}
    first, given, missing = shown["rows"]
    assert first["metric"] == "bertr:mini"
    assert first["values"][0]["best"] is True
    assert first["average"] == pytest.approx(np.mean([value["value"] for value in first["values"]]))
    assert given["column"] == "given"
    assert given["values"][0]["p"] == pytest.approx(table.rows[1].cells[0].p_value.value)
    assert missing == {"title": "esim", "problem": "no such model"}


def test_separated_values_hold_signatures_and_problems(table) -> None:
    head, bertr, given, esim = csv.reader(io.StringIO(render_metrics(table, {}, "csv")))
    assert head == ["metric", "de-en", "fi-en", "average", "signature", "problem"]
    assert bertr[-2:] == ["bertr|lp:de-en,fi-en|v:1", ""]
    assert given[1] == "0.943"
    assert esim == ["esim", "", "", "", "", "no such model"]


def test_latex_is_closed_and_escaped(table) -> None:
    text = render_metrics(table, {}, "latex")
    assert text.startswith(r"\begin{tabular}{lrrr}")
    assert r"\noindent bertr:mini: bertr\textbar{}lp:de-en,fi-en" in text
    assert "†" not in text


def test_intervals_and_undefined_values() -> None:
    flat = Scored(Entry("flat"), [[1.0] * 6, [1.0] * 6])
    table = metric_table(rows(flat), COLUMNS, Measure("spearman"), intervals=True)
    lines = render_metrics(table, {}, "markdown").splitlines()
    assert "[" in lines[2]
    assert lines[4] == "| flat | nan | nan | nan |"
    shown = json.loads(render_metrics(table, {}, "json"))
    assert set(shown["rows"][0]["values"][0]["ci"]) == {"low", "high", "level", "resamples", "seed"}
    assert shown["rows"][2]["values"][0] == {"value": None, "best": False, "undefined": "the scores are constant"}


def test_one_file_needs_no_average() -> None:
    table = metric_table([Scored(Entry("a"), [UP])], COLUMNS[:1], PEARSON)
    assert render_metrics(table, {}, "markdown").splitlines()[0] == "| metric | de-en |"


def test_systems_show_their_accuracy() -> None:
    columns = [Judgements("f", "de-en", np.arange(6), HUMAN, None, list("abcdef"))]
    table = metric_table([Scored(Entry("a"), [UP]), Scored(Entry("b"), [DOWN])], columns, PEARSON)
    lines = render_metrics(table, {}, "markdown").splitlines()
    assert lines[0] == "| metric | de-en | accuracy |"
    assert lines[2].endswith("| 1.000 |")
    assert json.loads(render_metrics(table, {}, "json"))["rows"][1]["accuracy"] == 0.0


def test_a_papers_numbers_stand_beside_ours(table) -> None:
    papers = [
        RecipeRow("BERTR", {"de-en": 0.5, "fi-en": 0.7, "cs-en": 0.9}, 0.7, metric="bertr"),
        RecipeRow("given", {"de-en": 0.4}, None, column="given"),
        RecipeRow("ESIM", {}, None, metric="esim"),
    ]
    recipe = Recipe("t", "Table T", "Someone, 2020", "segment", ["cs-en", "de-en", "fi-en"], papers, "A note.")
    head, bertr, given, esim = csv.reader(io.StringIO(render_metrics(table, {}, "csv", recipe=recipe)))
    published = ["average published", "cs-en published", "average of all published"]
    assert head[:-2] == ["metric", "de-en", "de-en published", "fi-en", "fi-en published", "average", *published]
    assert (bertr[2], bertr[4], bertr[6:9]) == ("0.500", "0.700", ["0.600", "0.900", "0.700"])
    assert (given[2], given[4], given[6:9]) == ("0.400", "", ["", "", ""])
    assert esim[1:9] == [""] * 8
    lines = render_metrics(table, {}, "markdown", recipe=recipe).splitlines()
    assert "Published: Table T. Someone, 2020" in lines
    assert "A note." in lines
    shown = json.loads(render_metrics(table, {}, "json", recipe=recipe))
    assert shown["recipe"]["name"] == "t"
    assert shown["rows"][0]["published"] == {"de-en": 0.5, "fi-en": 0.7, "cs-en": 0.9}


def test_signatures_of_several_files_are_joined() -> None:
    assert (
        joined_signature(["m|lp:de-en|map:clp#1|v:1", "m|lp:fi-en|map:clp#2|v:1"])
        == "m|lp:de-en,fi-en|map:clp#1,clp#2|v:1"
    )
    assert joined_signature(["m|v:1", "m|v:1"]) == "m|v:1"
    assert joined_signature(["m|lm:none|v:1", "m|v:1"]) == "m|lm:none|v:1 m|v:1"
    assert joined_signature([]) == ""
