"""Remapping without parallel data: pairs are mined, a map is fitted on their words, and the better metric mines again (Fig. 3)."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from mtmetrics.encoders.token_encoder import TokenEncoder
from mtmetrics.inputs import choice, positive
from mtmetrics.mining.selection import MinedPairs
from mtmetrics.mining.token_store import EncodedSide, encode_side
from mtmetrics.mining.word_level import find_closest, mine_words
from mtmetrics.mining.word_pairs import vectors_from_sentences
from mtmetrics.remap import Remapping
from mtmetrics.scorers.maps import map_meta

FITTED = ("clp", "umd")


@dataclasses.dataclass(frozen=True)
class Round:
    """One round of mining and remapping.

    Attributes:
        number: 1 for the first round; 0 before it, where there are neither pairs nor maps.
        pairs: what was mined with the map of the round before.
        maps: ``"clp"`` and ``"umd"``, fitted on the words of `pairs`.
        precision: P@1 of held-back parallel text with the maps of this round, by kind (``"none"`` in round 0); empty without such text.
    """

    number: int
    pairs: MinedPairs | None
    maps: dict[str, Remapping]
    precision: dict[str, float]


def remap_rounds(
    sources: EncodedSide,
    targets: EncodedSide,
    encoder: TokenEncoder,
    aligner: TokenEncoder,
    lang_pair: str,
    *,
    kind: str = "umd",
    rounds: int = 1,
    k: int = 20,
    share: float = 0.05,
    held_back: Sequence[tuple[str, str]] = (),
    threads: int = 1,
    wrap: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Iterator[Round]:
    """Yields round 0 and then one round after another (Sec. 3.1 of Belouadi and Eger, 2023; the defaults are theirs).

    Every map is fitted for the vectors as the encoder gives them, not on top of the map before it, so that each can be used alone.

    Args:
        sources: sentences of the source language, encoded by `encoder`.
        targets: sentences of the target language.
        encoder: encoder at the layer to remap.
        aligner: encoder at the layer that aligns words; may be the same.
        lang_pair: such as ``"de-en"``, recorded in the maps.
        kind: which of the two maps mines in the next round.
        rounds: how often pairs are mined.
        k: candidates per source.
        share: pairs to keep, as a share of the sources.
        held_back: sentences and their translations, to measure precision on.
        threads: solver threads.
        wrap: wraps the iteration over blocks, for a progress bar.

    Raises:
        InputError: an unknown kind, or as `mine_words` and `mtmetrics.mining.word_pairs.vectors_from_sentences`.
    """
    choice("kind", kind, FITTED)
    positive("rounds", rounds)
    checked = [encode_side([pair[side] for pair in held_back], encoder) for side in (0, 1)] if held_back else []

    def precision(maps: Mapping[str, Remapping | None]) -> dict[str, float]:
        if not held_back:
            return {}
        return {name: precision_at_1(*checked, held_back, remapping, k=k, threads=threads) for name, remapping in maps.items()}

    yield Round(0, None, {}, precision({"none": None}))
    remapping = None
    for number in range(1, rounds + 1):
        mined = mine_words(sources, targets, remapping, k=k, share=share, threads=threads, wrap=wrap)
        maps = fit_maps(mined.pairs(), encoder, aligner, lang_pair, corpus=f"mined, round {number}", wrap=wrap)
        yield Round(number, mined, maps, precision(maps))
        remapping = maps[kind]


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
    hits = [(source, targets.texts[target]) in translations for source, target in zip(sources.texts, found.tolist(), strict=True)]
    return sum(hits) / len(hits)
