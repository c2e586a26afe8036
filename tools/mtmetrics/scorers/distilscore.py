"""DistilScore: the cosine of sentence vectors of a distilled multilingual encoder (Reimers and
Gurevych, 2020). The part ``sss`` of SentSim has the same formula."""

import dataclasses
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.matching.pairs import text_cosines
from mtmetrics.models.packed import Encoder
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.base import Scorer, any_truncated, encode_columns
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import ENCODER_KEYS, encoder_table
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import LAYER_HELP, loading_option
from mtmetrics.scorers.settings import Settings as BaseSettings
from mtmetrics.scorers.side import Side
from mtmetrics.scorers.signature import model_name


class DistilScore(Scorer):
    """The cosine of the sentence vectors of a translation and its source or reference, from -1 to
    1.

    A segment with a blank side gets -1.

    Args:
        encoder: an encoder of one vector per text.
        settings: all options as one object, which replaces `options`.
        **options: `against`, the side to compare with: ``"source"`` (the default) or
            ``"reference"``.

    Raises:
        InputError: an unknown setting.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(BaseSettings):
        """The options of DistilScore."""

        encoder: str | None = loading_option(
            (
                "another encoder: a sentence-transformers model, an encoder whose token vectors are "
                "averaged, or a Parquet file with the columns text and vector"
            ),
            usage="MODEL",
        )
        layer: int | None = loading_option(LAYER_HELP)

    settings: Settings

    metric = "distilscore"
    sides = (Side.SOURCE, Side.REFERENCE)
    usual = Side.SOURCE
    floor = -1.0
    scale = "from -1 to 1"
    preset_keys: ClassVar = {"encoder": ENCODER_KEYS}

    def __init__(
        self, encoder: Encoder, *, settings: Settings | None = None, **options: Any
    ) -> None:
        super().__init__(settings=settings, **options)
        self.encoder, self.encoder_depth, self.dtype = encoder, encoder.depth, encoder.dtype
        self.set_side(self.settings.against or Side.SOURCE)

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        side = cls.choose_allowed_side(preset, settings.against)
        table = encoder_table(preset, settings.encoder, settings.layer)
        encoder = models.sentence_encoder(**table)
        return cls(encoder, settings=dataclasses.replace(settings, against=side))

    def signature_fields(self) -> dict[str, object]:
        return {
            "enc": model_name(self.encoder),
            "layer": self.encoder.layer,
            **self.settings.signature_fields(),
        }

    def compute(self, batch: Batch) -> list[PartScores]:
        compared, *systems = encode_columns(self.encoder, batch)
        scores = []
        for system in systems:
            similarity = text_cosines(compared, system)
            truncated = any_truncated(compared, system)
            scores.append(PartScores(similarity, {}, truncated, np.isnan(similarity)))
        return scores
