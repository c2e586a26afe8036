"""Names of columns: how rows call a source, a translation, a reference, a judgement, a score."""

import re
from collections.abc import Sequence
from pathlib import Path

from mtmetrics.errors import InputError

# What the columns of a table are called: as we do, then as COMET, WMT and MLQE-PE do.
COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "source": ("source", "src", "original"),
    "translation": ("translation", "mt", "prediction", "hypothesis", "target"),
    "reference": ("reference", "ref"),
}
# What a field of judged rows is called: in our files first, then in common training files, WMT17,
# and MLQE-PE.
FIELDS: dict[str, tuple[str, ...]] = {
    "lp": ("lp", "LP"),
    **COLUMN_NAMES,
    "system": ("system", "sys"),
    "item": ("item", "sid"),
    "human": ("human", "score", "HUMAN_score", "z_mean"),
    "raw": ("raw", "da_mean", "mean"),
}
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
        Field -> its name in the table; fields that the table lacks are left out.

    Raises:
        InputError: two names stand for the same field.
    """
    found = {}
    for field, synonyms in COLUMN_NAMES.items():
        matching = [name for name in names if name.strip().lower() in synonyms]
        if len(matching) > 1:
            raise InputError(
                f"{path}: {', '.join(map(repr, matching))} both name the {field}; leave one out"
            )
        if matching:
            found[field] = matching[0]
    return found


def is_header(path: str | Path, cells: Sequence[str]) -> bool:
    """Whether the first row of a table names its columns: it holds two usual names of columns, or
    one in each cell.

    Raises:
        InputError: the row could be a header or texts, since one of its cells alone is the name of
            a column.
    """
    if names_usual_columns(cells):
        return True
    found = [
        cell
        for cell in cells
        if any(cell.strip().lower() in names for names in COLUMN_NAMES.values())
    ]
    if len({cell.strip().lower() for cell in cells}) > 1 and found:
        needed = "a header names translation (or mt), and source (src) or reference (ref)"
        text = "where it is a segment, pass parallel files or JSON Lines"
        raise InputError(
            f"{path}, line 1: {' TAB '.join(cells)!r:.80} looks like half a header; {needed}; "
            f"{text}"
        )
    return False


def names_usual_columns(cells: Sequence[str]) -> bool:
    """Whether the cells of a line are names of columns: two different ones are usual, or the only
    cell is."""
    usual = {cell.strip().lower() for cell in cells} & USUAL_NAMES
    return len(usual) >= min(2, len(cells))


def could_be_names(cells: Sequence[str]) -> bool:
    """Whether the cells of a line, none of which is a usual name, are different single words, as
    names are."""
    words = {cell.strip() for cell in cells}
    return len(words) == len(cells) and all(map(_WORD.fullmatch, words))


def look_like_names(cells: Sequence[str], following: Sequence[str]) -> bool:
    """Whether cells that could be names are likely to be: they are languages, such as ``de`` and
    ``en``, or the line that follows holds more than words."""
    are_languages = all(_LANGUAGE.fullmatch(cell.strip()) for cell in cells)
    return are_languages or any(len(cell.split()) > 1 for cell in following)
