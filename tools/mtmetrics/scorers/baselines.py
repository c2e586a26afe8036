"""Baselines that a metric has to beat: lengths, chance, fluency alone, and the overlap metrics of
sacrebleu."""

import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.checks import language_pair
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.preset_tables import load_language_model, required_pair
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import LANGUAGE_MODEL_HELP, loading_option, option
from mtmetrics.scorers.settings import Settings as BaseSettings
from mtmetrics.scorers.side import Options, Side
from mtmetrics.scorers.signature import model_name, signature
from mtmetrics.scorers.xmoverscore import XMoverScore

# Length, in characters, of a segment with a blank side. Nearly all real segments are shorter, so they
# score higher.
_BLANK_LENGTH = 1000


class Baseline(Scorer):
    """A score without a model, from a translation and its source or reference. Higher is better.

    A subclass writes `score_segment`. A segment with a blank side gets the score `floor`."""

    usual_preset = None
    takes_presets = False
    floor = 0.0

    def score_segment(self, compared: str, prediction: str) -> float:
        """Scores one segment without a blank side.

        Args:
            compared: the source or the reference.
            prediction: the translation.
        """
        raise NotImplementedError

    def compute(self, batch: Batch) -> list[PartScores]:
        scores = []
        for predictions in batch.predictions:
            pairs = zip(batch.sources_or_references, predictions, strict=True)
            scores.append(PartScores.plain([self.score_segment(*pair) for pair in pairs]))
        return scores


class Length(Baseline):
    """Minus a number of characters: long sentences are translated worse."""

    floor = -_BLANK_LENGTH

    @property
    def signature(self) -> str:
        return signature(self.metric, {"unit": "characters"})


class SourceLength(Length):
    """Minus the number of characters of the source."""

    metric = "source_length"

    def score_segment(self, compared: str, prediction: str) -> float:
        return -len(compared)


class PredictionLength(Length):
    """Minus the number of characters of the translation."""

    metric = "prediction_length"

    def score_segment(self, compared: str, prediction: str) -> float:
        return -len(prediction)


class Chance(Baseline):
    """Uniform random numbers in [0, 1). The number of a segment depends on its texts and the seed
    only, not on other segments."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(BaseSettings):
        """The options of chance."""

        seed: int = option(12345, "seed of the numbers", signed="seed")

    settings: Settings

    metric = "random"

    @property
    def signature(self) -> str:
        return signature(self.metric, {"seed": self.settings.seed})

    def score_segment(self, compared: str, prediction: str) -> float:
        digest = hashlib.sha256(f"{self.settings.seed}\0{compared}\0{prediction}".encode()).digest()
        # As many bits as a float64 holds; more would round the largest numbers up to 1.
        return (int.from_bytes(digest[:8]) >> 11) / 2**53


class Overlap(Baseline):
    """Sentence BLEU, chrF, chrF++ or TER by sacrebleu, divided by 100. TER is negated, so that higher
    is better.

    The system score is the mean of the segments, not sacrebleu's corpus score. With several
    references, the translation is compared with each one, and the best score counts, as for all
    metrics in this package. sacrebleu does the same for chrF, but its BLEU and TER pool the
    references of a segment. BLEU uses sacrebleu's tokeniser for the target language, or 13a (that of
    mteval) without `lang_pair`.

    Attributes:
        sacrebleu_class: name of a class in `sacrebleu.metrics`.
        sacrebleu_options: its keywords, besides the options of the user.
        scale_factor: number that sacrebleu's score is multiplied by.

    Raises:
        MTMetricsError: sacrebleu, or what it needs for the language, is not installed.
    """

    sides = (Side.REFERENCE,)
    sacrebleu_class: ClassVar[str]
    sacrebleu_options: ClassVar[Options] = {}
    scale_factor: ClassVar[float] = 0.01

    def __init__(
        self,
        lang_pair: str | None = None,
        *,
        settings: BaseSettings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(lang_pair, settings=settings, **options)
        require_extra("baselines", self.metric)
        try:
            from sacrebleu import metrics

            metric_class = getattr(metrics, self.sacrebleu_class)
            self.sacrebleu_metric = metric_class(**self.sacrebleu_arguments())
        except (ImportError, RuntimeError) as error:
            raise MTMetricsError(
                f"{self.metric} for {self.lang_pair}: {' '.join(str(error).split())}"
            ) from error
        # sacrebleu has a signature only after its first score.
        self.sacrebleu_metric.corpus_score([""], [[""]])

    def sacrebleu_arguments(self) -> dict[str, Any]:
        """Returns the keywords of the class of sacrebleu."""
        user_options = {name: getattr(self.settings, name) for name in self.settings.options()}
        return {**self.sacrebleu_options, **user_options}

    @property
    def signature(self) -> str:
        return self.extended_signature(self.metric, "mean-of-segments")

    def extended_signature(self, metric: str, system: str) -> str:
        """Returns sacrebleu's signature in our form, with the name of the metric, and with the way in
        which the score of a system is computed."""
        sacrebleu_signature = str(self.sacrebleu_metric.get_signature())
        fields = dict(field.split(":", 1) for field in sacrebleu_signature.split("|"))
        version = fields.pop("version")
        return signature(metric, fields | {"sacrebleu": version, "system": system})

    def score_segment(self, compared: str, prediction: str) -> float:
        # The corpus score of one segment is its sentence score. But `sentence_score` logs a warning
        # for each segment if the user switches effective order off.
        score = self.sacrebleu_metric.corpus_score([prediction], [[compared]]).score
        return self.scale_factor * score


class SentBLEU(Overlap):
    """Sentence BLEU. Without effective order, a translation of fewer than four tokens scores 0, even
    if it equals the reference."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(BaseSettings):
        """The options of sentence BLEU."""

        effective_order: bool = option(
            True, "ignore n-grams that are longer than the text; many papers do not"
        )

    metric = "sentbleu"
    sacrebleu_class = "BLEU"

    def sacrebleu_arguments(self) -> dict[str, Any]:
        arguments = super().sacrebleu_arguments()
        if self.lang_pair is not None:
            arguments["trg_lang"] = language_pair(self.lang_pair)[1]
        return arguments


