"""The skeleton of every training: its work folder, how it goes on after an interruption, and what is written at its
end."""

import contextlib
import copy
import csv
import dataclasses
import hashlib
import io
import json
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mtmetrics.artifacts.files import new_folder, write_atomic
from mtmetrics.artifacts.models import model_fingerprint, model_label
from mtmetrics.errors import InputError, require_extra
from mtmetrics.inputs import positive
from mtmetrics.training.corpus import short_name
from mtmetrics.training.settings import ContrastiveConfig, TranslationConfig

_PACKAGES = ["mtmetrics", "torch", "transformers", "sentence-transformers", "tokenizers"]
_PACKAGES += ["safetensors", "accelerate", "numpy", "scipy"]


class Run:
    """Where a training writes, what it does with what lies there already, and its seed.

    A training opens its run, trains, and fills the artifact; the same call goes on where it was interrupted.

    Args:
        output: the artifact folder to make.
        seed: of everything random.
        work: folder for checkpoints, ``OUTPUT.work`` by default.
        overwrite: replace an existing artifact.
        restart: discard what an earlier run left in `work`.

    Attributes:
        history: the logged numbers of the training, one dictionary each.
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
        self.overwrite, self.restart = overwrite, restart
        self.history: list[dict[str, Any]] = []
        self._record: dict[str, Any] = {}

    def open(self, config: Any, files: Mapping[str, Sequence[str | Path]], **settings: Any) -> None:
        """Opens the work folder: a new one, or one that the same settings and files began.

        Args:
            config: the settings of the training, a dataclass.
            files: the data, under the names that the record gives them; a resumed run must see the same files.
            settings: what else shapes the result, besides the seed.

        Raises:
            InputError: the artifact exists and may not be replaced, a file is missing, the run is shorter than the rise
                and fall of its learning rate, or the folder belongs to another run.
        """
        if self.output.exists() and not self.overwrite:
            raise InputError(f"{self.output} exists already; choose another folder or pass --overwrite")
        if isinstance(config, Schedule) and config.steps < config.warmup_steps + config.decay_steps:
            rates = f"{config.warmup_steps} of warm-up and {config.decay_steps} of decay"
            raise InputError(f"{config.steps} steps are fewer than {rates}")
        begun = {"seed": self.seed, "config": dataclasses.asdict(config)}
        self._record = begun | {name: [short_name(path) for path in paths] for name, paths in files.items()} | settings
        given = begun | {name: [str(path) for path in paths] for name, paths in files.items()} | settings
        given["files"] = {str(path): _state(path) for paths in files.values() for path in paths}
        text = json.dumps(given, indent=2, sort_keys=True, default=str) + "\n"
        path = self.work / "settings.json"
        if self.restart and path.exists():
            shutil.rmtree(self.work)
        begun_before = path.exists() and any(item != path for item in self.work.iterdir())
        if begun_before and path.read_text(encoding="utf-8") != text:
            raise InputError(
                f"{self.work} holds a run with other settings; pass --restart to discard it, or another --work"
            )
        self.work.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """What `compute` returned when this run first came here: a JSON value, kept in the work folder."""
        path = self.work / f"{name}.json"
        if not path.exists():
            write_atomic(path, json.dumps(compute()))
        return json.loads(path.read_text(encoding="utf-8"))

    def train(self, trainer: Any) -> None:
        """Trains, going on from the latest checkpoint if there is one; `history` is what was logged.

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
        self.history = list(trainer.state.log_history)

    @contextlib.contextmanager
    def artifact(self, kind: str, command: str | None = None, **record: Any) -> Iterator[Path]:
        """A new folder to fill; then its record and log are added, and it takes its place as `output`.

        Args:
            kind: what the artifact is.
            command: that made it.
            record: what training.json says besides the settings of the run; goes before a setting of the same name.
        """
        heading = {"kind": kind} | ({"command": command} if command else {})
        with new_folder(self.output, self.overwrite) as folder:
            yield folder
            write_record(folder, heading | self._record | record, self.history)


