"""Maps of sentence pairs on the tiny encoder, and matching with them."""

from pathlib import Path

import numpy as np
import pytest

from mtmetrics.maps.remapping import Remapping
from mtmetrics.mining.remapping import fit_maps, precision_at_1
from mtmetrics.mining.token_store import encode_side
from mtmetrics.models.token_encoder import TokenEncoder

HELD_BACK = [
    ("das haus ist klein", "the house is small"),
    ("ich sehe die katze", "i see the cat"),
    ("der hund schläft", "the dog sleeps"),
]


@pytest.fixture
def encoder(tiny_encoder: Path) -> TokenEncoder:
    return TokenEncoder(tiny_encoder, layer=2)


def test_maps_say_what_they_are_for(encoder: TokenEncoder) -> None:
    maps = fit_maps(HELD_BACK, encoder, encoder, "de-en", corpus="mined, round 1")
    for kind, remapping in maps.items():
        assert remapping.kind == kind
        assert remapping.meta["corpus"] == "mined, round 1"
        assert remapping.meta["sentences"] == "3"
        remapping.require_encoder("m", name=encoder.label, fingerprint=encoder.fingerprint, layer=2)


def test_precision_counts_any_translation_of_a_sentence(encoder: TokenEncoder) -> None:
    pairs = [*HELD_BACK, ("der hund schläft", "a dog sleeps")]
    sides = [encode_side([pair[side] for pair in pairs], encoder) for side in (0, 1)]
    assert precision_at_1(*sides, [(pair[0], pair[0]) for pair in pairs]) == 0.0
    same = [(text, text) for text, _ in HELD_BACK]
    both = encode_side([text for text, _ in same], encoder)
    assert precision_at_1(both, both, same) == 1.0
    wrong = [same[0], (same[1][0], same[2][0]), (same[2][0], same[1][0])]
    assert precision_at_1(both, both, wrong) == pytest.approx(1 / 3)
    # A map that sends everything into one direction makes all distances equal, so that the first candidate wins.
    assert 0.0 <= precision_at_1(*sides, pairs, Remapping("clp", (np.zeros((16, 16)),))) <= 1.0
