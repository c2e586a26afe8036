"""Measures whether output that is no translation scores low: ``robustness_bench.py --data FILE ...
[--metric M ...]``.

For each file of judged segments: the score below which the worst tenth of its translations lies,
and how many of each kind of failure (`mtmetrics.training.labels.FAILURES`: copies of the source,
translations of another sentence, loops...) score below that. Use development data."""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mtmetrics.io.tables import jsonl_rows
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.styles import STYLES
from mtmetrics.scorers.spec import MetricSpec
from mtmetrics.training.labels import FAILURES, Output, failures

METRICS = ("esim:mini:against=source",)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a row for each metric and file."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", nargs="+", required=True, metavar="FILE", help="judged segments (JSON Lines)"
    )
    parser.add_argument("--metric", nargs="+", default=METRICS, help="default: %(default)s")
    parser.add_argument(
        "--segments", type=int, default=300, help="of each file, the first (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    pool = ModelPool(device="cpu")
    table = [["metric", "data", "worst tenth", "empty", *FAILURES]]
    for metric in args.metric:
        for path in args.data:
            rows = list(jsonl_rows(path))[: args.segments]
            pair = rows[0].text("lp")
            outputs = [
                Output(pair, row.text("source"), "", row.text("translation"), None, None)
                for row in rows
            ]
            found = failures(outputs, len(outputs) * len(FAILURES))
            scorer = MetricSpec.parse(metric).load_for(["sources"], pool, pair)
            columns = [
                *outputs,
                *(output for output, _ in found),
                outputs[0]._replace(translation=""),
            ]
            scores = scorer.score(
                [row.translation for row in columns], sources=[row.source for row in columns]
            )
            real, failed = np.split(scores.segments[:-1], [len(outputs)])
            bound = np.quantile(real, 0.1)
            kinds = np.array([output.system for output, _ in found])
            shares = [f"{(failed[kinds == kind] < bound).mean():.2f}" for kind in FAILURES]
            name = f"{Path(path).parent.name}/{Path(path).name.removesuffix('.jsonl.gz')}"
            table.append(
                [
                    metric,
                    name,
                    f"{bound:.3f}",
                    "yes" if scores.segments[-1] < bound else "no",
                    *shares,
                ]
            )
            print(*table[-1], file=sys.stderr)
    print(STYLES["markdown"](table, range(2, len(table[0]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
