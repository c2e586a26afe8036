"""Choosing among translations: by metrics, by weighted sums, by expected utility, also as hooks."""

from pathlib import Path

import numpy as np
import pytest
import sacrebleu

import mtmetrics as package
from mtmetrics.choosing.reranking import NBest, Reranker
from mtmetrics.errors import InputError
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.bertr import BERTR
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.sentsim import SentSim

SHORTEST = {"length": load_scorer("prediction_length")}
LISTS = [["the house is small", "house", " ", "house"], ["a cat", "i see a cat"], ["", ""]]
SOURCES = ["das haus ist klein", "ich sehe eine katze", "der hund"]


def test_best_by_a_metric_with_blank_repeated_and_tied_candidates() -> None:
    reranker = Reranker(SHORTEST)
    house, cat, nothing = reranker(LISTS, SOURCES)
    assert (house.index, house.text, house.score) == (1, "house", -5)
    assert house.scores == pytest.approx([-18, -5, np.nan, -5], nan_ok=True)
    assert (cat.index, cat.scores) == (0, [-5, -11])
    assert (nothing.index, nothing.text) == (0, "")
    assert np.isnan(nothing.score)
    assert reranker.counts == {
        "sources": 3,
        "candidates": 8,
        "blank": 3,
        "repeated": 2,
        "tied": 0,
        "changed": 1,
    }
    # Of different texts with one score the first wins, and that is counted.
    assert reranker([["abc", "xyz"]], ["das"])[0].text == "abc"
    assert reranker.counts["tied"] == 1


def test_counts_of_a_single_list_are_numbers() -> None:
    reranker = Reranker(SHORTEST)
    reranker([["abc", "xyz"]], ["das"])
    assert {type(count) for count in reranker.counts.values()} == {int}


def test_a_weighted_sum_with_model_scores() -> None:
    scores = {
        "model": [[10.0, -9.0, 0.0, -20.0], [0.0, 1.0], [0.0, 0.0]],
        "unused": [[9.0] * 4, [9.0] * 2, [9.0] * 2],
    }
    names = ("model", "unused")
    for weight, expected in ((0.5, [1, 0, 0]), (1.0, [0, 0, 0]), (7.0, [0, 1, 0])):
        reranker = Reranker(SHORTEST, {"model": weight}, model_scores=names)
        assert [choice.index for choice in reranker(LISTS, SOURCES, scores=scores)] == expected


@pytest.mark.parametrize("metric", ["chrf", "chrfpp"])
def test_expected_utility_by_plain_loops(metric: str) -> None:
    texts = ["the small house", "the house is small", "a tree", "the house is small", " "]
    [choice] = Reranker({metric: load_scorer(metric)}, mbr=True)([texts])
    outside = sacrebleu.CHRF(word_order=2 if metric == "chrfpp" else 0)
    references = texts[:4]  # the repeated text counts twice, the blank one not at all
    expected = [
        np.mean([outside.sentence_score(text, [other]).score for other in references])
        for text in references
    ]
    assert choice.scores == pytest.approx([*(np.array(expected) / 100), np.nan], nan_ok=True)
    assert choice.index == 1


def test_expected_utility_encodes_each_text_once(tiny_encoder: Path) -> None:
    encoder, other = TokenEncoder(tiny_encoder), TokenEncoder(tiny_encoder)
    bounds = {"sss": (-1.0, 1.0), "bertscore": (0.0, 1.0)}
    similar = SentSim(encoder, encoder.means(), bounds, against="reference", normalize="fixed")
    scorers = {"sentsim": (similar, encoder), "bertr": (BERTR(other), other)}
    lists = [
        ["the house", "a house", "house", "the house"],
        ["i see the cat", "the cat", " ", "i see a cat"],
    ]
    for name, (scorer, read) in scorers.items():
        found = Reranker({name: scorer}, mbr=True)(lists)
        assert read.counts.computed == 6
        for texts, choice in zip(lists, found, strict=True):
            known = [text for text in texts if text.strip()]
            plain = [
                scorer.score([text] * len(known), references=known).segments.mean()
                for text in known
            ]
            assert [score for score in choice.scores if score == score] == pytest.approx(
                plain, abs=1e-6
            )
            assert choice.text == known[int(np.argmax(plain))]


def test_blocks_of_lists_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = [[f"{'a' * (place % 7)}b{row}" for place in range(5)] for row in range(40)]
    reranker = Reranker({"chrf": load_scorer("chrf")}, mbr=True)
    whole = reranker(lists)
    monkeypatch.setattr("mtmetrics.choosing.reranking.BATCH_SEGMENTS", 60)
    assert reranker(lists) == whole


