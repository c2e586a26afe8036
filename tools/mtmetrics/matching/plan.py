"""Alignments for people to read: transport plans, greedy matches, attention."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from mtmetrics.io.visible_text import spans_as_seen, spans_as_written
from mtmetrics.models.packed import PackedTokens
from mtmetrics.models.text_units import TextUnits, spans_of

Cells = Literal["cost", "cosine", "attention"]


class Units(NamedTuple):
    """k words of a text in reading order, the characters (k, 2) where they stand, and the (rows, k)
    share of each in the rows of its vectors; rows sum to 1."""

    words: list[str]
    spans: np.ndarray
    shares: np.ndarray


@dataclasses.dataclass(frozen=True)
class Alignment:
    """The match of two texts: a cell for each word (or piece) of one side and each of the other.

    What the values of the cells mean is said by `cells`:

    * ``"cost"``: the distance that the mass moves; where none moves, the mean distance of the two
      words' vectors.
    * ``"cosine"``: of the vectors of two pieces.
    * ``"attention"``: how much a network that looks from one piece to all of the other side looks
      at that one, the mean of both directions.

    Attributes:
        source: n words of the source, or of the reference, in reading order, special tokens among
            them.
        prediction: m words of the translation.
        mass: (n, m) float64, at least 0. Of transport the share of the mass that moves from word to
            word, which sums to 1 (to less after partial transport); of greedy matching the share of
            the score that the match has, which sums to 1; of attention the same as the values,
            scaled to the sum 1.
        values: (n, m) float64.
        cells: what the values are.
        source_spans: (n, 2) first character of each word of the source and the one behind its last;
            both 0 for special tokens.
        spans: (m, 2) the same of the translation.
        unrelated: of costs, the one between vectors that have nothing in common (at right angles).
    """

    source: list[str]
    prediction: list[str]
    mass: np.ndarray
    values: np.ndarray
    cells: Cells
    source_spans: np.ndarray
    spans: np.ndarray
    unrelated: float = 1.0

    @classmethod
    def nothing(cls, cells: Cells) -> "Alignment":
        """That of a text without words."""
        return cls([], [], np.zeros((0, 0)), np.zeros((0, 0)), cells, spans_of([]), spans_of([]))

    def without_special_tokens(self) -> "Alignment":
        """The words alone; the mass of what is left out is left out."""
        rows, columns = np.flatnonzero(self.source_spans[:, 1]), np.flatnonzero(self.spans[:, 1])
        kept_cells = np.ix_(rows, columns)
        return dataclasses.replace(
            self,
            source=[self.source[row] for row in rows],
            prediction=[self.prediction[column] for column in columns],
            mass=self.mass[kept_cells],
            values=self.values[kept_cells],
            source_spans=self.source_spans[rows],
            spans=self.spans[columns],
        )

    def as_written(self, source: str, prediction: str) -> "Alignment":
        """The alignment with the words where they stand in these texts, of which the visible
        characters were aligned."""
        return dataclasses.replace(
            self,
            source_spans=spans_as_written(source, self.source_spans),
            spans=spans_as_written(prediction, self.spans),
        )

    def as_seen(self, prediction: str) -> "Alignment":
        """The alignment with the words of the translation where they stand among its visible
        characters."""
        return dataclasses.replace(self, spans=spans_as_seen(prediction, self.spans))

    def partners(self) -> list[tuple[str, str | None, float]]:
        """For each word of the translation the word that gives most of its mass, None where none
        gives any, and the value of the two."""
        if not self.source:
            return [(word, None, 0.0) for word in self.prediction]
        partners = []
        for column, word in enumerate(self.prediction):
            row = self.mass[:, column].argmax()
            partner = self.source[row] if self.mass[row, column] > 0 else None
            partners.append((word, partner, float(self.values[row, column])))
        return partners

    @property
    def total(self) -> float:
        """The sum of mass times value: the Word Mover's Distance, or the score of greedy matching
        (of BERTScore the mean of precision and recall)."""
        return float((self.mass * self.values).sum())

    def as_dict(self) -> dict[str, Any]:
        """Plain data: ``cells``, ``source``, ``prediction``, ``mass`` and ``values`` (one row per
        word of the source), and ``total``."""
        return {
            "cells": self.cells,
            "source": self.source,
            "prediction": self.prediction,
            "mass": self.mass.tolist(),
            "values": self.values.tolist(),
            "total": self.total,
        }


def pieces(
    encoder: Any,
    packed: PackedTokens,
    texts: Sequence[str],
    language: str | None,
    *,
    special_tokens: bool = False,
) -> Iterator[tuple[np.ndarray, TextUnits]]:
    """The vectors of each text's tokens, and what they are; none of a blank text."""
    for number, text in enumerate(texts):
        tokens = packed.take(slice(number, number + 1))
        kept = np.flatnonzero((tokens.word_positions >= 0) | special_tokens if text.strip() else [])
        yield tokens.vectors[kept], encoder.text_words(text, language, pieces=True).take(kept)


def ngram_units(text: TextUnits, positions: np.ndarray, weights: np.ndarray, n: int) -> Units:
    """Shares of words in the n-grams of a text, made as
    `mtmetrics.models.packed.PackedTokens.ngrams` makes them.

    Args:
        text: all words of the text; those without a token are left out.
        positions: (t,) for each token that is kept the number of its word.
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
    return Units(
        [text.words[number] for number in present],
        text.spans[present],
        shares / shares.sum(1, keepdims=True),
    )


def word_plan(
    source: Units, prediction: Units, flow: np.ndarray, cost: np.ndarray, unrelated: float = 1.0
) -> Alignment:
    """Sums a plan between n and m n-grams, (n, m) flow and cost, up to one between words; the
    distance stays the same."""
    x, y = source.shares, prediction.shares
    moved = x.T @ flow @ y
    with np.errstate(invalid="ignore", divide="ignore"):
        paid = (x.T @ (flow * cost) @ y) / moved
    idle = (x.T @ cost @ y) / np.outer(x.sum(0), y.sum(0))
    values = np.where(moved > 0, paid, idle)
    return Alignment(
        source.words,
        prediction.words,
        moved,
        values,
        "cost",
        source.spans,
        prediction.spans,
        unrelated,
    )


def greedy_plan(
    source: TextUnits,
    prediction: TextUnits,
    cosines: np.ndarray,
    *directions: tuple[int, np.ndarray],
) -> Alignment:
    """Each piece is matched with the most similar one of the other side.

    Args:
        source: n pieces.
        prediction: m pieces.
        cosines: (n, m) between them.
        *directions: 0 and the (n,) masses of the source's pieces, which look for a partner among
            the translation's (recall), 1 and the (m,) masses of these (precision), or both; the
            directions count alike.
    """
    mass = np.zeros(cosines.shape)
    for side, masses in directions:
        rows, best = np.arange(len(masses)), cosines.argmax(1 - side)
        places = (rows, best) if side == 0 else (best, rows)
        np.add.at(mass, places, masses / masses.sum() / len(directions))
    values = cosines.astype(np.float64)
    return Alignment(
        source.words, prediction.words, mass, values, "cosine", source.spans, prediction.spans
    )


def attention_plan(
    source: TextUnits, prediction: TextUnits, forth: np.ndarray, back: np.ndarray
) -> Alignment:
    """Attention of n pieces to m, (n, m) with rows of sum 1, and of m pieces to n, (m, n)."""
    attention = (forth.astype(np.float64) + back.astype(np.float64).T) / 2.0
    mass = attention / attention.sum()
    return Alignment(
        source.words, prediction.words, mass, attention, "attention", source.spans, prediction.spans
    )
