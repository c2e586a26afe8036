"""Metrics that compare with source and reference together: wherever texts come from, both
arrive."""

import json
from pathlib import Path

import pytest
from helpers import both

import mtmetrics as package
from mtmetrics.errors import InputError
from mtmetrics.scorers.plugins import load_plugin

# Counts the words that a translation shares with its reference, less those that it shares with its
# source.
PLUGIN = '''
import mtmetrics


class Shared(mtmetrics.PluginMetric):
    """Words of the reference, less those of the source."""

    metric = "shared"
    sides = ("both",)
    floor = -10.0

    def segment_scores(self, predictions, sources, references):
        def common(one, other):
            return len(set(one.split()) & set(other.split()))

        rows = zip(predictions, sources, references)
        return [common(t, reference) - common(t, source) for t, source, reference in rows]
'''
ROWS = [
    {"source": "ein Haus", "reference": "a house", "translation": "a Haus"},
    {"source": "zwei Wege", "reference": "two ways", "translation": "two ways"},
    {"source": "", "reference": "nothing", "translation": "nothing"},
]
SCORES = [0.0, 2.0, -10.0]


@pytest.fixture
def plugin(no_plugins: None, tmp_path: Path) -> Path:
    (tmp_path / "shared.py").write_text(PLUGIN)
    load_plugin(tmp_path / "shared.py")
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    for key in ROWS[0]:
        Path(key).write_text("".join(row[key] + "\n" for row in ROWS))
    return tmp_path / "shared.py"


def columns() -> dict[str, list[str]]:
    names = {"predictions": "translation", "sources": "source", "references": "reference"}
    return {column: [row[key] for row in ROWS] for column, key in names.items()}


def test_pairs_of_source_and_reference(plugin: Path) -> None:
    scorer = package.load("shared", lang_pair="de-en")
    assert scorer.side == "both"
    result = scorer.score(**columns())
    assert result.segments.tolist() == SCORES
    assert (result.report.blank, result.report.identical) == (1, 0)
    assert "against" not in result.signature
    several = scorer.score(["a Haus"], **both([("ein Haus", ["the house", "a Haus"])]))
    assert several.segments.tolist() == [1.0]  # the best reference counts
    assert scorer.score(["ein Haus"], **both([("ein Haus", "a house")])).report.identical == 1
    systems = scorer.score_systems(
        {"a": ["a house"], "b": ["ein Haus"]}, sources=["ein Haus"], references=["a house"]
    )
    assert [found.system for found in systems.values()] == [2.0, -2.0]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            {"sources": ["ein Haus"]},
            "shared compares predictions with sources and references; pass",
        ),
        ({}, "shared compares predictions with sources and references; pass"),
        ({"sources": "ein Haus", "references": ["b"]}, r"sources: a list .* pass \[text\]"),
        ({"sources": ["ein Haus"], "references": [None]}, "references"),
        ({"sources": [1], "references": ["a house"]}, r"sources\[0\]: a string is needed, got 1"),
        ({"sources": [], "references": []}, "sources: empty; there is nothing to score"),
        (
            {"sources": ["a", "c"], "references": ["b", "d"]},
            "predictions has 1 segments but sources has 2",
        ),
    ],
)
def test_what_cannot_be_scored(plugin: Path, texts: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        package.load("shared").score(["x"], **texts)


def test_only_one_of_both_is_refused(plugin: Path, mtmetrics) -> None:
    code, _, err = mtmetrics("score", "--metric", "shared", "-s", "source", "-t", "translation")
    needed = (
        "mtmetrics: shared compares predictions with sources and references; pass -s SOURCES "
        "and -r REFERENCES\n"
    )
    assert (code, err) == (2, needed)
    code, _, err = mtmetrics("score", "--metric", "shared", "--against", "source", "rows.jsonl")
    assert (code, "shared compares with sources and references only, not with a source" in err) == (
        2,
        True,
    )
    Path("two.tsv").write_text("ein Haus\ta house\n")
    code, _, err = mtmetrics("score", "--metric", "shared", "two.tsv")
    assert (
        code,
        "two.tsv: the first of two columns cannot be both source and reference; pass three" in err,
    ) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    "given", [["rows.jsonl"], ["-s", "source", "-r", "reference", "-t", "translation"]]
)
def test_on_the_command_line_beside_metrics_of_one_side(
    plugin: Path, mtmetrics, given: list[str]
) -> None:
    metrics = ["--metric", "shared", "--metric", "chrf", "--metric", "prediction_length"]
    code, out, _ = mtmetrics("score", *metrics, "--format", "jsonl", "--lp", "de-en", *given)
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, [row["shared"] for row in rows if row["kind"] == "segment"]) == (0, SCORES)


def test_lowest_segments_show_both(plugin: Path, mtmetrics) -> None:
    code, out, _ = mtmetrics(
        "score", "--metric", "shared", "--segments", "--format", "markdown", "rows.jsonl"
    )
    assert (code, "| ein Haus / a house |" in out) == (0, True)


def test_compare_and_evaluate(plugin: Path, mtmetrics) -> None:
    rows = [
        {**{k: row[k] for k in ("source", "reference")}, "outputs": {"a": "a", "b": "two"}}
        for row in ROWS
    ]
    Path("systems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = mtmetrics(
        "compare", "--metric", "shared", "--metric", "chrf", "--format", "json", "systems.jsonl"
    )
    assert (code, '"shared|plugin:1|v:' in out) == (0, True)
    judged = [{**row, "human": number, "lp": "de-en"} for number, row in enumerate(ROWS[:2] * 4)]
    Path("judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in judged))
    code, out, _ = mtmetrics(
        "evaluate", "--data", "judged.jsonl", "--metric", "shared", "--format", "json"
    )
    assert (code, '"pearson"' in out) == (0, True)


def test_reranking(plugin: Path) -> None:
    lists, sources = [["ein Haus", "a house", "a Haus"]], ["ein Haus"]
    [best] = package.rerank(lists, sources, references=[["a house"]], metric="shared")
    assert best.text == "a house"
    [utility] = package.rerank(lists, sources, metric="shared", mbr=True)
    # Words shared with each candidate as reference, less those shared with the source.
    assert utility.scores == pytest.approx([3 / 3 - 2, 3 / 3 - 0, 4 / 3 - 1])
    with pytest.raises(
        InputError, match="metric shared: shared compares predictions with sources and references"
    ):
        package.rerank(lists, metric="shared", mbr=True)
    with pytest.raises(
        InputError, match="metric shared: shared compares predictions with sources and references"
    ):
        package.rerank(lists, sources, metric="shared")


def test_on_a_page(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mtmetrics.page.comparing import Comparer, ComparisonResult
    from mtmetrics.page.offers import offers
    from mtmetrics.page.texts import Texts

    offers.cache_clear()
    try:
        [offer] = [offer for offer in offers() if offer.spec.metric == "shared"]
    finally:
        offers.cache_clear()
    assert offer.fits({"sources", "references"}, "de-en")
    assert not offer.fits({"sources"}, "de-en")
    others = columns()
    systems = {"a": others.pop("predictions"), "b": others["references"]}
    texts = Texts("de-en", others, systems)
    *_, compared = Comparer().compare(texts, [offer])
    assert isinstance(compared, ComparisonResult)
    assert compared.scores(0).tolist() == [SCORES, [2.0, 2.0, -10.0]]
