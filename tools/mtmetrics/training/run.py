"""The skeleton of every training: its work folder, how it goes on after an interruption, and the
artifact that is written at its end.

A training takes a `Run` and goes through its methods in this order: `open` with the settings
(`config`) and the files; `tokenizers` for vocabularies that it makes; `train` for a
`transformers` trainer; `artifact` for the folder, which the training fills and returns. Models
are named as for `mtmetrics.artifacts.models.model_folder`. A training raises an InputError where
files or settings cannot be used, and an ArtifactError where a model cannot be found or loaded.
"""

import contextlib
import copy
import dataclasses
import functools
import json
import logging
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError

from mtmetrics.artifacts.models import RECORD, model_fingerprint, model_label
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.io.atomic import atomic_folder, make_folder, write_atomic
from mtmetrics.io.checksums import sha256_file
from mtmetrics.io.lines import first_difference, short_name
from mtmetrics.models.devices import Devices, pick_devices
from mtmetrics.training.configs import TrainingConfig
from mtmetrics.training.vocabulary import save_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast, Trainer

log = logging.getLogger(__name__)
# The packages whose versions a record has.
_PACKAGES = (
    "mtmetrics",
    "torch",
    "transformers",
    "sentence-transformers",
    "tokenizers",
    "safetensors",
    "accelerate",
    "peft",
    "numpy",
    "scipy",
)
# Beginning of the folder names that a trainer gives to its checkpoints.
_CHECKPOINT = "checkpoint-"


