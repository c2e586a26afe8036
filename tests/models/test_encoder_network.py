"""One pass of a network serves all that read its layers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import TEXTS
from transformers import AutoModel, BertConfig, PreTrainedConfig, SqueezeBertConfig, XLMConfig

from mtmetrics.models.encoder_network import EncodedText, PartialEncoder, _CacheCandidates
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


SIZES = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}


@pytest.mark.parametrize(
    "config",
    [
        BertConfig(**SIZES, intermediate_size=32),
        # Lists of attentions, of feed-forward parts and of norms instead of blocks.
        XLMConfig(vocab_size=50, emb_dim=16, n_layers=3, n_heads=2),
        # Its blocks are called in a way that skips hooks.
        SqueezeBertConfig(**SIZES, intermediate_size=32, embedding_size=16),
    ],
    ids=["bert", "xlm", "squeezebert"],
)
def test_each_layer_is_the_hidden_state_of_the_whole_model(config: PreTrainedConfig) -> None:
    network = AutoModel.from_config(config).eval()
    inputs = {"input_ids": torch.arange(5, 13)[None], "attention_mask": torch.ones(1, 8).long()}
    with torch.inference_mode():
        expected = network(**inputs, output_hidden_states=True).hidden_states
        encoder = PartialEncoder(network)
        for layer in (1, 0, 3, 2):
            torch.testing.assert_close(encoder([layer], **inputs)[layer], expected[layer])
