"""Finds the scorer of a metric by name."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mtmetrics.errors import InputError
from mtmetrics.inputs import choice
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.loaders.bertr import load_bertr
from mtmetrics.scorers.loaders.distilscore import load_distilscore
from mtmetrics.scorers.loaders.regressor import load_regressor
from mtmetrics.scorers.loaders.sentsim import load_sentsim
from mtmetrics.scorers.loaders.xmoverscore import load_xmoverscore

LOADERS: dict[str, Callable[..., Scorer]] = {
    "xmoverscore": load_xmoverscore,
    "sentsim": load_sentsim,
    "distilscore": load_distilscore,
    "bertr": load_bertr,
    "bilstm": functools.partial(load_regressor, "bilstm"),
    "bilstm_attention": functools.partial(load_regressor, "bilstm_attention"),
    "esim": functools.partial(load_regressor, "esim"),
}


def load_scorer(metric: str, **options: Any) -> Scorer:
    """The scorer of a metric by name.

    Args:
        metric: one of `LOADERS`.
        **options: what its loader takes; None means that the preset decides.

    Raises:
        InputError: an unknown metric, an option that it does not have, or as its loader.
        ArtifactError: as its loader.
    """
    loader = LOADERS[choice("metric", metric, list(LOADERS))]
    known = inspect.signature(loader).parameters
    for name, value in options.items():
        if name not in known and value is not None:
            raise InputError(f"{metric} has no option {name!r}; it takes: {', '.join(option for option in known if option != 'pool')}")
    return loader(**{name: value for name, value in options.items() if value is not None})
