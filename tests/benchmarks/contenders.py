"""Other ways to do what the package does, to compare it with: Word Mover's Distances of packed
pairs, and whole metrics."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ot
from ot.lp.emd_wrap import emd_c

from mtmetrics.models.packed import PackedTokens

_ITERATIONS = 1_000_000


class Pair(NamedTuple):
    """One pair of texts: (n, d) and (m, d) vectors, (n,) and (m,) masses."""

    x: np.ndarray
    y: np.ndarray
    x_mass: np.ndarray
    y_mass: np.ndarray


def unpack(sources: PackedTokens, targets: PackedTokens) -> list[Pair]:
    """The pairs that have tokens on both sides, one by one."""
    pairs = []
    for s, t in zip(sources.index, targets.index, strict=True):
        x, y = sources.rows(s), targets.rows(t)
        if x.start < x.stop and y.start < y.stop:
            masses = [
                side.weights[rows] / side.weights[rows].sum()
                for side, rows in ((sources, x), (targets, y))
            ]
            pairs.append(Pair(sources.vectors[x], targets.vectors[y], *masses))
    return pairs


def naive(pairs: list[Pair]) -> np.ndarray:
    """The published design: per pair one problem over all n + m tokens, its costs filled in by
    Python loops."""
    distances = []
    for pair in pairs:
        tokens = [*pair.x, *pair.y]
        cost = np.zeros((len(tokens), len(tokens)))
        for i, first in enumerate(tokens):
            for j, second in enumerate(tokens):
                cost[i, j] = ((first - second) ** 2).sum()
        distances.append(_square_problem(pair, cost))
    return np.array(distances)


def naive_vectorised(pairs: list[Pair]) -> np.ndarray:
    """The transport problem of n + m tokens, its costs from one matrix product a pair."""
    distances = []
    for pair in pairs:
        tokens = np.concatenate([pair.x, pair.y]).astype(np.float64)
        distances.append(_square_problem(pair, np.maximum(2.0 - 2.0 * (tokens @ tokens.T), 0.0)))
    return np.array(distances)


def _square_problem(pair: Pair, cost: np.ndarray) -> float:
    source = np.concatenate([pair.x_mass, np.zeros(len(pair.y))])
    target = np.concatenate([np.zeros(len(pair.x)), pair.y_mass])
    return float((ot.emd(source, target, cost, numItermax=_ITERATIONS) * cost).sum())


def costs(pairs: list[Pair]) -> list[np.ndarray]:
    """The (n, m) cost of each pair, for `solver_alone`."""
    return [np.maximum(2.0 - 2.0 * (pair.x @ pair.y.T).astype(np.float64), 0.0) for pair in pairs]


def solver_alone(pairs: list[Pair], prepared: list[np.ndarray]) -> np.ndarray:
    """POT's compiled solver on costs that are there already, one thread."""
    return np.array(
        [
            emd_c(pair.x_mass, pair.y_mass, cost, _ITERATIONS, 1)[1]
            for pair, cost in zip(pairs, prepared, strict=True)
        ]
    )


def products_alone(pairs: list[Pair]) -> None:
    """One matrix product a pair."""
    for pair in pairs:
        pair.x @ pair.y.T


class PublishedDesign:
    """XMoverScore as the published code is built: batches in the order of the input, padded, all
    layers, one large problem per pair.

    Texts are not sorted, each is encoded as often as it occurs, and every layer is computed
    whichever is used; bigrams of all tokens, squared Euclidean distances, no map and no language
    model.

    Args:
        folder: a `transformers` encoder.
        layer: hidden state to use.
        batch: texts per batch.
    """

    def __init__(self, folder: Path, layer: int, batch: int = 32) -> None:
        import transformers

        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
        self.network: Any = transformers.AutoModel.from_pretrained(folder).eval()
        self.layer, self.batch = layer, batch

    def score(self, sources: Sequence[str], predictions: Sequence[str]) -> np.ndarray:
        """(N,) scores ``1 - distance``."""
        scores: list[np.ndarray] = []
        for first in range(0, len(sources), self.batch):
            sides = [
                self._bigrams(list(column[first : first + self.batch]))
                for column in (sources, predictions)
            ]
            pairs = [
                Pair(x, y, np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y)))
                for x, y in zip(*sides, strict=True)
            ]
            scores.append(1 - naive_vectorised(pairs))
        return np.concatenate(scores)

    def _bigrams(self, texts: list[str]) -> list[np.ndarray]:
        import torch

        inputs = self.tokenizer(
            texts, padding=True, truncation=True, max_length=512, return_tensors="pt"
        )
        with torch.inference_mode():
            states = self.network(**inputs, output_hidden_states=True).hidden_states[self.layer]
        grams = []
        for vectors, length in zip(
            states.numpy(), inputs["attention_mask"].sum(1).tolist(), strict=True
        ):
            means = (vectors[: length - 1] + vectors[1:length]) / 2
            grams.append(means / np.linalg.norm(means, axis=1, keepdims=True))
        return grams
