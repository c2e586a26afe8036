"""Makes folders of COMET's published checkpoints, which are pickles of PyTorch Lightning.

A folder holds the encoder as `transformers` loads it (``config.json``, ``model.safetensors``, its
tokenizer), what reads it (``comet.safetensors``, ``comet.json``), and a ``preset.toml``, so that it
is a preset: ``--metric comet:DIR``. As for other pickles, a process of its own reads the
checkpoint; classes that it names beside its tensors are not imported, empty ones stand in for them.
"""

import dataclasses
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.artifacts.cards import licence_of
from mtmetrics.artifacts.hub import download
from mtmetrics.artifacts.models import MODEL_FILES, TOKENIZER_FILES, model_label, refuse_code
from mtmetrics.artifacts.pickles import answer, converted_apart, save_tensors
from mtmetrics.artifacts.places import hub_snapshot, hub_source, local_folder
from mtmetrics.errors import ArtifactError
from mtmetrics.io.atomic import new_folder, write_atomic, write_json

if TYPE_CHECKING:
    import torch

SETTINGS_FILE, HEADS_FILE = "comet.json", "comet.safetensors"
# Class of a checkpoint -> the sides that it can compare with, the usual one first.
FAMILIES = {
    "regression_metric": ("both",),
    "referenceless_regression_metric": ("source",),
    "unified_metric": ("both", "source", "reference"),
    "xcomet_metric": ("both", "source", "reference"),
}
# What stands between two texts of one sequence.
SEPARATORS = {"BERT": 1, "RemBERT": 1, "XLM-RoBERTa": 2, "XLM-RoBERTa-XL": 2, "MiniLM": 2}
_POOLINGS = ("avg", "max", "cls", "default")
_ACTIVATIONS = ("Tanh", "Sigmoid", "Hardtanh", "Softplus", "Softsign")
HPARAMS, CHECKPOINT = "hparams.yaml", "checkpoints/model.ckpt"
# MiniLM has no tokenizer of its own.
_TOKENIZERS = {"MiniLM": "xlm-roberta-base"}
_ENCODER, _HEADS = "encoder.model.", ("estimator.", "layerwise_attention.", "hidden2tag.")
_TABLES = ("position_ids", "dropout_mask", "dropout_fill")
_COPIED = ["README.md", "LICENSE*"]
# Scores of these were trained on z-scores, of which the worst are below -2; those of others lie
# between 0 and 1.
_STANDARDISED = ("wmt20-", "wmt21-", "eamt22-")
_LOWEST = -2.0
# How hparams.yaml says that a checkpoint was trained with softmax, although it names sparsemax
# itself.
_CORRECTED = "sparsemax_patch"


