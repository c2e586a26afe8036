"""Publishing of artifacts and Spaces as repositories on the Hub, with version tags.

A `Publication` names the files of a repository. `plan` compares it with the repository, `push` sends
the files that differ. The Space of a metric holds a wheel of this package, which `build_wheel` makes.
"""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from packaging.version import InvalidVersion, Version

from mtmetrics._version import __version__
from mtmetrics.artifacts.adapters import is_adapter, require_public_base
from mtmetrics.artifacts.cards import check_model_card, check_space_card
from mtmetrics.artifacts.catalog import CatalogEntry, catalog
from mtmetrics.artifacts.hub import hub_errors
from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.io.atomic import write_atomic
from mtmetrics.io.checksums import cached_sha256, git_blob_sha1_of_file
from mtmetrics.io.lines import JsonObject
from mtmetrics.layout import bundled_artifacts, source_tree, space_folder

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

T = TypeVar("T")
# Folders that are not published: work of a production may hold mined or translated text.
_PRIVATE = {"work", "__pycache__"}
# Formats whose loading may run code: those that are unpickled, and Python itself.
_CODE = {".bin", ".ckpt", ".joblib", ".npy", ".npz", ".pickle", ".pkl", ".pt", ".pth", ".py"}
# Files that the Hub makes itself and needs for large files.
_OF_THE_HUB = {".gitattributes"}
_ATTEMPTS = 5  # against other pushes to the same repository
_FIRST_VERSION = Version("1.0.0")
_IMPORT = "import mtmetrics"
# Goes into the script of a Space, since `evaluate` takes any version that is installed.
_CHECK = """from packaging.version import Version

if Version(mtmetrics.__version__) < Version("{version}"):
    found = f"mtmetrics {{mtmetrics.__version__}} is installed, and this metric was made with {version}"
    raise ImportError(f"{{found}}; {advice}")
"""
_BUNDLED = "mtmetrics/hub_artifacts/"
# Files and folders from which a wheel is built.
_SOURCES = (
    "LICENSE",
    "README.md",
    "hub_artifacts",
    "metrics",
    "pyproject.toml",
    "setup.cfg",
    "tools",
)
_EPOCH = "315532800"  # 1980-01-01, the first day that a wheel can name


class Publication(NamedTuple):
    """Files for a repository.

    Attributes:
        repository: its name, with the namespace.
        kind: of repository.
        files: path in the repository -> file on this machine.
    """

    repository: str
    kind: Literal["model", "space"]
    files: dict[str, Path]


class Change(NamedTuple):
    """A file that differs.

    Attributes:
        action: on the file in the repository.
        path: in the repository.
        size: in bytes: of the file to send; of the file in the repository if it is deleted.
    """

    action: Literal["add", "update", "delete"]
    path: str
    size: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """Changes that a push makes, or has made.

    Attributes:
        publication: the files.
        head: last commit of the main branch; None where there is no repository.
        changes: the files that differ.
        tag: version tag of the result.
        tagged: whether the tag exists.
        created: whether there is no repository before the push, which makes it.
    """

    publication: Publication
    head: str | None
    changes: list[Change]
    tag: str
    tagged: bool
    created: bool

    @property
    def size(self) -> int:
        """Bytes to be sent."""
        return sum(change.size for change in self.changes if change.action != "delete")


def artifact_folder(name: str) -> Path:
    """Returns the folder of a bundled artifact, by its name, or another folder, by its path."""
    bundled = [entry.name for entry in catalog().values() if entry.bundled]
    folder = bundled_artifacts() / name if name in bundled else Path(name)
    if not folder.is_dir():
        raise InputError(
            f"{name}: neither a folder nor a bundled artifact; those are: {', '.join(bundled)}"
        )
    return folder.resolve()


def artifact_publication(folder: Path, namespace: str) -> Publication:
    """Makes the publication of an artifact's folder. Checks its card, and refuses code."""
    check_model_card(folder)
    files = published_files(folder)
    refuse_code(folder, files)
    if is_adapter(folder):
        require_public_base(folder)
    return Publication(f"{namespace}/{folder.name}", "model", files)


def refuse_code(folder: Path, files: Iterable[str]) -> None:
    """Raises an ArtifactError if files of a folder may run code when they are loaded."""
    code = [path for path in files if Path(path).suffix.lower() in _CODE]
    if code:
        raise ArtifactError(
            f"{folder}: {', '.join(code)}: formats that may run code are not published; store "
            "weights as safetensors"
        )


