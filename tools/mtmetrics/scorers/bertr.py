"""BERTR: how much of the reference is covered by the translation, in the space of a contextual
encoder (Mathur et al., 2019)."""

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.errors import InputError
from mtmetrics.matching.greedy import bertr
from mtmetrics.matching.plan import Alignment, Cells, greedy_plan, pieces
from mtmetrics.matching.remapping import Remapping
from mtmetrics.models.packed import PackedTokens
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import any_truncated, encoded_columns
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import encoder_table, load_remapping, target_language
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import loading_option, option, worker_count
from mtmetrics.scorers.side import Side
from mtmetrics.scorers.signature import map_name, model_name
from mtmetrics.scorers.words import WordScorer


class BERTR(WordScorer):
    """The mean over the word pieces of the reference of the highest cosine with a piece of the
    translation (Eq. 1 and 2).

    A score is at most 1 and hardly ever below 0, which is the score of a segment with a blank side.
    Against the source, which the paper leaves to future work, the encoder has to be a multilingual
    one.

    Args:
        encoder: the encoder, opened at the layer to use.
        remapping: linear map of the source side; only against the source.
        **options: of `BERTR.Settings`; and `against`, compare with the ``"reference"`` or with the
            ``"source"``.

    Raises:
        InputError: an unknown or impossible setting.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of BERTR."""

        encoder: str | None = loading_option(settings.ENCODER, usage="MODEL")
        layer: int | None = loading_option(settings.LAYER)
        map: str | None = loading_option(settings.MAP)
        maps: str | None = loading_option(settings.MAPS, usage="PATH|NAME")
        special_tokens: bool = option(
            False, "count special tokens as word pieces", signed="special"
        )
        workers: int | None = option(None, settings.WORKERS)

    settings: Settings

    metric = "bertr"
    sides = (Side.SOURCE, Side.REFERENCE)
    usual = Side.REFERENCE
    floor = 0.0
    scale = "at most 1"
    alignments_help = (
        "per segment the pieces of `source` (the reference, or the source) and `prediction`, "
        "their cosines (`values`), the `mass` of each match, and their `total`, which is the "
        "score"
    )
    preset_keys: ClassVar = {
        **{name: {"model", "revision", "layer"} for name in ("encoder", "encoders.*")},
        "maps": {"artifact", "kind", "revision", "fingerprint"},
    }

    def __init__(
        self,
        encoder: TokenEncoder,
        remapping: Remapping | None = None,
        *,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(settings=settings, **options)
        self.encoder, self.encoder_layers, self.dtype = encoder, encoder.depth, encoder.dtype
        self.set_side(self.settings.against or Side.REFERENCE)
        if remapping is not None and self.side is Side.REFERENCE:
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
        self.workers = worker_count(self.settings.workers)

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """Against the source it needs a multilingual encoder: that of ``[encoder]``, whatever the
        target language."""
        side = cls.checked_side(preset, settings.against)
        target = "" if side is Side.SOURCE else target_language(settings.lang_pair)
        table = encoder_table(preset, settings.encoder, settings.layer, target)
        encoder = models.encoder(**table)
        remapping = None
        if side is Side.SOURCE or settings.map not in (None, "none"):
            remapping = load_remapping(
                preset,
                models,
                encoder,
                settings.lang_pair,
                kind=settings.map,
                artifact=settings.maps,
            )
        return cls(encoder, remapping, settings=dataclasses.replace(settings, against=side))

    def signature_fields(self) -> dict[str, object]:
        return {
            "enc": model_name(self.encoder),
            "layer": self.encoder.layer,
            "map": map_name(self.remapping) if self.side is Side.SOURCE else None,
            **self.settings.signature_fields(),
        }

    def compute(self, batch: Batch) -> list[PartScores]:
        compared, *systems = self._encoded(batch)
        scores = []
        for system in systems:
            recall = bertr(
                system, compared, special_tokens=self.special_tokens, threads=self.workers
            )
            truncated = any_truncated(compared, system)
            scores.append(PartScores(recall, {}, truncated, np.isnan(recall)))
        return scores

    def _encoded(self, batch: Batch) -> list[PackedTokens]:
        """The word pieces of the texts that are compared with, and of each system."""
        compared, *systems = encoded_columns(self.encoder, batch)
        if self.remapping is not None:
            compared = compared.map_vectors(self.remapping.apply)
        return [column.normalized() for column in (compared, *systems)]

    @property
    def cells(self) -> Cells:
        """Cosines."""
        return "cosine"

    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        sides = [
            pieces(self.encoder, tokens, *column, special_tokens=self.special_tokens)
            for tokens, column in zip(self._encoded(batch), batch.columns, strict=True)
        ]
        for (x, x_pieces), (y, y_pieces) in zip(*sides, strict=True):
            if x_pieces.words and y_pieces.words:
                yield greedy_plan(x_pieces, y_pieces, x @ y.T, (0, np.ones(len(x))))
            else:
                yield Alignment.nothing("cosine")
