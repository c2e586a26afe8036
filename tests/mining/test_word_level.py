"""The word level: pruning changes nothing, sentences are encoded once, what comes out is the best;
aligned words."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.errors import InputError
from mtmetrics.matching.align import align_words
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.transport import word_mover_distances
from mtmetrics.mining import word_level as words
from mtmetrics.mining.sides import Rows, encode_side
from mtmetrics.mining.word_level import closest, find_closest, mine_words
from mtmetrics.models.packed import PackedTokens
from mtmetrics.models.token_encoder import TokenEncoder

GERMAN = [
    "der hund schläft nicht",
    "ich sehe die katze",
    "das haus ist groß",
    "ein baum steht dort",
]
GERMAN += ["das haus ist klein"]
ENGLISH = [
    "a tree stands there",
    "the cat sleeps",
    "i see the dog",
    "the house is small",
    "the dog sleeps",
]
ENGLISH += ["a large house"]


@pytest.fixture
def encoder(tiny_encoder: Path) -> TokenEncoder:
    return TokenEncoder(tiny_encoder, cache_bytes=0)


def packed(generator: np.random.Generator, lengths: list[int], dim: int = 5) -> PackedTokens:
    rows = sum(lengths)
    number = np.zeros(rows, dtype=np.int64)
    vectors = (np.eye(dim)[0] + generator.normal(size=(rows, dim))).astype(np.float32)
    offsets, cut = np.concatenate([[0], np.cumsum(lengths)]), np.zeros(len(lengths), dtype=bool)
    return PackedTokens(
        vectors, offsets, np.ones(rows), number, number, np.arange(len(lengths)), cut
    ).normalized()


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_pruning_gives_what_solving_all_gives(seed):
    generator = np.random.default_rng(seed)
    x, y = (packed(generator, generator.integers(0, 7, count).tolist()) for count in (9, 12))
    candidates = np.array([generator.permutation(12)[:6] for _ in range(9)])
    # A repeated target: of two equal distances the candidate that stands first wins.
    y = dataclasses.replace(y, index=np.where(y.index == 3, 4, y.index))
    found = closest(x, y, candidates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            words, "relaxed_distances", lambda cost, source, target, starts: np.zeros(len(starts))
        )
        whole = closest(x, y, candidates)
    assert found.targets.tolist() == whole.targets.tolist()
    assert np.array_equal(found.distances, whole.distances, equal_nan=True)
    assert found.solved + found.skipped == whole.solved
    assert whole.skipped == 0
    for source, row in enumerate(candidates):
        sides = (
            dataclasses.replace(x, index=np.full(6, source)),
            dataclasses.replace(y, index=y.index[row]),
        )
        values = word_mover_distances(*sides)
        if np.isnan(values).all():
            assert found.targets[source] == -1
            assert np.isnan(found.distances[source])
        else:
            # Products in float32 depend a little on what is multiplied beside them.
            assert found.distances[source] == pytest.approx(np.nanmin(values), abs=1e-6)
            assert values[row.tolist().index(found.targets[source])] == pytest.approx(
                np.nanmin(values), abs=1e-6
            )


def test_threads_change_nothing():
    generator = np.random.default_rng(0)
    x, y = (packed(generator, generator.integers(1, 9, count).tolist()) for count in (300, 40))
    candidates = np.array([generator.permutation(40)[:10] for _ in range(300)])
    one, four = closest(x, y, candidates), closest(x, y, candidates, threads=4)
    assert one.targets.tolist() == four.targets.tolist()
    assert one.distances.tolist() == four.distances.tolist()
    assert (one.solved, one.skipped) == (four.solved, four.skipped)
    assert one.skipped > one.solved


def test_finds_the_lowest_distance_of_all_where_k_covers_all(encoder):
    x, y = encode_side(GERMAN, encoder), encode_side(ENGLISH, encoder)
    found, targets = find_closest(x, y, k=99), y.take(slice(None))
    for source in range(len(GERMAN)):
        one = dataclasses.replace(x.take(slice(None)), index=np.full(len(ENGLISH), source))
        assert found.distances[source] == pytest.approx(
            word_mover_distances(one, targets).min(), abs=1e-6
        )


def test_a_map_is_applied_to_the_sources_alone(encoder):
    sides = encode_side(GERMAN, encoder), encode_side(ENGLISH, encoder)
    direction = np.random.default_rng(0).normal(size=encoder.dim)
    remapping = Remapping("umd", (direction / np.linalg.norm(direction),))
    mapped = dataclasses.replace(
        sides[0], words=Rows([sides[0].take(slice(None), remapping).vectors])
    )
    found, expected = find_closest(*sides, remapping, k=3), find_closest(mapped, sides[1], k=3)
    assert found.distances == pytest.approx(expected.distances, abs=1e-6)
    assert found.distances != pytest.approx(find_closest(*sides, k=3).distances, abs=1e-3)


def test_every_sentence_is_encoded_once(encoder):
    sides = [encode_side([*texts, texts[0], " "], encoder) for texts in (GERMAN, ENGLISH)]
    for _ in range(3):
        mined = mine_words(*sides, k=4, share=1.0)
    assert encoder.counts.computed == len(GERMAN) + len(ENGLISH)
    assert mined.counts["solved"] + mined.counts["skipped"] == 4 * len(GERMAN)
    assert mined.scores.tolist() == sorted(mined.scores, reverse=True)
    # A target may stand in several pairs, as in the paper.
    assert len(mined.targets) == len(GERMAN) > len(set(mined.targets))
    assert [len(mine_words(*sides, k=4, share=share).scores) for share in (0.2, 0.01)] == [1, 1]


def test_refusals(encoder):
    with pytest.raises(InputError, match="there are no sentences to mine"):
        encode_side(["", " "], encoder)
    side = encode_side(GERMAN, encoder)
    for share in (0, 1.5, float("nan")):
        with pytest.raises(InputError, match="share"):
            mine_words(side, side, share=share)
    # Both sides the same: all pairs are copies.
    with pytest.raises(
        InputError, match="no pairs were mined: 0 of 5 sources have no match, 5 are copies"
    ):
        mine_words(side, side)
    with pytest.raises(InputError, match="no words could be aligned in 2 sentence pairs"):
        words.vectors_from_sentences([("", "the house")] * 2, encoder, encoder)
    with pytest.raises(InputError, match="none of the 1 word pairs can be encoded"):
        words.vectors_from_words([("", "house")], encoder)


def test_words_of_equal_sentences_are_aligned_with_themselves(encoder):
    """The vectors are sharpened so that each piece has one partner: itself."""
    encode = encoder.encode_words
    encoder.encode_words = lambda *given: encode(*given).map_vectors(
        lambda vectors: np.float32(100) * vectors
    )
    sentences = [["the", "house", "xyz"], ["ich", "sehe"], [], ["the", "dog"]]
    found = words.words_from_sentences([(sentence, sentence) for sentence in sentences], encoder)
    assert found == [(word, word) for sentence in sentences for word in sentence]


def test_words_are_those_of_the_alignment(encoder):
    source, target = ["das", "haus", "schläft"], ["the", "house", "stands"]
    [aligned] = align_words(encoder.encode_words([source]), encoder.encode_words([target]))
    assert aligned
    assert (
        words.words_from_sentences([(source, target)] * 2, encoder)
        == [(source[a], target[b]) for a, b in aligned] * 2
    )
