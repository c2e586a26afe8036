"""The type that all values of a column have in common, for formats where a column has one type."""

import dataclasses
from typing import TYPE_CHECKING

from mtmetrics.checks import is_number
from mtmetrics.errors import InputError
from mtmetrics.io.lines import shown_json

if TYPE_CHECKING:
    import pyarrow

_MEND = "write .jsonl, where each value keeps its own"
_EXACT = 2**53  # a float of 64 bits holds every whole number up to here exactly
_WORDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


@dataclasses.dataclass
class ValueType:
    """The type of plain values, which are added one after the other.

    Attributes:
        kind: the type in words; None as long as all values are null.
        where: the place of the first value that is not null.
        has_fraction: whether one of the numbers is a float, such as 0.5 or 1.0.
        least: the lowest whole number, at most 0.
        most: the highest whole number, at least 0.
        inexact: for messages, the first whole number that a float may not hold exactly, and its
            place; None if there is none.
        items: the type of the items of all lists; None without lists.
        fields: key -> the type of its values in all objects.
    """

    kind: str | None = None
    where: str = ""
    has_fraction: bool = False
    least: int = 0
    most: int = 0
    inexact: str | None = None
    items: "ValueType | None" = None
    fields: "dict[str, ValueType]" = dataclasses.field(default_factory=dict)

    def add(self, value: object, where: str, name: str) -> None:
        """Takes a value into account.

        Args:
            value: text, number, true or false, list, object, or None.
            where: its place, for messages.
            name: name of its column.

        Raises:
            InputError: no type holds this value and the earlier ones, or the number has more than
                64 bits.
        """
        if value is None:
            return
        kind = _kind(value)
        if self.kind is None:
            self.kind, self.where = kind, where
        if kind != self.kind:
            first = f"{self.kind} in {self.where}" if self.where else self.kind
            raise InputError(
                f"{where}: column {name!r} holds {kind} ({shown_json(value)}), but {first}; a column of "
                f"Parquet has one type; {_MEND}"
            )
        if isinstance(value, list):
            self.items = self.items or ValueType()
            for item in value:
                self.items.add(item, where, name)
        elif isinstance(value, dict):
            for key, inner in value.items():
                self.fields.setdefault(key, ValueType()).add(inner, where, f"{name}.{key}")
        elif is_number(value):
            self._add_number(value, where, name)

    def _add_number(self, value: float, where: str, name: str) -> None:
        if isinstance(value, int):
            self.least = min(self.least, value)
            self.most = max(self.most, value)
            most_allowed = 2**63 if self.least < 0 else 2**64
            if self.least < -(2**63) or self.most >= most_allowed:
                raise InputError(
                    f"{where}: column {name!r}: {shown_json(value)} has more than 64 bits; {_MEND}"
                )
            if abs(value) > _EXACT:
                self.inexact = self.inexact or f"{shown_json(value)} in {where}"
        else:
            self.has_fraction = True
        if self.has_fraction and self.inexact:
            raise InputError(
                f"{where}: column {name!r} holds numbers with a fraction ({shown_json(value)}) and "
                f"{self.inexact}, which has too many digits beside them; {_MEND}"
            )

    def arrow(self, name: str) -> "pyarrow.DataType":
        """Returns the type for Parquet; a column of nothing but nulls is one of text.

        Raises:
            InputError: all objects of a column are empty.
        """
        import pyarrow

        if self.kind in (None, _WORDS[str]):
            return pyarrow.string()
        if self.kind == _WORDS[bool]:
            return pyarrow.bool_()
        if self.kind == _WORDS[int]:
            if self.has_fraction:
                return pyarrow.float64()
            return pyarrow.uint64() if self.most >= 2**63 else pyarrow.int64()
        if self.items is not None:
            return pyarrow.list_(self.items.arrow(name))
        if not self.fields:
            raise InputError(
                f"{self.where}: column {name!r} holds empty objects alone, which Parquet cannot; "
                f"{_MEND}"
            )
        fields = [(key, inner.arrow(f"{name}.{key}")) for key, inner in self.fields.items()]
        return pyarrow.struct(fields)


def _kind(value: object) -> str:
    """Names the type of a value in words."""
    for kind, words in _WORDS.items():
        if isinstance(value, kind):
            return words
    return type(value).__name__
