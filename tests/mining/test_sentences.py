"""Ratio margin: by hand, against its formula, and mining with it."""

from pathlib import Path

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.mining.sentences import mine_sentences, ratio_margins
from mtmetrics.mining.sides import encode_side
from mtmetrics.models.token_encoder import TokenEncoder


def test_margin_by_hand() -> None:
    # k = 1: a source's cosine with its nearest target over the mean of that cosine and of the
    # target's best.
    x, y = np.array([[1.0, 0.0], [0.8, 0.6]]), np.array([[1.0, 0.0]])
    found = ratio_margins(x, y, k=1)
    assert found.targets.tolist() == [0, 0]
    assert found.margins == pytest.approx([1.0, 0.8 / ((0.8 + 1.0) / 2)])


def test_agrees_with_equation_5() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 40, 6)) + 1.0
    cosines = (x / np.linalg.norm(x, axis=1, keepdims=True)) @ (
        y / np.linalg.norm(y, axis=1, keepdims=True)
    ).T
    forward, backward = (
        np.sort(cosines, axis=1)[:, -5:].sum(1),
        np.sort(cosines, axis=0)[-5:].sum(0),
    )
    margins = cosines / (forward[:, None] / 10 + backward / 10)
    near = cosines >= np.sort(cosines, axis=1)[:, [-5]]
    expected = np.where(near, margins, -np.inf)
    found = ratio_margins(x.astype(np.float32), y.astype(np.float32))
    assert found.targets.tolist() == expected.argmax(1).tolist()
    assert found.margins == pytest.approx(expected.max(1), abs=1e-5)


def test_a_hub_loses_against_a_mutual_neighbour() -> None:
    # Target 0 is near everything, so it counts less than target 1, which only source 0 is near to.
    x = np.array([[0.9, 0.43], [1, 0.05], [1, -0.05], [1, 0.0]], dtype=np.float32)
    y = np.array([[1, 0.05], [0.6, 0.8]], dtype=np.float32)
    cosines = x[0] @ (y / np.linalg.norm(y, axis=1, keepdims=True)).T
    assert cosines.argmax() == 0
    assert ratio_margins(x, y, k=2).targets[0] == 1


def test_mines_distinct_sentences(tiny_encoder: Path) -> None:
    encoder = TokenEncoder(tiny_encoder).means()
    sources = [
        "der hund schläft nicht",
        "ich sehe die katze",
        " ",
        "der hund schläft nicht",
        "das haus ist groß",
    ]
    targets = ["i see the cat", "the dog sleeps", "", "a large tree", "i see the cat"]
    sides = encode_side(sources, encoder), encode_side(targets, encoder)
    mined = mine_sentences(*sides, k=3)
    assert mined.counts["sources"] == 3
    assert mined.counts["targets"] == 3
    assert len(set(mined.targets)) == len(mined.targets)
    assert (np.diff(mined.scores) <= 0).all()
    assert mine_sentences(*sides, k=99).counts["kept"] >= 1
    assert len(mine_sentences(*sides, k=3, limit=1).pairs()) == 1
    with pytest.raises(InputError, match="limit 0"):
        mine_sentences(*sides, limit=0)
