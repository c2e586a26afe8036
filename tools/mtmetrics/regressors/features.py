"""Numbers about a pair of texts that a regressor can read beside their vectors; the paper's networks read none."""

from collections.abc import Sequence

import numpy as np

from mtmetrics.encoders.packed import PackedTokens
from mtmetrics.matching.greedy import bertscore
from mtmetrics.matching.sentences import cosines

FEATURES = ("precision", "recall", "f1", "cosine", "length")


def pair_features(names: Sequence[str], others: PackedTokens, predictions: PackedTokens, threads: int = 1) -> np.ndarray:
    """Features of N pairs of texts.

    Args:
        names: some of `FEATURES`: greedy-match precision, recall and F1 (as BERTScore), cosine of the mean vectors, and ``length``, the
            logarithm of the ratio of the lengths, translation over the other side.
        others: packed tokens of the references or sources, not normalised, special tokens included.
        predictions: of the translations; input position i is paired with position i of `others`.
        threads: threads that share the pairs.

    Returns:
        (N, len(names)) float32; NaN where a side has no tokens but special ones.
    """
    columns: dict[str, np.ndarray] = {}
    if {"precision", "recall", "f1"} & set(names):
        scores = bertscore(predictions.normalized(), others.normalized(), threads=threads)
        columns |= {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}
    if "cosine" in names:
        columns["cosine"] = cosines(others.means()[others.index], predictions.means()[predictions.index])
    if "length" in names:
        columns["length"] = np.log(predictions.lengths[predictions.index] / others.lengths[others.index])
    return np.stack([columns[name] for name in names], axis=1).astype(np.float32) if names else np.zeros((len(others.index), 0), np.float32)
