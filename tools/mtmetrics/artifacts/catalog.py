"""The catalog of artifacts: ``catalog.toml``, with the checksum of every file of every artifact.

The files of an artifact come from one of two places: from a Hub repository, or from the place where
its authors published them, its origin. The catalog has the sha256 of a file in a repository, and the
git blob hash of a file at an origin.
"""

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.atomic import write_atomic
from mtmetrics.io.checksums import git_blob_sha1_of_file, sha256_file
from mtmetrics.layout import bundled_artifacts

# The name of a repository on the Hub, ORG/NAME.
REPOSITORY_NAME_PATTERN = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Origin:
    """The place where the authors of an artifact published it. It serves a file at
    ``URL/COMMIT/FILE``.

    Attributes:
        url: such as ``https://raw.githubusercontent.com/ORG/NAME``.
        commit: the commit whose files are served.
        licence: the licence of the files.
    """

    url: str
    commit: str
    licence: str


@dataclasses.dataclass(frozen=True)
class CatalogEntry:
    """An artifact. It has a Hub repository and a revision, or else an origin.

    Attributes:
        name: the artifact's name; a bundled artifact is in a folder of this name.
        kind: kind of the artifact, such as ``encoder``, or ``maps`` for the maps of a remapping.
        repository: its Hub repository; None for an artifact with an origin.
        revision: a commit, tag or branch of that repository; None for an artifact with an origin.
        bundled: whether it ships with the package.
        files: name of a file -> its sha256, or its git blob hash at the origin.
        origin: the place where its authors published it; None for an artifact with a repository.
        mirror: Hub repository with converted copies of the origin's files, or None. The catalog has
            no checksums of the copies.
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
    """Reads ``catalog.toml``: name of an artifact -> its entry.

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
    """Formats the entry of an artifact with a repository as TOML, for ``catalog.toml``."""
    key = entry.name if re.fullmatch(r"[\w-]+", entry.name, re.ASCII) else json.dumps(entry.name)
    lines = [f"[{key}]"]
    for name in ("kind", "repository", "revision", "bundled"):
        lines.append(f"{name} = {json.dumps(getattr(entry, name))}")
    lines += ["", f"[{key}.files]"]
    for file, digest in sorted(entry.files.items()):
        lines.append(f"{json.dumps(file)} = {json.dumps(digest)}")
    return "\n".join(lines) + "\n"


def update_catalog(path: Path, entry: CatalogEntry) -> bool:
    """Replaces the entry with the same name in a catalog file, or adds one, of an artifact with a
    repository.

    Returns:
        Whether the file changed.

    Raises:
        ArtifactError: the catalog cannot be read, or has an entry that must be replaced by hand, such
            as one with a comment between its files.
    """
    try:
        text = path.read_text(encoding="utf-8").rstrip() + "\n" if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path}: the artifact catalog cannot be read ({error})") from error
    new_entry = entry_toml(entry)
    new_text = _with_entry(text, new_entry)
    if new_text == text:
        return False
    try:
        table = tomllib.loads(new_text)[entry.name]
        if table != tomllib.loads(new_entry)[entry.name]:
            raise ValueError("keys of the old entry stand behind a comment")
    except ValueError as error:  # also of text that is no TOML
        raise ArtifactError(
            f"{path}: the entry {entry.name} cannot be replaced there ({error}); write it by "
            f"hand:\n{new_entry}"
        ) from error
    write_atomic(path, new_text)
    return True


def _with_entry(text: str, new_entry: str) -> str:
    """Returns the text of a catalog with a new entry in place of the entry with the same name, or at
    the end.

    The entry is replaced as text, so that all comments stay where they are. The library tomlkit
    would put new files behind a comment that belongs to the next entry.
    """
    # An entry is its table [NAME], and the tables such as [NAME.files] that follow it. Each table is
    # its header and the lines after it. It ends at the next header, or at a comment, which belongs
    # to the next entry.
    opening = re.escape(new_entry.partition("]")[0])  # "[NAME"
    body = r"(?:(?!\[|#).*\n)*"
    entry_pattern = re.compile(rf"^{opening}\]\n{body}(?:{opening}\..*\n{body})*", re.MULTILINE)
    old_entry = entry_pattern.search(text)
    if old_entry is None:
        return f"{text}\n{new_entry}" if text.strip() else new_entry
    rest = text[old_entry.end() :]
    gap = "\n" if rest else ""
    return text[: old_entry.start()] + new_entry + gap + rest


def find_problems(name: str, folder: Path | None = None) -> Iterator[str]:
    """Compares the files of an artifact with the checksums in the catalog.

    This is a generator: it reads the files, and raises errors, only while the caller iterates.

    Args:
        name: an artifact of the catalog.
        folder: the folder with its files; None for the bundled folder. For an artifact with an
            origin, these are the files of the origin, not the converted copies in its mirror.

    Yields:
        One line per problem: a file that is missing, damaged, or not in the catalog.

    Raises:
        InputError: the catalog has no such artifact.
    """
    entries = catalog()
    if name not in entries:
        raise InputError(f"unknown artifact {name!r}; there are: {', '.join(entries)}")
    folder = folder or bundled_artifacts() / name
    entry = entries[name]
    algorithm = "git blob hash" if entry.origin else "sha256"
    checksum = git_blob_sha1_of_file if entry.origin else sha256_file
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for file in sorted(entry.files.keys() | present):
        if file not in present:
            yield f"{name}/{file}: missing"
        elif file not in entry.files:
            yield f"{name}/{file}: not in the catalog"
        elif checksum(folder / file) != entry.files[file]:
            yield f"{name}/{file}: damaged, its {algorithm} is not the catalog's"
