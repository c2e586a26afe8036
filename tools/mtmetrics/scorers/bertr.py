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
from mtmetrics.scorers.base import any_truncated, encode_columns
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import (
    ENCODER_KEYS,
    MAP_KEYS,
    encoder_table,
    load_remapping,
    target_language,
)
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import (
    ENCODER_HELP,
    LAYER_HELP,
    MAP_HELP,
    MAPS_HELP,
    WORKERS_HELP,
    loading_option,
    option,
    worker_count,
)
from mtmetrics.scorers.settings import Settings as BaseSettings
from mtmetrics.scorers.side import Side
from mtmetrics.scorers.signature import map_name, model_name
from mtmetrics.scorers.words import PIECES_HELP, WordScorer


class BERTR(WordScorer):
    """The mean over the word pieces of the reference of the highest cosine with a piece of the
    translation (Eq. 1 and 2).

    Scores are at most 1 and rarely negative. A segment with a blank side scores 0. A comparison with
    the source, which the paper leaves to future work, needs a multilingual encoder.

    Args:
        encoder: the encoder, loaded with the layer to use.
        remapping: linear map for the vectors of the sources; only for a comparison with the source.
        settings: all options as one object, which replaces `options`.
        **options: fields of `BERTR.Settings`, except for those that `from_preset` loads (`encoder`,
            `layer`, `map` and `maps`); and `against`, the side to compare with: ``"reference"`` (the
            default) or ``"source"``.

    Raises:
        InputError: a setting is unknown or impossible; or the map is for vectors of another width,
            or comes with a comparison with references.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(BaseSettings):
        """The options of BERTR."""

        encoder: str | None = loading_option(ENCODER_HELP, usage="MODEL")
        layer: int | None = loading_option(LAYER_HELP)
        map: str | None = loading_option(MAP_HELP)
        maps: str | None = loading_option(MAPS_HELP, usage="PATH|NAME")
        special_tokens: bool = option(
            False, "count special tokens such as [CLS] as word pieces", signed="special"
        )
        workers: int | None = option(None, WORKERS_HELP)

    settings: Settings

    metric = "bertr"
    sides = (Side.SOURCE, Side.REFERENCE)
    usual = Side.REFERENCE
    floor = 0.0
    scale = "at most 1"
    alignments_help = (
        f"{PIECES_HELP}. `values`: cosines; `mass`: how much each match counts, 0 where "
        "two pieces are not matched; `total`: the sum of `mass` times `values`, which is the score"
    )
    preset_keys: ClassVar = {
        "encoder": ENCODER_KEYS,
        "encoders.*": ENCODER_KEYS,
        "maps": MAP_KEYS,
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
        self.encoder = encoder
        self.encoder_depth = encoder.depth
        self.dtype = encoder.dtype
        self.set_side(self.settings.against or Side.REFERENCE)
        self.remapping = remapping
        if remapping is not None:
            _refuse_map(self.side)
            # Raises an error if the map is made for vectors of another width.
            remapping.apply(np.zeros((0, encoder.dim), dtype=np.float32))
        self.special_tokens = self.settings.special_tokens
        self.workers = worker_count(self.settings.workers)

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """Loads the encoder and, for a comparison with the source, the map.

        References may be read by an encoder for their language, ``[encoders.LANGUAGE]``. Sources
        need a multilingual encoder, so they are always read by the one of ``[encoder]``."""
        side = cls.choose_allowed_side(preset, settings.against)
        if settings.map not in (None, "none"):
            _refuse_map(side)
        table = encoder_table(
            preset,
            settings.encoder,
            settings.layer,
            use_target_encoder=side is Side.REFERENCE,
            target=target_language(settings.lang_pair),
        )
        encoder = models.encoder(**table)
        remapping = None
        if side is Side.SOURCE:
            remapping = load_remapping(
                preset,
                models,
                encoder,
                settings.lang_pair,
                map_kind=settings.map,
                map_location=settings.maps,
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
        """Encodes the sources or references, then the translations of each system: normalised
        vectors of word pieces, those of sources mapped."""
        compared, *systems = encode_columns(self.encoder, batch)
        if self.remapping is not None:
            compared = compared.map_vectors(self.remapping.apply)
        return [column.normalized() for column in (compared, *systems)]

    @property
    def cells(self) -> Cells:
        """Meaning of the values of alignments: cosines."""
        return "cosine"

    def align_batch(self, batch: Batch) -> Iterator[Alignment]:
        sides = [
            pieces(self.encoder, tokens, *column, special_tokens=self.special_tokens)
            for tokens, column in zip(self._encoded(batch), batch.texts_and_languages, strict=True)
        ]
        for compared, prediction in zip(*sides, strict=True):
            compared_vectors, compared_pieces = compared
            prediction_vectors, prediction_pieces = prediction
            if not compared_pieces.words or not prediction_pieces.words:
                yield Alignment.nothing("cosine")
                continue
            cosines = compared_vectors @ prediction_vectors.T
            # Recall: every piece of the reference or source (side 0) looks for its best match.
            recall = (0, np.ones(len(compared_vectors)))
            yield greedy_plan(compared_pieces, prediction_pieces, cosines, recall)


def _refuse_map(side: Side) -> None:
    """Raises an `InputError` if translations are compared with references, which need no map."""
    if side is Side.REFERENCE:
        raise InputError(
            "map: maps move the vectors of sources, so they need against='source'; leave it out",
            option="map",
            mentions=["against='source'"],
        )
