"""The skeleton of every training: its work folder, how it goes on after an interruption, what is
written at its end.

The trainings take a `Run`, which they open with their settings (`config`) and files, train a
`transformers` trainer on it, fill its artifact folder, and return that. Models are named as for
`mtmetrics.artifacts.models.model_folder`. They raise an InputError where files or settings cannot
be used, and an ArtifactError where a model cannot be found or loaded."""

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from mtmetrics.artifacts.models import RECORD, model_fingerprint, model_label
from mtmetrics.checks import positive
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.io.atomic import atomic_path, make_folder, new_folder, sha256_file, write_atomic
from mtmetrics.io.lines import first_difference, short_name
from mtmetrics.io.row_writer import write_rows
from mtmetrics.models.runner import Devices, pick_devices
from mtmetrics.training.vocabulary import save_tokenizer

log = logging.getLogger(__name__)
_PACKAGES = ["mtmetrics", "torch", "transformers", "sentence-transformers", "tokenizers"]
_PACKAGES += ["safetensors", "accelerate", "numpy", "scipy"]
_MAY_BE_ZERO = {"warmup_steps", "decay_steps", "held_back_per_mille", "english_pieces"}


class Run:
    """Where a training writes, what it does with what lies there already, and its seed.

    The same call of a training goes on where it was interrupted.

    Args:
        output: the artifact folder to make.
        seed: of everything random.
        work: folder for checkpoints, ``OUTPUT.work`` by default.
        overwrite: replace an existing artifact.
        restart: discard what an earlier run left in `work`.
        device: of several the first is taken; ``"auto"`` is the graphics card, if there is one.

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
        device: Devices = "auto",
    ) -> None:
        self.output = Path(output)
        self.seed = seed
        self.work = Path(work) if work else self.output.with_name(self.output.name + ".work")
        self.overwrite, self.restart, self._device = overwrite, restart, device
        self.history: list[dict[str, Any]] = []
        self._record: dict[str, Any] = {}

    @functools.cached_property
    def device(self) -> str:
        """The name of the device on which the training runs; an InputError where this machine has
        none such."""
        import torch

        if self._device == "auto":
            chosen = "cuda" if torch.cuda.is_available() else "cpu"
        else:
            chosen = str(pick_devices(self._device)[0])
        return (
            f"cuda:{os.environ['LOCAL_RANK']}"
            if self.processes > 1 and chosen.startswith("cuda")
            else chosen
        )

    @property
    def processes(self) -> int:
        """How many processes share the steps, as `torchrun` and `accelerate launch` start them."""
        return int(os.environ.get("WORLD_SIZE", "1"))

    @property
    def is_main(self) -> bool:
        """Whether this process writes the artifact, and what all of them share."""
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

    def open(self, config: Any, files: Mapping[str, Sequence[str | Path]], **settings: Any) -> None:
        """Opens the work folder: a new one, or one that the same settings and files began.

        Args:
            config: a dataclass of `settings`.
            files: the data, under the names that the record gives them.
            settings: what else shapes the result, besides the seed.

        Raises:
            InputError: the artifact exists and may not be replaced, a file is missing, a setting
                cannot be used, or the folder belongs to another run.
        """
        if self.output.exists() and not self.overwrite:
            raise InputError(
                f"{self.output} exists already; choose another folder or pass --overwrite"
            )
        _check(config)
        begun = {"seed": self.seed, "config": dataclasses.asdict(config)}
        self._record = (
            begun
            | {name: [short_name(path) for path in paths] for name, paths in files.items()}
            | settings
        )
        # Data is known by content, so that a production goes on after its folder was moved or
        # restored.
        given = self._record | {
            "contents": {name: [*map(_content, paths)] for name, paths in files.items()}
        }
        text = json.dumps(given, indent=2, sort_keys=True, default=str) + "\n"
        path = self.work / "settings.json"
        with self.main_first():
            if self.restart and self.is_main and path.exists():
                shutil.rmtree(self.work)
            begun_before = path.exists() and any(item != path for item in self.work.iterdir())
            if begun_before and (
                what := first_difference(json.loads(path.read_text("utf-8")), json.loads(text))
            ):
                what_to_do = "pass --restart to discard it, or another --work"
                raise InputError(
                    f"{self.work} holds a run with other settings ({what}); {what_to_do}"
                )
            make_folder(self.work)
            write_atomic(path, text)

    def tokenizers(self, make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """The tokenizers by name that `make` returned when this run first came here, kept in the
        work folder."""
        from transformers import PreTrainedTokenizerFast

        folder = self.work / "tokenizers"
        with self.main_first():
            if not folder.exists():
                made = make()
                with new_folder(folder) as temporary:
                    for name, tokenizer in made.items():
                        save_tokenizer(tokenizer, temporary / name)
        return {
            path.name: PreTrainedTokenizerFast.from_pretrained(path, trust_remote_code=False)
            for path in sorted(folder.iterdir())
        }

    def array(self, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """The array that `make` returned when this run first came here, kept in the work folder."""
        path = self.work / f"{name}.npy"
        with self.main_first():
            if not path.exists():
                made = make()
                with atomic_path(path) as temporary, open(temporary, "wb") as stream:
                    np.save(stream, made)
        return np.load(path, allow_pickle=False)

    def train(self, trainer: Any) -> None:
        """Trains, going on from the latest checkpoint if there is one; `history` is what was
        logged. Progress is shown where this module's notes are (level INFO).

        A resumed run ends with the same weights: data order, schedule, optimiser and random states
        come from the checkpoint (with as many threads on the same machine; otherwise up to
        rounding)."""
        whole = filter(_is_whole, (self.work / "checkpoints").glob("checkpoint-*"))
        last = max(
            whole, key=lambda folder: int(folder.name.removeprefix("checkpoint-")), default=None
        )
        if last:
            log.info("going on from %s", last.name)
        if not log.isEnabledFor(logging.INFO):
            _silence(trainer)
        try:
            # The trainer prints its log; standard output is for results.
            with contextlib.redirect_stdout(sys.stderr):
                trainer.train(resume_from_checkpoint=str(last) if last else None)
        except (OSError, RuntimeError, SafetensorError) as error:
            half = self.work / "checkpoints" / f"checkpoint-{trainer.state.global_step}"
            if isinstance(error, RuntimeError) and (_is_whole(half) or not half.is_dir()):
                raise
            shutil.rmtree(half, ignore_errors=True)
            reason = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
            what_to_do = "free disk space, and the same command goes on from the checkpoint before"
            raise MTMetricsError(f"cannot write {half}: {reason}; {what_to_do}") from error
        self.history = list(trainer.state.log_history)

    def train_and_judge(self, trainer: Any) -> dict[str, Any]:
        """Trains, and returns what the record says of how a `Judging` trainer judges before and
        after."""
        path = self.work / "before.json"
        with self.main_first():
            if not path.exists():
                write_atomic(path, json.dumps(trainer.judge()))
        before = json.loads(path.read_text(encoding="utf-8"))
        self.train(trainer)
        return {"before_training": before, "result": trainer.judgement()}

    @contextlib.contextmanager
    def artifact(self, kind: str, command: str | None = None, **record: Any) -> Iterator[Path]:
        """A new folder to fill; then its record and log are added, and it takes its place as
        `output`.

        Args:
            kind: what the artifact is.
            command: that made it.
            record: what training.json says besides the settings of the run; goes before a setting
                of the same name.
        """
        if not self.is_main:
            with tempfile.TemporaryDirectory() as unused:
                yield Path(unused)
            return
        heading = {"kind": kind} | ({"command": command} if command else {})
        with new_folder(self.output, self.overwrite) as folder:
            yield folder
            whole = heading | self._record | record | {"versions": versions()}
            write_atomic(folder / RECORD, json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
            columns = sorted(
                {name for row in self.history for name in row},
                key=lambda name: (name != "step", name),
            )
            rows = (
                {
                    name: f"{v:.6g}" if isinstance(v := row.get(name), float) else v
                    for name in columns
                }
                for row in self.history
            )
            write_rows(folder / "training_log.csv", rows, "csv")


def _silence(trainer: Any) -> None:
    import transformers

    transformers.utils.logging.disable_progress_bar()
    for callback in (transformers.ProgressCallback, transformers.PrinterCallback):
        trainer.remove_callback(callback)


def _content(path: str | Path) -> str:
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    return sha256_file(path)[:16]


def _is_whole(checkpoint: Path) -> bool:
    """Whether a checkpoint was written to its end: its state is the last of its files."""
    try:
        return bool(json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def _check(config: Any) -> None:
    for name, value in dataclasses.asdict(config).items():
        if type(value) is int and name not in _MAY_BE_ZERO:
            positive(name, value)
    if hasattr(config, "temperature") and config.temperature <= 0:
        raise InputError(f"temperature {config.temperature}: must be above 0", option="temperature")
    if hasattr(config, "warmup") and not 0.0 <= config.warmup < 1.0:
        raise InputError(
            f"warmup {config.warmup}: a share of the steps is needed, at least 0 and below 1",
            option="warmup",
        )
    if hasattr(config, "decay_steps") and config.steps < config.warmup_steps + config.decay_steps:
        rates = f"{config.warmup_steps} of warm-up and {config.decay_steps} of decay"
        raise InputError(f"{config.steps} steps are fewer than {rates}")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that shape a training run."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def pinned(model: str | Path, folder: Path) -> str:
    """How records call a model, given as the user named it and as the folder where it lies: label
    and fingerprint."""
    return f"{model_label(model)}#{model_fingerprint(folder)}"


def save_model(model: Any, tokenizer: Any, folder: Path) -> None:
    """Saves a `transformers` model as float16 safetensors, and its tokenizer; an MTMetricsError
    says if the weights are not finite."""
    import torch

    half = copy.deepcopy(model).to(device="cpu", dtype=torch.float16)
    bad = [name for name, values in half.state_dict().items() if not values.isfinite().all()]
    if bad:
        found = f"{len(bad)} weights are not finite in half precision, the first is {bad[0]}"
        raise MTMetricsError(f"{found}; begin again with --restart and lower the learning rates")
    half.config.dtype = torch.float16
    half.config._name_or_path = ""
    half.save_pretrained(folder)
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)
    save_tokenizer(tokenizer, folder)
