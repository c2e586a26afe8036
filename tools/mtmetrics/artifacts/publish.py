"""Publishing: artifacts and Spaces as repositories on the Hub with a version tag; what is there is
not sent again."""

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
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from packaging.version import InvalidVersion, Version

from mtmetrics._version import __version__
from mtmetrics.artifacts.adapters import is_adapter, require_public_base
from mtmetrics.artifacts.cards import check_model_card, check_space_card
from mtmetrics.artifacts.catalog import CatalogEntry, catalog
from mtmetrics.artifacts.hub import hub_errors
from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.io.atomic import git_blob_file, sha256_unchanged, write_atomic
from mtmetrics.layout import bundled_artifacts, source_tree, space_folder

if TYPE_CHECKING:
    from huggingface_hub import HfApi

T = TypeVar("T")
# What a production keeps for itself, and mined or translated text, which must not be published.
_PRIVATE = {"work", "__pycache__"}
# Formats that are unpickled, so that loading them may run code.
_CODE = {".bin", ".ckpt", ".joblib", ".npy", ".npz", ".pickle", ".pkl", ".pt", ".pth", ".py"}
# The Hub makes this one itself and needs it for large files.
_KEPT = {".gitattributes"}
_ATTEMPTS = 5  # against other pushes to the same repository
_FIRST = Version("1.0.0")
_IMPORT = "import mtmetrics"
# Written into the script of a Space: `evaluate` takes whatever is installed under the name.
_CHECK = """from packaging.version import Version

if Version(mtmetrics.__version__) < Version("{version}"):
    found = f"mtmetrics {{mtmetrics.__version__}} is installed, and this metric was made with {version}"
    raise ImportError(f"{{found}}; {advice}")
"""
_MODELS = "mtmetrics/hub_artifacts/"
# What a wheel is built from.
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

_KINDS: dict[str, Callable[[Path], bool]] = {
    "preset": lambda folder: (folder / "preset.toml").is_file(),
    "maps": lambda folder: any(
        any(folder.rglob(f"*.{kind}.safetensors")) for kind in ("clp", "umd")
    ),
    "adapter": is_adapter,
    "regressor": lambda folder: "encoder_fingerprint" in _config(folder),
    "language-model": lambda folder: any(
        it.endswith("LMHeadModel") for it in _config(folder).get("architectures", [])
    ),
    "translation-model": lambda folder: (
        "MBartForConditionalGeneration" in _config(folder).get("architectures", [])
    ),
    "encoder": lambda folder: (
        (folder / "config.json").is_file() or (folder / "modules.json").is_file()
    ),
}


class Publication(NamedTuple):
    """Files for a repository: path there -> file here. The repository is named with its
    namespace."""

    repository: str
    kind: Literal["model", "space"]
    files: dict[str, Path]


class Change(NamedTuple):
    """One file that differs; `action` is ``"add"``, ``"update"`` or ``"delete"``, `size` in
    bytes."""

    action: str
    path: str
    size: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """Changes that a push makes, or has made.

    Attributes:
        publication: the files.
        head: commit of the main branch that the changes are made to; None where there is no
            repository.
        changes: the files that differ.
        tag: version tag of the result.
        tagged: whether the tag exists.
        created: whether the repository was made.
    """

    publication: Publication
    head: str | None
    changes: list[Change]
    tag: str
    tagged: bool
    created: bool

    @property
    def size(self) -> int:
        return sum(change.size for change in self.changes if change.action != "delete")


def artifact_folder(name: str) -> Path:
    """The folder that is published under a name: that of a bundled artifact, or one given by its
    path."""
    bundled = [entry.name for entry in catalog().values() if entry.bundled]
    folder = bundled_artifacts() / name if name in bundled else Path(name)
    if not folder.is_dir():
        raise InputError(
            f"{name}: neither a folder nor a bundled artifact; those are: {', '.join(bundled)}"
        )
    return folder.resolve()


def artifact_publication(folder: Path, namespace: str) -> Publication:
    """An artifact's folder as a repository; its card is checked, and code in it refused."""
    check_model_card(folder)
    files = published_files(folder)
    refuse_code(folder, files)
    if is_adapter(folder):
        require_public_base(folder)
    return Publication(f"{namespace}/{folder.name}", "model", files)


def refuse_code(folder: Path, files: Iterable[str]) -> None:
    """An ArtifactError where files of a folder may run code when they are loaded."""
    code = [path for path in files if Path(path).suffix.lower() in _CODE]
    if code:
        refused = f"{', '.join(code)}: formats that may run code are not published"
        raise ArtifactError(f"{folder}: {refused}; store weights as safetensors")


def published_files(folder: Path) -> dict[str, Path]:
    """The files of a folder by their path in it, but hidden ones and ``work``; links to elsewhere
    are refused."""
    files = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        inner = path.relative_to(folder)
        if not any(part.startswith(".") or part in _PRIVATE for part in inner.parts):
            files[inner.as_posix()] = path
    links = [
        name for name, path in files.items() if not path.resolve().is_relative_to(folder.resolve())
    ]
    if links:
        refused = f"{', '.join(links)}: links to files elsewhere are not published"
        raise ArtifactError(f"{folder}: {refused}; put copies there")
    return files


