"""Metrics for ``Seq2SeqTrainer`` of `transformers`: at every evaluation, the generated tokens are
decoded and scored."""

import dataclasses
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mtmetrics.checks import check
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    import evaluate
    from transformers import EvalPrediction, PreTrainedTokenizerBase

    from mtmetrics.integrations.metric_module import MetricModule
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.results import MetricResult

    Loggable = evaluate.EvaluationModule | Scorer


@dataclasses.dataclass(frozen=True)
class _Logged:
    """A metric that is logged.

    Attributes:
        columns: the columns that it reads besides the predictions.
        compute: returns its numbers for all columns, which are keywords.
    """

    columns: set[str]
    compute: Callable[..., dict[str, float]]


def make_compute_metrics(
    metric: "Loggable | Sequence[Loggable] | Mapping[str, Loggable]",
    tokenizer: "PreTrainedTokenizerBase",
    sources: Sequence[str] | None = None,
    **options: object,
) -> "Callable[[EvalPrediction], dict[str, float]]":
    """Makes a function for the argument `compute_metrics` of ``Seq2SeqTrainer``.

    The trainer needs ``predict_with_generate=True``. References are the decoded labels. Sources, if
    a metric reads them, are `sources`, or else the decoded inputs of the model: these need
    ``include_for_metrics=["inputs"]``, and include the prompt of the model, if there is one.

    Args:
        metric: a module that `evaluate.load` returned, or a scorer of this package. Several of
            these are a list, or a dictionary by name, which two of the same metric need. Among
            several, a metric that can compare with either side compares with its usual side, even
            if `sources` are passed.
        tokenizer: of the model.
        sources: texts parallel to the evaluation set. Leave them out with
            ``train_sampling_strategy="group_by_length"``, which reorders that set.
        **options: of the module's ``compute``, such as ``lang_pair="de-en"``; models that they name
            are loaded at once. Among several metrics, all modules of this package take them.

    Returns:
        A function that returns plain numbers: ``mean_score``, and the mean of each part, such as
        ``mover_part``; for a module of another package, the numbers of its result. The trainer logs
        them as ``eval_mean_score`` and so on. Where `metric` is a list or a dictionary, each number
        begins with the name of the metric: ``bertr_mean_score``.

    Raises:
        InputError: an option that the metric does not have, sources that no metric reads, a metric
            without a side to compare with, or two metrics of the same name.
        ArtifactError: something that an option names cannot be loaded.
    """
    if isinstance(metric, Mapping):
        logged = _logged_by_prefix(metric, options)
    elif isinstance(metric, Sequence):
        logged = _logged_by_prefix(_by_name(metric), options)
    else:
        logged = {"": _logged(metric, sources is not None, options)}
    columns = {column for metric in logged.values() for column in metric.columns}
    if sources is not None:
        if "sources" not in columns:
            raise InputError(
                "sources: the metric, as it is set up, does not read them; leave them out"
            )
        [sources] = check(sources=sources)

    def compute_metrics(evaluated: "EvalPrediction") -> dict[str, float]:
        predictions = _decoded(tokenizer, evaluated.predictions)
        texts = {}
        if "references" in columns:
            texts["references"] = _decoded(tokenizer, evaluated.label_ids)
        if sources is not None:
            texts["sources"] = list(sources)
        elif "sources" in columns:
            if evaluated.inputs is None:
                advice = (
                    'pass sources=, or include_for_metrics=["inputs"] to Seq2SeqTrainingArguments'
                )
                raise InputError(f"the metric reads sources: {advice}")
            texts["sources"] = _decoded(tokenizer, evaluated.inputs)
        numbers_by_key = {}
        for prefix, logged_metric in logged.items():
            columns_read = {column: texts[column] for column in logged_metric.columns}
            result = logged_metric.compute(predictions=predictions, **columns_read)
            numbers_by_key |= {f"{prefix}{key}": value for key, value in result.items()}
        return numbers_by_key

    return compute_metrics


