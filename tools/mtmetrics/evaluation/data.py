"""Reads segments with human judgements."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.inputs import language_pair
from mtmetrics.textio import iter_jsonl

_LARGEST = np.finfo(np.float64).max.item()


@dataclasses.dataclass(frozen=True)
class JudgedSegments:
    """Segments of one language pair and what people thought of them.

    Attributes:
        file: where they were read from, as the user wrote it.
        lang_pair: such as ``"de-en"``.
        sources: n source segments.
        predictions: their n translations.
        references: n reference translations; None where a row has none.
        systems: n names of the systems that translated; None where a row has none.
        human: (n,) float64 human judgements, higher is better, all finite.
    """

    file: str
    lang_pair: str
    sources: list[str]
    predictions: list[str]
    references: list[str | None]
    systems: list[str | None]
    human: np.ndarray

    def __len__(self) -> int:
        return len(self.sources)


def read_judged_segments(path: str | Path, *, prediction_field: str = "translation") -> JudgedSegments:
    """Reads a JSON Lines file, plain or ``.gz``, with one judged segment per line.

    Every row has the fields ``lp`` (the same in all rows), ``source``, `prediction_field` and ``human`` (a finite number); ``reference``
    and ``system`` may be missing or null, other fields are not read.

    Args:
        path: the file, or ``-`` for standard input.
        prediction_field: the field that holds the translation.

    Raises:
        InputError: the file cannot be read or holds no row, or a field is missing or cannot be used; names file, line and field.
    """
    lang_pair: str | None = None
    sources: list[str] = []
    predictions: list[str] = []
    references: list[str | None] = []
    systems: list[str | None] = []
    human: list[float] = []
    for number, row in iter_jsonl(path):
        where = f"{path}, line {number}"
        pair = _text(row, "lp", where)
        if lang_pair is None:
            lang_pair = _checked_pair(pair, where)
        elif pair != lang_pair:
            raise InputError(
                f"{where}, field 'lp': {pair!r}, but the lines before have {lang_pair!r}; give each language pair its own file"
            )
        sources.append(_text(row, "source", where))
        predictions.append(_text(row, prediction_field, where))
        references.append(_optional_text(row, "reference", where))
        systems.append(_optional_text(row, "system", where))
        human.append(_number(row, "human", where))
    if lang_pair is None:
        raise InputError(f"{path}: holds no row, there is nothing to judge")
    return JudgedSegments(str(path), lang_pair, sources, predictions, references, systems, np.array(human, dtype=np.float64))


def _checked_pair(pair: str, where: str) -> str:
    try:
        language_pair(pair)
    except InputError as error:
        raise InputError(f"{where}, field 'lp': {error}") from None
    return pair


def _value(row: dict[str, Any], field: str, where: str) -> Any:
    if field not in row:
        raise InputError(f"{where}: no field {field!r}; the row has: {', '.join(map(repr, row)) or 'no field at all'}")
    return row[field]


def _text(row: dict[str, Any], field: str, where: str) -> str:
    value = _value(row, field, where)
    if not isinstance(value, str):
        raise InputError(f"{where}, field {field!r}: a string is needed, got {_shown(value)}")
    return value


def _optional_text(row: dict[str, Any], field: str, where: str) -> str | None:
    return None if row.get(field) is None else _text(row, field, where)


def _number(row: dict[str, Any], field: str, where: str) -> float:
    value = _value(row, field, where)
    # Python's JSON reader lets NaN, Infinity and whole numbers through that no float holds; JSON's true would pass for 1.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise InputError(f"{where}, field {field!r}: a finite number is needed, got {_shown(value)}; leave out segments without judgement")
    return float(value)


def _shown(value: Any) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
