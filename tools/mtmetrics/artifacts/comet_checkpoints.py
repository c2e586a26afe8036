"""Makes folders of COMET's published checkpoints, which are pickles of PyTorch Lightning.

A folder holds the encoder as `transformers` loads it (``config.json``, ``model.safetensors``, its
tokenizer), the layers that read it (``comet.safetensors``, with settings in ``comet.json``), and a
``preset.toml``, so that it is a preset: ``--metric comet:DIR``. A process of its own reads the
pickle, see `mtmetrics.artifacts.pickles`. Classes that the pickle names beside its tensors are not
imported; empty classes stand in for them.
"""

import dataclasses
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.artifacts.cards import licence_of
from mtmetrics.artifacts.hub import download
from mtmetrics.artifacts.models import MODEL_FILES, TOKENIZER_FILES, model_label, refuse_code
from mtmetrics.artifacts.pickles import answer, converted_apart, is_tensors, save_tensors
from mtmetrics.artifacts.places import hub_snapshot, hub_source, local_folder
from mtmetrics.errors import ArtifactError
from mtmetrics.io.atomic import atomic_folder, write_atomic, write_json
from mtmetrics.io.lines import JsonObject

if TYPE_CHECKING:
    import torch

SETTINGS_FILE, HEADS_FILE = "comet.json", "comet.safetensors"
# Class of a checkpoint -> the sides that translations can be compared with, the usual one first.
FAMILIES = {
    "regression_metric": ("both",),
    "referenceless_regression_metric": ("source",),
    "unified_metric": ("both", "source", "reference"),
    "xcomet_metric": ("both", "source", "reference"),
}
_JOINT_FAMILIES = ("unified_metric", "xcomet_metric")
# Kind of the encoder -> number of separator tokens between two texts of one sequence.
SEPARATORS = {"BERT": 1, "RemBERT": 1, "XLM-RoBERTa": 2, "XLM-RoBERTa-XL": 2, "MiniLM": 2}
_POOLINGS = ("avg", "max", "cls", "default")
_ACTIVATIONS = ("Tanh", "Sigmoid", "Hardtanh", "Softplus", "Softsign")
HPARAMS, CHECKPOINT = "hparams.yaml", "checkpoints/model.ckpt"
# MiniLM has no tokenizer of its own.
_TOKENIZERS = {"MiniLM": "xlm-roberta-base"}
# Beginnings of the names of tensors: of the encoder, and of the layers that read it.
_ENCODER = "encoder.model."
_HEADS = ("estimator.", "layerwise_attention.", "hidden2tag.")
# Ends of the names of tensors that no training changes: numbers of positions, and tables that drop
# layers while a mix is learned.
_CONSTANT_TENSORS = ("position_ids", "dropout_mask", "dropout_fill")
_COPIED = ["README.md", "LICENSE*"]
# Beginnings of the names of checkpoints that were trained on z-scores, of which the worst are below
# -2. Scores of all others lie between 0 and 1.
_STANDARDISED = ("wmt20-", "wmt21-", "eamt22-")
_STANDARDISED_FLOOR = -2.0
# Transformation of the layers in hparams.yaml of a checkpoint that was trained with softmax,
# although the pickle names sparsemax.
_CORRECTED = "sparsemax_patch"


