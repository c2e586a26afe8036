"""Texts are scored in chunks, which no score depends on."""

from pathlib import Path

import pytest

from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.results import CHUNK_LINES
from mtmetrics.scorers.xmoverscore import XMoverScore


def test_chunks_change_nothing_and_systems_share_sources(tiny_encoder: Path) -> None:
    scorer = XMoverScore(TokenEncoder(tiny_encoder, cache_bytes=0), workers=1)
    number = CHUNK_LINES + 5
    sources = [f"das Haus {i % 7}" for i in range(number)]
    systems = {"a": [f"the house {i % 7}" for i in range(number)], "b": [f"a house {i % 5}" for i in range(number)]}
    results = scorer.score_systems(sources, systems)
    # Two chunks; in each, 7 sources are encoded once for both systems, plus 7 and 5 predictions (5 lines in the second
    # chunk).
    assert scorer.encoder.counts.computed == 19 + 15
    for name, predictions in systems.items():
        first = scorer.score(sources[:40], predictions[:40]).segments
        assert results[name].segments[:40] == pytest.approx(first, abs=1e-5)
        assert len(results[name].segments) == number
