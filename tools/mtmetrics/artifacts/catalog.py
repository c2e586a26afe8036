"""The catalog of artifacts: what exists, where it is published, and the checksum of every file."""

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from mtmetrics.artifacts.files import git_blob_file, sha256_file, write_atomic
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.layout import bundled_artifacts


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where the authors of an artifact published it themselves; a file is served at ``URL/COMMIT/FILE``."""

    url: str
    commit: str
    licence: str


@dataclasses.dataclass(frozen=True)
class CatalogEntry:
    """One artifact, whose folder has its name where it is bundled.

    `files` maps names to sha256. What has an `origin` is in no Hub repository, and `files` holds git blob hashes.
    """

    name: str
    kind: str
    repository: str | None
    revision: str | None
    bundled: bool
    files: dict[str, str]
    origin: Origin | None = None


def catalog() -> dict[str, CatalogEntry]:
    """All entries of ``catalog.toml`` by name.

    Raises:
        ArtifactError: the catalog is missing or malformed.
    """
    path = bundled_artifacts() / "catalog.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = {}
        for name, entry in table.items():
            place = (None, None) if "origin" in entry else (entry["repository"], entry["revision"])
            origin = Origin(**entry["origin"]) if "origin" in entry else None
            files = dict(entry.get("files", {}))
            entries[name] = CatalogEntry(name, entry["kind"], *place, entry["bundled"], files, origin)
        return entries
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise ArtifactError(f"{path}: the artifact catalog cannot be read ({error!r})") from error


def entry_toml(entry: CatalogEntry) -> str:
    """The entry of a Hub repository as it stands in ``catalog.toml``."""
    values = {"kind": entry.kind, "repository": entry.repository, "revision": entry.revision, "bundled": entry.bundled}
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    files = [f"{json.dumps(file)} = {json.dumps(digest)}" for file, digest in sorted(entry.files.items())]
    key = entry.name if re.fullmatch(r"[\w-]+", entry.name, re.ASCII) else json.dumps(entry.name)
    return "\n".join([f"[{key}]", *lines, "", f"[{key}.files]", *files]) + "\n"


def update_catalog(path: Path, entry: CatalogEntry) -> bool:
    """Replaces the entry of that name in a catalog, or adds it; all else stays. Returns whether anything changed."""
    try:
        text = path.read_text(encoding="utf-8").rstrip() + "\n" if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path}: the artifact catalog cannot be read ({error})") from error
    new = entry_toml(entry)
    header = re.escape(new.partition("]")[0])  # "[NAME", which "[NAME.files" begins with too
    section = re.compile(rf"^{header}\]\n(?:(?!\[|#).*\n)*(?:{header}\..*\n(?:(?!\[|#).*\n)*)*", re.MULTILINE)
    found = section.search(text)
    if found:
        gap = "\n" if text[found.end() :] else ""
        changed = text[: found.start()] + new + gap + text[found.end() :]
    else:
        changed = f"{text}\n{new}" if text.strip() else new
    if changed == text:
        return False
    try:
        tomllib.loads(changed)
    except tomllib.TOMLDecodeError as error:
        what = f"the entry {entry.name} cannot be replaced there ({error})"
        raise ArtifactError(f"{path}: {what}; write it by hand:\n{new}") from error
    write_atomic(path, changed)
    return True


def record_checksum(path: Path) -> None:
    """Puts the checksum of a bundled file that was changed on purpose into ``catalog.toml``, which must list it."""
    folder = bundled_artifacts()
    name, _, file = path.relative_to(folder).as_posix().partition("/")
    entry = catalog()[name]
    if file not in entry.files:
        raise ArtifactError(f"{folder / 'catalog.toml'}: does not list {name}/{file}")
    update_catalog(folder / "catalog.toml", dataclasses.replace(entry, files=entry.files | {file: sha256_file(path)}))


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
    algorithm, checksum = ("git blob hash", git_blob_file) if entries[name].origin else ("sha256", sha256_file)
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for file in sorted(expected.keys() | present):
        if file not in present:
            yield f"{name}/{file}: missing"
        elif file not in expected:
            yield f"{name}/{file}: not in the catalog"
        elif checksum(folder / file) != expected[file]:
            yield f"{name}/{file}: damaged, its {algorithm} is not the catalog's"
