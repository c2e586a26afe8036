"""Rows of scores: ``mtmetrics score`` writes one for each segment of each system, and the metric
``scores:FILE`` reads them, or the scores in a table of another tool."""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from mtmetrics.errors import InputError
from mtmetrics.io.columns import FIELDS
from mtmetrics.io.lines import shown_json
from mtmetrics.io.row_writer import Columns
from mtmetrics.io.tables import Row

# Names of columns.
_KIND, _SYSTEM, _SEGMENT, _UNUSUAL = "kind", "system", "segment", "unusual"
# Value of the column ``kind`` in rows about a segment.
_SEGMENT_KIND = "segment"


@dataclasses.dataclass(frozen=True)
class ScoreRow:
    """The scores of one segment of one system.

    The columns of a file are ``system``, ``segment``, one for each entry of `scores`, and
    ``unusual`` if the segments were checked. In JSON Lines each of these rows begins with
    ``"kind": "segment"``; rows of another kind are about whole systems.

    Attributes:
        system: name of the system; empty for a single system without a name.
        segment: number of the segment; None if the file does not number segments. Our files count
            from 1, those of other tools may count from 0.
        scores: column -> score; None for a missing score. For one metric the columns are ``score``
            and the names of the parts of the score. For several metrics they are ``METRIC`` and
            ``METRIC PART``.
        unusual: names of unusual traits of the segment, joined by ``+``, such as
            ``looping+length``; empty for none, None if the segment was not checked.
    """

    system: str
    segment: int | None
    scores: Mapping[str, float | None]
    unusual: str | None = None

    def to_dict(self, file_format: str) -> dict[str, object]:
        """Returns the row as a file holds it: column -> value.

        Args:
            file_format: ``tsv``, ``csv``, ``jsonl`` or ``parquet``.
        """
        row: dict[str, object] = {}
        if file_format == "jsonl":
            row[_KIND] = _SEGMENT_KIND
        row |= {_SYSTEM: self.system, _SEGMENT: self.segment, **self.scores}
        if self.unusual is not None:
            row[_UNUSUAL] = self.unusual
        return row

    @staticmethod
    def columns(
        file_format: str, systems: Iterable[str], score_names: Iterable[str], *, with_unusual: bool
    ) -> Columns:
        """Makes the columns of a file of such rows.

        Args:
            file_format: ``tsv``, ``csv``, ``jsonl`` or ``parquet``.
            systems: names of the systems.
            score_names: names of the columns of scores.
            with_unusual: whether rows have the column ``unusual``.

        Raises:
            InputError: the format cannot hold one of the names.
        """
        columns = Columns(file_format)
        # Samples of rows: `Columns` takes names and types from them, and checks the values.
        for system in systems:
            columns.add_row(Row("a system", {_SYSTEM: system, _SEGMENT: 1}))
        columns.add_floats(score_names)
        if with_unusual:
            columns.add_row(Row("a segment", {_UNUSUAL: ""}))
        return columns

    @classmethod
    def from_row(cls, row: Row, number_column: str | None = _SEGMENT) -> Self | None:
        """Reads a row of a file, ours or that of another tool.

        Besides the columns of a `ScoreRow`, every column with a number counts as a score. A column
        that is null or empty counts as a missing score. Columns with other values are left out.

        Args:
            row: the row.
            number_column: the column that numbers the segments, see `segment_column`; None if there
                is no such column.

        Returns:
            The scores, or None for a row with another ``kind`` than ``segment``: it is about a whole
            system.

        Raises:
            InputError: the row has no whole number in `number_column`.
        """
        if row.values.get(_KIND, _SEGMENT_KIND) != _SEGMENT_KIND:
            return None
        system_column = next(
            (name for name in row.values if name.lower() in FIELDS["system"]), None
        )
        segment = None
        if number_column is not None:
            number = row.values.get(number_column)
            segment = _whole_number(number)
            if segment is None:
                raise InputError(
                    f"{row.where}: the segment {shown_json(number)} is no whole number (column "
                    f"{number_column!r})"
                )
        other_columns = (_KIND, system_column, number_column, _UNUSUAL)
        scores = {}
        for name, value in row.values.items():
            is_missing = value is None or value == ""
            score = None if is_missing else _number(value)
            if name not in other_columns and (is_missing or score is not None):
                scores[name] = score
        system = None if system_column is None else row.values[system_column]
        unusual = row.values.get(_UNUSUAL)
        return cls(
            system="" if system is None else str(system),
            segment=segment,
            scores=scores,
            unusual=None if unusual is None else str(unusual),
        )


# Names that other tools give to the column that numbers the segments, in lower case and without
# punctuation. The index of a pandas table is called index, in Parquet __index_level_0__. In CSV its
# column has no name, and is called column1 when it is read.
_SEGMENT_NAMES = (
    "segmentid segmentnumber segmentindex segmentnr segid seg segnr segnum segidx segindex "
    "globalsegid sentenceid sentid sentence sent line linenumber lineno row rowid index "
    "indexlevel0 idx id sid item number nr no position column1"
)
_PUNCTUATION = re.compile(r"[\W_]+")


def segment_column(first_row: Mapping[str, object], score_column: str) -> str | None:
    """Finds the column that numbers the segments. Case and punctuation of names do not matter.

    Args:
        first_row: column -> value in the first row.
        score_column: the column of the scores, which is left aside.

    Returns:
        The column ``segment`` if the row has one, whatever its value: `ScoreRow.from_row` refuses a
        bad value. Otherwise the column with the most usual name that holds a whole number; None if
        there is no such column.
    """
    columns: dict[str, str] = {}
    for column in first_row:
        if column != score_column:
            columns.setdefault(_PUNCTUATION.sub("", column.lower()), column)
    if _SEGMENT in columns:
        return columns[_SEGMENT]
    for name in _SEGMENT_NAMES.split():
        if name in columns and _whole_number(first_row[columns[name]]) is not None:
            return columns[name]
    return None


def _whole_number(value: object) -> int | None:
    """Returns a value as a whole number; None if it is no such number."""
    number = _number(value)
    return int(number) if number is not None and number.is_integer() else None


def _number(value: Any) -> float | None:
    """Returns a number, or a text that holds one, as a float; None for any other value."""
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