def published_files(folder: Path) -> dict[str, Path]:
    """Lists the files of a folder by their path in it, without hidden ones and ``work``.

    Raises:
        ArtifactError: a file is a link to a file outside of the folder.
    """
    files = {}
    links = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        inner = path.relative_to(folder)
        if any(part.startswith(".") or part in _PRIVATE for part in inner.parts):
            continue
        files[inner.as_posix()] = path
        if not path.resolve().is_relative_to(folder.resolve()):
            links.append(inner.as_posix())
    if links:
        raise ArtifactError(
            f"{folder}: {', '.join(links)}: links to files elsewhere are not published; put copies "
            "there"
        )
    return files


def published_entry(folder: Path, plan: Plan) -> CatalogEntry:
    """Makes the entry of the catalog for a folder that was pushed."""
    files = {path: cached_sha256(file) for path, file in plan.publication.files.items()}
    bundled = folder.parent == bundled_artifacts().resolve()
    return CatalogEntry(
        folder.name, artifact_kind(folder), plan.publication.repository, plan.tag, bundled, files
    )


def artifact_kind(folder: Path) -> str:
    """Returns the kind of the artifact in a folder, as the catalog calls it."""
    if (folder / "preset.toml").is_file():
        return "preset"
    if any(any(folder.rglob(f"*.{kind}.safetensors")) for kind in ("clp", "umd")):
        return "maps"
    if is_adapter(folder):
        return "adapter"
    config = _config(folder)
    if "encoder_fingerprint" in config:
        return "regressor"
    architectures = config.get("architectures") or []  # `transformers` may write null
    if any(name.endswith("LMHeadModel") for name in architectures):
        return "language-model"
    if "MBartForConditionalGeneration" in architectures:
        return "translation-model"
    if (folder / "config.json").is_file() or (folder / "modules.json").is_file():
        return "encoder"
    raise ArtifactError(
        f"{folder}: neither preset.toml, maps (XX-YY.clp.safetensors) nor config.json, so it is no "
        "artifact"
    )


