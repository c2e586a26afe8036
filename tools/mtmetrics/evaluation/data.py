"""Reads what people thought of translations, in whichever of the known layouts it is stored."""

from collections.abc import Iterator
from pathlib import Path

from mtmetrics.errors import InputError
from mtmetrics.evaluation.judged import JudgedSegments
from mtmetrics.evaluation.readers import fields
from mtmetrics.evaluation.readers.rows import Row, collect
from mtmetrics.textio import iter_jsonl


def read_judged_segments(path: str | Path, *, prediction_field: str = "translation") -> JudgedSegments:
    """Reads a JSON Lines file, plain or ``.gz``, with one judged segment per line, all of one language pair.

    A row has the fields ``lp``, ``source``, `prediction_field` and ``human`` (a finite number, or null where there is no judgement);
    ``reference``, ``system``, ``sid`` and ``da_mean`` may be missing or null. Other names of these fields are in `readers.fields.NAMES`.

    Args:
        path: the file, or ``-`` for standard input.
        prediction_field: the field that holds the translation.

    Raises:
        InputError: the file cannot be read, holds no row or several language pairs, or a field is missing or cannot be used; names file,
            line and field.
    """
    [segments] = collect(str(path), _of_one_pair(_placed(path)), prediction_field=prediction_field)
    return segments


def _placed(path: str | Path) -> Iterator[tuple[str, Row]]:
    return ((f"{path}, line {number}", row) for number, row in iter_jsonl(path))


def _of_one_pair(rows: Iterator[tuple[str, Row]]) -> Iterator[tuple[str, Row]]:
    first = None
    for where, row in rows:
        name = fields.field_name(row, "lp")
        pair = first if name is None else row[name]
        first = first or pair
        if pair != first:
            raise InputError(
                f"{where}, field {name!r}: {pair!r}, but the lines before have {first!r}; give each language pair its own file"
            )
        yield where, row
