"""Checks what the user passed and counts what a reader of the scores should know about it."""

import dataclasses
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mtmetrics.errors import InputError

_LANGUAGE_PAIR = re.compile(r"([a-z]{2,3})-([a-z]{2,3})")
_NAMED = 3


def warn(message: str) -> None:
    """Warns the user. The warning names the package, not the line of its code that warns."""
    warnings.warn_explicit(message, UserWarning, "<mtmetrics>", 1)


@dataclasses.dataclass
class InputReport:
    """Counts of segments that deserve a second look; part of every result.

    Attributes:
        segments: segments scored.
        blank: a side is empty, blank, or holds nothing that the model knows; each gets the metric's floor score.
        truncated: a side is longer than a model reads; only its beginning was scored.
        identical: not blank, and the prediction equals the source; 0 for metrics that do not see the source.
        looping: the prediction says the same again and again (`mtmetrics.scorers.degenerate`, as for the next three).
        script: the prediction is in another script than its language; 0 where no language pair is given.
        language: the prediction is in another language; 0 also where py3langid is not installed.
        length: the prediction is far longer or shorter than the other side.
        places: count -> the numbers of the first such segments, from 1 up; not part of what is written.
    """

    segments: int = 0
    blank: int = 0
    truncated: int = 0
    identical: int = 0
    looping: int = 0
    script: int = 0
    language: int = 0
    length: int = 0
    places: dict[str, list[int]] = dataclasses.field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, segments: int, found: Mapping[str, Iterable[bool]]) -> "InputReport":
        """The report of a chunk: count -> (n,) bool, the segments that it counts."""
        numbers = {name: [number for number, is_one in enumerate(flags, 1) if is_one] for name, flags in found.items()}
        places = {name: there[:_NAMED] for name, there in numbers.items()}
        return cls(segments, **{name: len(there) for name, there in numbers.items()}, places=places)

    def add(self, other: "InputReport", *, same_segments: bool = False) -> None:
        """Adds the counts of the next chunk, or of another system on the same segments."""
        after = 0 if same_segments else self.segments
        for name, numbers in other.places.items():
            known = {*self.places.get(name, ()), *(after + number for number in numbers)}
            self.places[name] = sorted(known)[:_NAMED]
        for name, count in other.as_dict().items():
            setattr(self, name, getattr(self, name) + count)

    def as_dict(self) -> dict[str, int]:
        """The counts as a plain dictionary."""
        return {name: value for name, value in vars(self).items() if name != "places"}

    @property
    def note(self) -> str:
        """One line that sums up what is unusual, or an empty string."""
        notes = {
            "blank": "blank (floor score",
            "truncated": "longer than the model reads (cut",
            "identical": "identical to the source (untranslated?",
            "looping": "looping (the same words again and again",
            "script": "in another script (than that of the target language",
            "language": "in another language (than the target language",
            "length": "out of proportion (far longer or shorter than the other side",
        }
        counts = self.as_dict()
        found = [f"{counts[name]} {what}{self._named(name)})" for name, what in notes.items() if counts[name]]
        return f"of {self.segments} segments: {', '.join(found)}" if found else ""

    def _named(self, name: str) -> str:
        """Which segments these are; the first ones where there are many."""
        numbers = self.places.get(name, [])
        more = " and others" if self.as_dict()[name] > len(numbers) else ""
        return f"; segment {', '.join(map(str, numbers))}{more}" if numbers else ""

    def warn(self) -> None:
        """Emits the note, if there is one, as a `UserWarning`."""
        if self.note:
            warn(self.note)


def as_texts(name: str, values: Any) -> list[str]:
    """Returns a list, tuple, datasets column or numpy array of strings as a list.

    Raises:
        InputError: it is none; names the field (`name`), index and value.
    """
    if isinstance(values, str | bytes):
        raise InputError(f"{name}: a list of strings is needed, got the single string {shown(values)}; pass [text]")
    if (
        not isinstance(values, Iterable)
        or isinstance(values, dict | set | frozenset)
        or getattr(values, "ndim", 1) != 1
    ):
        raise InputError(f"{name}: a list of strings is needed, got {shown(values)}")
    return [as_text(f"{name}[{index}]", value) for index, value in enumerate(values)]


