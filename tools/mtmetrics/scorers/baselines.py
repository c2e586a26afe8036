"""Baselines that a metric has to beat: lengths, chance, fluency alone, and the overlap metrics of
sacrebleu."""

import dataclasses
import functools
import hashlib
import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import language_pair
from mtmetrics.errors import InputError, MTMetricsError, install_command
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import load_language_model, required_pair
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import loading_option, option
from mtmetrics.scorers.side import Options, Side
from mtmetrics.scorers.signature import model_name, signature
from mtmetrics.scorers.xmoverscore import XMoverScore

# A segment with a blank side counts as a text of so many characters, which is longer than nearly
# every segment.
BLANK_LENGTH = 1000


class Baseline(Scorer):
    """A number that needs no model, of a segment's source or reference and its translation; higher
    is better."""

    usual_preset = None
    takes_presets = False
    floor = 0.0

    def value(self, compared: str, prediction: str) -> float:
        """The score of a segment without a blank side, of the text that the translation is compared
        with, and the translation."""
        raise NotImplementedError

    def compute(self, batch: Batch) -> list[PartScores]:
        scores = []
        for predictions in batch.predictions:
            pairs = zip(batch.sources_or_references, predictions, strict=True)
            scores.append(PartScores.plain([self.value(*pair) for pair in pairs]))
        return scores


class SourceLength(Baseline):
    """Minus the number of characters of the source: long sentences are translated worse."""

    metric = "source_length"
    floor = -BLANK_LENGTH

    @property
    def signature(self) -> str:
        return signature(self.metric, {"unit": "characters"})

    def value(self, compared: str, prediction: str) -> float:
        return -len(compared)


class PredictionLength(SourceLength):
    """Minus the number of characters of the translation."""

    metric = "prediction_length"

    def value(self, compared: str, prediction: str) -> float:
        return -len(prediction)


class Chance(Baseline):
    """Uniform random numbers in [0, 1) that depend on the segment's texts and the seed alone, not
    on its place or its neighbours."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of chance."""

        seed: int = option(12345, "seed of the numbers", signed="seed")

    settings: Settings

    metric = "random"

    @property
    def signature(self) -> str:
        return signature(self.metric, {"seed": self.settings.seed})

    def value(self, compared: str, prediction: str) -> float:
        digest = hashlib.sha256(f"{self.settings.seed}\0{compared}\0{prediction}".encode()).digest()
        # As many bits as a float64 holds; more would round the largest numbers up to 1.
        return (int.from_bytes(digest[:8]) >> 11) / 2**53


