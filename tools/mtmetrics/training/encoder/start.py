"""Where a training begins: the usual English pieces beside those of the other languages, with counted vectors."""

import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mtmetrics.training import vocabulary
from mtmetrics.training.corpus import Pair

_TEXTS_PER_CALL = 20_000
_ROWS_PER_PRODUCT = 2000


# A piece that only the other tokenizer uses. Texts are split at spaces before pieces are looked up, so that it is never
# found.
_UNUSED = "~ {}"


def two_tokenizers(
    pairs: Sequence[Pair], original: Any, size: int, english: int, characters: int, seed: int
) -> tuple[Any, Any]:
    """Two lower-casing WordPiece tokenizers that share one table of word vectors: for English, and for other languages.

    Both number the same `size` pieces: pieces without letters, which both use; pieces of the original, the letters and
    the most frequent ones in English, `english` in all, which split English as before; and pieces of the other
    languages, most frequent first. A word that a translation left as it was in its source is so a different piece there
    than in the source, of which the English reader knows nothing.

    Args:
        pairs: sources and English translations.
        original: the tokenizer of an English encoder.
        size: pieces in all.
        english: of them so many belong to English.
        characters: so many of each language are looked at.
        seed: of which.

    Returns:
        The tokenizer of English and that of the other languages.
    """
    texts: dict[str, dict[str, None]] = {}
    for pair in pairs:
        texts.setdefault(pair.group.split("-")[0], {})[pair.source] = None
    others = vocabulary.balanced({language: list(unique) for language, unique in texts.items()}, characters, seed)
    trained = _by_number(vocabulary.train_wordpiece(others, size))
    known = _by_number(original)
    counts = piece_counts([pair.target for pair in pairs], original)
    frequent = [known[number] for number in np.argsort(-counts, kind="stable") if counts[number]]
    letters = [piece for piece in frequent if len(piece.removeprefix("##")) == 1 and _has_letter(piece)]
    usual = [piece for piece in frequent if _has_letter(piece)]
    special = list(vocabulary.WORDPIECE_SPECIAL)
    shared = list(dict.fromkeys(piece for piece in (*frequent, *trained) if not _has_letter(piece)))
    shared = [piece for piece in shared if piece not in special][: size // 16]
    english_only = list(dict.fromkeys([*letters, *usual]))[:english]
    free = size - len(special) - len(shared) - len(english_only)
    others_only = [piece for piece in trained if _has_letter(piece) and piece not in special][:free]
    numbered = [*special, *shared]
    made = []
    for pieces in (
        [*numbered, *english_only, *map(_UNUSED.format, others_only)],
        [*numbered, *map(_UNUSED.format, english_only), *others_only],
    ):
        made.append(vocabulary.wordpiece({piece: number for number, piece in enumerate(pieces)}))
    made[0].normalizer = original.backend_tokenizer.normalizer
    reads_english, reads_others = (vocabulary.as_pretrained(one, original.model_max_length) for one in made)
    return reads_english, reads_others


def _has_letter(piece: str) -> bool:
    return any(character.isalpha() or unicodedata.category(character).startswith("M") for character in piece)


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
    pairs: Sequence[Pair], tokenizer: Any, english: Any, original: Any, vectors: np.ndarray, most: int = 8
) -> np.ndarray:
    """Word vectors for the pieces of `two_tokenizers`, `(size, d)`: means of the English pieces in their translations.

    Pieces that English uses have the vector of the original. Of the others, each gets the mean of the vectors of the
    `most` original pieces with the highest Dice coefficient, weighted by its square and brought to their mean length.
    """
    sources = _occurrences([pair.source for pair in pairs], tokenizer)
    targets = _occurrences([pair.target for pair in pairs], original)
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
    known = original.get_vocab()
    for piece, number in english.get_vocab().items():
        if piece in known:
            result[number] = vectors[known[piece]]
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
