"""The state that the stages of a production of UScore share: the models to start from (`Start`); and
settings, sentences, maps and models (`Production`)."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.models import model_fingerprint
from mtmetrics.io.lines import iter_lines
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import load_map
from mtmetrics.mining.clean_text import draw
from mtmetrics.mining.kept_pairs import MinedPairs
from mtmetrics.mining.sides import Side, Wrap, encode_side
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.training.run import pinned
from mtmetrics.uscore import Request, UScoreConfig
from mtmetrics.uscore.stages import Finished, Stages

# The file of a stage that prepared text, and the folder of a stage that trained a model.
SENTENCES, MODEL = "sentences.txt", "model"
# Stands for a new small translation model, in place of a folder.
SMALL = "small"

# A table of a preset that names a model: ``model``, perhaps ``revision``, and settings.
ModelTable = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Start:
    """The models of a preset that a production starts from.

    Attributes:
        preset: its name.
        encoder: the table of the word encoder.
        aligner_layer: the layer that aligns words; None for that of the encoder.
        language_model: the table of the language model; empty for none.
        encoder_folder: the folder of the word encoder.
        sentences: the folder of the sentence encoder to train; None for none.
        adapter_rank: the rank of the adapters that are trained on the sentence encoder; 0 where the
            whole encoder is.
        translation: the folder of the translation model to train, ``"small"`` for a new one; None
            for none.
        score: the settings of ``[score]`` that are about words.
    """

    preset: str
    encoder: ModelTable
    aligner_layer: int | None
    language_model: ModelTable
    encoder_folder: str
    sentences: str | None
    adapter_rank: int
    translation: str | None
    score: dict[str, str]

    @property
    def record(self) -> dict[str, str | None]:
        """The models by name and fingerprint, wherever they lie."""
        return {
            "preset": self.preset,
            "encoder": fingerprint(self.encoder_folder),
            "sentences": _name_and_fingerprint(self.sentences),
            "translation": _name_and_fingerprint(self.translation),
        }


def _name_and_fingerprint(model: str | None) -> str | None:
    """The label and fingerprint of a model in a folder; ``"small"`` and None stay."""
    return model if model is None or model == SMALL else pinned(model, Path(model))


def fingerprint(folder: str | None) -> str | None:
    """The fingerprint of a model's files, by which a stage notices another model; None where there
    is no folder."""
    return None if folder is None else model_fingerprint(Path(folder))


@dataclasses.dataclass(eq=False)
class Production:
    """The state that all stages of a production share.

    Attributes:
        stages: keeps their results.
        request: text, models and settings.
        start: the models to start from.
        pool: loads models.
        threads: of solvers and searches.
        progress: wraps an iteration, with a description.
        texts: the stages that prepared the text of either side.
        maps: the stages that fitted maps, one per round.
        models: the stages that trained sentence encoders, one per round.
    """

    stages: Stages
    request: Request
    start: Start
    pool: ModelPool
    threads: int
    progress: Callable[..., Iterable[object]]
    texts: tuple[Finished, ...] = ()
    maps: Sequence[Finished] = ()
    models: Sequence[Finished] = ()

    @property
    def lang_pair(self) -> str:
        """The language pair of the request."""
        return self.request.lang_pair

    @property
    def config(self) -> UScoreConfig:
        """The settings of the request."""
        return self.request.config

    @property
    def encoder(self) -> TokenEncoder:
        """The encoder of the word level."""
        layer: int | None = self.start.encoder.get("layer")
        return self._token_encoder(layer)

    @property
    def aligner(self) -> TokenEncoder:
        """The encoder that aligns words."""
        layer = self.start.aligner_layer
        return self.encoder if layer is None else self._token_encoder(layer)

    def _token_encoder(self, layer: int | None) -> TokenEncoder:
        return self.pool.encoder(
            self.start.encoder["model"],
            layer=layer,
            revision=self.start.encoder.get("revision"),
        )

    def remapping(self, maps: Sequence[Finished]) -> Remapping | None:
        """The map of the last round; None before the first."""
        if not maps:
            return None
        return load_map(maps[-1].folder, self.lang_pair, self.config.map, self.encoder)

    def sentence_encoder(self, models: Sequence[Finished]) -> str:
        """The sentence encoder of the last round, at first the one that the rounds start from."""
        return str(models[-1].folder / MODEL) if models else str(self.start.sentences)

    def sentences(self, size: int) -> list[list[str]]:
        """At most `size` sentences of either side, drawn at random."""
        return [
            draw(list(iter_lines(text.folder / SENTENCES)), size, self.request.seed)
            for text in self.texts
        ]

    def encoded(self, size: int) -> tuple[Side, ...]:
        """The words of `sentences`, which are encoded once however many stages ask for them."""
        return self._encoded(min(size, max(text.counts["kept"] for text in self.texts)))

    @functools.lru_cache(maxsize=1)  # noqa: B019 (it lives as long as the program)
    def _encoded(self, size: int) -> tuple[Side, ...]:
        # After an interruption, the batches shall be those of an unbroken run.
        self.encoder.clear_cache()
        sides = []
        for texts, language in zip(self.sentences(size), self.request.languages, strict=True):
            side = encode_side(
                texts,
                self.encoder,
                language=language,
                folder=self.stages.work,
                wrap=self.wrap("encoding"),
            )
            sides.append(side)
        return tuple(sides)

    def wrap(self, description: str) -> Wrap:
        """A progress bar over blocks."""
        return functools.partial(self.progress, desc=description, unit=" blocks")

    def settings(self, *prefixes: str) -> dict[str, object]:
        """The settings whose names begin with one of the prefixes, as the key of a stage holds
        them."""
        values = dataclasses.asdict(self.config)
        return {name: value for name, value in values.items() if name.startswith(prefixes)}

    def word_settings(self) -> dict[str, object]:
        """The word encoder and the draw of its sentences, as the key of a stage holds them."""
        return {
            "encoder": fingerprint(self.start.encoder_folder),
            "layer": self.encoder.layer,
            "dtype": self.pool.dtype,
            "seed": self.request.seed,
        }

    def pairs_file(self, folder: Path) -> Path:
        """The file in which a stage keeps its pairs."""
        return folder / f"{self.lang_pair}.jsonl"

    def keep_pairs(self, folder: Path, mined: MinedPairs) -> dict[str, float]:
        """Writes mined pairs into the folder of a stage, and returns its counts."""
        mined.write(self.pairs_file(folder))
        return {
            **mined.counts,
            "best": round(float(mined.scores[0]), 6),
            "worst": round(float(mined.scores[-1]), 6),
        }
