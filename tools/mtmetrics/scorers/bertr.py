"""BERTR: how much of the reference is covered by the translation, in the space of a contextual
encoder (Mathur et al., 2019)."""

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.matching.greedy import bertr
from mtmetrics.matching.plan import Alignment, Cells, greedy_plan, pieces
from mtmetrics.matching.remapping import Remapping
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import Scorer, any_truncated, encoded_together
from mtmetrics.scorers.preset_tables import Opened, map_name, model_name
from mtmetrics.scorers.results import ChunkScores
from mtmetrics.scorers.settings import option


class BERTR(Scorer):
    """The mean over the word pieces of the reference of the highest cosine with a piece of the
    translation (Eq. 1 and 2).

    A score is at most 1 and hardly ever below 0, which is the score of a segment with a blank side.
    Against the source, which the paper leaves to future work, the encoder has to be a multilingual
    one.

    Args:
        encoder: the encoder, opened at the layer to use.
        remapping: linear map of the source side; only against the source.
        against: compare with the ``"reference"`` or with the ``"source"``.
        **options: of `BERTR.Settings`.

    Raises:
        InputError: an unknown or impossible setting.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of BERTR."""

        encoder: str | None = option(
            None, settings.ENCODER, usage="MODEL", signed="enc", opens=True
        )
        layer: int | None = option(None, settings.LAYER, signed="layer", opens=True)
        map: str | None = option(None, settings.MAP, signed="map", opens=True)
        maps: str | None = option(None, settings.MAPS, usage="PATH|NAME", opens=True)
        special_tokens: bool = option(
            False, "count special tokens as word pieces", signed="special"
        )
        workers: int | None = option(None, settings.WORKERS)

    metric = "bertr"
    floor = 0.0
    scale = "at most 1"
    told_alignments = (
        "per segment the pieces of `source` (the reference, or the source) and `prediction`, "
        "their cosines (`values`), the `mass` of each match, and their `total`, which is the "
        "score"
    )
    tables: ClassVar = {
        **{name: {"model", "revision", "layer"} for name in ("encoder", "encoders.*")},
        "maps": {"artifact", "kind", "revision", "fingerprint"},
    }

    def __init__(
        self,
        encoder: TokenEncoder,
        remapping: Remapping | None = None,
        *,
        against: Literal["reference", "source"] = "reference",
        lang_pair: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(lang_pair, **options)
        self.encoder, self.depth, self.dtype = encoder, encoder.depth, encoder.dtype
        self.compare_with(against)
        if remapping is not None and against == "reference":
            raise InputError(
                "map: maps bring a source language closer, so they need against='source'; leave "
                "it out",
                option="map",
                mentions=["against='source'"],
            )
        self.remapping = remapping
        if remapping is not None:
            remapping.apply(np.zeros((0, encoder.dim), dtype=np.float32))
        self.special_tokens = self.settings.special_tokens
        self.workers = settings.worker_count(self.settings.workers)

    @classmethod
    def from_opened(cls, opened: Opened) -> Self:
        """Against the source it needs a multilingual encoder: that of ``[encoder]``, whatever the
        target language."""
        against: Any = opened.side()
        of_source = against == "source"
        encoder = opened.pool.encoder(
            **opened.encoder_table("" if of_source else opened.pair and opened.pair[1])
        )
        mapped = of_source or opened.chosen.map not in (None, "none")
        remapping = opened.remapping(encoder) if mapped else None
        return cls(encoder, remapping, against=against, **opened.keywords())

    def pinned(self, option: str) -> Any:
        if option == "map":
            return map_name(self.remapping) if self.against == "source" else None
        ours = {"encoder": model_name(self.encoder), "layer": self.encoder.layer}
        return ours[option] if option in ours else super().pinned(option)

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        first, *columns = encoded_together(self.encoder, [others, *systems], self.column_languages)
        if self.remapping is not None:
            first = first.with_vectors(self.remapping.apply)
        first = first.normalized()
        results = []
        for packed in columns:
            recall = bertr(
                packed.normalized(), first, special_tokens=self.special_tokens, threads=self.workers
            )
            results.append(ChunkScores(recall, {}, any_truncated(first, packed), np.isnan(recall)))
        return results

    @property
    def cells(self) -> Cells:
        """Cosines."""
        return "cosine"

    def _align(self, others: list[str], predictions: list[str]) -> Iterator[Alignment]:
        first, packed = encoded_together(self.encoder, [others, predictions], self.column_languages)
        if self.remapping is not None:
            first = first.with_vectors(self.remapping.apply)
        first, packed = first.normalized(), packed.normalized()
        columns = zip((first, packed), (others, predictions), self.column_languages, strict=True)
        sides = (
            pieces(self.encoder, *column, special_tokens=self.special_tokens) for column in columns
        )
        for (x, x_pieces), (y, y_pieces) in zip(*sides, strict=True):
            if x_pieces.words and y_pieces.words:
                yield greedy_plan(x_pieces, y_pieces, x @ y.T, (0, np.ones(len(x))))
            else:
                yield Alignment.nothing("cosine")
