"""Scores that exist already, of another tool or of people: compared and tested like those of a
metric."""

import dataclasses
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from mtmetrics.artifacts.presets import Preset
from mtmetrics.errors import InputError
from mtmetrics.io.atomic import sha256_file
from mtmetrics.io.cells import find_dialect, iter_cells
from mtmetrics.io.columns import names_usual_columns
from mtmetrics.io.lines import iter_lines, shown
from mtmetrics.io.score_rows import ScoreRow, segment_column
from mtmetrics.io.tables import Row, header_names, jsonl_rows, named_rows, open_table
from mtmetrics.io.visible_text import is_blank
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers import settings
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.foreign import ForeignMetric
from mtmetrics.scorers.results import MetricResult, PartScores
from mtmetrics.scorers.settings import loading_option, option
from mtmetrics.scorers.side import Options, Side

# What a column of scores is called where the user does not say; COMET writes the second one.
_COLUMNS = ("score", "COMET")
# System, number of the segment (from 1; None where the order says it), the score as it is stored,
# and where it stands.
_Score = tuple[str, int | None, Any, str]


class StoredScores(ForeignMetric):
    """Numbers that a file holds, one for each segment of each system, in the order of the segments.

    The texts are not looked at, except that a segment with a blank side is counted; its score stays
    what it is.

    A file holds one number a line; or a system and a number, separated by a tab (``.seg.score`` of
    mt-metrics-eval); or what ``sacrebleu --sentence-level`` prints; or rows with names (a table
    with a header, JSON Lines, Parquet), which are read as `mtmetrics.io.score_rows.ScoreRow`; or
    the JSON of ``comet-score --to_json`` or of ``mtmetrics score``.

    Args:
        scores: system -> its scores; a single system may have the name ``""``.
        name: of the file, for messages and the signature.
        fingerprint: 8 hexadecimal digits that pin its content.
        **options: of `StoredScores.Settings`; and `against`, the side whose texts come along.
    """

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of stored scores."""

        key: str | None = loading_option(
            "the column or key of the score (default: score, or COMET)",
            usage="NAME",
        )
        lower_is_better: bool = option(
            False, "turn the scores round: lower ones are better", signed="turned"
        )

    settings: Settings

    metric = "scores"
    sides = (Side.SOURCE, Side.REFERENCE)
    usual = Side.SOURCE
    usual_preset: ClassVar = "FILE"

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
        self.side = Side(self.settings.against or Side.SOURCE)
        self.lower_is_better = self.settings.lower_is_better

    @classmethod
    def needs_preset(cls) -> bool:
        """True: the name of the file stands where other metrics have a preset."""
        return True

    @classmethod
    def read_preset(
        cls, preset: str | None, options: Options, *, local_files_only: bool = False
    ) -> Preset:
        """Nothing but the name of the file, which stands where other metrics have a preset:
        ``scores:FILE``."""
        return Preset(str(preset), cls.metric, Path(), {})

    @classmethod
    def from_preset(cls, preset: Preset, settings: Settings, models: ModelPool) -> Self:
        """An `InputError` where there is no such file, or it holds anything else."""
        path = Path(preset.name)
        if preset.name == cls.usual_preset or not path.is_file():
            raise InputError(
                f"metric scores: {path}: no such file; write scores:FILE", option="metric"
            )
        scores, fingerprint = read_scores(path, settings.key), sha256_file(path)[:8]
        side = cls.choose_allowed_side(preset, settings.against)
        settings = dataclasses.replace(settings, against=side)
        return cls(scores, path.name, fingerprint, settings=settings)

    @property
    def signature(self) -> str:
        metric, _, rest = super().signature.partition("|")
        return f"{metric}|file:{self.name}#{self.fingerprint}|{rest}"

    def score_batches(self, batches: Iterable[Batch]) -> Iterator[list[MetricResult]]:
        """Takes the scores from the file, in the order of the segments; an `InputError` where there
        are more segments than scores, or fewer."""
        first = 0
        columns: list[np.ndarray] = []
        for batch in batches:
            columns = columns or self._columns(list(batch.systems))
            end = first + len(batch)
            if end > len(columns[0]):
                raise InputError(
                    f"{self.name}: holds {len(columns[0])} scores of a system, there are more "
                    "segments"
                )
            scores = [self._turned(values[first:end]) for values in columns]
            first = end
            yield self._results(self._plain(batch), None, scores)
        if columns and first < len(columns[0]):
            raise InputError(
                f"{self.name}: holds {len(columns[0])} scores of a system, for only {first} "
                "segments"
            )

    def _plain(self, batch: Batch) -> Batch:
        """The texts that outputs of another length are told by: of several references the first
        that is not blank."""
        batch = self._with_needed_columns(batch)
        if batch.references is not None:
            references = [
                texts if isinstance(texts, str) else _first_filled(texts)
                for texts in batch.references
            ]
            batch = dataclasses.replace(batch, references=references)
        return batch.without_invisible()

    def _columns(self, names: Sequence[str]) -> list[np.ndarray]:
        """The scores of each system that is scored, by its name where it has one."""
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
        return None, {}

    def compute(self, batch: Batch) -> list[PartScores]:
        raise NotImplementedError  # `score_batches` looks at no texts


def _first_filled(texts: Iterable[str]) -> str:
    return next(itertools.filterfalse(is_blank, texts), "")


def read_scores(
    path: Path, key: str | None = None, *, in_order: bool = False
) -> dict[str, list[float]]:
    """The finite numbers of each system in the order of its segments; all systems have equally
    many.

    Segments are numbered from 1, or all from 0.

    Args:
        path: see `StoredScores`.
        key: the column or key of the score.
        in_order: whether rows with names stand in the order of the segments where they have no
            ``segment``; else rows that hold more than a score need the number of their segment.

    Raises:
        InputError: it holds anything else; the message names the line.
    """
    rows = list(_rows(path, key, in_order))
    if not rows:
        raise InputError(f"{path}: empty; there are no scores")
    scores: dict[str, dict[int, float]] = {}
    for system, number, value, place in rows:
        of_system = scores.setdefault(system, {})
        segment = len(of_system) + 1 if number is None else number
        if segment in of_system:
            raise InputError(f"{place}: segment {segment} of {system or 'the system'} comes twice")
        try:
            of_system[segment] = float(value)
        except (TypeError, ValueError):
            of_system[segment] = math.nan
        if isinstance(value, bool) or not math.isfinite(of_system[segment]):
            raise InputError(f"{place}: a finite number is needed, got {shown(value)}")
    longest = max(map(len, scores.values()))
    first = 0 if all(min(of_system) == 0 for of_system in scores.values()) else 1
    for system, of_system in scores.items():
        if set(of_system) != set(range(first, first + longest)):
            what = (
                f"{len(of_system)} scores of {system or 'a system'}, up to segment {max(of_system)}"
            )
            from_zero = (
                "; its numbers begin with 0, those of others with 1"
                if first > min(of_system) == 0
                else ""
            )
            needed = f"where {longest} are needed, one for each segment"
            raise InputError(
                f"{path}: {what}, {needed}{from_zero}; segments are numbered from 1, or all from 0"
            )
    return {
        system: [of_system[number] for number in sorted(of_system)]
        for system, of_system in scores.items()
    }


def _rows(path: Path, column: str | None, in_order: bool) -> Iterator[_Score]:
    name = path.name.removesuffix(".gz")
    if name.endswith(".json"):
        yield from _json_rows(path, column)
    elif name.endswith(".jsonl"):
        yield from _named_rows(jsonl_rows(path), column, in_order)
    elif name.endswith(".parquet"):
        table = open_table(path)
        yield from _named_rows(table.rows() if table else iter(()), column, in_order)
    else:
        dialect, lines = find_dialect(path, iter_lines(path))
        cells = (
            (number, [cell.strip() for cell in row])
            for number, row in iter_cells(path, lines, dialect)
        )
        begin = list(itertools.islice(cells, 1))
        header = begin[0][1] if begin else []
        if _column(header, column) is None and not names_usual_columns(header):
            yield from _bare_rows(path, itertools.chain(begin, cells))
        else:
            yield from _named_rows(
                named_rows(path, header_names(path, header), cells), column, in_order
            )


def _named_rows(rows: Iterator[Row], column: str | None, in_order: bool) -> Iterator[_Score]:
    """Of rows with names, by the number of their segment; those about whole systems are left
    out."""
    numbered_by: str | None = None
    is_first = True
    for row in rows:
        if row.fields.get("kind", "segment") != "segment":
            continue
        name = _required_column(row, column)
        if is_first:
            numbered_by = segment_column(row.fields, name)
            if in_order and numbered_by != "segment":
                numbered_by = None
            elif numbered_by is None and row.fields.keys() - {name, "kind"}:
                columns = ", ".join(map(repr, row.fields))
                advice = "call it segment (from 1), or pass the scores alone, one a line"
                what = f"no column is known to number the segments; there are: {columns}"
                raise InputError(f"{row.where}: {what}; {advice}")
            is_first = False
        scores = ScoreRow.from_row(row, numbered_by)
        if scores is not None:
            yield (
                scores.system,
                scores.segment,
                scores.values.get(name, row.fields[name]),
                row.where,
            )


def _bare_rows(path: Path, lines: Iterable[tuple[int, list[str]]]) -> Iterator[_Score]:
    """Of numbers, or systems and numbers."""
    for number, cells in lines:
        if len(cells) > 2 or not any(cells):
            needed = (
                "one number, or system TAB number, is needed on each line, or a header that "
                "names the score"
            )
            raise InputError(f"{path}, line {number}: {needed}")
        score = cells[-1].rpartition(" = ")[2]  # behind sacrebleu's signature
        yield "".join(cells[:-1]), None, score, f"{path}, line {number}"


def _json_rows(path: Path, column: str | None) -> Iterator[_Score]:
    """Of ``comet-score --to_json``, system -> a row for each segment; or of ``mtmetrics score``."""
    try:
        document = json.loads("\n".join(iter_lines(path)))
    except ValueError as error:
        raise InputError(f"{path}: no JSON ({error})") from error
    if isinstance(document, dict) and ("scores" in document or "systems" in document):
        for system in document.get("systems", [document]):
            for number, value in enumerate(system.get("scores") or (), 1):
                yield str(system.get("name", "")), number, value, f"{path}, score {number}"
        return
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
    for system, rows in document.items():
        for number, row in enumerate(rows, 1):
            named_row = Row(
                f"{path}, {system}, segment {number}",
                row if isinstance(row, dict) else {"score": row},
            )
            yield (
                Path(system).stem,
                number,
                named_row.fields[_required_column(named_row, column)],
                named_row.where,
            )


def _column(names: Iterable[str], column: str | None) -> str | None:
    """The name of the column of the score, among those of a file; None where there is none."""
    wanted = _COLUMNS if column is None else (column,)
    return next((name for name in wanted if name in list(names)), None)


def _required_column(row: Row, column: str | None) -> str:
    """The column of the score in a row; refused where the row has none."""
    name = _column(row.fields, column)
    if name is None:
        wanted = " or ".join(_COLUMNS) if column is None else column
        columns = ", ".join(map(str, row.fields)) or "none"
        raise InputError(
            f"{row.where}: no {wanted}; there are: {columns}; pass key=NAME", mentions=["key=NAME"]
        )
    return name
