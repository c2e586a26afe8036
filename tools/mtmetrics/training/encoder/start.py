"""Where a training begins: a multilingual vocabulary around the English one, with counted word vectors."""

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mtmetrics.training import vocabulary
from mtmetrics.training.corpus import Pair

_TEXTS_PER_CALL = 20_000
_ROWS_PER_PRODUCT = 2000


def multilingual_tokenizer(
    pairs: Sequence[Pair], original: Any, size: int, english: int, characters: int, seed: int
) -> Any:
    """A lower-casing WordPiece tokenizer of `size` pieces: the `english` most frequent ones of the original, so that
    English is mostly split as before, and pieces of the other languages, most frequent first, of which so many
    characters each are looked at."""
    texts: dict[str, dict[str, None]] = {}
    for pair in pairs:
        texts.setdefault(pair.group.split("-")[0], {})[pair.source] = None
    others = vocabulary.balanced({language: list(unique) for language, unique in texts.items()}, characters, seed)
    trained = _by_number(vocabulary.train_wordpiece(others, size))
    known = _by_number(original)
    counts = piece_counts([pair.target for pair in pairs], original)
    frequent = [known[number] for number in np.argsort(-counts, kind="stable")[:english]]
    special = trained[: len(vocabulary.WORDPIECE_SPECIAL)]
    letters = [piece for piece in known if len(piece.removeprefix("##")) == 1 and piece.isascii()]
    pieces = list(dict.fromkeys([*special, *letters, *frequent, *trained]))[:size]
    merged = vocabulary.wordpiece({piece: number for number, piece in enumerate(pieces)})
    return vocabulary.as_pretrained(merged, original.model_max_length)


def _by_number(tokenizer: Any) -> list[str]:
    found = tokenizer.get_vocab()
    return sorted(found, key=found.__getitem__)


def piece_counts(texts: Sequence[str], tokenizer: Any) -> np.ndarray:
    """How often each piece of the vocabulary occurs, `(size,)`."""
    counts = np.zeros(len(tokenizer), dtype=np.int64)
    for ids in _tokenised(texts, tokenizer):
        np.add.at(counts, ids, 1)
    return counts


def counted_vectors(
    pairs: Sequence[Pair], tokenizer: Any, original: Any, vectors: np.ndarray, most: int = 8
) -> np.ndarray:
    """Word vectors for a new vocabulary, `(size, d)`: means of the English pieces in the translations of a piece.

    A piece gets the mean of the vectors of the `most` English pieces with the highest Dice coefficient, weighted by its
    square and brought to their mean length. Pieces of the English vocabulary keep their own vector as far as they are
    used in English: both are mixed by the relative frequency on the two sides.
    """
    english = [pair.target for pair in pairs]
    sources, targets = _occurrences([pair.source for pair in pairs], tokenizer), _occurrences(english, original)
    source_counts, target_counts = (np.asarray(table.sum(axis=0)).ravel() for table in (sources, targets))
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
    in_english, abroad = (n / max(n.sum(), 1) for n in (piece_counts(english, tokenizer), source_counts))
    known = original.get_vocab()
    for piece, number in tokenizer.get_vocab().items():
        if piece in known:
            used = in_english[number] + abroad[number]
            share = 1.0 if used == 0 or number in tokenizer.all_special_ids else in_english[number] / used
            result[number] = share * vectors[known[piece]] + (1 - share) * result[number]
    return result


def _occurrences(texts: Sequence[str], tokenizer: Any) -> Any:
    """Which text holds which piece: a sparse matrix of ones, `(texts, vocabulary)`."""
    from scipy import sparse

    indices, offsets = array("i"), array("q", [0])
    for ids in _tokenised(texts, tokenizer):
        indices.frombytes(np.unique(ids).tobytes())
        offsets.append(len(indices))
    ones = np.ones(len(indices), dtype=np.float32)
    parts = (ones, np.array(indices, dtype=np.int32), np.array(offsets, dtype=np.int64))
    return sparse.csr_matrix(parts, shape=(len(texts), len(tokenizer)))


def _tokenised(texts: Sequence[str], tokenizer: Any) -> Iterator[np.ndarray]:
    """The pieces of each whole text, special tokens left out."""
    ordinary = np.ones(len(tokenizer), dtype=bool)
    ordinary[tokenizer.all_special_ids] = False
    # Millions of short texts: the fast tokenizer itself, without what transformers adds to each, nor the cut and the
    # padding that its file may ask for.
    fast = tokenizer.backend_tokenizer
    fast.no_truncation()
    fast.no_padding()
    for begin in range(0, len(texts), _TEXTS_PER_CALL):
        for found in fast.encode_batch_fast(texts[begin : begin + _TEXTS_PER_CALL], add_special_tokens=False):
            ids = np.array(found.ids, dtype=np.int32)
            yield ids[ordinary[ids]]
