"""Runs a program in a forked process. It stands alone, so that the process imports nothing that
reads the environment of the tests."""

import os
import sys
from pathlib import Path


def run_program(
    program: str, argv: list[str], environment: dict[str, str], folder: Path, files: list[Path]
) -> None:
    """Runs the text of a program with its arguments, environment and working folder.

    Args:
        files: what takes standard output, and what takes standard error.
    """
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(files, start=1):
        with open(path, "wb") as stream:
            os.dup2(stream.fileno(), number)
    os.chdir(folder)
    sys.path.insert(0, environment["PYTHONPATH"])
    sys.argv = ["-c", *argv]
    exec(program, {"__name__": "__main__"})
