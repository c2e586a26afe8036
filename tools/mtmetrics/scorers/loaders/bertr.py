"""BERTR from a preset."""

from typing import Any

from mtmetrics.artifacts.presets import load_preset
from mtmetrics.scorers.bertr import BERTR
from mtmetrics.scorers.loaders.common import compared_with, encoder_table, languages, preset_map
from mtmetrics.scorers.pool import ModelPool

_ENCODER = {"model", "revision", "layer"}
_TABLES: dict[str, set[str]] = {
    "encoder": _ENCODER,
    "encoders.*": _ENCODER,
    "score": {"against"},
    "maps": {"artifact", "kind"},
}


def load_bertr(
    preset: str = "paper",
    lang_pair: str | None = None,
    pool: ModelPool | None = None,
    *,
    against: Any = None,
    encoder: str | None = None,
    layer: int | None = None,
    map: str | None = None,
    maps: str | None = None,
    special_tokens: bool = False,
    threads: int | None = None,
) -> BERTR:
    """BERTR as a preset describes it.

    Args:
        preset: name of a preset, or a folder with a preset.toml.
        lang_pair: such as ``"de-en"``; needed where the preset chooses the encoder by language, and for maps.
        pool: loaded models to share.
        against: compare with the ``"reference"`` (by default) or with the ``"source"``, which needs a multilingual
            encoder.
        encoder: another encoder than the preset's.
        layer: hidden state of the encoder; the last by default.
        map: against the source, ``"none"``, ``"clp"``, ``"umd"``, ``"clp+umd"`` or ``"umd+clp"``.
        maps: a map file, a folder of maps, or the name of a map artifact.
        special_tokens: count special tokens as word pieces.
        threads: threads that share the pairs.

    Raises:
        InputError: an unknown preset, pair or option.
        ArtifactError: something that the preset names cannot be loaded.
    """
    pool = pool or ModelPool()
    bundle = load_preset("bertr", preset, local_files_only=pool.local_files_only)
    bundle.refuse_unknown(_TABLES)
    against = compared_with(bundle, against, usual="reference")
    pair = languages(bundle, lang_pair)
    # Against the source the multilingual encoder is needed, whatever the target language.
    table = encoder_table(bundle, encoder, "" if against == "source" else pair and pair[1])
    chosen = table.get("layer") if layer is None else layer
    model = pool.encoder(table["model"], layer=chosen, revision=table.get("revision"))
    remapping = None
    if against == "source" or map not in (None, "none"):
        remapping = preset_map(bundle, pool, model, lang_pair, kind=map, maps=maps)
    return BERTR(
        model, against=against, remapping=remapping, special_tokens=special_tokens, lang_pair=lang_pair, threads=threads
    )
