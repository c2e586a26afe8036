"""Checkpoints of COMET become folders; what they hold beside tensors is neither imported nor
run."""

import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from helpers import converting_here
from safetensors.torch import load_file
from torch.serialization import get_unsafe_globals_in_checkpoint

from mtmetrics.artifacts.comet_checkpoints import CometSettings
from mtmetrics.artifacts.convert import convert_model
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.layout import source_tree

GOLDENS = source_tree() / "tests" / "parity" / "comet"
ENCODER = GOLDENS / "encoders" / "XLM-RoBERTa"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A copy of one of the goldens'."""
    return Path(shutil.copytree(GOLDENS / "models" / "regression", tmp_path / "wmt20-comet-da"))


@pytest.fixture
def here() -> Iterator[None]:
    """Checkpoints are read in this process; the first test has another one do it."""
    with converting_here():
        yield


class Evil:
    """Makes a folder where it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (os.environ["EVIL"],)


def test_a_checkpoint_becomes_a_preset(
    checkpoint: Path, tmp_path: Path, mtmetrics: Callable
) -> None:
    (checkpoint / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    out = tmp_path / "out"
    code, printed, err = mtmetrics(
        "artifacts", "convert", checkpoint, "--encoder", ENCODER, "--out", out
    )
    assert (code, err) == (0, "mtmetrics: wmt20-comet-da: its licence is apache-2.0\n")
    record = json.loads((out / "conversion.json").read_text())
    assert json.loads(printed) == {"folder": str(out), **record}
    assert (record["model"], record["encoder"]) == ("wmt20-comet-da", "XLM-RoBERTa")
    # Beside its tensors it names a class of a package, as Lightning does.
    path = checkpoint / "checkpoints" / "model.ckpt"
    assert get_unsafe_globals_in_checkpoint(path) == [
        "transformers.trainer_callback.TrainerCallback"
    ]
    tensors = torch.load(path, weights_only=False)["state_dict"]
    written = load_file(out / "model.safetensors")
    assert all(
        torch.equal(value, tensors[f"encoder.model.{name}"]) for name, value in written.items()
    )
    settings = json.loads((out / "comet.json").read_text())
    assert (settings["floor"], settings["class_identifier"]) == (-2.0, "regression_metric")
    assert 'against = "both"' in (out / "preset.toml").read_text()
    code, _, err = mtmetrics("artifacts", "convert", checkpoint, "--encoder", ENCODER, "--out", out)
    assert (code, "exists already" in err) == (2, True)


def test_code_does_not_run(
    checkpoint: Path, here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVIL", str(tmp_path / "evil"))
    path = checkpoint / "checkpoints" / "model.ckpt"
    torch.save(torch.load(path, weights_only=False) | {"callbacks": Evil()}, path)
    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        convert_model(checkpoint, tmp_path / "out", encoder=ENCODER)
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            'pool: "max"\n',
            {"pool": "avg", "layer_transformation": "softmax"},
        ),  # its own settings decide
        ('layer_transformation: "sparsemax_patch"\n', {"layer_transformation": "softmax"}),
    ],
)
def test_whose_settings_decide(
    checkpoint: Path, here: None, tmp_path: Path, line: str, expected: dict
) -> None:
    path = checkpoint / "checkpoints" / "model.ckpt"
    whole = torch.load(path, weights_only=False)
    if "patch" in line:
        whole["hyper_parameters"]["layer_transformation"] = "sparsemax"
        torch.save(whole, path)
    with open(checkpoint / "hparams.yaml", "a") as stream:
        stream.write(line)  # the last of two counts
    convert_model(checkpoint, tmp_path / "out", encoder=ENCODER)
    settings = json.loads((tmp_path / "out" / "comet.json").read_text())
    assert {name: settings[name] for name in expected} == expected
    assert settings["model"] == "wmt20-comet-da"


def test_a_checkpoint_may_lie_in_the_folder_itself(
    checkpoint: Path, here: None, tmp_path: Path
) -> None:
    (checkpoint / "checkpoints" / "model.ckpt").rename(checkpoint / "model.ckpt")
    convert_model(checkpoint, tmp_path / "out", encoder=ENCODER)
    assert (tmp_path / "out" / "comet.safetensors").is_file()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda folder: (folder / "hparams.yaml").write_text("a: [b"),
            r"hparams.yaml: no checkpoint of COMET that can",
        ),
        (
            lambda folder: (folder / "hparams.yaml").write_text("- 1"),
            r"hparams.yaml: no checkpoint of COMET",
        ),
        (
            lambda folder: (folder / "hparams.yaml").write_text("class_identifier: ranking_metric"),
            "its class is 'ranking_metric'; what can be read is regression_metric, referenceless",
        ),
        (
            lambda folder: (folder / "checkpoints" / "model.ckpt").unlink(),
            "holds no checkpoints/model.ckpt",
        ),
        (
            lambda folder: (folder / "checkpoints" / "model.ckpt").write_bytes(b"PK"),
            "cannot be converted",
        ),
        (
            lambda folder: torch.save({"a": 1}, folder / "checkpoints" / "model.ckpt"),
            "holds no state_dict of tensors",
        ),
        (
            lambda folder: torch.save(
                {"state_dict": {"a": torch.ones(1)}}, folder / "checkpoints" / "model.ckpt"
            ),
            "holds no encoder with an estimator",
        ),
    ],
)
def test_what_cannot_be_converted(
    checkpoint: Path, tmp_path: Path, change: Callable, message: str
) -> None:
    change(checkpoint)
    with pytest.raises(ArtifactError, match=message):
        convert_model(checkpoint, tmp_path / "out", encoder=ENCODER)
    assert not (tmp_path / "out").exists()


def test_encoders_that_are_missing_or_not_needed(
    checkpoint: Path, tmp_path: Path, tiny_encoder: Path
) -> None:
    with pytest.raises(
        ArtifactError,
        match=r"encoder encoders/XLM-RoBERTa: .* pass a folder with them by --encoder",
    ):
        convert_model(checkpoint, tmp_path / "out", local_files_only=True)
    with pytest.raises(InputError, match="is no checkpoint of COMET, which alone needs one"):
        convert_model(tiny_encoder, tmp_path / "out", encoder=ENCODER)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            {"class_identifier": "regression_metric"},
            {"layer": "mix", "layer_transformation": "softmax", "pool": "avg"},
        ),
        (
            {"class_identifier": "unified_metric"},
            {"layer_transformation": "sparsemax", "layer_norm": True},
        ),
        (
            {
                "class_identifier": "unified_metric",
                "layer_transformation": "sparsemax_patch",
                "sent_layer": 3,
            },
            {"layer_transformation": "softmax", "layer": 3, "error_labels": []},
        ),
        (
            {"class_identifier": "xcomet_metric", "input_segments": ["mt", "src"]},
            {
                "layer_norm": False,
                "input_segments": ["mt", "src", "ref"],
                "error_labels": ["minor", "major", "critical"],
            },
        ),
    ],
)
def test_settings_that_a_checkpoint_leaves_out(told: dict, expected: dict) -> None:
    settings = CometSettings.of(told)
    assert {name: getattr(settings, name) for name in expected} == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"pool": "sum"},
        {"encoder_model": "GPT"},
        {"layer": "last"},
        {"hidden_sizes": []},
        {"hidden_sizes": ["a"]},
        {"activations": "Swish"},
        {"final_activation": "Linear"},
        {"input_segments": ["mt"]},
    ],
)
def test_settings_that_are_not_known(wrong: dict) -> None:
    [name] = wrong
    with pytest.raises(ArtifactError, match=f"its {name} is .*, which is not known here"):
        CometSettings.of({"class_identifier": "regression_metric"} | wrong)
