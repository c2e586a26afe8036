"""The stages of a long production. Each result is kept as long as the settings, files and stages
that it depends on stay the same."""

import dataclasses
import hashlib
import json
import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from filelock import FileLock, Timeout

from mtmetrics._version import __version__
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.atomic import atomic_folder, make_folder, write_json
from mtmetrics.io.checksums import sha256_file
from mtmetrics.io.lines import json_line

log = logging.getLogger("mtmetrics")

# Numbers and texts that a stage counted, by name.
Counts = Mapping[str, float | str | None]


class _Entry(TypedDict):
    """A finished stage in ``state.json``.

    Attributes:
        key: a hash over everything that the stage depends on.
        counts: the numbers that it counted.
        digest: a hash over its result.
    """

    key: str
    counts: Counts
    digest: str


@dataclasses.dataclass(frozen=True)
class Finished:
    """A stage that is done.

    Attributes:
        folder: holds its result.
        counts: the numbers that it counted.
        digest: a hash over files and counts, by which later stages notice a change.
    """

    folder: Path
    counts: Counts
    digest: str


class Stages:
    """The stages of one production, in one work folder, in which one process at a time works.

    The file ``state.json`` there has, for each finished stage, a hash over all that it depended on:
    settings, files, and the results of other stages. A stage whose hash is the same again is not
    repeated. A stage that was interrupted starts over, with the files that it kept in the folder
    `unfinished`. Stages that are not requested any more stay. Times and counts go to a log besides,
    one JSON object per line.

    Args:
        work: the folder of the stages, made where there is none.
        log_file: the log.

    Attributes:
        work: the folder of the stages.
        unfinished: the folder in which the stage that is being produced may keep files that outlive
            a kill, such as checkpoints. Its name holds the hash, so a stage with other settings,
            files or stages before it never finds them.
        counts: the counts of the stages that this process requested, by name, in the order of the
            requests.

    Raises:
        MTMetricsError: another process works in the folder, or its state cannot be read.
    """

    def __init__(self, work: Path, log_file: Path) -> None:
        self.work = work
        self.unfinished = work
        self._log_file = log_file
        self.counts: dict[str, Counts] = {}
        make_folder(work)
        self._lock = FileLock(work / ".lock", blocking=False)
        try:
            self._lock.acquire()
        except Timeout as error:
            raise MTMetricsError(
                f"{work}: another process is at work there; wait for it, or stop it"
            ) from error
        _remove_leftovers(work)
        self._state_file = work / "state.json"
        self._state = _read_state(self._state_file)

    def run(
        self,
        name: str,
        produce: Callable[[Path], Counts],
        *,
        settings: Mapping[str, object] | None = None,
        files: Sequence[str | Path] = (),
        after: Sequence[Finished] = (),
    ) -> Finished:
        """Returns the result of a stage; produces it if there is none yet.

        Args:
            name: of the stage; also of its folder.
            produce: writes files into a temporary folder, and returns counts. The folder becomes
                the stage's when it returns, so that a stage is whole or absent.
            settings: all settings that shape the result (JSON values).
            files: input files from outside, known by their content.
            after: the stages that it reads.
        """
        contents = [_file_digest(path) for path in files]
        digests = [stage.digest for stage in after]
        key = _digest([name, __version__, settings or {}, contents, digests])
        folder = self.work / name
        self.unfinished = self.work / f"{name}.{key[:12]}.unfinished"
        entry = self._state.get(name)
        if entry is not None and entry["key"] == key and folder.is_dir():
            log.info("%s: there already", name)
            self._clear(name)
            self.counts[name] = entry["counts"]
            return Finished(folder, entry["counts"], entry["digest"])
        log.info("%s: starting", name)
        started = time.perf_counter()
        if entry is not None:
            del self._state[name]
            self._save()
        self._clear(name, but=self.unfinished)
        with atomic_folder(folder, overwrite=True) as temporary:
            counts = dict(produce(temporary))
        digest = _digest([counts, _checksums(folder)])
        seconds = round(time.perf_counter() - started, 3)
        self._state[name] = {"key": key, "counts": counts, "digest": digest}
        self._save()
        self._clear(name)
        self._log(name, seconds, counts)
        self.counts[name] = counts
        return Finished(folder, counts, digest)

    def close(self) -> None:
        """Lets other processes use the folder."""
        self._lock.release()

    def _clear(self, name: str, but: Path | None = None) -> None:
        """Removes the folders that a stage left unfinished, all but one."""
        for folder in self.work.glob(f"{name}.*.unfinished"):
            if folder != but:
                shutil.rmtree(folder, ignore_errors=True)

    def _save(self) -> None:
        """Writes the state."""
        write_json(self._state_file, self._state, sort_keys=True)

    def _log(self, name: str, seconds: float, counts: Counts) -> None:
        """Adds a finished stage to the log."""
        try:
            with open(self._log_file, "a", encoding="utf-8") as stream:
                stream.write(json_line({"stage": name, "seconds": seconds, **counts}))
        except OSError as error:
            raise MTMetricsError(
                f"cannot write {self._log_file}: {error.strerror or error}"
            ) from error
        text = "".join(f", {label} {value}" for label, value in counts.items())
        log.info("%s: done in %.0f s%s", name, seconds, text)


def _remove_leftovers(work: Path) -> None:
    """Removes temporary files and folders of a run that was killed."""
    for leftover in [*work.glob(".*.tmp"), *work.glob(".*.tmp.old")]:
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _read_state(path: Path) -> dict[str, _Entry]:
    """The entries of finished stages by name; none without the file."""
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise MTMetricsError(
            f"{path}: cannot be read ({error}); remove it to begin again"
        ) from error


def _checksums(folder: Path) -> dict[str, str]:
    """The checksums of all files of a folder, by their paths in it."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): sha256_file(path) for path in files}


def _digest(value: object) -> str:
    """A hash over a JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _file_digest(path: str | Path) -> str:
    """The checksum of an input file; an InputError where it cannot be read."""
    try:
        return sha256_file(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
