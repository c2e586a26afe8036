"""`LoadedModel`, the base class of all models: finds the files, names the model, picks devices."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mtmetrics.artifacts.models import model_fingerprint, model_folder, model_label
from mtmetrics.checks import positive
from mtmetrics.errors import MTMetricsError
from mtmetrics.models.batches import BatchRunner, replicate
from mtmetrics.models.devices import pick_devices, pick_dtype
from mtmetrics.models.running import Running

if TYPE_CHECKING:
    import torch


class LoadedModel:
    """A model whose folder was found; a subclass reads the files.

    Args:
        kind: of model, for messages, such as ``"encoder"``.
        model: folder, name of a bundled artifact, or Hub repository.
        revision: Hub revision.
        running: keywords of `Running`.

    Attributes:
        running: options of running it.
        devices: devices that it runs on.
        dtype: number format of the computation.
        name: as the user gave it.
        label: name in signatures.
        described: kind and name, for messages.
        folder: holds its files.
        fingerprint: 8 hexadecimal digits that pin its numbers.

    Raises:
        InputError: an unknown device or dtype, or a batch size below 1.
        ArtifactError: there is no such model, or a subclass cannot load it.
        MTMetricsError: it does not fit into memory.
    """

    def __init__(
        self, kind: str, model: str | Path, revision: str | None, running: dict[str, Any]
    ) -> None:
        self.running = Running(**running)
        positive("batch_tokens", self.running.batch_tokens)
        self.dtype = pick_dtype(self.running.dtype, self.running.device)
        self.devices = pick_devices(self.running.device)
        self.name, self.label = str(model), model_label(model)
        self.described = f"{kind} {self.name}"
        self.folder = model_folder(
            model, revision=revision, local_files_only=self.running.local_files_only
        )
        self.fingerprint = model_fingerprint(self.folder)

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled: a model is as large as its files, and lies on devices."""
        advice = (
            "load the metric in the worker with mtmetrics.load, or send a scorer that "
            "mtmetrics.load made"
        )
        raise MTMetricsError(f"{self.described}: a loaded model stays in its process; {advice}")

    def on_devices(
        self, network: "torch.nn.Module", pad: int = 0, batch_tokens: int | None = None
    ) -> BatchRunner:
        """Puts a network on each of the devices, and returns a runner of batches.

        Args:
            network: a `torch.nn.Module`.
            pad: token id that fills up shorter rows of a batch.
            batch_tokens: padded tokens per batch; by default those of `running`.
        """
        copies = replicate(self.described, network.eval(), self.devices)
        return BatchRunner(
            self.described, copies, self.devices, batch_tokens or self.running.batch_tokens, pad
        )