def _config(folder: Path) -> JsonObject:
    """Reads config.json; empty where there is none."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def plan(publication: Publication) -> Plan:
    """Compares a repository with a publication; changes nothing."""
    with hub_errors(publication.repository):
        return _compared(_api(), publication)


def push(publication: Publication, *, private: bool = False) -> Plan:
    """Sends the files that differ as one commit, and tags it. Creates the repository if need be.

    Versions count up from ``v1.0.0``, or from the version of this package where that is higher. An
    interrupted push leaves the repository as it was; the next push sends only the files that did
    not arrive. Of pushes at the same time, each makes a commit of its own or has nothing to send.

    Args:
        publication: the files.
        private: whether a repository that is created is private; an existing one stays as it is.

    Returns:
        The changes that were made.
    """
    name, kind, _ = publication
    with hub_errors(name):
        api = _api()
        created = _compared(api, publication).created
        if created:
            sdk = "gradio" if kind == "space" else None
            api.create_repo(name, repo_type=kind, private=private, space_sdk=sdk, exist_ok=True)
        done = _repeated(name, lambda: _committed(api, publication))
        tag = _repeated(name, lambda: _tagged(api, publication, done.head))
    return dataclasses.replace(done, tag=tag, tagged=True, created=created)


def _api() -> "HfApi":
    from huggingface_hub import HfApi

    return HfApi(library_name="mtmetrics", library_version=__version__)


def _compared(api: "HfApi", publication: Publication) -> Plan:
    """Lists the changes from a repository to a publication."""
    from huggingface_hub.errors import RepositoryNotFoundError
    from huggingface_hub.hf_api import RepoFile

    name, kind, files = publication
    try:
        head, tags = _refs(api, publication)
        tree = list(api.list_repo_tree(name, recursive=True, revision=head, repo_type=kind))
    except RepositoryNotFoundError:
        changes = [Change("add", path, file.stat().st_size) for path, file in sorted(files.items())]
        return Plan(publication, None, changes, _next_tag({}), tagged=False, created=True)
    remote = {item.path: item for item in tree if isinstance(item, RepoFile)}
    remote = {path: item for path, item in remote.items() if path not in _OF_THE_HUB}
    changes = []
    for path in sorted(remote.keys() | files.keys()):
        if path not in files:
            changes.append(Change("delete", path, remote[path].size))
        elif path not in remote:
            changes.append(Change("add", path, files[path].stat().st_size))
        elif not _is_equal(files[path], remote[path]):
            changes.append(Change("update", path, files[path].stat().st_size))
    tag = None if changes else _tag_of(head, tags)
    return Plan(
        publication, head, changes, tag or _next_tag(tags), tagged=tag is not None, created=False
    )


def _is_equal(file: Path, remote: "RepoFile") -> bool:
    """Whether a file and a file of a repository have the same content."""
    if file.stat().st_size != remote.size:
        return False
    if remote.lfs:
        return cached_sha256(file) == remote.lfs.sha256
    return git_blob_sha1_of_file(file) == remote.blob_id


def _refs(api: "HfApi", publication: Publication) -> tuple[str, dict[str, str]]:
    """Returns the last commit of the main branch, and the commits of the version tags from v1.0.0
    up, in ascending order."""
    refs = api.list_repo_refs(publication.repository, repo_type=publication.kind)
    heads = {branch.name: branch.target_commit for branch in refs.branches}
    if "main" not in heads:
        raise ArtifactError(f"{publication.repository}: has no branch main")
    tags = sorted((_tag_version(tag.name), tag.name, tag.target_commit) for tag in refs.tags)
    return heads["main"], {
        name: commit for version, name, commit in tags if version >= _FIRST_VERSION
    }


def _tag_of(commit: str, tags: dict[str, str]) -> str | None:
    """Returns the highest version tag of a commit; None where it has none."""
    return next((tag for tag in reversed(tags) if tags[tag] == commit), None)


def _tag_version(tag: str) -> Version:
    """Returns the version of a tag, 0 where it names none."""
    try:
        return Version(tag.removeprefix("v") if tag.startswith("v") else "0")
    except InvalidVersion:
        return Version("0")


def _next_tag(tags: dict[str, str]) -> str:
    """Returns the version tag that follows these, which are in ascending order."""
    lowest = max(_FIRST_VERSION, Version(Version(__version__).base_version))
    versions = [_tag_version(tag) for tag in tags]
    if not versions or versions[-1] < lowest:
        return f"v{lowest}"
    last = versions[-1]
    return f"v{last.major}.{last.minor}.{last.micro + 1}"


def _repeated(repository: str, attempt: Callable[[], T]) -> T:
    """Returns the result of an attempt; repeats it where another push was faster."""
    from huggingface_hub.errors import HfHubHTTPError

    for _ in range(_ATTEMPTS):
        try:
            return attempt()
        except HfHubHTTPError as error:
            # A tag of that name exists, or the branch has another head.
            if error.response.status_code not in (409, 412):
                raise
    raise ArtifactError(f"{repository}: others kept changing it meanwhile; try again")


def _committed(api: "HfApi", publication: Publication) -> Plan:
    """Sends the files that differ as one commit. Returns the changes, with the new commit."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    name, kind, files = publication
    wanted = _compared(api, publication)
    if not wanted.changes:
        return wanted
    operations = [
        CommitOperationDelete(change.path)
        if change.action == "delete"
        else CommitOperationAdd(change.path, files[change.path])
        for change in wanted.changes
    ]
    commit = api.create_commit(
        name,
        operations,
        commit_message=f"{wanted.tag} (mtmetrics {__version__})",
        repo_type=kind,
        parent_commit=wanted.head,
    )
    return dataclasses.replace(wanted, head=commit.oid)


def _tagged(api: "HfApi", publication: Publication, head: str) -> str:
    """Returns the version tag of a commit; makes one if need be."""
    _, tags = _refs(api, publication)
    tag = _tag_of(head, tags)
    if tag is None:
        tag = _next_tag(tags)
        api.create_tag(publication.repository, tag=tag, revision=head, repo_type=publication.kind)
    return tag


