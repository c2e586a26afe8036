"""Low-rank adapters of an encoder (LoRA; Hu et al., 2022), in the layout of the library peft, which
nothing here needs.

The folder of an adapter holds ``adapter_config.json`` and ``adapter_model.safetensors``, as peft
writes them, and a ``config.json`` that pins the encoder (the base) by its fingerprint. A matrix W of
the base is read as ``W + (alpha / r) B A``."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.artifacts.catalog import REPOSITORY_NAME_PATTERN, catalog
from mtmetrics.artifacts.places import artifact_name, hub_snapshot
from mtmetrics.errors import ArtifactError
from mtmetrics.io.atomic import write_json
from mtmetrics.io.checksums import cached_sha256
from mtmetrics.io.lines import JsonObject

if TYPE_CHECKING:
    import torch

SETTINGS, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
# Places of a base that go where the adapter goes: a folder in its own, and one beside it.
BASE, ENCODER_BESIDE = "base", "../encoder"
_CONFIG, _FINGERPRINT = "config.json", "encoder_fingerprint"
# How peft names the two matrices of a module.
_NAME = re.compile(r"base_model\.model\.(.+)\.lora_([AB])\.weight")
# Settings of peft that change the equation.
_OTHER_EQUATIONS = (
    "alpha_pattern",
    "fan_in_fan_out",
    "kasa_config",
    "layer_replication",
    "lora_bias",
    "monteclora_config",
    "use_bdlora",
    "use_dora",
    "use_qalora",
    "use_rslora",
)
# Ways to begin that leave the matrices of the base as they are.
_PLAIN_BEGINNINGS = (True, False, None, "gaussian")


@dataclass(frozen=True)
class Adapter:
    """The settings of an adapter.

    Attributes:
        folder: where it lies.
        base: the name of its encoder: an artifact, a Hub repository, or a folder; ``base`` and
            ``../encoder`` begin at the folder of the adapter.
        revision: the Hub revision of the encoder.
        base_fingerprint: the fingerprint of the encoder.
        rank: r, the number of rows of A.
        alpha: scales the product, with the rank.
    """

    folder: Path
    base: str
    revision: str | None
    base_fingerprint: str
    rank: int
    alpha: float

    @property
    def base_place(self) -> str:
        """The name of the encoder, as `mtmetrics.artifacts.models.model_folder` finds it."""
        return str(self.folder / self.base) if self.base in (BASE, ENCODER_BESIDE) else self.base

    @property
    def fingerprint(self) -> str:
        """8 hexadecimal digits that pin the numbers of the adapter on its base, wherever both
        lie."""
        weights = cached_sha256(self.folder / WEIGHTS)
        pinned = f"{WEIGHTS}:{weights}\n{self.base_fingerprint} {self.rank} {self.alpha}\n"
        return hashlib.sha256(pinned.encode()).hexdigest()[:8]


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter."""
    return (folder / SETTINGS).is_file()


def read_adapter(folder: Path) -> Adapter:
    """Reads the settings of an adapter.

    Raises:
        ArtifactError: a file is missing or malformed, the adapter is of another kind, or it does
            not say which encoder it was made for.
    """
    settings, config = read_json_object(folder / SETTINGS), read_json_object(folder / _CONFIG)
    rank, alpha = settings.get("r"), settings.get("lora_alpha")
    base, revision = settings.get("base_model_name_or_path"), settings.get("revision")
    problem = None
    if settings.get("peft_type") != "LORA":
        problem = f"peft_type is {settings.get('peft_type')!r}, and only 'LORA' is read"
    elif type(rank) is not int or rank < 1 or type(alpha) not in (int, float):
        problem = f"r {rank!r} and lora_alpha {alpha!r} must be numbers, r at least 1"
    elif not isinstance(base, str) or not base:
        problem = "base_model_name_or_path does not name an encoder"
    elif changed := [name for name in _OTHER_EQUATIONS if settings.get(name)]:
        problem = f"{changed[0]} is set, and only W + (alpha / r) B A is computed"
    elif settings.get("init_lora_weights") not in _PLAIN_BEGINNINGS:
        problem = f"init_lora_weights {settings['init_lora_weights']!r} changes the encoder, too"
    if problem:
        raise ArtifactError(f"{folder / SETTINGS}: {problem}")
    base_fingerprint = config.get(_FINGERPRINT)
    if not isinstance(base_fingerprint, str):
        raise ArtifactError(
            f"{folder / _CONFIG}: {_FINGERPRINT} is missing, so nobody knows for which version of "
            f"{base} the adapter was made; 'mtmetrics train contrastive --adapter-rank N' writes it"
        )
    return Adapter(folder, base, revision, base_fingerprint, rank, float(alpha))


