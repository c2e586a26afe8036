"""Checks what the user passed and counts what a reader of the scores should know about it."""

import dataclasses
import functools
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mtmetrics.errors import InputError

_PLAIN_CODE = re.compile(r"[a-z]{2,3}")
_LANGUAGE_SUBTAG = re.compile(r"[a-z]{2,3}")
_PAIR_OF_REGION = re.compile(r"[a-z]{2,3}-[A-Z]{2}")
# Codes that langcodes leaves as they are, or changes to one that no model here is known by:
# withdrawn codes, Filipino, and languages of FLORES that belong to a language with a code of two
# letters.
_USUAL_CODES = {
    "iw": "he",
    "in": "id",
    "ji": "yi",
    "fil": "tl",
    "fuv": "ff",
    "pbt": "ps",
    "quy": "qu",
}
# A regular expression of a language pair in the name of a file.
PAIR_IN_NAMES = r"[A-Za-z]{2,3}(?:_[A-Za-z]+)*-[A-Za-z]{2,3}(?:_[A-Za-z]+)*"
_NAMED = 3


def warn(message: str) -> None:
    """Warns the user. The warning names the package, not the line of its code that warns."""
    warnings.warn_explicit(message, UserWarning, "<mtmetrics>", 1)


@dataclasses.dataclass
class InputReport:
    """Counts of segments that deserve a second look; part of every result.

    Attributes:
        segments: segments scored.
        blank: a side is empty, blank, or holds nothing that the model knows; each gets the metric's
            floor score.
        truncated: a side is longer than a model reads; only its beginning was scored.
        identical: not blank, and the prediction is the source but for case and punctuation, of
            which more than names, numbers and signs would change in a translation; 0 for metrics
            that do not see the source.
        looping: the prediction says the same again and again (`mtmetrics.scorers.degenerate`, as
            for the next three).
        script: the prediction is in another script than its language; 0 where no language pair is
            given.
        language: the prediction is in another language; 0 also where py3langid is not installed.
        length: the prediction is far longer or shorter than the other side.
        places: count -> the numbers of the first such segments, from 1 up; not part of what is
            written.
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
        numbers = {
            name: [number for number, is_one in enumerate(flags, 1) if is_one]
            for name, flags in found.items()
        }
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
        parts = [
            f"{counts[name]} {what}{self._named(name)})"
            for name, what in notes.items()
            if counts[name]
        ]
        return f"of {self.segments} segments: {', '.join(parts)}" if parts else ""

    def _named(self, name: str) -> str:
        """The numbers of these segments; the first ones where there are many."""
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
        raise InputError(
            f"{name}: a list of strings is needed, got the single string {shown(values)}; pass "
            "[text]"
        )
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
        InputError: it is no string, no valid Unicode text, or holds a NUL character; the message
            begins with `name`.
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
        InputError: neither the one nor the other, or a segment without a reference; names the
            field, index and value.
    """
    if isinstance(values, str | bytes | dict | set | frozenset) or not isinstance(values, Iterable):
        return as_texts(name, values)
    values = list(values)
    if all(isinstance(value, str) for value in values):
        return as_texts(name, values)
    several = []
    for index, value in enumerate(values):
        if isinstance(value, str):
            what = (
                "a string, but other segments have lists of references; use lists for all or "
                "for none"
            )
            raise InputError(f"{name}[{index}]: {what}")
        several.append(as_texts(f"{name}[{index}]", value))
        if not several[-1]:
            raise InputError(f"{name}[{index}]: empty; a segment needs at least one reference")
    return several


