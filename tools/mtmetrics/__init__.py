"""Machine-translation evaluation metrics of four papers, and COMET, as scorers and Hugging Face
`evaluate` modules.

`load` makes a scorer by the names of its metric and preset; the scorer classes are there to be put
together from models of one's own. Everything is imported when it is first used."""

import importlib
from typing import TYPE_CHECKING, Any

from mtmetrics._version import __version__

if TYPE_CHECKING:
    from mtmetrics.scorers.base import Scorer

# Name -> the module that it is imported from.
_PUBLIC = {
    **dict.fromkeys(
        ["ArtifactError", "InputError", "MTMetricsError", "MissingExtraError"], "mtmetrics.errors"
    ),
    "Alignment": "mtmetrics.matching.plan",
    "BERTR": "mtmetrics.scorers.bertr",
    **dict.fromkeys(["BiLSTM", "BiLSTMAttention", "ESIM"], "mtmetrics.scorers.learned"),
    "DistilScore": "mtmetrics.scorers.distilscore",
    "MetricModule": "mtmetrics.integrations.metric_module",
    "MetricResult": "mtmetrics.scorers.results",
    "PluginMetric": "mtmetrics.scorers.plugins",
    "Remapping": "mtmetrics.matching.remapping",
    "Reranker": "mtmetrics.choosing.reranking",
    "SentSim": "mtmetrics.scorers.sentsim",
    "Settings": "mtmetrics.scorers.settings",
    "TokenEncoder": "mtmetrics.models.token_encoder",
    "UScore": "mtmetrics.scorers.uscore",
    "XMoverScore": "mtmetrics.scorers.xmoverscore",
    "generate": "mtmetrics.integrations.generation",
    "make_compute_metrics": "mtmetrics.integrations.trainer",
    "metric_path": "mtmetrics.layout",
    "option": "mtmetrics.scorers.settings",
    "rerank": "mtmetrics.choosing.reranking",
}

__all__ = ["__version__", "load", *_PUBLIC]


def load(metric: str, preset: str | None = None, **options: Any) -> "Scorer":
    """The scorer of a metric, with the models of a preset.

    Args:
        metric: ``"xmoverscore"``, ``"sentsim"``, ``"distilscore"``, ``"uscore"``, ``"bertr"``,
            ``"bilstm"``, ``"bilstm_attention"``, ``"esim"``, or a baseline such as ``"chrf"``.
        preset: name of a preset, or a folder with a preset.toml; if None ``"paper"``, the models of
            the paper, or ``"mini"`` of UScore and the learned metrics, whose models were not
            published.
        **options: `lang_pair` and the options of the metric's `Settings`; and
            how models are run: `device`, `dtype`, `batch_tokens` and
            `local_files_only`, see `mtmetrics.models.pool.ModelPool`.

    Returns:
        A scorer, whose ``score(predictions, sources=...)``, or
        ``score(predictions, references=...)``, gives a `MetricResult`.

    Raises:
        InputError: an unknown metric, preset, language pair or option.
        ArtifactError: something that the preset names cannot be loaded.

    Example:
        >>> import mtmetrics
        >>> scorer = mtmetrics.load("xmoverscore", "mini", lang_pair="de-en")
        >>> predictions = ["The house is small.", "The weather was good yesterday."]
        >>> result = scorer.score(predictions, sources=["Das Haus ist klein."] * 2)
        >>> bool(result.segments[0] > result.segments[1])
        True
        >>> result.signature.split("|")[:2]
        ['xmoverscore', 'lp:de-en']
    """
    import dataclasses

    from mtmetrics.models.pool import ModelPool
    from mtmetrics.models.running import Running
    from mtmetrics.scorers.registry import load_scorer

    of_models = {field.name for field in dataclasses.fields(Running)} & options.keys()
    pool = ModelPool(**{name: options.pop(name) for name in of_models})
    return load_scorer(metric, preset, pool=pool, **options)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'mtmetrics' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
