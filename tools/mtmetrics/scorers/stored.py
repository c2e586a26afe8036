"""Scores from a file, made by another tool or by people. They are compared and tested like the scores
of a metric."""

import dataclasses
import itertools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.errors import InputError
from mtmetrics.io.cells import open_cells
from mtmetrics.io.checksums import sha256_file
from mtmetrics.io.columns import names_usual_columns
from mtmetrics.io.file_kinds import lowercase_unpacked_name
from mtmetrics.io.lines import iter_lines, shown_json
from mtmetrics.io.score_rows import segment_column, system_and_segment
from mtmetrics.io.tables import Row, header_names, jsonl_rows, named_rows, open_table
from mtmetrics.io.visible_text import is_blank
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.foreign import ForeignMetric
from mtmetrics.scorers.results import MetricResult, PartScores
from mtmetrics.scorers.settings import Settings as BaseSettings
from mtmetrics.scorers.settings import loading_option, option
from mtmetrics.scorers.side import Options, Side, resolve_side

# Names of the column of scores, unless the user passes one. COMET writes the second.
_DEFAULT_COLUMNS = ("score", "COMET")


class _StoredScore(NamedTuple):
    """One score of a file.

    Attributes:
        system: name of the system; ``""`` if the file names none.
        segment: number of the segment; None if the order of the scores says it.
        value: the score as the file holds it.
        location: file and line, for messages.
    """

    system: str
    segment: int | None
    value: Any
    location: str


