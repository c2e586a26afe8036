"""Artifacts: the catalog of what exists with the checksum of every file, and where they are looked
for: a path, MTMETRICS_ARTIFACTS, the package, the Hub at a pinned revision."""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.io.atomic import (
    git_blob_file,
    new_folder,
    sha256_file,
    sha256_unchanged,
    write_atomic,
)
from mtmetrics.layout import bundled_artifacts

FOLDER_VARIABLE = "MTMETRICS_ARTIFACTS"
NAMESPACE_VARIABLE = "MTMETRICS_NAMESPACE"
REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where the authors of an artifact published it themselves; a file is served at
    ``URL/COMMIT/FILE``."""

    url: str
    commit: str
    licence: str


@dataclasses.dataclass(frozen=True)
class CatalogEntry:
    """One artifact, whose folder has its name where it is bundled.

    `files` maps names to sha256. Of what has an `origin`, `files` holds git blob hashes of the
    files there, and `mirror` is the Hub repository that holds what they are converted to."""

    name: str
    kind: str
    repository: str | None
    revision: str | None
    bundled: bool
    files: dict[str, str]
    origin: Origin | None = None
    mirror: str | None = None


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
            origin = Origin(**entry["origin"]) if "origin" in entry else None
            repository, revision = (
                entry[key] if origin is None else None for key in ("repository", "revision")
            )
            files = dict(entry.get("files", {}))
            about = (
                entry["kind"],
                repository,
                revision,
                entry["bundled"],
                files,
                origin,
                entry.get("mirror"),
            )
            entries[name] = CatalogEntry(name, *about)
        return entries
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise ArtifactError(f"{path}: the artifact catalog cannot be read ({error!r})") from error


def entry_toml(entry: CatalogEntry) -> str:
    """The entry of a Hub repository as it stands in ``catalog.toml``."""
    values = {
        "kind": entry.kind,
        "repository": entry.repository,
        "revision": entry.revision,
        "bundled": entry.bundled,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    files = [
        f"{json.dumps(file)} = {json.dumps(digest)}" for file, digest in sorted(entry.files.items())
    ]
    key = entry.name if re.fullmatch(r"[\w-]+", entry.name, re.ASCII) else json.dumps(entry.name)
    return "\n".join([f"[{key}]", *lines, "", f"[{key}.files]", *files]) + "\n"


def update_catalog(path: Path, entry: CatalogEntry) -> bool:
    """Replaces the entry of that name in a catalog, or adds it; all else stays. Returns whether
    anything changed."""
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
    expected = entries[name].files
    algorithm, checksum = (
        ("git blob hash", git_blob_file) if entries[name].origin else ("sha256", sha256_file)
    )
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for file in sorted(expected.keys() | present):
        if file not in present:
            yield f"{name}/{file}: missing"
        elif file not in expected:
            yield f"{name}/{file}: not in the catalog"
        elif checksum(folder / file) != expected[file]:
            yield f"{name}/{file}: damaged, its {algorithm} is not the catalog's"


@dataclasses.dataclass(frozen=True)
class HubSource:
    """A repository on the Hub at a revision (None: main), and the sha256 of the files that the
    catalog pins."""

    repository: str
    revision: str | None
    files: dict[str, str]

    def __str__(self) -> str:
        return f"the Hub repository {self.repository} (revision {self.revision or 'main'})"


def local_places(name: str | Path) -> list[Path]:
    """The places on this machine where an artifact may lie, best first, whether they exist or
    not."""
    own = os.environ.get(FOLDER_VARIABLE)
    return [Path(name), *([Path(own) / name] if own else []), bundled_artifacts() / name]


def local_folder(name: str | Path, *markers: str) -> Path | None:
    """The first of the `local_places` that holds one of the files `markers`."""
    return next(
        (
            place
            for place in local_places(name)
            if any((place / marker).is_file() for marker in markers)
        ),
        None,
    )


def places_in_words() -> str:
    """The `local_places` as messages name them."""
    own = os.environ.get(FOLDER_VARIABLE)
    return f"as a folder, {f'in {own} ({FOLDER_VARIABLE}), ' if own else ''}as a bundled artifact"


def hub_source(
    name: str | Path, revision: str | None = None, namespace: str | None = None
) -> HubSource:
    """Where an artifact lies on the Hub.

    Args:
        name: an artifact of the catalog, or a repository.
        revision: another revision than the pinned one; nothing is known about its files.
        namespace: replaces that of an artifact of the catalog; None takes that of the environment,
            if any.
    """
    entry = catalog().get(str(name))
    if entry is None or entry.repository is None:
        return HubSource(str(name), revision, {})
    repository = in_namespace(entry.repository, namespace)
    pinned = revision in (None, entry.revision)
    return HubSource(
        repository, entry.revision if pinned else revision, entry.files if pinned else {}
    )


def in_namespace(repository: str, namespace: str | None = None) -> str:
    """A repository of the catalog in another namespace; None takes that of the environment, if
    any."""
    namespace = namespace or os.environ.get(NAMESPACE_VARIABLE)
    return f"{namespace}/{repository.rpartition('/')[2]}" if namespace else repository


def hub_snapshot(folder: Path) -> tuple[str, str] | None:
    """Repository and commit of a folder in the cache of the Hub; None where it is no such
    folder."""
    holder, snapshots = (
        folder.absolute().parts[-3:-1] if len(folder.absolute().parts) > 3 else ("", "")
    )
    if snapshots != "snapshots" or not holder.startswith("models--"):
        return None
    return holder.removeprefix("models--").replace("--", "/"), folder.name


def is_on_hub(name: str, kind: str) -> bool:
    """Whether a name that is nowhere on this machine is worth asking the Hub for: an artifact of
    the catalog of this kind, or ``ORG/NAME``."""
    entry = catalog().get(name)
    if entry is not None:
        return entry.repository is not None and entry.kind == kind
    return bool(REPOSITORY.fullmatch(name)) and not Path(name).exists()


def download(
    source: HubSource, patterns: list[str] | None = None, *, local_files_only: bool = False
) -> Path:
    """The folder in the Hub's cache that holds the files of a repository, fetched where they are
    not there yet.

    The client's own locks make this safe in several processes at once; it shows progress on a
    terminal.

    Args:
        source: see `hub_source`.
        patterns: only files that match one of these; None for all that the catalog lists, or all
            there are.
        local_files_only: never ask the network (``HF_HUB_OFFLINE=1`` does the same).

    Raises:
        ArtifactError: they cannot be had; or one is not what the catalog says, and was removed.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import filter_repo_objects, tqdm

    class TerminalBar(tqdm):
        """The client's progress bar, which would show itself in files and pipes too."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options | {"disable": options.get("disable") or None})

    wanted = patterns or list(source.files) or None
    options: dict[str, Any] = {"revision": source.revision, "local_files_only": local_files_only}
    with hub_errors(str(source)):
        snapshot = snapshot_download(
            source.repository, allow_patterns=wanted, tqdm_class=TerminalBar, **options
        )
    for file in filter_repo_objects(source.files, allow_patterns=wanted):
        _require(Path(snapshot, file), source, file)
    return Path(snapshot)


def download_file(source: HubSource, file: str, *, local_files_only: bool = False) -> Path:
    """One file of a repository, as `download`; where the catalog pins files, only one of these."""
    from huggingface_hub import hf_hub_download

    if source.files and file not in source.files:
        raise ArtifactError(f"{source}: the catalog lists no file {file} there")
    options: dict[str, Any] = {"revision": source.revision, "local_files_only": local_files_only}
    with hub_errors(f"{file} of {source}"):
        path = Path(hf_hub_download(source.repository, file, **options))
    if source.files:
        _require(path, source, file)
    return path


def _require(path: Path, source: HubSource, file: str) -> None:
    if not path.is_file():
        raise ArtifactError(f"{source} does not hold {file}, which the catalog lists")
    found = sha256_unchanged(path)
    if found != source.files[file]:
        blob = path.resolve()
        path.unlink(missing_ok=True)
        blob.unlink(missing_ok=True)
        raise ArtifactError(
            f"{file} of {source} is damaged or was changed: its sha256 is {found}, the catalog's "
            f"{source.files[file]}; it was removed from the cache, and the next run fetches it "
            "again"
        )


def pull(name: str, source: HubSource, out: Path | None = None) -> tuple[Path, list[str]]:
    """Fetches all files that the catalog lists for an artifact, and compares them with it.

    Args:
        name: an artifact of the catalog.
        source: where it lies, see `hub_source`.
        out: folder in which the artifact becomes the folder `name`; None keeps it in the cache of
            the Hub.

    Returns:
        The folder that holds the files, and which of them were not there before.

    Raises:
        InputError: `out` holds a folder of that name already, and it is not what the catalog says.
        ArtifactError: it cannot be fetched, or is not what the catalog says.
    """
    from huggingface_hub import try_to_load_from_cache

    files = sorted(source.files)
    if out is None:
        cached = [
            try_to_load_from_cache(source.repository, file, revision=source.revision)
            for file in files
        ]
        lacking = [
            file for file, path in zip(files, cached, strict=True) if not isinstance(path, str)
        ]
        return download(source), lacking
    target = out / name
    if not target.exists():
        folder = download(source)
        try:
            with new_folder(target) as temporary:
                for file in files:
                    (temporary / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(folder / file, temporary / file)
            return target, files
        except MTMetricsError:
            if not target.exists():
                raise  # else another process was faster
    for problem in verify(name, target):
        found = f"exists already and is not the artifact ({problem})"
        raise InputError(f"{target} {found}; remove it or choose another --out")
    return target, []


@contextlib.contextmanager
def hub_errors(wanted: str) -> Iterator[None]:
    """Turns what the Hub's client raises into one ArtifactError about `wanted`; no token is ever
    part of it."""
    import httpx2
    from huggingface_hub import constants, errors

    login = "log in by 'hf auth login' or set HF_TOKEN"
    absent = (
        f"not whole in the cache {constants.HF_HUB_CACHE}, and the Hub was not asked or did not "
        "answer"
    )
    reasons = (
        (errors.HFValidationError, "that is no valid name of a repository"),
        (errors.RevisionNotFoundError, "the Hub has no such revision"),
        (errors.LocalEntryNotFoundError, absent),
        (errors.EntryNotFoundError, "no such file there"),
        (
            errors.RepositoryNotFoundError,
            "the Hub has no such repository, or not for you ('hf auth login')",
        ),
        (errors.LocalTokenNotFoundError, f"no token for the Hub; {login}"),
    )
    refusals = {
        401: f"it does not know the token, or there is none; {login}",
        403: (
            "the token may not write there; it needs the right to write, and you a place in the "
            "organisation"
        ),
    }
    try:
        yield
    except (httpx2.HTTPError, OSError, RuntimeError, ValueError) as error:
        said = (str(error).strip().splitlines() or [""])[0]
        reason = next((text for kind, text in reasons if isinstance(error, kind)), "")
        if not reason and isinstance(error, errors.HfHubHTTPError):
            status = error.response.status_code
            reason = (
                f"the Hub refused ({status}): {refusals.get(status, error.server_message or said)}"
            )
        elif not reason and isinstance(error, httpx2.HTTPError):
            reason = (
                f"the Hub at {constants.ENDPOINT} could not be asked: {type(error).__name__}: "
                f"{said}"
            )
        raise ArtifactError(f"{wanted}: {reason or f'{type(error).__name__}: {said}'}") from error
