"""Rows of scores: ``mtmetrics score`` writes one for each segment of each system, and
``scores:FILE`` reads them."""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from mtmetrics.errors import InputError
from mtmetrics.io.columns import FIELDS
from mtmetrics.io.lines import shown_json
from mtmetrics.io.row_writer import Columns
from mtmetrics.io.tables import Row

# Names of the column that numbers the segments, without case and marks: ours, then those of others.
# An index of pandas is called index, indexlevel0 in Parquet, or stands in a first column without a
# name.
_SEGMENT_NAMES = (
    "segment segmentid segmentnumber segmentindex segmentnr segid seg segnr segnum segidx segindex "
    "globalsegid sentenceid sentid sentence sent line linenumber lineno row rowid index "
    "indexlevel0 idx id sid item number nr no position column1"
)
_MARKS = re.compile(r"[\W_]+")
_KIND, _SYSTEM, _SEGMENT, _UNUSUAL = "kind", "system", "segment", "unusual"


@dataclasses.dataclass(frozen=True)
class ScoreRow:
    """The scores of one segment of one system.

    In a file the fields stand in this order, each value in a column of its own. JSON Lines begin
    each of these rows with ``"kind": "segment"``; rows of another kind are about whole systems.

    Attributes:
        system: name of the system; ``""`` where there is one without a name.
        segment: number of the segment, from 1; None where the file does not say it.
        values: name of the column -> number, None where it was left out. Of one metric these are
            ``score`` and the parts of the score by their names; of several metrics the score by
            each, called as the metric, followed by its parts, ``METRIC PART``.
        unusual: what is unusual, names joined by ``+``, ``""`` for nothing; None where nobody
            looked.
    """

    system: str
    segment: int | None
    values: Mapping[str, float | None]
    unusual: str | None = None

    def fields(self, form: str) -> dict[str, object]:
        """Returns the row as it is written in a format."""
        row: dict[str, object] = {}
        if form == "jsonl":
            row[_KIND] = _SEGMENT
        row |= {_SYSTEM: self.system, _SEGMENT: self.segment, **self.values}
        if self.unusual is not None:
            row[_UNUSUAL] = self.unusual
        return row

    @staticmethod
    def columns(
        form: str, systems: Iterable[str], values: Iterable[str], *, unusual: bool
    ) -> Columns:
        """Makes the columns of a file of such rows.

        Args:
            form: the format.
            systems: their names.
            values: names of the columns of numbers.
            unusual: whether rows say what is unusual.

        Raises:
            InputError: the format cannot hold one of the names.
        """
        columns = Columns(form, [_KIND] if form == "jsonl" else [])
        for system in systems:
            columns.check({_SYSTEM: system, _SEGMENT: 1}, "a system")
        columns.add_numbers(values)
        if unusual:
            columns.check({_UNUSUAL: ""}, "a segment")
        return columns

    @classmethod
    def from_row(cls, row: Row, numbered_by: str | None = _SEGMENT) -> Self | None:
        """Reads a row of a file, ours or that of another tool. Columns of texts are left out.

        Args:
            row: the row.
            numbered_by: the column that numbers the segments, see `segment_column`; None: none
                does.

        Returns:
            The scores, or None for a row about a whole system.

        Raises:
            InputError: the row has no whole number in the column that numbers the segments.
        """
        if row.fields.get(_KIND, _SEGMENT) != _SEGMENT:
            return None
        system_column = next(
            (name for name in row.fields if name.lower() in FIELDS["system"]), None
        )
        segment = None
        if numbered_by is not None:
            number = row.fields.get(numbered_by)
            segment = _whole_number(number)
            if segment is None:
                raise InputError(
                    f"{row.where}: the segment {shown_json(number)} is no number (column "
                    f"{numbered_by!r})"
                )
        no_scores = (_KIND, system_column, numbered_by, _UNUSUAL)
        values = {
            name: _number(value)
            for name, value in row.fields.items()
            if name not in no_scores and _is_numeric(value)
        }
        system = None if system_column is None else row.fields[system_column]
        unusual = row.fields.get(_UNUSUAL)
        return cls(
            system="" if system is None else str(system),
            segment=segment,
            values=values,
            unusual=None if unusual is None else str(unusual),
        )


def segment_column(names: Mapping[str, object], but: str) -> str | None:
    """Finds the column that numbers the segments.

    Args:
        names: column -> its value in the first row.
        but: the column of the scores.

    Returns:
        The column ``segment``, else the first one with a usual name and a whole number; or None.
    """
    by_name = {_MARKS.sub("", name.lower()): name for name in reversed([*names]) if name != but}
    if _SEGMENT in by_name:
        return by_name[_SEGMENT]
    for name in _SEGMENT_NAMES.split():
        column = by_name.get(name)
        if column is not None and _whole_number(names[column]) is not None:
            return column
    return None


def _whole_number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _is_numeric(value: Any) -> bool:
    if value is None or value == "":
        return True
    if isinstance(value, bool):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _number(value: Any) -> float | None:
    return None if value is None or value == "" else float(value)
