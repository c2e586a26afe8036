"""Measures what number formats gain and cost: ``dtype_bench.py --data FILE... [--metric NAME ...]
[--json OUT]``.

For each metric and format: processor seconds against float32, the change of Pearson's r (mean over
the files), and the largest change of a score by the size of batches, in standard deviations of the
score. int8 is no format of the package; it is tried here by torch's dynamic quantisation of linear
layers, per channel. Exit code 0 whatever the numbers say."""

import sys
import time
import warnings
from collections.abc import Sequence

import numpy as np
from measure import Report, machine, options

from mtmetrics.judgements.judged import Judged, read_judged_segments
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.spec import MetricSpec
from mtmetrics.statistics.correlation import pearson

METRICS = ("xmoverscore:mini:lm=none", "esim:mini:against=source")
FORMATS = ("float32", "bfloat16", "int8")
BATCHES = (4096, 512)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all measurements."""
    parser = options(__doc__)
    parser.add_argument(
        "--data", metavar="FILE", nargs="+", required=True, help="JSON Lines of judged segments"
    )
    parser.add_argument(
        "--metric", nargs="+", default=METRICS, help="NAME:PRESET (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    files = [read_judged_segments(path) for path in args.data]
    report = Report()
    print(machine())
    for metric in args.metric:
        found = {name: [_measured(metric, name, file) for file in files] for name in FORMATS}
        plain = found["float32"]
        for name, runs in found.items():
            faster = sum(seconds for seconds, _, _ in plain) / sum(
                seconds for seconds, _, _ in runs
            )
            report.add(f"{metric}, {name}: times as fast as float32", faster)
            change = np.mean(
                [r - other for (_, r, _), (_, other, _) in zip(runs, plain, strict=True)]
            )
            report.add(f"{metric}, {name}: change of Pearson's r", float(change))
            report.add(
                f"{metric}, {name}: largest change by batch size",
                max(moved for _, _, moved in runs),
                "sd",
            )
    report.finish(args.json, data=args.data, pairs=sum(map(len, files)))
    return 0


def _measured(metric: str, dtype: str, data: Judged) -> tuple[float, float, float]:
    """Processor seconds, Pearson's r, and the largest change of a score by batch size."""
    scores, seconds = [], []
    for batch_tokens in BATCHES:
        pool = ModelPool(
            device="cpu", dtype="float32" if dtype == "int8" else dtype, batch_tokens=batch_tokens
        )
        scorer = MetricSpec.parse(metric).load(pool, data.lang_pair)
        if dtype == "int8":
            _quantise(scorer.encoder)  # type: ignore[attr-defined]
        start = time.process_time()
        scores.append(
            scorer.score(
                data.predictions, **{scorer.side.columns[0]: getattr(data, scorer.side.columns[0])}
            ).segments
        )
        seconds.append(time.process_time() - start)
    moved = float(np.abs(scores[0] - scores[1]).max() / scores[0].std())
    return seconds[0], pearson(scores[0], data.human).value, moved


def _quantise(encoder: object) -> None:
    import torch
    from torch.ao import quantization

    kinds = {torch.nn.Linear: quantization.per_channel_dynamic_qconfig}
    [(states, _)] = encoder._network._runner.replicas  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in states._blocks:
            quantization.quantize_dynamic(block, kinds, inplace=True)


if __name__ == "__main__":
    sys.exit(main())