def test_tuning_finds_the_score_that_people_agree_with() -> None:
    generator = np.random.default_rng(0)
    lists = []
    for _ in range(60):
        human = generator.normal(size=6)
        noisy = (1000 * (human + generator.normal(size=6))).tolist()
        scores = {"good": noisy, "bad": generator.normal(size=6).tolist(), "constant": [1.0] * 6}
        texts = ["x" * int(length) for length in generator.integers(1, 9, size=5)]
        lists.append(NBest(["", *texts], "q", scores=scores, human=human.tolist()))
    reranker = Reranker(SHORTEST, model_scores=lists[0].scores)

    def reached() -> float:
        return float(
            np.mean(
                [
                    item.human[choice.index]
                    for item, choice in zip(lists, reranker.choose(lists), strict=True)
                ]
            )
        )

    before = reached()
    weights = reranker.tune(lists)
    assert weights["constant"] == 0
    # In units of their spread: the informed score, which is a thousand times as wide, decides.
    assert weights["good"] * 1000 > 4 * max(weights["bad"], weights["length"])
    assert reached() > before + 0.5
    assert reranker.tune(lists) == weights


def test_tuning_on_references(tmp_path: Path) -> None:
    rows = [
        ("the house", ["a tree", "the house"], [2.0, 1.0]),
        ("a cat", ["a cat", "dogs"], [0.0, 9.0]),
    ]
    lists = [NBest(texts, "q", [reference], {"model": scores}) for reference, texts, scores in rows]
    reranker = Reranker({}, {"model": 1.0}, model_scores=["model"])
    with pytest.raises(InputError, match=r"list 1: no judgements .* needs an objective"):
        reranker.tune(lists)
    judged = NBest(["a", "b"], "q", scores={"model": [0.0, 1.0]}, human=[0.0, 1.0])
    with pytest.raises(InputError, match=r"list 2 has no judgements \(human\), and list 1 no ref"):
        reranker.tune([judged, lists[0]], load_scorer("chrf"))
    bare = NBest(["a", "b"], "q", scores={"model": [0.0, 1.0]})
    with pytest.raises(InputError, match="list 2: neither judgements of all candidates"):
        reranker.tune([judged, bare], load_scorer("chrf"))
    assert reranker.tune(lists, load_scorer("chrf")) == {
        "model": pytest.approx(1 / np.std([-0.5, 0.5, 4.5, -4.5]), rel=1e-5)
    }


def test_refusals() -> None:
    reranker = Reranker(SHORTEST, {"model": 1.0}, model_scores=["model"])

    def scored(*scores: float) -> object:
        return reranker([["a"]], ["x"], scores={"model": [list(scores)]})

    for call, message in (
        (
            lambda: reranker([["a"]], ["x"]),
            "list 1: no model score 'model', which has a weight; it has: []",
        ),
        (lambda: Reranker(SHORTEST)([["a"]]), "list 1: no source, which length compares with"),
        (lambda: reranker([[]], ["x"]), "list 1: candidates: empty"),
        (lambda: reranker(["text"], ["x"]), "list 1: candidates: a list of strings"),
        (lambda: scored(1, 2), "list 1: scores model: a list of 1 numbers"),
        (
            lambda: reranker([["a"]], ["x"], scores={"model": [0.5]}),
            "list 1: scores model: a list of 1 numbers",
        ),
        (
            # Its characters are no references.
            lambda: package.rerank([["a"]], metric="chrf", references=["the house"]),
            "list 1: references: a list of strings is needed, got the single string",
        ),
        (lambda: scored(float("nan")), "scores model[0] nan: must be a finite"),
        (lambda: reranker([["a"]], ["x", "y"]), "source: 2 rows, but there are 1 lists"),
        (lambda: Reranker({}), "all weights are 0"),
        (
            lambda: package.rerank([["a"]], mbr=True),
            "xmoverscore compares with sources; expected utility (mbr) needs",
        ),
    ):
        with pytest.raises(InputError) as raised:
            call()
        assert message in str(raised.value)


def test_from_python(tiny_preset: Path) -> None:
    options = {
        "metric": "xmoverscore",
        "preset": str(tiny_preset),
        "lang_pair": "de-en",
        "dtype": "float32",
    }
    found = package.rerank(LISTS[:2], SOURCES[:2], **options)
    scorer = load_scorer("xmoverscore", str(tiny_preset), lang_pair="de-en")
    for source, texts, choice in zip(SOURCES, LISTS, found, strict=False):
        scores = scorer.score(texts, sources=[source] * len(texts)).segments
        assert choice.scores == pytest.approx(
            [np.nan if not t.strip() else s for t, s in zip(texts, scores, strict=True)],
            nan_ok=True,
        )
