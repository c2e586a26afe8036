"""What a production of UScore starts from, and by what a stage knows it."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from mtmetrics.artifacts.models import model_fingerprint, model_folder
from mtmetrics.artifacts.presets import load_preset
from mtmetrics.errors import ArtifactError
from mtmetrics.inputs import choice, language_pair
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.uscore.settings import UScoreConfig

OPTIONAL = ("sentences", "translation")


@dataclass(frozen=True)
class Start:
    """The models of a preset that a production starts from.

    Attributes:
        preset: its name.
        encoder: table of the word level: ``model`` and, where they are not the usual ones, ``revision`` and ``layer``.
        aligner_layer: hidden state that aligns words; None is that of `encoder`.
        language_model: table of the language model of the target language; empty where there is none.
        sentences: model that the sentence encoder starts from, or None.
        translation: model that the translation model starts from; ``"small"`` makes one; or None.
    """

    preset: str
    encoder: dict[str, Any]
    aligner_layer: int | None
    language_model: dict[str, Any]
    sentences: str | None
    translation: str | None

    def word_encoder(self, pool: ModelPool) -> TokenEncoder:
        """The encoder of the word level."""
        return pool.encoder(
            self.encoder["model"], layer=self.encoder.get("layer"), revision=self.encoder.get("revision")
        )

    def aligner(self, pool: ModelPool) -> TokenEncoder:
        """The encoder that aligns words."""
        layer = self.encoder.get("layer") if self.aligner_layer is None else self.aligner_layer
        return pool.encoder(self.encoder["model"], layer=layer, revision=self.encoder.get("revision"))


def read_start(preset: str, lang_pair: str, without: tuple[str, ...], translation: str | None = None) -> Start:
    """The models that a preset names in ``[encoder]``, ``[language_models.LANGUAGE]`` and ``[start]``.

    Args:
        preset: name of a preset of uscore, or a folder with one.
        lang_pair: such as ``"de-en"``.
        without: what is not made, of `OPTIONAL`.
        translation: translation model to start from instead of the preset's, or ``"small"``.

    Raises:
        InputError: no such preset or language pair, or an unknown name in `without`.
        ArtifactError: the preset names no model for something that is to be made.
    """
    for name in without:
        choice("--without", name, OPTIONAL)
    bundle = load_preset("uscore", preset)
    start = bundle.settings.get("start", {})
    encoder = bundle.settings.get("encoder", {})
    if "model" not in encoder:
        raise ArtifactError(f"preset {preset}: names no model in its [encoder] table")
    models = {"sentences": start.get("sentences"), "translation": translation or start.get("translation")}
    for name in OPTIONAL:
        if name not in without and models[name] is None:
            raise ArtifactError(
                f"preset {preset}: [start] names no model for {name!r}; choose another preset, or do --without {name}"
            )
    models = {name: None if name in without or model is None else bundle.path(model) for name, model in models.items()}
    lm = bundle.settings.get("language_models", {}).get(language_pair(lang_pair)[1], {})
    tables = [{**table, "model": bundle.path(table["model"])} if "model" in table else {} for table in (encoder, lm)]
    return Start(str(preset), tables[0], start.get("aligner_layer"), tables[1], **models)


def known_by(model: str | None, revision: str | None = None) -> str | None:
    """The fingerprint of a model's files, by which a stage notices that it is another one; None for none."""
    return None if model is None else model_fingerprint(model_folder(model, revision=revision))


def chosen(config: UScoreConfig, *prefixes: str) -> dict[str, Any]:
    """The settings whose names begin so, as the key of a stage holds them."""
    return {name: value for name, value in dataclasses.asdict(config).items() if name.startswith(prefixes)}
