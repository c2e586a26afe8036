"""The transport plan between the words of two texts, for people to read."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Units(NamedTuple):
    """k words of a text in reading order, and the (rows, k) share of each in the rows of its vectors; rows sum to 1."""

    words: list[str]
    shares: np.ndarray


@dataclasses.dataclass(frozen=True)
class Alignment:
    """How the mass of a source was moved to its translation.

    Attributes:
        source: n words of the source that hold mass, in reading order, special tokens among them.
        prediction: m words of the translation.
        flow: (n, m) float64 share of the mass that moves from word to word; it sums to 1 (to less after partial
            transport).
        cost: (n, m) float64 distance that it moves; where no mass moves, the mean distance of the two words' vectors.
    """

    source: list[str]
    prediction: list[str]
    flow: np.ndarray
    cost: np.ndarray

    @property
    def distance(self) -> float:
        """The Word Mover's Distance: the sum of flow times cost."""
        return float((self.flow * self.cost).sum())

    def as_dict(self) -> dict[str, Any]:
        """Plain lists ``source``, ``prediction``, ``flow`` and ``cost`` (one row per source word), and ``distance``."""
        matrices = {"flow": self.flow.tolist(), "cost": self.cost.tolist()}
        return {"source": self.source, "prediction": self.prediction, **matrices, "distance": self.distance}


def ngram_units(words: Sequence[str], positions: np.ndarray, weights: np.ndarray, n: int) -> Units:
    """Shares of words in the n-grams of a text, made as `mtmetrics.models.packed.PackedTokens.ngrams` makes them.

    Args:
        words: all words of the text; those without a token are left out.
        positions: (t,) for each token the number of its word.
        weights: (t,) weights of the tokens.
        n: tokens per n-gram.
    """
    present, column = np.unique(positions, return_inverse=True)
    size = min(n, len(positions))
    count = len(positions) - size + (size > 0)
    shares = np.zeros((count, len(present)))
    for step in range(size):
        tokens = np.arange(count) + step
        np.add.at(shares, (np.arange(count), column[tokens]), weights[tokens])
    return Units([words[number] for number in present], shares / shares.sum(1, keepdims=True))


def word_plan(source: Units, prediction: Units, flow: np.ndarray, cost: np.ndarray) -> Alignment:
    """Sums a plan between n and m n-grams, (n, m) flow and cost, up to one between words; the distance stays the
    same."""
    x, y = source.shares, prediction.shares
    moved = x.T @ flow @ y
    with np.errstate(invalid="ignore", divide="ignore"):
        paid = (x.T @ (flow * cost) @ y) / moved
    idle = (x.T @ cost @ y) / np.outer(x.sum(0), y.sum(0))
    return Alignment(source.words, prediction.words, moved, np.where(moved > 0, paid, idle))