def published_entry(folder: Path, plan: Plan) -> CatalogEntry:
    """The entry of the catalog for a folder that was pushed."""
    files = {path: sha256_unchanged(file) for path, file in plan.publication.files.items()}
    bundled = folder.parent == bundled_artifacts().resolve()
    return CatalogEntry(
        folder.name, artifact_kind(folder), plan.publication.repository, plan.tag, bundled, files
    )


def artifact_kind(folder: Path) -> str:
    """Returns the kind of the artifact in a folder, as the catalog calls it."""
    for kind, holds in _KINDS.items():
        if holds(folder):
            return kind
    needed = "neither preset.toml, maps (XX-YY.clp.safetensors) nor config.json"
    raise ArtifactError(f"{folder}: {needed}, so it is no artifact")


def _config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def plan(publication: Publication) -> Plan:
    """Compares a repository with what it is to hold; changes nothing."""
    with hub_errors(publication.repository):
        return _compared(_api(), publication)


def push(publication: Publication, *, private: bool = False) -> Plan:
    """Creates the repository if there is none, sends what differs as one commit, tags it, and tells
    what was done.

    Versions are counted up from ``v1.0.0``, or the version of this package where that is higher. An
    interrupted push leaves the repository as it was; the next one goes on with the files that are
    there. Of pushes at the same time each gets a commit of its own or finds nothing to do. A
    repository that exists stays private or public as it is."""
    name, kind, _ = publication
    with hub_errors(name):
        api = _api()
        created = _compared(api, publication).created
        if created:
            sdk = "gradio" if kind == "space" else None
            api.create_repo(name, repo_type=kind, private=private, space_sdk=sdk, exist_ok=True)
        done = _settled(name, lambda: _committed(api, publication))
        tag = _settled(name, lambda: _tagged(api, publication, done.head))
    return dataclasses.replace(done, tag=tag, tagged=True, created=created)


def _api() -> "HfApi":
    from huggingface_hub import HfApi

    return HfApi(library_name="mtmetrics", library_version=__version__)


def _compared(api: "HfApi", publication: Publication) -> Plan:
    from huggingface_hub.errors import RepositoryNotFoundError
    from huggingface_hub.hf_api import RepoFile

    name, kind, files = publication
    try:
        head, tags = _refs(api, publication)
        tree = list(api.list_repo_tree(name, recursive=True, revision=head, repo_type=kind))
    except RepositoryNotFoundError:
        changes = [Change("add", path, file.stat().st_size) for path, file in sorted(files.items())]
        return Plan(publication, None, changes, _next_tag({}), tagged=False, created=True)
    remote = {
        item.path: item for item in tree if isinstance(item, RepoFile) and item.path not in _KEPT
    }
    changes = []
    for path in sorted(remote.keys() | files.keys()):
        if path not in files:
            changes.append(Change("delete", path, remote[path].size))
        elif path not in remote or not _same(files[path], remote[path]):
            changes.append(
                Change("update" if path in remote else "add", path, files[path].stat().st_size)
            )
    own = [tag for tag, commit in tags.items() if commit == head and not changes]
    return Plan(
        publication,
        head,
        changes,
        own[-1] if own else _next_tag(tags),
        tagged=bool(own),
        created=False,
    )


def _same(file: Path, remote: Any) -> bool:
    if file.stat().st_size != remote.size:
        return False
    return (
        sha256_unchanged(file) == remote.lfs.sha256
        if remote.lfs
        else git_blob_file(file) == remote.blob_id
    )


def _refs(api: "HfApi", publication: Publication) -> tuple[str, dict[str, str]]:
    """The head of the main branch, and the commits of the version tags from v1.0.0 up in ascending
    order."""
    refs = api.list_repo_refs(publication.repository, repo_type=publication.kind)
    heads = {branch.name: branch.target_commit for branch in refs.branches}
    if "main" not in heads:
        raise ArtifactError(f"{publication.repository}: has no branch main")
    tags = sorted((_version(tag.name), tag.name, tag.target_commit) for tag in refs.tags)
    return heads["main"], {name: commit for version, name, commit in tags if version >= _FIRST}


def _version(tag: str) -> Version:
    try:
        return Version(tag.removeprefix("v") if tag.startswith("v") else "0")
    except InvalidVersion:
        return Version("0")


def _next_tag(tags: dict[str, str]) -> str:
    lowest = max(_FIRST, Version(Version(__version__).base_version))
    last = _version([*tags][-1]) if tags else None
    return (
        f"v{lowest}"
        if last is None or last < lowest
        else f"v{last.major}.{last.minor}.{last.micro + 1}"
    )