def as_text(name: str, value: Any) -> str:
    """Returns a string, or a subclass of it, as a plain string.

    Raises:
        InputError: it is no string, no valid Unicode text, or holds a NUL character; the message begins with `name`.
    """
    if not isinstance(value, str):
        raise InputError(f"{name}: a string is needed, got {shown(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        what = "holds a lone surrogate, not valid Unicode text"
        raise InputError(f"{name}: {what}: {shown(value)}") from None
    if "\0" in value:
        raise InputError(f"{name}: holds a NUL character, which no text does: {shown(value)}")
    return str(value)


def as_references(name: str, values: Any) -> list[str] | list[list[str]]:
    """Returns references: one string per segment, or a list of strings per segment.

    Raises:
        InputError: neither the one nor the other, or a segment without a reference; names the field, index and value.
    """
    if isinstance(values, str | bytes | dict | set | frozenset) or not isinstance(values, Iterable):
        return as_texts(name, values)
    values = list(values)
    if all(isinstance(value, str) for value in values):
        return as_texts(name, values)
    several = []
    for index, value in enumerate(values):
        if isinstance(value, str):
            what = "a string, but other segments have lists of references; use lists for all or for none"
            raise InputError(f"{name}[{index}]: {what}")
        several.append(as_texts(f"{name}[{index}]", value))
        if not several[-1]:
            raise InputError(f"{name}[{index}]: empty; a segment needs at least one reference")
    return several


def check(**columns: Any) -> list[list[Any]]:
    """Checks parallel columns of text, such as ``check(sources=..., predictions=...)``, and returns them as lists of
    strings; the column ``references`` may hold lists of strings instead.

    Raises:
        InputError: a column is no list of strings, empty, or of another length than the first.
    """
    readers = {"references": as_references}
    checked = {name: readers.get(name, as_texts)(name, values) for name, values in columns.items()}
    counts = {name: len(texts) for name, texts in checked.items()}
    first, count = next(iter(counts.items()))
    if not count:
        raise InputError(f"{first}: empty; there is nothing to score")
    for name, other in counts.items():
        if other != count:
            raise InputError(f"{name} has {other} segments but {first} has {count}; they must be parallel")
    return list(checked.values())


class SourceAndReference(NamedTuple):
    """What a metric that reads both compares the translation of a segment with; of references there may be several."""

    source: str
    reference: str | list[str]


def compared_texts(columns: Sequence[Sequence[Any]]) -> list[Any]:
    """What a scorer compares with, segment by segment: the texts of one column, or pairs of source and reference."""
    first, *rest = columns
    return [SourceAndReference(*texts) for texts in zip(first, *rest, strict=True)] if rest else list(first)


def compared_columns(names: Sequence[str], values: Any) -> dict[str, Any]:
    """The columns that a scorer with these columns compares with, of what it was given: of two, pairs of texts.

    Raises:
        InputError: two columns, and something is no pair of a source and a reference; names its index.
    """
    if len(names) == 1:
        return {names[0]: values}
    if isinstance(values, str | bytes | dict | set | frozenset) or not isinstance(values, Iterable):
        raise InputError(f"a list of pairs (source, reference) is needed, got {shown(values)}")
    pairs = list(values)
    for index, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != len(names):
            raise InputError(f"segment {index}: a pair (source, reference) is needed, got {shown(pair)}")
    return {name: [pair[place] for pair in pairs] for place, name in enumerate(names)}


def language_pair(value: Any) -> tuple[str, str]:
    """Splits a language pair such as ``de-en`` into source and target; `InputError` where it is not of that form."""
    found = _LANGUAGE_PAIR.fullmatch(value) if isinstance(value, str) else None
    if not found:
        needed = "two ISO 639 codes joined by a hyphen are needed, such as 'de-en'"
        raise InputError(f"language pair {shown(value)}: {needed}")
    return found[1], found[2]


def choice(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    """Returns `value` if it is one of `allowed`; otherwise an `InputError` lists them."""
    if value not in allowed:
        raise InputError(f"{name} {shown(value)}: must be one of {', '.join(map(str, allowed))}")
    return value


def positive(name: str, value: Any) -> int:
    """Returns `value` if it is a whole number of at least 1, otherwise raises `InputError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} {shown(value)}: must be a whole number of at least 1")
    return value


def number(name: str, value: Any) -> float:
    """Returns `value` as a float if it is a finite number, otherwise raises `InputError`."""
    try:
        is_number = not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        is_number = False
    if not is_number:
        raise InputError(f"{name} {shown(value)}: must be a finite number")
    return float(value)


def port(name: str, value: int) -> int:
    """Returns `value` if it is the number of a port, or 0 for any that is free, otherwise raises `InputError`."""
    if not 0 <= value < 2**16:
        raise InputError(f"{name} {value}: must be from 0, for any that is free, to 65535")
    return value


def share(name: str, value: Any) -> float:
    """Returns `value` as a float if it is a number above 0 and at most 1, otherwise raises `InputError`."""
    if not 0.0 < number(name, value) <= 1.0:
        raise InputError(f"{name} {shown(value)}: must be above 0 and at most 1")
    return float(value)


def shown(value: Any) -> str:
    """A value for messages, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
