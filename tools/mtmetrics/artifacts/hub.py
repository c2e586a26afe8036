"""Downloads from the Hub.

`download` and `download_file` fetch files into the Hub's cache, `pull` a whole artifact into a
folder. Files that the catalog lists are compared with their checksums. `hub_errors` turns the errors
of the Hub's client into errors of this package.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from mtmetrics.artifacts.catalog import find_problems
from mtmetrics.artifacts.places import HubSource
from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.io.atomic import atomic_folder
from mtmetrics.io.checksums import cached_sha256


def download(
    source: HubSource, patterns: list[str] | None = None, *, local_files_only: bool = False
) -> Path:
    """Fetches the files of a repository that the Hub's cache lacks, and returns their folder there.

    The client's own locks make this safe in several processes at once; it shows progress on a
    terminal.

    Args:
        source: see `mtmetrics.artifacts.places.hub_source`.
        patterns: only files that match one of these; None for all that the catalog lists, or all
            there are.
        local_files_only: never ask the network (``HF_HUB_OFFLINE=1`` does the same).

    Raises:
        ArtifactError: the files cannot be had; or one differs from the catalog, and was removed.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import filter_repo_objects, tqdm

    class TerminalBar(tqdm):
        """The client's progress bar, on terminals only."""

        def __init__(self, *args: object, **options: object) -> None:
            # None means: disabled where the output is no terminal.
            super().__init__(*args, **options | {"disable": options.get("disable") or None})

    allowed = patterns or list(source.files) or None
    with hub_errors(str(source)):
        snapshot = snapshot_download(
            source.repository,
            revision=source.revision,
            allow_patterns=allowed,
            tqdm_class=TerminalBar,
            local_files_only=local_files_only,
        )
    for file in filter_repo_objects(source.files, allow_patterns=allowed):
        _require(Path(snapshot, file), source, file)
    return Path(snapshot)


def download_file(source: HubSource, file: str, *, local_files_only: bool = False) -> Path:
    """Fetches one file of a repository, see `download`, and returns its path in the cache.

    Raises:
        ArtifactError: the file cannot be had, or the catalog pins other files.
    """
    from huggingface_hub import hf_hub_download

    if source.files and file not in source.files:
        raise ArtifactError(f"{source}: the catalog lists no file {file} there")
    with hub_errors(f"{file} of {source}"):
        path = hf_hub_download(
            source.repository,
            file,
            revision=source.revision,
            local_files_only=local_files_only,
        )
    if source.files:
        _require(Path(path), source, file)
    return Path(path)


def _require(path: Path, source: HubSource, file: str) -> None:
    """Refuses a file of the cache that is not the one in the catalog, and removes it."""
    if not path.is_file():
        raise ArtifactError(f"{source} does not hold {file}, which the catalog lists")
    checksum = cached_sha256(path)
    if checksum != source.files[file]:
        blob = path.resolve()
        path.unlink(missing_ok=True)
        blob.unlink(missing_ok=True)
        raise ArtifactError(
            f"{file} of {source} is damaged or was changed: its sha256 is {checksum}, the "
            f"catalog's {source.files[file]}; it was removed from the cache, and the next run fetches it "
            "again"
        )


def pull(name: str, source: HubSource, out: Path | None = None) -> tuple[Path, list[str]]:
    """Fetches all files that the catalog lists for an artifact, and compares them with it.

    Args:
        name: an artifact of the catalog.
        source: where it lies, see `mtmetrics.artifacts.places.hub_source`.
        out: folder in which the artifact becomes the folder `name`; None keeps it in the cache of
            the Hub.

    Returns:
        The folder that holds the files, and the files that were not there before.

    Raises:
        InputError: `out` holds a folder of that name already, and it differs from the catalog.
        ArtifactError: it cannot be fetched, or differs from the catalog.
    """
    files = sorted(source.files)
    if out is None:
        missing = [file for file in files if not is_cached(source, file)]
        return download(source), missing
    target = out / name
    if not target.exists():
        folder = download(source)
        try:
            with atomic_folder(target) as temporary:
                for file in files:
                    (temporary / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(folder / file, temporary / file)
            return target, files
        except MTMetricsError:
            if not target.exists():
                raise  # else another process was faster
    for problem in find_problems(name, target):
        raise InputError(
            f"{target} exists already and is not the artifact ({problem}); remove it or choose "
            "another --out"
        )
    return target, []


def is_cached(source: HubSource, file: str) -> bool:
    """Whether a file of a repository is in the Hub's cache."""
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(source.repository, file, revision=source.revision)
    return isinstance(path, str)


@contextlib.contextmanager
def hub_errors(subject: str) -> Iterator[None]:
    """Turns the errors of the Hub's client into one ArtifactError about `subject`; no token is ever
    part of it."""
    import httpx2

    try:
        yield
    except (httpx2.HTTPError, OSError, RuntimeError, ValueError) as error:
        raise ArtifactError(f"{subject}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Explains why a call to the Hub failed."""
    import httpx2
    from huggingface_hub import constants, errors

    login = "log in by 'hf auth login' or set HF_TOKEN"
    not_cached = (
        f"not whole in the cache {constants.HF_HUB_CACHE}, and the Hub was not asked or did not "
        "answer"
    )
    no_repository = "the Hub has no such repository, or not for you ('hf auth login')"
    # The first class that fits counts: some of them are subclasses of others.
    reasons: list[tuple[type[Exception], str]] = [
        (errors.HFValidationError, "that is no valid name of a repository"),
        (errors.RevisionNotFoundError, "the Hub has no such revision"),
        (errors.LocalEntryNotFoundError, not_cached),
        (errors.EntryNotFoundError, "no such file there"),
        (errors.RepositoryNotFoundError, no_repository),
        (errors.LocalTokenNotFoundError, f"no token for the Hub; {login}"),
    ]
    for kind, reason in reasons:
        if isinstance(error, kind):
            return reason
    message = (str(error).strip().splitlines() or [""])[0]
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        refusals = {
            401: f"it does not know the token, or there is none; {login}",
            403: (
                "the token may not write there; it needs the right to write, and you a place in "
                "the organisation"
            ),
        }
        refusal = refusals.get(status, error.server_message or message)
        return f"the Hub refused ({status}): {refusal}"
    if isinstance(error, httpx2.HTTPError):
        return (
            f"the Hub at {constants.ENDPOINT} could not be asked: {type(error).__name__}: {message}"
        )
    return f"{type(error).__name__}: {message}"
