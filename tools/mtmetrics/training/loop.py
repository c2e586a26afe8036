"""The work folder of a run, and the settings of `transformers.Trainer` that all our trainings share."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.files import write_atomic
from mtmetrics.errors import InputError


def places(output: str | Path, work: str | Path | None, overwrite: bool) -> tuple[Path, Path]:
    """The artifact folder to make and the folder for checkpoints, ``OUTPUT.work`` by default.

    Raises:
        InputError: the artifact exists and may not be replaced.
    """
    output = Path(output)
    if output.exists() and not overwrite:
        raise InputError(f"{output} exists already; choose another folder or pass --overwrite")
    return output, Path(work) if work else output.with_name(output.name + ".work")


def open_work(work: Path, settings: dict[str, Any], restart: bool = False) -> None:
    """Opens the work folder of a run: a new one, or one that the same settings began.

    Raises:
        InputError: the folder belongs to a run with other settings.
    """
    if restart and (work / "settings.json").exists():
        shutil.rmtree(work)
    text = json.dumps(settings, indent=2, sort_keys=True, default=str) + "\n"
    path = work / "settings.json"
    began = path.exists() and any(item != path for item in work.iterdir())
    if began and path.read_text(encoding="utf-8") != text:
        raise InputError(f"{work} holds a run with other settings; pass --restart to discard it, or another --work")
    work.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text)


def fingerprint_files(paths: list[str]) -> dict[str, str]:
    """Size and modification time of the data files: a resumed run must see the same ones."""
    result = {}
    for path in paths:
        file = Path(path)
        if not file.is_file():
            raise InputError(f"{path}: no such file")
        stat = file.stat()
        result[path] = hashlib.sha256(f"{stat.st_size} {stat.st_mtime_ns}".encode()).hexdigest()[:16]
    return result


def trainer_settings(
    work: Path,
    steps: int,
    learning_rate: float,
    seed: int,
    *,
    rows_per_step: int = 1,
    warmup_steps: int,
    decay_steps: int,
    bf16: bool = False,
    checkpoint_every: int = 500,
    evaluate_every: int = 500,
    log_every: int = 50,
) -> Any:
    """The `TrainingArguments` of a run of `steps` steps that checkpoints into `work`.

    The learning rates rise for `warmup_steps`, stay, and fall to zero in the last `decay_steps`; until these begin, a run
    does not depend on its length.

    Raises:
        InputError: the run is shorter than its rise and fall.
    """
    import torch
    from transformers import TrainingArguments

    if steps < warmup_steps + decay_steps:
        raise InputError(f"{steps} steps are fewer than {warmup_steps} of warm-up and {decay_steps} of decay")

    return TrainingArguments(
        output_dir=str(work / "checkpoints"),
        max_steps=steps,
        per_device_train_batch_size=rows_per_step,
        learning_rate=learning_rate,
        lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={"num_decay_steps": decay_steps, "decay_type": "linear"},
        warmup_steps=warmup_steps,
        max_grad_norm=1.0,
        bf16=bf16,
        use_cpu=not torch.cuda.is_available(),
        seed=seed,
        data_seed=seed,
        save_strategy="steps",
        save_steps=checkpoint_every,
        save_total_limit=2,
        eval_strategy="steps",
        eval_steps=evaluate_every,
        logging_steps=log_every,
        report_to=[],
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )


def run(trainer: Any) -> list[dict[str, Any]]:
    """Trains, going on from the latest checkpoint if there is one, and returns the logged numbers.

    A resumed run ends with the same weights as an uninterrupted one: data order, schedule, optimiser and random states
    come from the checkpoint. (With the same number of threads on the same machine; otherwise up to rounding.)
    """
    from transformers.trainer_utils import get_last_checkpoint

    folder = Path(trainer.args.output_dir)
    last = get_last_checkpoint(str(folder)) if folder.is_dir() else None
    trainer.train(resume_from_checkpoint=last)
    return list(trainer.state.log_history)
