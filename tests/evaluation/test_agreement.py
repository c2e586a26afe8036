import json
import math

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.agreement import judge, mean_agreement
from mtmetrics.evaluation.judged import JudgedSegments
from mtmetrics.evaluation.report import render, undefined
from mtmetrics.scorers.base import ChunkScores, Scorer


class LengthScorer(Scorer):
    """Scores a translation with its number of words; the part ``flat`` is the same for all."""

    signature = "length|v:0"

    def _score_chunk(self, sources, systems):
        return [self._scores(predictions) for predictions in systems]

    def _scores(self, predictions):
        words = np.array([len(text.split()) for text in predictions], dtype=float)
        nothing = np.zeros(len(words), dtype=bool)
        return ChunkScores(words, {"negated": -words, "flat": np.zeros(len(words))}, nothing, nothing)

    def _floor(self):
        return 0.0, {"negated": 0.0, "flat": 0.0}


def segments(human, lang_pair="de-en", file="set.jsonl"):
    predictions = [" ".join("a" * words) for words in (1, 2, 3, 4)]
    return JudgedSegments(file, lang_pair, ["x"] * 4, predictions, [None] * 4, [None] * 4, np.array(human, dtype=float))


@pytest.fixture
def agreements():
    return [
        judge(LengthScorer(), segments([2, 1, 4, 3])),
        judge(LengthScorer(), segments([1, 2, 3, 4], "fi-en", "b|c.jsonl")),
    ]


def test_score_and_parts_are_correlated_with_the_judgements(agreements):
    first = agreements[0]
    assert (first.file, first.lang_pair, first.segments, first.signature) == ("set.jsonl", "de-en", 4, "length|v:0")
    assert first.correlations["score"].value == pytest.approx(0.6)
    assert first.correlations["negated"].value == pytest.approx(-0.6)
    assert first.correlations["flat"].reason == "the scores are constant"
    low, high = first.ranges["score"]
    assert low < high
    assert first.ranges["negated"] == (-high, -low)


def test_segments_are_those_with_a_judgement():
    agreement = judge(LengthScorer(), segments([2, 1, np.nan, 3]))
    assert agreement.segments == 3
    assert agreement.correlations["score"].value == pytest.approx(np.corrcoef([1, 2, 4], [2, 1, 3])[0, 1])


def test_mean_over_files(agreements):
    means = mean_agreement(agreements)
    assert means["score"].value == pytest.approx(0.8)
    assert means["flat"].reason == "undefined for de-en (file 1), fi-en (file 2)"


def test_the_same_pair_twice_counts_twice(agreements):
    assert mean_agreement([*agreements, agreements[1]])["score"].value == pytest.approx((0.6 + 1 + 1) / 3)


def test_mean_over_no_files():
    with pytest.raises(InputError, match="none given"):
        mean_agreement([])


def test_json_holds_full_precision_and_reasons(agreements):
    shown = json.loads(render(agreements, {"metric": "length"}, "json", parts=True))
    assert shown["metric"] == "length"
    assert shown["files"][0]["n"] == 4
    assert shown["files"][0]["pearson"] == {
        "score": agreements[0].correlations["score"].value,
        "negated": pytest.approx(-0.6),
        "flat": None,
    }
    assert shown["files"][0]["undefined"] == {"flat": "the scores are constant"}
    assert shown["files"][0]["report"]["segments"] == 4
    assert shown["mean"]["pearson"]["score"] == pytest.approx(0.8)
    assert "flat" in shown["mean"]["undefined"]


def test_json_without_parts_has_the_score_alone(agreements):
    shown = json.loads(render(agreements, {}, "json"))
    assert list(shown["files"][0]["pearson"]) == ["score"]
    assert "undefined" not in shown["files"][0]


def test_tsv(agreements):
    assert render(agreements, {}, "tsv", parts=True).splitlines() == [
        "file\tlp\tn\tscore\tnegated\tflat\tsignature",
        "set.jsonl\tde-en\t4\t0.600\t-0.600\tnan\tlength|v:0",
        "b|c.jsonl\tfi-en\t4\t1.000\t-1.000\tnan\tlength|v:0",
        "mean\t\t8\t0.800\t-0.800\tnan\t",
    ]


def test_markdown_keeps_bars_inside_their_cells(agreements):
    assert render(agreements, {}, "markdown").splitlines() == [
        "| file | lp | n | score | signature |",
        "|---|---|---:|---:|---|",
        "| set.jsonl | de-en | 4 | 0.600 | length\\|v:0 |",
        "| b\\|c.jsonl | fi-en | 4 | 1.000 | length\\|v:0 |",
        "| mean |  | 8 | 0.800 |  |",
    ]


def test_a_negative_zero_is_no_minus():
    table = render([judge(LengthScorer(), segments([1, -1, -1, 1.0001]))], {}, "tsv", parts=True)
    assert "0.000\t0.000" in table
    assert "-0.000" not in table


def test_undefined_correlations_are_listed_where_they_are_shown(agreements):
    assert undefined(agreements) == []
    assert undefined(agreements[:1], parts=True) == [
        "set.jsonl (de-en): no correlation for flat: the scores are constant"
    ]


def test_constant_judgements_show_as_undefined_mean():
    one = judge(LengthScorer(), segments([3, 3, 3, 3]))
    assert math.isnan(one.correlations["score"].value)
    assert json.loads(render([one], {}, "json"))["mean"] == {
        "pearson": {"score": None},
        "undefined": {"score": "undefined for de-en (file 1)"},
    }