def _by_name(metrics: "Sequence[Loggable]") -> "dict[str, Loggable]":
    """Names metrics; an `InputError` says that two have the same name."""
    by_name: dict[str, Loggable] = {}
    for metric in metrics:
        name = getattr(metric, "metric", None) or getattr(metric, "name", None)
        name = name or type(metric).__name__
        if name in by_name:
            raise InputError(
                f"metric: two are called {name!r}; pass a dictionary with a name for each, such as "
                f"{{'{name}_mini': ..., '{name}_paper': ...}}"
            )
        by_name[name] = metric
    return by_name


def _logged_by_prefix(
    metrics: "Mapping[str, Loggable]", options: dict[str, object]
) -> dict[str, _Logged]:
    """Prepares metrics, by the prefix of their numbers; only modules of this package take the
    options."""
    from mtmetrics.integrations.metric_module import MetricModule

    if not metrics:
        raise InputError("metric: empty; there is nothing to log")
    if options and not any(isinstance(metric, MetricModule) for metric in metrics.values()):
        raise InputError(
            f"{', '.join(options)}: options are for evaluate modules of mtmetrics; none is among "
            "the metrics"
        )
    logged = {}
    for name, metric in metrics.items():
        metric_options = options if isinstance(metric, MetricModule) else {}
        logged[f"{name}_"] = _logged(metric, False, metric_options)
    return logged


def _logged(metric: "Loggable", with_sources: bool, options: dict[str, object]) -> _Logged:
    """Prepares a metric with its options. With sources, it compares with these if it can and no
    option names another side."""
    from mtmetrics.integrations.metric_module import MetricModule
    from mtmetrics.scorers.base import Scorer

    if isinstance(metric, MetricModule):
        metric, options = _scorer(metric, with_sources, options), {}
    if isinstance(metric, Scorer):
        if options:
            raise InputError(
                f"{', '.join(options)}: options are for evaluate modules; a scorer is given them "
                "when it is made"
            )
        return _Logged(
            {*metric.side.columns},
            lambda **texts: _means(metric.score(**texts)),
        )
    features = getattr(metric, "features", None)
    if features is None:
        raise InputError(
            "metric: an evaluate module or a scorer is needed, or a list of them, got "
            f"{type(metric).__name__}"
        )
    variants = features if isinstance(features, list) else [features]
    names = {name for columns in variants for name in columns}
    return _Logged(
        names & {"sources", "references"},
        lambda **texts: _numbers(metric.compute(**texts, **options)),
    )


def _scorer(module: "MetricModule", with_sources: bool, options: dict[str, object]) -> "Scorer":
    """Returns the scorer of a module with its options."""
    from mtmetrics.scorers.metric import METRICS

    options = module.scorer_options | options
    metric = METRICS[module.metric_name]
    columns: Sequence[str] = metric.columns
    if with_sources and "source" in metric.sides and not metric.requested_side(options):
        columns = ["sources"]
    return module.scorer(
        **options | {"against": metric.resolve_side_without_preset(options, columns)}
    )


def _decoded(tokenizer: "PreTrainedTokenizerBase", tokens: object) -> list[str]:
    """Decodes (n, m) token ids to n texts; negative ids, such as -100, are padding."""
    import numpy as np

    tokens = np.asarray(tokens[0] if isinstance(tokens, tuple) else tokens)
    if tokens.ndim != 2 or not np.issubdtype(tokens.dtype, np.integer):
        advice = "set predict_with_generate=True in Seq2SeqTrainingArguments"
        raise InputError(f"predictions: token numbers are needed, not logits; {advice}")
    texts = tokenizer.batch_decode(
        [row[row >= 0].tolist() for row in tokens], skip_special_tokens=True
    )
    return [text.strip() for text in texts]


def _means(result: "MetricResult") -> dict[str, float]:
    parts = {f"{name}_part": float(values.mean()) for name, values in result.parts.items()}
    return {"mean_score": result.system} | parts


def _numbers(result: dict[str, object]) -> dict[str, float]:
    return {name: float(value) for name, value in result.items() if isinstance(value, numbers.Real)}
