"""Rows of judged data, in whichever of the known layouts a file holds them."""

import csv
import itertools
import re
import tarfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.inputs import language_pair
from mtmetrics.textio import COLUMN_NAMES, decoded_lines, iter_jsonl, iter_lines, shown

# What a field is called in the layouts: in our files first, then in common training files, WMT17, and MLQE-PE.
FIELDS: dict[str, tuple[str, ...]] = {
    "lp": ("lp", "LP"),
    **COLUMN_NAMES,
    "system": ("system", "sys"),
    "item": ("item", "sid"),
    "human": ("human", "score", "HUMAN_score", "z_mean"),
    "raw": ("raw", "da_mean", "mean"),
}
_TEXTS = {name for field, names in FIELDS.items() if field not in ("human", "raw") for name in names}
_REQUIRED_TEXTS = {*FIELDS["source"], *FIELDS["translation"]}
_ABSENT = {"", "None"}
_LARGEST = np.finfo(np.float64).max.item()
_MLQE = ".df.short.tsv"
_MLQE_NAME = re.compile(rf".*\.(?P<source>[a-z]{{2}})(?P<target>[a-z]{{2}}){re.escape(_MLQE)}")


class Row(NamedTuple):
    """What stands in a row of a file, and its place, for messages."""

    where: str
    fields: Mapping[str, Any]

    def name(self, field: str) -> str | None:
        """The name under which the row has a field of `FIELDS`, or None where it has not."""
        return next((name for name in FIELDS[field] if name in self.fields), None)

    def required(self, field: str) -> str:
        """The name under which the row has a field of `FIELDS`; refused where it has not."""
        name = self.name(field)
        if name is None:
            raise self.lacks(FIELDS[field])
        return name

    def lacks(self, names: tuple[str, ...]) -> InputError:
        """The error for a row without any field of these names."""
        there = ", ".join(map(repr, self.fields)) or "no field at all"
        return InputError(f"{self.where}: no field {' or '.join(map(repr, names))}; the row has: {there}")

    def text(self, name: str) -> str:
        """The string under a name; refused, with its place, where something else is there."""
        value = self.fields[name]
        if not isinstance(value, str):
            raise InputError(f"{self.where}, field {name!r}: a string is needed, got {shown(value)}")
        return value

    def label(self, name: str) -> str:
        """The string or whole number under a name, as a string; other values are refused."""
        value = self.fields[name]
        return str(value) if isinstance(value, int) and is_number(value) else self.text(name)

    def number(self, name: str) -> float:
        """The finite number under a name; other values are refused."""
        value = self.fields[name]
        # Python's JSON reader lets NaN, Infinity and whole numbers through that no float holds.
        if not is_number(value) or not abs(value) <= _LARGEST:
            raise InputError(f"{self.where}, field {name!r}: a finite number is needed, got {shown(value)}")
        return float(value)

    def outputs(self, systems: Collection[str] = ()) -> "Row":
        """The object in the field ``outputs``, system -> translation; of exactly the systems given, if any."""
        found = self.fields.get("outputs")
        where = f"{self.where}, field 'outputs'"
        if not isinstance(found, dict) or (systems and found.keys() != set(systems)):
            wanted = f" of {', '.join(systems)}, as in the first row" if systems else ""
            raise InputError(f"{where}: an object, system name -> translation{wanted}, is needed")
        return Row(where, found)

    def checked_pair(self, pair: str) -> str:
        """The language pair of the row, refused with its place where it is none."""
        try:
            language_pair(pair)
        except InputError as error:
            raise InputError(f"{self.where}, field 'lp': {error}") from None
        return pair


def jsonl_rows(path: str | Path) -> Iterator[Row]:
    """Yields every row of a JSON Lines file; errors are those of `mtmetrics.textio.iter_jsonl`."""
    return (Row(f"{path}, line {number}", row) for number, row in iter_jsonl(path))


