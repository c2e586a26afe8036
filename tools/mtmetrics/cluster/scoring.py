"""Scoring of rows on a cluster: the worker for `mtmetrics.cluster.engine`, and the mean over its
blocks."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mtmetrics.checks import InputReport
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.lines import JsonObject
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.registry import find_metric, load_scorer
from mtmetrics.scorers.results import BATCH_SEGMENTS, MetricResult, join_results
from mtmetrics.scorers.signature import with_references

if TYPE_CHECKING:
    import pyarrow

SCORE = "score"


class ScoringWorker:
    """Adds the columns ``score`` and the parts of the score to the rows of a block.

    Args:
        columns: of the texts that the metric compares with, and of the translations.
        options: ``metric``, and the options of `mtmetrics.scorers.registry.load_scorer`; and
            ``degenerate``, None, or the fate of output that is no translation: ``keep``, ``floor``
            or ``null``.
        pool: keywords of `mtmetrics.models.pool.ModelPool`.
        workers: option ``workers`` of a metric that has it, unless `options` set it.

    Raises:
        InputError: a segment's score would depend on the other segments of its block, or an error of
            `load_scorer`.
    """

    def __init__(
        self,
        columns: Sequence[str],
        options: JsonObject,
        pool: JsonObject,
        *,
        workers: int,
    ) -> None:
        options = dict(options)
        metric = options.pop("metric")
        if "workers" in find_metric(metric).keywords() and options.get("workers") is None:
            options["workers"] = workers
        self.columns, self.degenerate = columns, options.pop("degenerate", None)
        self.scorer = load_scorer(metric, pool=ModelPool(**pool), **options)
        if not self.scorer.has_independent_segments:
            raise InputError(
                "a segment's score depends on all others here "
                f"({self.scorer.signature}), so that blocks cannot be scored apart; pass "
                "--normalize fixed"
            )
        self.scorer.floor_degenerate = self.degenerate == "floor"
        self.scorer.require_floor()

    def __call__(self, table: "pyarrow.Table") -> "tuple[pyarrow.Table, JsonObject]":
        """Scores the rows of a block, which may be empty.

        Returns:
            The table with the scores; with `degenerate`, also with the column ``unusual``, names of
            oddities of each segment. And the summary: ``count`` and ``total`` of the scores that
            are numbers, ``signature``, ``report``, and ``references``, the numbers of references
            that segments have.
        """
        *compared, predictions = (table[name].to_pylist() for name in self.columns)
        texts = dict(zip(self.scorer.side.columns, compared, strict=True))
        batches = Batch({"": predictions}, **texts).slices(BATCH_SEGMENTS)
        results = [result for (result,) in self.scorer.score_batches(batches)]
        if results:
            result = join_results(results)
            if self.degenerate == "null":
                result = result.with_degenerate_as_nan()
        else:
            no_scores = np.zeros(0)
            _, floor_parts = self.scorer.floor_with_parts()
            parts = dict.fromkeys(floor_parts, no_scores)
            signature = self.scorer.signature
            result = MetricResult(no_scores, parts, no_scores, InputReport(), signature)
        new_columns = {SCORE: result.segments} | result.parts
        if self.degenerate:
            new_columns["unusual"] = np.array(result.unusual_names(), dtype=str)
        for name, values in new_columns.items():
            if name in table.column_names:
                raise InputError(f"the input has a column {name!r}, which scoring adds; rename it")
            table = table.append_column(name, [values])
        numbers = result.segments[~np.isnan(result.segments)]
        summary = {
            "count": len(numbers),
            "total": math.fsum(numbers),
            "signature": result.signature,
            "report": result.report.as_dict(),
            "references": sorted(result.reference_counts),
        }
        return table, summary


def total(blocks: Sequence[JsonObject]) -> tuple[JsonObject, InputReport]:
    """Computes the mean score over the summaries of all blocks.

    Returns:
        `MetricResult.as_dict` without the scores of segments; and the report.

    Raises:
        InputError: there is not a single segment.
        MTMetricsError: blocks were scored differently, as where ``dtype="auto"`` is not the same on
            all nodes.
    """
    counts = {number for block in blocks for number in block.get("references", ())}
    signatures = sorted(
        {with_references(block["signature"], counts) for block in blocks if block["count"]}
    )
    if len(signatures) > 1:
        raise MTMetricsError(
            f"blocks were scored differently ({signatures[0]} and {signatures[1]}); pass --dtype "
            "float32, use one version on all nodes, and another --out"
        )
    count = sum(block["count"] for block in blocks)
    if not count:
        raise InputError("there is nothing to score: not a single row can be used")
    report = InputReport()
    for block in blocks:
        report.add(InputReport(**block["report"]))
    mean = math.fsum(block["total"] for block in blocks) / count
    return {"mean_score": mean, "signature": signatures[0], "report": report.as_dict()}, report
