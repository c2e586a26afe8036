"""DistilScore: the cosine of sentence vectors of a distilled multilingual encoder (Reimers and Gurevych, 2020; relative
of SentSim)."""

from typing import Literal

import numpy as np

from mtmetrics.inputs import choice
from mtmetrics.matching.pairs import cosines
from mtmetrics.models.packed import Encoder
from mtmetrics.scorers.base import ChunkScores, Scorer
from mtmetrics.scorers.naming import AGAINST, dtype_name, encoder_name
from mtmetrics.signature import signature


class DistilScore(Scorer):
    """The cosine of the sentence vectors of a translation and its source or reference, from -1 to 1.

    A segment with a blank side gets -1.

    Args:
        encoder: an encoder of one vector per text.
        against: compare with the ``"source"`` or with the ``"reference"``.
        lang_pair: recorded in the signature.

    Raises:
        InputError: an unknown setting.
    """

    def __init__(
        self, encoder: Encoder, *, against: Literal["source", "reference"] = "source", lang_pair: str | None = None
    ) -> None:
        self.encoder = encoder
        self.against = choice("against", against, tuple(AGAINST))
        self.compares = AGAINST[against]
        self.lang_pair = lang_pair

    @property
    def depth(self) -> int | None:
        return self.encoder.depth

    @property
    def signature(self) -> str:
        return signature(
            "distilscore",
            {
                "lp": self.lang_pair,
                "against": self.against,
                "enc": encoder_name(self.encoder),
                "layer": self.encoder.layer,
                "dtype": dtype_name(self.encoder.dtype),
            },
        )

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        # One call for all texts, so that none is encoded twice.
        packed = self.encoder.encode([text for column in (others, *systems) for text in column])
        rows = packed.index.reshape(-1, len(others))
        results = []
        for number in range(1, len(rows)):
            similarity = cosines(packed.vectors[rows[0]], packed.vectors[rows[number]])
            truncated = packed.truncated[rows[0]] | packed.truncated[rows[number]]
            results.append(ChunkScores(similarity, {}, truncated, np.isnan(similarity)))
        return results

    def _floor(self) -> tuple[float, dict[str, float]]:
        return -1.0, {}
