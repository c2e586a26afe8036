"""Maps from the words of mined or parallel sentences, and how well sentences are matched with them (Fig. 3 of Belouadi
and Eger, 2023)."""

from collections.abc import Callable, Iterable, Sequence

from mtmetrics.maps.files import map_meta
from mtmetrics.maps.remapping import Remapping
from mtmetrics.mining.token_store import EncodedSide
from mtmetrics.mining.word_level import find_closest
from mtmetrics.mining.word_pairs import vectors_from_sentences
from mtmetrics.models.token_encoder import TokenEncoder

FITTED = ("clp", "umd")


def fit_maps(
    pairs: Sequence[tuple[str, str]],
    encoder: TokenEncoder,
    aligner: TokenEncoder,
    lang_pair: str,
    *,
    corpus: str,
    wrap: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> dict[str, Remapping]:
    """CLP and UMD, fitted on the aligned words of mined or parallel sentences.

    Args:
        pairs: sentences and their translations.
        encoder: encoder at the layer to remap.
        aligner: encoder at the layer that aligns words.
        lang_pair: such as ``"de-en"``.
        corpus: what the pairs are, recorded in the maps.
        wrap: wraps the iteration over batches, for a progress bar.

    Raises:
        InputError: not a single word pair was aligned.
    """
    source, target, _ = vectors_from_sentences(pairs, encoder, aligner, wrap=wrap)
    meta = map_meta(encoder, lang_pair, corpus=corpus, sentences=str(len(pairs)))
    return {kind: Remapping.fit(kind, source, target, meta) for kind in FITTED}


def precision_at_1(
    sources: EncodedSide,
    targets: EncodedSide,
    pairs: Sequence[tuple[str, str]],
    remapping: Remapping | None = None,
    *,
    k: int = 20,
    threads: int = 1,
) -> float:
    """Share of sentences whose closest target is a translation of theirs (parallel sentence matching), 0 to 1.

    Args:
        sources: the distinct source sentences of `pairs`, encoded.
        targets: the distinct target sentences of `pairs`, encoded.
        pairs: sentences and their translations.
        remapping: linear map of the source side, or None.
        k: candidates per source.
        threads: solver threads.

    Raises:
        InputError: as `mtmetrics.mining.word_level.find_closest`.
    """
    translations = set(pairs)
    found = find_closest(sources, targets, remapping, k=k, threads=threads).targets
    hits = [
        (source, targets.texts[target]) in translations
        for source, target in zip(sources.texts, found.tolist(), strict=True)
    ]
    return sum(hits) / len(hits)
