"""Checks of what the user passes: texts, codes of languages, numbers; and `InputReport`, which counts
what a reader of the scores should know about the texts.

A check returns the value in its usual form, or raises an `InputError` that names it."""

import dataclasses
import functools
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar

from mtmetrics.errors import InputError

if TYPE_CHECKING:
    import langcodes

T = TypeVar("T")

_PLAIN_CODE = re.compile(r"[a-z]{2,3}")
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
# A report names so many segments of each kind.
_MOST_PLACES = 3
# Count of a report -> how its note describes the segments.
_NOTES = {
    "blank": "blank (floor score",
    "truncated": "longer than the model reads (cut",
    "identical": "identical to the source (untranslated?",
    "looping": "looping (the same words again and again",
    "script": "in another script (than that of the target language",
    "language": "in another language (than the target language",
    "length": "out of proportion (far longer or shorter than the other side",
}


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
    def of(cls, segments: int, flags: Mapping[str, Iterable[bool]]) -> "InputReport":
        """Makes the report of a chunk.

        Args:
            segments: number of its segments.
            flags: count -> (n,) bool, the segments that it counts.
        """
        counts, places = {}, {}
        for name, flags_of_count in flags.items():
            numbers = [number for number, is_counted in enumerate(flags_of_count, 1) if is_counted]
            counts[name] = len(numbers)
            places[name] = numbers[:_MOST_PLACES]
        return cls(segments, **counts, places=places)

    def add(self, other: "InputReport", *, same_segments: bool = False) -> None:
        """Adds the counts of the next chunk, or of another system on the same segments."""
        segments_before = 0 if same_segments else self.segments
        for name, numbers in other.places.items():
            all_numbers = {*self.places.get(name, ())}
            all_numbers.update(segments_before + number for number in numbers)
            self.places[name] = sorted(all_numbers)[:_MOST_PLACES]
        for name, count in other.as_dict().items():
            setattr(self, name, getattr(self, name) + count)

    def as_dict(self) -> dict[str, int]:
        """Returns the counts as a plain dictionary."""
        return {name: value for name, value in vars(self).items() if name != "places"}

    @property
    def note(self) -> str:
        """One line that sums up what is unusual, or an empty string."""
        parts = []
        for name, count in self.as_dict().items():
            if count and name in _NOTES:
                parts.append(f"{count} {_NOTES[name]}{self._places_note(name, count)})")
        return f"of {self.segments} segments: {', '.join(parts)}" if parts else ""

    def _places_note(self, name: str, count: int) -> str:
        """Returns the numbers of the first segments of a count."""
        numbers = self.places.get(name, [])
        if not numbers:
            return ""
        rest = " and others" if count > len(numbers) else ""
        return f"; segment {', '.join(map(str, numbers))}{rest}"

    def warn(self) -> None:
        """Emits the note, if there is one, as a `UserWarning`."""
        if self.note:
            warn(self.note)


