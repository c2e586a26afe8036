"""BERTR: how much of the reference is covered by the translation, in the space of a contextual encoder (Mathur et al.,
2019)."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np

from mtmetrics.checks import choice
from mtmetrics.errors import InputError
from mtmetrics.matching.greedy import bertr
from mtmetrics.matching.plan import Alignment, Cells, greedy_plan, pieces
from mtmetrics.matching.remapping import Remapping
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.base import ChunkScores, Scorer, cut, encoded_together, worker_count
from mtmetrics.scorers.preset_tables import (
    AGAINST,
    compared_with,
    dtype_name,
    encoder_table,
    languages,
    map_name,
    model_name,
    preset_map,
    signature,
)


class BERTR(Scorer):
    """The mean over the word pieces of the reference of the highest cosine with a piece of the translation (Eq. 1 and
    2).

    A score is at most 1 and hardly ever below 0, which is the score of a segment with a blank side. Against the source,
    which the paper leaves to future work, the encoder has to be a multilingual one.

    Args:
        encoder: the encoder, opened at the layer to use.
        remapping: linear map of the source side; only against the source.
        against: compare with the ``"reference"`` or with the ``"source"``.
        special_tokens: count special tokens as word pieces.
        lang_pair: recorded in the signature; an encoder that reads languages differently does so by it, and references
            without it as English.
        workers: threads that share the pairs; None for one per core, at most 4.

    Raises:
        InputError: an unknown or impossible setting.
    """

    metric = "bertr"
    tables: ClassVar = {
        **{name: {"model", "revision", "layer"} for name in ("encoder", "encoders.*")},
        "score": {"against"},
        "maps": {"artifact", "kind"},
    }

    def __init__(
        self,
        encoder: TokenEncoder,
        remapping: Remapping | None = None,
        *,
        against: Literal["reference", "source"] = "reference",
        special_tokens: bool = False,
        lang_pair: str | None = None,
        workers: int | None = None,
    ) -> None:
        self.encoder, self.depth = encoder, encoder.depth
        self.against = choice("against", against, tuple(AGAINST))
        self.compares = AGAINST[against]
        if remapping is not None and against == "reference":
            raise InputError("map: maps bring a source language closer, so they need against='source'; leave it out")
        self.remapping = remapping
        if remapping is not None:
            remapping.apply(np.zeros((0, encoder.dim), dtype=np.float32))
        self.special_tokens = special_tokens
        self.lang_pair = lang_pair
        self.workers = worker_count(workers)

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
        map: str | None = None,
        maps: str | None = None,
        **settings: Any,
    ) -> "BERTR":
        """BERTR as a preset describes it.

        Args:
            preset, pool: see `Scorer`.
            lang_pair: needed where the preset chooses the encoder by language, and for maps.
            against: compare with the ``"reference"`` (by default) or with the ``"source"``, which needs a multilingual
                encoder.
            encoder: another encoder than the preset's.
            layer: hidden state of the encoder; the last by default.
            map: against the source, ``"none"``, ``"clp"``, ``"umd"``, ``"clp+umd"`` or ``"umd+clp"``.
            maps: a map file, a folder of maps, or the name of a map artifact.
            **settings: of the class.
        """
        bundle, pool = cls.open_preset(preset, pool)
        compared: Any = compared_with(bundle, against, usual="reference")
        pair = languages(bundle, lang_pair)
        # Against the source the multilingual encoder is needed, whatever the target language.
        table = encoder_table(bundle, encoder, "" if compared == "source" else pair and pair[1])
        chosen = table.get("layer") if layer is None else layer
        model = pool.encoder(table["model"], layer=chosen, revision=table.get("revision"))
        remapping = None
        if compared == "source" or map not in (None, "none"):
            remapping = preset_map(bundle, pool, model, lang_pair, kind=map, maps=maps)
        return cls(model, remapping, against=compared, lang_pair=lang_pair, **settings)

    @property
    def signature(self) -> str:
        fields: dict[str, Any] = {"lp": self.lang_pair, "against": self.against, "enc": model_name(self.encoder)}
        fields |= {"layer": self.encoder.layer, "map": map_name(self.remapping) if self.against == "source" else None}
        fields |= {"special": "yes" if self.special_tokens else None, "dtype": dtype_name(self.encoder.dtype)}
        return signature(self.metric, fields)

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        first, *columns = encoded_together(self.encoder, [others, *systems], self.column_languages)
        if self.remapping is not None:
            first = first.with_vectors(self.remapping.apply)
        first = first.normalized()
        results = []
        for packed in columns:
            recall = bertr(packed.normalized(), first, special_tokens=self.special_tokens, threads=self.workers)
            results.append(ChunkScores(recall, {}, cut(first, packed), np.isnan(recall)))
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
        sides = (pieces(self.encoder, *column, special_tokens=self.special_tokens) for column in columns)
        for (x, x_pieces), (y, y_pieces) in zip(*sides, strict=True):
            if x_pieces.words and y_pieces.words:
                yield greedy_plan(x_pieces, y_pieces, x @ y.T, (0, np.ones(len(x))))
            else:
                yield Alignment.nothing("cosine")

    def _floor(self) -> tuple[float, dict[str, float]]:
        return 0.0, {}
