"""Measures what a learned metric takes beside its encoder: ``regressor_bench.py --data FILE
[--metric M] [--preset P] [--json OUT]``.

The encoder alone encodes both columns of the judged segments up to its last layer, as an untrained
metric does; the metric encodes them as its networks read them, and scores them. Neither caches
anything. Seconds are those of the processor, summed over threads, so that other work on the machine
matters little. Exit code 0 whatever the numbers say."""

import sys
import time
from collections.abc import Sequence

from measure import Report, alternating, machine, options

from mtmetrics.judgements.judged import read_judged_segments
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.registry import load_scorer


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all measurements."""
    parser = options(__doc__, data="", required=True)
    parser.add_argument("--metric", default="esim", help="a learned metric (default: %(default)s)")
    parser.add_argument("--preset", default="mini", help="a preset of it (default: %(default)s)")
    parser.add_argument(
        "--repeats", type=int, default=5, help="turns of each contender (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    data = read_judged_segments(args.data)
    scorer = load_scorer(args.metric, preset=args.preset, pool=ModelPool(device="cpu"))
    [column] = scorer.side.columns
    others = getattr(data, column)
    columns = {column: others}
    keywords = scorer.network.encoder_options() | {"device": "cpu", "cache_bytes": 0}
    plain = TokenEncoder(scorer.network.encoder, **keywords | {"mix": None, "layer": None})
    scorer.encoder = read = TokenEncoder(scorer.network.encoder, **keywords)
    texts = [*others, *data.predictions]
    contenders = {
        "encoder, last layer": lambda: plain.encode(texts),
        "encoder, as it is read": lambda: read.encode(texts),
        "metric": lambda: scorer.score(data.predictions, **columns),
    }
    seconds = alternating(contenders, args.repeats, clock=time.process_time)
    report = Report()
    print(f"{args.metric}, preset {args.preset}; {machine()}")
    for name, value in seconds.items():
        report.add(f"{len(others)} pairs: {name}", value, "s")
    added = seconds["metric"] / seconds["encoder, last layer"] - 1
    report.add("what the metric adds to the encoder", added, "", "<= 0.15")
    report.finish(args.json, data=args.data, preset=args.preset, pairs=len(others))
    return 0


if __name__ == "__main__":
    sys.exit(main())
