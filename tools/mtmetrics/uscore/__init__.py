"""Makes a UScore preset for a language pair from two monolingual files (Belouadi and Eger,
2023)."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mtmetrics.checks import choice, language_pair, positive, share
from mtmetrics.errors import InputError
from mtmetrics.training.configs import setting

MAPS = ("clp", "umd")
# Settings whose zero leaves the choice to something else.
_MAY_BE_ZERO = ("beams", "contrastive_learning_rate")


@dataclass(frozen=True)
class UScoreConfig:
    """Settings of a production; the defaults are those of Belouadi and Eger (2023, Sec. 4 and
    Appendix D)."""

    remap_sentences: int = setting(
        40_000, "sentences a side in which pairs for the remapping are mined"
    )
    remap_candidates: int = setting(
        20, "candidates per source whose Word Mover's Distance is compared"
    )
    remap_share: float = setting(0.05, "share of the sources whose pairs are kept")
    remap_rounds: int = setting(1, "rounds of mining and remapping")
    map: str = setting(
        "umd",
        (
            "the map that mines in the next round and that the metric uses: umd or clp (with "
            "--parallel always clp)"
        ),
    )
    train_sentences: int = setting(
        4_000_000, "sentences a side in which pairs for the trainings are mined"
    )
    contrastive_rounds: int = setting(
        6, "rounds of mining and training of the sentence encoder, a fresh one in each"
    )
    contrastive_neighbours: int = setting(5, "neighbours of the ratio margin")
    contrastive_pairs: int = setting(
        100_000, "mined pairs that the sentence encoder learns from in a round"
    )
    contrastive_batch: int = setting(256, "pairs per step of the sentence encoder")
    contrastive_learning_rate: float = setting(
        0.0,
        (
            "peak learning rate of the sentence encoder; 0 for 5e-5, or for 1e-3 where the preset "
            "has adapters of it trained"
        ),
    )
    denoising_steps: int = setting(
        2000,
        "training steps of the small translation model before it sees pairs, where one is made",
    )
    translation_candidates: int = setting(
        1, "candidates per source for the pairs that the translation model learns from"
    )
    translation_share: float = setting(0.05, "share of the sources whose pairs are kept for that")
    translation_rounds: int = setting(
        1,
        (
            "trainings of the translation model; the second learns from the translations of the "
            "first, too"
        ),
    )
    translation_epochs: int = setting(3, "passes over the data of the translation model")
    translation_batch: int = setting(4, "pairs per step of the translation model")
    translation_learning_rate: float = setting(5e-5, "peak learning rate of the translation model")
    beams: int = setting(
        0,
        (
            "hypotheses of the beam search of translations; 0 for as many as the translation "
            "model's configuration says"
        ),
    )


@dataclass(frozen=True)
class Request:
    """The text, the models and the settings of a production.

    Attributes:
        lang_pair: such as ``"de-en"``.
        source_text: text of the source language, one sentence per line.
        target_text: text of the target language, alike.
        preset: the preset of uscore whose models the production starts from.
        parallel: sentences and their translations to learn from at the end (Appendix C of the
            paper).
        held_back: others, of which 1,000 measure precision.
        judged: files of judged segments, with which the agreement is measured.
        without: models that are not made: ``"sentences"``, ``"translation"``.
        translation: the translation model to start from, instead of the preset's; ``"small"`` for a
            new one.
        lm: the language model, instead of the preset's; ``"none"`` for none.
        identify: leave out sentences that seem to be of another language.
        licence: of the weights, as the Hub calls it, for the card; None leaves it to be filled in.
        seed: of everything random.
        config: the settings.
    """

    lang_pair: str
    source_text: str | Path
    target_text: str | Path
    preset: str
    parallel: str | Path | None = None
    held_back: str | Path | None = None
    judged: Sequence[str | Path] = ()
    without: Sequence[str] = ()
    translation: str | None = None
    lm: str | None = None
    identify: bool = True
    licence: str | None = None
    seed: int = 1
    config: UScoreConfig = UScoreConfig()

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target."""
        return language_pair(self.lang_pair)

    @property
    def learnt_from(self) -> tuple[str, ...]:
        """The names of the files that the models learn from."""
        paths = (self.source_text, self.target_text, self.parallel)
        return tuple(Path(path).name for path in paths if path)

    def check(self) -> None:
        """Raises an InputError where languages, settings or files cannot be used."""
        source, target = self.languages
        if source == target:
            raise InputError(f"language pair {self.lang_pair}: two different languages are needed")
        choice("map", self.config.map, MAPS)
        for name, value in dataclasses.asdict(self.config).items():
            if name in _MAY_BE_ZERO and value == 0:
                continue
            if isinstance(value, int):
                positive(name, value)
            elif isinstance(value, float):
                share(name, value)
        for path in (self.source_text, self.target_text):
            if not Path(path).is_file():
                raise InputError(f"{path}: no such file")
