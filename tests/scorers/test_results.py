"""Texts are scored in chunks, which no score depends on."""

from pathlib import Path

import pyarrow
import pytest

from mtmetrics.cluster.scoring import ScoringWorker, total
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.results import BATCH_SEGMENTS
from mtmetrics.scorers.xmoverscore import XMoverScore


def test_chunks_change_nothing_and_systems_share_sources(tiny_encoder: Path) -> None:
    scorer = XMoverScore(TokenEncoder(tiny_encoder, cache_bytes=0), workers=1)
    number = BATCH_SEGMENTS + 5
    sources = [f"das Haus {i % 7}" for i in range(number)]
    systems = {
        "a": [f"the house {i % 7}" for i in range(number)],
        "b": [f"a house {i % 5}" for i in range(number)],
    }
    results = scorer.score_systems(systems, sources=sources)
    # Two chunks; in each, 7 sources are encoded once for both systems, plus 7 and 5 predictions (5
    # lines in the second chunk).
    assert scorer.encoder.counts.computed == 19 + 15
    for name, predictions in systems.items():
        first = scorer.score(predictions[:40], sources=sources[:40]).segments
        assert results[name].segments[:40] == pytest.approx(first, abs=1e-5)
        assert len(results[name].segments) == number


@pytest.mark.parametrize(
    "metric", ["chrf", "sentbleu", "ter", "bertr", "sentsim", "distilscore", "esim"]
)
def test_the_signature_says_how_many_references_there_are_and_that_the_best_counts(
    metric: str,
) -> None:
    own = METRICS[metric].usual_preset() is not None
    side = {"against": "reference"} if own else {}
    scorer = load_scorer(metric, "mini" if own else None, lang_pair="de-en", **side)
    texts, two, one = (
        ["a small house"],
        [["the small house", "a small house"]],
        [["the small house"]],
    )
    plain, listed, several = (
        scorer.score(texts, references=others) for others in (["the small house"], one, two)
    )
    assert plain.signature == listed.signature == scorer.signature
    assert "combine:" not in plain.signature
    fields = several.signature.split("|")
    key = "refs" if own else "nrefs"
    assert [field for field in fields if "refs:" in field or field.startswith("combine:")] == [
        f"{key}:2",
        "combine:max",
    ]
    assert [field for field in fields if field not in (f"{key}:2", "combine:max")] == [
        field for field in plain.signature.split("|") if field != "nrefs:1"
    ]
    varied = scorer.score(texts * 2, references=two + one)
    assert f"|{key}:var|combine:max|" in varied.signature


@pytest.mark.parametrize("metric", ["chrf", "bertr"])
def test_references_of_batches_are_counted_together(metric: str) -> None:
    side = {"preset": "mini", "against": "reference"} if metric == "bertr" else {}
    references = [["the house", "a house"]] * BATCH_SEGMENTS + [["the house"]]
    result = load_scorer(metric, **side).score(["a house"] * len(references), references=references)
    assert "refs:var|combine:max|" in result.signature


def test_references_of_blocks_are_counted_together() -> None:
    options = {"metric": "chrf", "degenerate": "floor"}
    worker = ScoringWorker(("reference", "translation"), options, {}, workers=1)
    blocks = [
        worker(pyarrow.table({"reference": references, "translation": ["a house"]}))[1]
        for references in ([["the house", "a house"]], [["the house"]])
    ]
    assert "|nrefs:2|combine:max|" in total(blocks[:1])[0]["signature"]
    assert "|nrefs:var|combine:max|" in total(blocks)[0]["signature"]
