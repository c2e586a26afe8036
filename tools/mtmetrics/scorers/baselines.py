"""Baselines that a metric has to beat: lengths, chance, fluency alone, and the overlap metrics of sacrebleu."""

import functools
import hashlib
import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from mtmetrics.checks import language_pair
from mtmetrics.errors import InputError, MTMetricsError, install_command
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.base import ChunkScores, Scorer
from mtmetrics.scorers.preset_tables import languages, model_name, preset_language_model, signature
from mtmetrics.scorers.xmoverscore import XMoverScore

SEED = 12345
# A segment with a blank side counts as a text of so many characters, which is longer than nearly every segment.
BLANK_LENGTH = 1000


class Baseline(Scorer):
    """A number that needs no model: `value` of a segment's source or reference and its translation, higher is better;
    `fields` are what the scores depend on, for the signature."""

    def __init__(
        self,
        name: str,
        value: Callable[[str, str], float],
        *,
        compares: Literal["sources", "references"],
        floor: float,
        fields: Mapping[str, object],
    ) -> None:
        self.name, self.compares = name, compares
        self._value, self._floor_score, self._fields = value, floor, dict(fields)

    @property
    def signature(self) -> str:
        return signature(self.name, self._fields)

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        results = []
        for texts in systems:
            values = np.array([self._value(*pair) for pair in zip(others, texts, strict=True)], dtype=np.float64)
            results.append(ChunkScores(values, {}, *np.zeros((2, len(texts)), dtype=bool)))
        return results

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

    metric = "fluency"

    def __init__(self, language_model: LanguageModel, *, lang_pair: str | None = None) -> None:
        self.language_model = language_model
        self.lang_pair = lang_pair

    @classmethod
    def from_preset(
        cls, preset: str = "paper", *, lang_pair: str | None, pool: ModelPool | None = None, lm: str | None = None
    ) -> "Fluency":
        """The language model, for the target of `lang_pair`, of a preset of XMoverScore; or `lm`."""
        bundle, pool = XMoverScore.open_preset(preset, pool)
        pair = languages(bundle, lang_pair, needed=True)
        model, _ = preset_language_model(bundle, pool, pair[1], lm)
        if model is None:
            why = f"preset {bundle.name} names none; pass lm="
            raise InputError(f"fluency needs a language model for {pair[1]!r}, and {why}")
        return cls(model, lang_pair=lang_pair)

    @property
    def signature(self) -> str:
        model = self.language_model
        return signature(self.metric, {"lp": self.lang_pair, "lm": model_name(model), **model.signature_fields})

    def _score_chunk(self, others: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        # One call for all systems, so that a text that several of them share is scored once.
        means, _, truncated = self.language_model.score([text for texts in systems for text in texts])
        shape = (len(systems), len(others))
        columns = zip(means.reshape(shape), truncated.reshape(shape), strict=True)
        return [ChunkScores(values, {}, cut, np.zeros(len(others), dtype=bool)) for values, cut in columns]

    def _floor(self) -> tuple[float, dict[str, float]]:
        return self.language_model.floor, {}


def _length(side: int) -> Baseline:
    """Minus the number of characters of the source (0) or of the translation (1): long sentences are translated
    worse."""
    name = ("source_length", "prediction_length")[side]
    fields = {"unit": "characters"}
    return Baseline(name, lambda *texts: -len(texts[side]), compares="sources", floor=-BLANK_LENGTH, fields=fields)


def chance(seed: int = SEED) -> Baseline:
    """Uniform random numbers in [0, 1) that depend on the segment's texts and the seed alone, not on its place or its
    neighbours."""

    def draw(source: str, prediction: str) -> float:
        digest = hashlib.sha256(f"{seed}\0{source}\0{prediction}".encode()).digest()
        # As many bits as a float64 holds; more would round the largest numbers up to 1.
        return (int.from_bytes(digest[:8]) >> 11) / 2**53

    return Baseline("random", draw, compares="sources", floor=0.0, fields={"seed": seed})


class _Kind(NamedTuple):
    name: str  # of a class of `sacrebleu.metrics`
    options: dict[str, Any]
    scale: float = 0.01
    floor: float = 0.0  # of a segment with a blank side


# Sentence BLEU without effective order is 0 for most texts of fewer than four words. TER counts edits: lower is better,
# and a translation that is missing has 100 %.
_KINDS = {
    "sentbleu": _Kind("BLEU", {"effective_order": True}),
    "chrf": _Kind("CHRF", {"word_order": 0}),
    "chrfpp": _Kind("CHRF", {"word_order": 2}),
    "ter": _Kind("TER", {}, -0.01, -1.0),
}


def _overlap(metric: str, lang_pair: str | None = None) -> Baseline:
    """Sentence BLEU, chrF, chrF++ or TER by sacrebleu, divided by 100; TER with a minus, so that higher is better.

    The system score is the mean of the segments, not sacrebleu's corpus score. Of several references each is compared
    by itself and the best one counts, as with all metrics here. sacrebleu does the same for chrF, while its BLEU and
    TER pool the references of a segment. BLEU takes sacrebleu's tokeniser of the target language, without `lang_pair`
    that of mteval, 13a.
    """
    if importlib.util.find_spec("sacrebleu") is None:
        raise MTMetricsError(f"{metric} needs sacrebleu; {install_command('baselines')}")
    kind = _KINDS[metric]
    target = None if lang_pair is None else language_pair(lang_pair)[1]
    options = kind.options | ({"trg_lang": target} if target and kind.name == "BLEU" else {})
    try:
        made = getattr(importlib.import_module("sacrebleu.metrics"), kind.name)(**options)
    except (ImportError, RuntimeError) as error:
        raise MTMetricsError(f"{metric} for {lang_pair}: {' '.join(str(error).split())}") from error
    made.sentence_score("", [""])  # sacrebleu knows its signature only then
    fields = dict(field.split(":", 1) for field in str(made.get_signature()).split("|"))
    fields |= {"sacrebleu": fields.pop("version"), "system": "mean-of-segments"}
    value = _chrf(made) if kind.name == "CHRF" else lambda *texts: made.sentence_score(texts[1], [texts[0]]).score
    return Baseline(
        metric,
        lambda reference, text: kind.scale * value(reference, text),
        compares="references",
        floor=kind.floor,
        fields=fields,
    )


def _chrf(made: Any) -> Callable[[str, str], float]:
    """chrF of a reference and a translation, with the n-grams of a text taken once, not in each of its comparisons."""

    @functools.lru_cache(maxsize=512)
    def ngrams(text: str) -> list[Any]:
        return made._extract_reference_info([text])["ref_ngrams"][0]

    def value(reference: str, text: str) -> float:
        orders = zip(ngrams(text), ngrams(reference), strict=True)
        return made._compute_f_score([count for order in orders for count in made._get_match_statistics(*order)])

    return value


source_length, prediction_length = (functools.partial(_length, side) for side in (0, 1))
sentbleu, chrf, chrfpp, ter = (functools.partial(_overlap, name) for name in _KINDS)
