"""Metrics that match words, and those that do not."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import REFERENCES, TRANSLATIONS

from mtmetrics.errors import InputError
from mtmetrics.models.packed import PackedTokens
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.bertr import BERTR
from mtmetrics.scorers.distilscore import DistilScore
from mtmetrics.scorers.sentsim import SentSim
from mtmetrics.scorers.words import WordScorer, require_word_scorer
from mtmetrics.scorers.xmoverscore import XMoverScore


def test_only_metrics_that_match_words_align(encoder: TokenEncoder) -> None:
    whole, words = DistilScore(encoder.means()), BERTR(encoder)
    assert not isinstance(whole, WordScorer)
    assert (whole.can_align, whole.can_blame) == (False, False)
    assert (words.can_align, words.can_blame) == (True, True)
    assert require_word_scorer(words) is words
    with pytest.raises(InputError, match="^alignments: this metric compares whole texts"):
        require_word_scorer(whole)


def test_alignments_faults_and_scores_read_the_same_texts(encoder: TokenEncoder) -> None:
    scorer = BERTR(encoder)
    columns = {"references": REFERENCES, "sources": ["not read"] * len(REFERENCES)}
    alignments = scorer.align(TRANSLATIONS, **columns)
    scores = scorer.score(TRANSLATIONS, **columns).segments
    filled = [text != "" for text in TRANSLATIONS]
    totals = [alignment.total for alignment in alignments]
    assert [total for total, is_filled in zip(totals, filled, strict=True) if is_filled] == (
        pytest.approx(scores[filled], abs=1e-6)
    )
    faults = scorer.faults(TRANSLATIONS, alignments)
    assert scorer.blame(TRANSLATIONS, **columns) == faults
    explained_alignments, explained_faults = scorer.explain(TRANSLATIONS, **columns)
    assert [alignment.total for alignment in explained_alignments] == totals
    assert explained_faults == faults


MESSY = ["the house.", " the\u00a0house\u200b is small ", "", "\ufeffThe cat, the dog"]


@pytest.mark.parametrize(
    "make",
    [
        BERTR,
        XMoverScore,
        lambda encoder: SentSim(encoder, encoder.means(), against="source", combine="wmd"),
        lambda encoder: SentSim(encoder, encoder.means(), against="source", combine="bertscore"),
    ],
)
def test_score_align_and_blame_encode_the_same_texts(
    make: Callable[[TokenEncoder], WordScorer],
    tiny_encoder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: set[str] = set()
    encode = TokenEncoder.encode

    def recorded(self: TokenEncoder, texts: list[str], *rest: object) -> PackedTokens:
        encoded.update(texts)
        return encode(self, texts, *rest)

    monkeypatch.setattr(TokenEncoder, "encode", recorded)
    texts_of_call = {}
    for name in ("score", "align", "blame"):
        encoded.clear()
        scorer = make(TokenEncoder(tiny_encoder, cache_bytes=0))
        columns = {column: ["Das Haus ist klein."] * len(MESSY) for column in scorer.side.columns}
        getattr(scorer, name)(MESSY, **columns)
        texts_of_call[name] = set(encoded)
    assert texts_of_call["score"]
    assert texts_of_call["align"] == texts_of_call["blame"] == texts_of_call["score"]


def test_texts_by_position_are_refused(encoder: TokenEncoder) -> None:
    scorer = BERTR(encoder)
    for name in ("align", "blame"):
        with pytest.raises(InputError, match=rf"{name}\(predictions, sources=...\)"):
            getattr(scorer, name)(REFERENCES, TRANSLATIONS)
