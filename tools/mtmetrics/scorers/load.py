"""Finds the scorer of a metric by name."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mtmetrics.errors import InputError
from mtmetrics.inputs import choice
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.baselines import chance, prediction_length, source_length
from mtmetrics.scorers.loaders.baselines import KINDS, load_sacrebleu
from mtmetrics.scorers.loaders.bertr import load_bertr
from mtmetrics.scorers.loaders.distilscore import load_distilscore
from mtmetrics.scorers.loaders.regressor import load_regressor
from mtmetrics.scorers.loaders.sentsim import load_sentsim
from mtmetrics.scorers.loaders.uscore import load_uscore
from mtmetrics.scorers.loaders.xmoverscore import load_fluency, load_xmoverscore

LOADERS: dict[str, Callable[..., Scorer]] = {
    "xmoverscore": load_xmoverscore,
    "sentsim": load_sentsim,
    "distilscore": load_distilscore,
    "uscore": load_uscore,
    "bertr": load_bertr,
    "bilstm": functools.partial(load_regressor, "bilstm"),
    "bilstm_attention": functools.partial(load_regressor, "bilstm_attention"),
    "esim": functools.partial(load_regressor, "esim"),
    "source_length": source_length,
    "prediction_length": prediction_length,
    "fluency": load_fluency,
    "random": chance,
    **{name: functools.partial(load_sacrebleu, name) for name in KINDS},
}
# What callers pass whatever the metric; a baseline has no use for some of it.
_COMMON = ("preset", "lang_pair", "pool")


def has_presets(metric: str) -> bool:
    """Whether a preset changes anything about a metric.

    Raises:
        InputError: an unknown metric.
    """
    return "preset" in inspect.signature(LOADERS[choice("metric", metric, list(LOADERS))]).parameters


def load_scorer(metric: str, **options: Any) -> Scorer:
    """The scorer of a metric by name.

    Args:
        metric: one of `LOADERS`.
        **options: what its loader takes; None means that the preset decides. `preset`, `lang_pair` and `pool` may be
            passed to any metric, also to a baseline that depends on none of them; its signature leaves them out.

    Raises:
        InputError: an unknown metric, an option that it does not have, or as its loader.
        ArtifactError: as its loader.
    """
    loader = LOADERS[choice("metric", metric, list(LOADERS))]
    known = inspect.signature(loader).parameters
    for name, value in options.items():
        if name not in (*known, *_COMMON) and value is not None:
            takes = ", ".join(option for option in known if option != "pool")
            raise InputError(f"{metric} has no option {name!r}; it takes: {takes or 'none'}")
    return loader(**{name: value for name, value in options.items() if name in known and value is not None})