def corpus_bleu(
    predictions: Sequence[str], references: Sequence[str], lang_pair: str
) -> tuple[float, str]:
    """Returns corpus BLEU of sacrebleu, divided by 100, and its signature.

    Raises:
        MTMetricsError: sacrebleu, or what it needs for the language, is not installed.
    """
    bleu = SentBLEU(lang_pair, effective_order=False)
    score = bleu.sacrebleu_metric.corpus_score(list(predictions), [list(references)]).score
    return bleu.scale_factor * score, bleu.extended_signature("bleu", "corpus")


class ChrF(Overlap):
    """The F score of character n-grams.

    Calls private methods of sacrebleu, because they let the n-grams of a text be counted once for
    all of its comparisons."""

    metric = "chrf"
    sacrebleu_class = "CHRF"
    sacrebleu_options: ClassVar = {"word_order": 0}

    def __init__(self, lang_pair: str | None = None, **options: Any) -> None:
        super().__init__(lang_pair, **options)
        # Text -> a counter of n-grams for each order.
        self._ngrams_by_order = functools.lru_cache(maxsize=512)(
            lambda text: self.sacrebleu_metric._extract_reference_info([text])["ref_ngrams"][0]
        )

    def score_segment(self, compared: str, prediction: str) -> float:
        counters = zip(
            self._ngrams_by_order(prediction), self._ngrams_by_order(compared), strict=True
        )
        statistics: list[int] = []
        for prediction_ngrams, compared_ngrams in counters:
            statistics += self.sacrebleu_metric._get_match_statistics(
                prediction_ngrams, compared_ngrams
            )
        return self.scale_factor * self.sacrebleu_metric._compute_f_score(statistics)


class ChrFPlusPlus(ChrF):
    """chrF with words and pairs of words."""

    metric = "chrfpp"
    sacrebleu_options: ClassVar = {"word_order": 2}


class TER(Overlap):
    """Minus the translation edit rate. A segment with a blank side scores -1, a rate of 100 %."""

    metric = "ter"
    sacrebleu_class = "TER"
    scale_factor = -0.01
    floor = -1.0


class Fluency(Scorer):
    """The score of XMoverScore's language model alone: the mean log-likelihood per token of the
    translation, at most 0. With another `length_power` of the preset it is no mean, see
    `LanguageModel`.

    The source changes no score, except that a segment with a blank side gets the score
    `LanguageModel.floor`.

    Args:
        language_model: a language model of the target language.
        settings: all options as one object, which replaces `options`.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(BaseSettings):
        """The options of fluency."""

        lm: str | None = loading_option(LANGUAGE_MODEL_HELP, usage="MODEL")

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
        """Reads a preset of XMoverScore. Only its language models are used. No option of fluency
        chooses the preset, so `options` is not read."""
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
        log_likelihoods, _, is_truncated = self.language_model.score(texts)
        none_empty = np.zeros(len(texts), dtype=bool)
        scores = PartScores(log_likelihoods, {}, is_truncated, empty=none_empty)
        return scores.split(len(batch.systems))