def check(**columns: Any) -> list[list[Any]]:
    """Checks parallel columns of text, such as ``check(sources=..., predictions=...)``, and returns
    them as lists of strings; the column ``references`` may hold lists of strings instead.

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
            raise InputError(
                f"{name} has {other} segments but {first} has {count}; they must be parallel"
            )
    return list(checked.values())


class _Code(NamedTuple):
    """A code of a language: its ISO 639 code, of two letters where there is one; its script by ISO
    15924, None where it names none; and whether it is written in the usual letters, such as
    ``sr_Latn_RS``."""

    language: str
    script: str | None
    is_usual: bool


@functools.lru_cache(maxsize=1024)
def _parsed_code(code: str) -> _Code | None:
    """Reads a code; None where it is no code of a language."""
    if len(code) == 2 and _PLAIN_CODE.fullmatch(code):
        return _Code(_USUAL_CODES.get(code, code), None, is_usual=True)
    # Imported here: most calls know their languages by two letters.
    import langcodes
    from langcodes.tag_parser import parse_tag

    tag = code.replace("_", "-")
    try:
        subtags = [value for _, value in parse_tag(tag)]
        known = langcodes.Language.get(tag)
    except (langcodes.LanguageTagError, ValueError):
        return None
    is_usual = "-".join(subtags) == tag
    if not _LANGUAGE_SUBTAG.fullmatch(known.language or "") or not known.is_valid():
        return _Code(code, None, is_usual) if _PLAIN_CODE.fullmatch(code) else None
    # The library has Filipino for Tagalog, and other languages of three letters for codes of two.
    short = known.language if len(known.language) == 2 else known.prefer_macrolanguage().language
    first = subtags[0]
    name = short if len(str(short)) == 2 else first if len(first) == 2 else known.language
    return _Code(_USUAL_CODES.get(name, name), known.script, is_usual)


def _checked_code(code: Any) -> _Code:
    parsed = _parsed_code(code) if isinstance(code, str) else None
    if parsed is None:
        raise InputError(
            f"language {shown(code)}: a code is needed, such as 'de', 'deu', 'deu_Latn' or 'pt-BR'"
        )
    return parsed


def language_of(code: Any) -> str:
    """Returns the language of a code of ISO 639, BCP 47 or FLORES: its ISO 639 code, of two letters
    where it has one.

    Raises:
        InputError: it is no such code.

    Example:
        >>> language_of("deu_Latn"), language_of("zh-CN"), language_of("sr_Cyrl_RS"), language_of("yue_Hant")
        ('de', 'zh', 'sr', 'yue')
    """
    return _checked_code(code).language


def script_of_code(code: Any) -> str | None:
    """Returns the ISO 15924 code of the script that the code of a language names, such as ``Latn``;
    None where it names none. Raises as `language_of`."""
    return _checked_code(code).script


@functools.lru_cache(maxsize=1024)
def _split_pair(value: str) -> tuple[str, str]:
    if _PAIR_OF_REGION.fullmatch(value) and _parsed_code(value):
        what = f"this is one language, {value.replace('-', '_')}"
        raise InputError(
            f"language pair {value!r}: {what}; two joined by a hyphen are needed, such as 'de-en'"
        )
    readings: dict[tuple[str, str], tuple[_Code, _Code]] = {}
    for hyphen in re.finditer("-", value):
        halves = value[: hyphen.start()], value[hyphen.end() :]
        source, target = map(_parsed_code, halves)
        if source is not None and target is not None:
            readings[halves] = source, target
    # By the usual letters, BR in en-pt-BR is a region; br in en-pt-br may be a language.
    usual = {
        halves: codes for halves, codes in readings.items() if all(code.is_usual for code in codes)
    }
    if usual:
        readings = usual
    elif len(value.split("-")) > 2 and all(map(_is_known_language, value.split("-"))):
        raise _ambiguous(value, [*readings])
    if len({tuple(code[:2] for code in codes) for codes in readings.values()}) > 1:
        raise _ambiguous(value, [*readings])
    if not readings:
        raise _no_pair(value)
    return next(reversed(readings))


def _is_known_language(code: str) -> bool:
    import langcodes

    return bool(_PLAIN_CODE.fullmatch(code)) and langcodes.tag_is_valid(code)


def _no_pair(value: Any) -> InputError:
    needed = (
        "two ISO 639 codes joined by a hyphen are needed, such as 'de-en', 'deu_Latn-eng_Latn' "
        "or 'en-pt_BR'"
    )
    return InputError(f"language pair {shown(value)}: {needed}")


def _ambiguous(value: str, readings: Sequence[tuple[str, str]]) -> InputError:
    if not readings:
        return _no_pair(value)
    several = ", or ".join(" and ".join(halves) for halves in readings)
    several += "" if len(readings) > 1 else ", or three languages"
    example = "-".join(half.replace("-", "_") for half in readings[0])
    advice = (
        "join the parts of each language by underscores and both by a hyphen, such as 'de-en' "
        f"or {example!r}"
    )
    return InputError(f"language pair {value!r}: may be {several}; {advice}")


def split_pair(value: Any) -> tuple[str, str]:
    """Splits a language pair into the codes of source and target, as they are written.

    Raises:
        InputError: it is no pair, or can be split in two ways that name different languages.

    Example:
        >>> split_pair("de-en"), split_pair("zh-CN-en"), split_pair("en-sr_Cyrl_RS")
        (('de', 'en'), ('zh-CN', 'en'), ('en', 'sr_Cyrl_RS'))
    """
    if not isinstance(value, str):
        raise _no_pair(value)
    return _split_pair(value)


def language_pair(value: Any) -> tuple[str, str]:
    """Returns source and target language of a pair, which choose models: see `split_pair` and
    `language_of`.

    Example:
        >>> language_pair("deu_Latn-eng_Latn"), language_pair("en-ko_KR"), language_pair("DE-EN")
        (('de', 'en'), ('en', 'ko'), ('de', 'en'))
    """
    source, target = split_pair(value)
    return language_of(source), language_of(target)


def names_of_pair(wanted: str, names: Iterable[str]) -> list[str]:
    """Returns under which of some names a language pair stands there: under its own, else under all
    names of the same languages. Raises as `split_pair`, of the pair that is wanted.

    Example:
        >>> names_of_pair("deu-eng", ["de-en", "de-fr"]), names_of_pair("en-pt_BR", ["en-pt_BR", "en-pt_PT"])
        (['de-en'], ['en-pt_BR'])
    """
    languages, names = language_pair(wanted), list(dict.fromkeys(names))
    return (
        [wanted]
        if wanted in names
        else [name for name in names if _languages_of(name) == languages]
    )


def _languages_of(name: str) -> tuple[str, str] | None:
    try:
        return language_pair(name)
    except InputError:
        return None


def for_language(tables: Mapping[str, Any], wanted: str | None) -> Any:
    """Returns the entry of a table for a language, which may stand there under any code of it; None
    if it has none."""
    if wanted is None or wanted in tables:
        return tables.get(wanted or "")
    codes = {code: parsed for code in tables if (parsed := _parsed_code(code))}
    return next((tables[code] for code, parsed in codes.items() if parsed.language == wanted), None)


def choice(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    """Returns `value` if it is one of `allowed`; otherwise an `InputError` lists them."""
    if value not in allowed:
        raise InputError(
            f"{name} {shown(value)}: must be one of {', '.join(map(str, allowed))}", option=name
        )
    return value


def positive(name: str, value: Any) -> int:
    """Returns `value` if it is a whole number of at least 1, otherwise raises `InputError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(
            f"{name} {shown(value)}: must be a whole number of at least 1", option=name
        )
    return value


def number(name: str, value: Any) -> float:
    """Returns `value` as a float if it is a finite number, otherwise raises `InputError`."""
    try:
        is_number = (
            not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
        )
    except OverflowError:  # a whole number that no float holds
        is_number = False
    if not is_number:
        raise InputError(f"{name} {shown(value)}: must be a finite number", option=name)
    return float(value)


def port(name: str, value: int) -> int:
    """Returns `value` if it is the number of a port, or 0 for any that is free, otherwise raises
    `InputError`."""
    if not 0 <= value < 2**16:
        raise InputError(
            f"{name} {value}: must be from 0, for any that is free, to 65535", option=name
        )
    return value


def share(name: str, value: Any) -> float:
    """Returns `value` as a float if it is a number above 0 and at most 1, otherwise raises
    `InputError`."""
    if not 0.0 < number(name, value) <= 1.0:
        raise InputError(f"{name} {shown(value)}: must be above 0 and at most 1", option=name)
    return float(value)


def shown(value: Any) -> str:
    """A value for messages, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