def as_texts(name: str, values: object) -> list[str]:
    """Returns a list, tuple, datasets column or numpy array of strings as a list.

    Args:
        name: of the values, for messages.
        values: the strings.

    Raises:
        InputError: it is none of these; names the field, index and value.
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


def as_text(name: str, value: object) -> str:
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
        raise InputError(
            f"{name}: holds a lone surrogate, not valid Unicode text: {shown(value)}"
        ) from None
    if "\0" in value:
        raise InputError(f"{name}: holds a NUL character, which no text does: {shown(value)}")
    return str(value)


def as_references(name: str, values: object) -> list[str] | list[list[str]]:
    """Returns references: one string per segment, or a list of strings per segment.

    Args:
        name: of the values, for messages.
        values: the references.

    Raises:
        InputError: neither the one nor the other, or a segment without a reference; names the
            field, index and value.
    """
    if isinstance(values, str | bytes | dict | set | frozenset) or not isinstance(values, Iterable):
        return as_texts(name, values)
    values = list(values)
    if all(isinstance(value, str) for value in values):
        return as_texts(name, values)
    references_per_segment = []
    for index, value in enumerate(values):
        if isinstance(value, str):
            raise InputError(
                f"{name}[{index}]: a string, but other segments have lists of references; use "
                "lists for all or for none"
            )
        references = as_texts(f"{name}[{index}]", value)
        if not references:
            raise InputError(f"{name}[{index}]: empty; a segment needs at least one reference")
        references_per_segment.append(references)
    return references_per_segment


def check(**columns: object) -> list[list[Any]]:
    """Checks parallel columns of text, such as ``check(sources=..., predictions=...)``.

    Returns:
        The columns as lists of strings. The column ``references`` may hold lists of strings
        instead.

    Raises:
        InputError: a column is no list of strings, empty, or of another length than the first.
    """
    checked = {}
    for name, values in columns.items():
        read = as_references if name == "references" else as_texts
        checked[name] = read(name, values)
    first_name, *further_names = checked
    segments = len(checked[first_name])
    if not segments:
        raise InputError(f"{first_name}: empty; there is nothing to score")
    for name in further_names:
        if len(checked[name]) != segments:
            raise InputError(
                f"{name} has {len(checked[name])} segments but {first_name} has {segments}; they "
                "must be parallel"
            )
    return list(checked.values())


class _Code(NamedTuple):
    """A code of a language.

    Attributes:
        language: its ISO 639 code, of two letters where there is one.
        script: its script by ISO 15924; None where the code names none.
        is_usual: whether it is written in the usual letters, such as ``sr_Latn_RS``.
    """

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
        parsed = langcodes.Language.get(tag)
    except (langcodes.LanguageTagError, ValueError):
        return None
    is_usual = "-".join(subtags) == tag
    if not _PLAIN_CODE.fullmatch(parsed.language or "") or not parsed.is_valid():
        return _Code(code, None, is_usual) if _PLAIN_CODE.fullmatch(code) else None
    language = _short_code(parsed.language, subtags[0], parsed)
    return _Code(_USUAL_CODES.get(language, language), parsed.script, is_usual)


def _short_code(language: str, first_subtag: str, parsed: "langcodes.Language") -> str:
    """Returns the code of two letters of a language, or of the language that it belongs to; the
    code of three letters where there is none.

    The library has Filipino for Tagalog, and other languages of three letters for codes of two: the
    code as it was written decides then."""
    candidates = [language, parsed.prefer_macrolanguage().language, first_subtag]
    return next((code for code in candidates if code and len(code) == 2), language)


def _checked_code(code: object) -> _Code:
    parsed = _parsed_code(code) if isinstance(code, str) else None
    if parsed is None:
        raise InputError(
            f"language {shown(code)}: a code is needed, such as 'de', 'deu', 'deu_Latn' or 'pt-BR'"
        )
    return parsed


def language_of(code: object) -> str:
    """Returns the language of a code of ISO 639, BCP 47 or FLORES: its ISO 639 code, of two letters
    where it has one.

    Raises:
        InputError: it is no such code.

    Example:
        >>> language_of("deu_Latn"), language_of("zh-CN"), language_of("sr_Cyrl_RS"), language_of("yue_Hant")
        ('de', 'zh', 'sr', 'yue')
    """
    return _checked_code(code).language


def script_of_code(code: object) -> str | None:
    """Returns the ISO 15924 code of the script that the code of a language names, such as ``Latn``;
    None where it names none. Raises as `language_of`."""
    return _checked_code(code).script


@functools.lru_cache(maxsize=1024)
def _split_pair(value: str) -> tuple[str, str]:
    """Splits a language pair, see `split_pair`. Hyphens may stand inside the codes, too."""
    if _PAIR_OF_REGION.fullmatch(value) and _parsed_code(value):
        language = value.replace("-", "_")
        raise InputError(
            f"language pair {value!r}: this is one language, {language}; two joined by a hyphen "
            "are needed, such as 'de-en'"
        )
    # Halves -> their codes.
    readings: dict[tuple[str, str], tuple[_Code, _Code]] = {}
    for hyphen in re.finditer("-", value):
        halves = value[: hyphen.start()], value[hyphen.end() :]
        source, target = map(_parsed_code, halves)
        if source is not None and target is not None:
            readings[halves] = source, target
    if not readings:
        raise _no_pair(value)
    # By the usual letters, BR in en-pt-BR is a region; br in en-pt-br may be a language.
    usual_readings = {
        halves: codes for halves, codes in readings.items() if all(code.is_usual for code in codes)
    }
    parts = value.split("-")
    if usual_readings:
        readings = usual_readings
    elif len(parts) > 2 and all(map(_is_language, parts)):
        raise _ambiguous(value, list(readings))
    meanings = {
        (source.language, source.script, target.language, target.script)
        for source, target in readings.values()
    }
    if len(meanings) > 1:
        raise _ambiguous(value, list(readings))
    return next(reversed(readings))


def _is_language(code: str) -> bool:
    import langcodes

    return bool(_PLAIN_CODE.fullmatch(code)) and langcodes.tag_is_valid(code)


def _no_pair(value: object) -> InputError:
    return InputError(
        f"language pair {shown(value)}: two ISO 639 codes joined by a hyphen are needed, such as "
        "'de-en', 'deu_Latn-eng_Latn' or 'en-pt_BR'"
    )


def _ambiguous(value: str, readings: Sequence[tuple[str, str]]) -> InputError:
    meanings = [" and ".join(halves) for halves in readings]
    if len(meanings) == 1:
        meanings.append("three languages")
    example = "-".join(half.replace("-", "_") for half in readings[0])
    return InputError(
        f"language pair {value!r}: may be {', or '.join(meanings)}; join the parts of each "
        f"language by underscores and both by a hyphen, such as 'de-en' or {example!r}"
    )


def split_pair(value: object) -> tuple[str, str]:
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


def language_pair(value: object) -> tuple[str, str]:
    """Returns source and target language of a pair, which choose models: see `split_pair` and
    `language_of`.

    Example:
        >>> language_pair("deu_Latn-eng_Latn"), language_pair("en-ko_KR"), language_pair("DE-EN")
        (('de', 'en'), ('en', 'ko'), ('de', 'en'))
    """
    source, target = split_pair(value)
    return language_of(source), language_of(target)


def names_of_pair(wanted: str, names: Iterable[str]) -> list[str]:
    """Finds a language pair among names of pairs.

    Returns:
        The name that is written in the same way; else all names of the same languages.

    Raises:
        InputError: `wanted` is no pair, see `split_pair`.

    Example:
        >>> names_of_pair("deu-eng", ["de-en", "de-fr"]), names_of_pair("en-pt_BR", ["en-pt_BR", "en-pt_PT"])
        (['de-en'], ['en-pt_BR'])
    """
    languages, names = language_pair(wanted), list(dict.fromkeys(names))
    if wanted in names:
        return [wanted]
    return [name for name in names if _languages_of(name) == languages]


def _languages_of(name: str) -> tuple[str, str] | None:
    try:
        return language_pair(name)
    except InputError:
        return None


def for_language(tables: Mapping[str, T], wanted: str | None) -> T | None:
    """Returns the entry of a table for a language, which may stand there under any code of it; None
    if it has none."""
    if wanted is None:
        return None
    if wanted in tables:
        return tables[wanted]
    for code, entry in tables.items():
        parsed = _parsed_code(code)
        if parsed is not None and parsed.language == wanted:
            return entry
    return None


def choice(name: str, value: T, allowed: Sequence[T]) -> T:
    """Returns `value` if it is one of `allowed`; otherwise an `InputError` lists them."""
    if value not in allowed:
        raise InputError(
            f"{name} {shown(value)}: must be one of {', '.join(map(str, allowed))}", option=name
        )
    return value


def positive(name: str, value: object) -> int:
    """Returns `value` if it is a whole number of at least 1, otherwise raises `InputError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(
            f"{name} {shown(value)}: must be a whole number of at least 1", option=name
        )
    return value


def number(name: str, value: object) -> float:
    """Returns `value` as a float if it is a finite number, otherwise raises `InputError`."""
    if not is_finite_number(value):
        raise InputError(f"{name} {shown(value)}: must be a finite number", option=name)
    return float(value)


def is_finite_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a finite number, see `is_number`."""
    # The comparison is false for NaN, infinity, and whole numbers too large for a float.
    return is_number(value) and abs(value) <= sys.float_info.max


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is an int or a float. A bool does not count, although it is an int in
    Python."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def port(name: str, value: int) -> int:
    """Returns `value` if it is the number of a port, or 0 for any that is free, otherwise raises
    `InputError`."""
    if not 0 <= value < 2**16:
        raise InputError(
            f"{name} {value}: must be from 0, for any that is free, to 65535", option=name
        )
    return value


def share(name: str, value: object) -> float:
    """Returns `value` as a float if it is a number above 0 and at most 1, otherwise raises
    `InputError`."""
    fraction = number(name, value)
    if not 0.0 < fraction <= 1.0:
        raise InputError(f"{name} {shown(value)}: must be above 0 and at most 1", option=name)
    return fraction


def shown(value: object) -> str:
    """Returns a value for messages, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