def _state(path: str | Path) -> str:
    """Size and modification time of a data file, in short."""
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{path}: no such file")
    stat = file.stat()
    return hashlib.sha256(f"{stat.st_size} {stat.st_mtime_ns}".encode()).hexdigest()[:16]


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
    """The `Schedule` of whole passes over the data: the learning rate rises, and from then on falls to zero."""

    steps: int
    warmup_steps: int
    decay_steps: int
    checkpoint_every: int
    bf16: bool

    @classmethod
    def over(cls, rows: int, config: ContrastiveConfig | TranslationConfig) -> "Passes":
        """The schedule for a number of rows.

        Raises:
            InputError: the settings allow no step.
        """
        size, epochs = positive("pairs_per_step", config.pairs_per_step), positive("epochs", config.epochs)
        if not 0.0 <= config.warmup < 1.0:
            raise InputError(f"warmup {config.warmup}: a share of the steps is needed, at least 0 and below 1")
        steps = -(-rows // size) * epochs
        rise = int(steps * config.warmup)
        return cls(steps, rise, steps - rise, config.checkpoint_every, config.bf16)


def device() -> str:
    """Where trainings run: on the graphics card, if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def trainer_settings(
    work: Path,
    config: Schedule,
    learning_rate: float,
    seed: int,
    *,
    evaluate_every: int | None = None,
    rows_per_step: int = 1,
    weight_decay: float = 0.0,
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
        weight_decay: of the matrices, where the trainer makes the optimiser.
        arguments: the class to make, for trainers that ask for their own; `TrainingArguments` if not given.

    Raises:
        MTMetricsError: a package is missing that trainers need.
    """
    require_extra("train", "training")
    from transformers import TrainingArguments

    return (arguments or TrainingArguments)(
        output_dir=str(work / "checkpoints"),
        max_steps=config.steps,
        per_device_train_batch_size=rows_per_step,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={"num_decay_steps": config.decay_steps, "decay_type": "linear"},
        warmup_steps=config.warmup_steps,
        max_grad_norm=1.0,
        bf16=config.bf16,
        use_cpu=device() == "cpu",
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


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that shape a training run."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def pinned(model: str | Path, folder: Path) -> str:
    """How records call a model, given as the user named it and as the folder where it lies: label and fingerprint."""
    return f"{model_label(model)}#{model_fingerprint(folder)}"


def write_table(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Writes rows as CSV, the columns in that order."""
    table = io.StringIO()
    writer = csv.DictWriter(table, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomic(path, table.getvalue())


def write_record(folder: Path, record: dict[str, Any], history: list[dict[str, Any]]) -> None:
    """Writes training.json, and the logged numbers of the run as training_log.csv.

    Args:
        folder: the artifact folder.
        record: configuration, data counts and results; versions are added.
        history: one dictionary per logged step, as `transformers.Trainer` keeps it.
    """
    text = json.dumps({**record, "versions": versions()}, indent=2, ensure_ascii=False) + "\n"
    write_atomic(folder / "training.json", text)
    columns = sorted({name for row in history for name in row}, key=lambda name: (name != "step", name))
    rows = ({name: f"{v:.6g}" if isinstance(v, float) else v for name, v in row.items()} for row in history)
    write_table(folder / "training_log.csv", rows, columns)


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of an artifact, or None where it has none."""
    path = folder / "training.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def save_model(model: Any, tokenizer: Any, folder: Path) -> None:
    """Saves a `transformers` model as float16 safetensors, in files of at most 16 MiB, and its tokenizer."""
    import torch

    from mtmetrics.training import vocabulary

    half = copy.deepcopy(model).to(device="cpu", dtype=torch.float16)
    half.config.dtype = torch.float16
    half.config._name_or_path = ""
    half.save_pretrained(folder, max_shard_size=16 * 2**20)
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)
    vocabulary.save_tokenizer(tokenizer, folder)
