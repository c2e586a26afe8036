"""The texts that a visitor pastes or uploads, as parallel columns."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mtmetrics.checks import as_texts, check, language_pair
from mtmetrics.errors import InputError
from mtmetrics.io.lines import iter_lines
from mtmetrics.scorers.side import Column

# Of each column, and of all columns together.
MAX_SEGMENTS = 50_000
MAX_CHARACTERS = 64_000_000


class TextInput(NamedTuple):
    """A column as it came: its name, and an uploaded file or a text with a segment per line."""

    name: str
    path: str | None = None
    text: str = ""

    @property
    def is_filled_in(self) -> bool:
        """Whether the visitor passed a file or a text."""
        return self.path is not None or bool(self.text.strip())


class Texts(NamedTuple):
    """Parallel texts of n segments.

    Attributes:
        lang_pair: from which language into which.
        columns: n sources, n references or both, which the translations are compared with.
        systems: name of a system -> its n translations.
    """

    lang_pair: str
    columns: dict[Column, list[str]]
    systems: dict[str, list[str]]

    @property
    def segments(self) -> int:
        return len(next(iter(self.columns.values())))


def read_texts(
    lang_pair: str, columns: dict[Column, TextInput], systems: Sequence[TextInput]
) -> Texts:
    """Reads the columns that a visitor gives.

    Raises:
        InputError: neither sources nor references, or no translations; a file cannot be read;
            columns of unequal lengths; two of one name; or more than the page takes.
    """
    language_pair(lang_pair)
    inputs = {column: text for column, text in columns.items() if text.is_filled_in}
    translations = [text for text in systems if text.is_filled_in]
    if not inputs:
        raise InputError("no source and no references: paste or upload one of them")
    if not translations:
        raise InputError("no translations: paste or upload those of at least one system")
    names = [text.name for text in (*inputs.values(), *translations)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two of the texts are called {twice!r}: rename one of them")
    segments_of: dict[str, list[str]] = {}
    characters = 0
    for text in (*inputs.values(), *translations):
        segments_of[text.name] = segments = _lines(text)
        characters += sum(map(len, segments))
        _check_size(text.name, len(segments), characters)
    check(**segments_of)
    return Texts(
        lang_pair,
        {column: segments_of[text.name] for column, text in inputs.items()},
        {text.name: segments_of[text.name] for text in translations},
    )


def from_lists(
    lang_pair: str, columns: Mapping[Column, list[str]], systems: Mapping[str, list[str]]
) -> Texts:
    """Checks the columns that a program sends.

    Args:
        lang_pair: such as ``"de-en"``.
        columns: sources, references or both.
        systems: name of a system -> its translations.

    Raises:
        InputError: as `read_texts`, or a column is no list of strings.
    """
    language_pair(lang_pair)
    if not columns:
        raise InputError("no sources and no references: pass one of them")
    if not isinstance(systems, Mapping) or not systems:
        raise InputError("systems: a dictionary of names and lists of translations is needed")
    # Name of a column in messages -> its texts.
    texts_of: dict[str, list[str]] = {**columns}
    texts_of |= {f"systems[{name!r}]": texts for name, texts in systems.items()}
    characters = 0
    for name, values in texts_of.items():
        texts_of[name] = texts = as_texts(name, values)
        characters += sum(map(len, texts))
        _check_size(name, len(texts), characters)
    check(**texts_of)
    return Texts(
        lang_pair,
        {name: texts_of[name] for name in columns},
        {name: texts_of[f"systems[{name!r}]"] for name in systems},
    )


def pasted(text: str) -> list[str]:
    """The segments of a text with one per line; empty lines at its end do not count."""
    if not text.strip():
        return []
    return [line.removesuffix("\r") for line in text.rstrip("\r\n").split("\n")]


def _lines(text: TextInput) -> list[str]:
    if text.path is None:
        return pasted(text.text)
    try:
        return list(itertools.islice(iter_lines(text.path, "segments"), MAX_SEGMENTS + 1))
    except InputError as error:
        # The visitor does not know the folder of the upload.
        raise InputError(str(error).replace(f"{Path(text.path).parent}/", "")) from None


def _check_size(name: str, segments: int, characters: int) -> None:
    """Refuses a text with more than the page takes; the characters are those of all texts so far."""
    most = None
    if segments > MAX_SEGMENTS:
        most = f"more than {MAX_SEGMENTS:,} segments, the most that this page takes"
    elif characters > MAX_CHARACTERS:
        most = (
            f"with it the texts have more than {MAX_CHARACTERS // 10**6} million characters, the "
            "most that this page takes"
        )
    if most is not None:
        raise InputError(f"{name}: {most}; use the command line, mtmetrics compare")
