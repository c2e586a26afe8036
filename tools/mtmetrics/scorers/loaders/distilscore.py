"""DistilScore from a preset."""

from typing import Any

from mtmetrics.artifacts.presets import load_preset
from mtmetrics.scorers.distilscore import DistilScore
from mtmetrics.scorers.loaders.common import compared_with, encoder_table, languages
from mtmetrics.scorers.pool import ModelPool

_TABLES: dict[str, set[str]] = {"encoder": {"model", "revision", "layer"}, "score": {"against"}}


def load_distilscore(
    preset: str = "paper",
    lang_pair: str | None = None,
    pool: ModelPool | None = None,
    *,
    against: Any = None,
    encoder: str | None = None,
    layer: int | None = None,
) -> DistilScore:
    """DistilScore as a preset describes it.

    Args:
        preset: name of a preset, or a folder with a preset.toml.
        lang_pair: such as ``"de-en"``; recorded in the signature.
        pool: loaded models to share.
        against: compare with the ``"source"`` (by default, unless the preset knows references only) or with the
            ``"reference"``.
        encoder: a sentence-transformers model, or an encoder whose token vectors are averaged, instead of the preset's.
        layer: hidden state of an encoder that is averaged.

    Raises:
        InputError: an unknown preset, pair or option.
        ArtifactError: something that the preset names cannot be loaded.
    """
    pool = pool or ModelPool()
    bundle = load_preset("distilscore", preset, local_files_only=pool.local_files_only)
    bundle.refuse_unknown(_TABLES)
    languages(bundle, lang_pair)
    against = compared_with(bundle, against, usual="source")
    table = encoder_table(bundle, encoder)
    chosen = table.get("layer") if layer is None else layer
    model = pool.sentence_encoder(table["model"], layer=chosen, revision=table.get("revision"))
    return DistilScore(model, against=against, lang_pair=lang_pair)
