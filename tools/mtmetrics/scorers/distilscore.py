"""DistilScore: the cosine of sentence vectors of a distilled multilingual encoder (Reimers and Gurevych, 2020; relative
of SentSim)."""

from typing import Any, ClassVar, Literal

import numpy as np

from mtmetrics.checks import choice
from mtmetrics.models.packed import Encoder
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.base import ChunkScores, Scorer, cut, encoded_together, text_cosines
from mtmetrics.scorers.preset_tables import (
    AGAINST,
    compared_with,
    dtype_name,
    encoder_table,
    languages,
    model_name,
    signature,
)


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

    metric = "distilscore"
    tables: ClassVar = {"encoder": {"model", "revision", "layer"}, "score": {"against"}}

    def __init__(
        self, encoder: Encoder, *, against: Literal["source", "reference"] = "source", lang_pair: str | None = None
    ) -> None:
        self.encoder, self.depth = encoder, encoder.depth
        self.against = choice("against", against, tuple(AGAINST))
        self.compares = AGAINST[against]
        self.lang_pair = lang_pair

    @classmethod
    def from_preset(
        cls,
        preset: str = "paper",
        *,
        lang_pair: str | None = None,
        pool: ModelPool | None = None,
        against: Any = None,
        encoder: str | None = None,
        layer: int | None = None,
    ) -> "DistilScore":
        """DistilScore as a preset describes it.

        Args:
            preset, lang_pair, pool: see `Scorer`.
            against: compare with the ``"source"`` (by default, unless the preset knows references only) or with the
                ``"reference"``.
            encoder: a sentence-transformers model, or an encoder whose token vectors are averaged, instead of the
                preset's.
            layer: hidden state of an encoder that is averaged.
        """
        bundle, pool = cls.open_preset(preset, pool)
        languages(bundle, lang_pair)
        compared: Any = compared_with(bundle, against, usual="source")
        table = encoder_table(bundle, encoder)
        chosen = table.get("layer") if layer is None else layer
        model = pool.sentence_encoder(table["model"], layer=chosen, revision=table.get("revision"))
        return cls(model, against=compared, lang_pair=lang_pair)

    @property
    def signature(self) -> str:
        fields: dict[str, Any] = {"lp": self.lang_pair, "against": self.against, "enc": model_name(self.encoder)}
        return signature(self.metric, fields | {"layer": self.encoder.layer, "dtype": dtype_name(self.encoder.dtype)})

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        x, *columns = encoded_together(self.encoder, [others, *systems], self.column_languages)
        results = []
        for y in columns:
            similarity = text_cosines(x, y)
            results.append(ChunkScores(similarity, {}, cut(x, y), np.isnan(similarity)))
        return results

    def _floor(self) -> tuple[float, dict[str, float]]:
        return -1.0, {}
