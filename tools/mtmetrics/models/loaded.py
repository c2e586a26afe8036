"""A loaded model: its name, its fingerprint, and the devices that it is on."""

from pathlib import Path
from typing import Any

from mtmetrics.artifacts.models import model_fingerprint, model_folder, model_label
from mtmetrics.checks import positive
from mtmetrics.errors import MTMetricsError
from mtmetrics.models.batches import BatchRunner, replicate
from mtmetrics.models.devices import pick_devices, pick_dtype
from mtmetrics.models.running import Running


class LoadedModel:
    """A model that was found, and where it runs; a subclass reads its files.

    Args:
        kind: what messages call it, such as ``"encoder"``.
        model: folder, name of a bundled artifact, or Hub repository.
        revision: Hub revision.
        running: keywords of `Running`.

    Attributes:
        name: as the user gave it.
        label: how signatures call it.
        fingerprint: 8 hexadecimal digits that pin its numbers.
        dtype: number format of the computation.

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

    def __reduce__(self) -> Any:
        """Refuses to be pickled: a model is as large as its files, and lies on devices."""
        advice = (
            "load the metric in the worker with mtmetrics.load, or send a scorer that "
            "mtmetrics.load made"
        )
        raise MTMetricsError(f"{self.described}: a loaded model stays in its process; {advice}")

    def on_devices(
        self, network: Any, pad: int = 0, batch_tokens: int | None = None
    ) -> BatchRunner:
        """The network on each of the devices; `pad` fills up its batches."""
        copies = replicate(self.described, network.eval(), self.devices)
        return BatchRunner(
            self.described, copies, self.devices, batch_tokens or self.running.batch_tokens, pad
        )