@dataclasses.dataclass(frozen=True)
class CometSettings:
    """Settings of the network of a checkpoint; the defaults are those of the published package.

    Attributes:
        class_identifier: its family, one of `FAMILIES`.
        encoder_model: kind of the encoder, one of `SEPARATORS`.
        layer: hidden state of the encoder that is read; ``mix`` for a learned mix of all,
            embeddings included.
        layer_transformation: ``sparsemax`` or ``softmax`` of the mix.
        layer_norm: normalise each hidden state, over all its tokens together, before it is mixed.
        pool: how a vector of a text is made of those of its tokens; joint sequences are read at
            their first token.
        hidden_sizes: of the estimator.
        activations: between its layers.
        final_activation: behind the last one.
        input_segments: what is read of ``mt``, ``src``, ``ref``, of a joint sequence.
        error_labels: severities of errors in words, of a network that finds them; else empty.
        word_layer: hidden state from which words are labelled.
        floor: score of a segment of which a side is blank.
        model: what the checkpoint is called where it is published.
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
    def of(cls, hparams: Mapping[str, Any]) -> "CometSettings":
        """Settings from those of a checkpoint; an `ArtifactError` where it is none that can be
        read."""
        family = hparams.get("class_identifier")
        if family not in FAMILIES:
            raise ArtifactError(
                f"its class is {family!r}; what can be read is {', '.join(FAMILIES)}"
            )
        joint = family in ("unified_metric", "xcomet_metric")
        values = dict(hparams)
        values["layer"] = hparams.get("sent_layer" if joint else "layer", "mix")
        # Anything but sparsemax, such as `_CORRECTED`, is softmax.
        usual = "sparsemax" if joint else "softmax"
        mixed = values.get("layer_transformation", usual)
        values["layer_transformation"] = "sparsemax" if mixed == "sparsemax" else "softmax"
        if family == "xcomet_metric":
            values |= {
                "input_segments": ["mt", "src", "ref"],
                "error_labels": ["minor", "major", "critical"],
            }
        elif not values.get("word_level_training"):
            values["error_labels"] = []
        usually = {
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
        names = [field.name for field in dataclasses.fields(cls)]
        values = usually | values
        settings = cls(**{name: value for name, value in values.items() if name in names})
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
        numbers = [*self.hidden_sizes, self.word_layer]
        fits = {
            "encoder_model": self.encoder_model in SEPARATORS,
            "pool": self.pool in _POOLINGS,
            "layer": self.layer == "mix" or type(self.layer) is int,
            "hidden_sizes": bool(self.hidden_sizes) and all(type(size) is int for size in numbers),
            "activations": str(self.activations).title() in _ACTIVATIONS,
            "final_activation": self.final_activation is None
            or str(self.final_activation).title() in _ACTIVATIONS,
            "input_segments": self.input_segments
            in (["mt", "src", "ref"], ["mt", "src"], ["mt", "ref"]),
        }
        for name, is_known in fits.items():
            if not is_known:
                raise ArtifactError(
                    f"its {name} is {getattr(self, name)!r}, which is not known here"
                )

    @property
    def joint(self) -> bool:
        """Whether the texts are read as one sequence."""
        return self.class_identifier in ("unified_metric", "xcomet_metric")

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides that it can compare with, the usual one first."""
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
) -> dict[str, Any]:
    """Makes a folder of a checkpoint.

    Args:
        folder: holds ``hparams.yaml`` and ``checkpoints/model.ckpt``.
        out: the folder to make.
        encoder: a folder or Hub repository with configuration and tokenizer of the encoder; by
            default the one that the checkpoint names. No weights are read there.
        local_files_only: never ask the Hub.
        overwrite: replace an existing folder.

    Returns:
        What ``conversion.json`` holds.

    Raises:
        InputError: `out` exists already.
        ArtifactError: the checkpoint is damaged or of a class that is not read, or the encoder
            cannot be found.
        MTMetricsError: `out` cannot be written.
    """
    import yaml

    try:
        hparams = yaml.safe_load((folder / HPARAMS).read_text(encoding="utf-8"))
        CometSettings.of(hparams)  # so that a class that is not read is said before gigabytes are
    except (OSError, ValueError, TypeError, AttributeError, yaml.YAMLError, ArtifactError) as error:
        raise ArtifactError(
            f"{folder / HPARAMS}: no checkpoint of COMET that can be read ({error})"
        ) from error
    label = model_label(folder)
    if licence := licence_of(folder):
        print(f"mtmetrics: {label}: its licence is {licence}", file=sys.stderr)
    named = encoder or hparams.get("pretrained_model")
    about = _files_of(named, ["config.json"], local_files_only)
    vocabulary = about
    kind = hparams.get("encoder_model")
    if encoder is None and kind in _TOKENIZERS:
        vocabulary = _files_of(_TOKENIZERS[kind], TOKENIZER_FILES, local_files_only)
    elif local_folder(named, "config.json") is None:
        vocabulary = _files_of(named, TOKENIZER_FILES, local_files_only)
    snapshot = hub_snapshot(folder)
    path = next(
        (path for path in (folder / CHECKPOINT, folder / Path(CHECKPOINT).name) if path.is_file()),
        None,
    )
    if path is None:
        raise ArtifactError(f"{folder}: holds no {CHECKPOINT}")
    record = {
        "model": label,
        "revision": snapshot and snapshot[1],
        "encoder": model_label(named),
        "files": {},
    }
    with new_folder(out, overwrite) as made:
        copied = {about / "config.json": made / "config.json"}
        copied |= {
            file: made / file.name
            for pattern in TOKENIZER_FILES
            for file in vocabulary.glob(pattern)
        }
        copied |= {file: made / file.name for pattern in _COPIED for file in folder.glob(pattern)}
        for file, target in copied.items():
            shutil.copyfile(file, target)
        done = converted_apart(__name__, path, made)
        # As the published package does, which asks hparams.yaml for the class alone, and for one
        # correction.
        own = done.pop("hyper_parameters")
        if hparams.get("layer_transformation") == _CORRECTED:
            own["layer_transformation"] = _CORRECTED
        settings = CometSettings.of(
            hparams | own | {"class_identifier": hparams["class_identifier"]}
        )
        floor = _LOWEST if label.rpartition("/")[2].startswith(_STANDARDISED) else 0.0
        settings = dataclasses.replace(settings, floor=floor, model=label)
        record["files"][CHECKPOINT] = done
        write_json(made / SETTINGS_FILE, dataclasses.asdict(settings))
        write_json(made / "conversion.json", record)
        write_atomic(made / "preset.toml", _preset(label, settings.sides))
    return record


