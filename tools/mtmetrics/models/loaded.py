"""A loaded model: its name, its fingerprint, and the devices that it is on."""

from pathlib import Path
from typing import Any

from mtmetrics.artifacts.models import model_fingerprint, model_folder, model_label
from mtmetrics.checks import positive
from mtmetrics.errors import MTMetricsError
from mtmetrics.models.batches import BatchRunner, replicate
from mtmetrics.models.devices import number_format, pick_devices
from mtmetrics.models.running import Running


class LoadedModel:
    """The folder of a model, and the devices that the model runs on; a subclass loads the files.

    Args:
        kind: kind of the model in messages, such as ``"encoder"``.
        model: folder, name of a bundled artifact, or Hub repository.
        revision: Hub revision.
        run_options: keywords of `Running`.

    Attributes:
        name: the model as the user named it.
        label: name of the model in the signatures of metrics.
        description: kind and name, for messages.
        fingerprint: 8 hexadecimal digits that identify the files.
        dtype: number format of the computation.
        run_options: the `Running` options.

    Raises:
        InputError: an unknown device or dtype, or a batch size below 1.
        ArtifactError: there is no such model, or a subclass cannot load it.
        MTMetricsError: it does not fit into memory.
    """

    def __init__(
        self, kind: str, model: str | Path, revision: str | None, run_options: dict[str, Any]
    ) -> None:
        self.run_options = Running(**run_options)
        positive("batch_tokens", self.run_options.batch_tokens)
        self.dtype = number_format(self.run_options.dtype, self.run_options.device).name
        self.devices = pick_devices(self.run_options.device)
        self.name, self.label = str(model), model_label(model)
        self.description = f"{kind} {self.name}"
        self.folder = model_folder(
            model, revision=revision, local_files_only=self.run_options.local_files_only
        )
        self.fingerprint = model_fingerprint(self.folder)

    def __reduce__(self) -> Any:
        """Refuses to be pickled: a model is as large as its files, and lies on devices."""
        advice = (
            "load the metric in the worker with mtmetrics.load, or send a scorer that "
            "mtmetrics.load made"
        )
        raise MTMetricsError(f"{self.description}: a loaded model stays in its process; {advice}")

    def on_devices(
        self, network: Any, pad: int = 0, batch_tokens: int | None = None
    ) -> BatchRunner:
        """Moves a network to the devices, see `replicate`, and returns its runner.

        Args:
            network: the network; the runner has the object itself on the first device.
            pad: token id that fills up shorter rows of a batch.
            batch_tokens: highest number of padded tokens in a batch; by default the run option.
        """
        copies = replicate(self.description, network.eval(), self.devices)
        return BatchRunner(
            self.description,
            copies,
            self.devices,
            batch_tokens or self.run_options.batch_tokens,
            pad,
        )
