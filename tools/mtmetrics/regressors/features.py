"""Numbers about a pair of texts that a regressor can read beside their vectors; the paper's networks read none."""

from collections.abc import Sequence

import numpy as np

from mtmetrics.encoders.packed import PackedTokens
from mtmetrics.matching.greedy import bertscore
from mtmetrics.matching.sentences import cosines

FEATURES = ("precision", "recall", "f1", "cosine", "length")
_WITHOUT_LAYERS = ("length",)


def feature_count(names: Sequence[str], layers: int) -> int:
    """Number of columns of `pair_features` where `layers` layers are read."""
    once = sum(name in _WITHOUT_LAYERS for name in names)
    return (len(names) - once) * layers + once


def pair_features(names: Sequence[str], layers: Sequence[tuple[PackedTokens, PackedTokens]], threads: int = 1) -> np.ndarray:
    """Features of N pairs of texts.

    Args:
        names: some of `FEATURES`: greedy-match precision, recall and F1 (as BERTScore), cosine of the mean vectors, and ``length``, the
            logarithm of the ratio of the lengths, translation over the other side.
        layers: for each layer that is read the packed tokens of the references or sources, and of the translations: not normalised, special
            tokens included; input position i of the ones is paired with position i of the others.
        threads: threads that share the pairs.

    Returns:
        (N, `feature_count`) float32, layer by layer; NaN where a side has no tokens but special ones.
    """
    columns: list[np.ndarray] = []
    for others, predictions in layers:
        found: dict[str, np.ndarray] = {}
        if {"precision", "recall", "f1"} & set(names):
            scores = bertscore(predictions.normalized(), others.normalized(), threads=threads)
            found |= {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}
        if "cosine" in names:
            found["cosine"] = cosines(others.means()[others.index], predictions.means()[predictions.index])
        columns += [found[name] for name in names if name not in _WITHOUT_LAYERS]
    others, predictions = layers[0]
    if "length" in names:
        columns.append(np.log(predictions.lengths[predictions.index] / others.lengths[others.index]))
    rows = len(others.index)
    return np.stack(columns, axis=1).astype(np.float32) if columns else np.zeros((rows, 0), dtype=np.float32)
