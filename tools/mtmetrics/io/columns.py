"""Names of columns: how rows call a source, a translation, a reference, a judgement, a score."""

import re
from collections.abc import Sequence
from pathlib import Path

from mtmetrics.errors import InputError

# Text -> names of its column in tables: ours first, then those of COMET, WMT and MLQE-PE.
COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "source": ("source", "src", "original"),
    "translation": ("translation", "mt", "prediction", "hypothesis", "target"),
    "reference": ("reference", "ref"),
}
# Field of judged rows -> its names: in our files first, then in common training files, WMT17, and
# MLQE-PE.
FIELDS: dict[str, tuple[str, ...]] = {
    "lp": ("lp", "LP"),
    **COLUMN_NAMES,
    "system": ("system", "sys"),
    "item": ("item", "sid"),
    "human": ("human", "score", "HUMAN_score", "z_mean"),
    "raw": ("raw", "da_mean", "mean"),
}
# In lower case. They show that the first line of a table is a header.
USUAL_NAMES = {name.lower() for names in FIELDS.values() for name in names} | {
    "segment",
    "comet",
    "id",
}
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]")
_LANGUAGE = re.compile(r"[a-z]{2}([-_][A-Za-z]{2,4})?")


def column_names(path: str | Path, names: Sequence[str]) -> dict[str, str]:
    """Finds source, translation and reference among the names of a table, by `COLUMN_NAMES`.

    Returns:
        Text -> the name of its column; texts that the table lacks are left out.

    Raises:
        InputError: two names stand for the same field.
    """
    columns = {}
    for field, synonyms in COLUMN_NAMES.items():
        matching = [name for name in names if name.strip().lower() in synonyms]
        if len(matching) > 1:
            raise InputError(
                f"{path}: {', '.join(map(repr, matching))} both name the {field}; leave one out"
            )
        if matching:
            columns[field] = matching[0]
    return columns


def is_header(path: str | Path, cells: Sequence[str]) -> bool:
    """Whether the first row of a table names its columns, see `names_usual_columns`.

    Raises:
        InputError: the row could be a header or texts: it holds only one usual name, that of a
            source, a translation or a reference, beside other cells.
    """
    if names_usual_columns(cells):
        return True
    words = {cell.strip().lower() for cell in cells}
    names_of_texts = {name for names in COLUMN_NAMES.values() for name in names}
    if len(words) > 1 and words & names_of_texts:
        raise InputError(
            f"{path}, line 1: {' TAB '.join(cells)!r:.80} looks like half a header; a header names "
            "translation (or mt), and source (src) or reference (ref); where it is a segment, pass "
            "parallel files or JSON Lines"
        )
    return False


def names_usual_columns(cells: Sequence[str]) -> bool:
    """Whether the cells of a line are names of columns: two different ones are usual (see
    `USUAL_NAMES`), or the only cell is. False without cells."""
    usual = {cell.strip().lower() for cell in cells} & USUAL_NAMES
    return bool(usual) and len(usual) >= min(2, len(cells))


def are_different_words(cells: Sequence[str]) -> bool:
    """Whether the cells of a line are different single words, as names of columns are."""
    words = {cell.strip() for cell in cells}
    return len(words) == len(cells) and all(map(_WORD.fullmatch, words))


def look_like_names(cells: Sequence[str], following: Sequence[str]) -> bool:
    """Whether cells for which `are_different_words` is true are probably names of columns: they are
    languages, such as ``de`` and ``en``, or the line that follows holds more than single words."""
    are_languages = all(_LANGUAGE.fullmatch(cell.strip()) for cell in cells)
    return are_languages or any(len(cell.split()) > 1 for cell in following)