def space_publication(
    name: str, namespace: str, wheel: Path, scratch: Path, package_url: str | None = None
) -> Publication:
    """Makes the publication of a Space, see `mtmetrics.layout.space_folder`.

    A Space holds its folder and, where Python finds it, the package of a wheel. It holds no models:
    the package pulls them from their repositories in the same namespace. The script of a metric
    refuses an installed package that is older than the wheel.

    Args:
        name: of the Space.
        namespace: of the Space and of the models.
        wheel: of this package.
        scratch: folder for files of the publication; it must stay until the Space is pushed.
        package_url: address of the package for pip; `evaluate` shows it where the package is
            missing.

    Raises:
        InputError: the wheel or the address cannot be used.
        ArtifactError: the card of the Space cannot be published.
    """
    if not (wheel.is_file() and wheel.name.startswith("mtmetrics-") and wheel.suffix == ".whl"):
        raise InputError(
            f"--wheel {wheel}: a wheel of this package, mtmetrics-VERSION-py3-none-any.whl, is "
            "needed"
        )
    folder = space_folder(name)
    check_space_card(folder)
    files = published_files(folder) | _package_files(wheel, namespace, scratch)
    if package_url is not None and package_url.split() != [package_url]:
        raise InputError(
            f"--package-url {package_url!r}: what pip installs is needed, without spaces"
        )
    script = f"{name}.py"
    if script in files:
        text = files[script].read_text(encoding="utf-8")
        files[script] = scratch / script
        files[script].write_text(_with_check(text, wheel, package_url), encoding="utf-8")
    return Publication(f"{namespace}/{name}", "space", files)


def _package_files(wheel: Path, namespace: str, scratch: Path) -> dict[str, Path]:
    """Unpacks a wheel. Returns the files of the package without models, and a catalog in which all
    models are on the Hub, in a namespace."""
    unpacked = scratch / wheel.stem
    if not unpacked.exists():
        try:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked)
        except (zipfile.BadZipFile, OSError) as error:
            raise InputError(f"--wheel {wheel}: cannot be unpacked ({error})") from error
    package = {
        f"mtmetrics/{path}": file for path, file in published_files(unpacked / "mtmetrics").items()
    }
    files = {path: file for path, file in package.items() if not path.startswith(_BUNDLED)}
    catalog_path = _BUNDLED + "catalog.toml"
    if catalog_path in package:
        text = package[catalog_path].read_text(encoding="utf-8")
        text = text.replace("\nbundled = true\n", "\nbundled = false\n")
        text = re.sub(
            r'^(repository|mirror) = "[^"/]+/', rf'\1 = "{namespace}/', text, flags=re.MULTILINE
        )
        files[catalog_path] = scratch / f"{namespace}.toml"
        write_atomic(files[catalog_path], text)
    return files


def _with_check(script: str, wheel: Path, package_url: str | None) -> str:
    """Adds to the script of a metric a check of the installed version, and the address of the
    package, in the form in which `evaluate` reads it."""
    line, advice = _IMPORT, "install that version or a newer one"
    if package_url:
        line = f"{_IMPORT}  # From: {package_url}"
        advice = f"pip install --upgrade {package_url}"
    check = _CHECK.format(version=wheel.name.split("-")[1], advice=advice)
    return script.replace(f"\n{_IMPORT}\n", f"\n{line}\n{check}", 1)


def build_wheel(scratch: Path) -> Path:
    """Builds the wheel of the checkout that this package runs from; equal sources give equal
    wheels.

    Raises:
        InputError: the package is installed without its sources.
        MTMetricsError: the wheel cannot be built.
    """
    root = source_tree()
    if root is None:
        raise InputError(
            "mtmetrics is installed without its sources, so its wheel cannot be built; pass "
            "--wheel FILE"
        )
    # A copy of the sources, since setuptools would add files that earlier builds left there.
    tree, out = scratch / "tree", scratch / "wheel"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    try:
        tree.mkdir(parents=True)
        for source in (root / name for name in _SOURCES):
            if source.is_dir():
                shutil.copytree(source, tree / source.name, ignore=ignored)
            else:
                shutil.copyfile(source, tree / source.name)
        process = subprocess.run(
            [*pip, "--wheel-dir", str(out), str(tree)],
            env=os.environ | {"SOURCE_DATE_EPOCH": _EPOCH},
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise MTMetricsError(
            f"the wheel cannot be built in {scratch}: {error.strerror or error}"
        ) from error
    wheels = list(out.glob("mtmetrics-*.whl"))
    if process.returncode or not wheels:
        messages = " ".join(process.stderr.split())[-500:]
        raise MTMetricsError(f"the wheel cannot be built: {messages}; pass --wheel FILE")
    return wheels[0]
