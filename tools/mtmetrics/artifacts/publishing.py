"""Artifact folders as Hub repositories: which files are published, and the entry of the catalog that comes of it."""

import json
from collections.abc import Callable
from pathlib import Path

from mtmetrics.artifacts.cards import check_model_card
from mtmetrics.artifacts.catalog import CatalogEntry, catalog
from mtmetrics.artifacts.files import sha256_unchanged
from mtmetrics.artifacts.push import Plan, Publication
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.layout import bundled_artifacts

# What a production keeps for itself, and mined or translated text, which must not be published.
_PRIVATE = {"work", "__pycache__"}
# Formats that are unpickled, so that loading them may run code.
_CODE = {".bin", ".ckpt", ".joblib", ".npy", ".npz", ".pickle", ".pkl", ".pt", ".pth", ".py"}

_KINDS: dict[str, Callable[[Path], bool]] = {
    "preset": lambda folder: (folder / "preset.toml").is_file(),
    "maps": lambda folder: any(folder.glob("*.clp.safetensors")) or any(folder.glob("*.umd.safetensors")),
    "regressor": lambda folder: "encoder_fingerprint" in _config(folder),
    "language-model": lambda folder: any(
        name.endswith("LMHeadModel") for name in _config(folder).get("architectures", [])
    ),
    "encoder": lambda folder: (folder / "config.json").is_file() or (folder / "modules.json").is_file(),
}


def artifact_folder(name: str) -> Path:
    """The folder that is published under a name: that of a bundled artifact, or one that is given by its path.

    Raises:
        InputError: neither of the two.
    """
    entries = catalog()
    folder = bundled_artifacts() / name if name in entries and entries[name].bundled else Path(name)
    if not folder.is_dir():
        bundled = ", ".join(entry.name for entry in entries.values() if entry.bundled)
        raise InputError(f"{name}: neither a folder nor a bundled artifact; those are: {bundled}")
    return folder.resolve()


def artifact_publication(folder: Path, namespace: str) -> Publication:
    """An artifact's folder as a repository; hidden files and the folder ``work`` stay here.

    Raises:
        ArtifactError: its card is missing or incomplete, or a file is of a format that is not published.
    """
    check_model_card(folder)
    files = published_files(folder)
    code = [path for path in files if Path(path).suffix.lower() in _CODE]
    if code:
        raise ArtifactError(
            f"{folder}: {', '.join(code)}: formats that may run code are not published; store weights as safetensors"
        )
    return Publication(f"{namespace}/{folder.name}", "model", files)


def published_files(folder: Path) -> dict[str, Path]:
    """The files of a folder that are published, by their path in it.

    Raises:
        ArtifactError: one is a link to a file elsewhere, whose content would be published.
    """
    found = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    files = {
        inner.as_posix(): path
        for inner, path in found.items()
        if not any(part.startswith(".") or part in _PRIVATE for part in inner.parts)
    }
    links = [name for name, path in files.items() if not path.resolve().is_relative_to(folder.resolve())]
    if links:
        raise ArtifactError(
            f"{folder}: {', '.join(links)}: links to files elsewhere are not published; put copies there"
        )
    return files


def published_entry(folder: Path, plan: Plan) -> CatalogEntry:
    """The entry of the catalog for a folder that was pushed.

    Raises:
        ArtifactError: it cannot be told what kind of artifact it is.
    """
    files = {path: sha256_unchanged(file) for path, file in plan.publication.files.items()}
    bundled = folder.parent == bundled_artifacts().resolve()
    return CatalogEntry(folder.name, artifact_kind(folder), plan.publication.repository, plan.tag, bundled, files)


def artifact_kind(folder: Path) -> str:
    """What an artifact's folder holds, as the catalog calls it.

    Raises:
        ArtifactError: none of the kinds there are.
    """
    for kind, holds in _KINDS.items():
        if holds(folder):
            return kind
    raise ArtifactError(
        f"{folder}: neither preset.toml, maps (XX-YY.clp.safetensors) nor config.json, so it is no artifact"
    )


def _config(folder: Path) -> dict:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}
