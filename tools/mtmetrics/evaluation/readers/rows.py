"""Collects judged rows, however they were stored, into `JudgedSegments`."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.judged import JudgedSegments
from mtmetrics.evaluation.readers import fields
from mtmetrics.inputs import language_pair

Row = Mapping[str, Any]


def collect(
    file: str, rows: Iterable[tuple[str, Row]], *, prediction_field: str = "translation", lang_pair: str | None = None
) -> list[JudgedSegments]:
    """Groups rows by language pair, in order of first appearance.

    Args:
        file: where they come from, as the user wrote it.
        rows: place, for messages, and row; the names of its fields are those of `fields.NAMES`. A row has a source, a
            translation and a judgement, which may be None; reference, system, item and raw judgement may be missing or
            None.
        prediction_field: the field that holds the translation.
        lang_pair: the pair of rows that do not name one; other pairs are left out, so that nothing may be left.

    Raises:
        InputError: there is no row, or a field is missing or cannot be used; names place and field.
    """
    columns: dict[str, _Columns] = {}
    for where, row in rows:
        name = fields.field_name(row, "lp")
        if name is None and lang_pair is None:
            raise fields.missing(row, fields.NAMES["lp"], where)
        pair = lang_pair if name is None else fields.text(row, name, where)
        if pair not in columns:
            columns[checked_pair(pair, where)] = _Columns(prediction_field)
        if lang_pair in (None, pair):
            columns[pair].add(row, where)
    if not columns:
        raise InputError(f"{file}: holds no row, there is nothing to judge")
    return [column.segments(file, pair) for pair, column in columns.items() if lang_pair in (None, pair)]


def checked_pair(pair: str, where: str) -> str:
    """Returns a language pair if it is one.

    Raises:
        InputError: it is not; names the place.
    """
    try:
        language_pair(pair)
    except InputError as error:
        raise InputError(f"{where}, field 'lp': {error}") from None
    return pair


class _Columns:
    """The rows of one language pair as columns."""

    def __init__(self, prediction_field: str) -> None:
        names = fields.NAMES["translation"]
        # Another name is meant literally; the usual one has the variants of other layouts.
        self._translation = names if prediction_field == names[0] else (prediction_field,)
        self._known: dict[tuple[str, ...], tuple[dict[str, str | None], list[str]]] = {}
        self.sources: list[str] = []
        self.predictions: list[str] = []
        self.references: list[str | None] = []
        self.systems: list[str | None] = []
        self.items: list[str | None] = []
        self.human: list[float] = []
        self.raw: list[float] = []
        self.others: dict[str, list[float | None]] = {}
        self.texts: set[str] = set()

    def add(self, row: Row, where: str) -> None:
        names, others = self._names_in(row, where)
        self.sources.append(fields.text(row, names["source"], where))
        self.predictions.append(fields.text(row, names["translation"], where))
        self.references.append(_optional(fields.text, row, names["reference"], where))
        self.systems.append(_optional(fields.text, row, names["system"], where))
        self.items.append(_optional(fields.name, row, names["item"], where))
        for column, name in ((self.human, names["human"]), (self.raw, names["raw"])):
            value = _optional(fields.number, row, name, where)
            column.append(np.nan if value is None else value)
        self._add_others(row, others)

    def _names_in(self, row: Row, where: str) -> tuple[dict[str, str | None], list[str]]:
        """The name that each field has in a row, and the other names in it; looked up once for all rows of the same
        fields."""
        keys = tuple(row)
        if keys not in self._known:
            names = {field: fields.field_name(row, field) for field in fields.NAMES}
            names["translation"] = next((name for name in self._translation if name in row), None)
            for field in ("source", "translation", "human"):
                if names[field] is None:
                    raise fields.missing(
                        row, self._translation if field == "translation" else fields.NAMES[field], where
                    )
            self._known[keys] = names, [name for name in row if name not in names.values()]
        return self._known[keys]

    def _add_others(self, row: Row, names: list[str]) -> None:
        before = len(self.sources) - 1
        for name in names:
            if name in self.texts:
                continue
            value = row[name]
            if value is None or fields.is_number(value):
                self.others.setdefault(name, [None] * before).append(value)
            else:
                self.texts.add(name)
                self.others.pop(name, None)
        for column in self.others.values():
            if len(column) == before:
                column.append(None)

    def segments(self, file: str, lang_pair: str) -> JudgedSegments:
        raw = np.array(self.raw, dtype=np.float64)
        return JudgedSegments(
            file,
            lang_pair,
            self.sources,
            self.predictions,
            self.references,
            self.systems,
            np.array(self.human, dtype=np.float64),
            [] if None in self.items else self.items,
            None if np.isnan(raw).all() else raw,
            {name: values for name, values in self.others.items() if any(value is not None for value in values)},
        )


def _optional(read: Any, row: Row, name: str | None, where: str) -> Any:
    return None if name is None or row[name] is None else read(row, name, where)
