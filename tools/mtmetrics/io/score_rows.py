"""Rows of scores: ``mtmetrics score`` writes one for each segment of each system, and the metric
``scores:FILE`` reads them, or the scores in a table of another tool.

The columns of our files are ``system``, ``segment`` (from 1), one for each score, and ``unusual`` if
the segments were checked. For one metric the columns of scores are ``score`` and the names of the
parts of the score. For several metrics they are ``METRIC`` and ``METRIC PART``. In JSON Lines each of
these rows begins with ``"kind": "segment"``; rows of another kind are about whole systems."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mtmetrics.errors import InputError
from mtmetrics.io.columns import FIELDS
from mtmetrics.io.lines import shown_json
from mtmetrics.io.row_writer import Columns
from mtmetrics.io.tables import Row

# Names of columns.
_KIND, _SYSTEM, _SEGMENT, _UNUSUAL = "kind", "system", "segment", "unusual"
# Value of the column ``kind`` in rows about a segment.
_SEGMENT_KIND = "segment"


def score_columns(
    file_format: str, systems: Iterable[str], score_names: Iterable[str], *, with_unusual: bool
) -> Columns:
    """Makes all columns of a file of scores. JSON Lines need no columns, so ``kind`` is none.

    Args:
        file_format: ``tsv``, ``csv``, ``jsonl`` or ``parquet``.
        systems: names of the systems.
        score_names: names of the columns of scores.
        with_unusual: whether rows have the column ``unusual``.

    Raises:
        InputError: the format cannot hold one of the names.
    """
    columns = Columns(file_format)
    # Samples of rows: `Columns` learns names and types from them, and refuses a system whose name the
    # format cannot hold.
    for system in systems:
        columns.add_row(Row("a system", {_SYSTEM: system, _SEGMENT: 1}))
    columns.add_floats(score_names)
    if with_unusual:
        columns.add_row(Row("a segment", {_UNUSUAL: ""}))
    return columns


def score_row(
    file_format: str,
    system: str,
    segment: int,
    scores: Mapping[str, float | None],
    unusual: str | None,
) -> dict[str, object]:
    """Returns the row of a segment, column -> value.

    Args:
        file_format: ``tsv``, ``csv``, ``jsonl`` or ``parquet``.
        system: name of the system; empty for a single system without a name.
        segment: number of the segment, from 1.
        scores: column -> score; None for a missing score.
        unusual: names of unusual traits of the segment, joined by ``+``, such as
            ``looping+length``; empty for none, None if the segment was not checked.
    """
    row: dict[str, object] = {_KIND: _SEGMENT_KIND} if file_format == "jsonl" else {}
    row |= {_SYSTEM: system, _SEGMENT: segment, **scores}
    if unusual is not None:
        row[_UNUSUAL] = unusual
    return row


def system_and_segment(row: Row, number_column: str | None) -> tuple[str, int | None]:
    """Reads which segment a row of a file is about; the file is ours or that of another tool.

    Args:
        row: the row.
        number_column: the column that numbers the segments, see `segment_column`; None if there is
            no such column.

    Returns:
        Name of the system, empty if the row has none; and number of the segment, None without
        `number_column`. Our files count from 1, those of other tools may count from 0.

    Raises:
        InputError: the row has no whole number in `number_column`.
    """
    system_column = next((name for name in row.values if name.lower() in FIELDS["system"]), None)
    system = None if system_column is None else row.values[system_column]
    segment = None
    if number_column is not None:
        number = row.values.get(number_column)
        segment = _whole_number(number)
        if segment is None:
            raise InputError(
                f"{row.where}: the segment {shown_json(number)} is no whole number (column "
                f"{number_column!r})"
            )
    return "" if system is None else str(system), segment


# Names that other tools give to the column that numbers the segments, in lower case and without
# punctuation, the preferred ones first. The index of a pandas table is called index, in Parquet
# __index_level_0__. In CSV its column has no name, and is called column1 when it is read.
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
        The column ``segment`` if the row has one, whatever its value: `system_and_segment` refuses
        a bad value. Otherwise the column that holds a whole number, and whose name comes first in
        `_SEGMENT_NAMES`; None if there is no such column.
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


def _whole_number(value: Any) -> int | None:
    """Returns a number, or a text that holds one, as a whole number; None if it is none."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() else None
