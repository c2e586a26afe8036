"""Measures how long `mtmetrics serve` takes for a request: ``service_bench.py --data FILE [--metric
NAME ...]``.

Each metric is served in a process of its own, on one thread, and is sent one segment per request,
one after the other on one connection: sources and translations of the first segments of a file of
judged segments. Prints the median and the 95th percentile in milliseconds, and the seconds for all
requests."""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np

from mtmetrics.judgements.judged import read_judged_segments

METRICS = ("xmoverscore:mini", "esim:mini:against=source", "source_length")
WARM = 20


def main() -> None:
    """Measures the metrics one by one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", required=True, help="JSON Lines of judged segments")
    parser.add_argument("--metric", nargs="+", default=METRICS, help="(default: %(default)s)")
    parser.add_argument("--requests", type=int, default=300, help="(default: %(default)s)")
    args = parser.parse_args()
    judged = read_judged_segments(args.data)
    pairs = list(zip(judged.sources, judged.predictions, strict=True))
    for metric in args.metric:
        milliseconds = 1000 * np.array(times(metric, judged.lang_pair, pairs, args.requests))
        middle, slow = np.quantile(milliseconds, (0.5, 0.95))
        print(
            f"{metric}: {middle:.1f} ms, 95 % {slow:.1f} ms, all {args.requests} in "
            f"{milliseconds.sum() / 1000:.1f} s"
        )


def times(metric: str, lang_pair: str, pairs: list[tuple[str, str]], count: int) -> list[float]:
    """The seconds of each request, after some that do not count."""
    call = [
        sys.executable,
        "-m",
        "mtmetrics",
        "serve",
        "--metric",
        metric,
        "--lp",
        lang_pair,
        "--port",
        "0",
    ]
    served = subprocess.Popen(
        call, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    try:
        assert served.stdout is not None
        address = served.stdout.readline().split("/")[2]
        connection = http.client.HTTPConnection(address)
        found = []
        for number in range(-WARM, count):
            source, translation = pairs[number % len(pairs)]
            body = json.dumps({"source": source, "translation": translation})
            started = time.perf_counter()
            connection.request("POST", "/score", body)
            answer = connection.getresponse()
            answer.read()
            found.append(time.perf_counter() - started)
            if answer.status != 200:
                raise SystemExit(f"{metric}: answered {answer.status}")
        return found[WARM:]
    finally:
        served.send_signal(signal.SIGINT)
        served.wait()


if __name__ == "__main__":
    main()