class Run:
    """The place and the seed of a training, and how it goes on after an interruption.

    The same call of a training goes on where it was interrupted: files and settings of the work
    folder must be those of the call, tokenizers are made once, and the trainer goes on from its last
    checkpoint.

    Args:
        output: the artifact folder to make.
        seed: of everything random.
        work: folder for checkpoints, ``OUTPUT.work`` by default.
        overwrite: replace an existing artifact.
        restart: discard what an earlier run left in `work`.
        device: of several the first is taken; ``"auto"`` is the graphics card, if there is one.

    Attributes:
        history: the logged numbers of the training; a dictionary for each step that is logged.
    """

    def __init__(
        self,
        output: str | Path,
        *,
        seed: int = 1,
        work: str | Path | None = None,
        overwrite: bool = False,
        restart: bool = False,
        device: Devices = "auto",
    ) -> None:
        self.output = Path(output)
        self.seed = seed
        self.work = Path(work) if work else self.output.with_name(self.output.name + ".work")
        self.overwrite = overwrite
        self.restart = restart
        self._device = device
        self.history: list[dict[str, float]] = []
        # Seed, settings and names of the files, for training.json.
        self._record: dict[str, object] = {}

    @functools.cached_property
    def device(self) -> str:
        """The name of the device on which the training runs; an InputError says that this machine
        has no such device."""
        import torch

        if self._device == "auto":
            name = "cuda" if torch.cuda.is_available() else "cpu"
        else:
            name = str(pick_devices(self._device)[0])
        if self.processes > 1 and name.startswith("cuda"):
            return f"cuda:{os.environ['LOCAL_RANK']}"
        return name

    @property
    def processes(self) -> int:
        """The number of processes that share the steps, as `torchrun` and `accelerate launch` start
        them."""
        return int(os.environ.get("WORLD_SIZE", "1"))

    @property
    def is_main(self) -> bool:
        """Whether this process writes the artifact, and the files that all processes share."""
        return os.environ.get("RANK", "0") == "0"

    @contextlib.contextmanager
    def main_first(self) -> Iterator[None]:
        """Has the main process do first what all processes do, so that the others find its
        files."""
        if self.processes == 1:
            yield
            return
        require_extra("train", "training in several processes")
        from accelerate import PartialState

        with PartialState(cpu=self.device == "cpu").main_process_first():
            yield

    def open(
        self,
        config: TrainingConfig,
        files: Mapping[str, Sequence[str | Path]],
        **settings: object,
    ) -> None:
        """Opens the work folder: a new one, or one that the same settings and files began.

        Args:
            config: the settings of the training.
            files: the data, under the names that the record gives them.
            **settings: whatever else shapes the result, besides the seed.

        Raises:
            InputError: the artifact exists and may not be replaced, a file is missing, or the
                folder belongs to another run.
        """
        if self.output.exists() and not self.overwrite:
            raise InputError(
                f"{self.output} exists already; choose another folder or pass --overwrite"
            )
        file_names = {name: [short_name(path) for path in paths] for name, paths in files.items()}
        self._record = {
            "seed": self.seed,
            "config": dataclasses.asdict(config),
            **file_names,
            **settings,
        }
        # Data is known by content, so that a production goes on after its folder was moved or
        # restored.
        contents = {name: [_content(path) for path in paths] for name, paths in files.items()}
        identity = {**self._record, "contents": contents}
        identity_text = json.dumps(identity, indent=2, sort_keys=True, default=str) + "\n"
        identity_file = self.work / "settings.json"
        with self.main_first():
            if self.restart and self.is_main and identity_file.exists():
                shutil.rmtree(self.work)
            # Compared as JSON, in which tuples are lists and paths are texts.
            self._refuse_other_run(identity_file, json.loads(identity_text))
            make_folder(self.work)
            write_atomic(identity_file, identity_text)

    def _refuse_other_run(self, identity_file: Path, identity: dict[str, object]) -> None:
        """Refuses a work folder in which a run with other settings has computed something.

        Args:
            identity_file: the settings of the run that the folder belongs to, if there are any.
            identity: the settings of this run.
        """
        if not identity_file.exists():
            return
        has_computed = any(item != identity_file for item in self.work.iterdir())
        if not has_computed:
            return
        difference = first_difference(json.loads(identity_file.read_text("utf-8")), identity)
        if difference is not None:
            raise InputError(
                f"{self.work} holds a run with other settings ({difference}); pass --restart to "
                "discard it, or another --work"
            )

    def tokenizers(
        self,
        make: Callable[[], Mapping[str, "PreTrainedTokenizerFast"]],
    ) -> "dict[str, PreTrainedTokenizerFast]":
        """The tokenizers by name that `make` returns. They are kept in the work folder and made
        once; one process makes them, and the others wait for it."""
        from transformers import PreTrainedTokenizerFast

        folder = self.work / "tokenizers"
        with self.main_first():
            if not folder.exists():
                with atomic_folder(folder) as temporary:
                    for name, tokenizer in make().items():
                        save_tokenizer(tokenizer, temporary / name)
        return {
            path.name: PreTrainedTokenizerFast.from_pretrained(path, trust_remote_code=False)
            for path in sorted(folder.iterdir())
        }

    def train(self, trainer: "Trainer") -> None:
        """Trains, and goes on from the latest checkpoint if there is one; `history` becomes the log
        of the trainer. Progress is shown where this module's notes are (level INFO).

        A resumed run ends with the same weights: data order, schedule, optimiser and random states
        come from the checkpoint (with as many threads on the same machine; otherwise up to
        rounding).

        Raises:
            MTMetricsError: a checkpoint cannot be written.
        """
        checkpoints = self.work / "checkpoints"
        last = _last_checkpoint(checkpoints)
        if last is not None:
            log.info("going on from %s", last.name)
        if not log.isEnabledFor(logging.INFO):
            _silence(trainer)
        try:
            # The trainer prints its log; standard output is for results.
            with contextlib.redirect_stdout(sys.stderr):
                trainer.train(resume_from_checkpoint=None if last is None else str(last))
        except (OSError, RuntimeError, SafetensorError) as error:
            unfinished = checkpoints / f"{_CHECKPOINT}{trainer.state.global_step}"
            was_writing = unfinished.is_dir() and not _is_complete(unfinished)
            # torch raises a RuntimeError for a full disk, and for faults of a network, too.
            if isinstance(error, RuntimeError) and not was_writing:
                raise
            shutil.rmtree(unfinished, ignore_errors=True)
            reason = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
            raise MTMetricsError(
                f"cannot write {unfinished}: {reason}; free disk space, and the same command goes "
                "on from the checkpoint before"
            ) from error
        self.history = list(trainer.state.log_history)

    @contextlib.contextmanager
    def artifact(self, kind: str, command: str | None = None, **record: object) -> Iterator[Path]:
        """Yields a new folder to fill; then its record and log are added, and it takes its place as
        `output`.

        Args:
            kind: the kind of the artifact.
            command: the command that made it.
            **record: what training.json says besides the settings of the run; goes before a setting
                of the same name.
        """
        if not self.is_main:
            with tempfile.TemporaryDirectory() as unused:
                yield Path(unused)
            return
        heading = {"kind": kind} if command is None else {"kind": kind, "command": command}
        with atomic_folder(self.output, self.overwrite) as folder:
            yield folder
            document = {**heading, **self._record, **record, "versions": versions()}
            write_atomic(folder / RECORD, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
            self._write_log(folder / "training_log.csv")

    def _write_log(self, path: Path) -> None:
        """Writes the history as a table: the step first, then the other numbers by name."""
        import pandas as pd

        table = pd.DataFrame(self.history)
        columns = sorted(table.columns, key=lambda name: (name != "step", name))
        table.to_csv(path, columns=columns, index=False, float_format="%.6g", lineterminator="\n")


def _silence(trainer: "Trainer") -> None:
    """Switches off the progress bar of a trainer, and the printing of its log."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    for callback in (transformers.ProgressCallback, transformers.PrinterCallback):
        trainer.remove_callback(callback)


def _content(path: str | Path) -> str:
    """The first 16 digits of the SHA-256 of a file; an InputError where there is no such file."""
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    return sha256_file(path)[:16]


def _last_checkpoint(folder: Path) -> Path | None:
    """The complete checkpoint of the latest step; None without any."""
    complete = [path for path in folder.glob(f"{_CHECKPOINT}*") if _is_complete(path)]
    return max(complete, key=lambda path: int(path.name.removeprefix(_CHECKPOINT)), default=None)


def _is_complete(checkpoint: Path) -> bool:
    """Whether a checkpoint was written to its end: its state is the last of its files."""
    try:
        return bool(json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that shape a training run."""
    numbers = {"python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            numbers[name] = metadata.version(name)
    return numbers


def pinned(model: str | Path, folder: Path) -> str:
    """The label and the fingerprint of a model, ``LABEL#FINGERPRINT``, for records.

    Args:
        model: the model as the user named it.
        folder: the folder where it lies.
    """
    return f"{model_label(model)}#{model_fingerprint(folder)}"


def save_model(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerFast",
    folder: Path,
    float8: Collection[str] = (),
) -> None:
    """Saves a `transformers` model as float16 safetensors, and its tokenizer.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        folder: the folder to write to.
        float8: names of parameters that are saved in half the space, as float8 with three bits of
            mantissa. Word vectors bear this: the cosine with the exact vector is above 0.999.

    Raises:
        MTMetricsError: a weight is not finite.
    """
    import torch

    half = copy.deepcopy(model).to(device="cpu", dtype=torch.float16)
    not_finite = [name for name, values in half.state_dict().items() if not values.isfinite().all()]
    if not_finite:
        raise MTMetricsError(
            f"{len(not_finite)} weights are not finite in half precision, the first is "
            f"{not_finite[0]}; begin again with --restart and lower the learning rates"
        )
    for name in float8:
        parameter = half.get_parameter(name)
        parameter.data = parameter.data.to(torch.float8_e4m3fn)
    half.config.dtype = torch.float16
    half.config._name_or_path = ""
    half.save_pretrained(folder)
    # transformers writes them so that only their owner may read them.
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)
    save_tokenizer(tokenizer, folder)
