"""Measures how many pairs each bundled preset scores in a second of the processor, from text to
score: ``presets_bench.py --data FILE [--metric NAME:PRESET ...] [--json OUT]``. Metrics joined by
`` + `` are asked in one call; what they cost is also told in multiples of the dearest of them.

Models are loaded before; nothing is cached from one turn to the next. Exit code 0 whatever the
numbers say."""

import gc
import sys
import time
from collections.abc import Callable, Sequence

from measure import Report, alternating, machine, options

from mtmetrics.judgements.judged import read_judged_segments
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.metric_runs import score_together
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.spec import MetricSpec

PRESETS = (
    "xmoverscore:mini",
    "xmoverscore:mini:lm=none",
    "sentsim:mini:setting=src-mt",
    "sentsim:mini:setting=mt-ref",
    "distilscore:mini:against=source",
    "distilscore:mini:against=reference",
    "bertr:mini:against=source",
    "bertr:mini:against=reference",
    "uscore:mini",
    "uscore:mini-de-en",
    "esim:mini:against=source",
    "esim:mini:against=reference",
    "bilstm_attention:mini",
    "bilstm:mini",
    "bilstm:mini + bilstm_attention:mini + esim:mini:against=reference",
    "xmoverscore:mini + sentsim:mini:setting=src-mt + distilscore:mini:against=source + "
    "bertr:mini:against=reference + uscore:mini + bilstm:mini + bilstm_attention:mini + "
    "esim:mini:against=source",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all measurements."""
    parser = options(__doc__, data=", de-en, with references", required=True)
    parser.add_argument(
        "--repeats", type=int, default=2, help="turns of each preset (default: %(default)s)"
    )
    parser.add_argument(
        "--metric",
        nargs="+",
        default=PRESETS,
        help="NAME:PRESET (default: every bundled preset that scores German)",
    )
    args = parser.parse_args(argv)
    data = read_judged_segments(args.data)
    report = Report()
    print(machine())
    rates: dict[str, float] = {}
    for text in args.metric:
        specs = [MetricSpec.parse(name) for name in text.split(" + ")]

        def load(specs: Sequence[MetricSpec] = specs) -> list[Scorer]:
            pool = ModelPool(device="cpu")
            return [spec.load(pool, data.lang_pair) for spec in specs]

        def score(load: Callable[[], list[Scorer]] = load) -> None:
            score_together(load(), data)

        seconds = alternating(
            {"load and score": score, "load": load}, args.repeats, clock=time.process_time
        )
        rates[text] = len(data) / (seconds["load and score"] - seconds["load"])
        report.add(text, rates[text], "pairs/s")
        alone = [rates[name] for name in text.split(" + ") if name in rates]
        if len(specs) > 1 and alone:
            report.add("  times the dearest of them alone", min(alone) / rates[text])
        gc.collect()
    report.finish(args.json, data=args.data, pairs=len(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