def read_json_object(path: Path) -> JsonObject:
    """Reads a file that holds a JSON object.

    Raises:
        ArtifactError: the file is missing, or holds something else.
    """
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path}: cannot be read as JSON ({error})") from error
    if not isinstance(table, dict):
        raise ArtifactError(f"{path}: a JSON object is needed")
    return table


def write_settings(
    folder: Path, settings: Mapping[str, object], base: Path, base_fingerprint: str
) -> None:
    """Writes the settings of an adapter, and the encoder that it is bound to.

    Args:
        folder: of the adapter.
        settings: those of peft (JSON values).
        base: the folder of the encoder.
        base_fingerprint: its fingerprint.
    """
    write_json(folder / SETTINGS, dict(settings), sort_keys=True)
    snapshot = hub_snapshot(base)
    name, revision = snapshot or (artifact_name(base) or str(base.resolve()), None)
    bind(folder, name, revision)
    write_json(folder / _CONFIG, {"kind": "adapter", _FINGERPRINT: base_fingerprint})


def bind(folder: Path, base: str, revision: str | None = None) -> None:
    """Writes under which name the encoder of an adapter is found from now on."""
    named = {"base_model_name_or_path": base, "revision": revision}
    write_json(folder / SETTINGS, read_json_object(folder / SETTINGS) | named, sort_keys=True)


def require_public_base(folder: Path) -> None:
    """Raises an ArtifactError for an adapter whose encoder others would not find: it may be in the
    folder ``base`` of the adapter, in the catalog, or a Hub repository."""
    adapter = read_adapter(folder)
    is_public = adapter.base in catalog() or REPOSITORY_NAME_PATTERN.fullmatch(adapter.base)
    if adapter.base != BASE and not is_public:
        raise ArtifactError(
            f"{folder / SETTINGS}: others would not find the encoder {adapter.base}; publish it, "
            "and write its repository as base_model_name_or_path"
        )


def merged(tensors: "Mapping[str, torch.Tensor]", folder: Path) -> "dict[str, torch.Tensor]":
    """Returns the tensors of an encoder with those that an adapter changes as
    ``W + (alpha / r) B A``, in float32.

    Args:
        tensors: of the encoder, by name; where the model is part of a larger one, its names may
            have a prefix.
        folder: of the adapter; for any other folder, the tensors stay as they are.

    Raises:
        ArtifactError: the adapter holds other tensors than A and B, or they do not fit.
    """
    if not is_adapter(folder):
        return dict(tensors)
    adapter = read_adapter(folder)
    scale = adapter.alpha / adapter.rank
    whole = dict(tensors)
    for module, (a, b) in _matrices(adapter).items():
        name = f"{module}.weight"
        names = [key for key in tensors if key == name or key.endswith(f".{name}")]
        if len(names) != 1:
            raise ArtifactError(f"{folder / WEIGHTS}: {adapter.base} has no matrix {name}")
        matrix = tensors[names[0]]
        if matrix.shape != (b.shape[0], a.shape[1]):
            sizes = f"{b.shape[0]} x {a.shape[1]}, and not {' x '.join(map(str, matrix.shape))}"
            raise ArtifactError(f"{folder / WEIGHTS}: {name} of {adapter.base} is not {sizes}")
        whole[names[0]] = matrix.float() + scale * (b.float() @ a.float())
    return whole


def _matrices(adapter: Adapter) -> "dict[str, tuple[torch.Tensor, torch.Tensor]]":
    """Module -> its matrices A (r, in) and B (out, r)."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = adapter.folder / WEIGHTS
    try:
        stored = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ArtifactError(f"{path}: cannot be read, damaged or incomplete? ({error})") from error
    matrices: dict[str, dict[str, torch.Tensor]] = {}
    for key, tensor in stored.items():
        name = _NAME.fullmatch(key)
        rank_axis = 0 if name and name[2] == "A" else 1
        if name is None or tensor.ndim != 2 or tensor.shape[rank_axis] != adapter.rank:
            raise ArtifactError(
                f"{path}: {key} is neither A nor B of a low-rank adapter of rank {adapter.rank}"
            )
        matrices.setdefault(name[1], {})[name[2]] = tensor
    alone = [module for module, pair in matrices.items() if len(pair) != 2]
    if alone or not matrices:
        raise ArtifactError(f"{path}: A or B is missing of {', '.join(alone) or 'all modules'}")
    return {module: (pair["A"], pair["B"]) for module, pair in matrices.items()}