class StoredScores(ForeignMetric):
    """Numbers in a file, one for each segment of each system.

    The texts change no score. They are only read for the report, which counts blank segments and
    output that is not a translation.

    These files can be read: one number per line; a system and a number per line, separated by a tab
    (``.seg.score`` of mt-metrics-eval); the output of ``sacrebleu --sentence-level``; rows with
    named fields (a table with a header, JSON Lines, Parquet), which are read as
    `mtmetrics.io.score_rows` says; the JSON of ``comet-score --to_json`` or of
    ``mtmetrics score``.

    Args:
        scores: system -> its scores in the order of the segments; a single system may have the name
            ``""``.
        name: name of the file, for messages and the signature.
        fingerprint: 8 hexadecimal digits that pin the content of the file.
        **options: fields of `StoredScores.Settings`; and `against`, the side whose texts are read
            for the report.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(BaseSettings):
        """The options of stored scores."""

        key: str | None = loading_option(
            "the column or key of the score (default: score, or COMET)",
            usage="NAME",
        )
        lower_is_better: bool = option(
            False, "negate the scores, because lower ones are better", signed="turned"
        )

    settings: Settings

    metric = "scores"
    sides = (Side.SOURCE, Side.REFERENCE)
    usual = Side.SOURCE
    usual_preset: ClassVar = "FILE"  # for help texts: the user writes scores:FILE

    def __init__(
        self,
        scores: Mapping[str, Sequence[float]],
        name: str,
        fingerprint: str,
        *,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(settings=settings, **options)
        self.scores = {
            system: np.array(values, dtype=np.float64) for system, values in scores.items()
        }
        self.name, self.fingerprint = name, fingerprint
        self.side = resolve_side(
            self.side_choice(), self.settings.against, preset_side=None, given_columns=None
        )
        self.lower_is_better = self.settings.lower_is_better

    @classmethod
    def needs_preset(cls) -> bool:
        """True: the name of the file takes the place of the name of a preset."""
        return True

    @classmethod
    def read_preset(
        cls, preset: str | None, options: Options, *, local_files_only: bool = False
    ) -> Preset:
        """Returns a preset that holds only the name of the file, which takes the place of the name of
        a preset: ``scores:FILE``."""
        return Preset(str(preset), cls.metric, Path(), {})

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """Reads the file.

        Raises:
            InputError: there is no such file, or it has another format than those of the class.
        """
        path = Path(preset.name)
        # The placeholder stands for a file that the user did not name.
        if preset.name == cls.usual_preset or not path.is_file():
            raise InputError(
                f"metric scores: {path}: no such file; write scores:FILE", option="metric"
            )
        scores, fingerprint = read_scores(path, settings.key), sha256_file(path)[:8]
        return cls(scores, path.name, fingerprint, settings=settings)

    @property
    def signature(self) -> str:
        metric, _, rest = super().signature.partition("|")
        return f"{metric}|file:{self.name}#{self.fingerprint}|{rest}"

    def score_batches(self, batches: Iterable[Batch]) -> Iterator[list[MetricResult]]:
        """Takes the scores from the file, in the order of the segments.

        Raises:
            InputError: there are more segments than scores, or fewer.
        """
        first = 0
        scores_of_systems: list[np.ndarray] = []
        for batch in batches:
            scores_of_systems = scores_of_systems or self._scores_of(list(batch.systems))
            count = len(scores_of_systems[0])
            end = first + len(batch)
            if end > count:
                raise InputError(
                    f"{self.name}: holds {count} scores of a system, there are more segments"
                )
            batch_scores = [self._turned(scores[first:end]) for scores in scores_of_systems]
            first = end
            yield self._results(self._report_texts(batch), None, batch_scores)
        if scores_of_systems and first < len(scores_of_systems[0]):
            raise InputError(
                f"{self.name}: holds {len(scores_of_systems[0])} scores of a system, for only "
                f"{first} segments"
            )

    def _report_texts(self, batch: Batch) -> Batch:
        """Returns the texts for the report: without invisible characters, and with one reference
        per segment, the first that is not blank."""
        batch = self._with_needed_columns(batch)
        if batch.references is not None:
            references = [
                texts if isinstance(texts, str) else _first_filled(texts)
                for texts in batch.references
            ]
            batch = dataclasses.replace(batch, references=references)
        return batch.without_invisible()

    def _scores_of(self, names: Sequence[str]) -> list[np.ndarray]:
        """Returns the stored scores of the systems with these names. A single system gets the
        scores of a single stored one, whatever its name."""
        if len(self.scores) == 1 and len(names) == 1:
            return list(self.scores.values())
        missing = [name for name in names if name not in self.scores]
        if missing:
            stored_names = ", ".join(name or "one system without a name" for name in self.scores)
            problem = f"no scores of {missing[0]!r}"
            if missing == [""]:
                problem = "several systems, whose names are not known here"
            raise InputError(f"{self.name}: {problem}; it holds: {stored_names}")
        return [self.scores[name] for name in names]

    def floor_with_parts(self) -> tuple[float | None, dict[str, float]]:
        return None, {}  # segments with a blank text keep the score of the file

    def compute(self, batch: Batch) -> list[PartScores]:
        raise NotImplementedError  # `score_batches` takes the scores from the file


def _first_filled(texts: Iterable[str]) -> str:
    return next(itertools.filterfalse(is_blank, texts), "")


def read_scores(
    path: Path, key: str | None = None, *, in_order: bool = False
) -> dict[str, list[float]]:
    """Reads the scores of each system, in the order of its segments.

    If the file numbers the segments, it begins with 1 for all systems, or with 0 for all.

    Args:
        path: a file in one of the formats of `StoredScores`.
        key: the column or key of the score; None for a default one. Formats in which the score has
            no name, such as the JSON of ``mtmetrics score``, do not need it and ignore it.
        in_order: whether rows without a field ``segment`` stand in the order of the segments.
            Otherwise such rows may hold only a score: with more fields they need a number of the
            segment.

    Returns:
        System -> finite numbers, equally many for every system.

    Raises:
        InputError: the file has another format, a score is not a finite number, or a system lacks
            a score or has two for a segment; the message names the line or the system.
    """
    scores: dict[str, dict[int, float]] = {}
    for stored in _read_file(path, key, in_order):
        system_scores = scores.setdefault(stored.system, {})
        segment = len(system_scores) + 1 if stored.segment is None else stored.segment
        if segment in system_scores:
            system = stored.system or "the system"
            raise InputError(f"{stored.location}: segment {segment} of {system} comes twice")
        system_scores[segment] = _finite_number(stored)
    if not scores:
        raise InputError(f"{path}: empty; there are no scores")
    _refuse_gaps(path, scores)
    return {
        system: [system_scores[segment] for segment in sorted(system_scores)]
        for system, system_scores in scores.items()
    }


def _finite_number(stored: _StoredScore) -> float:
    try:
        number = float(stored.value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(stored.value, bool) or not math.isfinite(number):
        raise InputError(
            f"{stored.location}: a finite number is needed, got {shown_json(stored.value)}"
        )
    return number


def _refuse_gaps(path: Path, scores: Mapping[str, Mapping[int, float]]) -> None:
    """Raises an `InputError` if some system has no score for some segment."""
    count = max(map(len, scores.values()))
    first = 0 if all(min(system_scores) == 0 for system_scores in scores.values()) else 1
    for system, system_scores in scores.items():
        if set(system_scores) == set(range(first, first + count)):
            continue
        problem = (
            f"{len(system_scores)} scores of {system or 'a system'}, up to segment "
            f"{max(system_scores)}, where {count} are needed, one for each segment"
        )
        if first == 1 and min(system_scores) == 0:
            problem += "; its numbers begin with 0, those of others with 1"
        raise InputError(f"{path}: {problem}; segments are numbered from 1, or all from 0")


def _read_file(path: Path, key: str | None, in_order: bool) -> Iterator[_StoredScore]:
    """Reads a file by the ending of its name. Lines of a text file with a header have named fields;
    without a header they are bare scores."""
    name = lowercase_unpacked_name(path)
    if name.endswith(".json"):
        yield from _read_json(path, key)
    elif name.endswith(".jsonl"):
        yield from _read_rows(jsonl_rows(path), key, in_order)
    elif name.endswith(".parquet"):
        table = open_table(path)
        yield from _read_rows(table.rows() if table else iter(()), key, in_order)
    else:
        _, rows = open_cells(path, iter_lines(path))
        cells = ((number, [cell.strip() for cell in row]) for number, row in rows)
        first_line = list(itertools.islice(cells, 1))
        header = first_line[0][1] if first_line else []
        if _find_score_column(header, key) is None and not names_usual_columns(header):
            yield from _read_bare_lines(path, itertools.chain(first_line, cells))
        else:
            segment_rows = named_rows(path, header_names(path, header), cells)
            yield from _read_rows(segment_rows, key, in_order)


def _read_rows(rows: Iterable[Row], key: str | None, in_order: bool) -> Iterator[_StoredScore]:
    """Reads rows with named fields. Leaves out rows about whole systems, which have another
    ``kind`` than ``segment``."""
    segment_rows = (row for row in rows if row.values.get("kind", "segment") == "segment")
    first_row = next(segment_rows, None)
    if first_row is None:
        return
    number_column = _number_column(first_row, key, in_order)
    for row in itertools.chain([first_row], segment_rows):
        score_column = _required_score_column(row, key)
        system, segment = system_and_segment(row, number_column)
        yield _StoredScore(system, segment, row.values[score_column], row.where)


def _number_column(row: Row, key: str | None, in_order: bool) -> str | None:
    """Returns the column that numbers the segments; None if the rows stand in their order.

    Raises:
        InputError: the rows need such a column and have none, see `read_scores`.
    """
    score_column = _required_score_column(row, key)
    column = segment_column(row.values, score_column)
    if in_order:
        return column if column == "segment" else None
    if column is None and row.values.keys() - {score_column, "kind"}:
        columns = ", ".join(map(repr, row.values))
        raise InputError(
            f"{row.where}: no column is known to number the segments; there are: {columns}; call it "
            "segment (from 1), or pass the scores alone, one a line"
        )
    return column


def _read_bare_lines(path: Path, lines: Iterable[tuple[int, list[str]]]) -> Iterator[_StoredScore]:
    """Reads lines with a number, or with a system and a number."""
    for number, cells in lines:
        if len(cells) > 2 or not any(cells):
            needed = (
                "one number, or system TAB number, is needed on each line, or a header that "
                "names the score"
            )
            raise InputError(f"{path}, line {number}: {needed}")
        # sacrebleu writes its signature before the score, and details of BLEU behind it.
        before, _, after = cells[-1].partition(" = ")
        score = after.split(" ")[0] or before
        yield _StoredScore("".join(cells[:-1]), None, score, f"{path}, line {number}")


def _read_json(path: Path, key: str | None) -> Iterator[_StoredScore]:
    """Reads the JSON of ``mtmetrics score``, or of ``comet-score --to_json``: system -> a row for
    each segment."""
    try:
        document = json.loads("\n".join(iter_lines(path)))
    except ValueError as error:
        raise InputError(f"{path}: no JSON ({error})") from error
    if _is_written_by_score(document):
        for system in document.get("systems", [document]):
            name = str(system.get("name", ""))
            for number, value in enumerate(system.get("scores") or (), 1):
                yield _StoredScore(name, number, value, f"{path}, score {number}")
        return
    # sacrebleu writes an object with name and signature for one system, a list for several.
    first = document[0] if isinstance(document, list) and document else document
    if isinstance(first, dict) and (
        {"name", "signature"} <= first.keys() or isinstance(document, list)
    ):
        advice = (
            "those of segments come from sacrebleu --sentence-level --score-only, one system at "
            "a time"
        )
        raise InputError(f"{path}: sacrebleu's scores of whole systems; {advice}")
    if not isinstance(document, dict) or not all(
        isinstance(rows, list) for rows in document.values()
    ):
        needed = (
            "scores of segments are needed, as comet-score --to_json or mtmetrics score "
            "--format json write them"
        )
        raise InputError(f"{path}: {needed}")
    for system_file, values in document.items():
        system = Path(system_file).stem  # COMET names a system by the file of its translations
        for number, value in enumerate(values, 1):
            fields = value if isinstance(value, dict) else {"score": value}
            row = Row(f"{path}, {system_file}, segment {number}", fields)
            score = fields[_required_score_column(row, key)]
            yield _StoredScore(system, number, score, row.where)


def _is_written_by_score(document: Any) -> bool:
    """Whether a document of JSON has the form of ``mtmetrics score --format json``, for one system
    or for several."""
    if not isinstance(document, dict) or not {"scores", "systems"} & document.keys():
        return False
    systems = document.get("systems", [document])
    return isinstance(systems, list) and all(
        isinstance(system, dict) and isinstance(system.get("scores") or [], list)
        for system in systems
    )


def _find_score_column(names: Collection[str], key: str | None) -> str | None:
    """Returns the column of the score, one of the names; None if there is none."""
    wanted = _DEFAULT_COLUMNS if key is None else (key,)
    return next((name for name in wanted if name in names), None)


def _required_score_column(row: Row, key: str | None) -> str:
    """Returns the column of the score. Raises an `InputError` if the row has none."""
    name = _find_score_column(row.values, key)
    if name is None:
        wanted = " or ".join(_DEFAULT_COLUMNS) if key is None else key
        columns = ", ".join(map(str, row.values)) or "none"
        raise InputError(
            f"{row.where}: no {wanted}; there are: {columns}; pass key=NAME", mentions=["key=NAME"]
        )
    return name
