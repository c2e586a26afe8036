"""Where artifacts are looked for, in one order: a path, the folder MTMETRICS_ARTIFACTS, what is bundled, the Hub at a
pinned revision."""

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.catalog import catalog
from mtmetrics.artifacts.files import sha256_unchanged
from mtmetrics.errors import ArtifactError
from mtmetrics.layout import bundled_artifacts

FOLDER_VARIABLE = "MTMETRICS_ARTIFACTS"
NAMESPACE_VARIABLE = "MTMETRICS_NAMESPACE"
REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


@dataclasses.dataclass(frozen=True)
class HubSource:
    """A repository on the Hub at a revision.

    Attributes:
        repository: its name, with the namespace.
        revision: branch, tag or commit; None for the main branch.
        files: file -> sha256, where the catalog pins them; empty where it does not.
    """

    repository: str
    revision: str | None
    files: dict[str, str]

    def __str__(self) -> str:
        return f"the Hub repository {self.repository} (revision {self.revision or 'main'})"


def local_places(name: str | Path) -> list[Path]:
    """The places on this machine where an artifact may lie, best first, whether they exist or not."""
    own = os.environ.get(FOLDER_VARIABLE)
    return [Path(name), *([Path(own) / name] if own else []), bundled_artifacts() / name]


def local_folder(name: str | Path, *markers: str) -> Path | None:
    """The first of the `local_places` that holds one of the files `markers`."""
    return next((place for place in local_places(name) if any((place / marker).is_file() for marker in markers)), None)


def places_in_words() -> str:
    """The `local_places` as messages name them."""
    own = os.environ.get(FOLDER_VARIABLE)
    return f"as a folder, {f'in {own} ({FOLDER_VARIABLE}), ' if own else ''}as a bundled artifact"


def hub_source(name: str | Path, revision: str | None = None, namespace: str | None = None) -> HubSource:
    """Where an artifact lies on the Hub.

    Args:
        name: an artifact of the catalog, or a repository.
        revision: another revision than the pinned one; nothing is known about its files.
        namespace: replaces the namespace of an artifact of the catalog; None takes that of the environment, if any.

    Raises:
        ArtifactError: the catalog cannot be read.
    """
    entry = catalog().get(str(name))
    if entry is None or entry.repository is None:
        return HubSource(str(name), revision, {})
    namespace = namespace or os.environ.get(NAMESPACE_VARIABLE)
    repository = f"{namespace}/{entry.repository.rpartition('/')[2]}" if namespace else entry.repository
    pinned = revision in (None, entry.revision)
    return HubSource(repository, entry.revision if pinned else revision, entry.files if pinned else {})


def is_on_hub(name: str, kind: str) -> bool:
    """Whether a name that is nowhere on this machine is worth asking the Hub for.

    Args:
        name: an artifact of the catalog that is of this kind, or ``ORG/NAME`` where there is no such file or folder.
        kind: as the catalog calls it.
    """
    entry = catalog().get(name)
    if entry is not None:
        return entry.repository is not None and entry.kind == kind
    return bool(REPOSITORY.fullmatch(name)) and not Path(name).exists()


def download(source: HubSource, patterns: list[str] | None = None, *, local_files_only: bool = False) -> Path:
    """The folder in the Hub's cache that holds the files of a repository, fetched where they are not there yet.

    The client's own locks make this safe in several processes at once; it shows progress on a terminal.

    Args:
        source: see `hub_source`.
        patterns: only files that match one of these; None for all that the catalog lists, or all there are.
        local_files_only: never ask the network (``HF_HUB_OFFLINE=1`` does the same).

    Raises:
        ArtifactError: they are not in the cache and cannot be fetched; or one is not what the catalog says: it is
            removed.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import filter_repo_objects, tqdm

    class TerminalBar(tqdm):
        """The client's progress bar, which would show itself in files and pipes too."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options | {"disable": options.get("disable") or None})

    wanted = patterns or list(source.files) or None
    with _client_errors(str(source)):
        folder = Path(
            snapshot_download(
                source.repository,
                revision=source.revision,
                local_files_only=local_files_only,
                allow_patterns=wanted,
                tqdm_class=TerminalBar,
            )
        )
    for file in filter_repo_objects(source.files, allow_patterns=wanted):
        _require(folder / file, source, file)
    return folder


def download_file(source: HubSource, file: str, *, local_files_only: bool = False) -> Path:
    """One file of a repository, as `download` does it.

    Raises:
        ArtifactError: as `download`; or the catalog pins the files of the repository, and this is none of them.
    """
    from huggingface_hub import hf_hub_download

    if source.files and file not in source.files:
        raise ArtifactError(f"{source}: the catalog lists no file {file} there")
    with _client_errors(f"{file} of {source}"):
        path = Path(
            hf_hub_download(source.repository, file, revision=source.revision, local_files_only=local_files_only)
        )
    if source.files:
        _require(path, source, file)
    return path


def _require(path: Path, source: HubSource, file: str) -> None:
    """Refuses a file that is absent or is not what the catalog says; in the cache it would pass for good, so it is
    removed there."""
    if not path.is_file():
        raise ArtifactError(f"{source} does not hold {file}, which the catalog lists")
    found = sha256_unchanged(path)
    if found != source.files[file]:
        blob = path.resolve()
        path.unlink(missing_ok=True)
        blob.unlink(missing_ok=True)
        raise ArtifactError(
            f"{file} of {source} is damaged or was changed: its sha256 is {found}, the catalog's {source.files[file]}; it was removed "
            f"from the cache, and the next run fetches it again"
        )


@contextlib.contextmanager
def _client_errors(wanted: str) -> Iterator[None]:
    """Turns what the Hub's client raises into one message."""
    import httpx2
    from huggingface_hub import constants, errors

    reasons = (
        (errors.HFValidationError, "that is no valid name of a repository"),
        (errors.RevisionNotFoundError, "the Hub has no such revision"),
        (
            errors.LocalEntryNotFoundError,
            f"not whole in the cache {constants.HF_HUB_CACHE}, and the Hub was not asked or did not answer",
        ),
        (errors.EntryNotFoundError, "no such file there"),
        (errors.RepositoryNotFoundError, "the Hub has no such repository, or not for you ('hf auth login')"),
    )
    try:
        yield
    except (httpx2.HTTPError, OSError, ValueError) as error:
        said = str(error).strip().splitlines() or [""]
        reason = next((text for kind, text in reasons if isinstance(error, kind)), f"{type(error).__name__}: {said[0]}")
        raise ArtifactError(f"{wanted}: {reason}") from error
