"""Where artifacts are looked for (a path, MTMETRICS_ARTIFACTS, the package, the Hub at a pinned revision)."""

import contextlib
import dataclasses
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.catalog import catalog, verify
from mtmetrics.artifacts.files import new_folder, sha256_unchanged
from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.layout import bundled_artifacts

FOLDER_VARIABLE = "MTMETRICS_ARTIFACTS"
NAMESPACE_VARIABLE = "MTMETRICS_NAMESPACE"
REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


@dataclasses.dataclass(frozen=True)
class HubSource:
    """A repository on the Hub at a revision (None: main), and the sha256 of the files that the catalog pins."""

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
        namespace: replaces that of an artifact of the catalog; None takes that of the environment, if any.
    """
    entry = catalog().get(str(name))
    if entry is None or entry.repository is None:
        return HubSource(str(name), revision, {})
    namespace = namespace or os.environ.get(NAMESPACE_VARIABLE)
    repository = f"{namespace}/{entry.repository.rpartition('/')[2]}" if namespace else entry.repository
    pinned = revision in (None, entry.revision)
    return HubSource(repository, entry.revision if pinned else revision, entry.files if pinned else {})


def hub_snapshot(folder: Path) -> tuple[str, str] | None:
    """Repository and commit of a folder in the cache of the Hub; None where it is no such folder."""
    holder, snapshots = folder.absolute().parts[-3:-1] if len(folder.absolute().parts) > 3 else ("", "")
    if snapshots != "snapshots" or not holder.startswith("models--"):
        return None
    return holder.removeprefix("models--").replace("--", "/"), folder.name


def is_on_hub(name: str, kind: str) -> bool:
    """Whether a name that is nowhere on this machine is worth asking the Hub for: an artifact of the catalog of this
    kind, or ``ORG/NAME``."""
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
        snapshot = snapshot_download(source.repository, allow_patterns=wanted, tqdm_class=TerminalBar, **options)
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
            f"{file} of {source} is damaged or was changed: its sha256 is {found}, the catalog's {source.files[file]}; "
            f"it was removed from the cache, and the next run fetches it again"
        )


def pull(name: str, source: HubSource, out: Path | None = None) -> tuple[Path, list[str]]:
    """Fetches all files that the catalog lists for an artifact, and compares them with it.

    Args:
        name: an artifact of the catalog.
        source: where it lies, see `hub_source`.
        out: folder in which the artifact becomes the folder `name`; None keeps it in the cache of the Hub.

    Returns:
        The folder that holds the files, and which of them were not there before.

    Raises:
        InputError: `out` holds a folder of that name already, and it is not what the catalog says.
        ArtifactError: it cannot be fetched, or is not what the catalog says.
    """
    from huggingface_hub import try_to_load_from_cache

    files = sorted(source.files)
    if out is None:
        cached = [try_to_load_from_cache(source.repository, file, revision=source.revision) for file in files]
        lacking = [file for file, path in zip(files, cached, strict=True) if not isinstance(path, str)]
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
    """Turns what the Hub's client raises into one ArtifactError about `wanted`; no token is ever part of it."""
    import httpx2
    from huggingface_hub import constants, errors

    login = "log in by 'hf auth login' or set HF_TOKEN"
    absent = f"not whole in the cache {constants.HF_HUB_CACHE}, and the Hub was not asked or did not answer"
    reasons = (
        (errors.HFValidationError, "that is no valid name of a repository"),
        (errors.RevisionNotFoundError, "the Hub has no such revision"),
        (errors.LocalEntryNotFoundError, absent),
        (errors.EntryNotFoundError, "no such file there"),
        (errors.RepositoryNotFoundError, "the Hub has no such repository, or not for you ('hf auth login')"),
        (errors.LocalTokenNotFoundError, f"no token for the Hub; {login}"),
    )
    refusals = {
        401: f"it does not know the token, or there is none; {login}",
        403: "the token may not write there; it needs the right to write, and you a place in the organisation",
    }
    try:
        yield
    except (httpx2.HTTPError, OSError, RuntimeError, ValueError) as error:
        said = (str(error).strip().splitlines() or [""])[0]
        reason = next((text for kind, text in reasons if isinstance(error, kind)), "")
        if not reason and isinstance(error, errors.HfHubHTTPError):
            status = error.response.status_code
            reason = f"the Hub refused ({status}): {refusals.get(status, error.server_message or said)}"
        elif not reason and isinstance(error, httpx2.HTTPError):
            reason = f"the Hub at {constants.ENDPOINT} could not be asked: {type(error).__name__}: {said}"
        raise ArtifactError(f"{wanted}: {reason or f'{type(error).__name__}: {said}'}") from error
