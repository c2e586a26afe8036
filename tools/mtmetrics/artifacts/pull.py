"""Gets whole artifacts from the Hub, into its cache or into a folder."""

import dataclasses
import shutil
from pathlib import Path

from mtmetrics.artifacts.catalog import verify
from mtmetrics.artifacts.files import new_folder
from mtmetrics.artifacts.resolve import HubSource, download
from mtmetrics.errors import InputError, MTMetricsError


@dataclasses.dataclass(frozen=True)
class Pulled:
    """Where an artifact lies now.

    Attributes:
        folder: with its files.
        repository: where it came from.
        revision: of the repository.
        fetched: files that were not there before.
        present: files that were there already.
    """

    folder: str
    repository: str
    revision: str | None
    fetched: list[str]
    present: list[str]


def pull(name: str, source: HubSource, out: Path | None = None) -> Pulled:
    """Fetches all files that the catalog lists for an artifact, and compares them with it.

    Args:
        name: an artifact of the catalog.
        source: where it lies, see `mtmetrics.artifacts.resolve.hub_source`.
        out: folder of artifacts, such as `MTMETRICS_ARTIFACTS` names; the artifact becomes the folder `name` in it.
            None keeps it in the cache of the Hub.

    Raises:
        InputError: `out` holds a folder of that name already, and it is not what the catalog says.
        ArtifactError: it cannot be fetched, or is not what the catalog says.
        MTMetricsError: `out` cannot be written.
    """
    from huggingface_hub import try_to_load_from_cache

    files = sorted(source.files)
    if out is None:
        cached = {
            file
            for file in files
            if isinstance(try_to_load_from_cache(source.repository, file, revision=source.revision), str)
        }
        folder = download(source)
        return _pulled(folder, source, files, cached)
    target = out / name
    if not target.exists():
        folder = download(source)
        try:
            with new_folder(target) as temporary:
                for file in files:
                    (temporary / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(folder / file, temporary / file)
            return _pulled(target, source, files, set())
        except MTMetricsError:
            if not target.exists():
                raise  # else another process was faster
    problems = list(verify(name, target))
    if problems:
        raise InputError(
            f"{target} exists already and is not the artifact ({problems[0]}); remove it or choose another --out"
        )
    return _pulled(target, source, files, set(files))


def _pulled(folder: Path, source: HubSource, files: list[str], present: set[str]) -> Pulled:
    fetched = [file for file in files if file not in present]
    return Pulled(str(folder), source.repository, source.revision, fetched, [file for file in files if file in present])
