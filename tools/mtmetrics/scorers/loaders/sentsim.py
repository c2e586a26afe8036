"""SentSim from a preset."""

from typing import Any

from mtmetrics.artifacts.models import model_folder, model_size
from mtmetrics.artifacts.presets import Preset, load_preset
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.inputs import choice
from mtmetrics.models.packed import Encoder
from mtmetrics.models.sentence_encoder import is_mean_pooled
from mtmetrics.scorers.loaders.common import languages
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.scorers.sentsim import PARTS, SETTINGS, VARIANTS, SentSim, Setting

_MODELS = {"words", "words_revision", "layer", "sentences", "sentences_revision"}
_TABLES: dict[str, set[str]] = {
    **dict.fromkeys(SETTINGS, _MODELS),
    "score": {"variant", "normalize", "normalize_vectors"},
    "bounds.*": set(PARTS),
}


def load_sentsim(
    preset: str = "paper",
    lang_pair: str | None = None,
    pool: ModelPool | None = None,
    *,
    setting: Any = None,
    variant: str | None = None,
    parts: str | None = None,
    layer: int | None = None,
    normalize: Any = None,
    normalize_vectors: bool | None = None,
    threads: int | None = None,
) -> SentSim:
    """SentSim as a preset describes it; each option that is not None overrides the preset.

    Args:
        preset: name of a preset, or a folder with a preset.toml.
        lang_pair: such as ``"de-en"``; recorded in the signature.
        pool: loaded models to share.
        setting: ``"src-mt"`` compares with the source, ``"mt-ref"`` with a reference; not needed where a preset knows
            one only.
        variant: ``"bertscore"`` or ``"wmd"``, what the sentence similarity is combined with.
        parts: instead of `variant`, names among sss, bertscore, wmd and smd, joined by ``+``.
        layer: hidden state of the encoder of tokens.
        normalize: ``"batch"`` (scores depend on the neighbours) or ``"fixed"`` (bounds from the preset).
        normalize_vectors: give token vectors length 1 before Word and Sentence Mover's Distance.
        threads: solver threads.

    Raises:
        InputError: an unknown preset, pair or option.
        ArtifactError: something that the preset names cannot be loaded.
    """
    pool = pool or ModelPool()
    bundle = load_preset("sentsim", preset, local_files_only=pool.local_files_only)
    bundle.refuse_unknown(_TABLES)
    languages(bundle, lang_pair)
    chosen = _setting(bundle, setting)
    table, score = bundle.settings[chosen], bundle.settings.get("score", {})
    for key in ("words", "sentences"):
        if key not in table:
            raise ArtifactError(f"preset {bundle.name}: names no model {key!r} in its [{chosen}] table")
    if parts is None:
        parts = VARIANTS[choice("variant", variant or score.get("variant", "bertscore"), list(VARIANTS))]
    elif variant is not None:
        raise InputError(f"variant {variant!r} and parts {parts!r} both say what is combined; pass one of them")
    normalize = normalize or score.get("normalize", "batch")
    usual = {"layer": table.get("layer"), "normalize_vectors": score.get("normalize_vectors", False)}
    asked = {"layer": layer, "normalize_vectors": normalize_vectors}
    for name, value in asked.items():
        if normalize == "fixed" and value not in (None, usual[name]):
            raise InputError(
                f"{name} {value!r}: the bounds of preset {bundle.name} belong to {name} {usual[name]}; pass normalize='batch' too"
            )
    layer, normalize_vectors = (usual[name] if value is None else value for name, value in asked.items())
    words, sentences = _encoders(bundle, pool, table, layer)
    return SentSim(
        words,
        sentences,
        parts=parts,
        setting=chosen,
        normalize=normalize,
        bounds=bundle.settings.get("bounds", {}).get(chosen),
        normalize_vectors=normalize_vectors,
        lang_pair=lang_pair,
        threads=threads,
    )


def _encoders(bundle: Preset, pool: ModelPool, table: dict[str, Any], layer: int | None) -> tuple[Any, Encoder]:
    """The encoders of words and of sentences, as one where the model is the same."""
    names = [(bundle.path(table[key]), table.get(f"{key}_revision")) for key in ("words", "sentences")]
    (words, revision), (sentences, sentences_revision) = names
    if names[0] == names[1] and type(layer) is int and layer > 0:
        folder = model_folder(words, revision=revision, local_files_only=pool.local_files_only)
        if is_mean_pooled(folder) and layer <= model_size(folder)[1]:
            return pool.words_and_sentences(words, layer=layer, revision=revision)
    return pool.encoder(words, layer=layer, revision=revision), pool.sentence_encoder(
        sentences, revision=sentences_revision
    )


def _setting(bundle: Preset, setting: Any) -> Setting:
    known = [name for name in SETTINGS if name in bundle.settings]
    if not known:
        raise ArtifactError(f"preset {bundle.name}: has neither a [src-mt] nor an [mt-ref] table")
    if setting is None and len(known) > 1:
        raise InputError(
            "setting is missing: pass setting='src-mt' (compare with sources) or setting='mt-ref' (with references)"
        )
    chosen = known[0] if setting is None else choice("setting", setting, tuple(SETTINGS))
    if chosen not in known:
        raise InputError(f"setting {chosen!r}: preset {bundle.name} has models for {known[0]!r} only")
    return chosen
