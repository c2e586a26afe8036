"""The catalog of artifacts: ``catalog.toml``, with the checksum of every file of every artifact."""

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.atomic import git_blob_file, sha256_file, write_atomic
from mtmetrics.layout import bundled_artifacts

# The name of a repository on the Hub, ORG/NAME.
REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Origin:
    """The place where the authors of an artifact published it themselves.

    A file is served at ``URL/COMMIT/FILE``.
    """

    url: str
    commit: str
    licence: str


@dataclasses.dataclass(frozen=True)
class CatalogEntry:
    """An artifact.

    Attributes:
        name: of the artifact, and of its folder where it is bundled.
        kind: such as ``encoder`` or ``maps``.
        repository: its Hub repository; None for an artifact with an origin.
        revision: the commit of that repository.
        bundled: whether it ships with the package.
        files: name of a file -> its sha256; for an artifact with an origin, the git blob hash of
            the file at the origin.
        origin: place where its authors published it.
        mirror: Hub repository that holds the files of the origin, converted.
    """

    name: str
    kind: str
    repository: str | None
    revision: str | None
    bundled: bool
    files: dict[str, str]
    origin: Origin | None = None
    mirror: str | None = None


def catalog() -> dict[str, CatalogEntry]:
    """Reads all entries of ``catalog.toml``, by name.

    Raises:
        ArtifactError: the catalog is missing or malformed.
    """
    path = bundled_artifacts() / "catalog.toml"
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return {name: _entry(name, table) for name, table in tables.items()}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise ArtifactError(f"{path}: the artifact catalog cannot be read ({error!r})") from error


def _entry(name: str, table: dict[str, Any]) -> CatalogEntry:
    origin = Origin(**table["origin"]) if "origin" in table else None
    return CatalogEntry(
        name=name,
        kind=table["kind"],
        repository=None if origin else table["repository"],
        revision=None if origin else table["revision"],
        bundled=table["bundled"],
        files=dict(table.get("files", {})),
        origin=origin,
        mirror=table.get("mirror"),
    )


def entry_toml(entry: CatalogEntry) -> str:
    """Writes the entry of a Hub repository as it stands in ``catalog.toml``."""
    key = entry.name if re.fullmatch(r"[\w-]+", entry.name, re.ASCII) else json.dumps(entry.name)
    lines = [
        f"[{key}]",
        f"kind = {json.dumps(entry.kind)}",
        f"repository = {json.dumps(entry.repository)}",
        f"revision = {json.dumps(entry.revision)}",
        f"bundled = {json.dumps(entry.bundled)}",
        "",
        f"[{key}.files]",
    ]
    for file, digest in sorted(entry.files.items()):
        lines.append(f"{json.dumps(file)} = {json.dumps(digest)}")
    return "\n".join(lines) + "\n"


def update_catalog(path: Path, entry: CatalogEntry) -> bool:
    """Replaces the entry with the same name in a catalog file, or adds one.

    Returns:
        Whether anything changed.

    Raises:
        ArtifactError: the catalog cannot be read, or the entry cannot be replaced there.
    """
    try:
        text = path.read_text(encoding="utf-8").rstrip() + "\n" if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path}: the artifact catalog cannot be read ({error})") from error
    new = entry_toml(entry)
    # Not by tomlkit: it puts new files behind a comment that belongs to the next entry.
    header = re.escape(new.partition("]")[0])  # "[NAME", which "[NAME.files" begins with too
    section = re.compile(
        rf"^{header}\]\n(?:(?!\[|#).*\n)*(?:{header}\..*\n(?:(?!\[|#).*\n)*)*", re.MULTILINE
    )
    old = section.search(text)
    if old:
        rest = text[old.end() :]
        gap = "\n" if rest else ""
        changed = text[: old.start()] + new + gap + rest
    else:
        changed = f"{text}\n{new}" if text.strip() else new
    if changed == text:
        return False
    try:
        tomllib.loads(changed)
    except tomllib.TOMLDecodeError as error:
        raise ArtifactError(
            f"{path}: the entry {entry.name} cannot be replaced there ({error}); write it by "
            f"hand:\n{new}"
        ) from error
    write_atomic(path, changed)
    return True


def verify(name: str, folder: Path | None = None) -> Iterator[str]:
    """Compares the files of an artifact with the catalog's checksums and yields one line per
    problem.

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
    entry = entries[name]
    algorithm = "git blob hash" if entry.origin else "sha256"
    checksum = git_blob_file if entry.origin else sha256_file
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for file in sorted(entry.files.keys() | present):
        if file not in present:
            yield f"{name}/{file}: missing"
        elif file not in entry.files:
            yield f"{name}/{file}: not in the catalog"
        elif checksum(folder / file) != entry.files[file]:
            yield f"{name}/{file}: damaged, its {algorithm} is not the catalog's"