@dataclasses.dataclass(frozen=True)
class CometSettings:
    """Settings of the network of a checkpoint.

    Attributes:
        class_identifier: its family, one of `FAMILIES`.
        encoder_model: kind of the encoder, one of `SEPARATORS`.
        layer: hidden state of the encoder that is read; ``mix`` for a learned mix of all hidden
            states, embeddings included.
        layer_transformation: ``sparsemax`` or ``softmax``, which makes the weights of the mix.
        layer_norm: normalise each hidden state, over all its tokens together, before it is mixed.
        pool: way from the vectors of the tokens to the vector of a text, one of ``avg``, ``max``,
            ``cls`` and ``default``; joint sequences are read at their first token instead.
        hidden_sizes: widths of the estimator's layers.
        activations: activation between these layers.
        final_activation: activation behind the last one.
        input_segments: texts of a joint sequence, some of ``mt``, ``src`` and ``ref``.
        error_labels: severities of errors; empty where the network finds no errors.
        word_layer: hidden state from which words are labelled.
        floor: score of a segment of which a side is blank.
        model: name under which the checkpoint is published.
    """

    class_identifier: str
    encoder_model: str
    layer: int | str
    layer_transformation: str
    layer_norm: bool
    pool: str
    hidden_sizes: list[int]
    activations: str
    final_activation: str | None
    input_segments: list[str]
    error_labels: list[str]
    word_layer: int
    floor: float = 0.0
    model: str = "unnamed"

    @classmethod
    def of(cls, hparams: JsonObject) -> "CometSettings":
        """Makes settings of the hyperparameters of a checkpoint, and of the defaults of the published
        package.

        Raises:
            ArtifactError: its class, or one of its values, is not supported.
        """
        family = hparams.get("class_identifier")
        if family not in FAMILIES:
            raise ArtifactError(
                f"its class is {family!r}; what can be read is {', '.join(FAMILIES)}"
            )
        is_joint = family in _JOINT_FAMILIES
        values = dict(hparams)
        values["layer"] = hparams.get("sent_layer" if is_joint else "layer", "mix")
        usual_transformation = "sparsemax" if is_joint else "softmax"
        transformation = values.get("layer_transformation", usual_transformation)
        # Anything but sparsemax, such as `_CORRECTED`, is softmax.
        values["layer_transformation"] = "sparsemax" if transformation == "sparsemax" else "softmax"
        if family == "xcomet_metric":
            values |= {
                "input_segments": ["mt", "src", "ref"],
                "error_labels": ["minor", "major", "critical"],
            }
        elif not values.get("word_level_training"):
            values["error_labels"] = []
        defaults = {
            "encoder_model": "XLM-RoBERTa",
            "layer_norm": family != "xcomet_metric",
            "pool": "avg",
            "hidden_sizes": [3072, 1024],
            "activations": "Tanh",
            "final_activation": None,
            "input_segments": ["mt", "src", "ref"],
            "error_labels": ["minor", "major"],
            "word_layer": 24,
        }
        values = defaults | values
        names = [field.name for field in dataclasses.fields(cls) if field.name in values]
        settings = cls(**{name: values[name] for name in names})
        settings._check()
        return settings

    @classmethod
    def read(cls, folder: Path) -> "CometSettings":
        """Reads the settings of a converted checkpoint."""
        try:
            settings = cls(**json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise ArtifactError(f"{folder}: {SETTINGS_FILE} cannot be read ({error})") from error
        settings._check()
        return settings

    def _check(self) -> None:
        """Refuses values that `CometNetwork` cannot compute with."""
        sizes = [*self.hidden_sizes, self.word_layer]
        input_segments = (["mt", "src", "ref"], ["mt", "src"], ["mt", "ref"])
        is_valid = {
            "encoder_model": self.encoder_model in SEPARATORS,
            "pool": self.pool in _POOLINGS,
            "layer": self.layer == "mix" or type(self.layer) is int,
            "hidden_sizes": bool(self.hidden_sizes) and all(type(size) is int for size in sizes),
            "activations": str(self.activations).title() in _ACTIVATIONS,
            "final_activation": self.final_activation is None
            or str(self.final_activation).title() in _ACTIVATIONS,
            "input_segments": self.input_segments in input_segments,
        }
        for name, valid in is_valid.items():
            if not valid:
                raise ArtifactError(
                    f"its {name} is {getattr(self, name)!r}, which is not known here"
                )

    @property
    def joint(self) -> bool:
        """Whether the texts are read as one sequence."""
        return self.class_identifier in _JOINT_FAMILIES

    @property
    def sides(self) -> tuple[str, ...]:
        """Sides that translations can be compared with, the usual one first."""
        if self.joint and len(self.input_segments) == 2:
            return ("source" if "src" in self.input_segments else "reference",)
        return FAMILIES[self.class_identifier]


def convert_comet(
    folder: Path,
    out: str | Path,
    *,
    encoder: str | Path | None = None,
    local_files_only: bool = False,
    overwrite: bool = False,
) -> JsonObject:
    """Makes a folder of a checkpoint.

    Args:
        folder: holds ``hparams.yaml`` and ``checkpoints/model.ckpt``.
        out: the folder to make.
        encoder: a folder or Hub repository with configuration and tokenizer of the encoder; by
            default the one that the checkpoint names. No weights are read there.
        local_files_only: never ask the Hub.
        overwrite: replace an existing folder.

    Returns:
        The content of ``conversion.json``, see `conversion_record`.

    Raises:
        InputError: `out` exists already.
        ArtifactError: the checkpoint is damaged or of a class that is not supported, or the encoder
            cannot be found.
        MTMetricsError: `out` cannot be written.
    """
    hparams = _read_hparams(folder / HPARAMS)
    label = model_label(folder)
    if licence := licence_of(folder):
        print(f"mtmetrics: {label}: its licence is {licence}", file=sys.stderr)
    encoder_name = encoder or hparams.get("pretrained_model")
    config_folder = _encoder_files(encoder_name, ["config.json"], local_files_only)
    tokenizer_folder = config_folder
    kind = hparams.get("encoder_model")
    if encoder is None and kind in _TOKENIZERS:
        tokenizer_folder = _encoder_files(_TOKENIZERS[kind], TOKENIZER_FILES, local_files_only)
    elif local_folder(encoder_name, "config.json") is None:
        tokenizer_folder = _encoder_files(encoder_name, TOKENIZER_FILES, local_files_only)
    checkpoint = folder / CHECKPOINT
    if not checkpoint.is_file():
        checkpoint = folder / checkpoint.name
    if not checkpoint.is_file():
        raise ArtifactError(f"{folder}: holds no {CHECKPOINT}")
    record = conversion_record(folder) | {"encoder": model_label(encoder_name)}
    with atomic_folder(out, overwrite) as new:
        copied = [config_folder / "config.json"]
        copied += [path for pattern in TOKENIZER_FILES for path in tokenizer_folder.glob(pattern)]
        copied += [path for pattern in _COPIED for path in folder.glob(pattern)]
        for path in copied:
            shutil.copyfile(path, new / path.name)
        conversion = converted_apart(__name__, checkpoint, new)
        settings = _settings(hparams, conversion.pop("hyper_parameters"), label)
        record["files"][CHECKPOINT] = conversion
        write_json(new / SETTINGS_FILE, dataclasses.asdict(settings))
        write_json(new / "conversion.json", record)
        write_atomic(new / "preset.toml", _preset(label, settings.sides))
    return record


def conversion_record(folder: Path) -> JsonObject:
    """Begins the record of a conversion: ``model``, its ``revision`` on the Hub, and no ``files``
    yet."""
    snapshot = hub_snapshot(folder)
    return {"model": model_label(folder), "revision": snapshot and snapshot[1], "files": {}}


def _read_hparams(path: Path) -> JsonObject:
    """Reads hparams.yaml. Refuses a class that is not supported, before the large checkpoint is
    read."""
    import yaml

    try:
        hparams = yaml.safe_load(path.read_text(encoding="utf-8"))
        CometSettings.of(hparams)
    except (OSError, ValueError, TypeError, AttributeError, yaml.YAMLError, ArtifactError) as error:
        raise ArtifactError(f"{path}: no checkpoint of COMET that can be read ({error})") from error
    return hparams


def _settings(hparams: JsonObject, checkpoint_hparams: JsonObject, label: str) -> CometSettings:
    """Makes the settings of a checkpoint, of hparams.yaml and of the pickle.

    The published package asks hparams.yaml only for the class, and for one correction.
    """
    values = hparams | checkpoint_hparams
    values["class_identifier"] = hparams["class_identifier"]
    if hparams.get("layer_transformation") == _CORRECTED:
        values["layer_transformation"] = _CORRECTED
    is_standardised = label.rpartition("/")[2].startswith(_STANDARDISED)
    floor = _STANDARDISED_FLOOR if is_standardised else 0.0
    return dataclasses.replace(CometSettings.of(values), floor=floor, model=label)


def _preset(label: str, sides: tuple[str, ...]) -> str:
    """Writes preset.toml. It names the side where there is no choice."""
    toml = f'metric = "comet"\ndescription = "COMET {label}, converted."\n\n[comet]\nmodel = "."\n'
    if len(sides) == 1:
        toml += f'\n[score]\nagainst = "{sides[0]}"\n'
    return toml


def _encoder_files(name: str | Path | None, files: list[str], local_files_only: bool) -> Path:
    """Returns the folder that holds these files of an encoder; fetches them if need be."""
    if name is None:
        raise ArtifactError(f"{HPARAMS} names no pretrained_model; pass --encoder")
    folder = local_folder(name, "config.json")
    if folder is None:
        try:
            folder = download(hub_source(name), files, local_files_only=local_files_only)
        except ArtifactError as error:
            what = "configuration and tokenizer of the encoder are needed, not its weights"
            raise ArtifactError(
                f"encoder {name}: {error}; {what}; pass a folder with them by --encoder"
            ) from error
    refuse_code(folder)
    return folder


def comet_folder(
    name: str | Path, *, revision: str | None = None, local_files_only: bool = False
) -> Path:
    """Finds the folder of a converted checkpoint.

    Args:
        name: a folder, the name of a folder in ``MTMETRICS_ARTIFACTS``, or a Hub repository of a
            converted checkpoint.
        revision: of the repository.
        local_files_only: never ask the Hub.

    Raises:
        ArtifactError: there is none; the message says how to make one.
    """
    folder = local_folder(name, SETTINGS_FILE)
    advice = (
        f"make one by 'mtmetrics artifacts convert {name} --out DIR', and score with --metric "
        "comet:DIR"
    )
    if folder is None and Path(name).is_dir():
        raise ArtifactError(
            f"{name}: no {SETTINGS_FILE}, so it is no converted checkpoint of COMET; {advice}"
        )
    if folder is None:
        try:
            folder = download(
                hub_source(name, revision), MODEL_FILES, local_files_only=local_files_only
            )
        except ArtifactError as error:
            raise ArtifactError(f"COMET {name}: {error}; {advice}") from error
    if not (folder / SETTINGS_FILE).is_file():
        raise ArtifactError(
            f"COMET {name}: the repository holds the checkpoint as it was published; {advice}"
        )
    return folder


def convert_file(path: Path, target: Path) -> JsonObject:
    """Reads a checkpoint, and writes its encoder and the layers that read it into a folder.

    Returns:
        ``tensors``, how many were read, and ``hyper_parameters``, as far as they are plain values.
    """
    import torch
    from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

    stand_ins = [(_EmptyClass, name) for name in get_unsafe_globals_in_checkpoint(path)]
    with safe_globals(stand_ins):
        checkpoint = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    tensors = checkpoint.get("state_dict") if isinstance(checkpoint, dict) else None
    if not is_tensors(tensors):
        raise TypeError("it holds no state_dict of tensors")
    encoder = {
        name.removeprefix(_ENCODER): tensor
        for name, tensor in tensors.items()
        if name.startswith(_ENCODER)
    }
    heads = {
        name: tensor.float()
        for name, tensor in _learned(tensors).items()
        if name.startswith(_HEADS)
    }
    if not encoder or not heads:
        raise TypeError("it holds no encoder with an estimator")
    save_tensors(_learned(encoder), target / "model.safetensors")
    save_tensors(heads, target / HEADS_FILE)
    hparams = checkpoint.get("hyper_parameters")
    plain_hparams = {}
    if isinstance(hparams, dict):
        plain_hparams = {name: value for name, value in hparams.items() if _is_plain(value)}
    return {"tensors": len(encoder) + len(heads), "hyper_parameters": plain_hparams}


def _learned(tensors: "dict[str, torch.Tensor]") -> "dict[str, torch.Tensor]":
    """Leaves out the tensors that no training changes."""
    return {
        name: tensor for name, tensor in tensors.items() if not name.endswith(_CONSTANT_TENSORS)
    }


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str | list)


class _EmptyClass:
    """Stands in a pickle for a class that is not imported."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, _: object) -> None:
        pass


if __name__ == "__main__":
    answer(convert_file)
