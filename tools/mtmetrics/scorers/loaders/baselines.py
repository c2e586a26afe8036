"""Baselines that call sacrebleu."""

import importlib
from typing import Any, NamedTuple

from mtmetrics.errors import MTMetricsError
from mtmetrics.extras import require_extra
from mtmetrics.inputs import language_pair
from mtmetrics.scorers.baselines import Baseline, sentence_level


class _Kind(NamedTuple):
    """A class of `sacrebleu.metrics`, how it is made, the factor that brings its scores to [0, 1] or below 0, and the
    score of a blank."""

    name: str
    options: dict[str, Any]
    scale: float = 0.01
    floor: float = 0.0


# Sentence BLEU without effective order is 0 for most texts of fewer than four words. TER counts edits: lower is better,
# and a translation that is missing has 100 %.
KINDS = {
    "sentbleu": _Kind("BLEU", {"effective_order": True}),
    "chrf": _Kind("CHRF", {"word_order": 0}),
    "chrfpp": _Kind("CHRF", {"word_order": 2}),
    "ter": _Kind("TER", {}, -0.01, -1.0),
}


def load_sacrebleu(metric: str, lang_pair: str | None = None) -> Baseline:
    """Sentence BLEU, chrF, chrF++ or TER by sacrebleu, divided by 100; TER with a minus, so that higher is better.

    Args:
        metric: one of `KINDS`.
        lang_pair: such as ``"en-zh"``; BLEU takes sacrebleu's tokeniser of the target language. Without it that of
            mteval, 13a.

    Raises:
        InputError: `lang_pair` is no language pair.
        MTMetricsError: sacrebleu, or what it needs for the language, is not installed.
    """
    require_extra("baselines", metric)
    kind = KINDS[metric]
    target = None if lang_pair is None else language_pair(lang_pair)[1]
    options = kind.options | ({"trg_lang": target} if target and kind.name == "BLEU" else {})
    try:
        made = getattr(importlib.import_module("sacrebleu.metrics"), kind.name)(**options)
    except (ImportError, RuntimeError) as error:
        raise MTMetricsError(f"{metric} for {lang_pair}: {' '.join(str(error).split())}") from error
    return sentence_level(metric, made, scale=kind.scale, floor=kind.floor)
