"""Blocks of rows that a worker scores, and their total."""

from pathlib import Path

import pyarrow
import pytest
from helpers import write

from mtmetrics.cluster.scoring import ScoringWorker, total
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.scorers.registry import load_scorer


@pytest.mark.parametrize("how", ["keep", "floor", "null"])
def test_a_worker_keeps_floors_or_leaves_out_what_is_no_translation(how: str) -> None:
    german = "das haus ist klein und der hund schläft heute nicht so gut"
    texts = ["the house is small", "the the the the the", german]
    references = [
        "the house is small",
        "the dog",
        "the house is small and today the dog does not sleep so well",
    ]
    kept = (
        load_scorer("chrf", lang_pair="de-en").score(texts, references=references).segments.tolist()
    )
    scores = {"keep": kept, "floor": [1, 0, 0], "null": [1, None, None]}[how]
    assert min(kept) > 0
    table = pyarrow.table({"reference": references, "translation": texts})
    options = {"metric": "chrf", "lang_pair": "de-en", "degenerate": how}
    found, summary = ScoringWorker(("reference", "translation"), options, {}, workers=1)(table)
    assert [None if score != score else score for score in found["score"].to_pylist()] == scores
    assert found["unusual"].to_pylist() == ["", "looping", "language"]
    known = [score for score in scores if score is not None]
    assert (summary["count"], summary["total"]) == (len(known), sum(known))
    assert ("|degenerate:" in summary["signature"]) is (how != "keep")
    empty, nothing = ScoringWorker(("reference", "translation"), options, {}, workers=1)(table[:0])
    assert (empty.schema, total([summary, nothing])[0]["signature"]) == (
        found.schema,
        summary["signature"],
    )


def test_scores_that_depend_on_the_block_are_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    preset = f'[mt-ref]\nwords = "{tiny_encoder}"\nsentences = "{tiny_encoder}"\n'
    write(tmp_path / "preset.toml", preset)
    options = {"metric": "sentsim", "preset": str(tmp_path), "setting": "mt-ref"}
    with pytest.raises(InputError, match="score depends on all others.*--normalize fixed"):
        ScoringWorker(("reference", "translation"), options, {}, workers=1)


def test_blocks_that_were_scored_differently_are_no_whole() -> None:
    report = {"segments": 1, "blank": 0, "truncated": 0, "identical": 0}
    blocks = [
        {"signature": f"m|dtype:{name}", "count": 1, "total": 0.5, "report": report}
        for name in ("bf16", "fp32")
    ]
    with pytest.raises(MTMetricsError, match="dtype:bf16 and m.dtype:fp32.*pass --dtype float32"):
        total(blocks)
    assert total(blocks[:1])[0]["mean_score"] == 0.5
