"""DistilScore: the cosine of sentence vectors of a distilled multilingual encoder (Reimers and Gurevych, 2020; relative
of SentSim)."""

import dataclasses
from typing import Any, ClassVar, Literal

import numpy as np

from mtmetrics.checks import choice
from mtmetrics.matching.pairs import text_cosines
from mtmetrics.models.packed import Encoder
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import Scorer, any_truncated, encoded_together
from mtmetrics.scorers.metric import COLUMNS
from mtmetrics.scorers.preset_tables import encoder_table, languages, model_name
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.results import ChunkScores
from mtmetrics.scorers.settings import option


class DistilScore(Scorer):
    """The cosine of the sentence vectors of a translation and its source or reference, from -1 to 1.

    A segment with a blank side gets -1.

    Args:
        encoder: an encoder of one vector per text.
        against: compare with the ``"source"`` or with the ``"reference"``.
        lang_pair: recorded in the signature; an encoder that reads languages differently does so by it, and references
            without it as English.

    Raises:
        InputError: an unknown setting.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of DistilScore."""

        encoder: str | None = option(
            None,
            "a sentence-transformers model, an encoder whose token vectors are averaged, or a Parquet file of vectors",
            usage="MODEL",
            signed="enc",
            opens=True,
        )
        layer: int | None = option(None, settings.LAYER, signed="layer", opens=True)

    metric = "distilscore"
    scale = "from -1 to 1"
    tables: ClassVar = {"encoder": {"model", "revision", "layer"}}

    def __init__(
        self, encoder: Encoder, *, against: Literal["source", "reference"] = "source", lang_pair: str | None = None
    ) -> None:
        super().__init__(lang_pair)
        self.encoder, self.depth, self.dtype = encoder, encoder.depth, encoder.dtype
        self.against = choice("against", against, find_metric(self.metric).sides)
        self.compares = COLUMNS[against]

    @classmethod
    def from_preset(
        cls, preset: str | None = None, *, lang_pair: str | None = None, pool: ModelPool | None = None, **options: Any
    ) -> "DistilScore":
        """See `Scorer`; without `against`, DistilScore compares with the source, unless the preset knows references
        only."""
        against = options.pop("against", None)
        bundle, pool, chosen = cls.open_preset(preset, pool, options)
        languages(bundle, lang_pair)
        compared: Any = cls.side(bundle, {"against": against})
        table = encoder_table(bundle, chosen.encoder)
        layer = table.get("layer") if chosen.layer is None else chosen.layer
        model = pool.sentence_encoder(table["model"], layer=layer, revision=table.get("revision"))
        return cls(model, against=compared, lang_pair=lang_pair)

    def pinned(self, option: str) -> Any:
        return {"encoder": model_name(self.encoder), "layer": self.encoder.layer}[option]

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        x, *columns = encoded_together(self.encoder, [others, *systems], self.column_languages)
        results = []
        for y in columns:
            similarity = text_cosines(x, y)
            results.append(ChunkScores(similarity, {}, any_truncated(x, y), np.isnan(similarity)))
        return results

    def _floor(self) -> tuple[float, dict[str, float]]:
        return -1.0, {}
