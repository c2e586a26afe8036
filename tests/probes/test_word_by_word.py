"""Tables of word-by-word translations: what is translated, and what the metrics prefer."""

import numpy as np
import pytest

from mtmetrics.judgements.judged import Judged
from mtmetrics.models.pool import ModelPool
from mtmetrics.probes.probing import preferences
from mtmetrics.probes.word_by_word import judge_words, literal_pairs, report_words
from mtmetrics.reports.recipes import Recipe, RecipeRow

WORDS = [("das", "the"), ("haus", "house"), ("ist", "is"), ("alt", "old"), ("hund", "dog")]
SOURCES = ["Das Haus ist alt", "Das Haus ist alt", "Der Hund", "Kein Satz"]
REFERENCES = ["The house is old", "An old house it is", "The dog", None]


@pytest.fixture
def file() -> Judged:
    columns = {
        "source": SOURCES,
        "reference": REFERENCES,
        "translation": ["a", "b", "c", "d"],
        "human": [1.0, 2.0, 3.0, 4.0],
    }
    return Judged.of("f.jsonl", "de-en", columns)


def test_each_source_is_translated_once(file) -> None:
    pairs = literal_pairs(file, WORDS)
    assert pairs.sources == ["Das Haus ist alt", "Der Hund"]
    assert pairs.references == ["The house is old", "The dog"]
    assert pairs.literal == ["The house is old", "Der dog"]
    assert pairs.coverage == pytest.approx(5 / 6)


def test_shares_and_reasons_stand_beside_the_paper(file) -> None:
    rows = [
        RecipeRow("Length", {"de-en": 0.25}, metric="prediction_length"),
        RecipeRow("Other", {"de-en": 0.5}, why_not="is not part of this package"),
        RecipeRow("Chars", {}, metric="chrf"),
    ]
    recipe = Recipe("t", "Table 0 of Someone: words", "Someone", pairs=["de-en"], rows=rows)
    entries = [row.entry("mini") for row in rows]
    pool = ModelPool(device="cpu")
    pairs = [literal_pairs(file, WORDS)]
    scored = judge_words(recipe, entries, pairs, pool)
    scorer = entries[0].metric.load(pool, "de-en")
    expected, _ = preferences(
        scorer, pairs[0].sources, pairs[0].references, {"w": pairs[0].literal}
    )
    assert scored[0].scores == [[expected[0].preferred]]
    assert scored[1].problem == "is not part of this package"
    assert "compared with themselves" in scored[2].problem
    document = report_words(recipe, scored, pairs).document
    assert document["rows"][0]["measured"] == {"de-en": expected[0].preferred}
    assert document["rows"][0]["published"] == {"de-en": 0.25}
    assert document["rows"][2]["measured"] == {}
    text = report_words(recipe, scored, pairs).render("markdown")
    assert "Not run: Other: is not part of this package" in text
    assert np.isclose(document["coverage"]["de-en"], 5 / 6)