def _preset(label: str, sides: tuple[str, ...]) -> str:
    only = f'\n[score]\nagainst = "{sides[0]}"\n' if len(sides) == 1 else ""
    return (
        f'metric = "comet"\ndescription = "COMET {label}, converted."\n\n[comet]\nmodel = '
        f'"."\n{only}'
    )


def _files_of(name: str | Path | None, files: list[str], local_files_only: bool) -> Path:
    """The folder that holds these files of an encoder."""
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
    """The folder of a converted checkpoint.

    Args:
        name: a folder, its name in that of ``MTMETRICS_ARTIFACTS``, or a Hub repository that holds
            such a folder.
        revision: of the repository.
        local_files_only: never ask the Hub.

    Raises:
        ArtifactError: there is none; the message says how one is made.
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


def _convert_file(path: Path, made: Path) -> dict[str, Any]:
    """Reads a checkpoint, and writes the tensors of its encoder and those that read it."""
    import torch
    from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

    stand_ins = [
        (type("StandIn", (_Nothing,), {}), name) for name in get_unsafe_globals_in_checkpoint(path)
    ]
    with safe_globals(stand_ins):
        whole = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    states = whole.get("state_dict") if isinstance(whole, dict) else None
    if not isinstance(states, dict) or not all(
        isinstance(value, torch.Tensor) for value in states.values()
    ):
        raise TypeError("it holds no state_dict of tensors")
    encoder = {
        name.removeprefix(_ENCODER): value
        for name, value in states.items()
        if name.startswith(_ENCODER)
    }
    heads = {
        name: value.float() for name, value in _kept(states).items() if name.startswith(_HEADS)
    }
    if not encoder or not heads:
        raise TypeError("it holds no encoder with an estimator")
    save_tensors(_kept(encoder), made / "model.safetensors")
    save_tensors(heads, made / HEADS_FILE)
    told = whole.get("hyper_parameters")
    plain = (
        {name: value for name, value in told.items() if _is_plain(value)}
        if isinstance(told, dict)
        else {}
    )
    return {"tensors": len(encoder) + len(heads), "hyper_parameters": plain}


def _kept(tensors: "dict[str, torch.Tensor]") -> "dict[str, torch.Tensor]":
    """Without tables that are none of training: numbers of positions, and what drops layers while a
    mix is learned."""
    return {name: value for name, value in tensors.items() if not name.endswith(_TABLES)}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | list)


class _Nothing:
    """Stands in a pickle for a class that is not imported."""

    def __init__(self, *given: Any, **named: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass


if __name__ == "__main__":
    answer(_convert_file)
