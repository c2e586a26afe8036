"""Runs `mtmetrics train uscore` in child processes, which are killed; started by a test, as a program of
its own.

The arguments are a folder to make without kills, a training stage to kill at, after its third step,
and those of the command, which is killed at random first. Trainings keep a checkpoint every other
step."""

import functools
import os
import random
import signal
import sys
import time
from pathlib import Path

import faiss  # noqa: F401 (children inherit what is imported here, and start at once)
import sentence_transformers  # noqa: F401
import transformers

from mtmetrics.cli.main import main
from mtmetrics.training.run import Run
from mtmetrics.uscore import production

for name in ("ContrastiveConfig", "DenoisingConfig", "TranslationConfig"):
    setattr(production, name, functools.partial(getattr(production, name), checkpoint_every=2))


class Kill(transformers.TrainerCallback):
    """Kills its own process after the third step."""

    def on_step_end(
        self, args: object, state: transformers.TrainerState, *_: object, **__: object
    ) -> None:
        if state.global_step == 3:
            os.kill(os.getpid(), signal.SIGKILL)


def start(arguments: list[str], kill_in: str = "") -> int:
    """The process number of a child that runs the command, and kills itself in the training of a
    stage."""
    child = os.fork()
    if child == 0:
        train = Run.train

        def killed(run: Run, trainer: transformers.Trainer) -> None:
            if kill_in and run.work.name.startswith(f"{kill_in}."):
                trainer.add_callback(Kill())
            train(run, trainer)

        Run.train = killed
        os._exit(main(arguments))
    return child


def finished_stages(log: Path) -> int:
    return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    whole, stage, *arguments = sys.argv[1:]
    place = arguments.index("--out") + 1
    log = Path(arguments[place]) / "log.jsonl"
    if failed := wait(start([*arguments[:place], whole, *arguments[place + 1 :]])):
        sys.exit(failed)
    generator = random.Random(7)
    enough = generator.randint(1, 3)
    child = start(arguments)
    while finished_stages(log) < enough and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.005)
    time.sleep(generator.random() / 4)
    os.kill(child, signal.SIGKILL)
    print("killed at random by signal", wait(child), file=sys.stderr)
    print("killed at", stage, "by signal", wait(start(arguments, kill_in=stage)), file=sys.stderr)
    sys.exit(wait(start(arguments)))
