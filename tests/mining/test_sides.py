"""Blocks change nothing: neither where the vectors lie, nor how they are divided, nor who does the
tasks."""

import functools
import gc
import random
import unittest.mock
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtmetrics.errors import MTMetricsError
from mtmetrics.mining import sentences, sides
from mtmetrics.mining import word_level as words
from mtmetrics.mining.neighbours import Index
from mtmetrics.mining.sentences import ratio_margins
from mtmetrics.mining.sides import Rows, encode_side
from mtmetrics.mining.word_level import find_closest
from mtmetrics.models.token_encoder import TokenEncoder

GERMAN = "das haus ist klein groß der hund schläft nicht ich sehe die katze und ein baum steht dort".split()  # noqa: SIM905
ENGLISH = "the house is small large dog sleeps not i see cat and a tree stands there".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def encoder(tiny_encoder: Path) -> TokenEncoder:
    return TokenEncoder(tiny_encoder)


def texts(vocabulary: list[str], count: int) -> list[str]:
    """Sentences, the last of them punctuation alone."""
    generator = random.Random(0)
    lines = [
        " ".join(generator.choices(vocabulary, k=generator.randrange(2, 7))) for _ in range(count)
    ]
    return [*lines, "?", "! !", ". . ?"]


@pytest.fixture
def divide(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def small() -> None:
        for module in (words, sentences, sides):
            monkeypatch.setattr(module, "SENTENCES_PER_BLOCK", 17)
        for module in (words, sentences):
            monkeypatch.setattr(module, "Index", functools.partial(Index, shard=23))
        monkeypatch.setattr(words, "_SOLVED_AT_ONCE", 5)

    return small


def backwards(function: Callable, tasks: Any) -> Iterator[Any]:
    """Like `map`, but the tasks are done in threads, the last one first."""
    items = list(tasks)
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(function, item) for item in reversed(items)]
        yield from (future.result() for future in reversed(futures))


@pytest.mark.parametrize("memory_bytes", [2**30, 20_000, 0])
@pytest.mark.parametrize("run", [map, backwards])
def test_words_in_blocks_are_those_of_one_block(encoder, tmp_path, divide, memory_bytes, run):
    lines = texts(GERMAN, 140), texts(ENGLISH, 120)
    place = {"memory_bytes": memory_bytes, "folder": tmp_path}
    one = find_closest(*(encode_side(side, encoder, **place) for side in lines), k=9)
    divide()
    several = [encode_side(side, encoder, **place, run=run) for side in lines]
    found = find_closest(*several, k=9, run=run)
    for part, expected in zip(found, one, strict=True):
        assert np.array_equal(part, expected, equal_nan=True)
    assert found.skipped > 0
    assert (found.targets[-3:] == -1).all()
    # Bound of memory: in files, the words of a block in one; they vanish with the sides.
    files = len(list(tmp_path.rglob("words-*.npy")))
    assert files == (
        0 if memory_bytes == 2**30 else sum(-(-len(side.texts) // 17) for side in several)
    )
    del several
    gc.collect()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("memory_bytes", [2**30, 0])
def test_margins_in_blocks_are_those_of_one_block(encoder, tmp_path, divide, memory_bytes):
    lines, pooled = (texts(GERMAN, 140), texts(ENGLISH, 120)), encoder.means()
    place = {"memory_bytes": memory_bytes, "folder": tmp_path}
    whole = [encode_side(side, pooled, **place) for side in lines]
    one = ratio_margins(*(side.centroids for side in whole))
    divide()
    several = [encode_side(side, pooled, **place, run=backwards) for side in lines]
    found = ratio_margins(*(side.centroids for side in several), run=backwards)
    assert found.targets.tolist() == one.targets.tolist()
    assert found.margins.tolist() == one.margins.tolist()


def test_a_text_without_words_matches_nothing(encoder):
    sources = encode_side(["das haus ist klein", "?", "! ."], encoder)
    targets = encode_side(["the house is small", "! !"], encoder)
    assert np.diff(sources.offsets).tolist() == [6, 0, 0]  # four words and two special tokens
    assert find_closest(sources, targets, k=2).targets.tolist() == [0, -1, -1]


def test_half_precision_changes_distances_little(encoder, tmp_path):
    lines = texts(GERMAN, 140), texts(ENGLISH, 120)
    memory, files = (
        find_closest(
            *(encode_side(side, encoder, memory_bytes=room, folder=tmp_path) for side in lines), k=9
        )
        for room in (2**30, 0)
    )
    assert files.distances == pytest.approx(memory.distances, abs=1e-3, nan_ok=True)
    assert files.distances.tolist() != memory.distances.tolist()


def test_rows_are_those_of_one_array(tmp_path):
    whole = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float16)
    np.save(tmp_path / "part.npy", whole[4:4])
    np.save(tmp_path / "more.npy", whole[4:15])
    rows = Rows(
        [whole[:4], *(str(tmp_path / f"{name}.npy") for name in ("part", "more")), whole[15:]]
    )
    assert rows.shape == (20, 3)
    for wanted in (
        slice(None),
        slice(2, 17),
        slice(1, 19, 4),
        slice(7, 7),
        np.array([0, 3, 4, 14, 15, 19]),
    ):
        assert rows[wanted].tolist() == whole[wanted].tolist()


def test_a_disk_that_cannot_be_written(encoder, tmp_path, monkeypatch):
    with pytest.raises(MTMetricsError, match="cannot keep vectors in .*none: No such file"):
        encode_side(GERMAN, encoder, memory_bytes=0, folder=tmp_path / "none")
    full = unittest.mock.Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(np, "save", full)
    with pytest.raises(MTMetricsError, match="No space left on device; free disk space there"):
        encode_side(GERMAN, encoder, memory_bytes=1, folder=tmp_path)
    assert not list(tmp_path.iterdir())
