"""Where a training begins: a multilingual vocabulary around the English one, with counted word vectors."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mtmetrics.training import vocabulary
from mtmetrics.training.corpus import Pair

_TEXTS_PER_CALL = 20_000
_ROWS_PER_PRODUCT = 2000


def multilingual_tokenizer(
    pairs: Sequence[Pair], original: Any, size: int, english: int, characters: int, seed: int
) -> Any:
    """A lower-casing WordPiece tokenizer that keeps the usual English pieces, so that English is mostly split as
    before.

    Args:
        pairs: text whose target side is English, and word lists.
        original: the tokenizer of the English encoder.
        size: entries in all; what English leaves is filled with pieces of the other languages, most frequent first.
        english: that many pieces of the original stay, the most frequent ones.
        characters: about so many of each language are looked at.
        seed: of their choice.
    """
    texts: dict[str, dict[str, None]] = {}
    for pair in pairs:
        texts.setdefault(pair.group.split("-")[0], {})[pair.source] = None
    others = vocabulary.balanced({language: list(unique) for language, unique in texts.items()}, characters, seed)
    trained = _by_number(vocabulary.train_wordpiece(others, size))
    known = _by_number(original)
    counts = piece_counts((pair.target for pair in pairs), original)
    order = sorted(range(len(known)), key=lambda number: (-counts[number], number))
    special = trained[: len(vocabulary.WORDPIECE_SPECIAL)]
    letters = [piece for piece in known if len(piece.removeprefix("##")) == 1 and piece.isascii()]
    pieces = dict.fromkeys([*special, *letters, *(known[number] for number in order[:english]), *trained])
    merged = vocabulary.wordpiece({piece: number for number, piece in enumerate(list(pieces)[:size])})
    return vocabulary.as_pretrained(merged, original.model_max_length)


def _by_number(tokenizer: Any) -> list[str]:
    return [piece for piece, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]


def piece_counts(texts: Iterable[str], tokenizer: Any) -> np.ndarray:
    """How often each piece of the vocabulary occurs, `(size,)`."""
    counts: Counter[int] = Counter()
    for ids in _tokenised(list(texts), tokenizer):
        counts.update(ids)
    result = np.zeros(len(tokenizer), dtype=np.int64)
    result[list(counts)] = list(counts.values())
    return result


def counted_vectors(
    pairs: Sequence[Pair], tokenizer: Any, original: Any, vectors: np.ndarray, most: int = 8
) -> np.ndarray:
    """Word vectors for a new vocabulary: means of the English pieces that occur in the translations of a piece.

    A piece gets the mean of the vectors of the `most` English pieces with the highest Dice coefficient, weighted by its
    square and brought to their mean length. Pieces of the English vocabulary keep their own vector as far as they are
    used in English: both are mixed by the relative frequency on the two sides.

    Args:
        pairs: text and word lists whose target side is English.
        tokenizer: of the new vocabulary.
        original: the tokenizer of the English encoder.
        vectors: its word vectors, `(old size, d)`.
        most: English pieces per new one.

    Returns:
        `(size, d)` float32.
    """
    sources = _occurrences([pair.source for pair in pairs], tokenizer)
    targets = _occurrences([pair.target for pair in pairs], original)
    source_counts, target_counts = _totals(sources), _totals(targets)
    result = np.tile(vectors.mean(0), (len(tokenizer), 1)).astype(np.float32)
    norms = np.linalg.norm(vectors, axis=1)
    columns = sources.T.tocsr()
    for begin in range(0, len(tokenizer), _ROWS_PER_PRODUCT):
        together = (columns[begin : begin + _ROWS_PER_PRODUCT] @ targets).tocsr()
        for row in range(together.shape[0]):
            part = slice(together.indptr[row], together.indptr[row + 1])
            found = together.indices[part]
            if not len(found):
                continue
            dice = 2 * together.data[part] / (source_counts[begin + row] + target_counts[found])
            best = np.argsort(-dice, kind="stable")[:most]
            weights = dice[best] ** 2 / (dice[best] ** 2).sum()
            mean = weights @ vectors[found[best]]
            result[begin + row] = mean * (weights @ norms[found[best]] / max(np.linalg.norm(mean), 1e-6))
    english = piece_counts((pair.target for pair in pairs), tokenizer) / max(target_counts.sum(), 1)
    foreign = source_counts / max(source_counts.sum(), 1)
    known = original.get_vocab()
    for piece, number in tokenizer.get_vocab().items():
        if piece in known:
            used = english[number] + foreign[number]
            share = 1.0 if used == 0 or number in tokenizer.all_special_ids else english[number] / used
            result[number] = share * vectors[known[piece]] + (1 - share) * result[number]
    return result


def _totals(table: Any) -> np.ndarray:
    return np.asarray(table.sum(axis=0)).ravel()


def _occurrences(texts: list[str], tokenizer: Any) -> Any:
    """Which text holds which piece: a sparse matrix of ones, `(texts, vocabulary)`, special tokens left out."""
    from scipy import sparse

    rows = [list(set(ids)) for ids in _tokenised(texts, tokenizer)]
    indices = np.fromiter((number for row in rows for number in row), dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    ones = np.ones(len(indices), dtype=np.float32)
    return sparse.csr_matrix((ones, indices, offsets), shape=(len(texts), len(tokenizer)))


def _tokenised(texts: list[str], tokenizer: Any) -> Iterable[list[int]]:
    """The pieces of each text, special tokens left out."""
    special = set(tokenizer.all_special_ids)
    # Millions of short texts: the fast tokenizer itself, without what transformers adds to each.
    for begin in range(0, len(texts), _TEXTS_PER_CALL):
        for found in tokenizer.backend_tokenizer.encode_batch_fast(
            texts[begin : begin + _TEXTS_PER_CALL], add_special_tokens=False
        ):
            yield [number for number in found.ids if number not in special]