class Overlap(Baseline):
    """Sentence BLEU, chrF, chrF++ or TER by sacrebleu, divided by 100; TER with a minus, so that
    higher is better.

    The system score is the mean of the segments, not sacrebleu's corpus score. Of several
    references each is compared by itself and the best one counts, as with all metrics here.
    sacrebleu does the same for chrF, while its BLEU and TER pool the references of a segment. BLEU
    takes sacrebleu's tokeniser of the target language, without `lang_pair` that of mteval, 13a.

    Raises:
        MTMetricsError: sacrebleu, or what it needs for the language, is not installed.
    """

    sides = (Side.REFERENCE,)
    kind: ClassVar[str]  # of a class of `sacrebleu.metrics`
    options: ClassVar[Options] = {}
    factor: ClassVar[float] = 0.01

    def __init__(
        self,
        lang_pair: str | None = None,
        *,
        settings: settings.Settings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(lang_pair, settings=settings, **options)
        if importlib.util.find_spec("sacrebleu") is None:
            raise MTMetricsError(f"{self.metric} needs sacrebleu; {install_command('baselines')}")
        arguments = dict(self.options)
        for name in self.settings.options():
            arguments[name] = getattr(self.settings, name)
        if self.lang_pair is not None and self.kind == "BLEU":
            arguments["trg_lang"] = language_pair(self.lang_pair)[1]
        try:
            metric_class = getattr(importlib.import_module("sacrebleu.metrics"), self.kind)
            self._made = metric_class(**arguments)
        except (ImportError, RuntimeError) as error:
            raise MTMetricsError(
                f"{self.metric} for {self.lang_pair}: {' '.join(str(error).split())}"
            ) from error
        self._made.sentence_score("", [""])  # sacrebleu knows its signature only then

    @property
    def signature(self) -> str:
        fields = dict(field.split(":", 1) for field in str(self._made.get_signature()).split("|"))
        return signature(
            self.metric,
            fields
            | {"version": None, "sacrebleu": fields["version"], "system": "mean-of-segments"},
        )

    def value(self, compared: str, prediction: str) -> float:
        return self.factor * self._made.sentence_score(prediction, [compared]).score


class SentBLEU(Overlap):
    """Sentence BLEU; without effective order it is 0, or by smoothing almost, for most texts of
    fewer than four words."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of sentence BLEU."""

        effective_order: bool = option(
            True, "leave out n-grams that are longer than the text; papers often do not"
        )

    metric, kind = "sentbleu", "BLEU"


def corpus_bleu(
    predictions: Sequence[str], references: Sequence[str], lang_pair: str
) -> tuple[float, str]:
    """Corpus BLEU of sacrebleu, divided by 100, and its signature.

    Raises:
        MTMetricsError: sacrebleu, or what it needs for the language, is not installed.
    """
    bleu = SentBLEU(lang_pair, effective_order=False)
    score = bleu.factor * bleu._made.corpus_score(list(predictions), [list(references)]).score
    return score, bleu.signature.replace("system:mean-of-segments", "system:corpus").replace(
        "sentbleu|", "bleu|", 1
    )


class ChrF(Overlap):
    """The F score of character n-grams."""

    metric, kind = "chrf", "CHRF"
    options: ClassVar = {"word_order": 0}

    def __init__(self, lang_pair: str | None = None, **options: Any) -> None:
        super().__init__(lang_pair, **options)
        # The n-grams of a text are taken once, not in each of its comparisons.
        self._ngrams = functools.lru_cache(maxsize=512)(
            lambda text: self._made._extract_reference_info([text])["ref_ngrams"][0]
        )

    def value(self, compared: str, prediction: str) -> float:
        orders = zip(self._ngrams(prediction), self._ngrams(compared), strict=True)
        counts = [count for order in orders for count in self._made._get_match_statistics(*order)]
        return self.factor * self._made._compute_f_score(counts)


class ChrFPlusPlus(ChrF):
    """chrF with words and pairs of words."""

    metric = "chrfpp"
    options: ClassVar = {"word_order": 2}


class TER(Overlap):
    """Minus the translation edit rate; a translation that is missing has 100 %."""

    metric, kind = "ter", "TER"
    factor, floor = -0.01, -1.0


class Fluency(Scorer):
    """The language-model term of XMoverScore alone: the log-likelihood of the translation, at most
    0, per token or as `LanguageModel` is told to normalise it.

    The source is not looked at, except that a segment with a blank side gets the floor score,
    `LanguageModel.floor`.

    Args:
        language_model: of the target language.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of the language model alone."""

        lm: str | None = loading_option(settings.LANGUAGE_MODEL_HELP, usage="MODEL")

    metric = "fluency"
    preset_keys: ClassVar = {"language_models.*": XMoverScore.preset_keys["language_models.*"]}
    needs_pair = True

    def __init__(
        self,
        language_model: LanguageModel,
        *,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(settings=settings, **options)
        self.language_model, self.floor = language_model, language_model.floor

    @classmethod
    def read_checked_preset(
        cls, preset: str | None, options: Options, *, local_files_only: bool = False
    ) -> Preset:
        """Reads a preset of XMoverScore, of which only the language model counts."""
        opened_preset = XMoverScore.read_checked_preset(
            preset, {}, local_files_only=local_files_only
        )
        return dataclasses.replace(opened_preset, options={})

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """Takes the language model for the target of the language pair."""
        model, _ = load_language_model(preset, models, settings.lang_pair, settings.lm)
        if model is None:
            target = required_pair(settings.lang_pair)[1]
            raise InputError(
                f"fluency needs a language model for {target!r}, and preset {preset.name} names "
                "none; pass lm=",
                mentions=["lm="],
            )
        return cls(model, settings=settings)

    def signature_fields(self) -> dict[str, object]:
        return {
            "lm": model_name(self.language_model),
            **self.language_model.signature_fields,
            **self.settings.signature_fields(),
        }

    def compute(self, batch: Batch) -> list[PartScores]:
        # One call for all systems, so that a text that several of them share is scored once.
        texts = [text for predictions in batch.predictions for text in predictions]
        means, _, truncated = self.language_model.score(texts)
        shape = (len(batch.systems), len(batch))
        columns = zip(means.reshape(shape), truncated.reshape(shape), strict=True)
        return [
            PartScores(values, {}, cut, np.zeros(len(batch), dtype=bool)) for values, cut in columns
        ]
