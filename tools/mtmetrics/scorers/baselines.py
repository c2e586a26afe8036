"""Baselines that a metric has to beat: lengths, chance, fluency alone, and the overlap metrics of sacrebleu."""

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from mtmetrics.models.language_model import LanguageModel
from mtmetrics.scorers.base import ChunkScores, Scorer
from mtmetrics.signature import signature

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

SEED = 12345
# A segment with a blank side counts as a text of so many characters, which is longer than nearly every segment.
BLANK_LENGTH = 1000


class Baseline(Scorer):
    """A number that needs no model: a function of a segment's two texts.

    Args:
        name: name of the metric.
        value: source or reference, prediction -> score, higher is better.
        compares: ``"sources"`` or ``"references"``. Of several references each is compared by itself, and the best one
            counts.
        floor: score of a segment with a blank side.
        fields: what the scores depend on, for the signature.
    """

    def __init__(
        self,
        name: str,
        value: Callable[[str, str], float],
        *,
        compares: Literal["sources", "references"],
        floor: float,
        fields: Mapping[str, object],
    ) -> None:
        self.name = name
        self.compares = compares
        self._value = value
        self._floor_score = floor
        self._fields = dict(fields)

    @property
    def signature(self) -> str:
        return signature(self.name, self._fields)

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        return [
            ChunkScores(
                np.array(
                    [self._value(other, text) for other, text in zip(others, texts, strict=True)], dtype=np.float64
                ),
                {},
                *np.zeros((2, len(texts)), dtype=bool),
            )
            for texts in systems
        ]

    def _floor(self) -> tuple[float, dict[str, float]]:
        return self._floor_score, {}


class Fluency(Scorer):
    """The language-model term of XMoverScore alone: the log-likelihood of the translation, at most 0, per token or as
    `LanguageModel` is told to normalise it.

    The source is not looked at, except that a segment with a blank side gets the floor score, `LanguageModel.floor`.

    Args:
        language_model: of the target language.
        lang_pair: recorded in the signature.
    """

    def __init__(self, language_model: LanguageModel, *, lang_pair: str | None = None) -> None:
        self.language_model = language_model
        self.lang_pair = lang_pair

    @property
    def signature(self) -> str:
        model = self.language_model
        return signature(
            "fluency", {"lp": self.lang_pair, "lm": f"{model.label}#{model.fingerprint}", **model.signature_fields}
        )

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        # One call for all systems, so that a text that several of them share is scored once.
        means, _, truncated = self.language_model.score([text for texts in systems for text in texts])
        shape = (len(systems), len(others))
        columns = zip(means.reshape(shape), truncated.reshape(shape), strict=True)
        return [ChunkScores(values, {}, cut, np.zeros(len(others), dtype=bool)) for values, cut in columns]

    def _floor(self) -> tuple[float, dict[str, float]]:
        return self.language_model.floor, {}


def source_length() -> Baseline:
    """Minus the number of characters of the source: long sentences are translated worse."""
    return Baseline(
        "source_length",
        lambda source, _: -len(source),
        compares="sources",
        floor=-BLANK_LENGTH,
        fields={"unit": "characters"},
    )


def prediction_length() -> Baseline:
    """Minus the number of characters of the translation: long sentences are translated worse."""
    return Baseline(
        "prediction_length",
        lambda _, text: -len(text),
        compares="sources",
        floor=-BLANK_LENGTH,
        fields={"unit": "characters"},
    )


def chance(seed: int = SEED) -> Baseline:
    """Uniform random numbers in [0, 1) that depend on the segment's texts and the seed alone, not on its place or its
    neighbours."""

    def draw(source: str, prediction: str) -> float:
        digest = hashlib.sha256(f"{seed}\0{source}\0{prediction}".encode()).digest()
        # As many bits as a float64 holds; more would round the largest numbers up to 1.
        return (int.from_bytes(digest[:8]) >> 11) / 2**53

    return Baseline("random", draw, compares="sources", floor=0.0, fields={"seed": seed})


def sentence_level(name: str, metric: "Metric", *, scale: float, floor: float) -> Baseline:
    """A metric of sacrebleu on single segments; the system score is the mean of the segments, not sacrebleu's corpus
    score.

    Of several references each is compared by itself and the best one counts, as with all metrics here. sacrebleu does
    the same for chrF, while its BLEU and TER pool the references of a segment.

    Args:
        name: name of the baseline.
        metric: of `sacrebleu.metrics`; its signature becomes a part of the baseline's, with ``sacrebleu`` for
            ``version``.
        scale: what sacrebleu's sentence scores are multiplied with.
        floor: score of a segment with a blank side.
    """
    metric.sentence_score("", [""])  # sacrebleu knows its signature only then
    fields = dict(field.split(":", 1) for field in str(metric.get_signature()).split("|"))
    fields |= {"sacrebleu": fields.pop("version"), "system": "mean-of-segments"}
    return Baseline(
        name,
        lambda reference, text: scale * metric.sentence_score(text, [reference]).score,
        compares="references",
        floor=floor,
        fields=fields,
    )
