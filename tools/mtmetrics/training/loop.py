"""The work folder of a run, and the settings of `transformers.Trainer` that all our trainings share."""

import contextlib
import dataclasses
import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mtmetrics.artifacts.files import write_atomic
from mtmetrics.errors import InputError
from mtmetrics.extras import require_extra
from mtmetrics.inputs import positive


class Run:
    """Where a training writes, what it does with what lies there already, and its seed.

    Args:
        output: the artifact folder to make.
        seed: of everything random.
        work: folder for checkpoints, ``OUTPUT.work`` by default; the same call goes on where it was interrupted.
        overwrite: replace an existing artifact.
        restart: discard what an earlier run left in `work`.
    """

    def __init__(
        self,
        output: str | Path,
        *,
        seed: int = 1,
        work: str | Path | None = None,
        overwrite: bool = False,
        restart: bool = False,
    ) -> None:
        self.output = Path(output)
        self.seed = seed
        self.work = Path(work) if work else self.output.with_name(self.output.name + ".work")
        self.overwrite = overwrite
        self.restart = restart

    def open(self, config: Any, settings: dict[str, Any], files: Sequence[str | Path]) -> dict[str, Any]:
        """Opens the work folder: a new one, or one that the same settings and files began.

        Args:
            config: the settings of the training, a dataclass.
            settings: what else shapes the result, besides the seed.
            files: the data; a resumed run must see the same files.

        Returns:
            Seed, config and settings together, for the artifact's record.

        Raises:
            InputError: the artifact exists and may not be replaced, a file is missing, the run is shorter than the rise
                and fall of its learning rate, or the folder belongs to another run.
        """
        if self.output.exists() and not self.overwrite:
            raise InputError(f"{self.output} exists already; choose another folder or pass --overwrite")
        if isinstance(config, Schedule) and config.steps < config.warmup_steps + config.decay_steps:
            raise InputError(
                f"{config.steps} steps are fewer than {config.warmup_steps} of warm-up and {config.decay_steps} of decay"
            )
        settings = {"seed": self.seed, "config": dataclasses.asdict(config), **settings}
        files_as_found = fingerprint_files(files)
        path = self.work / "settings.json"
        if self.restart and path.exists():
            shutil.rmtree(self.work)
        text = json.dumps({**settings, "files": files_as_found}, indent=2, sort_keys=True, default=str) + "\n"
        began = path.exists() and any(item != path for item in self.work.iterdir())
        if began and path.read_text(encoding="utf-8") != text:
            raise InputError(
                f"{self.work} holds a run with other settings; pass --restart to discard it, or another --work"
            )
        self.work.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)
        return settings

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """What `compute` returned when this run first came here: a JSON value, kept in the work folder."""
        path = self.work / f"{name}.json"
        if not path.exists():
            write_atomic(path, json.dumps(compute()))
        return json.loads(path.read_text(encoding="utf-8"))

    def train(self, trainer: Any) -> list[dict[str, Any]]:
        """Trains, going on from the latest checkpoint if there is one, and returns the logged numbers.

        A resumed run ends with the same weights as an uninterrupted one: data order, schedule, optimiser and random
        states come from the checkpoint. (With the same number of threads on the same machine; otherwise up to
        rounding.)
        """
        # Its state is the last file of a checkpoint: a folder without it was cut off while it was written.
        whole = [state.parent for state in (self.work / "checkpoints").glob("checkpoint-*/trainer_state.json")]
        last = max(whole, key=lambda folder: int(folder.name.removeprefix("checkpoint-")), default=None)
        # The trainer prints its log; standard output is for results.
        with contextlib.redirect_stdout(sys.stderr):
            trainer.train(resume_from_checkpoint=str(last) if last else None)
        return list(trainer.state.log_history)


def fingerprint_files(paths: Sequence[str | Path]) -> dict[str, str]:
    """Size and modification time of the data files: a resumed run must see the same ones."""
    result = {}
    for path in paths:
        file = Path(path)
        if not file.is_file():
            raise InputError(f"{path}: no such file")
        stat = file.stat()
        result[str(path)] = hashlib.sha256(f"{stat.st_size} {stat.st_mtime_ns}".encode()).hexdigest()[:16]
    return result


@runtime_checkable
class Schedule(Protocol):
    """What the settings of every training with `transformers.Trainer` have in common."""

    steps: int
    warmup_steps: int
    decay_steps: int
    checkpoint_every: int
    bf16: bool


@dataclasses.dataclass(frozen=True)
class Passes:
    """The `Schedule` of whole passes over the data: the learning rate rises, and from then on falls to zero.

    Attributes:
        steps: in all.
        warmup_steps: in which it rises.
        checkpoint_every: steps between checkpoints.
        bf16: compute in bfloat16 where it is safe.
    """

    steps: int
    warmup_steps: int
    checkpoint_every: int
    bf16: bool

    @property
    def decay_steps(self) -> int:
        """Steps in which the learning rate falls: all others."""
        return self.steps - self.warmup_steps

    @classmethod
    def over(cls, rows: int, config: "EpochConfig") -> "Passes":
        """The schedule for a number of rows.

        Raises:
            InputError: the settings allow no step.
        """
        size, epochs = positive("pairs_per_step", config.pairs_per_step), positive("epochs", config.epochs)
        if not 0.0 <= config.warmup < 1.0:
            raise InputError(f"warmup {config.warmup}: a share of the steps is needed, at least 0 and below 1")
        steps = -(-rows // size) * epochs
        return cls(steps, int(steps * config.warmup), config.checkpoint_every, config.bf16)


class EpochConfig(Protocol):
    """What the settings of trainings by whole passes have in common."""

    epochs: int
    pairs_per_step: int
    warmup: float
    checkpoint_every: int
    bf16: bool


def trainer_settings(
    work: Path,
    config: Schedule,
    learning_rate: float,
    seed: int,
    *,
    evaluate_every: int | None = None,
    rows_per_step: int = 1,
    arguments: Callable[..., Any] | None = None,
) -> Any:
    """The `TrainingArguments` of a run that checkpoints into `work`.

    The learning rates rise for `warmup_steps`, stay, and fall to zero in the last `decay_steps`; until these begin, a
    run does not depend on its length.

    Args:
        work: the work folder.
        config: steps, schedule and precision.
        learning_rate: its peak.
        seed: of data order and dropout.
        evaluate_every: steps between evaluations; None for none.
        rows_per_step: rows of the data set per step.
        arguments: the class to make, for trainers that ask for their own; `TrainingArguments` if not given.

    Raises:
        MTMetricsError: a package is missing that trainers need.
    """
    require_extra("train", "training")
    import torch
    from transformers import TrainingArguments

    return (arguments or TrainingArguments)(
        output_dir=str(work / "checkpoints"),
        max_steps=config.steps,
        per_device_train_batch_size=rows_per_step,
        learning_rate=learning_rate,
        lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={"num_decay_steps": config.decay_steps, "decay_type": "linear"},
        warmup_steps=config.warmup_steps,
        max_grad_norm=1.0,
        bf16=config.bf16,
        use_cpu=not torch.cuda.is_available(),
        seed=seed,
        data_seed=seed,
        save_strategy="steps",
        save_steps=config.checkpoint_every,
        save_total_limit=2,
        eval_strategy="no" if evaluate_every is None else "steps",
        eval_steps=evaluate_every,
        logging_steps=50,
        report_to=[],
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
