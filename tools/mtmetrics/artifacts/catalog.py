"""The catalog of artifacts: what exists, where it is published, and the checksum of every file."""

import dataclasses
import tomllib
from collections.abc import Iterator
from pathlib import Path

from mtmetrics.artifacts.files import sha256_file
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.layout import bundled_artifacts


@dataclasses.dataclass(frozen=True)
class CatalogEntry:
    """One artifact.

    Attributes:
        name: its name, and its folder's under ``hub_artifacts`` where it is bundled.
        kind: ``encoder``, ``language-model``, ``maps``, ...
        repository: Hub repository.
        revision: Hub revision.
        bundled: whether it ships with the package.
        files: file name -> sha256.
    """

    name: str
    kind: str
    repository: str
    revision: str
    bundled: bool
    files: dict[str, str]


def catalog() -> dict[str, CatalogEntry]:
    """All entries of ``catalog.toml`` by name.

    Raises:
        ArtifactError: the catalog is missing or malformed.
    """
    path = bundled_artifacts() / "catalog.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return {
            name: CatalogEntry(name, entry["kind"], entry["repository"], entry["revision"], entry["bundled"], dict(entry.get("files", {})))
            for name, entry in table.items()
        }
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise ArtifactError(f"{path}: the artifact catalog cannot be read ({error!r})") from error


def verify(name: str, folder: Path | None = None) -> Iterator[str]:
    """Compares the files of an artifact with the catalog's checksums and yields one line per problem.

    Args:
        name: an artifact of the catalog.
        folder: where its files lie; None for the bundled folder.

    Raises:
        InputError: the catalog has no such artifact.
    """
    entries = catalog()
    if name not in entries:
        raise InputError(f"unknown artifact {name!r}; there are: {', '.join(entries)}")
    folder = folder or bundled_artifacts() / name
    expected = entries[name].files
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for file in sorted(expected.keys() | present):
        if file not in present:
            yield f"{name}/{file}: missing"
        elif file not in expected:
            yield f"{name}/{file}: not in the catalog"
        elif sha256_file(folder / file) != expected[file]:
            yield f"{name}/{file}: damaged, its sha256 is not the catalog's"
