"""Makes a repository on the Hub hold given files, and tags it; what is there already is not sent again."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from packaging.version import InvalidVersion, Version

from mtmetrics.artifacts.files import git_blob_file, sha256_unchanged
from mtmetrics.errors import ArtifactError
from mtmetrics.version import __version__

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_ATTEMPTS = 5  # against other pushes to the same repository
_FIRST = Version("1.0.0")
# The Hub makes this one itself and needs it for large files.
_KEPT = {".gitattributes"}


@dataclasses.dataclass(frozen=True)
class Publication:
    """What a repository is to hold.

    Attributes:
        repository: its name, with the namespace.
        kind: ``"model"`` or ``"space"``.
        files: path in the repository -> file here.
    """

    repository: str
    kind: Literal["model", "space"]
    files: dict[str, Path]


@dataclasses.dataclass(frozen=True)
class Change:
    """One file that differs; `action` is ``"add"``, ``"update"`` or ``"delete"``, `size` in bytes."""

    action: str
    path: str
    size: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a push would do, or has done.

    Attributes:
        publication: what is wanted.
        head: the commit on the main branch that this was compared with; None where there is no repository.
        changes: files that differ; none where the repository is as wanted.
        tag: version tag that the result has.
        tagged: whether it has it already.
        created: whether there was no repository before.
    """

    publication: Publication
    head: str | None
    changes: list[Change]
    tag: str
    tagged: bool
    created: bool

    @property
    def size(self) -> int:
        """Bytes to send, or sent."""
        return sum(change.size for change in self.changes if change.action != "delete")

    @property
    def done(self) -> bool:
        """Whether there is nothing to do."""
        return not self.created and not self.changes and self.tagged


def plan(publication: Publication) -> Plan:
    """Compares a repository with what it is to hold; changes nothing.

    Raises:
        ArtifactError: the Hub cannot be asked, or refuses.
    """
    with _hub_errors(publication.repository):
        return _plan(_api(), publication)


def push(publication: Publication, *, private: bool = False) -> Plan:
    """Creates the repository if there is none, sends what differs as one commit, and tags it.

    Versions are counted up from ``v1.0.0``, or the version of this package where that is higher. An interrupted push
    leaves the repository as it was; the next one goes on with the files that are there. Of pushes at the same time each
    gets a commit of its own or finds nothing to do.

    Args:
        publication: what is wanted.
        private: create a private repository; one that exists stays as it is.

    Returns:
        What was done; `Plan.head` is the new commit.

    Raises:
        ArtifactError: the Hub cannot be asked, or refuses, for want of a token or a right.
    """
    with _hub_errors(publication.repository):
        api = _api()
        created = _plan(api, publication).created
        if created:
            sdk = "gradio" if publication.kind == "space" else None
            api.create_repo(
                publication.repository, repo_type=publication.kind, private=private, space_sdk=sdk, exist_ok=True
            )
        for _ in range(_ATTEMPTS):
            before = _plan(api, publication)
            head = _commit(api, before) if before.changes else before.head
            if head is not None:
                tag = _tag(api, publication, head)
                return dataclasses.replace(before, head=head, tag=tag, tagged=True, created=created)
    raise ArtifactError(f"{publication.repository}: others kept changing it meanwhile; try again")


def _api() -> "HfApi":
    from huggingface_hub import HfApi

    return HfApi(library_name="mtmetrics", library_version=__version__)


def _plan(api: "HfApi", publication: Publication) -> Plan:
    from huggingface_hub.errors import RepositoryNotFoundError
    from huggingface_hub.hf_api import RepoFile

    try:
        head, tags = _refs(api, publication)
        tree = list(
            api.list_repo_tree(publication.repository, recursive=True, revision=head, repo_type=publication.kind)
        )
    except RepositoryNotFoundError:
        changes = [Change("add", path, file.stat().st_size) for path, file in sorted(publication.files.items())]
        return Plan(publication, None, changes, _next_tag({}), tagged=False, created=True)
    remote = {item.path: item for item in tree if isinstance(item, RepoFile) and item.path not in _KEPT}
    changes = []
    for path in sorted(remote.keys() | publication.files.keys()):
        file = publication.files.get(path)
        if file is None:
            changes.append(Change("delete", path, remote[path].size))
        elif path not in remote:
            changes.append(Change("add", path, file.stat().st_size))
        elif not _same(file, remote[path]):
            changes.append(Change("update", path, file.stat().st_size))
    own = [tag for tag, commit in tags.items() if commit == head and not changes]
    return Plan(publication, head, changes, own[-1] if own else _next_tag(tags), tagged=bool(own), created=False)


