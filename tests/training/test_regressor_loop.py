"""Layers that are computed once, and the loss."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.training import regressor_loop
from mtmetrics.training.regressor_loop import LayerStore


def test_layers_are_computed_once_and_go_on_after_an_interruption(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = TokenEncoder(tiny_encoder, mix=np.eye(3), cache_bytes=0)
    texts = ["the house", "a dog sleeps", "i", "there is not a tree", "cat"]
    # More than are stored at a time.
    texts += map("".join, itertools.product("bcdefghjkl", repeat=3))
    texts += map("".join, itertools.product("mnopq", repeat=3))
    given = [(text, None) for text in texts]
    encode, calls = encoder.encode, []

    def stopping(part: list[str], languages: list[None]) -> object:
        calls.append(part)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return encode(part)

    monkeypatch.setattr(encoder, "encode", stopping)
    with pytest.raises(KeyboardInterrupt):
        LayerStore(tmp_path, encoder, given)
    [layers] = tmp_path.glob("*.layers")
    with open(layers, "ab") as stream:
        stream.write(b"half a row")
    store = LayerStore(tmp_path, encoder, given)
    LayerStore(tmp_path, encoder, given)
    assert calls == [texts[:512], texts[512:1024], texts[512:1024], texts[1024:]]
    expected = encode(texts)
    assert store.vectors.reshape(-1, 48) == pytest.approx(expected.vectors, abs=2e-3)
    assert store.lengths.tolist() == (expected.lengths - 2).tolist()
    pieces = store.pieces(np.array([3, 0]))
    assert pieces.shape == (5 + 2, 3, 16)
    assert pieces[5:, 2].numpy() == pytest.approx(
        expected.vectors[expected.rows(0)][1:-1, 32:], abs=2e-3
    )
    second = expected.vectors[expected.rows(3)][:, 16:32]
    assert store.layer(2, np.array([3])).vectors == pytest.approx(second, abs=2e-3)


def test_ranking_loss_by_hand() -> None:
    human = torch.tensor([1.0, 0.0, 0.05])
    # Two ordered pairs (0 over 1, 0 over 2); 1 and 2 are judged too much alike.
    assert regressor_loop.ranking_loss(
        torch.tensor([0.3, 0.0, 0.25]), human
    ).item() == pytest.approx((0.0 + 0.05) / 2)
    assert regressor_loop.ranking_loss(
        torch.tensor([0.0, 0.2, -1.0]), human
    ).item() == pytest.approx((0.3 + 0.0) / 2)
