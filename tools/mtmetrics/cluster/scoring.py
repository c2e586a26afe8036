"""Scores rows on a cluster: the worker for `mtmetrics.cluster.engine`, and the sum over its
blocks."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.checks import InputReport
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.registry import find_metric, load_scorer
from mtmetrics.scorers.results import CHUNK_LINES, joined
from mtmetrics.scorers.signature import with_references

if TYPE_CHECKING:
    import pyarrow

SCORE = "score"


class ScoringWorker:
    """Adds the columns ``score`` and the parts of the score to the rows of a block.

    Args:
        columns: what the metric compares with, and the translations.
        options: of `mtmetrics.scorers.registry.load_scorer`, `metric` among them; and `degenerate`,
            None or what to do with output that is no translation: ``keep``, ``floor`` or ``null``.
        pool: of `mtmetrics.models.pool.ModelPool`.
        workers: of a metric that has any of its own, unless `options` say so.

    Raises:
        InputError: a segment's score would depend on the other segments of its block, or as
            `load_scorer`.
    """

    def __init__(
        self,
        columns: Sequence[str],
        options: Mapping[str, Any],
        pool: Mapping[str, Any],
        *,
        workers: int,
    ) -> None:
        options = dict(options)
        if (
            "workers" in find_metric(options["metric"]).keywords()
            and options.get("workers") is None
        ):
            options["workers"] = workers
        self.columns, self.degenerate = columns, options.pop("degenerate", None)
        self.scorer = load_scorer(options.pop("metric"), pool=ModelPool(**pool), **options)
        if not self.scorer.independent:
            what = f"a segment's score depends on all others here ({self.scorer.signature})"
            raise InputError(
                f"{what}, so that blocks cannot be scored apart; pass --normalize fixed"
            )
        self.scorer.floor_degenerate = self.degenerate == "floor"
        self.scorer.require_floor()

    def __call__(self, table: "pyarrow.Table") -> "tuple[pyarrow.Table, dict[str, Any]]":
        """The table with its scores and, where `degenerate` says anything, what is `unusual` of
        each segment; the summary holds `count` and `total` of the scores that are known,
        `signature`, `report`, and `references`, the numbers of them that segments have."""
        *compared, predictions = (table[name].to_pylist() for name in self.columns)
        texts = dict(zip(self.scorer.side.columns, compared, strict=True))
        batch = Batch({"": predictions}, **texts)
        batches = batch.slices(CHUNK_LINES)
        results = [result for (result,) in self.scorer.score_batches(batches)]
        nothing = np.zeros(0)
        scores: dict[str, Any] = {SCORE: nothing} | dict.fromkeys(self.scorer._floor()[1], nothing)
        unusual: Any = np.zeros(0, dtype=str)
        report, signature = InputReport(), self.scorer.signature
        references: Collection[int] = ()
        if results:
            result = joined(results)
            result = result.without_degenerate() if self.degenerate == "null" else result
            scores, report = {SCORE: result.segments} | result.parts, result.report
            signature, unusual = result.signature, result.unusual_names()
            references = result.reference_counts
        known = scores[SCORE][~np.isnan(scores[SCORE])]
        for name, values in (scores | ({"unusual": unusual} if self.degenerate else {})).items():
            if name in table.column_names:
                raise InputError(f"the input has a column {name!r}, which scoring adds; rename it")
            table = table.append_column(name, [values])
        summary = {
            "count": len(known),
            "total": math.fsum(known),
            "signature": signature,
            "report": report.as_dict(),
        }
        return table, summary | {"references": sorted(references)}


def total(blocks: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], InputReport]:
    """Sums up all blocks: `MetricResult.as_dict` without the scores, and the report.

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
        what = f"blocks were scored differently ({signatures[0]} and {signatures[1]})"
        raise MTMetricsError(
            f"{what}; pass --dtype float32, use one version on all nodes, and another --out"
        )
    count = sum(block["count"] for block in blocks)
    if not count:
        raise InputError("there is nothing to score: not a single row can be used")
    report = InputReport()
    for block in blocks:
        report.add(InputReport(**block["report"]))
    mean = math.fsum(block["total"] for block in blocks) / count
    return {"mean_score": mean, "signature": signatures[0], "report": report.as_dict()}, report
