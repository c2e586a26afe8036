"""Behaviour that all scorers share: floors, several references, systems that share an encoding."""

from pathlib import Path

import numpy as np
import pytest
from helpers import REFERENCES, TRANSLATIONS

from mtmetrics.errors import InputError
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.bertr import BERTR
from mtmetrics.scorers.distilscore import DistilScore
from mtmetrics.scorers.sentsim import SentSim


def scorers(encoder: TokenEncoder) -> list[Scorer]:
    sentences = encoder.means()
    bounds = {"sss": (-1.0, 1.0), "bertscore": (0.0, 1.0)}
    return [
        BERTR(encoder),
        DistilScore(sentences, against="reference"),
        SentSim(encoder, sentences, against="reference", normalize="fixed", bounds=bounds),
    ]


def test_identical_texts_get_the_highest_score(encoder: TokenEncoder) -> None:
    for scorer, highest in zip(scorers(encoder), (1.0, 1.0, np.e), strict=True):
        assert scorer.score(REFERENCES, references=REFERENCES).segments == pytest.approx(
            highest, abs=1e-6
        )


def test_blank_segments_get_the_floor(encoder: TokenEncoder) -> None:
    for scorer, floor in zip(scorers(encoder), (0.0, -1.0, 1.0), strict=True):
        result = scorer.score(TRANSLATIONS, references=REFERENCES)
        assert result.segments[3] == floor
        assert result.segments[:3].min() > floor
        assert result.report.blank == 1
        assert result.report.identical == 0


def test_the_best_of_several_references_counts(encoder: TokenEncoder) -> None:
    several = [[reference, "x y z", ""] for reference in REFERENCES]
    for scorer in scorers(encoder):
        alone = [
            scorer.score(TRANSLATIONS, references=[row[column] for row in several]).segments
            for column in range(3)
        ]
        result = scorer.score(TRANSLATIONS, references=several)
        assert result.segments == pytest.approx(np.max(alone, axis=0))
        assert result.report.segments == 4
        assert result.report.blank == 1
    uneven = [["the house"], ["i see the cat", "i see a tree"], ["dog"], ["tree"]]
    assert BERTR(encoder).score(TRANSLATIONS, references=uneven).segments[1] == pytest.approx(1.0)


def test_several_systems_share_the_encoding(tiny_encoder: Path) -> None:
    encoder = TokenEncoder(tiny_encoder, cache_bytes=0)
    BERTR(encoder).score_systems({"a": TRANSLATIONS, "b": REFERENCES}, references=REFERENCES)
    assert encoder.counts.computed == len({*REFERENCES, *TRANSLATIONS})
    encoder = TokenEncoder(tiny_encoder)
    words, sentences = (TokenEncoder(tiny_encoder) for _ in range(2))
    apart = SentSim(words, sentences.means(), against="reference")
    shared = SentSim(encoder, encoder.means(), against="reference")
    expected = apart.score(TRANSLATIONS, references=REFERENCES).segments
    assert shared.score(TRANSLATIONS, references=REFERENCES).segments == pytest.approx(
        expected, abs=1e-6
    )
    assert encoder.counts.computed == len({*REFERENCES, *TRANSLATIONS})


def test_texts_by_position_as_in_1_1_are_refused_with_the_call_that_works(
    encoder: TokenEncoder,
) -> None:
    scorer = BERTR(encoder)
    advice = r"score\(predictions, sources=...\) or score\(predictions, references=...\)$"
    with pytest.raises(InputError, match=advice):
        scorer.score(REFERENCES, TRANSLATIONS)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"score_systems\(systems, references=...\)$"):
        scorer.score_systems(REFERENCES, {"a": TRANSLATIONS})  # type: ignore[arg-type]


def test_a_column_that_is_not_read_is_left_aside_and_a_missing_one_is_named(
    encoder: TokenEncoder,
) -> None:
    scorer = BERTR(encoder)
    alone = scorer.score(TRANSLATIONS, references=REFERENCES)
    both = scorer.score(TRANSLATIONS, references=REFERENCES, sources=["x"])
    assert both.segments.tolist() == alone.segments.tolist()
    with pytest.raises(InputError, match="bertr compares predictions with references; pass"):
        scorer.score(TRANSLATIONS, sources=REFERENCES)
