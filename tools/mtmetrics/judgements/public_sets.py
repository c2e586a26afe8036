"""Public sets of human judgements: their addresses, and fetching them."""

import dataclasses
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

from mtmetrics.artifacts.download import (
    assets_folder,
    fetch_file,
    http_client,
    is_offline,
    remote_size,
)
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.atomic import make_folder, output_folder, write_atomic
from mtmetrics.io.checksums import git_blob_sha1_of_file, sha256_file
from mtmetrics.io.lines import iter_lines
from mtmetrics.judgements.plain_pickles import convert

if TYPE_CHECKING:
    import httpx2

REGISTRY = Path(__file__).with_name("datasets.toml")
# The format of `sha256sum`, which can check it.
SUMS = "SHA256SUMS"


class DataFile(NamedTuple):
    """A file of a public set.

    Attributes:
        url: where its authors serve it, at a fixed commit.
        sha256, git_blob: its checksum, or the hash by which git knows it, as far as they are known.
        pickled: whether it is a pickle, of which JSON Lines are kept.
        bytes: its size, if that is known.
    """

    url: str
    sha256: str | None = None
    git_blob: str | None = None
    pickled: bool = False
    bytes: int | None = None

    @property
    def is_pinned(self) -> bool:
        """Whether its content is known beforehand."""
        return bool(self.sha256 or self.git_blob)


class Pulled(NamedTuple):
    """Names of the files that came, those that were there, and those that came with a checksum not
    known before."""

    fetched: list[str]
    present: list[str]
    recorded: list[str]


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A public set: its name for `mtmetrics data pull`, what it holds, its authors' terms, and its
    files by name."""

    name: str
    what: str
    licence: str
    files: dict[str, DataFile]

    @property
    def cache(self) -> Path:
        """The folder where it is kept unless another one is named."""
        return assets_folder("data", self.name)

    def size(self, names: Iterable[str]) -> int | None:
        """Bytes of some of the files, as known here or as their servers say; None where one does
        not."""
        with http_client() as client:
            files = [self.files[name] for name in names]
            sizes = [file.bytes or remote_size(client, file.url) for file in files]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def pull(self, folder: Path, *, on_bytes: Callable[[int], object] = lambda _: None) -> Pulled:
        """Fetches the files that are not in a folder yet, and records their checksums there.

        A file whose checksum is not in the registry is taken as it comes the first time; from then
        on it must have the recorded one. Another file of that name, or a network that must not be
        asked, ends it. `on_bytes` is called with the number of bytes of every piece that arrives.
        """
        recorded = _recorded(folder / SUMS)
        digests = {}
        for name, file in self.files.items():
            # The rows of a pickle have a checksum of their own.
            digest = None if file.pickled else file.sha256
            digests[name] = digest or recorded.get(name)
        present = [name for name in self.files if (folder / name).exists()]
        for name in present:
            _check_present(folder / name, digests[name], self.files[name].git_blob)
        fetched = [name for name in self.files if name not in present]
        if fetched and is_offline():
            raise ArtifactError(
                f"{self.name}: {fetched[0]} is not in {folder}, and HF_HUB_OFFLINE forbids to "
                "fetch it"
            )
        if fetched:
            with output_folder(folder), http_client() as client:
                for name in fetched:
                    file, path = self.files[name], folder / name
                    make_folder(path.parent)
                    if file.pickled:
                        recorded[name] = _converted(client, file, path, on_bytes)
                    else:
                        recorded[name] = fetch_file(
                            client,
                            file.url,
                            path,
                            digests[name],
                            file.git_blob,
                            on_bytes=on_bytes,
                        )
                    lines = [f"{recorded[name]}  {name}\n" for name in sorted(recorded)]
                    write_atomic(folder / SUMS, "".join(lines))
        new = [name for name in fetched if not (digests[name] or self.files[name].is_pinned)]
        return Pulled(fetched, present, new)


def _check_present(path: Path, digest: str | None, git_blob: str | None) -> None:
    """Refuses a file that is there already and is not the one of the set, as far as its checksum is
    known."""
    if digest:
        is_right = sha256_file(path) == digest
    elif git_blob:
        is_right = git_blob_sha1_of_file(path) == git_blob
    else:
        is_right = False
    if not is_right:
        is_known = digest or git_blob
        why = "it is damaged or another one" if is_known else "its checksum is not known"
        advice = "remove it, or choose another folder with --out"
        raise InputError(f"{path} exists already and {why}; {advice}")


def _converted(
    client: "httpx2.Client", file: DataFile, path: Path, on_bytes: Callable[[int], object]
) -> str:
    """Fetches a pickle and writes the rows that it holds; returns the sha256 of what was
    written."""
    pickled = path.with_suffix(".pkl")
    try:
        fetch_file(client, file.url, pickled, file.sha256, on_bytes=on_bytes)
        convert(pickled, path)
    finally:
        pickled.unlink(missing_ok=True)
    return sha256_file(path)


def datasets() -> dict[str, Dataset]:
    """All sets of the registry by name."""
    sets = {}
    for name, table in tomllib.loads(REGISTRY.read_text(encoding="utf-8")).items():
        base = table.pop("base", "")
        files = {
            file: DataFile(**{**about, "url": urljoin(base, about.get("url", file))})
            for file, about in table.pop("files").items()
        }
        sets[name] = Dataset(name, **table, files=files)
    return sets


def _recorded(path: Path) -> dict[str, str]:
    """File name -> sha256, of a `sha256sum` file; nothing where there is none."""
    recorded = {}
    for number, line in enumerate(iter_lines(path) if path.exists() else (), 1):
        digest, space, name = line.partition("  ")
        if not space or len(digest) != 64:
            needed = "a sha256, two spaces and the name of a file are needed"
            raise InputError(f"{path}, line {number}: {needed}; remove the file to start anew")
        recorded[name] = digest
    return recorded
