"""chrF++ of sacrebleu on the segments of WMT17: the correlations that the description of the data
gives, to 0.01."""

import html
import os
from pathlib import Path

import pytest

from mtmetrics.io.tables import jsonl_rows
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.statistics.correlation import pearson

FOLDER = (
    Path(os.environ.get("MTMETRICS_DATA") or Path(__file__).parents[3] / "shared" / "data")
    / "wmt17_seg"
)


@pytest.mark.parametrize(
    ("lang_pair", "published"),
    [("de-en", 0.527), ("ru-en", 0.588), ("fi-en", 0.676), ("tr-en", 0.615)],
)
def test_tokenised_text(lang_pair: str, published: float) -> None:
    path = FOLDER / f"{lang_pair}.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not here; set MTMETRICS_DATA")
    rows = [row for _, row in jsonl_rows(path)]
    references, predictions = (
        [html.unescape(row[side]) for row in rows] for side in ("reference_tok", "translation_tok")
    )
    scores = load_scorer("chrfpp").score(predictions, references=references).segments
    assert pearson(scores, [row["human"] for row in rows]).value == pytest.approx(
        published, abs=0.01
    )
