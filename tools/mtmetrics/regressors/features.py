"""Numbers about a pair of texts that a regressor can read beside their vectors; the paper's networks read none."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from mtmetrics.matching.greedy import bertscore
from mtmetrics.matching.pairs import cosines
from mtmetrics.models.packed import PackedTokens

FEATURES = ("precision", "recall", "f1", "cosine", "length")
_WITHOUT_LAYERS = ("length",)


def feature_count(names: Sequence[str], layers: int) -> int:
    """Number of columns of `pair_features` where `layers` layers are read."""
    once = sum(name in _WITHOUT_LAYERS for name in names)
    return (len(names) - once) * layers + once


def pair_features(
    names: Sequence[str], layers: Sequence[PackedTokens], others: np.ndarray, predictions: np.ndarray, threads: int = 1
) -> np.ndarray:
    """Features of N pairs of texts.

    Args:
        names: some of `FEATURES`: greedy-match precision, recall and F1 (as BERTScore), cosine of the mean vectors, and
            ``length``, the logarithm of the ratio of the lengths, translation over the other side.
        layers: packed tokens of the texts at each layer that is read, not normalised, special tokens included.
        others: (N,) numbers of the references or sources among the texts.
        predictions: (N,) numbers of the translations.
        threads: threads that share the pairs.

    Returns:
        (N, `feature_count`) float32, layer by layer; NaN where a side has no tokens but special ones.
    """
    columns: list[np.ndarray] = []
    for tokens in layers:
        found: dict[str, np.ndarray] = {}
        if {"precision", "recall", "f1"} & set(names):
            units = tokens.normalized()
            sides = (dataclasses.replace(units, index=index) for index in (predictions, others))
            scores = bertscore(*sides, threads=threads)
            found |= {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}
        if "cosine" in names:
            means = tokens.means()
            found["cosine"] = cosines(means[others], means[predictions])
        columns += [found[name] for name in names if name not in _WITHOUT_LAYERS]
    if "length" in names:
        lengths = layers[0].lengths
        columns.append(np.log(lengths[predictions] / lengths[others]))
    return np.stack(columns, axis=1).astype(np.float32) if columns else np.zeros((len(others), 0), dtype=np.float32)
