"""Places where an artifact is looked for: a path, MTMETRICS_ARTIFACTS, the package, and the Hub at a
pinned revision."""

import dataclasses
import os
from pathlib import Path

from mtmetrics.artifacts.catalog import REPOSITORY_NAME_PATTERN, catalog
from mtmetrics.layout import bundled_artifacts

FOLDER_VARIABLE = "MTMETRICS_ARTIFACTS"
NAMESPACE_VARIABLE = "MTMETRICS_NAMESPACE"


def local_places(name: str | Path) -> list[Path]:
    """Returns the places on this machine where an artifact may lie, best first, whether they exist
    or not."""
    return [Path(name), *(root / name for root in _artifact_folders())]


def _artifact_folders() -> list[Path]:
    """Returns the folders that hold artifacts: the user's, if there is one, then the bundled one."""
    user_folder = os.environ.get(FOLDER_VARIABLE)
    user_folders = [Path(user_folder)] if user_folder else []
    return [*user_folders, bundled_artifacts()]


def places_in_words() -> str:
    """Describes the `local_places` in a message."""
    user_folder = os.environ.get(FOLDER_VARIABLE)
    in_user_folder = f"in {user_folder} ({FOLDER_VARIABLE}), " if user_folder else ""
    return f"as a folder, {in_user_folder}as a bundled artifact"


def local_folder(name: str | Path, *markers: str) -> Path | None:
    """Returns the first of the `local_places` that holds one of the files `markers`."""
    for place in local_places(name):
        if any((place / marker).is_file() for marker in markers):
            return place
    return None


@dataclasses.dataclass(frozen=True)
class HubSource:
    """A repository on the Hub.

    Attributes:
        repository: ``ORG/NAME``.
        revision: branch, tag or commit; None for the main branch.
        files: sha256 of the files that the catalog pins.
    """

    repository: str
    revision: str | None
    files: dict[str, str]

    def __str__(self) -> str:
        return f"the Hub repository {self.repository} (revision {self.revision or 'main'})"


def hub_source(
    name: str | Path, revision: str | None = None, namespace: str | None = None
) -> HubSource:
    """Tells where an artifact lies on the Hub.

    Args:
        name: an artifact of the catalog that has a repository, or a repository.
        revision: another revision than the pinned one; no checksums of its files are known.
        namespace: replaces that of an artifact of the catalog; None takes that of the environment,
            if any.
    """
    entry = catalog().get(str(name))
    if entry is None or entry.repository is None:
        return HubSource(str(name), revision, {})
    repository = in_namespace(entry.repository, namespace)
    if revision in (None, entry.revision):
        return HubSource(repository, entry.revision, entry.files)
    return HubSource(repository, revision, {})


def in_namespace(repository: str, namespace: str | None = None) -> str:
    """Moves a repository of the catalog to another namespace; None takes that of the environment,
    if any."""
    namespace = namespace or os.environ.get(NAMESPACE_VARIABLE)
    if not namespace:
        return repository
    name = repository.rpartition("/")[2]
    return f"{namespace}/{name}"


def artifact_name(folder: Path) -> str | None:
    """Returns the name under which `local_places` finds a folder as an artifact; None where it is
    none."""
    for root in _artifact_folders():
        if folder.absolute().is_relative_to(root.absolute()):
            return folder.absolute().relative_to(root.absolute()).as_posix()
    return None


def hub_snapshot(folder: Path) -> tuple[str, str] | None:
    """Returns repository and commit of a folder in the cache of the Hub; None for other folders.

    Such a folder is called ``models--ORG--NAME/snapshots/COMMIT``.
    """
    parts = folder.absolute().parts
    if len(parts) <= 3:
        return None
    holder, snapshots = parts[-3:-1]
    if snapshots != "snapshots" or not holder.startswith("models--"):
        return None
    return holder.removeprefix("models--").replace("--", "/"), folder.name


def is_on_hub(name: str, kind: str) -> bool:
    """Whether to ask the Hub for a name that is none of the `local_places`: it is an artifact of the
    catalog of this kind, or ``ORG/NAME``."""
    entry = catalog().get(name)
    if entry is not None:
        return entry.repository is not None and entry.kind == kind
    return bool(REPOSITORY_NAME_PATTERN.fullmatch(name)) and not Path(name).exists()
