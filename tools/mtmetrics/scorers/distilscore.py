"""DistilScore: the cosine of sentence vectors of a distilled multilingual encoder (Reimers and
Gurevych, 2020; relative of SentSim)."""

import dataclasses
from typing import ClassVar, Self

import numpy as np

from mtmetrics.matching.pairs import text_cosines
from mtmetrics.models.packed import Encoder
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import Scorer, any_truncated, encoded_columns
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import Opened, model_name
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import option
from mtmetrics.scorers.side import Side


class DistilScore(Scorer):
    """The cosine of the sentence vectors of a translation and its source or reference, from -1 to
    1.

    A segment with a blank side gets -1.

    Args:
        encoder: an encoder of one vector per text.
        against: compare with the ``"source"`` or with the ``"reference"``.

    Raises:
        InputError: an unknown setting.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of DistilScore."""

        encoder: str | None = option(
            None,
            (
                "a sentence-transformers model, an encoder whose token vectors are averaged, or a "
                "Parquet file of vectors"
            ),
            usage="MODEL",
            opens=True,
        )
        layer: int | None = option(None, settings.LAYER, opens=True)

    metric = "distilscore"
    floor = -1.0
    scale = "from -1 to 1"
    tables: ClassVar = {"encoder": {"model", "revision", "layer"}}

    def __init__(
        self,
        encoder: Encoder,
        *,
        against: str = Side.SOURCE,
        lang_pair: str | None = None,
    ) -> None:
        super().__init__(lang_pair)
        self.encoder, self.depth, self.dtype = encoder, encoder.depth, encoder.dtype
        self.compare_with(against)

    @classmethod
    def from_opened(cls, opened: Opened) -> Self:
        side = opened.side()
        encoder = opened.pool.sentence_encoder(**opened.encoder_table())
        return cls(encoder, against=side, lang_pair=opened.lang_pair)

    def signature_fields(self) -> dict[str, object]:
        return {
            "enc": model_name(self.encoder),
            "layer": self.encoder.layer,
            **self.settings.signature_fields(),
        }

    def compute(self, batch: Batch) -> list[PartScores]:
        compared, *systems = encoded_columns(self.encoder, batch)
        scores = []
        for system in systems:
            similarity = text_cosines(compared, system)
            truncated = any_truncated(compared, system)
            scores.append(PartScores(similarity, {}, truncated, np.isnan(similarity)))
        return scores