def is_number(value: Any) -> bool:
    """Whether a value is a number; JSON's true, which would pass for 1, is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


# Tables with a header row.


def _parsed(path: str | Path, lines: Iterable[str]) -> Iterator[Row]:
    lines = iter(lines)
    first = next(lines, None)
    if first is None:
        return
    table = (_split_tabs if "\t" in first else _split_commas)(path, itertools.chain([first], lines))
    _, header = next(table, (0, None))
    if header is None:
        return
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise InputError(f"{path}, line 1: the column {twice[0]!r} stands there twice")
    if _REQUIRED_TEXTS.isdisjoint(header):
        raise InputError(
            f"{path}, line 1: a header with the columns source, translation and human (or src, mt and score) is "
            f"needed, got {', '.join(header)!r:.80}; files such as WMT's DA-seglevel.csv hold no text: write "
            "sentences and judgements into one table"
        )
    for number, values in table:
        where = f"{path}, line {number}"
        if len(values) != len(header):
            raise InputError(f"{where}: {len(values)} field(s), but the header has {len(header)}: {', '.join(header)}")
        yield Row(where, {name: _value(name, value) for name, value in zip(header, values, strict=True)})


def _split_tabs(path: str | Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, [_unquoted(cell) for cell in line.split("\t")]


def _split_commas(path: str | Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((line + "\n" for line in lines), strict=True)
    try:
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not valid CSV ({error})") from None


def _unquoted(cell: str) -> str:
    inner = cell[1:-1].replace('""', "")
    quoted = len(cell) > 2 and cell[0] == cell[-1] == '"' and '""' in cell[1:-1] and '"' not in inner
    return cell[1:-1].replace('""', '"') if quoted else cell


def _value(name: str, cell: str) -> Any:
    if name in _REQUIRED_TEXTS:
        return cell
    if cell in _ABSENT:
        return None
    try:
        return cell if name in _TEXTS else float(cell)
    except ValueError:
        return cell


# MLQE-PE: the language pair is that of the file's name.


def _mlqe_archive_rows(path: str | Path) -> Iterator[Row]:
    """The rows of the one table in a tar archive; nothing is unpacked to disk."""
    try:
        with tarfile.open(path) as archive:
            members = [member for member in archive if member.isfile() and member.name.endswith(_MLQE)]
            if len(members) != 1:
                count = f"holds {len(members)} files *{_MLQE}, one is needed"
                raise InputError(f"{path}: {count}; unpack it and pass the files")
            inner = f"{path}:{members[0].name}"
            yield from _with_pair(inner, members[0].name, decoded_lines(archive.extractfile(members[0]), inner))
    except (OSError, EOFError, tarfile.TarError) as error:
        raise InputError(f"{path}: cannot be read as a tar archive ({error})") from None


def _with_pair(path: str | Path, name: str, lines: Iterable[str]) -> Iterator[Row]:
    match = _MLQE_NAME.fullmatch(name)
    if match is None:
        raise InputError(f"{path}: a name such as dev.ende{_MLQE} is needed, which says the language pair")
    pair = f"{match['source']}-{match['target']}"
    return (Row(row.where, {**row.fields, "lp": pair}) for row in _parsed(path, lines))


# The first end of a file's name that fits says how it is read; a file of any other name is JSON Lines.
_LAYOUTS: dict[str, Callable[[str | Path], Iterator[Row]]] = {
    _MLQE: lambda path: _with_pair(path, Path(path).name, iter_lines(path)),
    ".tar": _mlqe_archive_rows,
    ".tgz": _mlqe_archive_rows,
    ".tsv": lambda path: _parsed(path, iter_lines(path)),
    ".csv": lambda path: _parsed(path, iter_lines(path)),
    ".jsonl": jsonl_rows,
}


def files_of(path: str | Path) -> list[str | Path]:
    """The file itself, or the files of a folder that can be read, sorted; a folder without any is refused."""
    if not Path(path).is_dir():
        return [path]
    files = sorted(file for file in Path(path).rglob("*") if file.is_file() and _end(file))
    if not files:
        known = f"files *{', *'.join(_LAYOUTS)} are read, or a test set of mt-metrics-eval"
        raise InputError(f"{path}: holds no judged data; {known}")
    return [*files]


def read_rows(file: str | Path) -> Iterator[Row]:
    """Yields every row of a file, read as the end of its name says (see `mtmetrics.evaluation.data.read_judged`)."""
    return _LAYOUTS.get(_end(file) or "", jsonl_rows)(file)


def _end(path: str | Path) -> str | None:
    name = str(path).removesuffix(".gz")
    return next((end for end in _LAYOUTS if name.endswith(end)), None)