def _same(file: Path, remote: Any) -> bool:
    """Whether a file here has the content of one there, whose sha256 (large ones) or git blob hash is known."""
    if file.stat().st_size != remote.size:
        return False
    return sha256_unchanged(file) == remote.lfs.sha256 if remote.lfs else git_blob_file(file) == remote.blob_id


def _refs(api: "HfApi", publication: Publication) -> tuple[str, dict[str, str]]:
    """The head of the main branch, and the commits of the version tags from v1.0.0 up in ascending order."""
    refs = api.list_repo_refs(publication.repository, repo_type=publication.kind)
    heads = {branch.name: branch.target_commit for branch in refs.branches}
    if "main" not in heads:
        raise ArtifactError(f"{publication.repository}: has no branch main")
    versions = {tag.name: tag.target_commit for tag in refs.tags if (_version(tag.name) or Version("0")) >= _FIRST}
    return heads["main"], dict(sorted(versions.items(), key=lambda item: _version(item[0]) or _FIRST))


def _version(tag: str) -> Version | None:
    try:
        return Version(tag.removeprefix("v")) if tag.startswith("v") else None
    except InvalidVersion:
        return None


def _next_tag(tags: dict[str, str]) -> str:
    """The tag for a new commit: the version of the package, or the one after the last tag."""
    lowest = max(_FIRST, Version(Version(__version__).base_version))
    last = _version([*tags][-1]) if tags else None
    return f"v{lowest}" if last is None or last < lowest else f"v{last.major}.{last.minor}.{last.micro + 1}"


def _commit(api: "HfApi", wanted: Plan) -> str | None:
    """The new commit; None where the branch has moved since `wanted` was made."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete
    from huggingface_hub.errors import HfHubHTTPError

    files = wanted.publication.files
    operations = [
        CommitOperationDelete(change.path)
        if change.action == "delete"
        else CommitOperationAdd(change.path, files[change.path])
        for change in wanted.changes
    ]
    try:
        return api.create_commit(
            wanted.publication.repository,
            operations,
            commit_message=f"{wanted.tag} (mtmetrics {__version__})",
            repo_type=wanted.publication.kind,
            parent_commit=wanted.head,
        ).oid
    except HfHubHTTPError as error:
        if error.response.status_code == 412:
            return None
        raise


def _tag(api: "HfApi", publication: Publication, head: str) -> str:
    """The version tag of a commit, made if it has none."""
    from huggingface_hub.errors import HfHubHTTPError

    for _ in range(_ATTEMPTS):
        _, tags = _refs(api, publication)
        own = [tag for tag, commit in tags.items() if commit == head]
        if own:
            return own[-1]
        tag = _next_tag(tags)
        try:
            api.create_tag(publication.repository, tag=tag, revision=head, repo_type=publication.kind)
            return tag
        except HfHubHTTPError as error:
            if error.response.status_code != 409:
                raise
    raise ArtifactError(f"{publication.repository}: others kept tagging it meanwhile; try again")


@contextlib.contextmanager
def _hub_errors(repository: str) -> Iterator[None]:
    """Turns what the client raises while it talks to a repository into one message; no token is ever part of it.

    Raises:
        ArtifactError: the Hub cannot be asked, or refuses.
    """
    import httpx2
    from huggingface_hub import constants, errors

    try:
        yield
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        reasons = {
            401: "it does not know the token, or there is none; log in by 'hf auth login' or set HF_TOKEN",
            403: "the token may not write there; it needs the right to write, and you a place in the organisation",
        }
        said = error.server_message or str(error).strip().splitlines()[0]
        raise ArtifactError(f"{repository}: the Hub refused ({status}): {reasons.get(status, said)}") from error
    except errors.LocalTokenNotFoundError as error:
        raise ArtifactError(f"{repository}: no token for the Hub; log in by 'hf auth login' or set HF_TOKEN") from error
    except (httpx2.HTTPError, OSError, RuntimeError, ValueError) as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise ArtifactError(
            f"{repository}: the Hub at {constants.ENDPOINT} could not be asked, or the name is wrong: {first[0]}"
        ) from error