def _settled(repository: str, attempt: Callable[[], T]) -> T:
    from huggingface_hub.errors import HfHubHTTPError

    for _ in range(_ATTEMPTS):
        try:
            return attempt()
        except HfHubHTTPError as error:
            if error.response.status_code not in (
                409,
                412,
            ):  # a tag of that name, another head of the branch
                raise
    raise ArtifactError(f"{repository}: others kept changing it meanwhile; try again")


def _committed(api: "HfApi", publication: Publication) -> Plan:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    name, kind, files = publication
    wanted = _compared(api, publication)
    if not wanted.changes:
        return wanted
    paths = [change.path for change in wanted.changes]
    operations = [
        CommitOperationAdd(it, files[it]) if it in files else CommitOperationDelete(it)
        for it in paths
    ]
    message = f"{wanted.tag} (mtmetrics {__version__})"
    options: dict[str, Any] = {
        "commit_message": message,
        "repo_type": kind,
        "parent_commit": wanted.head,
    }
    return dataclasses.replace(wanted, head=api.create_commit(name, operations, **options).oid)


def _tagged(api: "HfApi", publication: Publication, head: str) -> str:
    _, tags = _refs(api, publication)
    own = [tag for tag, commit in tags.items() if commit == head]
    if own:
        return own[-1]
    tag = _next_tag(tags)
    api.create_tag(publication.repository, tag=tag, revision=head, repo_type=publication.kind)
    return tag


def space_publication(
    name: str, namespace: str, wheel: Path, scratch: Path, package_url: str | None = None
) -> Publication:
    """A Space (see `mtmetrics.layout.space_folder`): its folder, and beside the app, where Python
    finds it, the package as a wheel holds it, but without models, which it pulls from their
    repositories in the same namespace.

    The script of a metric refuses an installed package that is older than the wheel. With a
    `package_url`, for pip, `evaluate` names it where the package is missing. `scratch` must stay
    until the Space is pushed."""
    if not (wheel.is_file() and wheel.name.startswith("mtmetrics-") and wheel.suffix == ".whl"):
        raise InputError(
            f"--wheel {wheel}: a wheel of this package, mtmetrics-VERSION-py3-none-any.whl, is "
            "needed"
        )
    folder = space_folder(name)
    check_space_card(folder)
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
    package = {path: file for path, file in package.items() if not path.startswith(_MODELS)}
    listing = unpacked / "mtmetrics" / "hub_artifacts" / "catalog.toml"
    if listing.is_file():
        package[_MODELS + listing.name] = scratch / f"{namespace}.toml"
        text = listing.read_text(encoding="utf-8").replace(
            "\nbundled = true\n", "\nbundled = false\n"
        )
        text = re.sub(
            r'^(repository|mirror) = "[^"/]+/', rf'\1 = "{namespace}/', text, flags=re.MULTILINE
        )
        write_atomic(package[_MODELS + listing.name], text)
    files = published_files(folder)
    script = f"{name}.py"
    if package_url is not None and package_url.split() != [package_url]:
        raise InputError(
            f"--package-url {package_url!r}: what pip installs is needed, without spaces"
        )
    if script in files:
        text = files[script].read_text(encoding="utf-8")
        # As `evaluate` reads it.
        line = f"{_IMPORT}  # From: {package_url}" if package_url else _IMPORT
        advice = (
            f"pip install --upgrade {package_url}"
            if package_url
            else "install that version or a newer one"
        )
        check = _CHECK.format(version=wheel.name.split("-")[1], advice=advice)
        files[script] = scratch / script
        files[script].write_text(
            text.replace(f"\n{_IMPORT}\n", f"\n{line}\n{check}", 1), encoding="utf-8"
        )
    return Publication(f"{namespace}/{name}", "space", files | package)


def build_wheel(scratch: Path) -> Path:
    """Builds the wheel of the checkout that this package runs from; equal sources give equal
    wheels."""
    root = source_tree()
    if root is None:
        raise InputError(
            "mtmetrics is installed without its sources, so its wheel cannot be built; pass "
            "--wheel FILE"
        )
    tree, out = scratch / "tree", scratch / "wheel"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(out),
        str(tree),
    ]
    try:
        # A copy, since setuptools would mix in what earlier builds left in the tree.
        tree.mkdir(parents=True)
        for source in (root / name for name in _SOURCES):
            if source.is_dir():
                shutil.copytree(source, tree / source.name, ignore=ignored)
            else:
                shutil.copyfile(source, tree / source.name)
        environment = os.environ | {"SOURCE_DATE_EPOCH": _EPOCH}
        built = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise MTMetricsError(
            f"the wheel cannot be built in {scratch}: {error.strerror or error}"
        ) from error
    wheels = list(out.glob("mtmetrics-*.whl"))
    if built.returncode or not wheels:
        raise MTMetricsError(
            f"the wheel cannot be built: {' '.join(built.stderr.split())[-500:]}; pass --wheel FILE"
        )
    return wheels[0]
