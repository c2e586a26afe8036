"""Measures how long the first answer takes: ``startup_bench.py [--json OUT]``.

Processor seconds of whole processes: ``mtmetrics --help``; ``import torch, transformers``; the
first score of one pair with the bundled preset; and which heavy packages that has imported. Exit
code 0 whatever the numbers say."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import Report, machine, options

HEAVY = (
    "datasets",
    "evaluate",
    "sentence_transformers",
    "matplotlib",
    "ray",
    "gradio",
    "faiss",
    "pandas",
    "sklearn",
)
_SCORE = (
    "-m",
    "mtmetrics",
    "score",
    "--metric",
    "xmoverscore",
    "--preset",
    "mini",
    "--lp",
    "de-en",
    "--format",
    "tsv",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all measurements."""
    parser = options(__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="turns (default: %(default)s)")
    args = parser.parse_args(argv)
    report = Report()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        pair = Path(folder) / "pair.tsv"
        pair.write_text("Das Haus ist klein.\tThe house is small.\n", encoding="utf-8")
        commands = {
            "mtmetrics --help": ("-m", "mtmetrics", "--help"),
            "import torch, transformers": ("-c", "import torch, transformers"),
            "first score of one pair": (*_SCORE, str(pair)),
        }
        seconds = {name: [] for name in commands}
        for _ in range(args.repeats):
            for name, command in commands.items():
                seconds[name].append(_processor_seconds(command))
        called = f"import sys, runpy; sys.argv = {[*_SCORE[1:], str(pair)]!r}\n"
        called += (
            "try:\n "
            "   runpy.run_module('mtmetrics', run_name='__main__')\nexcept SystemExit:\n "
            "   pass\n"
        )
        called += f"print(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)"
        done = subprocess.run(
            [sys.executable, "-c", called], capture_output=True, text=True, check=True
        )
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    for name, value in middle.items():
        report.add(name, value, "s", "<= 0.25" if name == "mtmetrics --help" else "")
    ratio = middle["first score of one pair"] / middle["import torch, transformers"]
    report.add("first score / import torch, transformers", ratio, "", "<= 1.3")
    print(f"heavy packages that the score imports: {done.stderr.splitlines()[-1] or 'none'}")
    report.finish(args.json)
    return 0


def _processor_seconds(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], capture_output=True, check=True, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
