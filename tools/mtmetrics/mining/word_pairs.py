"""Word-pair vectors to fit a remapping on: aligned words of parallel sentences, or a given list of words."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.matching.align import align_words, word_pair_vectors
from mtmetrics.models.token_encoder import TokenEncoder

_SENTENCES_PER_BATCH = 256


def vectors_from_sentences(
    pairs: Sequence[tuple[str, str]],
    encoder: TokenEncoder,
    aligner: TokenEncoder,
    *,
    threshold: float = 1e-3,
    wrap: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of the words that are aligned in parallel sentences.

    Args:
        pairs: parallel sentences.
        encoder: encoder at the layer to remap.
        aligner: encoder at the layer that aligns; may be the same.
        threshold: see `mtmetrics.matching.align.align_pieces`.
        wrap: wraps the iteration over batches, for a progress bar.

    Returns:
        Two (k, d) float32 matrices, one row per aligned word pair, and the (k,) number of the sentence pair that each
        row is from.

    Raises:
        InputError: not a single word pair was aligned.
    """
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for first in wrap(range(0, len(pairs), _SENTENCES_PER_BATCH)):
        batch = pairs[first : first + _SENTENCES_PER_BATCH]
        sources, targets = [source for source, _ in batch], [target for _, target in batch]
        alignments = align_words(aligner.encode(sources), aligner.encode(targets), threshold)
        numbers = np.repeat(np.arange(first, first + len(batch)), [len(words) for words in alignments])
        found.append((*word_pair_vectors(encoder.encode(sources), encoder.encode(targets), alignments), numbers))
    if not sum(len(numbers) for _, _, numbers in found):
        raise InputError(
            f"no words could be aligned in {len(pairs)} sentence pairs; check that the two sides are translations"
        )
    source, target, numbers = (np.concatenate(column) for column in zip(*found, strict=True))
    return source, target, numbers


def words_from_sentences(
    pairs: Sequence[tuple[list[str], list[str]]],
    aligner: TokenEncoder,
    *,
    wrap: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> list[tuple[str, str]]:
    """The words that are aligned in parallel sentences, one pair per occurrence.

    Args:
        pairs: the words of parallel sentences.
        aligner: encoder at the layer that aligns.
        wrap: wraps the iteration over batches, for a progress bar.
    """
    found = []
    for first in wrap(range(0, len(pairs), _SENTENCES_PER_BATCH)):
        batch = pairs[first : first + _SENTENCES_PER_BATCH]
        alignments = align_words(*(aligner.encode_words([pair[side] for pair in batch]) for side in (0, 1)))
        for (source, target), aligned in zip(batch, alignments, strict=True):
            found += [(source[one], target[other]) for one, other in aligned]
    return found


def vectors_from_words(
    pairs: Sequence[tuple[str, str]], encoder: TokenEncoder
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of given word pairs, each word encoded alone: the mean over its pieces without the special tokens.

    Args:
        pairs: words and their translations.
        encoder: encoder at the layer to remap.

    Returns:
        As `vectors_from_sentences`; pairs of which a side has no pieces are left out.

    Raises:
        InputError: no pair is left.
    """
    packed = [encoder.encode([pair[side] for pair in pairs]) for side in (0, 1)]
    words = [tokens.select(tokens.words >= 0) for tokens in packed]
    source, target = (tokens.means()[tokens.index] for tokens in words)
    kept = (words[0].lengths[words[0].index] > 0) & (words[1].lengths[words[1].index] > 0)
    if not kept.any():
        raise InputError(f"none of the {len(pairs)} word pairs can be encoded")
    return source[kept], target[kept], np.flatnonzero(kept)
