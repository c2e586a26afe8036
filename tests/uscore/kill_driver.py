"""Runs `mtmetrics uscore` in child processes, and kills them at random moments; started by a test, as a program of its
own.

The arguments are the number of kills, a seed, and those of the command.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import faiss  # noqa: F401 (children inherit what is imported here, and start at once)
import sentence_transformers  # noqa: F401
import transformers  # noqa: F401

from mtmetrics.cli.main import main
from mtmetrics.uscore import production  # noqa: F401


def start(arguments: list[str]) -> int:
    """The process number of a child that runs the command."""
    child = os.fork()
    if child == 0:
        os._exit(main(arguments))
    return child


def finished_stages(log: Path) -> int:
    return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0


if __name__ == "__main__":
    kills, seed, *arguments = sys.argv[1:]
    generator = random.Random(seed)
    log = Path(arguments[arguments.index("--out") + 1]) / "log.jsonl"
    for _ in range(int(kills)):
        enough = finished_stages(log) + generator.randint(1, 3)
        child = start(arguments)
        while finished_stages(log) < enough and os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.005)
        time.sleep(generator.random() / 4)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print("killed after", finished_stages(log), "stages", file=sys.stderr)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(start(arguments), 0)[1]))
