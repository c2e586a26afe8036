"""The unmodified client of the Hub, in processes of its own that know only the loopback Hub."""

import json
import multiprocessing
import os
import tempfile
from pathlib import Path

from hub_program import run_program
from loopback import LoopbackHub

# Processes begin as copies of one that has imported what takes long, and nothing of the Hub.
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["torch", "safetensors.torch", "tokenizers", "httpx2"])
SOURCE_ROOT = Path(__file__).parents[2] / "tools"
# Runs one command line after the other; prints a line of JSON with exit code, output and messages
# of each.
COMMANDS = """
import contextlib, io, json, os, sys
from mtmetrics.cli.main import main
for step in json.loads(sys.argv[1]):
    os.environ.update(step.get("environment", {}))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(step["arguments"])
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


class Process:
    """A program in a process of its own, whose output goes into files."""

    def __init__(
        self, program: str, argv: list[str], environment: dict[str, str], cwd: Path, outputs: Path
    ) -> None:
        self.files = [outputs / "out", outputs / "err"]
        arguments = (program, argv, environment, cwd, self.files)
        self.process = FORKED.Process(target=run_program, args=arguments)
        self.process.start()

    def kill(self) -> None:
        """Kills the process, and waits until it is gone."""
        self.process.kill()
        self.process.join()

    def wait(self) -> int | None:
        """Returns the exit code; None after three minutes without one."""
        self.process.join(180)
        return self.process.exitcode

    def outputs(self) -> tuple[str, str]:
        """Standard output and standard error so far."""
        out, err = (path.read_text(encoding="utf-8") for path in self.files)
        return out, err


class Client:
    """Starts processes that know only the loopback Hub and a home, whatever the environment of the
    tests says."""

    def __init__(self, hub: LoopbackHub, home: Path) -> None:
        self.hub, self.home = hub, home

    def start(
        self, program: str, *argv: str, cwd: Path | None = None, **environment: str
    ) -> Process:
        foreign = ("HF_", "HUGGING", "TRANSFORMERS_", "MTMETRICS_", "SENTENCE_")
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(foreign)
        }
        settings = {"HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.home), "HF_TOKEN": "hf_test"}
        settings |= {
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        }
        settings |= {"NO_PROXY": "127.0.0.1", "PYTHONPATH": str(SOURCE_ROOT)}
        outputs = Path(tempfile.mkdtemp(dir=self.home.parent))
        return Process(
            program, list(argv), inherited | settings | environment, cwd or Path.cwd(), outputs
        )

    def run(self, program: str, *argv: str, cwd: Path | None = None, **environment: str) -> str:
        """Returns the output of a program, which must not fail."""
        return finished(self.start(program, *argv, cwd=cwd, **environment))

    def commands(self, *steps: list[str] | dict, **environment: str) -> list[tuple[int, str, str]]:
        """Exit code, output and messages of command lines that run one after the other in one
        process."""
        rows = self.run(COMMANDS, as_steps(*steps), **environment).splitlines()
        return [tuple(json.loads(row)) for row in rows]


def as_steps(*steps: list[str] | dict) -> str:
    return json.dumps(
        [step if isinstance(step, dict) else {"arguments": list(map(str, step))} for step in steps]
    )


def finished(process: Process) -> str:
    code = process.wait()
    out, err = process.outputs()
    assert code == 0, err
    return out
