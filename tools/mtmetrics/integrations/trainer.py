"""Metrics for ``Seq2SeqTrainer`` of `transformers`: what it generates is decoded and scored at every evaluation."""

import numbers
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mtmetrics.checks import check
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    import evaluate
    from transformers import EvalPrediction

    from mtmetrics.integrations.metric_module import MetricModule
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.results import MetricResult

Compute = Callable[..., dict[str, float]]


def make_compute_metrics(
    metric: "evaluate.EvaluationModule | Scorer", tokenizer: Any, sources: Sequence[str] | None = None, **options: Any
) -> "Callable[[EvalPrediction], dict[str, float]]":
    """A function for the argument `compute_metrics` of ``Seq2SeqTrainer``, which must have
    ``predict_with_generate=True``.

    References are the decoded labels. Sources, where the metric reads them, are `sources`, or the decoded inputs of the
    model; those need ``include_for_metrics=["inputs"]``, and hold the prompt too if the model is given one.

    Args:
        metric: a module that `evaluate.load` returned, or a scorer of this package.
        tokenizer: of the model.
        sources: texts parallel to the evaluation set. ``train_sampling_strategy="group_by_length"`` reorders that:
            leave them out then.
        **options: of the module's ``compute``, such as ``lang_pair="de-en"``; models that they name are loaded at once.

    Returns:
        A function that returns plain numbers: ``mean_score``, and the mean of each part, such as ``mover_part``; for
        modules of other packages the numbers that they return. The trainer logs them as ``eval_mean_score`` and so on.

    Raises:
        InputError: an option that the metric does not have, sources that it does not read, or nothing says what it
            compares with.
        ArtifactError: something that an option names cannot be loaded.
    """
    columns, compute = _prepared(metric, sources is not None, options)
    if sources is not None:
        if "sources" not in columns:
            raise InputError("sources: the metric, as it is set up, does not read them; leave them out")
        [sources] = check(sources=sources)

    def compute_metrics(evaluated: "EvalPrediction") -> dict[str, float]:
        texts = {"predictions": _decoded(tokenizer, evaluated.predictions)}
        if "references" in columns:
            texts["references"] = _decoded(tokenizer, evaluated.label_ids)
        if sources is not None:
            texts["sources"] = list(sources)
        elif "sources" in columns:
            if evaluated.inputs is None:
                advice = 'pass sources=, or include_for_metrics=["inputs"] to Seq2SeqTrainingArguments'
                raise InputError(f"the metric reads sources: {advice}")
            texts["sources"] = _decoded(tokenizer, evaluated.inputs)
        return compute(**texts)

    return compute_metrics


def _prepared(metric: Any, with_sources: bool, options: dict[str, Any]) -> tuple[set[str], Compute]:
    """The columns that the metric reads besides the predictions, and a function of them all."""
    from mtmetrics.integrations.metric_module import MetricModule
    from mtmetrics.scorers.base import Scorer

    if isinstance(metric, MetricModule):
        metric, options = _scorer(metric, with_sources, options), {}
    if isinstance(metric, Scorer):
        if options:
            why = "options are for evaluate modules; a scorer is given them when it is made"
            raise InputError(f"{', '.join(options)}: {why}")
        return {*metric.compares}, lambda predictions, **texts: _means(
            metric.score(metric.compared(texts), predictions)
        )
    features = getattr(metric, "features", None)
    if features is None:
        raise InputError(f"metric: a single evaluate module or a scorer is needed, got {type(metric).__name__}")
    known = {name for one in (features if isinstance(features, list) else [features]) for name in one}
    return known & {"sources", "references"}, lambda **texts: _numbers(metric.compute(**texts, **options))


def _scorer(module: "MetricModule", with_sources: bool, options: dict[str, Any]) -> "Scorer":
    from mtmetrics.scorers.metric import METRICS

    options = module.scorer_options | options
    metric = METRICS[module.metric_name]
    alone = with_sources and "source" in metric.sides and not metric.asked(options)
    given = ["sources"] if alone else metric.columns
    return module.scorer(**options | {"against": metric.side(options, given)})


def _decoded(tokenizer: Any, tokens: Any) -> list[str]:
    """Texts of (n, m) token numbers; negative ones, such as -100, are padding."""
    import numpy as np

    tokens = np.asarray(tokens[0] if isinstance(tokens, tuple) else tokens)
    if tokens.ndim != 2 or not np.issubdtype(tokens.dtype, np.integer):
        advice = "set predict_with_generate=True in Seq2SeqTrainingArguments"
        raise InputError(f"predictions: token numbers are needed, not logits; {advice}")
    texts = tokenizer.batch_decode([row[row >= 0].tolist() for row in tokens], skip_special_tokens=True)
    return [text.strip() for text in texts]


def _means(result: "MetricResult") -> dict[str, float]:
    parts = {f"{name}_part": float(values.mean()) for name, values in result.parts.items()}
    return {"mean_score": result.system} | parts


def _numbers(result: dict[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in result.items() if isinstance(value, numbers.Real)}
