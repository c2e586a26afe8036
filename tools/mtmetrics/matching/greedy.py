"""Greedy matching: every token is compared with the most similar token of the other side
(BERTScore, BERTR)."""

import dataclasses
from typing import NamedTuple

import numpy as np

from mtmetrics.matching.pairs import both_filled, pair_values
from mtmetrics.models.packed import PackedTokens


class BERTScores(NamedTuple):
    """(N,) float64 precision, recall and their harmonic mean F1, each at most 1."""

    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray


def bertscore(
    predictions: PackedTokens, references: PackedTokens, *, threads: int = 1
) -> BERTScores:
    """BERTScore of N pairs of texts (Zhang et al., 2020, Sec. 3; without rescaling).

    ``R = sum_i w_i max_j cos(r_i, p_j) / sum_i w_i`` over the tokens of the reference, precision
    the same the other way round, and ``F1 = 2 P R / (P + R)``. Special tokens have no weight of
    their own, but a token may be matched with one, as in the published code. There a token may also
    be matched with padding, at similarity 0; here there is no padding, as in its batches of one.

    Args:
        predictions: packed, L2-normalised tokens with the special ones; input i is paired with
            input i of `references`.
        references: the other side; weights of at least 0.
        threads: threads that share the pairs.

    Returns:
        All NaN where a side has no tokens but special ones. Where a side's tokens have no weight,
        its own number and F1 are NaN.
    """
    sides = predictions, references
    words = both_filled(*sides, lambda side: (side.word_positions >= 0).astype(np.float64))
    x, y = (
        dataclasses.replace(side, weights=np.where(side.word_positions >= 0, side.weights, 0.0))
        for side in sides
    )
    precision, recall = pair_values(_matched, x, y, words, threads)
    total = precision + recall
    f1 = np.divide(2.0 * precision * recall, total, out=np.zeros_like(total), where=total != 0)
    return BERTScores(precision, recall, f1)


def bertr(
    predictions: PackedTokens,
    references: PackedTokens,
    *,
    special_tokens: bool = False,
    threads: int = 1,
) -> np.ndarray:
    """BERTR of N pairs of texts, ``mean_i max_j cos(r_i, p_j)``: how well the word pieces of the
    reference are covered (Mathur et al., 2019, Eq. 1 and 2). Unlike the recall of BERTScore,
    special tokens are no partners.

    Args:
        predictions: packed, L2-normalised tokens, uniformly weighted; input i is paired with input
            i of `references`.
        references: the other side.
        special_tokens: count special tokens as word pieces, on both sides.
        threads: threads that share the pairs.

    Returns:
        (N,) float64 values of at most 1; NaN where a side has no tokens that count.
    """
    if not special_tokens:
        predictions, references = (
            side.select(side.word_positions >= 0) for side in (predictions, references)
        )
    filled = both_filled(predictions, references, lambda side: np.ones(len(side.word_positions)))
    return pair_values(_matched, predictions, references, filled, threads)[1]


def _matched(
    x: np.ndarray, x_mass: np.ndarray, y: np.ndarray, y_mass: np.ndarray
) -> tuple[float, float]:
    """Weighted means over the tokens of `x` of the highest similarity with a token of `y`, and the
    other way round."""
    similarity = x @ y.T
    return similarity.max(1) @ x_mass, similarity.max(0) @ y_mass
