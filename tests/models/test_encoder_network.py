"""One pass of a network serves all that read its layers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import TEXTS

from mtmetrics.models.encoder_network import EncodedText, _CacheCandidates
from mtmetrics.models.token_encoder import TokenEncoder


def test_one_pass_serves_all_readers(tiny_encoder: Path) -> None:
    low = TokenEncoder(tiny_encoder, layer=1)
    readers = [
        low,
        low.at(),
        low.at(mix=np.array([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]])),
        low.means(),
        low.at().means(),
    ]
    readers.append(low.at(layer=2, max_pieces=3))
    passes = note_passes(low)
    found = [reader.encode(TEXTS) for reader in readers]
    # Four texts have more than three pieces, which is another text.
    assert passes == [len(set(TEXTS)), 4]
    for reader, packed in zip(readers, found, strict=True):
        alone = TokenEncoder(
            tiny_encoder, layer=None if reader.mix is not None else reader.layer, mix=reader.mix
        )
        expected = (alone.means() if reader.level == "sentence" else alone).encode(TEXTS)
        if reader is readers[-1]:
            expected = TokenEncoder(tiny_encoder, layer=2, max_pieces=3).encode(TEXTS)
        assert packed.vectors == pytest.approx(expected.vectors, abs=5e-6)
        assert packed.truncated.tolist() == expected.truncated.tolist()


def note_passes(encoder: TokenEncoder) -> list[int]:
    """How many texts each pass of the network reads from now on."""
    run, passes = encoder._network._runner.run, list[int]()

    def noted(rows: Any, compute: Any) -> int:
        if len(rows):
            passes.append(len(rows))
        return run(rows, compute)

    encoder._network._runner.run = noted  # type: ignore[method-assign]
    return passes


def test_what_nobody_reads_any_more_is_not_computed(tiny_encoder: Path) -> None:
    low = TokenEncoder(tiny_encoder, layer=1)
    high = low.at()
    low.encode(["the dog"])
    [(states, _)] = low._network._runner.replicas
    assert len(states._running_blocks) == 3
    del high
    low.encode(["the cat"])
    assert len(states._running_blocks) == 1


def test_a_small_cache_costs_passes_but_no_text(tiny_encoder: Path) -> None:
    low = TokenEncoder(tiny_encoder, layer=1, cache_bytes=300)
    high, means = low.at(), low.at().means()
    passes = note_passes(low)
    expected = TokenEncoder(tiny_encoder).encode(TEXTS)
    low.encode(TEXTS)
    assert means.encode(TEXTS).vectors == pytest.approx(expected.means(), abs=5e-6)
    assert len(passes) == 1  # one vector of each text always finds room
    assert high.encode(TEXTS).vectors == pytest.approx(expected.vectors, abs=5e-6)
    assert len(passes) == 2


def test_what_is_forgotten_is_computed_again(tiny_encoder: Path) -> None:
    encoder = TokenEncoder(tiny_encoder)
    first = encoder.encode(["the house"])
    encoder.encode(["the house"])
    assert encoder.counts.computed == 1
    encoder.clear_cache()
    assert encoder.encode(["the house"]).vectors == pytest.approx(first.vectors)
    assert encoder.counts.computed == 2


def test_a_text_that_comes_again_takes_no_more_room(tiny_encoder: Path) -> None:
    """After memory ran out, a batch is computed again in parts."""
    encoder = TokenEncoder(tiny_encoder)
    [spec] = encoder.vector_specs
    vectors = np.ones((2, 16), dtype=np.float32)
    text = EncodedText(vectors, np.array([4, 5]), np.array([0, 1]), is_truncated=False)
    candidates = _CacheCandidates(encoder, [encoder], byte_budget=2 * vectors.nbytes)
    for index in (0, 0, 1):
        candidates.add(index, spec, text, vectors)
    assert [index for index, *_ in candidates.by_priority()] == [0, 1]
