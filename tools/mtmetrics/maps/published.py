"""The remapping matrices that the authors of XMoverScore published: what there is, fetching, and conversion to maps."""

import dataclasses
import io
import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mtmetrics.artifacts.catalog import CatalogEntry, catalog
from mtmetrics.artifacts.download import fetch
from mtmetrics.artifacts.files import git_blob_sha1, make_folder
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.inputs import warn
from mtmetrics.maps.remapping import Remapping

if TYPE_CHECKING:
    import httpx2

ENCODER = "google-bert/bert-base-multilingual-cased"
_KINDS = {".BAM": "clp", ".GBDD": "umd"}
_NAME = re.compile(r"(?P<corpus>.+)\.(?P<lp>[a-z]{2,3}-[a-z]{2,3})\.(?P<sentences>[0-9]+k?)\.(?P<layer>[0-9]+)")
_OPTIONS = {"layer": "--layer N", "lp": "--lp XX-YY", "encoder": "--encoder MODEL"}


@dataclasses.dataclass(frozen=True)
class PublishedMap:
    """A matrix of the catalog."""

    layer: int
    lang_pair: str
    kind: str
    url: str
    git_blob: str  # git's hash of its content
    meta: dict[str, str]  # of the map that is made of it, with repository, commit, licence and git's hash

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[-1]

    def is_at(self, path: Path) -> bool:
        """Whether a file is this map, whole."""
        try:
            remapping = Remapping.load(path)
        except ArtifactError:
            return False
        return remapping.kind == self.kind and remapping.meta == self.meta

    def fetch(self, client: "httpx2.Client", path: Path) -> int:
        """Fetches the matrix, checks and converts it, and writes the map to `path`; returns how many bytes came."""
        data = fetch(client, self.url, self.git_blob)
        remapping = convert(data, self.url, self.kind, self.meta)
        make_folder(path.parent)
        remapping.save(path)
        return len(data)


def published_maps(entry: CatalogEntry) -> dict[tuple[int, str, str], PublishedMap]:
    """The published matrices of an artifact by layer, language pair and kind; none where it is of another sort."""
    origin = entry.origin
    if origin is None or entry.kind != "maps":
        return {}
    maps = {}
    for file, git_blob in entry.files.items():
        meta = meta_of_name(file)
        if not meta:
            why = "which is not named like a published matrix"
            raise ArtifactError(f"artifact {entry.name}: the catalog lists {file}, {why}")
        layer, lang_pair, kind = int(meta["layer"]), meta["lp"], _KINDS[Path(file).suffix]
        meta |= {"origin": origin.url, "commit": origin.commit, "licence": origin.licence, "git_blob": git_blob}
        maps[layer, lang_pair, kind] = PublishedMap(
            layer, lang_pair, kind, f"{origin.url}/{origin.commit}/{file}", git_blob, meta
        )
    return maps


def meta_of_name(path: str | Path) -> dict[str, str]:
    """The metadata that a name such as ``europarl-v7.de-en.2k.8.BAM`` gives; empty if it is not of that pattern."""
    path = Path(path)
    match = _NAME.fullmatch(path.stem)
    if match is None or path.suffix not in _KINDS:
        return {}
    return {"encoder": ENCODER, **match.groupdict(), "sentences": match["sentences"].replace("k", "000")}


def convert(data: bytes, name: str | Path, kind: str, meta: dict[str, str]) -> Remapping:
    """The map that a ``.BAM`` (clp) or ``.GBDD`` (umd) file, a numpy array, is; `name` is for messages."""
    try:
        # What `np.load` calls for a .npy file; it would also open archives.
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, MemoryError, SyntaxError, tokenize.TokenError) as error:
        raise ArtifactError(f"{name}: not a whole numpy file ({error})") from error
    if array.dtype.kind != "f":
        raise ArtifactError(f"{name}: a numpy array of floating-point numbers is needed, got {array.dtype}")
    try:
        return Remapping(kind, (array,), meta=meta)
    except InputError as error:
        raise ArtifactError(f"{name}: {error}") from error


def import_map(path: Path, given: dict[str, str]) -> Remapping:
    """Reads a ``.BAM`` or ``.GBDD`` file from anywhere, or binds a map that was made of one to a model.

    A file that the catalog knows by its content is recorded with its origin. Of any other the name says what it is,
    where it has the authors' pattern.

    Args:
        path: the file.
        given: metadata that replaces what content and name say: ``layer``, ``lp``, ``encoder``,
            ``encoder_fingerprint``.

    Raises:
        InputError: no such file, a file of another kind, or something that is said nowhere; the message names the
            option.
        ArtifactError: the content is not what it should be.
    """
    if path.suffix == ".safetensors":
        return _bound(path, given)
    if path.suffix not in _KINDS:
        wanted = "*.BAM (CLP matrix), *.GBDD (UMD direction) or *.safetensors (a map made of one)"
        raise InputError(f"{path}: a file named {wanted} is needed")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    git_blob = git_blob_sha1(data)
    known = [published for entry in catalog().values() for published in published_maps(entry).values()]
    same = [published for published in known if published.git_blob == git_blob]
    meta = (same[0].meta if same else meta_of_name(path) | {"git_blob": git_blob}) | given
    lacking = [option for key, option in _OPTIONS.items() if key not in meta]
    if lacking:
        form = f"CORPUS.XX-YY.2k.LAYER{path.suffix}"
        raise InputError(f"{path}: its name does not have the form {form}, so {' and '.join(lacking)} must be given")
    remapping = convert(data, path, _KINDS[path.suffix], meta)
    if not same and path.name in {published.file for published in known}:
        text = f"{path}: not the file that the authors published under this name; imported as it is"
        warn(text)
    return remapping


def _bound(path: Path, given: dict[str, str]) -> Remapping:
    remapping = Remapping.load(path)
    if "encoder_fingerprint" in remapping.meta or not _OPTIONS.keys() <= remapping.meta.keys():
        raise InputError(f"{path}: not made of a published matrix, so it cannot be bound to a model")
    if "encoder_fingerprint" not in given:
        raise InputError(f"{path}: a map already; --encoder MODEL must be given, the model to bind it to")
    return dataclasses.replace(remapping, meta=remapping.meta | given)
