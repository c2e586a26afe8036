"""Stored measurements: what a metric achieved on a file, with all that says whether the number still holds."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.files import sha256_file, write_atomic
from mtmetrics.errors import ArtifactError
from mtmetrics.evaluation.correlation import pearson
from mtmetrics.evaluation.data import read_judged_segments
from mtmetrics.evaluation.run import SCORE, MetricSpec, score_together
from mtmetrics.scorers.pool import ModelPool

RESULTS = "results.json"
_DECIMALS = 6

Key = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Measurement:
    """How a metric agrees with the judgements of a file.

    Attributes:
        metric: as `MetricSpec` writes it.
        file: name, from the root of the data.
        sha256: first 16 digits of the file's checksum.
        segments: judged segments of the file.
        pearson: score and parts -> Pearson's r, None where it is not defined.
        signature: one line that pins the scores.
    """

    metric: str
    file: str
    sha256: str
    segments: int
    pearson: dict[str, float | None]
    signature: str

    @property
    def key(self) -> Key:
        """Metric and file."""
        return self.metric, self.file


def load_measurements(folder: Path) -> dict[Key, Measurement]:
    """The measurements of ``results.json`` in a folder; none where there is no file.

    Raises:
        ArtifactError: the file cannot be read.
    """
    path = folder / RESULTS
    if not path.is_file():
        return {}
    try:
        found = [Measurement(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise ArtifactError(f"{path}: cannot be read as measurements ({error})") from error
    return {measurement.key: measurement for measurement in found}


def save_measurements(folder: Path, measurements: Iterable[Measurement]) -> None:
    """Writes ``results.json``, one measurement per line, sorted.

    Raises:
        MTMetricsError: it cannot be written.
    """
    rows = [
        json.dumps(dataclasses.asdict(row), ensure_ascii=False) for row in sorted(measurements, key=lambda row: row.key)
    ]
    write_atomic(folder / RESULTS, "[\n" + ",\n".join(rows) + "\n]\n")


def measure(
    wanted: Mapping[str, Iterable[MetricSpec]],
    stored: Mapping[Key, Measurement],
    root: Path,
    pool: ModelPool,
    *,
    wrap: Callable[..., Iterable[Any]] = lambda files, **_: files,
) -> Iterator[list[Measurement]]:
    """Measures file by file what is wanted and not stored, or stored with another signature or for another content of
    the file.

    Args:
        wanted: file, from the root -> the metrics to run on it, which share their encodings.
        stored: what is known.
        root: folder of the data.
        pool: loaded models to share.
        wrap: shows the progress over the files.

    Yields:
        The new measurements of each file, as soon as they are there.

    Raises:
        InputError: a file or metric cannot be used.
        ArtifactError: a model cannot be loaded.
    """
    for file in wrap(sorted(wanted), desc="measure", unit="file"):
        segments = read_judged_segments(root / file)
        checksum = sha256_file(root / file)[:16]
        scorers = {str(spec): spec.load(pool, segments.lang_pair) for spec in wanted[file]}
        missing = {
            name: scorer
            for name, scorer in scorers.items()
            if (name, file) not in stored
            or (stored[name, file].signature, stored[name, file].sha256) != (scorer.signature, checksum)
        }
        results = [system for [system] in score_together(list(missing.values()), segments)]
        human = segments.judgements["human"]
        measured = []
        for name, result in zip(missing, results, strict=True):
            values = {
                part: pearson(segments.take(scores), human)
                for part, scores in ({SCORE: result.segments} | result.parts).items()
            }
            known = {
                part: None if found.reason is not None else round(found.value, _DECIMALS)
                for part, found in values.items()
            }
            measured.append(Measurement(name, file, checksum, len(human), known, result.signature))
        yield measured
